// Weights that are halves times a factor of their column (channel): a batch normalisation or a scale that was
// folded into them leaves such, and so do the steps of quantised weights. Rounded as they are they would be
// rounded a second time, after the factor; taken apart, the cube multiplies exactly what the model has, and
// the factor goes to the sums, in f32. The factor is found from the values alone, so it does not matter who
// multiplied: this compiler, an exporter or a quantiser.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cube.h"

namespace aicore {

// A number that all values are halves of, up to the rounding of f32; 1 if they are halves; nothing if there
// is none.
std::optional<float> common_factor(std::span<const float> values);

// Weights column by column: the k values that go into one column of the product.
struct Columns {
  const regie_tensor& weights;
  int64_t columns, count, column_stride, stride;
  std::vector<float> of(int64_t n) const;
};
Columns columns_of(const CubeProblem& problem, const regie_tensor& weights);

// Have columns of these weights, of a few that are looked at, factors other than 1?
bool has_factors(const CubeProblem& problem, const regie_tensor& weights);

}  // namespace aicore
