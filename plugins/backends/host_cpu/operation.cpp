#include "operation.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

namespace host_cpu {
namespace {

using regie::sdk::Attrs;
using regie::sdk::Failure;

constexpr int kMaxSpatial = 3;
constexpr int64_t kMaxGeometry =
    1 << 24;  // strides, dilations, paddings and kernel sizes beyond it are refused

[[noreturn]] void refuse(std::string why) { throw Failure(REGIE_UNSUPPORTED, std::move(why)); }

struct Request {
  std::string_view op;
  const Attrs& attrs;
  std::span<const regie_tensor> operands, results;
  const regie_tensor* operand(size_t i) const {
    return i < operands.size() && operands[i].elem != REGIE_ELEM_UNKNOWN ? &operands[i] : nullptr;
  }
};

dnnl_memory_desc_t plain(std::span<const int64_t> dims) {
  dnnl_memory_desc_t desc{};
  dnnl_dims_t sizes{}, strides{};
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    sizes[i] = dims[i];
    strides[i] = stride;
    // The library counts in int in many places, and divides by what is left of a size.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(dims[i], 1), &stride) || stride > INT32_MAX ||
        dims[i] > INT32_MAX / 2)
      refuse("a tensor is too large");
  }
  if (dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(dims.size()), sizes, dnnl_f32, strides) !=
      dnnl_success)
    refuse("oneDNN cannot describe a tensor of this shape");
  return desc;
}

const regie_tensor& need(const Request& r, size_t i) {
  const regie_tensor* t = r.operand(i);
  if (!t) refuse("operand " + std::to_string(i) + " is absent");
  return *t;
}

void check_tensors(const Request& r) {
  auto check_one = [](const regie_tensor& t) {
    if (t.elem == REGIE_ELEM_UNKNOWN) return;
    if (t.elem != REGIE_F32) refuse("oneDNN is used for float32 only");
    if (t.strides) refuse("a tensor is strided");
    if (t.rank < 0 || t.rank > DNNL_MAX_NDIMS) refuse("a tensor has more than 12 dimensions");
    int64_t bytes = 4;
    for (int64_t d : regie::sdk::dims_of(t))
      if (d < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(d, 1), &bytes))
        refuse("a tensor is too large");
  };
  for (const regie_tensor& t : r.operands) check_one(t);
  for (const regie_tensor& t : r.results) check_one(t);
  if (r.results.empty() || r.results[0].elem == REGIE_ELEM_UNKNOWN) refuse("the first result is absent");
}

// ---- activations ----

struct Activation {
  std::string_view name;
  dnnl_alg_kind_t alg;
  bool has_alpha, has_beta;  // takes activation_alpha, activation_beta; else `fixed` and 0
  float fixed;
};
constexpr Activation kActivations[] = {
    {"Clip", dnnl_eltwise_clip, true, true, 0},
    {"Elu", dnnl_eltwise_elu, true, false, 0},
    {"Gelu", dnnl_eltwise_gelu_erf, false, false, 0},
    {"GeluTanh", dnnl_eltwise_gelu_tanh, false, false, 0},
    {"HardSwish", dnnl_eltwise_hardswish, false, false, 0},
    {"LeakyRelu", dnnl_eltwise_relu, true, false, 0},
    {"Relu", dnnl_eltwise_relu, false, false, 0},
    {"Sigmoid", dnnl_eltwise_logistic, false, false, 0},
    {"Swish", dnnl_eltwise_swish, false, false, 1},
    {"Tanh", dnnl_eltwise_tanh, false, false, 0},
};

void append_eltwise(std::vector<PostOp>& post, dnnl_alg_kind_t alg, double alpha, double beta) {
  post.push_back(
      {PostOp::kEltwise, alg, static_cast<float>(alpha), static_cast<float>(beta), REGIE_NONE, {}});
}

