// Rows that UB does not hold, and rows fewer than cores: cut into pieces, against double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <sstream>

#include "half.h"
#include "long_rows.h"
#include "node.h"
#include "rows_reference.h"
#include "support/sanitized.h"

namespace aicore::test {
namespace {

constexpr double kHalves = 1e-3;
// Of f32 results what is left is f32's own error, and that of sums of a hundred thousand elements.
constexpr double kFloats = 2e-5;

struct Case {
  std::string op;
  std::vector<int64_t> dims;  // the last is the row, of global pooling the last two
  regie_elem elem = REGIE_F32;
  bool scale = true, bias = true;
  double offset = 0, spread = 4;
};

// Halves, so that f16 and f32 hold them.
double near_half(double v) { return from_half(to_half(static_cast<float>(v))); }

// With `formats`: as halves too, which shares of a great many elements are too small for.
void compare(const Case& c, const Chip& chip, Random& random, bool masked = false, bool formats = true) {
  Array x = random_array(random, c.dims, c.spread);
  for (double& v : x.values) v = near_half(v + c.offset);
  const bool pools = c.op[0] == 'G', reduces = pools || c.op[0] == 'R';
  const int64_t width = pools ? c.dims[c.dims.size() - 1] * c.dims[c.dims.size() - 2] : c.dims.back();
  if (masked)  // long runs, longer than any piece, and some by themselves; never a row's first
    for (size_t i = 0; i < x.values.size(); ++i) {
      const auto at = static_cast<int64_t>(i) % width;
      if (at && (at > width / 3 || i % 5 == 0))
        x.values[i] = i % 2 ? -INFINITY : static_cast<double>(std::numeric_limits<float>::lowest());
    }
  Node node(c.op, c.elem);
  node.operand(x);
  const Array scale = random_array(random, {width}), bias = random_array(random, {width});
  std::vector<int64_t> out = c.dims;
  if (reduces) out.back() = 1;
  if (pools) out[out.size() - 2] = 1;
  if (c.op[0] == 'R') node.integers({-1});
  const bool normalises = c.op == "LayerNormalization";
  if (normalises) {
    node.operand(scale);
    if (c.bias) node.operand(bias);
    node.attr("epsilon", 1e-5);
  }
  node.result(out);
  const std::vector<double> expected = along_rows(c.op, x.values, width, scale.values,
                                                  normalises && c.bias ? bias.values : std::vector<double>{});
  std::ostringstream words;
  words << c.op << (c.elem == REGIE_F16 ? " f16" : " f32");
  for (int64_t d : c.dims) words << ' ' << d;
  words << " on " << chip.cores << " cores";
  SCOPED_TRACE(words.str());
  try {
    const auto got = node.run(chip);
    if (got) expect_close(*got, expected, c.elem == REGIE_F16 ? kHalves : kFloats, node.name);
  } catch (const regie::sdk::Failure& f) {
    ADD_FAILURE() << f.message;
  }
  if (formats) check(node, chip, expected, kHalves);
}

const char* const kOps[] = {"Softmax",   "LogSoftmax", "LayerNormalization", "ReduceSum",    "ReduceMean",
                            "ReduceMax", "ReduceMin",  "GlobalAveragePool",  "GlobalMaxPool"};

TEST(Aicore, LongRows) {
  for_seeds(120, 61000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    Case c;
    c.op = kOps[seed % std::size(kOps)];
    c.elem = pick(random, 0, 2) == 0 ? REGIE_F16 : REGIE_F32;
    c.bias = pick(random, 0, 1);
    // Sums of halves of random sign vanish beside what they are sums of.
    c.offset = c.op == "ReduceSum" || c.op == "ReduceMean" || c.op == "GlobalAveragePool" ? 3 : 0;
    if (c.op == "ReduceSum") c.offset = c.spread = 0.25;  // halves hold the sum
    const int64_t width = pick(random, 0, 2) ? pick(random, 20000, 120000) : pick(random, 2000, 40000);
    const int64_t rows = pick(random, 1, 200000 / width + 1);
    c.dims = {rows, width};
    if (c.op[0] == 'G') {
      const int64_t across = pick(random, 1, 300);
      c.dims = {1, rows, std::max<int64_t>(1, width / across), across};
    }
    const bool masked = c.op == "Softmax" && c.elem == REGIE_F32 && seed % 4 != 0;
    compare(c, chip, random, masked, c.op != "Softmax");
  });
}

// One row is the work of all cores, not of one.
TEST(AicoreLongRows, AreSharedOut) {
  Random random(5);
  for (const char* op : {"Softmax", "LayerNormalization", "ReduceMean"}) {
    Rows p;
    p.kind = op[0] == 'S' ? RowsKind::kSoftmax : op[0] == 'L' ? RowsKind::kNormalise : RowsKind::kMean;
    p.width = 1000003;
    const Chip chip = chip_of_target("ascend910a-sim");
    const auto cut = cut_long_rows(p, chip);
    ASSERT_TRUE(cut) << op;
    EXPECT_EQ(cut->cores(), 32) << op;
    EXPECT_GE(cut->chunk * cut->pieces, p.width);
    EXPECT_LT(cut->chunk * (cut->pieces - 1), p.width);
    Case c;
    c.op = op;
    c.dims = {1, p.width};
    c.offset = 1;
    compare(c, chip, random, false, false);
  }
}

// The squares about a mean that is a hundred times what the elements differ by: f32 sums of squares would
// lose it all.
TEST(AicoreLongRows, NormaliseFarFromZero) {
  Random random(6);
  for (int64_t width : {70001, 262144}) {
    Case c;
    c.op = "LayerNormalization";
    c.dims = {2, width};
    c.offset = 500;
    c.spread = 2;
    compare(c, chip_of_target("ascend910b3-sim"), random);
  }
}

// A row of which one piece outweighs all others, and the maximum is in the last.
TEST(AicoreLongRows, SoftmaxOfOneGreatElement) {
  const int64_t width = 90000;
  for (int64_t at : {int64_t{0}, width / 2, width - 1}) {
    Array x{{1, width}, std::vector<double>(static_cast<size_t>(width), -2)};
    x.values[static_cast<size_t>(at)] = 12;
    Node node("Softmax");
    node.operand(x).result(x.dims);
    const auto got = node.run(chip_of_target("ascend910b3-sim"));
    ASSERT_TRUE(got);
    expect_close(*got, along_rows("Softmax", x.values, width), 1e-6, node.name);
  }
}

// What the engine predicts is what the machine takes, or near it.
TEST(AicoreLongRows, PredictedTimes) {
  Random random(7);
  constexpr int64_t kRows[] = {24, 1, 96};
  for (const char* target : {"ascend310-sim", "ascend910a-sim", "ascend910b3-sim"})
    for (const char* op : kOps)
      for (int64_t rows : std::span(kRows).first<regie::test::cases(std::size(kRows))>()) {
        const Chip chip = chip_of_target(target);
        const bool pools = op[0] == 'G';
        Array x = random_array(
            random, pools ? std::vector<int64_t>{1, rows, 160, 160} : std::vector<int64_t>{rows, 25600});
        Node node(op);
        node.operand(x);
        if (op[0] == 'R') node.integers({1});
        if (op[0] == 'L' && op[1] == 'a') node.operand(random_array(random, {25600}));
        node.result(pools          ? std::vector<int64_t>{1, rows, 1, 1}
                    : op[0] == 'R' ? std::vector<int64_t>{rows, 1}
                                   : x.dims);
        for (uint32_t option = 0, most = node.options(chip); option <= most; ++option) {
          node.take(option);
          ASSERT_TRUE(node.run(chip));
          EXPECT_LT(node.predicted, 1.35 * node.cycles) << target << ' ' << node.name << ' ' << rows;
          EXPECT_GT(node.predicted, 0.75 * node.cycles) << target << ' ' << node.name << ' ' << rows;
        }
      }
}

}  // namespace
}  // namespace aicore::test
