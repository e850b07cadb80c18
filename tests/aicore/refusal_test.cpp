// What the engine cannot do, and that it says why.
#include <gtest/gtest.h>

#include "node.h"

namespace aicore::test {
namespace {

std::string reason(Node& node, const Chip& chip = chip_of_target("ascend910a-sim")) {
  try {
    return "done by " + node.lower(chip).name;
  } catch (const regie::sdk::Failure& f) {
    EXPECT_EQ(f.code, REGIE_UNSUPPORTED);
    return f.message;
  }
}

TEST(AicoreRefuses, WhatAnAiCoreHasNot) {
  Random random(1);
  const Array x = random_array(random, {2, 3});
  Node gather("Gather");
  gather.operand(x).operand(x).result({2, 3, 3});
  EXPECT_EQ(reason(gather), "irregular moves of data: its indices are not constant");
  const Array tall = random_array(random, {1000, 3});
  std::vector<int64_t> odd;
  for (int64_t i = 1; i < 1000; i += 2) odd.push_back(i);
  Node scattered("Gather");
  scattered.operand(tall).integers(odd).result({500, 3});
  EXPECT_EQ(reason(scattered), "irregular moves of data: more than 64 runs of neighbours");
  Node unknown("Hann");
  unknown.operand(x).result({2, 3});
  EXPECT_EQ(reason(unknown), "there is no tile program for Hann");
  Node late("Relu");
  late.operand(x).late_result({2, -1});
  EXPECT_EQ(reason(late), "a shape depends on data: programs are made for concrete shapes");
  Node symbolic("Relu");
  symbolic.operand(x).result({2, 3}).symbolic();
  EXPECT_EQ(
      reason(symbolic),
      "its dimensions are symbols: programs are made for concrete shapes (fix the inputs' with --shape)");
  Node integers("Add");
  integers.integers({1, 2}).integers({3, 4}).result({2});
  EXPECT_EQ(reason(integers), "an operand whose elements are neither f32, f16 nor bytes");
  Node first("Softmax");
  first.operand(x).result({2, 3}).attr("axis", int64_t{0});
  EXPECT_EQ(reason(first), "its axis is not the last");
}

TEST(AicoreRefuses, MapsThatGrowOtherwise) {
  Random random(4);
  const Array x = random_array(random, {1, 2, 4, 4});
  auto resize = [&](std::vector<int64_t> out, const char* coordinates, const char* mode) {
    Node node("Resize");
    node.operand(x).absent().absent().integers(out).result(out);
    node.attr("coordinate_transformation_mode", coordinates).attr("mode", mode);
    return reason(node);
  };
  EXPECT_EQ(resize({1, 2, 8, 6}, "asymmetric", "nearest"), "it does not become larger by a whole factor");
  EXPECT_EQ(resize({1, 4, 8, 8}, "asymmetric", "nearest"), "it resizes other axes than the last two");
  EXPECT_EQ(resize({1, 2, 8, 8}, "tf_crop_and_resize", "linear"), "coordinates of mode tf_crop_and_resize");
  EXPECT_EQ(resize({1, 4, 8, 8}, "half_pixel", "linear"), "it resizes other axes than the last two");
  // Rounded to the nearest, ties down: positions 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3.
  EXPECT_EQ(resize({1, 2, 16, 16}, "asymmetric", "nearest"), "positions that do not repeat evenly");
  Node overlapping("ConvTranspose");
  overlapping.operand(x).operand(random_array(random, {2, 3, 3, 3}), true).result({1, 3, 9, 9});
  overlapping.attr("strides", {2, 2});
  EXPECT_EQ(reason(overlapping), "a transposed convolution whose windows overlap, leave gaps or are cut");
}

TEST(AicoreRefuses, WhatOverflowsItsBuffersWithTheFigures) {
  Random random(2);
  Node window("MaxPool");
  window.operand(random_array(random, {1, 1, 3, 20000})).result({1, 1, 1, 19998});
  window.attr("kernel_shape", {3, 3});
  EXPECT_NE(reason(window).find("a row of its result needs"), std::string::npos) << reason(window);
  EXPECT_NE(reason(window).find("bytes of UB, which has 262144"), std::string::npos) << reason(window);
  Node map("Conv");
  map.operand(random_array(random, {1, 512, 3, 700}))
      .operand(random_array(random, {16, 512, 3, 3}), true)
      .result({1, 16, 1, 698});
  map.attr("pads", {0, 0, 0, 0});
  EXPECT_NE(reason(map).find("no tile of it fits the buffers of a core (L1 has 1048576 bytes"),
            std::string::npos)
      << reason(map);
}

}  // namespace
}  // namespace aicore::test