void append_activation(const Attrs& attrs, std::vector<PostOp>& post) {
  std::string_view name = attrs.text("activation", "");
  if (name.empty()) return;
  const double alpha = attrs.number("activation_alpha", 0), beta = attrs.number("activation_beta", 0);
  if (name == "HardSigmoid") {  // max(0, min(1, alpha x + beta)): two steps in this version of oneDNN
    append_eltwise(post, dnnl_eltwise_linear, alpha, beta);
    append_eltwise(post, dnnl_eltwise_clip, 0, 1);
    return;
  }
  for (const Activation& a : kActivations)
    if (a.name == name)
      return append_eltwise(post, a.alg, a.has_alpha ? alpha : a.fixed, a.has_beta ? beta : 0);
  refuse("oneDNN has no post-op for the activation '" + std::string(name) + "'");
}

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

double product(std::span<const int64_t> dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

// ---- convolution ----

Operation convolution(const Request& r) {
  Operation op;
  op.kind = Operation::kConvolution;
  op.alg = dnnl_convolution_direct;
  const regie_tensor &x = need(r, 0), &w = need(r, 1), &y = r.results[0];
  const int spatial = spatial_rank(x);
  if (w.rank != x.rank || y.rank != x.rank) refuse("input, weight and result must have the same rank");
  const int64_t group = r.attrs.integer("group", 1);
  if (group < 1 || w.dims[0] % group || w.dims[1] > std::numeric_limits<int64_t>::max() / group ||
      x.dims[1] != w.dims[1] * group || y.dims[1] != w.dims[0] || y.dims[0] != x.dims[0])
    refuse("channels and groups of input, weight and result do not fit");
  std::vector<int64_t> weights;
  if (group > 1) weights.push_back(group);
  weights.push_back(w.dims[0] / group);
  for (int i = 1; i < w.rank; ++i) weights.push_back(w.dims[i]);
  for (int i = 0; i < spatial; ++i) {
    op.kernel[i] = w.dims[2 + i];
    if (op.kernel[i] < 1 || op.kernel[i] > kMaxGeometry) refuse("a kernel size is out of oneDNN's range");
  }
  if (auto shape = r.attrs.integers("kernel_shape");
      shape && !shape->empty() && !std::equal(shape->begin(), shape->end(), w.dims + 2, w.dims + w.rank))
    refuse("kernel_shape and the weight's shape differ");
  fill_window(op, r, {x.dims + 2, static_cast<size_t>(spatial)}, {y.dims + 2, static_cast<size_t>(spatial)},
              nullptr);
  op.src = plain(regie::sdk::dims_of(x));
  op.weights = plain(weights);
  op.dst = plain(regie::sdk::dims_of(y));
  op.weights_operand = 1;
  if (const regie_tensor* b = r.operand(2)) {
    if (b->rank != 1 || b->dims[0] != w.dims[0]) refuse("the bias must have one element a result channel");
    op.bias = plain(regie::sdk::dims_of(*b));
    op.bias_operand = 2;
  }
  if (const regie_tensor* residual = r.operand(3)) {
    if (residual->rank != y.rank || !std::equal(residual->dims, residual->dims + y.rank, y.dims))
      refuse("the residual must have the result's shape");
    op.residual_operand = 3;
    op.post.push_back({PostOp::kSum, dnnl_alg_kind_undef, 1, 0, REGIE_NONE, {}});
  }
  append_activation(r.attrs, op.post);
  op.flops = 2 * product(regie::sdk::dims_of(y)) * product({w.dims + 1, static_cast<size_t>(w.rank - 1)});
  return op;
}

// y = the gradient of a convolution: each element of x spreads the kernel over the result.
Operation transposed_convolution(const Request& r) {
  Operation op;
  op.kind = Operation::kDeconvolution;
  op.alg = dnnl_deconvolution_direct;
  const regie_tensor &x = need(r, 0), &w = need(r, 1), &y = r.results[0];
  const int spatial = spatial_rank(x);
  if (w.rank != x.rank || y.rank != x.rank) refuse("input, weight and result must have the same rank");
  const int64_t group = r.attrs.integer("group", 1);
  if (group < 1 || w.dims[0] % group || w.dims[1] > std::numeric_limits<int64_t>::max() / group ||
      x.dims[1] != w.dims[0] || y.dims[1] != w.dims[1] * group || y.dims[0] != x.dims[0])
    refuse("channels and groups of input, weight and result do not fit");
  if (r.attrs.text("auto_pad", "NOTSET") != "NOTSET") refuse("auto_pad of a transposed convolution");
  if (auto shape = r.attrs.integers("output_shape"); shape && !shape->empty())
    refuse("output_shape of a transposed convolution");
  auto strides = geometry(r.attrs, "strides", spatial, 1, 1);
  auto dilations = geometry(r.attrs, "dilations", spatial, 1, 1);
  auto pads = geometry(r.attrs, "pads", spatial, 0, 0, 2);
  auto extra = geometry(r.attrs, "output_padding", spatial, 0, 0);
  std::vector<int64_t> weights;
  if (group > 1) weights.push_back(group);
  weights.push_back(w.dims[1]);
  weights.push_back(w.dims[0] / group);
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    op.kernel[i] = w.dims[2 + i];
    if (op.kernel[i] < 1 || op.kernel[i] > kMaxGeometry) refuse("a kernel size is out of oneDNN's range");
    weights.push_back(op.kernel[i]);
    op.strides[i] = strides[k];
    op.dilates[i] = dilations[k] - 1;
    op.pad_l[i] = pads[k];
    op.pad_r[i] = pads[static_cast<size_t>(spatial) + k] - extra[k];
    if (op.pad_r[i] < 0) refuse("output_padding beyond the padding");
    const int64_t span = dilations[k] * (op.kernel[i] - 1) + 1;
    if (y.dims[2 + i] != (x.dims[2 + i] - 1) * strides[k] + span - op.pad_l[i] - op.pad_r[i])
      refuse("the result's size does not follow from the input's");
  }
  op.src = plain(regie::sdk::dims_of(x));
  op.weights = plain(weights);
  swap_channels(op.weights, group > 1);
  op.dst = plain(regie::sdk::dims_of(y));
  op.weights_operand = 1;
  if (const regie_tensor* b = r.operand(2)) {
    if (b->rank != 1 || b->dims[0] != y.dims[1]) refuse("the bias must have one element a result channel");
    op.bias = plain(regie::sdk::dims_of(*b));
    op.bias_operand = 2;
  }
  op.flops = 2 * product(regie::sdk::dims_of(x)) * product({w.dims + 1, static_cast<size_t>(w.rank - 1)});
  return op;
}

