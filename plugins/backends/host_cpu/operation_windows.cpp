// Convolution and pooling, whose windows walk over the spatial axes.
#include <algorithm>
#include <limits>

#include "operation_parts.h"

namespace host_cpu {
namespace {

using regie::sdk::Attrs;

constexpr int kMaxSpatial = 3;
constexpr int64_t kMaxGeometry =
    1 << 24;  // strides, dilations, paddings and kernel sizes beyond it are refused

// ---- windows: what convolution and pooling share ----

std::vector<int64_t> geometry(const Attrs& attrs, std::string_view name, int spatial, int64_t fallback,
                              int64_t least, int lists = 1) {
  auto given = attrs.integers(name);
  std::vector<int64_t> values(static_cast<size_t>(spatial * lists), fallback);
  if (!given || given->empty()) return values;
  if (given->size() != values.size())
    refuse("attribute '" + std::string(name) + "' must have " + std::to_string(values.size()) + " elements");
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = (*given)[i];
    if (values[i] < least || values[i] > kMaxGeometry)
      refuse("attribute '" + std::string(name) + "' is out of oneDNN's range");
  }
  return values;
}

// Fills strides, dilates and paddings for a window of `kernel`; the size of the result decides the padding on
// the right. `ceiled`: may the size be one of ceil_mode, and then: does a window end beyond the padding?
void fill_window(Operation& op, const Request& r, std::span<const int64_t> in, std::span<const int64_t> out,
                 bool* ceiled) {
  const int spatial = static_cast<int>(in.size());
  auto strides = geometry(r.attrs, "strides", spatial, 1, 1);
  auto dilations = geometry(r.attrs, "dilations", spatial, 1, 1);
  auto pads = geometry(r.attrs, "pads", spatial, 0, 0, 2);
  std::string_view mode = r.attrs.text("auto_pad", "NOTSET");
  if (mode.empty()) mode = "NOTSET";
  const bool upper = mode == "SAME_UPPER", lower = mode == "SAME_LOWER";
  if (!upper && !lower && mode != "NOTSET" && mode != "VALID")
    refuse("auto_pad '" + std::string(mode) + "' is unknown");
  for (int i = 0; i < spatial; ++i) {
    const int64_t span = (op.kernel[i] - 1) * dilations[i] + 1;
    int64_t left = pads[i], right = pads[i + spatial];
    if (mode == "VALID") left = right = 0;
    if (upper || lower) {
      const int64_t both = std::max<int64_t>(0, (out[i] - 1) * strides[i] + span - in[i]);
      left = upper ? both / 2 : both - both / 2;
      right = both - left;
    }
    if (out[i] != (in[i] + left + right - span) / strides[i] + 1 || in[i] + left + right < span) {
      // ceil_mode: the last window may end beyond the padding, or a window that would begin there is left
      // out.
      const int64_t needed = (out[i] - 1) * strides[i] + span - in[i] - left;
      if (!ceiled || needed < 0) refuse("the result's size does not follow from the window");
      *ceiled = *ceiled || needed > right;
      right = needed;
    }
    op.strides[i] = strides[i];
    op.dilates[i] = dilations[i] - 1;
    op.pad_l[i] = left;
    op.pad_r[i] = right;
  }
}

int spatial_rank(const regie_tensor& x) {
  if (x.rank < 3 || x.rank > 2 + kMaxSpatial) refuse("oneDNN takes 1 to 3 spatial axes");
  return x.rank - 2;
}

// ---- convolution ----

// What both convolutions take: y = W * x, or x = W * y turned round; W is [outer, inner / group, window].
Operation convolution_base(const Request& r, bool transposed) {
  Operation op;
  op.kind = transposed ? Operation::kDeconvolution : Operation::kConvolution;
  op.alg = transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
  const regie_tensor &x = need(r, 0), &w = need(r, 1), &y = r.results[0];
  const regie_tensor &inner = transposed ? y : x, &outer = transposed ? x : y;
  const int spatial = spatial_rank(x);
  if (w.rank != x.rank || y.rank != x.rank) refuse("input, weight and result must have the same rank");
  const int64_t group = r.attrs.integer("group", 1);
  if (group < 1 || w.dims[0] % group || w.dims[1] > std::numeric_limits<int64_t>::max() / group ||
      inner.dims[1] != w.dims[1] * group || outer.dims[1] != w.dims[0] || y.dims[0] != x.dims[0])
    refuse("channels and groups of input, weight and result do not fit");
  std::vector<int64_t> weights;
  if (group > 1) weights.push_back(group);
  weights.insert(weights.end(), {w.dims[0] / group, w.dims[1]});
  if (transposed) std::swap(weights.end()[-1], weights.end()[-2]);
  for (int i = 0; i < spatial; ++i) {
    op.kernel[i] = w.dims[2 + i];
    if (op.kernel[i] < 1 || op.kernel[i] > kMaxGeometry) refuse("a kernel size is out of oneDNN's range");
    weights.push_back(op.kernel[i]);
  }
  op.src = plain(regie::sdk::dims_of(x));
  op.weights = plain(weights);
  if (transposed) swap_channels(op.weights, group > 1);
  op.dst = plain(regie::sdk::dims_of(y));
  op.weights_operand = 1;
  if (const regie_tensor* b = r.operand(2)) {
    if (b->rank != 1 || b->dims[0] != y.dims[1]) refuse("the bias must have one element a result channel");
    op.bias = plain(regie::sdk::dims_of(*b));
    op.bias_operand = 2;
  }
  op.flops = 2 * product(regie::sdk::dims_of(outer)) * product({w.dims + 1, static_cast<size_t>(w.rank - 1)});
  return op;
}

// ---- pooling ----

Operation pooling_base(const Request& r) {
  Operation op;
  op.kind = Operation::kPooling;
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  spatial_rank(x);
  if (y.rank != x.rank || y.dims[0] != x.dims[0] || y.dims[1] != x.dims[1])
    refuse("input and result must have the same rank, batch and channels");
  op.src = plain(regie::sdk::dims_of(x));
  op.dst = plain(regie::sdk::dims_of(y));
  op.src.data_type = dnnl_type(x.elem);
  op.dst.data_type = dnnl_type(y.elem);
  return op;
}

Operation window_pool(const Request& r, bool* ceiled) {
  Operation op = pooling_base(r);
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  const auto spatial = static_cast<size_t>(spatial_rank(x));
  if (r.results.size() > 1 && r.results[1].elem != REGIE_ELEM_UNKNOWN) refuse("indices are asked for");
  auto kernel = geometry(r.attrs, "kernel_shape", static_cast<int>(spatial), 0, 1);
  std::copy(kernel.begin(), kernel.end(), op.kernel);
  if (kernel[0] == 0) refuse("kernel_shape is missing");
  fill_window(op, r, {x.dims + 2, spatial}, {y.dims + 2, spatial}, ceiled);
  // oneDNN gives the lowest float for a window in which there is no element, ONNX minus infinity or NaN.
  if (may_miss(op)) refuse("a window may lie in the padding altogether");
  for (size_t i = 0; i < spatial; ++i)
    if (op.dilates[i] && (op.pad_l[i] || op.pad_r[i]))
      refuse("a dilated window in padding may hold no element");
  op.flops = product(regie::sdk::dims_of(y)) * product({op.kernel, spatial});
  return op;
}

Operation global_pool(const Request& r, dnnl_alg_kind_t alg) {
  Operation op = pooling_base(r);
  op.alg = alg;
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  const int spatial = spatial_rank(x);
  for (int i = 0; i < spatial; ++i) {
    if (y.dims[2 + i] != 1) refuse("the result's spatial sizes must be 1");
    op.kernel[i] = x.dims[2 + i];
    op.strides[i] = 1;
  }
  op.flops = product(regie::sdk::dims_of(x));
  return op;
}
}  // namespace

