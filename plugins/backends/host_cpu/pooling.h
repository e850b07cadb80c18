// Pooling of floats over one axis or two by kernels of our own that are compiled ahead (map_kernels.h), in
// all formats. Of bytes and over three axes it stays oneDNN's.
#pragma once

#include "executable.h"

namespace host_cpu {

bool suits_pooling(const Operation& op, const Formats& formats);
// `op`: what the request asks for (describe_request). NULL: it does not suit.
NativePtr pooling(const DnnlBlob& blob, const Operation& op, uint32_t threads);

}  // namespace host_cpu
