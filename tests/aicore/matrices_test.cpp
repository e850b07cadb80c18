// FRACTAL_NZ between tasks: products, soft-max, element-wise code, joins and cuts in all the formats that are
// offered for them, sizes odd as a rule, against sums in double precision; views and conversions bit by bit.
// What fills up rows and columns has to be zero in whatever a program writes (Node::run).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>

#include "node.h"

namespace aicore::test {
namespace {

constexpr double kTolerance = 1e-3;
// From 33 rows and 40 columns on what fills a matrix up is less than half of it, so that it is offered.

std::string words(uint64_t seed, const std::vector<int64_t>& dims) {
  std::ostringstream out;
  out << "seed " << seed << " dims";
  for (int64_t d : dims) out << ' ' << d;
  return out.str();
}

// As the model has it and in every combination of formats that is offered.
void run_all(Node& node, const Chip& chip, const std::vector<double>& expected, double tolerance,
             uint32_t least_options) {
  const uint32_t options = node.options(chip);
  ASSERT_GE(options, least_options);
  for (uint32_t option = 0; option <= options && !testing::Test::HasFailure(); ++option) {
    node.take(option);
    const auto got = node.run(chip);
    ASSERT_TRUE(got) << "option " << option;
    if (tolerance > 0)
      expect_close(*got, expected, tolerance, node.name + " in option " + std::to_string(option));
    else
      ASSERT_EQ(*got, expected) << node.name << " in option " << option;
  }
}

TEST(AicoreMatrices, ConversionsAreExact) {
  for_seeds(160, 61000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    std::vector<int64_t> dims;
    for (int64_t rank = pick(random, 2, 4); rank > 0; --rank)
      dims.push_back(rank > 2 ? pick(random, 1, 6) : pick(random, 1, rank == 1 ? 300 : 90));
    const regie_format there =
        matrix_format(static_cast<int32_t>(pick(random, 2, static_cast<int64_t>(dims.size()))));
    const regie_format here = seed % 2 ? kHalfFormat : kPlainFormat;
    const Array x = random_array(random, dims, 9);
    for (bool back : {false, true}) {
      Node node("regie.Reformat");
      node.operand(x).operand_in(back ? there : here).result(dims).result_in(back ? here : there);
      SCOPED_TRACE(words(seed, dims));
      const auto got = node.run(chip);
      ASSERT_TRUE(got);
      EXPECT_EQ(*got, x.values);
    }
  });
}

// Bias, addend and activation, rows along other axes than the last but one, batches of one right matrix or
// with one each, either of them transposed.
TEST(AicoreMatrices, Products) {
  for_seeds(60, 62000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const bool computed = seed % 3 == 0, turned = pick(random, 0, 1);
    const int64_t batch = pick(random, 1, 3), m = pick(random, 9, 90), k = pick(random, 9, 90),
                  n = pick(random, 9, 90);
    const bool rows_outside = !computed && batch == 1 && seed % 5 == 1;  // [m, 1, k]
    auto dims = [&](int64_t columns) {
      return rows_outside ? std::vector<int64_t>{m, 1, columns} : std::vector<int64_t>{batch, m, columns};
    };
    const Array a = random_array(random, dims(k)), r = random_array(random, dims(n)),
                bias = random_array(random, {n});
    std::vector<int64_t> right = turned ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n};
    if (computed) right.insert(right.begin(), batch);
    const Array b = random_array(random, right);
    Node node("regie.FusedMatMul");
    node.operand(a).operand(b, !computed).operand(bias).operand(r).result(dims(n));
    node.attr("transB", int64_t{turned}).attr("activation", seed % 2 ? "Sigmoid" : "Relu");
    std::vector<double> expected;
    for (int64_t i = 0; i < batch * m * n; ++i) {
      const int64_t c = i % n, row = i / n, image = computed ? i / n / m : 0;
      double sum = bias.values[static_cast<size_t>(c)] + r.values[static_cast<size_t>(i)];
      for (int64_t d = 0; d < k; ++d)
        sum += a.values[static_cast<size_t>(row * k + d)] *
               b.values[static_cast<size_t>(image * k * n + (turned ? c * k + d : d * n + c))];
      expected.push_back(seed % 2 ? 1 / (1 + std::exp(-sum)) : std::max(0.0, sum));
    }
    SCOPED_TRACE(words(seed, {batch, m, k, n, computed, turned, rows_outside}));
    run_all(node, chip, expected, kTolerance, 7);
  });
}