Operation convolution(const Request& r) {
  Operation op = convolution_base(r, false);
  const regie_tensor &x = need(r, 0), &w = need(r, 1), &y = r.results[0];
  const auto spatial = static_cast<size_t>(spatial_rank(x));
  if (auto shape = r.attrs.integers("kernel_shape");
      shape && !shape->empty() && !std::equal(shape->begin(), shape->end(), w.dims + 2, w.dims + w.rank))
    refuse("kernel_shape and the weight's shape differ");
  fill_window(op, r, {x.dims + 2, spatial}, {y.dims + 2, spatial}, nullptr);
  if (const regie_tensor* residual = r.operand(3)) {
    if (residual->rank != y.rank || !std::equal(residual->dims, residual->dims + y.rank, y.dims))
      refuse("the residual must have the result's shape");
    op.residual_operand = 3;
    op.post.push_back({PostOp::kSum, dnnl_alg_kind_undef, 1, 0, REGIE_NONE, {}});
  }
  append_activation(r.attrs, op.post);
  return op;
}

// y = the gradient of a convolution: each element of x spreads the kernel over the result.
Operation transposed_convolution(const Request& r) {
  Operation op = convolution_base(r, true);
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  const int spatial = spatial_rank(x);
  if (r.attrs.text("auto_pad", "NOTSET") != "NOTSET") refuse("auto_pad of a transposed convolution");
  if (auto shape = r.attrs.integers("output_shape"); shape && !shape->empty())
    refuse("output_shape of a transposed convolution");
  auto strides = geometry(r.attrs, "strides", spatial, 1, 1);
  auto dilations = geometry(r.attrs, "dilations", spatial, 1, 1);
  auto pads = geometry(r.attrs, "pads", spatial, 0, 0, 2);
  auto extra = geometry(r.attrs, "output_padding", spatial, 0, 0);
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    op.strides[i] = strides[k];
    op.dilates[i] = dilations[k] - 1;
    op.pad_l[i] = pads[k];
    op.pad_r[i] = pads[static_cast<size_t>(spatial) + k] - extra[k];
    if (op.pad_r[i] < 0) refuse("output_padding beyond the padding");
    const int64_t span = dilations[k] * (op.kernel[i] - 1) + 1;
    if (y.dims[2 + i] != (x.dims[2 + i] - 1) * strides[k] + span - op.pad_l[i] - op.pad_r[i])
      refuse("the result's size does not follow from the input's");
  }
  return op;
}

Operation max_pool(const Request& r) {
  bool ceiled = false;
  Operation op = window_pool(r, &ceiled);
  op.alg = dnnl_pooling_max;
  return op;
}

Operation average_pool(const Request& r) {
  bool ceiled = false;
  Operation op = window_pool(r, &ceiled);
  const bool include = r.attrs.integer("count_include_pad", 0) != 0;
  if (include && ceiled)
    refuse("ceil_mode with count_include_pad: oneDNN would count what lies beyond the padding");
  op.alg = include ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  return op;
}

Operation global_average_pool(const Request& r) { return global_pool(r, dnnl_pooling_avg_exclude_padding); }
Operation global_max_pool(const Request& r) { return global_pool(r, dnnl_pooling_max); }

}  // namespace host_cpu
