// The loops of one level of instructions. Included by one source a level, which says VECTOR_BYTES, the letter
// of glibc's vector functions for that width (libmvec: exp and its like, at most 4 ulp, usually 1 to 2), and
// FIND, the function to define. Everything else is local to the source, so that no code for a large processor
// can end up in another's place; for the same reason nothing of the standard library is called.
#include "pointwise_loops.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define PASTE_NAME(letter, count, kind, name) _ZGV##letter##N##count##kind##name
#define EXPAND_NAME(letter, count, kind, name) PASTE_NAME(letter, count, kind, name)
#define F32_NAME(name) EXPAND_NAME(LIBMVEC_LETTER, F32_LANES, v_, name##f)
#define F64_NAME(name) EXPAND_NAME(LIBMVEC_LETTER, F64_LANES, v_, name)
#define F32_POW EXPAND_NAME(LIBMVEC_LETTER, F32_LANES, vv_, powf)
#define F64_POW EXPAND_NAME(LIBMVEC_LETTER, F64_LANES, vv_, pow)

namespace {

using namespace host_cpu;

template <class S>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(VECTOR_BYTES)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class S>
using Vector = typename VectorOf<S>::type;
using F32s = Vector<float>;
using F64s = Vector<double>;

#define DECLARE(name)                                        \
  extern "C" F32s F32_NAME(name)(F32s);                      \
  extern "C" F64s F64_NAME(name)(F64s);                      \
  inline F32s v_##name(F32s x) { return F32_NAME(name)(x); } \
  inline F64s v_##name(F64s x) { return F64_NAME(name)(x); }
DECLARE(exp)
DECLARE(expm1)
DECLARE(log)
DECLARE(tanh)
DECLARE(erf)
DECLARE(log1p)
DECLARE(sin)
DECLARE(cos)
extern "C" F32s F32_POW(F32s, F32s);
extern "C" F64s F64_POW(F64s, F64s);
inline F32s v_pow(F32s x, F32s y) { return F32_POW(x, y); }
inline F64s v_pow(F64s x, F64s y) { return F64_POW(x, y); }

// ---- loops that the compiler turns into vectors ----

template <class F, class X, class Y>
void map(const LoopCall& c) {
  const X* x = static_cast<const X*>(c.operands[0]);
  Y* y = static_cast<Y*>(c.result);
  const F f{c};
  INDEPENDENT
  for (int64_t i = 0; i < c.count; ++i) y[i] = f(x[i]);
}
template <class F, class X, class Y>
void map2(const LoopCall& c) {
  const X *a = static_cast<const X*>(c.operands[0]), *b = static_cast<const X*>(c.operands[1]);
  Y* y = static_cast<Y*>(c.result);
  const F f{c};
  INDEPENDENT
  for (int64_t i = 0; i < c.count; ++i) y[i] = f(a[i], b[i]);
}
template <class X>
void clip(const LoopCall& c) {
  const X *x = static_cast<const X*>(c.operands[0]), *low = static_cast<const X*>(c.operands[1]),
          *high = static_cast<const X*>(c.operands[2]);
  X* y = static_cast<X*>(c.result);
  INDEPENDENT
  for (int64_t i = 0; i < c.count; ++i) {
    const X least = x[i] < low[i] ? low[i] : x[i];
    y[i] = least > high[i] ? high[i] : least;
  }
}
template <class X>
void where(const LoopCall& c) {
  const uint8_t* condition = static_cast<const uint8_t*>(c.operands[0]);
  const X *a = static_cast<const X*>(c.operands[1]), *b = static_cast<const X*>(c.operands[2]);
  X* y = static_cast<X*>(c.result);
  INDEPENDENT
  for (int64_t i = 0; i < c.count; ++i) {
    const X yes = a[i], no = b[i];
    y[i] = condition[i] != 0 ? yes : no;
  }
}

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
UNARY(Sign, (x > S(0)) - (x < S(0)))
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

// ---- loops over the functions of libmvec ----

template <class S>
Vector<S> load(const S* from) {
  Vector<S> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
template <class S>
void store(S* to, Vector<S> v) {
  __builtin_memcpy(to, &v, sizeof v);
}
template <class F, class S>
void vector_map(const LoopCall& c) {
  constexpr int64_t kLanes = VECTOR_BYTES / sizeof(S);
  const S* x = static_cast<const S*>(c.operands[0]);
  S* y = static_cast<S*>(c.result);
  int64_t i = 0;
  for (; i + kLanes <= c.count; i += kLanes) store(y + i, F::f(load(x + i), c));
  if (i == c.count) return;
  Vector<S> rest{};
  __builtin_memcpy(&rest, x + i, static_cast<uint64_t>(c.count - i) * sizeof(S));
  rest = F::f(rest, c);
  __builtin_memcpy(y + i, &rest, static_cast<uint64_t>(c.count - i) * sizeof(S));
}
template <class S>
void power(const LoopCall& c) {
  constexpr int64_t kLanes = VECTOR_BYTES / sizeof(S);
  const S *x = static_cast<const S*>(c.operands[0]), *e = static_cast<const S*>(c.operands[1]);
  S* y = static_cast<S*>(c.result);
  int64_t i = 0;
  for (; i + kLanes <= c.count; i += kLanes) store(y + i, v_pow(load(x + i), load(e + i)));
  if (i == c.count) return;
  const uint64_t bytes = static_cast<uint64_t>(c.count - i) * sizeof(S);
  Vector<S> base{}, exponent{};
  __builtin_memcpy(&base, x + i, bytes);
  __builtin_memcpy(&exponent, e + i, bytes);
  base = v_pow(base, exponent);
  __builtin_memcpy(y + i, &base, bytes);
}
#define VECTOR_FUNCTION(Name, expression) \
  struct Name {                           \
    template <class V>                    \
    static V f(V x, const LoopCall& c) {  \
      (void)c;                            \
      return expression;                  \
    }                                     \
  };
VECTOR_FUNCTION(Exp, v_exp(x))
VECTOR_FUNCTION(Log, v_log(x))
VECTOR_FUNCTION(Tanh, v_tanh(x))
VECTOR_FUNCTION(Erf, v_erf(x))
// Through exp(-|x|), which neither overflows nor loses the small results.
struct Sigmoid {
  template <class V>
  static V f(V x, const LoopCall&) {
    const V e = v_exp(x < 0 ? x : -x), above = 1 / (1 + e);
    return x < 0 ? e * above : above;
  }
};
struct Elu {
  template <class V>
  static V f(V x, const LoopCall& c) {
    const V below = v_expm1(x) * static_cast<decltype(x[0] + 0)>(c.p);
    return x < 0 ? below : x;
  }
};

// The scalar type of a vector.
template <class V>
using Scalar = decltype(V{}[0] + 0);
template <class V>
V softplus(V x) {
  const V zero{}, above = x > 0 ? x : zero;
  return above + v_log1p(v_exp(x < 0 ? x : -x));
}
VECTOR_FUNCTION(Gelu, static_cast<Scalar<V>>(0.5) * x *
                          (1 + v_erf(x * static_cast<Scalar<V>>(0.70710678118654752440))))
VECTOR_FUNCTION(GeluTanh, static_cast<Scalar<V>>(0.5) * x *
                              (1 + v_tanh(static_cast<Scalar<V>>(0.79788456080286535588) *
                                          (x + static_cast<Scalar<V>>(0.044715) * x * x * x))))
VECTOR_FUNCTION(Softplus, softplus(x))
VECTOR_FUNCTION(Mish, x* v_tanh(softplus(x)))
VECTOR_FUNCTION(Sin, v_sin(x))
VECTOR_FUNCTION(Cos, v_cos(x))
struct Swish {
  template <class V>
  static V f(V x, const LoopCall& c) {
    return x / (1 + v_exp(-(x * static_cast<Scalar<V>>(c.p))));
  }
};
struct Selu {
  template <class V>
  static V f(V x, const LoopCall& c) {
    const V below = v_expm1(x) * static_cast<Scalar<V>>(c.p);
    return (x > 0 ? x : below) * static_cast<Scalar<V>>(c.q);
  }
};

// ---- by code ----

template <class F>
Loop number_map(Lane lane) {
  if (lane == Lane::kF32) return map<F, float, float>;
  if (lane == Lane::kF64) return map<F, double, double>;
  if (lane == Lane::kI32) return map<F, int32_t, int32_t>;
  return lane == Lane::kI64 ? map<F, int64_t, int64_t> : nullptr;
}
template <class F>
Loop float_map(Lane lane) {
  if (lane == Lane::kF32) return map<F, float, float>;
  return lane == Lane::kF64 ? map<F, double, double> : nullptr;
}
template <class F>
Loop function_map(Lane lane) {
  if (lane == Lane::kF32) return vector_map<F, float>;
  return lane == Lane::kF64 ? vector_map<F, double> : nullptr;
}
template <class F>
Loop number_map2(Lane lane) {
  if (lane == Lane::kF32) return map2<F, float, float>;
  if (lane == Lane::kF64) return map2<F, double, double>;
  if (lane == Lane::kI32) return map2<F, int32_t, int32_t>;
  return lane == Lane::kI64 ? map2<F, int64_t, int64_t> : nullptr;
}
template <class F>
Loop float_map2(Lane lane) {
  if (lane == Lane::kF32) return map2<F, float, float>;
  return lane == Lane::kF64 ? map2<F, double, double> : nullptr;
}
template <class F>
Loop comparison(Lane lane) {
  if (lane == Lane::kF32) return map2<F, float, uint8_t>;
  if (lane == Lane::kF64) return map2<F, double, uint8_t>;
  if (lane == Lane::kI32) return map2<F, int32_t, uint8_t>;
  return lane == Lane::kI64 ? map2<F, int64_t, uint8_t> : nullptr;
}
template <class F>
Loop logic(Lane lane) {
  return lane == Lane::kBool ? map2<F, uint8_t, uint8_t> : nullptr;
}
Loop clip_for(Lane lane) {
  if (lane == Lane::kF32) return clip<float>;
  if (lane == Lane::kF64) return clip<double>;
  if (lane == Lane::kI32) return clip<int32_t>;
  return lane == Lane::kI64 ? clip<int64_t> : nullptr;
}

template <class X>
Loop cast_from(Lane to) {
  constexpr bool is_float = X(0.5) != X(0);
  switch (to) {
    case Lane::kF32:
      return map<Cast<X, float>, X, float>;
    case Lane::kF64:
      return map<Cast<X, double>, X, double>;
    case Lane::kI32:
      if constexpr (is_float) return map<CutTo<X, int32_t, 32>, X, int32_t>;
      return map<Cast<X, int32_t>, X, int32_t>;
    case Lane::kI64:
      if constexpr (is_float) return map<CutTo<X, int64_t, 64>, X, int64_t>;
      return map<Cast<X, int64_t>, X, int64_t>;
    case Lane::kBool:
      return map<CastToBool<X>, X, uint8_t>;
    default:
      return nullptr;
  }
}
Loop cast_from_bool(Lane to) {
  switch (to) {
    case Lane::kF32:
      return map<CastFromBool<float>, uint8_t, float>;
    case Lane::kF64:
      return map<CastFromBool<double>, uint8_t, double>;
    case Lane::kI32:
      return map<CastFromBool<int32_t>, uint8_t, int32_t>;
    case Lane::kI64:
      return map<CastFromBool<int64_t>, uint8_t, int64_t>;
    case Lane::kBool:
      return map<CastToBool<uint8_t>, uint8_t, uint8_t>;
    default:
      return nullptr;
  }
}
Loop cast(Lane from, Lane to) {
  switch (from) {
    case Lane::kF32:
      return cast_from<float>(to);
    case Lane::kF64:
      return cast_from<double>(to);
    case Lane::kI32:
      return cast_from<int32_t>(to);
    case Lane::kI64:
      return cast_from<int64_t>(to);
    case Lane::kBool:
      return cast_from_bool(to);
    default:
      return nullptr;
  }
}

}  // namespace

namespace host_cpu {

Loop FIND(Code code, Lane from, Lane to) {
  switch (code) {
    case Code::kAdd:
      return number_map2<Add>(from);
    case Code::kSub:
      return number_map2<Sub>(from);
    case Code::kMul:
      return number_map2<Mul>(from);
    case Code::kDiv:
      return float_map2<Div>(from);
    case Code::kMin:
      return number_map2<Min>(from);
    case Code::kMax:
      return number_map2<Max>(from);
    case Code::kPow:
      return from == Lane::kF32 ? power<float> : from == Lane::kF64 ? power<double> : nullptr;
    case Code::kEqual:
      return from == Lane::kBool ? logic<BoolEqual>(from) : comparison<Equal>(from);
    case Code::kLess:
      return comparison<Less>(from);
    case Code::kGreater:
      return comparison<Greater>(from);
    case Code::kLessOrEqual:
      return comparison<LessOrEqual>(from);
    case Code::kGreaterOrEqual:
      return comparison<GreaterOrEqual>(from);
    case Code::kAnd:
      return logic<And>(from);
    case Code::kOr:
      return logic<Or>(from);
    case Code::kXor:
      return logic<Xor>(from);
    case Code::kNeg:
      return number_map<Neg>(from);
    case Code::kAbs:
      return number_map<Abs>(from);
    case Code::kRelu:
      return number_map<Relu>(from);
    case Code::kSqrt:
      return float_map<Sqrt>(from);
    case Code::kReciprocal:
      return float_map<Reciprocal>(from);
    case Code::kFloor:
      return float_map<Floor>(from);
    case Code::kCeil:
      return float_map<Ceil>(from);
    case Code::kRound:
      return float_map<Round>(from);
    case Code::kNot:
      return from == Lane::kBool ? map<Not, uint8_t, uint8_t> : nullptr;
    case Code::kLeakyRelu:
      return float_map<LeakyRelu>(from);
    case Code::kHardSigmoid:
      return float_map<HardSigmoid>(from);
    case Code::kHardSwish:
      return float_map<HardSwish>(from);
    case Code::kElu:
      return function_map<Elu>(from);
    case Code::kSigmoid:
      return function_map<Sigmoid>(from);
    case Code::kTanh:
      return function_map<Tanh>(from);
    case Code::kErf:
      return function_map<Erf>(from);
    case Code::kExp:
      return function_map<Exp>(from);
    case Code::kLog:
      return function_map<Log>(from);
    case Code::kSquare:
      return float_map<Square>(from);
    case Code::kCube:
      return float_map<Cube>(from);
    case Code::kSquareRootOf:
      return float_map<SquareRootOf>(from);
    case Code::kGelu:
      return function_map<Gelu>(from);
    case Code::kGeluTanh:
      return function_map<GeluTanh>(from);
    case Code::kSwish:
      return function_map<Swish>(from);
    case Code::kSoftplus:
      return function_map<Softplus>(from);
    case Code::kMish:
      return function_map<Mish>(from);
    case Code::kSelu:
      return function_map<Selu>(from);
    case Code::kSin:
      return function_map<Sin>(from);
    case Code::kCos:
      return function_map<Cos>(from);
    case Code::kSign:
      return number_map<Sign>(from);
    case Code::kSoftsign:
      return float_map<Softsign>(from);
    case Code::kIsNaN:
      if (from == Lane::kF32) return map<IsNaN, float, uint8_t>;
      return from == Lane::kF64 ? map<IsNaN, double, uint8_t> : nullptr;
    case Code::kPRelu:
      return float_map2<PRelu>(from);
    case Code::kClip:
      return clip_for(from);
    case Code::kWhere1:
      return where<uint8_t>;
    case Code::kWhere2:
      return where<uint16_t>;
    case Code::kWhere4:
      return where<uint32_t>;
    case Code::kWhere8:
      return where<uint64_t>;
    case Code::kCast:
      return cast(from, to);
    case Code::kWidenF16:
      return map<WidenF16, uint16_t, float>;
    case Code::kWidenBf16:
      return map<WidenBf16, uint16_t, float>;
    case Code::kNarrowF16:
      return map<NarrowF16, float, uint16_t>;
    case Code::kNarrowBf16:
      return map<NarrowBf16, float, uint16_t>;
    case Code::kRoundF16:
      return map<RoundBy<NarrowF16, WidenF16>, float, float>;
    case Code::kRoundBf16:
      return map<RoundBy<NarrowBf16, WidenBf16>, float, float>;
  }
  return nullptr;
}

}  // namespace host_cpu
