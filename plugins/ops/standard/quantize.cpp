// QuantizeLinear and DequantizeLinear (2 to 32 bits, 8-bit floats; a scale a tensor, an axis or a block),
// DynamicQuantizeLinear, MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op.h"
#include "small_types.h"
#include "walk.h"
#include "window.h"

namespace regie::ops {
namespace {

using Quantized = Types<uint8_t, int8_t, uint16_t, int16_t>;
using Stored = Join<Quantized, Types<int32_t>>;
using Bytes = Types<uint8_t, int8_t>;

// How the scale of each element is found: strides of the scale by axis, and how many elements of the blocked
// axis share one.
struct Scaling {
  std::vector<int64_t> shape;
  Dims strides{};
  size_t axis = 0;
  int64_t block = 1;

  template <class F>  // f(element, scale)
  void each(F&& f) const {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    Dims index{};
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0;
      for (size_t a = 0; a < shape.size(); ++a) at += (a == axis ? index[a] / block : index[a]) * strides[a];
      f(i, at);
      for (size_t a = shape.size(); a-- > 0;) {
        if (++index[a] < shape[a]) break;
        index[a] = 0;
      }
    }
  }
};

Scaling scaling_of(const Prepare& p, Index x, Index scale) {
  Scaling s;
  s.shape.assign(x.begin(), x.end());
  check_rank(p.op, x.size());
  int64_t count = 1;
  for (int64_t d : scale) count *= d;
  if (scale.size() <= 1 && count == 1) return s;
  s.axis = p.axis_attribute(1);
  if (scale.size() == 1) {
    if (scale[0] != x[s.axis]) p.bad("needs one scale for each of " + std::to_string(x[s.axis]) + " slices");
    s.strides[s.axis] = 1;
    return s;
  }
  s.block = p.attrs.integer("block_size", 0);
  if (s.block < 1 || scale.size() != x.size())
    p.bad("scales " + print_shape(scale) + " do not fit " + print_shape(x));
  for (size_t a = 0; a < x.size(); ++a)
    if (scale[a] != (a == s.axis ? (x[a] + s.block - 1) / s.block : x[a]))
      p.bad("scales " + print_shape(scale) + " do not fit " + print_shape(x));
  s.strides = dense_strides(scale);
  return s;
}

double scale_of(const regie_tensor& t, int64_t at);

// To and from types that have no C++ type.
KernelPtr prepare_quantize_small(Prepare& p, const Scaling& s, const SmallType& type) {
  const bool zero = p.has(2);
  SmallCast how;
  how.saturate = p.attrs.integer("saturate", 1) != 0;
  const double least = type.is_signed ? -type.greatest - 1 : 0;  // of integers
  return p.dispatch(Join<Floats, Types<int32_t>>(), p.in(0).elem, [&]<class X>() {
    return make_kernel([=, &type](const Call& call) {
      s.each([&](int64_t i, int64_t at) {
        const float q = static_cast<float>(Compute<X>(call.in<X>(0)[i])) /
                        static_cast<float>(scale_of(call.operand(1), at));
        double y = static_cast<double>(q);
        if (!type.is_float()) y = std::nearbyint(y);
        if (zero) y += decode(type, read_bits(type, call.in<void>(2), at));
        if (!type.is_float()) y = std::isnan(y) ? 0 : std::clamp(y, least, type.greatest);
        write_bits(type, call.out<void>(0), i, encode(type, y, how));
      });
    });
  });
}

KernelPtr prepare_dequantize_small(Prepare& p, const Scaling& s, const SmallType& type) {
  const bool zero = p.has(2);
  return p.dispatch(Floats(), p.out(0).elem, [&]<class Y>() {
    return make_kernel([=, &type](const Call& call) {
      s.each([&](int64_t i, int64_t at) {
        using A = Compute<Y>;
        const double x = decode(type, read_bits(type, call.in<void>(0), i)) -
                         (zero ? decode(type, read_bits(type, call.in<void>(2), at)) : 0);
        call.out<Y>(0)[i] =
            Y(static_cast<A>(static_cast<A>(x) * static_cast<A>(scale_of(call.operand(1), at))));
      });
    });
  });
}

template <class T>
T rounded(double x) {  // halves to the even one
  return saturated<T>(std::nearbyint(x));
}

void check_scales(const Infer& infer) {
  auto x = infer.shape(0), s = infer.shape(1);
  if (s.size() == 1 && infer.surely_differ(s[0], 1)) {
    const auto axis = infer.axis_attribute(1);
    if (!infer.agree(s[0], x[axis])) infer.bad("needs one scale for each slice of the axis");
  }
}

void infer_quantize(const Infer& infer) {
  check_scales(infer);
  regie_elem to = REGIE_U8;
  if (infer.has(2)) to = infer.elem(2);
  if (const int64_t given = infer.attrs.integer("output_dtype", 0); given != 0)
    to = static_cast<regie_elem>(given);
  infer.result(0, to, infer.shape(0));
}

KernelPtr prepare_quantize(Prepare& p) {
  p.expect_result(0, p.shape(0));
  const Scaling s = scaling_of(p, p.shape(0), p.shape(1));
  const bool zero = p.has(2);
  if (zero && p.in(2).elem != p.out(0).elem) p.bad("the zero point must have the result's type");
  if (const SmallType* type = small_type(p.out(0).elem)) return prepare_quantize_small(p, s, *type);
  return p.dispatch(Join<Floats, Types<int32_t>>(), p.in(0).elem, [&]<class X>() {
    return p.dispatch(Floats(), p.in(1).elem, [&]<class S>() {
      return p.dispatch(Quantized(), p.out(0).elem, [&]<class T>() {
        return make_kernel([=](const Call& call) {
          s.each([&](int64_t i, int64_t at) {
            // In single precision, as the quotient decides on which side of a half it lies.
            const float q = static_cast<float>(Compute<X>(call.in<X>(0)[i])) /
                            static_cast<float>(Compute<S>(call.in<S>(1)[at]));
            call.out<T>(0)[i] = rounded<T>(std::nearbyint(static_cast<double>(q)) +
                                           (zero ? static_cast<double>(call.in<T>(2)[at]) : 0));
          });
        });
      });
    });
  });
}

void infer_dequantize(const Infer& infer) {
  check_scales(infer);
  const int64_t given = infer.attrs.integer("output_dtype", 0);
  infer.result(0, given != 0 ? static_cast<regie_elem>(given) : infer.elem(1), infer.shape(0));
}

KernelPtr prepare_dequantize(Prepare& p) {
  p.expect_result(0, p.shape(0));
  const Scaling s = scaling_of(p, p.shape(0), p.shape(1));
  const bool zero = p.has(2);
  if (zero && p.in(2).elem != p.in(0).elem) p.bad("the zero point must have the input's type");
  if (const SmallType* type = small_type(p.in(0).elem)) return prepare_dequantize_small(p, s, *type);
  return p.dispatch(Stored(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(Floats(), p.in(1).elem, [&]<class S>() {
      return p.dispatch(Floats(), p.out(0).elem, [&]<class Y>() {
        return make_kernel([=](const Call& call) {
          s.each([&](int64_t i, int64_t at) {
            const int64_t q =
                static_cast<int64_t>(call.in<T>(0)[i]) - (zero ? static_cast<int64_t>(call.in<T>(2)[at]) : 0);
            call.out<Y>(0)[i] = Y(static_cast<Compute<Y>>(
                static_cast<Compute<Y>>(q) * static_cast<Compute<Y>>(Compute<S>(call.in<S>(1)[at]))));
          });
        });
      });
    });
  });
}

// ---- DynamicQuantizeLinear ----

void infer_dynamic(const Infer& infer) {
  infer.result(0, REGIE_U8, infer.shape(0));
  infer.result(1, REGIE_F32, {});
  infer.result(2, REGIE_U8, {});
}

KernelPtr prepare_dynamic(Prepare& p) {
  p.expect_result(0, p.shape(0));
  if (p.in(0).elem != REGIE_F32) p.no_type(p.in(0).elem);
  for (uint32_t i = 0; i < 3; ++i) p.out(i);
  return make_kernel([count = sdk::count_of(p.in(0))](const Call& call) {
    const auto* x = call.in<float>(0);
    float low = 0, high = 0;  // the range always has 0 in it
    for (int64_t i = 0; i < count; ++i) low = std::min(low, x[i]), high = std::max(high, x[i]);
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const auto zero = rounded<uint8_t>(static_cast<double>(-low / scale));
    *call.out<float>(1) = scale;
    *call.out<uint8_t>(2) = zero;
    for (int64_t i = 0; i < count; ++i)
      call.out<uint8_t>(0)[i] = rounded<uint8_t>(std::nearbyint(static_cast<double>(x[i] / scale)) + zero);
  });
}

// ---- Products ----

// Zero points: one, or one a row (of the left) or column (of the right).
int64_t zero_point(const regie_tensor& t, int64_t at) {
  if (sdk::count_of(t) == 1) at = 0;
  return t.elem == REGIE_U8 ? static_cast<const uint8_t*>(t.data)[at]
                            : static_cast<const int8_t*>(t.data)[at];
}
double scale_of(const regie_tensor& t, int64_t at) {
  double value = 0;
  if (sdk::count_of(t) == 1) at = 0;
  if (const SmallType* type = small_type(t.elem)) return decode(*type, read_bits(*type, t.data, at));
  dispatch(Floats(), t.elem,
           [&]<class S>() { value = static_cast<double>(Compute<S>(static_cast<const S*>(t.data)[at])); });
  return value;
}

// Where an operator has its operands.
struct Places {
  uint32_t a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
constexpr uint32_t none = 99;
inline constexpr Places kInteger{0, none, 2, 1, none, 3, none, none, none};
inline constexpr Places kLinear{0, 1, 2, 3, 4, 5, 6, 7, 8};

// The product's result: i32, or scaled and cut to the type of the result's zero point.
void write_result(const Call& call, const Places& at, int64_t i, int64_t sum, int64_t channel,
                  regie_elem elem) {
  if (at.y_scale == none) {
    call.out<int32_t>(0)[i] = static_cast<int32_t>(sum);
    return;
  }
  const double factor = static_cast<double>(static_cast<float>(scale_of(call.operand(at.a_scale), 0)) *
                                            static_cast<float>(scale_of(call.operand(at.b_scale), channel)) /
                                            static_cast<float>(scale_of(call.operand(at.y_scale), 0)));
  const double value = std::nearbyint(static_cast<double>(sum) * factor) +
                       static_cast<double>(zero_point(call.operand(at.y_zero), 0));
  if (elem == REGIE_U8) {
    call.out<uint8_t>(0)[i] = rounded<uint8_t>(value);
  } else {
    call.out<int8_t>(0)[i] = rounded<int8_t>(value);
  }
}

template <const Places& at>
void infer_integer_matmul(const Infer& infer) {
  auto a = infer.shape(at.a), b = infer.shape(at.b);
  if (a.size() < 2 || b.size() < 2) infer.unsupported("operands of a rank below 2");
  if (!infer.agree(a.back(), b[b.size() - 2])) infer.bad("the inner dimensions differ");
  Shape y = infer.broadcast(a.first(a.size() - 2), b.first(b.size() - 2));
  y.push_back(a[a.size() - 2]);
  y.push_back(b.back());
  infer.result(0, at.y_zero == none ? regie_elem{REGIE_I32} : infer.elem(at.y_zero), y);
}

template <const Places& at>
KernelPtr prepare_integer_matmul(Prepare& p) {
  Index a = p.shape(at.a), b = p.shape(at.b);
  if (a.size() < 2 || b.size() < 2) p.unsupported("operands of a rank below 2");
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  if (b[b.size() - 2] != k) p.bad("the inner dimensions differ");
  Index y = p.out_shape(0), batch = y.first(y.size() - 2);
  Walk<3> walk(batch, {broadcast_strides(p.op, a.first(a.size() - 2), batch),
                       broadcast_strides(p.op, b.first(b.size() - 2), batch), dense_strides(batch)});
  const bool a_zero = p.has(at.a_zero), b_zero = p.has(at.b_zero);
  const regie_elem elem = p.out(0).elem;
  return p.dispatch(Bytes(), p.in(at.a).elem, [&]<class A>() {
    return p.dispatch(Bytes(), p.in(at.b).elem, [&]<class B>() {
      return make_kernel([=](const Call& call) {
        walk.rows([&](const auto& start, int64_t count, const auto& step) {
          for (int64_t g = 0; g < count; ++g) {
            const A* left = call.in<A>(at.a) + (start[0] + g * step[0]) * m * k;
            const B* right = call.in<B>(at.b) + (start[1] + g * step[1]) * k * n;
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j) {
                const int64_t za = a_zero ? zero_point(call.operand(at.a_zero), i) : 0,
                              zb = b_zero ? zero_point(call.operand(at.b_zero), j) : 0;
                int64_t sum = 0;
                for (int64_t t = 0; t < k; ++t) sum += (left[i * k + t] - za) * (right[t * n + j] - zb);
                write_result(call, at, ((start[2] + g * step[2]) * m + i) * n + j, sum, j, elem);
              }
          }
        });
      });
    });
  });
}

template <const Places& at>
void infer_integer_conv(const Infer& infer) {
  auto x = infer.shape(at.a), w = infer.shape(at.b);
  if (x.size() < 3 || w.size() != x.size()) infer.bad("input and weight must have one rank of at least 3");
  Window window(infer.op, infer.attrs, x.size() - 2);
  if (!infer.agree(x[1], infer.dims.mul(w[1], infer.attrs.integer("group", 1))))
    infer.bad("the channels do not fit");
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < window.rank(); ++i) y.push_back(window.result_dim(infer, i, x[2 + i], w[2 + i]));
  infer.result(0, at.y_zero == none ? regie_elem{REGIE_I32} : infer.elem(at.y_zero), y);
}

