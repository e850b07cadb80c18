// Ways of doing one convolution beside each other: which a node takes must not depend on what a like node of
// the same compile was given, and a way that needs more room than there is leaves the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "bytes.h"
#include "convolution.h"

namespace aicore::test {
namespace {

// Bounds that are halves are applied to halves on the way out, others to f32: two ways of one shape.
TEST(Aicore, BoundsOfLikeConvolutions) {
  const Chip chip = chip_of_target("ascend310-sim");
  Convolution c;
  c.n = 2;
  c.in = 16;
  c.out = 256;
  c.h = c.w = c.oh = c.ow = 20;
  Random random(31);
  const Array x = random_array(random, c.x_dims()), weight = random_array(random, c.w_dims()),
              bias = random_array(random, {c.out});
  auto node_with = [&](double low) {
    Node node("regie.FusedConv", REGIE_F16);
    node.operand(x).operand_in(kBlockedFormat).operand(weight, true).operand(bias, true);
    node.result(c.y_dims()).result_in(kBlockedFormat);
    node.attr("activation", "Clip").attr("activation_alpha", low).attr("activation_beta", 2.0);
    c.put_attrs(node);
    return node;
  };
  for (double first : {0.5, 0.1}) {
    const double second = 0.6 - first;
    Node one = node_with(first), other = node_with(second);
    ASSERT_TRUE(one.run(chip));
    EXPECT_NE(one.name.find("on the cube"), std::string::npos) << one.name;
    const auto got = other.with_plans_of(one).run(chip);
    ASSERT_TRUE(got);
    std::vector<double> expected;
    c.each_element([&](int64_t b, int64_t o, int64_t i) {
      double sum = bias.values[static_cast<size_t>(o)];
      c.each_product(b, o, i,
                     [&](size_t left, size_t right) { sum += x.values[left] * weight.values[right]; });
      expected.push_back(std::clamp(sum, second, 2.0));
    });
    expect_close(*got, expected, 2e-3, other.name + " after one of " + std::to_string(first));
  }
}

// Where zero is the least that a byte may be, sums become bytes while they leave L0C; where the bound is
// another one, they do not.
TEST(Aicore, ZeroPointsOfLikeConvolutionsOfBytes) {
  Convolution c;
  c.in = 32;
  c.out = 64;
  c.h = c.w = c.oh = c.ow = 9;
  Random random(32);
  const Array x = random_bytes(random, c.x_dims(), REGIE_U8),
              weight = random_bytes(random, c.w_dims(), REGIE_I8);
  const double x_scale = 0.03125, w_scale = 0.0078125, y_scale = 0.5;
  // `bound` is the least result, in its units above its zero point.
  auto node_with = [&](int64_t zero, int64_t bound) {
    Node node("regie.QConv", REGIE_F32);
    node.operand(x, false, REGIE_U8).operand(one(x_scale), true, REGIE_F32).operand(one(0), true, REGIE_U8);
    node.operand(weight, true, REGIE_I8)
        .operand(one(w_scale), true, REGIE_F32)
        .operand(one(0), true, REGIE_I8);
    node.absent().operand(one(y_scale), true, REGIE_F32);
    node.operand(one(static_cast<double>(zero)), true, REGIE_U8).result(c.y_dims(), REGIE_U8);
    node.attr("activation", "Clip").attr("activation_alpha", static_cast<double>(bound) * y_scale);
    node.attr("activation_beta", 1000.0);
    c.put_attrs(node);
    return node;
  };
  struct Case {
    int64_t zero, bound;
  };
  // All three are at least 8 in the result's bytes.
  const Case cases[] = {{8, 0}, {5, 3}, {12, -4}};
  for (const char* target : {"ascend310-sim", "ascend910a-sim"})
    for (const Case& first : cases)
      for (const Case& second : cases) {
        const Chip chip = chip_of_target(target);
        Node before = node_with(first.zero, first.bound), node = node_with(second.zero, second.bound);
        ASSERT_TRUE(before.run(chip));
        const auto got = node.with_plans_of(before).run(chip);
        ASSERT_TRUE(got);
        size_t at = 0;
        c.each_element([&](int64_t b, int64_t o, int64_t i) {
          int64_t sum = 0;
          c.each_product(b, o, i, [&](size_t left, size_t right) {
            sum += static_cast<int64_t>(x.values[left]) * static_cast<int64_t>(weight.values[right]);
          });
          const double real = static_cast<double>(sum) * x_scale * w_scale / y_scale;
          const double exact =
              std::clamp(std::nearbyint(real) + static_cast<double>(second.zero), 8.0, 255.0);
          ASSERT_EQ((*got)[at++], exact)
              << node.name << ", " << real << ", zero " << second.zero << " after " << first.zero;
        });
      }
}

// What the cube adds takes room in L1. A convolution that fits without it has a program.
TEST(Aicore, ConvolutionsThatFillL1HaveABias) {
  const Chip chip = small_chip(1);
  int64_t alone = 0, refused = 0, added = 0;
  for (int64_t width = 16; width <= 512 && !testing::Test::HasFailure(); width += 8) {
    Convolution c;
    c.in = 48;
    c.out = 256;
    c.h = c.oh = 4;
    c.w = c.ow = width;
    c.kh = c.kw = 3;
    c.top = c.left = c.bottom = c.right = 1;
    Random random(static_cast<uint64_t>(width));
    const Array x{c.x_dims(), std::vector<double>(static_cast<size_t>(c.in * c.h * c.w), 0.0)},
        weight = random_array(random, c.w_dims()), bias = random_array(random, {c.out}),
        residual{c.y_dims(), std::vector<double>(static_cast<size_t>(c.out * c.h * c.w), 0.0)};
    auto lowered = [&](bool with) -> std::optional<std::string> {
      Node node("regie.FusedConv", REGIE_F16);
      node.operand(x).operand_in(kBlockedFormat).operand(weight, true);
      if (with) node.operand(bias, true).operand(residual).operand_in(kBlockedFormat);
      node.result(c.y_dims()).result_in(kBlockedFormat);
      c.put_attrs(node);
      try {
        return node.lower(chip).name;
      } catch (const Overflow&) {
        return std::nullopt;
      }
    };
    const auto plain = lowered(false), full = lowered(true);
    alone += plain.has_value();
    refused += !plain.has_value();
    added += full && full->find("on the cube") != std::string::npos;
    EXPECT_EQ(plain.has_value(), full.has_value()) << width;
  }
  std::cout << alone << " fit, " << refused << " do not; the cube adds in " << added << std::endl;
  EXPECT_GT(alone, 0);
  EXPECT_GT(refused, 0);  // so the edge is among them
  EXPECT_GT(added, 0);
}

}  // namespace
}  // namespace aicore::test
