// regie.QConv and regie.QMatMul, products of quantised numbers as DequantizeLinear, the product, an
// activation and QuantizeLinear are one by one; regie.Quantize and regie.Dequantize, whose scale broadcasts
// as numpy has it.
#include <cmath>

#include "broadcast.h"
#include "functors.h"
#include "op.h"
#include "walk.h"
#include "window.h"

namespace regie::ops {
namespace {

using Bytes = Types<uint8_t, int8_t>;

// Operands of both products.
enum : uint32_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kBias, kYScale, kYZero };

int64_t byte_of(const regie_tensor& t, int64_t at) {
  if (sdk::count_of(t) == 1) at = 0;
  return t.elem == REGIE_U8 ? static_cast<const uint8_t*>(t.data)[at]
                            : static_cast<const int8_t*>(t.data)[at];
}

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

// From the sum of products to the result.
struct Finish {
  explicit Finish(const Prepare& p)
      : bias(p.has(kBias)),
        quantises(p.has(kYScale)),
        zero(p.has(kYZero)),
        elem(p.out(0).elem),
        activation(p.op, p.attrs) {
    const regie_elem wanted = !quantises ? regie_elem{REGIE_F32}
                              : zero     ? p.in(kYZero).elem
                                         : regie_elem{REGIE_U8};
    if (elem != wanted) p.no_type(elem);
  }
  void operator()(const Call& call, int64_t i, int64_t sum, int64_t channel) const {
    const regie_tensor& scales = call.operand(kWScale);
    const float* w_scale = call.in<float>(kWScale);
    const double unit = static_cast<double>(*call.in<float>(kXScale)) *
                        static_cast<double>(w_scale[sdk::count_of(scales) == 1 ? 0 : channel]);
    auto value = static_cast<float>(static_cast<double>(sum) * unit);
    if (bias) value += call.in<float>(kBias)[channel];
    activation.apply(&value, 1);
    if (!quantises) {
      call.out<float>(0)[i] = value;
      return;
    }
    const double q = std::nearbyint(static_cast<double>(value / *call.in<float>(kYScale))) +
                     (zero ? static_cast<double>(byte_of(call.operand(kYZero), 0)) : 0.0);
    if (elem == REGIE_U8)
      call.out<uint8_t>(0)[i] = saturated<uint8_t>(q);
    else
      call.out<int8_t>(0)[i] = saturated<int8_t>(q);
  }
  bool bias, quantises, zero;
  regie_elem elem;
  Activation activation;
};

// ---- regie.QMatMul ----

void infer_matmul(const Infer& infer) {
  auto a = infer.shape(kX), b = infer.shape(kW);
  if (a.size() < 2 || b.size() < 2) infer.unsupported("operands of a rank below 2");
  const bool turned = infer.attrs.integer("transB", 0) != 0;
  const regie_dim inner = b[b.size() - (turned ? 1 : 2)], columns = b[b.size() - (turned ? 2 : 1)];
  if (!infer.agree(a.back(), inner)) infer.bad("the inner dimensions differ");
  check_parameters(infer, columns);
  Shape y = infer.broadcast(a.first(a.size() - 2), b.first(b.size() - 2));
  y.push_back(a[a.size() - 2]);
  y.push_back(columns);
  infer.result(0, result_elem(infer), y);
}

KernelPtr prepare_matmul(Prepare& p) {
  Index a = p.shape(kX), b = p.shape(kW);
  if (a.size() < 2 || b.size() < 2) p.unsupported("operands of a rank below 2");
  const bool turned = p.attrs.integer("transB", 0) != 0;
  const int64_t m = a[a.size() - 2], k = a.back(), n = b[b.size() - (turned ? 2 : 1)];
  if (b[b.size() - (turned ? 1 : 2)] != k) p.bad("the inner dimensions differ");
  check_parameters(p, n);
  std::vector<int64_t> batch;
  widen(&batch, a.first(a.size() - 2));
  widen(&batch, b.first(b.size() - 2));
  std::vector<int64_t> shape = batch;
  shape.insert(shape.end(), {m, n});
  p.expect_result(0, shape);
  Walk<3> walk(batch, {broadcast_strides(p.op, a.first(a.size() - 2), batch),
                       broadcast_strides(p.op, b.first(b.size() - 2), batch), dense_strides(batch)});
  const bool a_zero = p.has(kXZero), b_zero = p.has(kWZero);
  const int64_t down = turned ? 1 : n, across = turned ? k : 1;
  return p.dispatch(Bytes(), p.in(kX).elem, [&]<class A>() {
    return p.dispatch(Bytes(), p.in(kW).elem, [&]<class B>() {
      return make_kernel([=, finish = Finish(p)](const Call& call) {
        const int64_t za = a_zero ? byte_of(call.operand(kXZero), 0) : 0;
        walk.rows([&](const auto& start, int64_t count, const auto& step) {
          for (int64_t g = 0; g < count; ++g) {
            const A* left = call.in<A>(kX) + (start[0] + g * step[0]) * m * k;
            const B* right = call.in<B>(kW) + (start[1] + g * step[1]) * k * n;
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                const int64_t zb = b_zero ? byte_of(call.operand(kWZero), j) : 0;
                int64_t sum = 0;
                for (int64_t t = 0; t < k; ++t)
                  sum += (left[i * k + t] - za) * (right[t * down + j * across] - zb);
                finish(call, ((start[2] + g * step[2]) * m + i) * n + j, sum, j);
              }
          }
        });
      });
    });
  });
}

