// Products of bytes: convolutions and matrix products of quantised numbers. oneDNN sums them exactly in 32
// bits, multiplies the sum and the bias by the scales, applies post-ops and rounds halves to the even number.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "dnnl_handles.h"
#include "operation_parts.h"
#include "regie/graph_view.hpp"

namespace host_cpu {
namespace {

// Where an operator has its operands.
struct Places {
  uint32_t x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero;
};
constexpr uint32_t kNowhere = REGIE_NONE;
constexpr Places kInteger{0, kNowhere, 2, 1, kNowhere, 3, kNowhere, kNowhere, kNowhere};
constexpr Places kLinear{0, 1, 2, 3, 4, 5, 8, 6, 7};
constexpr Places kFused{0, 1, 2, 3, 4, 5, 6, 7, 8};

constexpr char kSignedOnly[] = "oneDNN takes signed weights only";
constexpr char kZeroOnly[] = "oneDNN convolves with weights whose zero point is 0 only";

std::vector<float> floats(const Request& r, uint32_t i, std::string_view what) {
  const regie_tensor& t = need(r, i);
  if (t.elem != REGIE_F32 && t.elem != REGIE_I32)
    refuse(std::string(what) + " is of another type than float32");
  if (!t.data) refuse(std::string(what) + " is not constant");
  std::vector<float> values(static_cast<size_t>(regie::sdk::count_of(t)));
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = t.elem == REGIE_F32 ? static_cast<const float*>(t.data)[k]
                                    : static_cast<float>(static_cast<const int32_t*>(t.data)[k]);
  return values;
}

int32_t byte_at(const regie_tensor& t, size_t i) {
  return t.elem == REGIE_U8 ? static_cast<const uint8_t*>(t.data)[i] : static_cast<const int8_t*>(t.data)[i];
}

// The zero point of a tensor as a whole; 0 where it is absent.
int32_t zero_of(const Request& r, uint32_t i, std::string_view what) {
  const regie_tensor* t = r.operand(i);
  if (!t) return 0;
  if (t->elem != REGIE_U8 && t->elem != REGIE_I8) refuse(std::string(what) + " is no byte");
  if (!t->data) refuse(std::string(what) + " is not constant");
  const auto count = static_cast<size_t>(regie::sdk::count_of(*t));
  if (count == 0) refuse(std::string(what) + " has no element");
  for (size_t k = 1; k < count; ++k)
    if (byte_at(*t, k) != byte_at(*t, 0)) refuse(std::string(what) + " is not the same for all channels");
  return byte_at(*t, 0);
}

void need_byte(const regie_tensor& t, std::string_view what) {
  if (t.elem != REGIE_U8 && t.elem != REGIE_I8) refuse(std::string(what) + " is not of bytes");
}

// The activation in units of the result's scale, and the rounding. The scales of the sum are in the result's
// units already where the return value is true, else in the real ones.
bool requantise(Operation& op, float y_scale) {
  const std::vector<PostOp> real = std::exchange(op.post, {});
  bool scaled = true;
  if (real.size() == 1 && real[0].alg == dnnl_eltwise_relu) {
    op.post.push_back(real[0]);
  } else if (real.size() == 1 && real[0].alg == dnnl_eltwise_clip) {
    append_eltwise(op.post, dnnl_eltwise_clip, real[0].alpha / y_scale, real[0].beta / y_scale);
  } else if (real.size() == 2 && real[0].alg == dnnl_eltwise_linear && real[1].alg == dnnl_eltwise_clip) {
    append_eltwise(op.post, dnnl_eltwise_linear, real[0].alpha / y_scale, real[0].beta / y_scale);
    append_eltwise(op.post, dnnl_eltwise_clip, real[1].alpha / y_scale, real[1].beta / y_scale);
    scaled = false;
  } else if (!real.empty()) {
    op.post = real;
    append_eltwise(op.post, dnnl_eltwise_linear, 1 / y_scale, 0);
    scaled = false;
  }
  // oneDNN would add the zero point before it rounds, which loses digits, and turns halves the other way if
  // it is odd.
  if (op.dst_zero != 0) append_eltwise(op.post, dnnl_eltwise_round, 0, 0);
  return scaled;
}

void set_bias(Operation& op, const regie_tensor* bias, std::vector<float> values, int64_t channels,
              const std::vector<float>& units) {
  if (regie::sdk::count_of(*bias) != channels) refuse("the bias must have one element a result channel");
  if (bias->elem == REGIE_F32)
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] /= units[units.size() == 1 ? 0 : i];
      // As tools write it, a bias is a whole number of units. It is again, but for the rounding of two
      // operations.
      const float whole = std::nearbyint(values[i]);
      if (std::fabs(values[i] - whole) <= 4 * std::numeric_limits<float>::epsilon() * std::fabs(whole))
        values[i] = whole;
    }
  std::vector<int64_t> dims{channels};
  if (op.kind == Operation::kMatMul) dims.insert(dims.begin(), static_cast<size_t>(op.dst.ndims) - 1, 1);
  op.bias = plain(dims);
  op.bias_values = std::move(values);
}

