// Formats between tasks: what element-wise code, pooling, joins and conversions make of blocks of channels
// and of halves, against the same in row-major order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "bytes.h"

namespace aicore::test {
namespace {

constexpr double kTolerance = 1e-3;
constexpr regie_format kAll[] = {kPlainFormat, kHalfFormat, kBlockedFormat, kBlockedFormat | kHalfFormat};

std::string words(uint64_t seed, const std::vector<int64_t>& dims, const std::string& what) {
  std::ostringstream out;
  out << "seed " << seed << " dims";
  for (int64_t d : dims) out << ' ' << d;
  out << ' ' << what;
  return out.str();
}
std::vector<int64_t> any_dims(Random& random) {
  std::vector<int64_t> dims{pick(random, 1, 3), 16 * pick(random, 1, 5)};
  if (pick(random, 0, 1)) dims[1] = pick(random, 1, 80);  // as a rule not whole blocks
  const int64_t axes = pick(random, 1, 2);
  for (int64_t d = 0; d < axes; ++d) dims.push_back(pick(random, 1, axes == 1 ? 900 : 40));
  return dims;
}

// From any format to any other. Values are halves, so nothing is lost on the way.
TEST(AicoreFormats, ConversionsAreExact) {
  for_seeds(240, 51000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const std::vector<int64_t> dims = any_dims(random);
    const regie_format from = kAll[seed % 4], to = kAll[seed / 4 % 4];
    const Array x = random_array(random, dims, 9);
    SCOPED_TRACE(words(seed, dims, regie::sdk::spell_layout(from) + " to " + regie::sdk::spell_layout(to)));
    Node node("regie.Reformat");
    node.operand(x).operand_in(from).result(dims).result_in(to);
    const auto got = node.run(chip);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, x.values);
  });
}

// Bytes to blocks of 32 channels and back.
TEST(AicoreFormats, ConversionsOfBytesAreExact) {
  for_seeds(80, 51500, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims = any_dims(random);
    dims[1] = 32 * pick(random, 1, 4);
    const auto elem = static_cast<regie_elem>(seed % 4 < 2 ? REGIE_U8 : REGIE_I8);
    const regie_format from = seed % 2 ? kByteBlockedFormat : kPlainFormat,
                       to = seed % 2 ? kPlainFormat : kByteBlockedFormat;
    const Array x = random_bytes(random, dims, elem);
    SCOPED_TRACE(words(seed, dims, regie::sdk::spell_layout(from) + " to " + regie::sdk::spell_layout(to)));
    Node node("regie.Reformat");
    node.operand(x, false, elem).operand_in(from).result(dims, elem).result_in(to);
    const auto got = node.run(chip);
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, x.values);
  });
}

// Halves are rounded to nearest even; f32 in another order is moved bit by bit.
TEST(AicoreFormats, ConversionsRoundToNearestOrNotAtAll) {
  Array x{{1, 16, 3, 5}, {}};
  for (int64_t i = 0; i < 240; ++i) x.values.push_back(static_cast<float>(1 + i / 240.0 / 7));
  for (regie_format to : {kBlockedFormat, kBlockedFormat | kHalfFormat, kHalfFormat}) {
    Node node("regie.Reformat");
    node.operand(x).result(x.dims).result_in(to);
    const auto got = node.run(chip_of_target("ascend910a-sim"));
    ASSERT_TRUE(got);
    for (size_t i = 0; i < x.values.size(); ++i) {
      // Between 1 and 2 halves are 1/1024 apart; nearbyint rounds ties to even.
      const double half = std::nearbyint(x.values[i] * 1024) / 1024;
      EXPECT_EQ((*got)[i], is_half(to) ? half : x.values[i]) << i;
    }
  }
}

TEST(AicoreFormats, Channels) {
  EXPECT_THROW(Node("regie.Reformat")
                   .operand({{1, 24}, std::vector<double>(24, 1)})
                   .result({1, 24})
                   .result_in(kBlockedFormat)
                   .lower(chip_of_target("ascend910a-sim")),
               regie::sdk::Failure);
  // A format is offered where it takes no more bytes than row-major: padded blocks as halves, from 8 channels
  // on.
  Random random(3);
  auto offered = [&](int64_t channels) {
    Node node("Relu");
    node.operand(random_array(random, {1, channels, 4, 4})).result({1, channels, 4, 4});
    return node.options(chip_of_target("ascend910a-sim"));
  };
  EXPECT_EQ(offered(32), 7u);  // f32 and halves, either side, in either order
  EXPECT_EQ(offered(24), 4u);
  EXPECT_EQ(offered(8), 4u);
  EXPECT_EQ(offered(7), 3u);
}