// ---- regie.QConv ----

void infer_conv(const Infer& infer) {
  auto x = infer.shape(kX), w = infer.shape(kW);
  if (x.size() < 3 || w.size() != x.size()) infer.bad("input and weight must have one rank of at least 3");
  Window window(infer.op, infer.attrs, x.size() - 2);
  const int64_t group = infer.attrs.integer("group", 1);
  if (group < 1) infer.bad("attribute 'group' is " + std::to_string(group));
  if (!infer.agree(x[1], infer.dims.mul(w[1], group))) infer.bad("the channels do not fit");
  check_parameters(infer, w[0]);
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < window.rank(); ++i) y.push_back(window.result_dim(infer, i, x[2 + i], w[2 + i]));
  infer.result(0, result_elem(infer), y);
}

KernelPtr prepare_conv(Prepare& p) {
  Index x = p.shape(kX), w = p.shape(kW);
  if (x.size() < 3 || w.size() != x.size()) p.bad("input and weight must have one rank of at least 3");
  Window window(p.op, p.attrs, x.size() - 2);
  window.kernel.assign(w.begin() + 2, w.end());
  p.expect_result(0, window.resolved_result(x[0], w[0], x.subspan(2)));
  const int64_t group = p.attrs.integer("group", 1), filters = w[0], channels = w[1];
  if (group < 1 || x[1] != channels * group || filters % group != 0) p.bad("the channels do not fit");
  check_parameters(p, filters);
  Taps taps(window, p.out_shape(0).subspan(2), x.subspan(2));
  p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(int64_t);
  const bool x_zero = p.has(kXZero), w_zero = p.has(kWZero);
  return p.dispatch(Bytes(), p.in(kX).elem, [&]<class X>() {
    return p.dispatch(Bytes(), p.in(kW).elem, [&]<class W>() {
      return make_kernel([=, batch = x[0], finish = Finish(p)](const Call& call) {
        auto* sum = call.scratch<int64_t>();
        const int64_t zx = x_zero ? byte_of(call.operand(kXZero), 0) : 0;
        for (int64_t plane = 0; plane < batch * filters; ++plane) {
          const int64_t f = plane % filters, n = plane / filters, first = f / (filters / group) * channels;
          const int64_t zw = w_zero ? byte_of(call.operand(kWZero), f) : 0;
          std::fill_n(sum, taps.dense_size(), 0);
          for (int64_t c = 0; c < channels; ++c) {
            const X* from = call.in<X>(kX) + (n * channels * group + first + c) * taps.strided_size();
            for (int64_t tap = 0; tap < taps.count(); ++tap) {
              const int64_t factor = call.in<W>(kW)[(f * channels + c) * taps.count() + tap] - zw;
              taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
                for (int64_t i = 0; i < count; ++i) sum[out + i] += factor * (from[in + i * step] - zx);
              });
            }
          }
          for (int64_t i = 0; i < taps.dense_size(); ++i)
            finish(call, plane * taps.dense_size() + i, sum[i], f);
        }
      });
    });
  });
}

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
    {"regie.QMatMul", 0, infer_matmul, prepare_matmul},
    {"regie.Quantize", REGIE_OP_ELEMENTWISE, infer_quantize, prepare_quantize},
};

}  // namespace

std::span<const Op> quantised_ops() { return table; }

}  // namespace regie::ops
