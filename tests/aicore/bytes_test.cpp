// Bytes apart from the cube: conversions, maxima and moves, exactly; what products of them are predicted to
// take; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bytes.h"

namespace aicore::test {
namespace {

int64_t quantised(double x, double scale, int64_t zero, regie_elem elem) {
  // As the operator's definition: the quotient of two f32 is an f32.
  const double whole = std::nearbyint(static_cast<double>(static_cast<float>(x) / static_cast<float>(scale)));
  return std::clamp(static_cast<int64_t>(std::clamp(whole, -1e9, 1e9)) + zero, low_of(elem),
                    low_of(elem) + 255);
}

// Conversions with one scale or one a channel, and what is left of a residual sum: two tensors of bytes are
// added as reals.
TEST(Aicore, ConversionsOfBytes) {
  Tally tally;
  for_seeds(60, 700'000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const std::vector<int64_t> dims{pick(random, 1, 3), pick(random, 1, 20), pick(random, 1, 40),
                                    pick(random, 1, 40)};
    const regie_elem elem = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8;
    const int64_t kind = pick(random, 0, 2), channels = dims[1], map = dims[2] * dims[3];
    const bool each = kind < 2 && pick(random, 0, 1);
    Array scale = random_scales(random, each ? channels : 1, 0.05),
          zero = random_bytes(random, scale.dims, elem);
    if (each) scale.dims = zero.dims = {channels, 1, 1};
    auto of = [&](const Array& a, int64_t i) {
      return a.values[each ? static_cast<size_t>(i / map % channels) : 0];
    };
    std::vector<double> expected;
    Array x = kind == 0 ? random_array(random, dims, 12) : random_bytes(random, dims, elem);
    Node node(kind == 0 ? "regie.Quantize" : kind == 1 ? "regie.Dequantize" : "regie.Pointwise");
    if (kind == 0) {
      // Scales of a few bits, so that ties are halves, and any of the engine's formats holds them.
      for (double& v : scale.values) v = static_cast<double>(pick(random, 1, 7)) / 64;
      for (int64_t i = 0; i < x.count(); ++i)
        if (double& v = x.values[static_cast<size_t>(i)]; pick(random, 0, 3) == 0)
          v = std::round(v) * 0.5 * of(scale, i);
      node.operand(x).operand(scale, true, REGIE_F32).operand(zero, true, elem).result(dims, elem);
      for (int64_t i = 0; i < x.count(); ++i)
        expected.push_back(static_cast<double>(quantised(x.values[static_cast<size_t>(i)], of(scale, i),
                                                         static_cast<int64_t>(of(zero, i)), elem)));
    } else if (kind == 1) {
      node.operand(x, false, elem).operand(scale, true, REGIE_F32).operand(zero, true, elem).result(dims);
      for (int64_t i = 0; i < x.count(); ++i)
        expected.push_back(
            static_cast<float>((x.values[static_cast<size_t>(i)] - of(zero, i)) * of(scale, i)));
    } else {
      const regie_elem out = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8;
      const Array other = random_bytes(random, dims, elem);
      const double s2 = static_cast<float>(scale.values[0] * 1.7), sy = 0.0625;
      const int64_t z2 = low_of(elem) + pick(random, 0, 255), zy = low_of(out) + pick(random, 0, 100);
      node.operand(x, false, elem).operand(scale, true, REGIE_F32).operand(zero, true, elem);
      node.operand(other, false, elem)
          .operand(one(s2), true, REGIE_F32)
          .operand(one(static_cast<double>(z2)), true, elem);
      node.operand(one(sy), true, REGIE_F32)
          .operand(one(static_cast<double>(zy)), true, out)
          .result(dims, out);
      node.body("regie.Dequantize", {0, 1, 2}).body("regie.Dequantize", {3, 4, 5}).body("Add", {8, 9});
      node.body("Relu", {10}).body("regie.Quantize", {11, 6, 7}, out);
      for (size_t i = 0; i < x.values.size(); ++i) {
        const float a = static_cast<float>((x.values[i] - zero.values[0]) * scale.values[0]),
                    b = static_cast<float>((other.values[i] - static_cast<double>(z2)) * s2);
        expected.push_back(static_cast<double>(quantised(std::max(a + b, 0.0F), sy, zy, out)));
      }
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", kind " + std::to_string(kind));
    tally.check(node, chip, [&](const std::vector<double>& got, const std::string& name) {
      if (kind == 1)  // a format may say halves
        return expect_close(got, expected, name.find("option") == std::string::npos ? 1e-6 : 1e-3, name);
      EXPECT_EQ(got, expected) << name;
    });
  });
  tally.finish("conversions of bytes");
}

