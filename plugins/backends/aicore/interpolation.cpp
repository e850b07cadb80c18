#include "interpolation.h"

#include <algorithm>
#include <cmath>

#include "lower.h"

namespace aicore {

namespace {

// Where element i comes from. In single precision, as others have it: between which two elements a position
// falls is decided by it.
float position(std::string_view mode, int64_t i, const Interpolation& a) {
  const auto o = static_cast<float>(i), in = static_cast<float>(a.in), out = static_cast<float>(a.out);
  if (mode == "asymmetric") return o / a.scale;
  if (mode == "half_pixel") return (o + 0.5f) / a.scale - 0.5f;
  if (mode == "pytorch_half_pixel") return a.out > 1 ? (o + 0.5f) / a.scale - 0.5f : 0;
  if (mode == "align_corners") return a.length == 1 ? 0 : o * (in - 1) / (a.length - 1);
  if (mode == "half_pixel_symmetric")
    return in / 2 * (1 - out / (a.scale * in)) + (o + 0.5f) / a.scale - 0.5f;
  refuse("coordinates of mode " + std::string(mode));
}

// What an element at this distance counts for.
float weight_at(float distance, bool cubic, float a) {
  const float d = std::abs(distance);
  if (!cubic) return std::max(0.0f, 1 - d);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

}  // namespace

std::vector<float> interpolation_weights(const regie::sdk::Attrs& attrs, const Interpolation& axis) {
  const std::string_view coordinates = attrs.text("coordinate_transformation_mode", "half_pixel"),
                         mode = attrs.text("mode", "nearest");
  if (mode != "linear" && mode != "cubic") refuse("interpolation of mode " + std::string(mode));
  if (axis.in * axis.out > (int64_t{1} << 24)) refuse("an axis that is too long for a matrix of weights");
  const bool cubic = mode == "cubic", antialias = attrs.integer("antialias", 0) != 0,
             inside = attrs.integer("exclude_outside", 0) != 0;
  const auto a = static_cast<float>(attrs.number("cubic_coeff_a", -0.75));
  // Against aliasing windows become wider where the map shrinks.
  const float squeeze = antialias ? std::min(axis.scale, 1.0f) : 1.0f;
  const auto reach = static_cast<int64_t>(std::ceil((cubic ? 2.0f : 1.0f) / squeeze));
  std::vector<float> all(static_cast<size_t>(axis.in * axis.out));
  for (int64_t i = 0; i < axis.out; ++i) {
    float x = position(coordinates, i, axis);
    if (!cubic && !antialias) x = std::clamp(x, 0.0f, static_cast<float>(axis.in - 1));
    const float whole = std::floor(x), rest = x - whole;
    float* row = all.data() + i * axis.in;  // several places may meet at a border
    float sum = 0;
    for (int64_t k = 1 - reach; k <= reach; ++k) {
      const int64_t place = static_cast<int64_t>(whole) + k;
      if (inside && (place < 0 || place >= axis.in)) continue;
      const float weight = weight_at((static_cast<float>(k) - rest) * squeeze, cubic, a);
      row[std::clamp<int64_t>(place, 0, axis.in - 1)] += weight;
      sum += weight;
    }
    if ((inside || antialias) && sum != 0)
      for (int64_t j = 0; j < axis.in; ++j) row[j] /= sum;
  }
  return all;
}

}  // namespace aicore
