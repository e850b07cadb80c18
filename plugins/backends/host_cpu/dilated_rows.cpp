#include "dilated_rows.h"

namespace host_cpu {

std::optional<Operation> over_rows(const Operation& op) {
  if (op.kind != Operation::kConvolution || op.quantised() || op.src.ndims != 3 || op.strides[0] != 1)
    return std::nullopt;
  const int64_t columns = op.dilates[0] + 1;
  if (columns < 8) return std::nullopt;
  for (int64_t size : {op.src.dims[2], op.dst.dims[2], op.pad_l[0], op.pad_r[0]})
    if (size % columns != 0) return std::nullopt;
  for (const PostOp& p : op.post)
    if (p.operand != REGIE_NONE) return std::nullopt;
  Operation rows = op;
  rows.src = split_axis(op.src, columns);
  rows.dst = split_axis(op.dst, columns);
  rows.weights = split_axis(op.weights, 1);
  rows.kernel[1] = rows.strides[1] = 1;
  rows.dilates[0] = rows.dilates[1] = 0;
  rows.pad_l[0] /= columns;
  rows.pad_r[0] /= columns;
  rows.pad_l[1] = rows.pad_r[1] = 0;
  return rows;
}

dnnl_memory_desc_t split_axis(const dnnl_memory_desc_t& desc, int64_t columns) {
  dnnl_memory_desc_t split = desc;
  const int n = desc.ndims;
  split.ndims = n + 1;
  for (auto* sizes : {split.dims, split.padded_dims}) {
    sizes[n - 1] /= columns;
    sizes[n] = columns;
  }
  split.padded_offsets[n] = 0;
  auto& strides = split.format_desc.blocking.strides;
  strides[n] = strides[n - 1];
  strides[n - 1] *= columns;
  return split;
}

std::optional<dnnl_memory_desc_t> join_axes(const dnnl_memory_desc_t& desc) {
  const int n = desc.ndims - 1;
  const dnnl_blocking_desc_t& blocks = desc.format_desc.blocking;
  if (desc.format_kind != dnnl_blocked || desc.padded_dims[n] != desc.dims[n] ||
      blocks.strides[n - 1] != blocks.strides[n] * desc.dims[n])
    return std::nullopt;
  for (int i = 0; i < blocks.inner_nblks; ++i)
    if (blocks.inner_idxs[i] >= n - 1) return std::nullopt;
  dnnl_memory_desc_t joined = desc;
  joined.ndims = n;
  for (auto* sizes : {joined.dims, joined.padded_dims}) {
    sizes[n - 1] *= sizes[n];
    sizes[n] = 0;
  }
  auto& strides = joined.format_desc.blocking.strides;
  strides[n - 1] = strides[n];
  strides[n] = 0;
  return joined;
}

}  // namespace host_cpu
