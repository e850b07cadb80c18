// Element-wise loops over the functions of libmvec (exp and its like, at most 4 ulp, usually 1 to 2); a part
// of pointwise_level.h, and as local to its source.
#pragma once

#include "pointwise_loops.h"

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
// The scalar type of a vector.
template <class V>
using Scalar = decltype(V{}[0] + 0);
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
    const V below = v_expm1(x) * static_cast<Scalar<V>>(c.p);
    return x < 0 ? below : x;
  }
};

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

}  // namespace
