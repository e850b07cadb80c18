// A convolution of one axis with dilation d is a dense one of two: element i of the axis is column i % d of
// row i / d, and a step of d is a step of one row. The bytes are the same, row-major, channels last or in
// blocks. oneDNN's fast kernels for wide dilations along a row take up to 100 ms and 25 MB each to be made;
// those for rows do not.
#pragma once

#include <optional>

#include "operation.h"

namespace host_cpu {

// The same convolution over rows; nothing where it is none of one axis, or the sizes are no whole rows. Rows
// of fewer than eight columns are not worth it.
std::optional<Operation> over_rows(const Operation& op);

// Layouts of the same bytes, over rows and back. Weights have a last axis of one element more over rows.
dnnl_memory_desc_t split_axis(const dnnl_memory_desc_t& desc, int64_t columns);
std::optional<dnnl_memory_desc_t> join_axes(const dnnl_memory_desc_t& desc);

}  // namespace host_cpu
