// Element types as C++ types, and how to get from one to the other at run time.
//
// Half, BFloat16 and Bool are storage: 16-bit floats compute as float, Bool keeps any non-zero byte true.
// `dispatch` calls a generic lambda with the C++ type of an element type, if it is in a list.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "regie/c/view.h"
#include "regie/half.hpp"

namespace regie::ops {

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(sdk::half_bits(value)) {}
  operator float() const { return sdk::half_value(bits); }  // NOLINT: implicit, as generic code has floats
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(sdk::bfloat_bits(value)) {}
  operator float() const { return sdk::bfloat_value(bits); }  // NOLINT
};

struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  explicit Bool(bool value) : byte(value) {}
  operator bool() const { return byte != 0; }  // NOLINT
};

template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <>
struct ComputeType<Bool> {
  using type = bool;
};
// What one computes with: float for the 16-bit floats, T itself otherwise.
template <class T>
using Compute = typename ComputeType<T>::type;
// What long sums are kept in: double for floats, T for integers (which wrap as T does).
template <class T>
using Sum = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, Compute<T>>;
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<Compute<T>>;

// The greatest finite value of T, and the least.
template <class T>
inline constexpr Compute<T> greatest = std::numeric_limits<Compute<T>>::max();
template <>
inline constexpr float greatest<Half> = 65504.0f;
template <>
inline constexpr float greatest<BFloat16> = std::bit_cast<float>(0x7f7f0000u);
template <class T>
inline constexpr Compute<T> least = is_float<T> ? static_cast<Compute<T>>(-greatest<T>)
                                                : std::numeric_limits<Compute<T>>::lowest();

template <class T>
inline constexpr regie_elem elem_of = REGIE_ELEM_UNKNOWN;
template <>
inline constexpr regie_elem elem_of<float> = REGIE_F32;
template <>
inline constexpr regie_elem elem_of<double> = REGIE_F64;
template <>
inline constexpr regie_elem elem_of<Half> = REGIE_F16;
template <>
inline constexpr regie_elem elem_of<BFloat16> = REGIE_BF16;
template <>
inline constexpr regie_elem elem_of<Bool> = REGIE_BOOL;
template <>
inline constexpr regie_elem elem_of<regie_str> = REGIE_STRING;
template <>
inline constexpr regie_elem elem_of<int8_t> = REGIE_I8;
template <>
inline constexpr regie_elem elem_of<int16_t> = REGIE_I16;
template <>
inline constexpr regie_elem elem_of<int32_t> = REGIE_I32;
template <>
inline constexpr regie_elem elem_of<int64_t> = REGIE_I64;
template <>
inline constexpr regie_elem elem_of<uint8_t> = REGIE_U8;
template <>
inline constexpr regie_elem elem_of<uint16_t> = REGIE_U16;
template <>
inline constexpr regie_elem elem_of<uint32_t> = REGIE_U32;
template <>
inline constexpr regie_elem elem_of<uint64_t> = REGIE_U64;

template <class... T>
struct Types {};
template <class A, class B>
struct JoinTypes;
template <class... A, class... B>
struct JoinTypes<Types<A...>, Types<B...>> {
  using type = Types<A..., B...>;
};
template <class A, class B>
using Join = typename JoinTypes<A, B>::type;

using Floats = Types<float, double, Half, BFloat16>;
using WideInts = Types<int32_t, int64_t, uint32_t, uint64_t>;
using Ints = Join<WideInts, Types<int8_t, uint8_t, int16_t, uint16_t>>;
using SignedInts = Types<int32_t, int64_t, int8_t, int16_t>;
using Numbers = Join<Floats, Ints>;
using SignedNumbers = Join<Floats, SignedInts>;
using All = Join<Numbers, Types<Bool>>;
using IndexTypes = Types<int64_t, int32_t>;

// A float cut towards zero and held within an integer type; NaN becomes 0.
template <class T>
T saturated(double x) {
  using Limits = std::numeric_limits<T>;
  if (x != x) return T(0);
  if (x <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  return x >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(x);
}

// f.template operator()<T>() for the T of `elem`; false if `elem` is not in the list.
template <class... T, class F>
bool dispatch(Types<T...>, regie_elem elem, F&& f) {
  return ((elem == elem_of<T> && (f.template operator()<T>(), true)) || ...);
}

std::string_view elem_name(regie_elem elem);  // "f32"; "?" if unknown
// 0 where elements are not whole, plain bytes (strings, packed types, unknown).
uint32_t elem_size(regie_elem elem);

}  // namespace regie::ops