// A scale that is known at run time only: the sum in units of the weights' scale, then a product with it.
void scale_at_run_time(Operation& op, const Request& r, const Places& at, int64_t channels) {
  if (op.kind != Operation::kMatMul || r.results[0].elem != REGIE_F32)
    refuse("the input's scale is not constant");
  if (regie::sdk::count_of(need(r, at.x_scale)) != 1) refuse("the input has more than one scale");
  const std::vector<PostOp> activation = std::exchange(op.post, {});
  const std::vector<int64_t> ones(static_cast<size_t>(op.dst.ndims), 1);
  op.post.push_back({PostOp::kBinaryMul, dnnl_alg_kind_undef, 0, 0, at.x_scale, plain(ones)});
  if (const regie_tensor* bias = r.operand(at.bias)) {
    if (bias->elem != REGIE_F32 || regie::sdk::count_of(*bias) != channels)
      refuse("the bias must have one float32 element a result channel");
    std::vector<int64_t> row = ones;
    row.back() = channels;
    op.post.push_back({PostOp::kBinaryAdd, dnnl_alg_kind_undef, 0, 0, at.bias, plain(row)});
  }
  op.post.insert(op.post.end(), activation.begin(), activation.end());
}

Operation quantised(const Request& r, const Places& at, Operation (*geometry)(const Request&)) {
  if (std::string why = byte_product_problem(); !why.empty()) refuse(why);
  const regie_tensor &x = need(r, at.x), &w = need(r, at.w), &y = r.results[0];
  need_byte(x, "the input");
  if (w.elem != REGIE_I8) refuse(kSignedOnly);
  const std::array<regie_tensor, 2> factors{x, w};
  Operation op = geometry({r.op, r.attrs, factors, r.results});
  op.src.data_type = dnnl_type(x.elem);
  op.weights.data_type = dnnl_type(w.elem);
  op.dst.data_type = dnnl_type(y.elem);
  op.weights_operand = at.w;
  op.src_operand = at.x;
  op.flops /= 4;  // four products in the place of one
  const regie_tensor* x_zero = r.operand(at.x_zero);
  if (x_zero && !x_zero->data) {
    need_byte(*x_zero, "the input's zero point");
    if (regie::sdk::count_of(*x_zero) != 1) refuse("the input has more than one zero point");
    op.src_zero_operand = at.x_zero;
  } else {
    op.src_zero = zero_of(r, at.x_zero, "the input's zero point");
  }
  op.weights_zero = zero_of(r, at.w_zero, "the weights' zero point");
  if (op.weights_zero != 0 && op.kind != Operation::kMatMul) refuse(kZeroOnly);
  if (at.x_scale == kNowhere) {
    if (y.elem != REGIE_I32) refuse("the result must be int32");
    return op;
  }
  const int64_t channels = op.convolves() ? op.dst.dims[1] : op.dst.dims[op.dst.ndims - 1];
  op.scales = floats(r, at.w_scale, "the weights' scale");
  if (op.scales.size() != 1 && static_cast<int64_t>(op.scales.size()) != channels)
    refuse("the weights need one scale, or one a result channel");
  if (!need(r, at.x_scale).data) {
    scale_at_run_time(op, r, at, channels);
    return op;
  }
  const std::vector<float> x_scale = floats(r, at.x_scale, "the input's scale");
  if (x_scale.size() != 1) refuse("the input has more than one scale");
  for (float& s : op.scales) s *= x_scale[0];
  if (const regie_tensor* bias = r.operand(at.bias))
    set_bias(op, bias, floats(r, at.bias, "the bias"), channels, op.scales);
  if (!r.operand(at.y_scale)) {
    if (y.elem != REGIE_F32) refuse("the result must be float32");
    return op;
  }
  need_byte(y, "the result");
  const std::vector<float> y_scale = floats(r, at.y_scale, "the result's scale");
  if (y_scale.size() != 1) refuse("the result has more than one scale");
  op.dst_zero = zero_of(r, at.y_zero, "the result's zero point");
  if (requantise(op, y_scale[0]))
    for (float& s : op.scales) s /= y_scale[0];
  if (!std::all_of(op.scales.begin(), op.scales.end(), [](float s) { return std::isfinite(s); }))
    refuse("a scale is no finite number");
  return op;
}

}  // namespace