TEST(Aicore, MaximaAndMovesOfBytes) {
  Tally tally;
  for_seeds(60, 800'000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8;
    const int64_t n = pick(random, 1, 2), c = pick(random, 1, 40), h = pick(random, 1, 24),
                  w = pick(random, 1, 40);
    const Array x = random_bytes(random, {n, c, h, w}, elem);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<double> expected;
    auto at = [&](int64_t b, int64_t d, int64_t y, int64_t z) {
      return x.values[static_cast<size_t>(((b * c + d) * h + y) * w + z)];
    };
    auto judge = [&](const std::vector<double>& got, const std::string& name) {
      EXPECT_EQ(got, expected) << name;
    };
    const int64_t kind = pick(random, 0, 4);
    if (kind == 4) {  // the last axis does not stay the last
      Node node("Transpose");
      node.operand(x, false, elem).result({n, w, h, c}, elem).attr("perm", {0, 3, 2, 1});
      for (int64_t b = 0; b < n; ++b)
        for (int64_t i = 0; i < w * h * c; ++i) expected.push_back(at(b, i % c, i / c % h, i / (c * h)));
      return tally.check(node, chip, judge);
    }
    if (kind <= 1) {
      const int64_t k = pick(random, 1, std::min<int64_t>(4, std::min(h, w))), s = pick(random, 1, 3),
                    pad = pick(random, 0, k - 1);
      const int64_t oh = (h + 2 * pad - k) / s + 1, ow = (w + 2 * pad - k) / s + 1;
      Node node("MaxPool");
      node.operand(x, false, elem).result({n, c, oh, ow}, elem);
      node.attr("kernel_shape", {k, k}).attr("strides", {s, s}).attr("pads", {pad, pad, pad, pad});
      for (int64_t b = 0; b < n; ++b)
        for (int64_t d = 0; d < c; ++d)
          for (int64_t y = 0; y < oh; ++y)
            for (int64_t z = 0; z < ow; ++z) {
              double most = -1000;
              for (int64_t i = 0; i < k; ++i)
                for (int64_t j = 0; j < k; ++j) {
                  const int64_t row = y * s - pad + i, column = z * s - pad + j;
                  if (row >= 0 && row < h && column >= 0 && column < w)
                    most = std::max(most, at(b, d, row, column));
                }
              expected.push_back(most);
            }
      return tally.check(node, chip, judge);
    }
    if (kind == 2) {
      Node node("Transpose");
      node.operand(x, false, elem).result({c, n, h, w}, elem).attr("perm", {1, 0, 2, 3});
      for (int64_t d = 0; d < c; ++d)
        for (int64_t b = 0; b < n; ++b)
          for (int64_t i = 0; i < h * w; ++i) expected.push_back(at(b, d, i / w, i % w));
      return tally.check(node, chip, judge);
    }
    const int64_t more = pick(random, 1, 9);
    const Array other = random_bytes(random, {n, more, h, w}, elem);
    Node node("Concat");
    node.operand(x, false, elem)
        .operand(other, false, elem)
        .result({n, c + more, h, w}, elem)
        .attr("axis", int64_t{1});
    for (int64_t b = 0; b < n; ++b) {
      const auto first = x.values.begin() + b * c * h * w, second = other.values.begin() + b * more * h * w;
      expected.insert(expected.end(), first, first + c * h * w);
      expected.insert(expected.end(), second, second + more * h * w);
    }
    tally.check(node, chip, judge);
  });
  tally.finish("maxima and moves of bytes");
}