// One element a channel, one a channel and image (a gate), one a position: what broadcasts is row-major.
TEST(AicoreFormats, ElementWise) {
  for_seeds(120, 52000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims = any_dims(random);
    const Array a = random_array(random, dims), b = random_array(random, dims);
    std::vector<int64_t> small(dims.size(), 1);
    small[1] = dims[1];
    if (seed % 3 == 0) small[0] = dims[0];
    if (seed % 3 == 1) small[1] = 1;
    const Array c = random_array(random, small);
    Node node("regie.Pointwise");
    node.operand(a).operand(b).operand(c, seed % 2 == 0).result(dims);
    // Of zeros, half: padding has to be made zero again.
    const bool sigmoid = seed / 3 % 2;
    node.body("Add", {0, 1}).body("Mul", {3, 2}).body(sigmoid ? "Sigmoid" : "Relu", {4});
    std::vector<double> expected;
    const int64_t map = a.count() / dims[0] / dims[1];
    for (int64_t i = 0; i < a.count(); ++i) {
      const int64_t channel = i / map % dims[1], image = i / map / dims[1];
      const int64_t at = (small[0] == 1 ? 0 : image) * small[1] + (small[1] == 1 ? 0 : channel);
      const auto e = static_cast<size_t>(i);
      const double v = (a.values[e] + b.values[e]) * c.values[static_cast<size_t>(at)];
      expected.push_back(sigmoid ? 1 / (1 + std::exp(-v)) : std::max(0.0, v));
    }
    SCOPED_TRACE(words(seed, dims, "element-wise"));
    ASSERT_GE(node.options(chip), 2u);  // blocks, halves, both
    node.take(0);
    check(node, chip, expected, kTolerance);
  });
}

// Constants of the result's shape are stored in the format that its program reads.
TEST(AicoreFormats, ConstantsAreStoredInBlocks) {
  for_seeds(40, 56000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims = any_dims(random);
    dims.back() += 1;
    dims[1] += 8;
    const Array x = random_array(random, dims), c = random_array(random, dims);
    Node node("Add");
    node.operand(x).operand(c, true).result(dims);
    std::vector<double> expected;
    for (size_t i = 0; i < x.values.size(); ++i) expected.push_back(x.values[i] + c.values[i]);
    SCOPED_TRACE(words(seed, dims, "constant"));
    const uint32_t options = node.options(chip);
    ASSERT_EQ(options, dims[1] % 16 ? 4u : 7u);
    for (uint32_t option = 0; option <= options; ++option) {
      node.take(option);
      const auto got = node.run(chip);
      ASSERT_TRUE(got);
      expect_close(*got, expected, kTolerance, node.name);
    }
  });
}

TEST(AicoreFormats, ReductionsOfPositions) {
  const char* ops[] = {"GlobalAveragePool", "GlobalMaxPool", "ReduceMean",
                       "ReduceSum",         "ReduceMax",     "ReduceMin"};
  for_seeds(120, 53000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims = any_dims(random);
    dims.back() += 1;
    const std::string op = ops[seed % std::size(ops)];
    const Array x = random_array(random, dims, 4);
    std::vector<int64_t> out{dims[0], dims[1]}, axes;
    for (size_t d = 2; d < dims.size(); ++d) out.push_back(1), axes.push_back(static_cast<int64_t>(d));
    const bool flat = op[0] == 'R' && seed % 2;
    if (flat) out.resize(2);
    Node node(op);
    node.operand(x);
    if (op[0] == 'R') node.integers(axes).attr("keepdims", int64_t{!flat});
    node.result(out);
    std::vector<double> expected;
    const int64_t map = x.count() / dims[0] / dims[1];
    for (int64_t c = 0; c < dims[0] * dims[1]; ++c) {
      const double* v = x.values.data() + c * map;
      double sum = 0;
      for (int64_t i = 0; i < map; ++i) sum += v[i];
      expected.push_back(op.ends_with("Max") || op == "GlobalMaxPool" ? *std::max_element(v, v + map)
                         : op == "ReduceMin"                          ? *std::min_element(v, v + map)
                         : op == "ReduceSum"                          ? sum
                                                                      : sum / static_cast<double>(map));
    }
    SCOPED_TRACE(words(seed, dims, op));
    // Sums of many elements nearly cancel: an absolute bound where halves are handed on.
    const uint32_t options = node.options(chip);
    ASSERT_GE(options, 2u);
    for (uint32_t option = 0; option <= options; ++option) {
      node.take(option);
      const auto got = node.run(chip);
      ASSERT_TRUE(got);
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR((*got)[i], expected[i], 1e-3 * std::max(1.0, std::abs(expected[i])))
            << "option " << option;
    }
  });
}