TEST(AicoreMatrices, SoftmaxAndNormalisation) {
  for_seeds(80, 63000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const bool soft = seed % 2;
    std::vector<int64_t> dims{pick(random, 1, 5), pick(random, 33, 70), pick(random, 40, 200)};
    if (seed % 5 == 0) dims = {dims[1], 1, dims[2]};
    const int64_t w = dims.back();
    const Array x = random_array(random, dims, 4), scale = random_array(random, {w}),
                bias = random_array(random, {w});
    Node node(soft ? "Softmax" : "LayerNormalization");
    node.operand(x);
    if (!soft) node.operand(scale, true).operand(bias, true);
    node.result(dims).attr("axis", int64_t{-1});
    std::vector<double> expected;
    for (int64_t row = 0; row < x.count() / w; ++row) {
      const double* v = x.values.data() + row * w;
      const double most = *std::max_element(v, v + w),
                   mean = std::accumulate(v, v + w, 0.0) / static_cast<double>(w);
      double sum = 0, square = 0;
      for (int64_t i = 0; i < w; ++i) {
        sum += std::exp(v[i] - most);
        square += (v[i] - mean) * (v[i] - mean);
      }
      for (int64_t i = 0; i < w; ++i)
        expected.push_back(soft ? std::exp(v[i] - most) / sum
                                : (v[i] - mean) / std::sqrt(square / static_cast<double>(w) + 1e-5) *
                                          scale.values[static_cast<size_t>(i)] +
                                      bias.values[static_cast<size_t>(i)]);
    }
    SCOPED_TRACE(words(seed, dims));
    run_all(node, chip, expected, kTolerance, 4);
  });
}

// One element a column and one for all broadcast. Half of zero is not zero.
TEST(AicoreMatrices, ElementWise) {
  for_seeds(60, 64000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const std::vector<int64_t> dims{pick(random, 1, 3), 16 * pick(random, 1, 4), pick(random, 9, 100)};
    const Array a = random_array(random, dims), b = random_array(random, dims),
                c = random_array(random, {seed % 2 ? dims.back() : 1});
    Node node("regie.Pointwise");
    node.operand(a).operand(b).operand(c, seed % 3 == 0).result(dims);
    node.body("Add", {0, 1}).body("Mul", {3, 2}).body("Sigmoid", {4});
    std::vector<double> expected;
    for (size_t i = 0; i < a.values.size(); ++i)
      expected.push_back(1 / (1 + std::exp(-(a.values[i] + b.values[i]) * c.values[i % c.values.size()])));
    SCOPED_TRACE(words(seed, dims));
    run_all(node, chip, expected, kTolerance, 3);
  });
}

