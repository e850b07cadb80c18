#include <cstring>

#include "cube.h"
#include "half.h"

namespace aicore {

namespace {

float element(const regie_tensor& t, int64_t i) {
  if (t.elem == REGIE_F16) return from_half(static_cast<const uint16_t*>(t.data)[i]);
  return static_cast<const float*>(t.data)[i];
}

}  // namespace

std::string pack_weights(const CubeProblem& p, const CubePlan& t, const regie_tensor& w) {
  const int64_t kb = p.k_blocks(), columns = t.n_tiles * t.columns;
  std::string out(static_cast<size_t>(p.groups * kb * columns * kFractal), '\0');
  auto put = [&](int64_t group, int64_t block, int64_t n, int64_t k0, float value) {
    const int64_t at = ((group * kb + block) * columns + n / 16) * 256 + n % 16 * 16 + k0;
    const uint16_t half = to_half(value);
    std::memcpy(out.data() + at * 2, &half, 2);
  };
  if (!p.convolution) {
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t n = 0; n < p.n; ++n)
        put(0, k / 16, n, k % 16, element(w, p.transposed_b ? n * p.k + k : k * p.n + n));
    return out;
  }
  const int64_t window = p.kernel_h * p.kernel_w, inner = p.channels / p.model_groups,
                outer = p.out_channels / p.model_groups;
  for (int64_t n = 0; n < p.out_channels; ++n) {
    const int64_t group = n / p.out_group;
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t c = n / outer * inner + i - group * p.in_group;  // channel within the joined group
      for (int64_t k = 0; k < window; ++k)
        put(group, c / 16 * window + k, n - group * p.out_group, c % 16,
            element(w, (n * inner + i) * window + k));
    }
  }
  return out;
}

}  // namespace aicore
