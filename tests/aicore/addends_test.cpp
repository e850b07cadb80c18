// Bias and residual that the cube adds (cube_addends.cpp): of convolutions that the vector unit would bind,
// in all formats that the engine offers for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "convolution.h"
#include "half.h"

namespace aicore::test {
namespace {

// Runs all formats; calls judge(values, name) for each, and counts those that the cube adds for.
template <class Judge>
int64_t each_option(Node& node, const Chip& chip, Judge&& judge) {
  int64_t added = 0;
  const uint32_t options = node.options(chip);
  for (uint32_t o = 1; o <= options && !testing::Test::HasFailure(); ++o) {
    node.take(o);
    if (auto got = node.run(chip)) {
      const bool cube = node.name.find("on the cube") != std::string::npos;
      added += cube;
      judge(*got, node.name + " in option " + std::to_string(o), cube);
    }
  }
  return added;
}

TEST(Aicore, ConvolutionsThatTheCubeAddsTo) {
  int64_t added = 0, all = 0;
  for_seeds(40, 910'000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    Convolution c;
    c.n = pick(random, 1, 4);
    c.group = pick(random, 0, 4) ? 1 : pick(random, 2, 3);
    c.in = c.group * 16 * pick(random, 1, 2);
    c.out = c.group * 16 * pick(random, 1, 9);
    if (c.group == 1) c.out -= pick(random, 0, 2) ? 0 : pick(random, 1, 7);  // a last block that is not full
    c.kh = c.kw = pick(random, 0, 3) ? 1 : 3;
    c.top = c.left = c.bottom = c.right = c.kh / 2;
    c.h = c.oh = pick(random, 2, 20);
    c.w = c.ow = pick(random, 2, 40);
    if (pick(random, 0, 5) == 0) c.w = c.ow = pick(random, 200, 700);
    const regie_elem elem = pick(random, 0, 1) ? REGIE_F16 : REGIE_F32;
    const Array x = random_array(random, c.x_dims()), weight = random_array(random, c.w_dims()),
                bias = random_array(random, {c.out},
                                    std::array{1e-3, 1.0, 500.0}[static_cast<size_t>(pick(random, 0, 2))]),
                residual = random_array(random, c.y_dims(), 8);
    const bool with_residual = pick(random, 0, 1);
    const int64_t act = pick(random, 0, 4);
    Node node("regie.FusedConv", elem);
    node.operand(x).operand(weight, true).operand(bias, true);
    if (with_residual) node.operand(residual);
    node.result(c.y_dims());
    constexpr const char* kNames[] = {"", "Relu", "Clip", "Clip", "Sigmoid"};
    const double low = act == 3 ? 0.1 : -0.5;  // which no half is
    node.attr("activation", kNames[act]).attr("activation_alpha", low).attr("activation_beta", 6.0);
    c.put_attrs(node);
    std::vector<double> expected;
    c.each_element([&](int64_t b, int64_t o, int64_t i) {
      double sum = bias.values[static_cast<size_t>(o)];
      c.each_product(b, o, i,
                     [&](size_t left, size_t right) { sum += x.values[left] * weight.values[right]; });
      if (with_residual) sum += residual.values[expected.size()];
      expected.push_back(act == 0   ? sum
                         : act == 1 ? std::max(sum, 0.0)
                         : act == 4 ? 1 / (1 + std::exp(-sum))
                                    : std::clamp(sum, low, 6.0));
    });
    SCOPED_TRACE("seed " + std::to_string(seed) + ' ' + c.text() + ' ' + kNames[act] +
                 (with_residual ? " residual" : "") + (elem == REGIE_F16 ? " f16" : ""));
    ++all;
    added += each_option(node, chip, [&](const std::vector<double>& got, const std::string& name, bool) {
               expect_close(got, expected, 2e-3, name);
             }) > 0;
  });
  std::cout << "the cube adds in " << added << " of " << all << std::endl;
  EXPECT_GT(10 * added, all);
}

// Where nothing else is, a bias is itself, rounded once: three halves hold what f32 does.
TEST(Aicore, TheCubeAddsABiasInFull) {
  const Chip chip = chip_of_target("ascend310-sim");
  for (double scale : {1e-4, 1.0, 3000.0, 1e5}) {
    Random random(17);
    const Array zeros{{2, 16, 20, 20}, std::vector<double>(2 * 16 * 400, 0.0)};
    Array bias = fine_array(random, {256});
    for (double& b : bias.values) b = static_cast<float>(b * scale);
    Node node("Conv");
    node.operand(zeros)
        .operand(random_array(random, {256, 16, 1, 1}), true)
        .operand(bias, true)
        .result({2, 256, 20, 20});
    const int64_t added =
        each_option(node, chip, [&](const std::vector<double>& got, const std::string& name, bool cube) {
          for (size_t i = 0; cube && i < got.size() && !testing::Test::HasFailure(); ++i) {
            const double b = bias.values[i / 400 % 256];
            const bool as_half = got[i] == from_half(to_half(static_cast<float>(b)));
            EXPECT_TRUE(as_half || std::abs(got[i] - b) <= std::abs(b) * 1e-6)
                << name << ": " << got[i] << ", " << b;
          }
        });
    if (scale == 1e5)  // no halves
      EXPECT_EQ(added, 0);
    else
      EXPECT_GT(added, 0) << scale;
  }
}

}  // namespace
}  // namespace aicore::test