// ---- matmul ----

// Right-aligned to `rank` axes with 1 in front.
std::vector<int64_t> aligned(std::span<const int64_t> dims, size_t rank) {
  std::vector<int64_t> out(rank, 1);
  std::copy(dims.begin(), dims.end(), out.end() - static_cast<std::ptrdiff_t>(dims.size()));
  return out;
}

dnnl_memory_desc_t matrix(std::vector<int64_t> dims, bool transposed) {
  dnnl_memory_desc_t desc = plain(dims);
  if (!transposed) return desc;
  const size_t n = dims.size();
  std::swap(desc.dims[n - 1], desc.dims[n - 2]);
  std::swap(desc.padded_dims[n - 1], desc.padded_dims[n - 2]);
  std::swap(desc.format_desc.blocking.strides[n - 1], desc.format_desc.blocking.strides[n - 2]);
  return desc;
}

// An operand that broadcasts to `result`, as oneDNN is to see it beside dst. `row`: one value a column, or
// one in all.
dnnl_memory_desc_t addend(const Operation& op, const regie_tensor& t, std::span<const int64_t> result,
                          bool flat, bool* row) {
  const auto rank = static_cast<size_t>(op.dst.ndims);
  if (static_cast<size_t>(t.rank) > result.size()) refuse("an addend has more dimensions than the result");
  std::vector<int64_t> dims = aligned(regie::sdk::dims_of(t), result.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && dims[i] != result[i]) refuse("an addend does not broadcast to the result");
  *row = std::all_of(dims.begin(), dims.end() - 1, [](int64_t d) { return d == 1; });
  if (*row) return plain(aligned({&dims.back(), 1}, rank));
  if (!flat || dims.size() == rank) return plain(dims);
  if (!std::equal(dims.begin(), dims.end(), result.begin())) refuse("an addend broadcasts along inner axes");
  return op.dst;
}

