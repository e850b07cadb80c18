// What tests of nodes say of a run: shapes by seed, and results against what they should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "node.h"
#include "support/sanitized.h"

namespace aicore::test {

int64_t shapes(int64_t quick) {
  const char* given = std::getenv("REGIE_AICORE_SHAPES");
  return given ? std::atoll(given) : regie::test::cases(quick);
}

void for_seeds(int64_t quick, uint64_t first,
               const std::function<void(uint64_t seed, Random& random)>& body) {
  const int64_t count = shapes(quick);
  for (int64_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    Random random(seed);
    body(seed, random);
  }
}

void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double error = 0, norm = 0, largest = 0, scale = 0;
  size_t where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(got[i] - expected[i]);
    error += d * d;
    norm += expected[i] * expected[i];
    scale = std::max(scale, std::abs(expected[i]));
    if (!(d <= largest)) {
      largest = d;
      where = i;
    }
  }
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm) + 1e-30) << what;
  EXPECT_LE(largest, 4 * tolerance * scale + 1e-30)
      << what << ": element " << where << " is " << got[where] << " and should be " << expected[where];
}

namespace {

using Judge = std::function<void(const std::vector<double>& got, const std::string& name)>;

// In two of the formats that the engine offers: others for each node of a test. What is offered must be
// computed.
void run_formats(Node& node, const Chip& chip, const Judge& judge) {
  static uint32_t turn = 0;
  const uint32_t options = node.options(chip);
  for (uint32_t i = 0; i < std::min(options, 2u) && !testing::Test::HasFailure(); ++i) {
    const uint32_t option = 1 + turn++ % options;
    node.take(option);
    try {
      if (auto got = node.run(chip)) judge(*got, node.name + " in option " + std::to_string(option));
    } catch (const regie::sdk::Failure& f) {
      ADD_FAILURE() << "option " << option << " is offered: " << f.message;
    }
  }
}

Judge near(const std::vector<double>& expected, double tolerance) {
  return [&expected, tolerance](const std::vector<double>& got, const std::string& name) {
    expect_close(got, expected, tolerance, name);
  };
}

}  // namespace

void check(Node& node, const Chip& chip, const std::vector<double>& expected, double tolerance) {
  try {
    if (auto got = node.run(chip)) expect_close(*got, expected, tolerance, node.name);
  } catch (const regie::sdk::Failure& f) {
    ADD_FAILURE() << f.message;
    return;
  }
  run_formats(node, chip, near(expected, tolerance));
}

void Tally::check(Node& node, const Chip& chip, const std::vector<double>& expected, double tolerance) {
  check(node, chip, near(expected, tolerance));
}

void Tally::check(Node& node, const Chip& chip, const Judge& judge) {
  try {
    if (auto got = node.run(chip)) judge(*got, node.name);
    ++done_;
  } catch (const regie::sdk::Failure& f) {
    EXPECT_EQ(f.code, REGIE_UNSUPPORTED) << f.message;
    ++refused_;
    last_ = f.message;
    return;
  }
  run_formats(node, chip, judge);
}

void Tally::finish(const char* what) const {
  const double most_refused = std::getenv("REGIE_AICORE_TARGET") ? 0.01 : 0.06;
  std::cout << what << ": " << done_ << " compared, " << refused_ << " refused";
  if (refused_) std::cout << ", the last: " << last_;
  std::cout << std::endl;
  EXPECT_GT(done_, 0);
  EXPECT_LE(static_cast<double>(refused_), most_refused * static_cast<double>(done_ + refused_)) << last_;
}

}  // namespace aicore::test
