#include "operation.h"

#include <algorithm>
#include <span>
#include <string>

#include "operation_parts.h"

namespace host_cpu {

using regie::sdk::Attrs;
using regie::sdk::Failure;

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

double product(std::span<const int64_t> dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

namespace {

void check_tensors(const Request& r, bool bytes_too) {
  auto check_one = [&](const regie_tensor& t) {
    if (t.elem == REGIE_ELEM_UNKNOWN) return;
    if (t.elem != REGIE_F32 && !(bytes_too && (t.elem == REGIE_U8 || t.elem == REGIE_I8)) &&
        !(bytes_too && t.elem == REGIE_I32))
      refuse(bytes_too ? "oneDNN is used for float32 and bytes only" : "oneDNN is used for float32 only");
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

// ---- operators ----

struct Lowering {
  std::string_view op;
  Operation (*describe)(const Request&);
  uint32_t residual;
  bool bytes = false;  // takes 8-bit integers
  bool quantised = false;
};
constexpr Lowering kLowerings[] = {
    {"AveragePool", average_pool, REGIE_NONE},
    {"Conv", convolution, REGIE_NONE},
    {"ConvInteger", integer_convolution, REGIE_NONE, true, true},
    {"ConvTranspose", transposed_convolution, REGIE_NONE},
    {"Gemm", matmul, REGIE_NONE},
    {"GlobalAveragePool", global_average_pool, REGIE_NONE},
    {"GlobalMaxPool", global_max_pool, REGIE_NONE},
    {"MatMul", matmul, REGIE_NONE},
    {"MatMulInteger", integer_matmul, REGIE_NONE, true, true},
    {"MaxPool", max_pool, REGIE_NONE, true},
    {"QLinearConv", linear_convolution, REGIE_NONE, true, true},
    {"QLinearMatMul", linear_matmul, REGIE_NONE, true, true},
    {"regie.FusedConv", convolution, 3},
    {"regie.FusedMatMul", matmul, 3},
    {"regie.QConv", quantised_convolution, REGIE_NONE, true, true},
    {"regie.QMatMul", quantised_matmul, REGIE_NONE, true, true},
};
const Lowering* find_lowering(std::string_view op) {
  auto at = std::find_if(std::begin(kLowerings), std::end(kLowerings),
                         [&](const Lowering& l) { return l.op == op; });
  return at == std::end(kLowerings) ? nullptr : at;
}

}  // namespace

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

bool is_lowered(std::string_view op) { return find_lowering(op) != nullptr; }

bool is_quantised(std::string_view op) {
  const Lowering* l = find_lowering(op);
  return l && l->quantised;
}

uint32_t residual_operand(std::string_view op) {
  const Lowering* l = find_lowering(op);
  return l ? l->residual : REGIE_NONE;
}

bool may_miss(const Operation& op) {
  for (int i = 0; i + 2 < op.src.ndims; ++i) {
    const int64_t span = (op.kernel[i] - 1) * (op.dilates[i] + 1);
    if (op.pad_l[i] > span || op.pad_r[i] > span) return true;
  }
  return false;
}

Operation describe(std::string_view op, const Attrs& attrs, const regie_tensor* operands,
                   uint32_t operand_count, const regie_tensor* results, uint32_t result_count) {
  const Lowering* l = find_lowering(op);
  if (!l) refuse("oneDNN is not used for it");
  Request r{op, attrs, {operands, operand_count}, {results, result_count}};
  check_tensors(r, l->bytes);
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
  if (op.quantised() && (formats.operands[op.src_operand] == kBlocked || formats.results[0] == kBlocked))
    refuse("bytes are computed row-major or channels last only");
  const dnnl_data_type_t src_type = op.src.data_type, dst_type = op.dst.data_type;
  op.src = dnnl_layout(regie::sdk::dims_of(operands[op.src_operand]), formats.operands[op.src_operand]);
  op.dst = dnnl_layout(regie::sdk::dims_of(results[0]), formats.results[0]);
  op.src.data_type = src_type;
  op.dst.data_type = dst_type;
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