// alpha * A * B + beta * C + R, then the activation. The usual case is oneDNN's own bias and sum; the rest
// are post-ops.
void add_post(Operation& op, const Request& r, std::span<const int64_t> result, bool flat) {
  const double alpha = r.attrs.number("alpha", 1), beta = r.attrs.number("beta", 1);
  bool row = false;
  if (const regie_tensor* c = beta != 0 ? r.operand(2) : nullptr) {
    dnnl_memory_desc_t memory = addend(op, *c, result, flat, &row);
    if (alpha == 1 && beta == 1 && row && memory.dims[memory.ndims - 1] == op.dst.dims[op.dst.ndims - 1]) {
      op.bias = memory;
      op.bias_operand = 2;
    } else {
      op.scale = static_cast<float>(alpha / beta);
      op.post.push_back({PostOp::kBinaryAdd, dnnl_alg_kind_undef, 0, 0, 2, memory});
      if (beta != 1) append_eltwise(op.post, dnnl_eltwise_linear, beta, 0);
    }
  } else {
    op.scale = static_cast<float>(alpha);
  }
  if (const regie_tensor* residual = r.operand(3)) {
    dnnl_memory_desc_t memory = addend(op, *residual, result, flat, &row);
    const regie_tensor& y = r.results[0];
    if (residual->rank == y.rank && std::equal(y.dims, y.dims + y.rank, residual->dims)) {
      op.residual_operand = 3;
      op.post.push_back({PostOp::kSum, dnnl_alg_kind_undef, 1, 0, REGIE_NONE, {}});
    } else {
      op.post.push_back({PostOp::kBinaryAdd, dnnl_alg_kind_undef, 0, 0, 3, memory});
    }
  }
  append_activation(r.attrs, op.post);
  if (std::count_if(op.post.begin(), op.post.end(),
                    [](const PostOp& p) { return p.alg == dnnl_eltwise_linear; }) > 1)
    refuse("it would need two linear post-ops");
}

Operation matmul(const Request& r) {
  Operation op;
  op.kind = Operation::kMatMul;
  const regie_tensor &a = need(r, 0), &b = need(r, 1), &y = r.results[0];
  const bool trans_a = r.attrs.integer("transA", 0) != 0, trans_b = r.attrs.integer("transB", 0) != 0;
  if (a.rank < 1 || b.rank < 1) refuse("an operand is a scalar");
  if ((trans_a && a.rank < 2) || (trans_b && b.rank < 2)) refuse("a vector cannot be transposed");
  std::vector<int64_t> da(a.dims, a.dims + a.rank), db(b.dims, b.dims + b.rank);
  if (a.rank == 1) da.insert(da.begin(), 1);
  if (b.rank == 1) db.push_back(1);
  const int64_t m = trans_a ? da.back() : da[da.size() - 2], k = trans_a ? da[da.size() - 2] : da.back();
  const int64_t n = trans_b ? db[db.size() - 2] : db.back(), kb = trans_b ? db.back() : db[db.size() - 2];
  if (k != kb) refuse("the inner dimensions differ");
  // The result's dimensions with the axes that vectors do not have put back.
  std::vector<int64_t> dy;
  const size_t rank = std::max(da.size(), db.size());
  auto batch_a = aligned({da.data(), da.size() - 2}, rank - 2),
       batch_b = aligned({db.data(), db.size() - 2}, rank - 2);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (batch_a[i] != batch_b[i] && batch_a[i] != 1 && batch_b[i] != 1)
      refuse("the batch dimensions do not broadcast");
    dy.push_back(batch_a[i] == 1 ? batch_b[i] : batch_a[i]);
  }
  dy.push_back(m);
  dy.push_back(n);
  if (product(dy) != product(regie::sdk::dims_of(y)))
    refuse("the result's size does not follow from the operands");
  const bool one_b = std::all_of(batch_b.begin(), batch_b.end(), [](int64_t d) { return d == 1; });
  const bool flat = one_b && (rank == 2 || !trans_a);
  if (flat) {
    const int64_t rows = rank == 2 ? m : static_cast<int64_t>(product({dy.data(), dy.size() - 1}));
    op.src = rank == 2 ? matrix(da, trans_a) : plain(std::array{rows, k});
    op.weights = matrix({db.end() - 2, db.end()}, trans_b);
    op.dst = plain(std::array{rows, n});
  } else {
    op.src = matrix(aligned(da, rank), trans_a);
    op.weights = matrix(aligned(db, rank), trans_b);
    op.dst = plain(dy);
  }
  op.weights_operand = 1;
  add_post(op, r, dy, flat);
  op.flops = 2 * product(dy) * static_cast<double>(k);
  return op;
}