TEST(AicoreFormats, PartsAlongBatchAndChannels) {
  for_seeds(90, 54000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims = any_dims(random);
    dims.back() += 1;
    const size_t axis = seed % 2;
    dims[axis] = axis == 1 ? 32 : 2;
    std::vector<int64_t> part = dims, joined = dims;
    const int64_t parts = pick(random, 1, 4);
    joined[axis] *= parts;
    const Array whole = random_array(random, joined);
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < dims.size(); ++d) (d < axis ? outer : inner) *= dims[d];
    std::vector<Array> pieces(static_cast<size_t>(parts), Array{part, {}});
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < parts; ++k)
        for (int64_t e = 0; e < inner; ++e)
          pieces[static_cast<size_t>(k)].values.push_back(
              whole.values[static_cast<size_t>((o * parts + k) * inner + e)]);
    SCOPED_TRACE(words(seed, joined, "parts"));
    Node join("Concat"), split("Split"), slice("Slice");
    join.attr("axis", static_cast<int64_t>(axis)).result(joined);
    split.attr("axis", static_cast<int64_t>(axis)).operand(whole);
    for (const Array& p : pieces) join.operand(p), split.result(p.dims);
    slice.operand(whole).integers({(parts - 1) * dims[axis]}).integers({parts * dims[axis]});
    slice.integers({static_cast<int64_t>(axis)}).result(part);
    for (Node* node : {&join, &split, &slice}) {
      const uint32_t options = node->options(chip);
      // Blocks of f32, of halves; where channels do not fill blocks, blocks of halves, rows of halves.
      ASSERT_EQ(options, dims[1] % 16 && dims[1] < 8 ? 1u : 2u);
      for (uint32_t option = 0; option <= options; ++option) {
        node->take(option);
        ASSERT_TRUE(node->run(chip));
        if (node != &split) {
          EXPECT_EQ(node->value_of(0), node == &join ? whole.values : pieces.back().values);
        }
        for (size_t k = 0; k < pieces.size() && node == &split; ++k)
          EXPECT_EQ(node->value_of(k), pieces[k].values) << k;
      }
    }
  });
}

// Channels that fill no blocks: the last part may, with the padding of the whole; one in the middle may not.
TEST(AicoreFormats, PartsOfChannelsThatDoNotFillBlocks) {
  for_seeds(60, 55000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const int64_t n = pick(random, 1, 3), map = pick(random, 2, 50);
    std::vector<int64_t> channels;
    for (int64_t parts = pick(random, 1, 3); parts > 0; --parts) channels.push_back(16 * pick(random, 1, 3));
    channels.push_back(pick(random, 8, 40));
    int64_t all = 0;
    for (int64_t c : channels) all += c;
    const Array whole = random_array(random, {n, all, map});
    Node join("Concat"), split("Split"), slice("Slice"), early("Slice");
    join.attr("axis", int64_t{1}).result(whole.dims);
    split.attr("axis", int64_t{1}).operand(whole);
    std::vector<Array> pieces;
    int64_t first = 0;
    for (int64_t c : channels) {
      pieces.push_back({{n, c, map}, {}});
      for (int64_t i = 0; i < n * c * map; ++i)
        pieces.back().values.push_back(
            whole.values[static_cast<size_t>((i / (c * map) * all + first + i / map % c) * map + i % map)]);
      join.operand(pieces.back());
      split.result(pieces.back().dims);
      first += c;
    }
    slice.operand(whole)
        .integers({all - channels.back()})
        .integers({all})
        .integers({1})
        .result(pieces.back().dims);
    SCOPED_TRACE(words(seed, whole.dims, "parts"));
    for (Node* node : {&join, &split, &slice}) {
      const uint32_t options = node->options(chip);
      ASSERT_EQ(options, 2u) << "of " << channels.back();
      for (uint32_t option = 0; option <= options; ++option) {
        node->take(option);
        ASSERT_TRUE(node->run(chip));
        if (node == &join) {
          EXPECT_EQ(node->value_of(0), whole.values);
        }
        if (node == &slice) {
          EXPECT_EQ(node->value_of(0), pieces.back().values);
        }
        for (size_t k = 0; k < pieces.size() && node == &split; ++k)
          EXPECT_EQ(node->value_of(k), pieces[k].values) << k;
      }
    }
    early.operand(whole).integers({0}).integers({all - 1}).integers({1}).result({n, all - 1, map});
    early.operand_in(kPlainFormat).result_in(kBlockedFormat | kHalfFormat);
    EXPECT_THROW(early.lower(chip), regie::sdk::Failure);
  });
}

// A convolution reads padding, and writes it: infinite sums of one channel are not to spoil the others by way
// of zero weights. Two in a row, by hand.
TEST(AicoreFormats, PaddingStaysZeroWhateverIsComputed) {
  Array x{{1, 24, 3, 3}, std::vector<double>(216, 1)}, w{{24, 24, 1, 1}, std::vector<double>(576, 0)};
  for (int64_t c = 0; c < 24; ++c) w.values[static_cast<size_t>(c * 25)] = c == 5 ? 60000 : 1;
  x.values[5 * 9] = 60000;
  Node node("regie.FusedConv");
  node.operand(x).operand_in(kBlockedFormat | kHalfFormat).operand(w, true);
  node.attr("activation", "Sigmoid").result(x.dims).result_in(kBlockedFormat | kHalfFormat);
  const auto got = node.run(chip_of_target("ascend910a-sim"));
  ASSERT_TRUE(got);
  EXPECT_NEAR((*got)[0], 1 / (1 + std::exp(-1.0)), 1e-3);
  EXPECT_EQ((*got)[5 * 9], 1);
}

}  // namespace
}  // namespace aicore::test
