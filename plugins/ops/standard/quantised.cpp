// regie.QConv and regie.QMatMul, products of quantised numbers as DequantizeLinear, the product, an
// activation and QuantizeLinear are one by one; regie.QConvAdd, with a sum behind it; regie.Quantize and
// regie.Dequantize, whose scale broadcasts as numpy has it.
#include <algorithm>
#include <cmath>

#include "functors.h"
#include "integer_products.h"

namespace regie::ops {
namespace {

// Operands of both products.
enum : uint32_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kBias, kYScale, kYZero };
// And of a sum, where those of the result are those of what is added to the residual.
enum : uint32_t { kResidual = kYZero + 1, kResidualScale, kResidualZero, kSumScale, kSumZero };
constexpr Factors kFactors{kX, kXZero, kW, kWZero};

regie_elem result_elem(const Infer& infer) {
  if (!infer.has(kYScale)) return REGIE_F32;
  return infer.has(kYZero) ? infer.elem(kYZero) : regie_elem{REGIE_U8};
}

// One scale, or one a channel.
void check_scale(const Infer& infer, uint32_t i, regie_dim channels) {
  regie_dim count = infer.dims.product(infer.shape(i));
  if (infer.rank(i) > 1 || (infer.surely_differ(count, 1) && infer.surely_differ(count, channels)))
    infer.bad("operand " + std::to_string(i) + " of shape " + infer.print(infer.shape(i)) +
              " must have one element, or one a channel");
}

void check_parameters(const Infer& infer, regie_dim channels) {
  Activation(infer.op, infer.attrs);
  for (uint32_t i : {kXScale, kXZero, kYScale, kYZero})
    if (infer.has(i)) check_scale(infer, i, 1);
  for (uint32_t i : {kWScale, kWZero})
    if (infer.has(i)) check_scale(infer, i, channels);
  if (infer.has(kBias) && (infer.rank(kBias) != 1 || !infer.agree(infer.shape(kBias)[0], channels)))
    infer.bad("the bias has the shape " + infer.print(infer.shape(kBias)) + "; it needs [" +
              infer.dims.print(channels) + "]");
}

void check_parameters(const Prepare& p, int64_t channels) {
  for (uint32_t i : {kXScale, kWScale, kBias, kYScale})
    if (p.has(i) && p.in(i).elem != REGIE_F32) p.no_type(p.in(i).elem);
  for (uint32_t i : {kXZero, kWZero, kYZero})
    if (p.has(i) && p.in(i).elem != REGIE_U8 && p.in(i).elem != REGIE_I8) p.no_type(p.in(i).elem);
  for (uint32_t i : {kXScale, kXZero, kYScale, kYZero})
    if (p.has(i) && sdk::count_of(p.in(i)) != 1) p.bad("needs one scale of input and result");
  for (uint32_t i : {kWScale, kWZero})
    if (p.has(i) && sdk::count_of(p.in(i)) != 1 && sdk::count_of(p.in(i)) != channels)
      p.bad("needs one scale of the weights, or one a channel");
  if (p.has(kBias) && sdk::count_of(p.in(kBias)) != channels) p.bad("needs a bias a channel");
}

// What a sum of products stands for.
float real_of(const Call& call, int64_t sum, int64_t channel, bool bias) {
  const regie_tensor& scales = call.operand(kWScale);
  const float* w_scale = call.in<float>(kWScale);
  const double unit = static_cast<double>(*call.in<float>(kXScale)) *
                      static_cast<double>(w_scale[sdk::count_of(scales) == 1 ? 0 : channel]);
  const auto value = static_cast<float>(static_cast<double>(sum) * unit);
  return bias ? value + call.in<float>(kBias)[channel] : value;
}

// From the sum of products to the result.
struct Finish {
  Finish(const Prepare& p, int64_t channels)
      : bias(p.has(kBias)),
        quantises(p.has(kYScale)),
        zero(p.has(kYZero)),
        elem(p.out(0).elem),
        activation(p.op, p.attrs) {
    check_parameters(p, channels);
    const regie_elem wanted = !quantises ? regie_elem{REGIE_F32}
                              : zero     ? p.in(kYZero).elem
                                         : regie_elem{REGIE_U8};
    if (elem != wanted) p.no_type(elem);
  }
  void operator()(const Call& call, int64_t i, int64_t sum, int64_t channel) const {
    float value = real_of(call, sum, channel, bias);
    activation.apply(&value, 1);
    if (!quantises) {
      call.out<float>(0)[i] = value;
      return;
    }
    const double q = std::nearbyint(static_cast<double>(value / *call.in<float>(kYScale))) +
                     (zero ? static_cast<double>(zero_point(call.operand(kYZero), 0)) : 0.0);
    write_byte(call, i, q, elem);
  }
  bool bias, quantises, zero;
  regie_elem elem;
  Activation activation;
};

// The same as a number of bytes, given back, and added to what the residual stands for.
struct FinishSum {
  FinishSum(const Prepare& p, int64_t channels)
      : bias(p.has(kBias)),
        zero(p.has(kYZero)),
        residual_zero(p.has(kResidualZero)),
        sum_zero(p.has(kSumZero)),
        inner(zero ? p.in(kYZero).elem : regie_elem{REGIE_U8}),
        elem(p.out(0).elem),
        activation(p.op, p.attrs) {
    check_parameters(p, channels);
    for (uint32_t i : {kResidualScale, kSumScale})
      if (p.in(i).elem != REGIE_F32) p.no_type(p.in(i).elem);
    for (uint32_t i : {kResidualScale, kResidualZero, kSumScale, kSumZero})
      if (p.has(i) && sdk::count_of(p.in(i)) != 1) p.bad("needs one scale of residual and result");
    const auto added = sdk::dims_of(p.in(kResidual)), shape = sdk::dims_of(p.out(0));
    if (!std::equal(added.begin(), added.end(), shape.begin(), shape.end()))
      p.bad("needs a residual of the result's shape");
    if (elem != (sum_zero ? p.in(kSumZero).elem : regie_elem{REGIE_U8})) p.no_type(elem);
  }
  void operator()(const Call& call, int64_t i, int64_t sum, int64_t channel) const {
    const float unit = *call.in<float>(kYScale);
    const double at_zero = zero ? static_cast<double>(zero_point(call.operand(kYZero), 0)) : 0.0;
    const double least = inner == REGIE_I8 ? -128 : 0;
    const double whole =
        std::clamp(std::nearbyint(static_cast<double>(real_of(call, sum, channel, bias) / unit)) + at_zero,
                   least, least + 255);
    const float added = static_cast<float>(zero_point(call.operand(kResidual), i) -
                                           (residual_zero ? zero_point(call.operand(kResidualZero), 0) : 0)) *
                        *call.in<float>(kResidualScale);
    float value = static_cast<float>(whole - at_zero) * unit + added;
    activation.apply(&value, 1);
    const double q = std::nearbyint(static_cast<double>(value / *call.in<float>(kSumScale))) +
                     (sum_zero ? static_cast<double>(zero_point(call.operand(kSumZero), 0)) : 0.0);
    write_byte(call, i, q, elem);
  }
  bool bias, zero, residual_zero, sum_zero;
  regie_elem inner, elem;
  Activation activation;
};

// ---- regie.QMatMul, regie.QConv, regie.QConvAdd ----

void infer_matmul(const Infer& infer) {
  const Shape y = integer_matmul_shape(infer, kFactors, infer.attrs.integer("transB", 0) != 0);
  check_parameters(infer, y.back());
  infer.result(0, result_elem(infer), y);
}

KernelPtr prepare_matmul(Prepare& p) {
  return integer_matmul<Finish>(p, kFactors, p.attrs.integer("transB", 0) != 0);
}

void infer_conv(const Infer& infer) {
  const Shape y = integer_conv_shape(infer, kFactors);
  check_parameters(infer, y[1]);
  infer.result(0, result_elem(infer), y);
}

KernelPtr prepare_conv(Prepare& p) { return integer_conv<Finish>(p, kFactors); }

void infer_conv_add(const Infer& infer) {
  const Shape y = integer_conv_shape(infer, kFactors);
  check_parameters(infer, y[1]);
  for (uint32_t i : {kResidualScale, kResidualZero, kSumScale, kSumZero})
    if (infer.has(i)) check_scale(infer, i, 1);
  const auto added = infer.shape(kResidual);
  bool fits = added.size() == y.size();
  for (size_t d = 0; fits && d < y.size(); ++d) fits = infer.agree(added[d], y[d]);
  if (!fits) infer.bad("the residual has the shape " + infer.print(added) + "; it needs " + infer.print(y));
  infer.result(0, infer.has(kSumZero) ? infer.elem(kSumZero) : regie_elem{REGIE_U8}, y);
}

KernelPtr prepare_conv_add(Prepare& p) { return integer_conv<FinishSum>(p, kFactors); }

// ---- regie.Quantize, regie.Dequantize ----

void infer_elementwise(const Infer& infer, regie_elem elem) {
  for (uint32_t i : {1u, 2u}) check_addend(infer, i, infer.shape(0));
  infer.result(0, elem, infer.shape(0));
}
void infer_quantize(const Infer& infer) { infer_elementwise(infer, infer.elem(2)); }
void infer_dequantize(const Infer& infer) { infer_elementwise(infer, REGIE_F32); }

template <class X, class Z, class Y, class F>
KernelPtr with_scale(Prepare& p, F f) {
  Index shape = p.shape(0);
  p.expect_result(0, shape);
  check_rank(p.op, shape.size());
  if (p.in(1).elem != REGIE_F32) p.no_type(p.in(1).elem);
  if (p.out(0).elem != elem_of<Y>) p.no_type(p.out(0).elem);
  Walk<4> walk(shape, {dense_strides(shape), broadcast_strides(p.op, p.shape(1), shape),
                       broadcast_strides(p.op, p.shape(2), shape), dense_strides(shape)});
  return make_kernel([=](const Call& call) {
    walk.rows([&](const auto& at, int64_t count, const auto& step) {
      for (int64_t i = 0; i < count; ++i)
        call.out<Y>(0)[at[3] + i * step[3]] =
            f(call.in<X>(0)[at[0] + i * step[0]], call.in<float>(1)[at[1] + i * step[1]],
              call.in<Z>(2)[at[2] + i * step[2]]);
    });
  });
}

KernelPtr prepare_quantize(Prepare& p) {
  if (p.in(0).elem != REGIE_F32) p.no_type(p.in(0).elem);
  return p.dispatch(Bytes(), p.in(2).elem, [&]<class T>() {
    return with_scale<float, T, T>(p, [](float x, float scale, T zero) {
      return saturated<T>(std::nearbyint(static_cast<double>(x / scale)) + static_cast<double>(zero));
    });
  });
}

KernelPtr prepare_dequantize(Prepare& p) {
  if (p.in(2).elem != p.in(0).elem) p.bad("the zero point must have the input's type");
  return p.dispatch(Bytes(), p.in(0).elem, [&]<class T>() {
    return with_scale<T, T, float>(p, [](T x, float scale, T zero) {
      return static_cast<float>(static_cast<int32_t>(x) - static_cast<int32_t>(zero)) * scale;
    });
  });
}

constexpr Op table[] = {
    {"regie.Dequantize", REGIE_OP_ELEMENTWISE, infer_dequantize, prepare_dequantize},
    {"regie.QConv", 0, infer_conv, prepare_conv},
    {"regie.QConvAdd", 0, infer_conv_add, prepare_conv_add},
    {"regie.QMatMul", 0, infer_matmul, prepare_matmul},
    {"regie.Quantize", REGIE_OP_ELEMENTWISE, infer_quantize, prepare_quantize},
};

}  // namespace

std::span<const Op> quantised_ops() { return table; }

}  // namespace regie::ops
