// QuantizeLinear and DequantizeLinear (2 to 32 bits, 8-bit floats; a scale a tensor, an axis or a block),
// DynamicQuantizeLinear, MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.
#include <algorithm>
#include <cmath>

#include "integer_products.h"
#include "small_types.h"

namespace regie::ops {
namespace {

using Quantized = Types<uint8_t, int8_t, uint16_t, int16_t>;
using Stored = Join<Quantized, Types<int32_t>>;

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

// A zero point lies where the scale does.
Scaling scaling_of(const Prepare& p, Index x, Index scale) {
  Scaling s;
  if (p.has(2) && sdk::count_of(p.in(2)) != sdk::count_of(p.in(1)))
    p.bad("the zero point must have the shape of the scale, " + print_shape(scale) + ", not " +
          print_shape(p.shape(2)));
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

double scale_of(const regie_tensor& t, int64_t at) {
  double value = 0;
  if (sdk::count_of(t) == 1) at = 0;
  if (const SmallType* type = small_type(t.elem)) return decode(*type, read_bits(*type, t.data, at));
  dispatch(Floats(), t.elem,
           [&]<class S>() { value = static_cast<double>(Compute<S>(static_cast<const S*>(t.data)[at])); });
  return value;
}

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
  if (!infer.has(2)) return;
  auto z = infer.shape(2);
  auto one = [&](std::span<const regie_dim> shape) {
    return std::none_of(shape.begin(), shape.end(), [&](regie_dim d) { return infer.surely_differ(d, 1); });
  };
  if (s.size() <= 1 && z.size() <= 1 && one(s) && one(z)) return;
  bool alike = s.size() == z.size();
  for (size_t i = 0; alike && i < s.size(); ++i) alike = infer.agree(s[i], z[i]);
  if (!alike)
    infer.bad("the zero point must have the shape of the scale, " + infer.print(s) + ", not " +
              infer.print(z));
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

// Their result is the sum, of i32.
struct Summed {
  Summed(const Prepare&, int64_t) {}
  void operator()(const Call& call, int64_t i, int64_t sum, int64_t) const {
    call.out<int32_t>(0)[i] = static_cast<int32_t>(sum);
  }
};

// The sum scaled, and cut to the type of the result's zero point.
enum : uint32_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero, kBias };
struct Scaled {
  Scaled(const Prepare& p, int64_t channels) : bias(p.has(kBias)), elem(p.out(0).elem) {
    for (uint32_t i : {kAScale, kYScale, kYZero})
      if (sdk::count_of(p.in(i)) != 1)
        p.unsupported("several scales of the left factor or of the result are not covered");
    if (const int64_t scales = sdk::count_of(p.in(kBScale)); scales != 1 && scales != channels)
      p.bad("needs one scale of the right factor, or one a channel");
    if (bias && sdk::count_of(p.in(kBias)) != channels) p.bad("needs a bias a channel");
  }
  void operator()(const Call& call, int64_t i, int64_t sum, int64_t channel) const {
    if (bias) sum += call.in<int32_t>(kBias)[channel];
    const double factor = static_cast<double>(static_cast<float>(scale_of(call.operand(kAScale), 0)) *
                                              static_cast<float>(scale_of(call.operand(kBScale), channel)) /
                                              static_cast<float>(scale_of(call.operand(kYScale), 0)));
    write_byte(call, i,
               std::nearbyint(static_cast<double>(sum) * factor) +
                   static_cast<double>(zero_point(call.operand(kYZero), 0)),
               elem);
  }
  bool bias;
  regie_elem elem;
};

template <class Finish>
inline constexpr Factors factors{};
template <>
inline constexpr Factors factors<Summed>{0, 2, 1, 3};
template <>
inline constexpr Factors factors<Scaled>{kA, kAZero, kB, kBZero};

template <class Finish>
regie_elem product_elem(const Infer& infer) {
  return std::is_same_v<Finish, Summed> ? regie_elem{REGIE_I32} : infer.elem(kYZero);
}

template <class Finish>
void infer_matmul(const Infer& infer) {
  const Shape y = integer_matmul_shape(infer, factors<Finish>, false);
  infer.result(0, product_elem<Finish>(infer), y);
}

template <class Finish>
KernelPtr prepare_matmul(Prepare& p) {
  return integer_matmul<Finish>(p, factors<Finish>, false);
}

template <class Finish>
void infer_conv(const Infer& infer) {
  const Shape y = integer_conv_shape(infer, factors<Finish>);
  infer.result(0, product_elem<Finish>(infer), y);
}

template <class Finish>
KernelPtr prepare_conv(Prepare& p) {
  return integer_conv<Finish>(p, factors<Finish>);
}

constexpr Op table[] = {
    {"QuantizeLinear", 0, infer_quantize, prepare_quantize},
    {"DequantizeLinear", 0, infer_dequantize, prepare_dequantize},
    {"DynamicQuantizeLinear", 0, infer_dynamic, prepare_dynamic},
    {"MatMulInteger", 0, infer_matmul<Summed>, prepare_matmul<Summed>},
    {"ConvInteger", 0, infer_conv<Summed>, prepare_conv<Summed>},
    {"QLinearMatMul", 0, infer_matmul<Scaled>, prepare_matmul<Scaled>},
    {"QLinearConv", 0, infer_conv<Scaled>, prepare_conv<Scaled>},
};

}  // namespace

std::span<const Op> quantize_ops() { return table; }

}  // namespace regie::ops