// Over layers of ResNet-50: within a factor of two of the machine's each, and near one in all.
TEST(Aicore, PredictedTimesOfBytesAreNearTheMachines) {
  struct Layer {
    int64_t in, out, size, kernel, stride;
  };
  const Layer layers[] = {{3, 64, 224, 7, 2},    {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},
                          {64, 256, 56, 1, 1},   {256, 128, 56, 1, 1},  {128, 128, 56, 3, 2},
                          {128, 512, 28, 1, 1},  {512, 256, 28, 1, 1},  {256, 256, 14, 3, 1},
                          {256, 1024, 14, 1, 1}, {1024, 512, 14, 1, 1}, {512, 512, 7, 3, 1},
                          {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1}};
  const Chip chip = chip_of_target("ascend910a-sim");
  Random random(11);
  double logs = 0;
  for (const Layer& l : layers) {
    const int64_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
    Node node("regie.QConv");
    node.operand(random_bytes(random, {1, l.in, l.size, l.size}, REGIE_U8), false, REGIE_U8);
    node.operand(one(0.05), true, REGIE_F32).operand(one(7), true, REGIE_U8);
    node.operand(random_bytes(random, {l.out, l.in, l.kernel, l.kernel}, REGIE_I8), true, REGIE_I8);
    node.operand(random_scales(random, l.out, 0.01), true, REGIE_F32).absent().absent();
    node.operand(one(0.5), true, REGIE_F32)
        .operand(one(3), true, REGIE_U8)
        .result({1, l.out, out, out}, REGIE_U8);
    node.attr("pads", {pad, pad, pad, pad}).attr("strides", {l.stride, l.stride});
    ASSERT_TRUE(node.run(chip));
    const double ratio = node.predicted / node.cycles;
    if (std::getenv("REGIE_AICORE_PRINT"))
      std::printf("%5ld %5ld %4ld %ld %ld %-48s predicted %8.0f machine %8.0f ratio %.2f\n", l.in, l.out,
                  l.size, l.kernel, l.stride, node.name.c_str(), node.predicted, node.cycles, ratio);
    EXPECT_GT(ratio, 0.5) << node.name;
    EXPECT_LT(ratio, 2.0) << node.name;
    logs += std::log(ratio);
  }
  const double mean = std::exp(logs / static_cast<double>(std::size(layers)));
  EXPECT_GT(mean, 0.8);
  EXPECT_LT(mean, 1.25);
}

std::string reason(Node& node) {
  try {
    return "done by " + node.lower(chip_of_target("ascend910a-sim")).name;
  } catch (const regie::sdk::Failure& f) {
    EXPECT_EQ(f.code, REGIE_UNSUPPORTED);
    return f.message;
  }
}

TEST(AicoreRefuses, ProductsOfBytesThatItHasNot) {
  Random random(3);
  const Array a = random_bytes(random, {4, 8}, REGIE_U8), b = random_bytes(random, {8, 5}, REGIE_I8),
              x = random_bytes(random, {1, 4, 6, 6}, REGIE_U8),
              w = random_bytes(random, {8, 4, 3, 3}, REGIE_I8), each = random_bytes(random, {4}, REGIE_U8);
  Node computed("MatMulInteger");
  computed.operand(a, false, REGIE_U8).operand(b, false, REGIE_I8).result({4, 5}, REGIE_I32);
  EXPECT_EQ(reason(computed), "its right matrix is computed: products of bytes have constant weights");
  Node several("MatMulInteger");
  several.operand(a, false, REGIE_U8)
      .operand(b, true, REGIE_I8)
      .operand(each, false, REGIE_U8)
      .result({4, 5}, REGIE_I32);
  EXPECT_EQ(reason(several), "the input has more than one zero point");
  Node late("ConvInteger");
  late.operand(x, false, REGIE_U8)
      .operand(w, true, REGIE_I8)
      .operand(one(3), false, REGIE_U8)
      .result({1, 8, 4, 4}, REGIE_I32);
  EXPECT_EQ(reason(late), "the input's zero point, which is also its padding, is known at run time only");
  Node sum("Add");
  sum.operand(a, false, REGIE_U8).operand(a, false, REGIE_U8).result({4, 8}, REGIE_U8);
  EXPECT_NE(reason(sum).find("Add to elements that are neither f32 nor f16"), std::string::npos)
      << reason(sum);
}

}  // namespace
}  // namespace aicore::test