// ---- pooling ----

Operation pooling_base(const Request& r, bool* ceiled) {
  Operation op;
  op.kind = Operation::kPooling;
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  const auto spatial = static_cast<size_t>(spatial_rank(x));
  if (y.rank != x.rank || y.dims[0] != x.dims[0] || y.dims[1] != x.dims[1])
    refuse("input and result must have the same rank, batch and channels");
  if (r.results.size() > 1 && r.results[1].elem != REGIE_ELEM_UNKNOWN) refuse("indices are asked for");
  auto kernel = geometry(r.attrs, "kernel_shape", static_cast<int>(spatial), 0, 1);
  std::copy(kernel.begin(), kernel.end(), op.kernel);
  if (kernel[0] == 0) refuse("kernel_shape is missing");
  fill_window(op, r, {x.dims + 2, spatial}, {y.dims + 2, spatial}, ceiled);
  for (size_t i = 0; i < spatial; ++i) {
    // oneDNN gives the lowest float for a window in which there is no element, ONNX minus infinity or NaN.
    const int64_t span = (op.kernel[i] - 1) * (op.dilates[i] + 1);
    if (op.pad_l[i] > span || op.pad_r[i] > span) refuse("a window may lie in the padding altogether");
    if (op.dilates[i] && (op.pad_l[i] || op.pad_r[i]))
      refuse("a dilated window in padding may hold no element");
  }
  op.src = plain(regie::sdk::dims_of(x));
  op.dst = plain(regie::sdk::dims_of(y));
  op.flops = product(regie::sdk::dims_of(y)) * product({op.kernel, spatial});
  return op;
}

Operation max_pool(const Request& r) {
  bool ceiled = false;
  Operation op = pooling_base(r, &ceiled);
  op.alg = dnnl_pooling_max;
  return op;
}

Operation average_pool(const Request& r) {
  bool ceiled = false;
  Operation op = pooling_base(r, &ceiled);
  const bool include = r.attrs.integer("count_include_pad", 0) != 0;
  if (include && ceiled)
    refuse("ceil_mode with count_include_pad: oneDNN would count what lies beyond the padding");
  op.alg = include ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  return op;
}

Operation global_pool(const Request& r, dnnl_alg_kind_t alg) {
  Operation op;
  op.kind = Operation::kPooling;
  op.alg = alg;
  const regie_tensor &x = need(r, 0), &y = r.results[0];
  const int spatial = spatial_rank(x);
  if (y.rank != x.rank || y.dims[0] != x.dims[0] || y.dims[1] != x.dims[1])
    refuse("input and result must have the same rank, batch and channels");
  for (int i = 0; i < spatial; ++i) {
    if (y.dims[2 + i] != 1) refuse("the result's spatial sizes must be 1");
    op.kernel[i] = x.dims[2 + i];
    op.strides[i] = 1;
  }
  op.src = plain(regie::sdk::dims_of(x));
  op.dst = plain(regie::sdk::dims_of(y));
  op.flops = product(regie::sdk::dims_of(x));
  return op;
}
Operation global_average_pool(const Request& r) { return global_pool(r, dnnl_pooling_avg_exclude_padding); }
Operation global_max_pool(const Request& r) { return global_pool(r, dnnl_pooling_max); }