// Heads: the last axis split, or joined, and carried past the rows. The bytes stay where they are, which a
// copy of them shows.
TEST(AicoreMatrices, Views) {
  uint32_t in_columns = 0;
  for_seeds(80, 65000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const int64_t batch = pick(random, 1, 3), rows = pick(random, 9, 60), heads = pick(random, 2, 4),
                  depth = pick(random, 0, 2) ? 16 * pick(random, 1, 3) : pick(random, 1, 40);
    const std::vector<int64_t> joined{batch, rows, heads * depth}, split{batch, rows, heads, depth},
        turned{batch, heads, rows, depth};
    const Array x = random_array(random, joined);
    std::vector<double> by_head(x.values.size());
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t d = i % depth, h = i / depth % heads, r = i / depth / heads % rows,
                    b = i / depth / heads / rows;
      by_head[static_cast<size_t>(((b * heads + h) * rows + r) * depth + d)] =
          x.values[static_cast<size_t>(i)];
    }
    SCOPED_TRACE(words(seed, split));
    Node apart("Reshape"), over("Transpose"), back("Transpose"), together("Reshape");
    const bool whole = depth % 16 == 0;
    apart.operand(x).integers(split).result(split);
    over.operand({split, x.values}).result(turned).attr("perm", std::vector<int64_t>{0, 2, 1, 3});
    back.operand({turned, by_head}).result(split).attr("perm", std::vector<int64_t>{0, 2, 1, 3});
    together.operand({split, x.values}).integers(joined).result(joined);
    // Rows of halves; and where heads are whole columns, in columns as well.
    run_all(apart, chip, x.values, 0, whole ? 2 : 1);
    run_all(over, chip, by_head, 0, whole ? 2 : 1);
    run_all(back, chip, x.values, 0, whole ? 2 : 1);
    run_all(together, chip, x.values, 0, whole ? 2 : 1);
    in_columns += whole;
  });
  EXPECT_GT(in_columns, 0u);
}

TEST(AicoreMatrices, PartsOfColumns) {
  for_seeds(60, 66000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    // No whole blocks of channels, which would be offered instead of halves.
    const int64_t batch = pick(random, 1, 3), rows = 16 * pick(random, 2, 4) + pick(random, 1, 15);
    std::vector<int64_t> widths;
    for (int64_t parts = pick(random, 1, 3); parts > 0; --parts) widths.push_back(16 * pick(random, 1, 4));
    widths.push_back(pick(random, 40, 70));
    const int64_t all = std::accumulate(widths.begin(), widths.end(), int64_t{0});
    const Array whole = random_array(random, {batch, rows, all});
    Node join("Concat"), split("Split"), slice("Slice");
    join.attr("axis", int64_t{-1}).result(whole.dims);
    split.attr("axis", int64_t{2}).operand(whole);
    std::vector<Array> pieces;
    int64_t first = 0;
    for (int64_t w : widths) {
      pieces.push_back({{batch, rows, w}, {}});
      for (int64_t i = 0; i < batch * rows * w; ++i)
        pieces.back().values.push_back(whole.values[static_cast<size_t>(i / w * all + first + i % w)]);
      join.operand(pieces.back());
      split.result(pieces.back().dims);
      first += w;
    }
    slice.operand(whole)
        .integers({all - widths.back()})
        .integers({all})
        .integers({-1})
        .result(pieces.back().dims);
    SCOPED_TRACE(words(seed, whole.dims));
    run_all(join, chip, whole.values, 0, 2);
    run_all(slice, chip, pieces.back().values, 0, 2);
    run_all(split, chip, pieces.front().values, 0, 2);
    for (size_t i = 0; i < pieces.size(); ++i) EXPECT_EQ(split.value_of(i), pieces[i].values) << i;
  });
}

// What reads positions and channels has no columns, and a right matrix has its rows where the product wants
// them.
TEST(AicoreMatrices, Refused) {
  const Chip chip = chip_of_target("ascend910a-sim");
  Random random(1);
  Node pool("MaxPool"), product("MatMul");
  pool.operand(random_array(random, {1, 16, 32, 32})).operand_in(matrix_format(2)).result({1, 16, 16, 16});
  pool.attr("kernel_shape", std::vector<int64_t>{2, 2}).attr("strides", std::vector<int64_t>{2, 2});
  product.operand(random_array(random, {2, 32, 48})).operand(random_array(random, {2, 48, 16}));
  product.operand_in(matrix_format(3)).result({2, 32, 16});
  for (Node* node : {&pool, &product}) EXPECT_THROW(node->lower(chip), regie::sdk::Failure);
}

}  // namespace
}  // namespace aicore::test
