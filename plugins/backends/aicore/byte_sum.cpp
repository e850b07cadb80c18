#include "byte_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "chip.h"

namespace aicore {

namespace {

// What is left of a sum, in units of the result, in all of these: rounded, moved and held within.
uint8_t byte_of(const ByteSum& s, float value) {
  const float whole = std::nearbyint(value) + static_cast<float>(s.zero);
  return static_cast<uint8_t>(static_cast<int32_t>(
      std::clamp(whole, static_cast<float>(s.low), static_cast<float>(most_byte(s.elem)))));
}

template <class Body>
bool all_pairs(const ByteSum& s, Body&& body) {
  size_t at = 0;
  for (int32_t inner = least_byte(s.elem); inner <= most_byte(s.elem); ++inner)
    for (int32_t residual = least_byte(s.residual_elem); residual <= most_byte(s.residual_elem); ++residual)
      if (!body(at++, static_cast<float>(inner - s.inner_zero),
                static_cast<float>(residual - s.residual_zero)))
        return false;
  return true;
}

float stepped(float value, int steps) {
  for (; steps > 0; --steps) value = std::nextafter(value, INFINITY);
  for (; steps < 0; ++steps) value = std::nextafter(value, 0.0F);
  return value;
}

}  // namespace

std::tuple<float, float, float> scales_of(const ByteSum& s) {
  std::vector<uint8_t> exact(65536);
  all_pairs(s, [&](size_t at, float inner, float residual) {
    // Each operator rounds its result.
    const float a = inner * s.inner_scale, b = residual * s.residual_scale;
    const float sum = a + b;
    exact[at] = byte_of(s, sum / s.scale);
    return true;
  });
  const float inner_scale = s.inner_scale / s.scale, residual_scale = s.residual_scale / s.scale;
  if (std::isfinite(inner_scale) && std::isfinite(residual_scale))
    for (int i : {0, 1, -1, 2, -2})
      for (int j : {0, 1, -1, 2, -2}) {
        const float by_inner = stepped(inner_scale, i), by_residual = stepped(residual_scale, j);
        const bool same = all_pairs(s, [&](size_t at, float inner, float residual) {
          const float a = inner * by_inner, b = residual * by_residual;
          return byte_of(s, a + b) == exact[at];
        });
        if (same) return {by_inner, by_residual, 0.0F};
      }
  return {s.inner_scale, s.residual_scale, s.scale};
}

}  // namespace aicore
