#include <cstring>
#include <vector>

#include "cube_factors.h"
#include "half.h"

namespace aicore {

std::string pack_weights(const CubeProblem& p, const CubePlan& t, const regie_tensor& w) {
  const int64_t kb = p.k_blocks(), part = p.part_blocks(), blocks = t.n_tiles * t.columns;
  std::string out(static_cast<size_t>(p.groups * kb * blocks * kFractal), '\0');
  auto put = [&](int64_t group, int64_t block, int64_t n, int64_t k0, float value) {
    const int64_t at = ((group * kb + block) * blocks + n / 16) * 256 + n % 16 * 16 + k0;
    const uint16_t half = to_half(value);
    for (int64_t i = 0; i < p.left_parts; ++i)
      std::memcpy(out.data() + (at + i * part * blocks * 256) * 2, &half, 2);
  };
  const Columns columns = columns_of(p, w);
  std::vector<float> factors;
  for (int64_t n = 0; n < columns.columns; ++n) {
    std::vector<float> values = columns.of(n);
    if (p.epilogue.scaled) {
      factors.push_back(common_factor(values).value_or(1.0F));
      // Halves again, up to the rounding of f32, which that to halves undoes.
      for (float& v : values) v /= factors.back();
    }
    if (!p.convolution) {
      for (int64_t k = 0; k < p.k; ++k) put(0, k / 16, n, k % 16, values[static_cast<size_t>(k)]);
      continue;
    }
    const int64_t group = n / p.out_group;
    each_of_channel(p, n, [&](int64_t k, int64_t i) {
      put(group, k / 16, n - group * p.out_group, k % 16, values[static_cast<size_t>(i)]);
    });
  }
  out.append(reinterpret_cast<const char*>(factors.data()), factors.size() * 4);
  return out;
}

}  // namespace aicore
