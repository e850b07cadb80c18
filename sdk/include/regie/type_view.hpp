// Header-only reading of types: when two are equal, and how many bytes a tensor of one takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "regie/c/view.h"
#include "regie/plugin.hpp"

namespace regie::sdk {

// Known, and equal to the last dimension: symbolic ones by their handles.
inline bool same_dims(const regie_type& a, const regie_type& b) {
  if (a.rank < 0 || a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i] || a.dims[i] == REGIE_DIM_UNKNOWN) return false;
  return true;
}
inline bool same_type(const regie_type& a, const regie_type& b) {
  return a.elem != REGIE_ELEM_UNKNOWN && a.elem == b.elem && a.container == b.container &&
         a.format == b.format && same_dims(a, b);
}

// Bits of an element; 0 for strings and unknown types.
constexpr uint32_t elem_bits(regie_elem e) {
  switch (e) {
    case REGIE_U2:
    case REGIE_I2:
      return 2;
    case REGIE_U4:
    case REGIE_I4:
    case REGIE_F4E2M1:
      return 4;
    case REGIE_U8:
    case REGIE_I8:
    case REGIE_BOOL:
      return 8;
    case REGIE_F8E4M3FN:
    case REGIE_F8E4M3FNUZ:
    case REGIE_F8E5M2:
    case REGIE_F8E5M2FNUZ:
    case REGIE_F8E8M0:
      return 8;
    case REGIE_U16:
    case REGIE_I16:
    case REGIE_F16:
    case REGIE_BF16:
      return 16;
    case REGIE_F32:
    case REGIE_I32:
    case REGIE_U32:
      return 32;
    case REGIE_F64:
    case REGIE_I64:
    case REGIE_U64:
    case REGIE_C64:
      return 64;
    case REGIE_C128:
      return 128;
    default:
      return 0;
  }
}

// Bytes of a dense tensor of this type; nothing if a dimension is symbolic or the element type has no size.
// `dim_value` maps a symbolic dimension to a number. Saturates.
template <class F>
std::optional<uint64_t> bytes_of(const regie_type& t, F&& dim_value) {
  const uint32_t bits = elem_bits(t.elem);
  if (t.container != REGIE_TENSOR || t.rank < 0 || bits == 0) return std::nullopt;
  uint64_t count = 1;
  bool saturated = false;
  for (regie_dim d : dims_of(t)) {
    const int64_t n = d >= 0 ? d : dim_value(d);
    if (n < 0) return std::nullopt;
    if (n == 0) return 0;
    saturated |= __builtin_mul_overflow(count, static_cast<uint64_t>(n), &count);
  }
  if (saturated || count > UINT64_MAX / 128) return UINT64_MAX;
  return (count * bits + 7) / 8;
}
inline std::optional<uint64_t> bytes_of(const regie_type& t) {
  return bytes_of(t, [](regie_dim) { return int64_t{-1}; });
}
// The same with symbols at their least values, each dimension one at least; 0 where nothing is known.
inline uint64_t least_bytes(const regie_type& t, const Dims& dims) {
  return bytes_of(t, [&](regie_dim d) { return std::max<int64_t>(1, dims.range(d).first); }).value_or(0);
}
// Do tensors of these types always have as many bytes, whatever the symbols are?
inline bool same_bytes(const regie_type& a, const regie_type& b, const Dims& dims) {
  if (elem_bits(a.elem) == 0 || elem_bits(a.elem) != elem_bits(b.elem) || a.rank < 0 || b.rank < 0) return false;
  return same_dims(a, b) || dims.product(dims_of(a)) == dims.product(dims_of(b));
}
// Is a dimension (-1) known only when the model runs?
inline bool is_open(const regie_tensor& t) {
  for (int64_t d : dims_of(t))
    if (d < 0) return true;
  return false;
}
// The bytes of a tensor, as its dimensions say; nothing for strings.
inline std::optional<uint64_t> bytes_of(const regie_tensor& t) {
  regie_type type{};
  type.elem = t.elem;
  type.container = REGIE_TENSOR;
  type.rank = t.rank;
  type.dims = t.dims;
  return bytes_of(type);
}

}  // namespace regie::sdk
