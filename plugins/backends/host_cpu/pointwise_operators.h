// What an element-wise loop does with one element, as the compiler turns it into vectors; a part of
// pointwise_level.h, and as local to its source.
#pragma once

#include "pointwise_loops.h"

namespace {

using namespace host_cpu;

struct Plain {
  explicit Plain(const LoopCall&) {}
};
// Integers wrap around.
template <class S>
struct UnsignedOf {
  using type = S;
};
template <>
struct UnsignedOf<int32_t> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<int64_t> {
  using type = uint64_t;
};
template <class S>
using Wrapping = typename UnsignedOf<S>::type;

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }
inline float floor_of(float x) { return __builtin_floorf(x); }
inline double floor_of(double x) { return __builtin_floor(x); }
inline float ceil_of(float x) { return __builtin_ceilf(x); }
inline double ceil_of(double x) { return __builtin_ceil(x); }
inline float even(float x) { return __builtin_rintf(x); }
inline double even(double x) { return __builtin_rint(x); }
inline float magnitude(float x) { return __builtin_fabsf(x); }
inline double magnitude(double x) { return __builtin_fabs(x); }
inline int32_t magnitude(int32_t x) {
  return x < 0 ? static_cast<int32_t>(0u - static_cast<uint32_t>(x)) : x;
}
inline int64_t magnitude(int64_t x) {
  return x < 0 ? static_cast<int64_t>(0ull - static_cast<uint64_t>(x)) : x;
}
inline float negative(float x) { return -x; }
inline double negative(double x) { return -x; }
inline int32_t negative(int32_t x) { return static_cast<int32_t>(0u - static_cast<uint32_t>(x)); }
inline int64_t negative(int64_t x) { return static_cast<int64_t>(0ull - static_cast<uint64_t>(x)); }

#define UNARY(Name, expression)          \
  struct Name : Plain {                  \
    using Plain::Plain;                  \
    template <class S>                   \
    S operator()(S x) const {            \
      return static_cast<S>(expression); \
    }                                    \
  };
#define BINARY(Name, expression)              \
  struct Name : Plain {                       \
    using Plain::Plain;                       \
    template <class S>                        \
    S operator()(S x, S y) const {            \
      using W [[maybe_unused]] = Wrapping<S>; \
      return static_cast<S>(expression);      \
    }                                         \
  };
#define COMPARISON(Name, expression)     \
  struct Name : Plain {                  \
    using Plain::Plain;                  \
    template <class S>                   \
    uint8_t operator()(S x, S y) const { \
      return (expression) ? 1 : 0;       \
    }                                    \
  };
BINARY(Add, static_cast<W>(x) + static_cast<W>(y))
BINARY(Sub, static_cast<W>(x) - static_cast<W>(y))
BINARY(Mul, static_cast<W>(x) * static_cast<W>(y))
BINARY(Div, x / y)
BINARY(Min, y < x || y != y ? y : x)
BINARY(Max, x < y || y != y ? y : x)
COMPARISON(Equal, x == y)
COMPARISON(Less, x < y)
COMPARISON(Greater, x > y)
COMPARISON(LessOrEqual, x <= y)
COMPARISON(GreaterOrEqual, x >= y)
COMPARISON(BoolEqual, (x != 0) == (y != 0))
BINARY(PRelu, x < S(0) ? x * y : x)
COMPARISON(And, x != 0 && y != 0)
COMPARISON(Or, x != 0 || y != 0)
COMPARISON(Xor, (x != 0) != (y != 0))
UNARY(Not, x == 0 ? 1 : 0)
UNARY(Relu, x < S(0) ? S(0) : x)
UNARY(Reciprocal, S(1) / x)
UNARY(Square, x* x)
UNARY(Cube, x* x* x)
// pow(x, 0.5): of -0 it is 0, of minus infinity infinity.
UNARY(SquareRootOf, x == -S(__builtin_inf()) ? S(__builtin_inf()) : root(x + S(0)))

