#include "byte_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "chip.h"
#include "half.h"

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

// What the operators give, of all pairs: each rounds its result.
std::vector<uint8_t> exact_bytes(const ByteSum& s) {
  std::vector<uint8_t> exact(65536);
  all_pairs(s, [&](size_t at, float inner, float residual) {
    const float a = inner * s.inner_scale, b = residual * s.residual_scale;
    const float sum = a + b;
    exact[at] = byte_of(s, sum / s.scale);
    return true;
  });
  return exact;
}

float half(double value) { return from_half(to_half(static_cast<float>(value))); }

}  // namespace

std::tuple<float, float, float> scales_of(const ByteSum& s) {
  const std::vector<uint8_t> exact = exact_bytes(s);
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

std::optional<CubeSum> cube_sum_of(const ByteSum& s) {
  const double inner = static_cast<double>(s.inner_scale) / static_cast<double>(s.scale),
               residual = static_cast<double>(s.residual_scale) / static_cast<double>(s.scale);
  const double most = std::max(std::abs(inner), std::abs(residual));
  if (!std::isfinite(most) || most < 0x1p-60 || most > 0x1p60) return std::nullopt;
  // The larger of the two lies between 1024 and 2048, so that what it loses as a half is a half without loss.
  const int shift = 10 - std::ilogb(most);
  CubeSum c;
  c.factor = std::ldexp(1.0F, -shift);
  c.inner_high = half(std::ldexp(inner, shift));
  c.residual_high = half(std::ldexp(residual, shift));
  const std::vector<uint8_t> exact = exact_bytes(s);
  constexpr double kStep = 0x1p-12;
  for (int i : {0, 1, -1, 2, -2, 3, -3})
    for (int j : {0, 1, -1, 2, -2, 3, -3}) {
      c.inner_low = half(std::ldexp(inner, shift) - static_cast<double>(c.inner_high) + i * kStep);
      c.residual_low = half(std::ldexp(residual, shift) - static_cast<double>(c.residual_high) + j * kStep);
      const bool same = all_pairs(s, [&](size_t at, float x, float y) {
        // Products of halves are exact, sums rounded, in the order in which the cube adds.
        float sum = x * c.inner_high;
        sum = sum + y * c.residual_high;
        sum = sum + x * c.inner_low;
        sum = sum + y * c.residual_low;
        return byte_of(s, sum * c.factor) == exact[at];
      });
      if (same) return c;
    }
  return std::nullopt;
}

std::string pack_cube_sum(const CubeSum& sum) {
  std::string out;
  for (float value : {sum.inner_high, sum.residual_high, sum.inner_low, sum.residual_low}) {
    std::vector<uint16_t> fractal(256, 0);
    for (size_t i = 0; i < 16; ++i) fractal[i * 17] = to_half(value);
    out.append(reinterpret_cast<const char*>(fractal.data()), 512);
  }
  return out;
}

}  // namespace aicore
