// Random numbers: in their ranges, of the distributions that the operators name, fresh at each draw, and the
// same again with a seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "unit/ops_harness.h"

namespace regie::ops_test {
namespace {

using testing::HasSubstr;

const AttrValue kShape = AttrValue::integers("shape", {200, 100});

std::vector<float> draw(const std::string& op, Attrs attrs, const std::vector<Tensor>& operands = {}) {
  Ran ran = evaluate(op, attrs, operands);
  EXPECT_EQ(ran.code, REGIE_OK) << ran.message;
  if (ran.results.empty() || ran.results[0].elem() != REGIE_F32) return {};
  const auto* p = static_cast<const float*>(ran.results[0].data());
  return {p, p + ran.results[0].count()};
}

// Mean and variance are within 5 standard errors of what they must be.
void expect_moments(const std::vector<float>& x, double mean, double variance, double fourth) {
  const double n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (float v : x) sum += v;
  for (float v : x) squares += (v - mean) * (v - mean);
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 5 * std::sqrt((fourth - variance * variance) / n));
}

TEST(OpsRandom, UniformStaysInItsRangeAndFillsIt) {
  const auto x = draw("RandomUniform", {kShape, AttrValue::number("low", -2), AttrValue::number("high", 4)});
  ASSERT_EQ(x.size(), 20000u);
  for (float v : x) ASSERT_TRUE(v >= -2 && v < 4) << v;
  expect_moments(x, 1, 36.0 / 12, 36.0 * 36 / 80);
  std::vector<int> bins(10);
  for (float v : x) ++bins[static_cast<size_t>((v + 2) / 0.6f)];
  double chi = 0;
  for (int b : bins) chi += (b - 2000.0) * (b - 2000.0) / 2000;
  EXPECT_LT(chi, 40);  // 9 degrees of freedom: one in 100,000 is greater
}

TEST(OpsRandom, RoundingNeverReachesTheUpperEnd) {
  Ran ran = evaluate("RandomUniform", {kShape, AttrValue::integer("dtype", REGIE_BF16)}, {});
  ASSERT_EQ(ran.code, REGIE_OK) << ran.message;
  const auto* p = static_cast<const uint16_t*>(ran.results[0].data());
  for (int64_t i = 0; i < ran.results[0].count(); ++i) ASSERT_LT(p[i], 0x3f80) << "1.0 as bfloat16";
}

TEST(OpsRandom, NormalHasItsMoments) {
  const auto x = draw("RandomNormal", {kShape, AttrValue::number("mean", 3), AttrValue::number("scale", 2)});
  ASSERT_EQ(x.size(), 20000u);
  expect_moments(x, 3, 4, 3 * 16);
  int within = 0;
  for (float v : x) within += std::abs(v - 3) < 2;
  EXPECT_NEAR(within / 20000.0, 0.6827, 0.02);
}

TEST(OpsRandom, LikeTakesShapeAndType) {
  const Tensor x = Tensor::zeros(REGIE_F64, std::vector<int64_t>{3, 0, 2});
  for (const char* op : {"RandomUniformLike", "RandomNormalLike"}) {
    Ran ran = evaluate(op, {}, {x});
    ASSERT_EQ(ran.code, REGIE_OK) << ran.message;
    EXPECT_EQ(ran.results[0].elem(), REGIE_F64);
    EXPECT_EQ(ran.results[0].count(), 0);
    ran = evaluate(op, {AttrValue::integer("dtype", REGIE_F32)}, {integers({4}, {1, 2, 3, 4})});
    ASSERT_EQ(ran.code, REGIE_OK) << ran.message;
    EXPECT_EQ(ran.results[0].elem(), REGIE_F32);
    ran = evaluate(op, {}, {integers({1}, {1})});
    EXPECT_EQ(ran.code, REGIE_INVALID_MODEL);
    EXPECT_THAT(ran.message, HasSubstr("dtype"));
  }
}

TEST(OpsRandom, FreshEachTimeUnlessThereIsASeed) {
  const Attrs fresh = {kShape}, seeded = {kShape, AttrValue::number("seed", 7)},
              other = {kShape, AttrValue::number("seed", 8)};
  for (const char* op : {"RandomUniform", "RandomNormal"}) {
    EXPECT_NE(draw(op, fresh), draw(op, fresh));
    EXPECT_EQ(draw(op, seeded), draw(op, seeded));
    EXPECT_NE(draw(op, seeded), draw(op, other));
  }
}

TEST(OpsRandom, BernoulliDrawsWithTheGivenChance) {
  std::vector<float> chances(20000, 0.3f);
  chances[0] = 0, chances[1] = 1;
  const auto x = draw("Bernoulli", {}, {floats({20000}, chances)});
  ASSERT_EQ(x.size(), 20000u);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[1], 1);
  double ones = 0;
  for (float v : x) {
    ASSERT_TRUE(v == 0 || v == 1);
    ones += v;
  }
  EXPECT_NEAR(ones / 20000, 0.3, 5 * std::sqrt(0.21 / 20000));
  Ran ran = evaluate("Bernoulli", {AttrValue::integer("dtype", REGIE_BOOL)}, {floats({2}, {0, 1})});
  ASSERT_EQ(ran.code, REGIE_OK) << ran.message;
  EXPECT_EQ(std::memcmp(ran.results[0].data(), "\0\1", 2), 0);
}

TEST(OpsRandom, MultinomialDrawsByWeight) {
  // Weights 1 : 2 : 0 : 5, not normalised.
  const float never = -std::numeric_limits<float>::infinity();
  const Tensor x = floats({2, 4}, {1, 1 + std::log(2.0f), never, 1 + std::log(5.0f), never, never, 0, never});
  Ran ran = evaluate("Multinomial",
                     {AttrValue::integer("sample_size", 8000), AttrValue::integer("dtype", REGIE_I64)}, {x});
  ASSERT_EQ(ran.code, REGIE_OK) << ran.message;
  const auto* p = static_cast<const int64_t*>(ran.results[0].data());
  std::vector<double> seen(4);
  for (int i = 0; i < 8000; ++i) {
    ASSERT_TRUE(p[i] >= 0 && p[i] < 4);
    ++seen[static_cast<size_t>(p[i])];
    ASSERT_EQ(p[8000 + i], 2);
  }
  EXPECT_NEAR(seen[0] / 8000, 1.0 / 8, 0.02);
  EXPECT_NEAR(seen[1] / 8000, 2.0 / 8, 0.025);
  EXPECT_EQ(seen[2], 0);
  EXPECT_NEAR(seen[3] / 8000, 5.0 / 8, 0.03);
}

}  // namespace
}  // namespace regie::ops_test