struct Lowering {
  std::string_view op;
  Operation (*describe)(const Request&);
  uint32_t residual;
};
constexpr Lowering kLowerings[] = {
    {"AveragePool", average_pool, REGIE_NONE},
    {"Conv", convolution, REGIE_NONE},
    {"ConvTranspose", transposed_convolution, REGIE_NONE},
    {"Gemm", matmul, REGIE_NONE},
    {"GlobalAveragePool", global_average_pool, REGIE_NONE},
    {"GlobalMaxPool", global_max_pool, REGIE_NONE},
    {"MatMul", matmul, REGIE_NONE},
    {"MaxPool", max_pool, REGIE_NONE},
    {"regie.FusedConv", convolution, 3},
    {"regie.FusedMatMul", matmul, 3},
};
const Lowering* find_lowering(std::string_view op) {
  auto at = std::find_if(std::begin(kLowerings), std::end(kLowerings),
                         [&](const Lowering& l) { return l.op == op; });
  return at == std::end(kLowerings) ? nullptr : at;
}

}  // namespace

bool is_lowered(std::string_view op) { return find_lowering(op) != nullptr; }

uint32_t residual_operand(std::string_view op) {
  const Lowering* l = find_lowering(op);
  return l ? l->residual : REGIE_NONE;
}

Operation describe(std::string_view op, const Attrs& attrs, const regie_tensor* operands,
                   uint32_t operand_count, const regie_tensor* results, uint32_t result_count) {
  const Lowering* l = find_lowering(op);
  if (!l) refuse("oneDNN is not used for it");
  Request r{op, attrs, {operands, operand_count}, {results, result_count}};
  check_tensors(r);
  return l->describe(r);
}

bool suits_winograd(const Operation& op) {
  if (op.kind != Operation::kConvolution || op.weights.ndims != 4 || op.src.ndims != 4) return false;
  for (int i = 0; i < 2; ++i)
    if (op.kernel[i] != 3 || op.strides[i] != 1 || op.dilates[i] != 0) return false;
  return true;
}

void swap_channels(dnnl_memory_desc_t& desc, bool grouped) {
  const int o = grouped ? 1 : 0, i = o + 1;
  auto& strides = desc.format_desc.blocking.strides;
  const int64_t window = strides[i];
  strides[o] = window;
  strides[i] = window * desc.dims[o];
}

bool Formats::all_plain() const {
  auto plain = [](regie_format f) { return f == kPlainFormat; };
  return std::all_of(operands.begin(), operands.end(), plain) &&
         std::all_of(results.begin(), results.end(), plain);
}

void set_formats(Operation& op, const Formats& formats, const regie_tensor* operands,
                 const regie_tensor* results) {
  if (formats.all_plain()) return;
  if (!op.convolves() && op.kind != Operation::kPooling) refuse("it is computed row-major only");
  for (size_t i = 0; i < formats.operands.size(); ++i) {
    const bool free = i == op.src_operand || i == op.residual_operand;
    if (!free && formats.operands[i] != kPlainFormat) refuse("an operand must be row-major");
  }
  if (op.residual_operand != REGIE_NONE && formats.operands[op.residual_operand] != formats.results[0])
    refuse("residual and result must have one format");
  op.src = dnnl_layout(regie::sdk::dims_of(operands[op.src_operand]), formats.operands[op.src_operand]);
  op.dst = dnnl_layout(regie::sdk::dims_of(results[0]), formats.results[0]);
}

std::string activation_problem(const Attrs& attrs) {
  try {
    std::vector<PostOp> post;
    append_activation(attrs, post);
    return {};
  } catch (const Failure& f) {
    return f.message;
  }
}

}  // namespace host_cpu
