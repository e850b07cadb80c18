#include "small_kernels.h"

#include <algorithm>
#include <optional>

#include "after.h"
#include "parallel.h"

namespace host_cpu {
namespace {

constexpr int64_t kWidest = 64;  // outputs whose weights oneDNN puts beside each other

// At one position the channels lie beside each other in every format.
bool whole(regie_format format, int64_t channels) { return format != kBlocked || channels % kBlock == 0; }

NativePtr product_at_one_position(const DnnlBlob& blob, const PrepareRequest& request, const Operation& op,
                                  const Formats& formats, uint32_t threads) {
  constexpr int64_t kFewPictures = 4;  // with more, the weights are worth to be read once for several
  const int n = op.src.ndims;
  if (op.weights.ndims != n || op.residual_operand != REGIE_NONE || op.scale != 1 || !op.scales.empty() ||
      !op.bias_values.empty() || op.src.dims[0] > kFewPictures)
    return nullptr;
  for (int i = 2; i < n; ++i)
    if (op.src.dims[i] != 1 || op.weights.dims[i] != 1 || op.dst.dims[i] != 1 || op.pad_l[i - 2] != 0)
      return nullptr;
  const int64_t in = op.src.dims[1], out = op.dst.dims[1], pictures = op.src.dims[0];
  if (!whole(formats.operands[op.src_operand], in) || !whole(formats.results[0], out)) return nullptr;
  std::vector<After> steps;
  for (const PostOp& p : op.post) {
    const std::optional<After> step = after(p);
    if (!step) return nullptr;
    steps.push_back(*step);
  }
  // Blocks of outputs, in each of them an input after the other.
  if (blob.packed_operand == REGIE_NONE || blob.packed_operand != op.weights_operand) return nullptr;
  const dnnl_memory_desc_t& w = blob.packed;
  const auto& lie = w.format_desc.blocking;
  if (w.format_kind != dnnl_blocked || w.data_type != dnnl_f32 || w.ndims != n || w.extra.flags != 0 ||
      lie.inner_nblks != 1 || lie.inner_idxs[0] != 0)
    return nullptr;
  const int64_t width = lie.inner_blks[0];
  if (width < 1 || width > kWidest || w.dims[0] != out || w.dims[1] != in || w.padded_dims[1] != in ||
      lie.strides[1] != width || lie.strides[0] != width * in)
    return nullptr;
  const int64_t blocks = (out + width - 1) / width;
  const regie_tensor& weights = request.operands[op.weights_operand];
  if (static_cast<uint64_t>(blocks * width * in) * 4 > std::min(blob.packed_bytes, weights.bytes))
    return nullptr;
  const bool biased = op.bias.ndims != 0;
  return native_kernel([=, src = op.src_operand, weight = op.weights_operand, bias = op.bias_operand,
                        steps = std::move(steps)](const regie_launch& l) {
    for (int64_t p = 0; p < pictures; ++p)
      parallel(threads, blocks, width * in, [&](int64_t begin, int64_t end) {
        const float* x = in_data<float>(l, src) + p * in;
        float* y = out_data<float>(l, 0) + p * out;
        for (int64_t k = begin; k < end; ++k) {
          const int64_t first = k * width, count = std::min(width, out - first);
          float sums[kWidest] = {};
          if (biased) std::copy_n(in_data<float>(l, bias) + first, count, sums);
          simd().gemv_columns(sums, in_data<float>(l, weight) + first * in, x, width, in);
          for (const After& step : steps) step.run(sums, count);
          std::copy_n(sums, count, y + first);
        }
      });
  });
}

NativePtr mean_over_positions(const Operation& op, const Formats& formats, uint32_t threads) {
  if (op.alg != dnnl_pooling_avg_exclude_padding && op.alg != dnnl_pooling_avg_include_padding)
    return nullptr;
  int64_t positions = 1;
  for (int i = 2; i < op.src.ndims; ++i) {
    if (op.dst.dims[i] != 1 || op.kernel[i - 2] != op.src.dims[i] || op.pad_l[i - 2] || op.pad_r[i - 2])
      return nullptr;
    positions *= op.src.dims[i];
  }
  const int64_t channels = op.src.dims[1];
  const regie_format format = formats.operands[0];
  if (format == kPlainFormat || !whole(format, channels) || !whole(formats.results[0], channels))
    return nullptr;
  // Rows of neighbours: all channels of a position, or a block of them.
  const int64_t row = format == kBlocked ? kBlock : channels, sheets = op.src.dims[0] * (channels / row);
  const float factor = 1.f / static_cast<float>(positions);
  const int64_t stretch = std::min<int64_t>(row, 256), pieces = (row + stretch - 1) / stretch;
  return native_kernel([=](const regie_launch& l) {
    parallel(threads, sheets * pieces, positions * stretch, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t sheet = i / pieces, first = i % pieces * stretch, n = std::min(stretch, row - first);
        float* y = out_data<float>(l, 0) + sheet * row + first;
        simd().sum_rows(y, in_data<float>(l, 0) + sheet * positions * row + first, positions, row, n);
        simd().affine_one(y, y, factor, 0, n);
      }
    });
  });
}

}  // namespace

NativePtr small_kernel(const DnnlBlob& blob, const Operation& op, const PrepareRequest& r, uint32_t threads) {
  if (op.quantised() || op.src.data_type != dnnl_f32 || op.dst.data_type != dnnl_f32 || op.src.ndims < 3)
    return nullptr;
  if (op.kind != Operation::kConvolution && op.kind != Operation::kPooling) return nullptr;
  const Formats formats = blob.formats();
  return op.kind == Operation::kPooling ? mean_over_positions(op, formats, threads)
                                        : product_at_one_position(blob, r, op, formats, threads);
}

}  // namespace host_cpu
