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

// The product is one of constant weights like any other: two halves, and factors taken out.
TEST(AicorePrecision, TransposedConvolutionsAreNearlyF32) {
  for_seeds(16, 86000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    const int64_t inner = pick(random, 4, 60), maps = pick(random, 1, 9), kh = pick(random, 1, 3),
                  kw = pick(random, 2, 3), h = pick(random, 1, 9), w = pick(random, 2, 9);
    const Array x = fine_array(random, {1, inner, h, w}), bias = random_array(random, {maps});
    Array weight = random_array(random, {inner, maps, kh, kw});
    std::vector<float> factors;
    for (int64_t m = 0; m < maps; ++m)
      factors.push_back(seed % 2 ? static_cast<float>(pick(random, 1, 999'983)) * 1e-5F : 1.0F);
    for (int64_t i = 0; i < weight.count(); ++i) {
      double& v = weight.values[static_cast<size_t>(i)];
      v = static_cast<float>(v) * factors[static_cast<size_t>(i / (kh * kw) % maps)];
    }
    std::vector<double> expected;
    for (int64_t m = 0; m < maps; ++m)
      for (int64_t y = 0; y < h * kh; ++y)
        for (int64_t z = 0; z < w * kw; ++z) {
          double sum = bias.values[static_cast<size_t>(m)];
          for (int64_t c = 0; c < inner; ++c)
            sum += x.values[static_cast<size_t>((c * h + y / kh) * w + z / kw)] *
                   weight.values[static_cast<size_t>(((c * maps + m) * kh + y % kh) * kw + z % kw)];
          expected.push_back(sum);
        }
    Node node("ConvTranspose");
    node.operand(x).operand(weight, true).operand(bias, true).result({1, maps, h * kh, w * kw});
    node.attr("strides", {kh, kw});
    Chip chip = any_chip(random);
    for (bool fine : {false, true}) {
      chip.two_halves = fine;
      const auto got = node.run(chip);
      ASSERT_TRUE(got);
      const double error = error_of(*got, expected);
      EXPECT_TRUE(fine ? error < 2e-6 : error > 5e-5) << error << ", " << node.name;
    }
  });
}

// In blocks maxima are the very numbers; row-major ones are turned as two halves.
TEST(AicorePrecision, PoolingIsF32WhereOperandsAreTwoHalves) {
  for_seeds(60, 85000, [](uint64_t seed, Random& random) {
    SCOPED_TRACE(seed);
    Chip chip = any_chip(random);
    chip.two_halves = true;
    const bool average = seed % 3 == 0;
    const int64_t n = pick(random, 1, 2), c = seed % 2 ? 16 * pick(random, 1, 3) : pick(random, 1, 40),
                  k = pick(random, 1, 3), stride = pick(random, 1, 3),
                  dilation = average ? 1 : pick(random, 1, 2), pad = pick(random, 0, k - 1),
                  h = (k - 1) * dilation + 1 + pick(random, 0, 18),
                  w = (k - 1) * dilation + 2 + pick(random, 0, 18), reach = (k - 1) * dilation + 1,
                  oh = (h + 2 * pad - reach) / stride + 1, ow = (w + 2 * pad - reach) / stride + 1;
    const Array x = fine_array(random, {n, c, h, w});
    Node node(average ? "AveragePool" : "MaxPool");
    const regie_format format = seed % 2 ? kBlockedFormat : kPlainFormat;
    node.operand(x).operand_in(format).result({n, c, oh, ow}).result_in(format);
    node.attr("kernel_shape", {k, k}).attr("strides", {stride, stride}).attr("pads", {pad, pad, pad, pad});
    average ? node.attr("count_include_pad", int64_t{1}) : node.attr("dilations", {dilation, dilation});
    std::vector<double> expected;
    for (int64_t p = 0; p < n * c; ++p)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t z = 0; z < ow; ++z) {
          double most = -INFINITY, sum = 0;
          for (int64_t a = 0; a < k * k; ++a) {
            const int64_t row = y * stride - pad + a / k * dilation,
                          column = z * stride - pad + a % k * dilation;
            if (row < 0 || row >= h || column < 0 || column >= w) continue;
            const double v = x.values[static_cast<size_t>((p * h + row) * w + column)];
            most = std::max(most, v);
            sum += v;
          }
          expected.push_back(average ? sum / static_cast<double>(k * k) : most);
        }
    if (std::any_of(expected.begin(), expected.end(), [](double v) { return std::isinf(v); })) return;
    const auto got = node.run(chip);
    ASSERT_TRUE(got);
    if (average || format == kPlainFormat)
      expect_close(*got, expected, 1e-6, node.name);
    else
      EXPECT_EQ(*got, expected);
  });
}

}  // namespace
}  // namespace aicore::test
