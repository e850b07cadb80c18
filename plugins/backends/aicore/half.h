// 16-bit floats on the host, as the device rounds them: to nearest, ties to even.
#pragma once

#include <cstdint>

#include "regie/c/view.h"
#include "regie/half.hpp"

namespace aicore {

inline uint16_t to_half(float value) { return regie::sdk::half_bits(value); }
inline float from_half(uint16_t half) { return regie::sdk::half_value(half); }

// An element of a constant of f32 or f16.
inline float float_at(const regie_tensor& t, int64_t i) {
  return t.elem == REGIE_F16 ? from_half(static_cast<const uint16_t*>(t.data)[i])
                             : static_cast<const float*>(t.data)[i];
}

}  // namespace aicore
