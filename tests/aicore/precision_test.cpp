// What the cube loses and what it does not: factors taken out of weights, sums on their way out. The bounds
// here are those of f32, a thousandth of what rounding to halves costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cube_factors.h"
#include "half.h"
#include "node.h"

namespace aicore::test {
namespace {

TEST(AicorePrecision, AFactorOfHalvesIsFound) {
  for_seeds(200, 81000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    const int64_t count = pick(random, 1, 300);
    const float factor =
        std::ldexp(static_cast<float>(pick(random, 1, 16'777'215)), static_cast<int>(pick(random, -50, 20)));
    std::vector<float> values;
    // Halves of any size, subnormal ones and zero among them.
    for (int64_t i = 0; i < count; ++i)
      values.push_back(from_half(static_cast<uint16_t>(pick(random, 0, 1) << 15 | pick(random, 0, 0x7bff))) *
                       factor);
    const auto found = common_factor(values);
    ASSERT_TRUE(found);
    for (float v : values) {
      const float half = from_half(to_half(v / *found));
      EXPECT_NEAR(half * static_cast<double>(*found), v, std::abs(v) * 0x1p-21) << v;
    }
  });
}

TEST(AicorePrecision, HalvesHaveNoFactorAndOtherNumbersNone) {
  EXPECT_EQ(common_factor(std::vector<float>{0.5F, -1.25F, 0, 1.5F}), 1.0F);
  EXPECT_EQ(common_factor(std::vector<float>{0, 0}), 1.0F);
  EXPECT_EQ(common_factor(std::vector<float>{INFINITY, 0.1F}), std::nullopt);
  for_seeds(200, 82000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    std::vector<float> values;
    for (double v : fine_array(random, {pick(random, 8, 300)}).values)
      values.push_back(static_cast<float>(v));
    EXPECT_EQ(common_factor(values), std::nullopt);
  });
}

double error_of(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

// 1 x 1: positions x channels times channels x columns.
struct Pointwise {
  Array x, w, bias;
  std::vector<double> expected;

  Pointwise(Random& random, Array input, int64_t columns) : x(std::move(input)) {
    const int64_t inner = x.dims[1], area = x.dims[2] * x.dims[3];
    w = random_array(random, {columns, inner, 1, 1});
    bias = random_array(random, {columns});
    for (int64_t c = 0; c < columns; ++c) {
      const float factor = static_cast<float>(pick(random, 1, 999'983)) * 1e-5F;
      for (int64_t k = 0; k < inner; ++k) {
        double& v = w.values[static_cast<size_t>(c * inner + k)];
        v = static_cast<float>(v) * factor;
      }
    }
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t p = 0; p < area; ++p) {
        double sum = bias.values[static_cast<size_t>(c)];
        for (int64_t k = 0; k < inner; ++k)
          sum += x.values[static_cast<size_t>(k * area + p)] * w.values[static_cast<size_t>(c * inner + k)];
        expected.push_back(sum);
      }
  }
  double error(const Chip& chip, regie_format format) const {
    Node node("Conv");
    node.operand(x)
        .operand_in(format)
        .operand(w, true)
        .operand(bias, true)
        .result({1, w.dims[0], x.dims[2], x.dims[3]});
    node.result_in(format);
    const auto got = node.run(chip);
    return got ? error_of(*got, expected) : INFINITY;
  }
};

TEST(AicorePrecision, FoldedFactorsCostNothing) {
  for_seeds(12, 83000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    const Pointwise p(
        random, random_array(random, {1, 16 * pick(random, 1, 6), pick(random, 1, 9), pick(random, 2, 9)}),
        16 * pick(random, 1, 5));
    EXPECT_LT(p.error(any_chip(random), kBlockedFormat), 2e-6);
    EXPECT_LT(p.error(any_chip(random), kPlainFormat), 5e-4);  // sums become halves once
  });
}

TEST(AicorePrecision, TwoHalvesAreNearlyF32) {
  for_seeds(12, 84000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    const Pointwise p(
        random, fine_array(random, {1, 16 * pick(random, 1, 6), pick(random, 1, 9), pick(random, 2, 9)}),
        16 * pick(random, 1, 5));
    Chip chip = any_chip(random);
    for (regie_format format : {kPlainFormat, kBlockedFormat}) {
      chip.two_halves = false;
      EXPECT_GT(p.error(chip, format), 5e-5);
      chip.two_halves = true;
      EXPECT_LT(p.error(chip, format), 2e-6);
    }
  });
}

}  // namespace
}  // namespace aicore::test
