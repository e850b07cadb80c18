// The loops of one level of instructions. Included by one source a level, which says VECTOR_BYTES, the letter
// of glibc's vector functions for that width (libmvec), and FIND, the function to define. Everything else is
// local to the source, so that no code for a large processor can end up in another's place; for the same
// reason nothing of the standard library is called.
#pragma once

#include "pointwise_loops.h"
#include "pointwise_operators.h"
#include "pointwise_vectors.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace {

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
// Halves to the even number, then held within the type; NaN becomes 0, as a cast has it.
template <class Y>
void quantize(const LoopCall& c) {
  const float *x = static_cast<const float*>(c.operands[0]),
              *scale = static_cast<const float*>(c.operands[1]);
  const Y* zero = static_cast<const Y*>(c.operands[2]);
  Y* y = static_cast<Y*>(c.result);
  constexpr float kLeast = Y(-1) < Y(0) ? -128.0f : 0.0f, kMost = kLeast + 255.0f;
  const int64_t count = c.count;  // bytes may be written anywhere, as far as the compiler knows
  INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    const float q = even(x[i] / scale[i]) + static_cast<float>(zero[i]);
    const float low = q < kLeast ? kLeast : q, held = low > kMost ? kMost : low;
    y[i] = static_cast<Y>(static_cast<int32_t>(held == held ? held : 0.0f));
  }
}
template <class X>
void dequantize(const LoopCall& c) {
  const X *x = static_cast<const X*>(c.operands[0]), *zero = static_cast<const X*>(c.operands[2]);
  const float* scale = static_cast<const float*>(c.operands[1]);
  float* y = static_cast<float*>(c.result);
  INDEPENDENT
  for (int64_t i = 0; i < c.count; ++i)
    y[i] = static_cast<float>(static_cast<int32_t>(x[i]) - static_cast<int32_t>(zero[i])) * scale[i];
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

// ---- by code ----

template <class Make>
Loop for_floats(Lane lane, Make make) {
  if (lane == Lane::kF32) return make(float{});
  return lane == Lane::kF64 ? make(double{}) : nullptr;
}
template <class Make>
Loop for_numbers(Lane lane, Make make) {
  if (lane == Lane::kI32) return make(int32_t{});
  return lane == Lane::kI64 ? make(int64_t{}) : for_floats(lane, make);
}
template <class F>
Loop number_map(Lane lane) {
  return for_numbers(lane, []<class X>(X) -> Loop { return map<F, X, X>; });
}
template <class F>
Loop float_map(Lane lane) {
  return for_floats(lane, []<class X>(X) -> Loop { return map<F, X, X>; });
}
template <class F>
Loop function_map(Lane lane) {
  return for_floats(lane, []<class X>(X) -> Loop { return vector_map<F, X>; });
}
template <class F>
Loop number_map2(Lane lane) {
  return for_numbers(lane, []<class X>(X) -> Loop { return map2<F, X, X>; });
}
template <class F>
Loop float_map2(Lane lane) {
  return for_floats(lane, []<class X>(X) -> Loop { return map2<F, X, X>; });
}
template <class F>
Loop comparison(Lane lane) {
  return for_numbers(lane, []<class X>(X) -> Loop { return map2<F, X, uint8_t>; });
}
template <class F>
Loop logic(Lane lane) {
  return lane == Lane::kBool ? map2<F, uint8_t, uint8_t> : nullptr;
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
    case Lane::kU8:
      return to == Lane::kF32   ? map<Cast<uint8_t, float>, uint8_t, float>
             : to == Lane::kI32 ? map<Cast<uint8_t, int32_t>, uint8_t, int32_t>
                                : nullptr;
    case Lane::kI8:
      return to == Lane::kF32   ? map<Cast<int8_t, float>, int8_t, float>
             : to == Lane::kI32 ? map<Cast<int8_t, int32_t>, int8_t, int32_t>
                                : nullptr;
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
      return for_floats(from, []<class X>(X) -> Loop { return power<X>; });
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
      return for_floats(from, []<class X>(X) -> Loop { return map<IsNaN, X, uint8_t>; });
    case Code::kPRelu:
      return float_map2<PRelu>(from);
    case Code::kClip:
      return for_numbers(from, []<class X>(X) -> Loop { return clip<X>; });
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
    case Code::kQuantize:
      return to == Lane::kU8 ? quantize<uint8_t> : to == Lane::kI8 ? quantize<int8_t> : nullptr;
    case Code::kDequantize:
      return from == Lane::kU8 ? dequantize<uint8_t> : from == Lane::kI8 ? dequantize<int8_t> : nullptr;
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
