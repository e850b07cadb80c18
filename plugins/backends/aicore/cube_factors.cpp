#include "cube_factors.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "half.h"

namespace aicore {

namespace {

bool is_half(float v) { return from_half(to_half(v)) == v; }

// Are all values, times this, halves? Those below 2^-14 have fewer digits.
bool fits(std::span<const float> values, double times) {
  constexpr double kTolerance = 0x1p-22;  // each value, and the largest, was rounded to f32 once or twice
  return std::all_of(values.begin(), values.end(), [&](float v) {
    const double x = std::abs(static_cast<double>(v)) * times;
    if (x == 0) return true;
    const double steps = std::ldexp(x, -std::max(std::ilogb(x) - 10, -24));
    return std::abs(steps - std::nearbyint(steps)) <= steps * kTolerance;
  });
}

}  // namespace

std::optional<float> common_factor(std::span<const float> values) {
  if (std::all_of(values.begin(), values.end(), is_half)) return 1.0F;
  float largest = 0;
  for (float v : values) {
    if (!std::isfinite(v)) return std::nullopt;
    largest = std::max(largest, std::abs(v));
  }
  if (largest < 0x1p-100F) return std::nullopt;
  // The largest is one of the 1024 greatest halves (so that the others lose nothing at the lower end); nearly
  // every wrong one fails at the first other value.
  for (int half = 32768; half < 65536; half += 32)
    if (fits(values, half / static_cast<double>(largest))) return largest / static_cast<float>(half);
  return std::nullopt;
}

std::vector<float> Columns::of(int64_t n) const {
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] = float_at(weights, n * column_stride + i * stride);
  return out;
}

Columns columns_of(const CubeProblem& p, const regie_tensor& w) {
  if (p.convolution) {
    const int64_t count = p.channels / p.model_groups * p.kernel_h * p.kernel_w;
    return {w, p.out_channels, count, count, 1};
  }
  return p.transposed_b ? Columns{w, p.n, p.k, p.k, 1} : Columns{w, p.n, p.k, 1, p.n};
}

bool has_factors(const CubeProblem& p, const regie_tensor& w) {
  if (w.elem != REGIE_F32) return false;
  const Columns columns = columns_of(p, w);
  bool any = false;
  constexpr int64_t kSamples = 4;
  for (int64_t i = 0; i < std::min(kSamples, columns.columns); ++i) {
    const auto factor = common_factor(columns.of(i * columns.columns / kSamples % columns.columns));
    if (!factor) return false;
    any |= *factor != 1;
  }
  return any;
}

}  // namespace aicore