UNARY(Sqrt, root(x))
UNARY(Floor, floor_of(x))
UNARY(Ceil, ceil_of(x))
UNARY(Round, even(x))
UNARY(Sign, x > S(0) ? S(1) : x < S(0) ? static_cast<S>(-1) : x)  // NaN stays
UNARY(Softsign, x / (S(1) + magnitude(x)))
struct IsNaN : Plain {
  using Plain::Plain;
  template <class S>
  uint8_t operator()(S x) const {
    return x != x ? 1 : 0;
  }
};
UNARY(Abs, magnitude(x))
UNARY(Neg, negative(x))

struct WithNumbers {
  explicit WithNumbers(const LoopCall& c) : p(c.p), q(c.q) {}
  double p, q;
};
struct LeakyRelu : WithNumbers {
  using WithNumbers::WithNumbers;
  template <class S>
  S operator()(S x) const {
    return x < S(0) ? S(p) * x : x;
  }
};
template <class S>
S within_one(S x) {
  return x < S(0) ? S(0) : x > S(1) ? S(1) : x;
}
struct HardSigmoid : WithNumbers {
  using WithNumbers::WithNumbers;
  template <class S>
  S operator()(S x) const {
    return within_one(S(p) * x + S(q));
  }
};
struct HardSwish : Plain {
  using Plain::Plain;
  template <class S>
  S operator()(S x) const {
    return x * within_one(S(1.0 / 6.0) * x + S(0.5));
  }
};

// Floats are cut towards zero and held within the range, NaN becomes 0; integers wrap around.
template <class X, class Y>
struct Cast : Plain {
  using Plain::Plain;
  Y operator()(X x) const { return static_cast<Y>(x); }
};
template <class X, class Y, int kBits>
struct CutTo : Plain {
  using Plain::Plain;
  Y operator()(X x) const {
    constexpr X limit = kBits == 32 ? X(2147483648.0) : X(9223372036854775808.0);
    constexpr Y most = static_cast<Y>(~Wrapping<Y>(0) >> 1), least = -most - 1;
    if (x != x) return 0;
    return x >= limit ? most : x <= -limit ? least : static_cast<Y>(x);
  }
};
template <class X>
struct CastToBool : Plain {
  using Plain::Plain;
  uint8_t operator()(X x) const { return x != 0 ? 1 : 0; }
};
template <class Y>
struct CastFromBool : Plain {
  using Plain::Plain;
  Y operator()(uint8_t x) const { return x != 0 ? Y(1) : Y(0); }
};

// ---- 16-bit floats ----

inline float as_float(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t as_bits(float x) { return __builtin_bit_cast(uint32_t, x); }

struct WidenF16 : Plain {
  using Plain::Plain;
  float operator()(uint16_t h) const {
    const uint32_t magnitude_bits = (h & 0x7fffu) << 13, sign = (h & 0x8000u) << 16;
    const uint32_t scaled = as_bits(as_float(magnitude_bits) * 0x1p112f);  // subnormals come out right
    const uint32_t special = magnitude_bits | 0x7f800000u;
    return as_float((magnitude_bits >= 0x0f800000u ? special : scaled) | sign);
  }
};
struct NarrowF16 : Plain {
  using Plain::Plain;
  uint16_t operator()(float x) const {
    const uint32_t sign = (as_bits(x) >> 16) & 0x8000u, f = as_bits(x) & 0x7fffffffu;
    const uint32_t special = f > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t subnormal = as_bits(as_float(f) + 0.5f) - 0x3f000000u;  // rounded by the addition
    const uint32_t normal = (f + 0xc8000fffu + ((f >> 13) & 1u)) >> 13;
    return static_cast<uint16_t>(sign | (f >= 0x47800000u ? special : f < 0x38800000u ? subnormal : normal));
  }
};
struct WidenBf16 : Plain {
  using Plain::Plain;
  float operator()(uint16_t h) const { return as_float(static_cast<uint32_t>(h) << 16); }
};
struct NarrowBf16 : Plain {
  using Plain::Plain;
  uint16_t operator()(float x) const {
    const uint32_t u = as_bits(x);
    const uint32_t nan = (u >> 16) | 0x40u, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};
template <class Narrow, class Widen>
struct RoundBy : Plain {
  explicit RoundBy(const LoopCall& c) : Plain(c), narrow(c), widen(c) {}
  float operator()(float x) const { return widen(narrow(x)); }
  Narrow narrow;
  Widen widen;
};

}  // namespace
