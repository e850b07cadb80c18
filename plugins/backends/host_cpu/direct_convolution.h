// Convolutions by kernels of our own that are compiled ahead (direct_kernels.h), on weights as oneDNN's
// direct and batch-reduced kernels have them packed, so that a plan may be run by either.
#pragma once

#include "executable.h"

namespace host_cpu {

// Is it a convolution of floats that these kernels compute on this processor, with weights that lie so?
bool suits_direct(const Operation& op, const dnnl_memory_desc_t& packed, const Formats& formats);

// `op`: what the request asks for (describe_request). NULL: its weights are no constants, it is for
// Winograd's algorithm, or it does not suit (suits_direct).
NativePtr direct_convolution(const DnnlBlob& blob, const Operation& op, const PrepareRequest& request,
                             uint32_t threads);

}  // namespace host_cpu
