// Kernels of oneDNN's format that are run by loops of our own, as a primitive would take a hundred times as
// long to create as to run: products at one position (the convolutions of squeeze-and-excitation), with the
// weights as oneDNN's kernels for them are packed, and the mean over all positions.
#pragma once

#include "executable.h"

namespace host_cpu {

// `op`: what the request asks for (describe_request). NULL: it is none of those, or lies otherwise in memory.
NativePtr small_kernel(const DnnlBlob& blob, const Operation& op, const PrepareRequest& request,
                       uint32_t threads);

}  // namespace host_cpu