dnnl_data_type_t dnnl_type(regie_elem elem) {
  switch (elem) {
    case REGIE_F32:
      return dnnl_f32;
    case REGIE_I32:
      return dnnl_s32;
    case REGIE_U8:
      return dnnl_u8;
    case REGIE_I8:
      return dnnl_s8;
    default:
      refuse("oneDNN is not used for this element type");
  }
}

// Without VNNI oneDNN adds two products in 16 bits, which saturate.
std::string byte_product_problem() {
  return uses_isa(dnnl_cpu_isa_avx512_core_vnni)
             ? ""
             : "the processor has no exact products of bytes (AVX-512 VNNI)";
}

std::string quantisation_problem(const regie_graph& graph, const regie_node& n) {
  if (std::string why = byte_product_problem(); !why.empty()) return why;
  const regie::sdk::GraphView g(&graph);
  const bool convolves = regie::sdk::sv(n.op).find("Conv") != std::string_view::npos;
  if (const regie_value* w = g.operand(n, kFused.w); w && w->type.elem == REGIE_U8) return kSignedOnly;
  if (const regie_value* s = g.operand(n, kFused.x_scale); convolves && s && !regie::sdk::is_constant(*s))
    return "the input's scale is known at run time only";
  const regie_value* zero = g.operand(n, kFused.w_zero);
  if (!zero || !zero->data || !zero->data->data) return {};
  const auto* bytes = static_cast<const int8_t*>(zero->data->data);
  const int64_t count = regie::sdk::count_of(*zero->data);
  for (int64_t i = 0; i < count; ++i) {
    if (bytes[i] != bytes[0]) return "the weights have a zero point a channel";
    if (convolves && bytes[i] != 0) return kZeroOnly;
  }
  return {};
}

Operation quantised_convolution(const Request& r) { return quantised(r, kFused, convolution); }
Operation quantised_matmul(const Request& r) { return quantised(r, kFused, matmul); }
Operation linear_convolution(const Request& r) { return quantised(r, kLinear, convolution); }
Operation linear_matmul(const Request& r) { return quantised(r, kLinear, matmul); }
Operation integer_convolution(const Request& r) { return quantised(r, kInteger, convolution); }
Operation integer_matmul(const Request& r) { return quantised(r, kInteger, matmul); }

}  // namespace host_cpu