template <const Places& at>
KernelPtr prepare_integer_conv(Prepare& p) {
  Index x = p.shape(at.a), w = p.shape(at.b);
  if (x.size() < 3 || w.size() != x.size()) p.bad("input and weight must have one rank of at least 3");
  Window window(p.op, p.attrs, x.size() - 2);
  window.kernel.assign(w.begin() + 2, w.end());
  p.expect_result(0, window.resolved_result(x[0], w[0], x.subspan(2)));
  const int64_t group = p.attrs.integer("group", 1), filters = w[0], channels = w[1];
  if (group < 1 || x[1] != channels * group || filters % group != 0) p.bad("the channels do not fit");
  Taps taps(window, p.out_shape(0).subspan(2), x.subspan(2));
  p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(int64_t);
  const bool x_zero = p.has(at.a_zero), w_zero = p.has(at.b_zero), bias = at.bias != none && p.has(at.bias);
  const regie_elem elem = p.out(0).elem;
  return p.dispatch(Bytes(), p.in(at.a).elem, [&]<class X>() {
    return p.dispatch(Bytes(), p.in(at.b).elem, [&]<class W>() {
      return make_kernel([=, batch = x[0]](const Call& call) {
        auto* sum = call.scratch<int64_t>();
        for (int64_t plane = 0; plane < batch * filters; ++plane) {
          const int64_t f = plane % filters, n = plane / filters, first = f / (filters / group) * channels;
          const int64_t zx = x_zero ? zero_point(call.operand(at.a_zero), 0) : 0,
                        zw = w_zero ? zero_point(call.operand(at.b_zero), f) : 0;
          std::fill_n(sum, taps.dense_size(), bias ? static_cast<int64_t>(call.in<int32_t>(at.bias)[f]) : 0);
          for (int64_t c = 0; c < channels; ++c) {
            const X* from = call.in<X>(at.a) + (n * channels * group + first + c) * taps.strided_size();
            for (int64_t tap = 0; tap < taps.count(); ++tap) {
              const int64_t factor = call.in<W>(at.b)[(f * channels + c) * taps.count() + tap] - zw;
              taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
                for (int64_t i = 0; i < count; ++i) sum[out + i] += factor * (from[in + i * step] - zx);
              });
            }
          }
          for (int64_t i = 0; i < taps.dense_size(); ++i)
            write_result(call, at, plane * taps.dense_size() + i, sum[i], f, elem);
        }
      });
    });
  });
}

constexpr Op table[] = {
    {"QuantizeLinear", 0, infer_quantize, prepare_quantize},
    {"DequantizeLinear", 0, infer_dequantize, prepare_dequantize},
    {"DynamicQuantizeLinear", 0, infer_dynamic, prepare_dynamic},
    {"MatMulInteger", 0, infer_integer_matmul<kInteger>, prepare_integer_matmul<kInteger>},
    {"ConvInteger", 0, infer_integer_conv<kInteger>, prepare_integer_conv<kInteger>},
    {"QLinearMatMul", 0, infer_integer_matmul<kLinear>, prepare_integer_matmul<kLinear>},
    {"QLinearConv", 0, infer_integer_conv<kLinear>, prepare_integer_conv<kLinear>},
};

}  // namespace

std::span<const Op> quantize_ops() { return table; }

}  // namespace regie::ops
