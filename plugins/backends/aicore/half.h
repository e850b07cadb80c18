// 16-bit floats on the host, as the device rounds them: to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

#include "regie/c/view.h"

namespace aicore {

inline uint16_t to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000u,
                 magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u)  // 65536 and above, infinity, NaN
    return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u));
  if (magnitude < 0x38800000u) {  // below the least normal number: in steps of 2^-24
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);
    const uint32_t shift = 126 - (magnitude >> 23), full = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t kept = full >> shift;
    const uint32_t rest = full & ((1u << shift) - 1), middle = 1u << (shift - 1);
    kept += rest > middle || (rest == middle && (kept & 1));
    return static_cast<uint16_t>(sign | kept);
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 31,
                 fraction = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float small = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -small : small;
}

// An element of a constant of f32 or f16.
inline float float_at(const regie_tensor& t, int64_t i) {
  return t.elem == REGIE_F16 ? from_half(static_cast<const uint16_t*>(t.data)[i])
                             : static_cast<const float*>(t.data)[i];
}

}  // namespace aicore
