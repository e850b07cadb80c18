// Convolutions and matrix products of random shapes, against sums in double precision of the same halves.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "convolution.h"

namespace aicore::test {
namespace {

constexpr double kTolerance = 2e-3;
// Of operands in two halves, which the cube multiplies to 22 bits; activations are those of vector_math.h.
constexpr double kFineTolerance = 2e-5;

struct Activation {
  const char* name;
  double alpha, beta;
  double (*of)(double x, double alpha, double beta);
};
const Activation kActivations[] = {
    {"", 0, 0, [](double x, double, double) { return x; }},
    {"Relu", 0, 0, [](double x, double, double) { return std::max(x, 0.0); }},
    {"Clip", -0.5, 6, [](double x, double a, double b) { return std::clamp(x, a, b); }},
    {"LeakyRelu", 0.25, 0, [](double x, double a, double) { return x > 0 ? x : a * x; }},
    {"Sigmoid", 0, 0, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"Tanh", 0, 0, [](double x, double, double) { return std::tanh(x); }},
    {"HardSwish", 0, 0, [](double x, double, double) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {"Swish", 0, 0, [](double x, double, double) { return x / (1 + std::exp(-x)); }},
    {"Gelu", 0, 0, [](double x, double, double) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
};

std::string text(std::initializer_list<int64_t> list) {
  std::ostringstream out;
  for (int64_t i : list) out << i << ' ';
  return out.str();
}

Array plain_array(Random& random, std::vector<int64_t> dims) { return random_array(random, std::move(dims)); }

// As a folded batch normalisation leaves weights: each column times a number of its own, rounded to f32.
// Columns are the first axis, or the last of matrices of `rows`.
void scale_columns(Random& random, Array& weights, int64_t columns, int64_t rows) {
  const int64_t each = weights.count() / columns;
  std::vector<float> factors;
  for (int64_t c = 0; c < columns; ++c)
    factors.push_back(static_cast<float>(pick(random, 1, 1'000'003)) * 1e-5F);
  for (int64_t i = 0; i < weights.count(); ++i)
    weights.values[static_cast<size_t>(i)] = static_cast<float>(weights.values[static_cast<size_t>(i)]) *
                                             factors[static_cast<size_t>(rows == 1 ? i / each : i % columns)];
}

// False where what was drawn is none: a window larger than its map, or more work than a quick test should do.
// `fine`: the left operand in two halves.
bool convolution(uint64_t seed, Tally& tally, bool blocks = false, bool fine = false) {
  Random random(seed);
  Chip chip = any_chip(random);
  chip.two_halves = fine;
  Convolution c;
  c.draw_channels(random, 50, 60, 20);
  if (blocks && c.depthwise) {
    const int64_t times = c.out / c.in;
    c.group = c.in = round_up(c.in, 16);
    c.out = c.in * times;
  } else if (blocks) {
    c.in = round_up(c.in, 16 * c.group);
    c.out = round_up(c.out, 16 * c.group);
  }
  const int64_t window = pick(random, 0, 4) ? 4 : 9;
  if (!c.draw_map(random, window, window, 4, 3)) return false;
  const int64_t most = pick(random, 0, 9) ? 1'000'000 : 20'000'000;
  if (c.products() > most) return false;
  const regie_elem elem = pick(random, 0, 3) == 0 && !fine ? REGIE_F16 : REGIE_F32;
  Array weight = random_array(random, c.w_dims());
  const bool scaled = elem == REGIE_F32 && pick(random, 0, 2) == 0;
  if (scaled) scale_columns(random, weight, c.out, 1);
  const Array x = (fine ? fine_array : plain_array)(random, c.x_dims()), bias = random_array(random, {c.out}),
              residual = random_array(random, c.y_dims());
  const bool with_bias = pick(random, 0, 1), with_residual = pick(random, 0, 2) == 0;
  const Activation& act = kActivations[pick(random, 0, static_cast<int64_t>(std::size(kActivations)) - 1)];
  Node node("regie.FusedConv", elem);
  node.operand(c.shaped(x)).operand(c.shaped(weight), true);
  if (with_bias || with_residual) with_bias ? node.operand(bias, true) : node.absent();
  if (with_residual) node.operand(c.shaped(residual));
  node.result(c.spatial(c.y_dims()));
  node.attr("activation", act.name).attr("activation_alpha", act.alpha).attr("activation_beta", act.beta);
  c.put_attrs(node);
  std::vector<double> expected;
  c.each_element([&](int64_t b, int64_t o, int64_t i) {
    double sum = with_bias ? bias.values[static_cast<size_t>(o)] : 0;
    c.each_product(b, o, i, [&](size_t left, size_t right) { sum += x.values[left] * weight.values[right]; });
    if (with_residual) sum += residual.values[expected.size()];
    expected.push_back(act.of(sum, act.alpha, act.beta));
  });
  SCOPED_TRACE("seed " + std::to_string(seed) + ' ' + c.text() + ' ' + act.name +
               (with_residual ? " residual" : "") + (scaled ? " scaled" : "") +
               (elem == REGIE_F16 ? " f16" : ""));
  tally.check(node, chip, expected, fine ? kFineTolerance : kTolerance);
  return true;
}

TEST(Aicore, Convolutions) {
  Tally tally;
  const int64_t count = shapes(200);
  uint64_t seed = 100'000;
  for (int64_t i = 0; i < count && !HasFailure();) i += convolution(seed++, tally);
  tally.finish("convolutions");
}

TEST(Aicore, ConvolutionsOfWholeBlocks) {
  Tally tally;
  const int64_t count = shapes(150);
  uint64_t seed = 300'000;
  for (int64_t i = 0; i < count && !HasFailure();) i += convolution(seed++, tally, true);
  tally.finish("convolutions of whole blocks");
}

TEST(Aicore, ConvolutionsOfTwoHalves) {
  Tally tally;
  const int64_t count = shapes(150);
  uint64_t seed = 400'000;
  for (int64_t i = 0; i < count && !HasFailure(); ++seed) i += convolution(seed, tally, seed % 2, true);
  tally.finish("convolutions of two halves");
}

// It reaches beyond the channels, in several tiles of columns: so must what lies in UB for each column, as
// what lies behind it is another pipe's.
TEST(Aicore, ALastGroupThatIsNotFull) {
  for_seeds(60, 15'000, [](uint64_t seed, Random& random) {
    Chip chip = any_chip(random);
    chip.two_halves = seed % 3 == 0;
    const int64_t n = pick(random, 1, 4), groups = pick(random, 17, 24), times = pick(random, 3, 8),
                  out = groups * times, h = pick(random, 1, 12), w = pick(random, 2, 12), map = h * w;
    const Array x = random_array(random, {n, groups, h, w}), bias = random_array(random, {out}),
                residual = random_array(random, {n, out, h, w});
    Array weight = random_array(random, {out, 1, 1, 1});
    if (seed % 2) scale_columns(random, weight, out, 1);
    std::vector<double> expected;
    for (int64_t i = 0; i < residual.count(); ++i) {
      const int64_t o = i / map % out, c = i / map / out * groups + o / times;
      expected.push_back(x.values[static_cast<size_t>(c * map + i % map)] *
                             weight.values[static_cast<size_t>(o)] +
                         bias.values[static_cast<size_t>(o)] + residual.values[static_cast<size_t>(i)]);
    }
    Node node("regie.FusedConv");
    node.operand(x).operand(weight, true).operand(bias, true).operand(residual).result({n, out, h, w});
    node.attr("group", groups);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text({n, groups, times, h, w}));
    check(node, chip, expected, kTolerance);
  });
}

// `deep`: more of k than L1 holds, with constant weights. Says whether both matrices came in chunks.
bool product(uint64_t seed, Tally& tally, bool deep = false, bool fine = false) {
  Random random(seed);
  Chip chip = any_chip(random);
  chip.two_halves = fine;
  const int64_t kind = deep || fine ? 0 : pick(random, 0, 4), sizes = pick(random, 0, 9);
  // A long sum, many columns, many rows, one row or column; the usual.
  const int64_t m = deep         ? pick(random, 1, 90)
                    : sizes == 0 ? pick(random, 150, 1500)
                    : sizes == 1 ? 1
                                 : pick(random, 1, 150),
                k = deep ? pick(random, 1000, 6000) / 16 * 16 + pick(random, 0, 1) * pick(random, 0, 15)
                    : sizes == 2 ? pick(random, 330, 5000)
                    : sizes == 0 ? pick(random, 1, 60)
                                 : pick(random, 1, 330),
                n = deep         ? pick(random, 1, 70)
                    : sizes == 3 ? pick(random, 200, 3000)
                    : sizes == 4 ? 1
                                 : pick(random, 1, 200);
  const int64_t batch = kind >= 3 ? pick(random, 2, 6) : 1;
  const bool constant = kind <= 1 || (kind == 3 && pick(random, 0, 1)), turned = pick(random, 0, 1),
             left_turned = !deep && !fine && pick(random, 0, 3) == 0, b_batched = kind == 4;
  const regie_elem elem = pick(random, 0, 3) == 0 && !fine ? REGIE_F16 : REGIE_F32;
  std::vector<int64_t> da = left_turned ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k},
                       db = turned ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, dy{m, n};
  if (batch > 1) {
    da.insert(da.begin(), batch);
    dy.insert(dy.begin(), batch);
    if (b_batched) db.insert(db.begin(), batch);
  }
  Array b = random_array(random, db);
  const bool scaled = constant && elem == REGIE_F32 && pick(random, 0, 2) == 0;
  if (scaled) scale_columns(random, b, n, turned ? 1 : k);
  const Array a = (fine ? fine_array : plain_array)(random, da), bias = random_array(random, {n}),
              residual = random_array(random, dy);
  const bool with_bias = pick(random, 0, 1) && dy.size() > 1, with_residual = pick(random, 0, 2) == 0;
  const double alpha = pick(random, 0, 2) ? 1 : 0.5;
  const Activation& act = kActivations[pick(random, 0, static_cast<int64_t>(std::size(kActivations)) - 1)];
  Node node("regie.FusedMatMul", elem);
  node.operand(a).operand(b, constant);
  if (with_bias || with_residual) with_bias ? node.operand(bias, true) : node.absent();
  if (with_residual) node.operand(residual);
  node.result(dy);
  node.attr("activation", act.name).attr("activation_alpha", act.alpha).attr("activation_beta", act.beta);
  node.attr("alpha", alpha).attr("transB", int64_t{turned}).attr("transA", int64_t{left_turned});
  std::vector<double> expected;
  double most = 0;  // of the sums
  for (int64_t t = 0; t < batch; ++t)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        const int64_t base = b_batched ? t * k * n : 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a.values[static_cast<size_t>(t * m * k + (left_turned ? l * m + i : i * k + l))] *
                 b.values[static_cast<size_t>(base + (turned ? j * k + l : l * n + j))];
        sum *= alpha;
        if (with_bias) sum += bias.values[static_cast<size_t>(j)];
        if (with_residual) sum += residual.values[static_cast<size_t>((t * m + i) * n + j)];
        most = std::max(most, std::abs(sum));
        expected.push_back(act.of(sum, act.alpha, act.beta));
      }
  std::ostringstream what;
  what << "seed " << seed << " batch " << batch << " m k n " << text({m, k, n})
       << (constant ? "constant " : "") << (turned ? "turned " : "") << (left_turned ? "left turned " : "")
       << act.name << (with_bias ? " bias" : "") << (with_residual ? " residual" : "")
       << (scaled ? " scaled" : "") << (elem == REGIE_F16 ? " f16" : "");
  SCOPED_TRACE(what.str());
  // What f32 loses is a part of the sums, which an activation may leave little of.
  double largest = 1e-9;
  for (double v : expected) largest = std::max(largest, std::abs(v));
  const double fine_tolerance = (deep ? 5 : 1) * std::max(1.0, most / largest) * kFineTolerance;
  tally.check(node, chip, expected, fine ? fine_tolerance : kTolerance);
  return node.name.find("chunks") != std::string::npos;
}

TEST(Aicore, Products) {
  Tally tally;
  const int64_t count = shapes(200);
  for (int64_t i = 0; i < count && !HasFailure(); ++i) product(static_cast<uint64_t>(5000 + i), tally);
  tally.finish("products");
}

TEST(Aicore, DeepProducts) {
  Tally tally;
  const int64_t count = shapes(40);
  int64_t in_chunks = 0;
  for (int64_t i = 0; i < count && !HasFailure(); ++i)
    in_chunks += product(static_cast<uint64_t>(9000 + i), tally, true);
  EXPECT_GT(in_chunks, count / 8);
  tally.finish("deep products");
}

TEST(Aicore, ProductsOfTwoHalves) {
  Tally tally;
  const int64_t count = shapes(150);
  int64_t in_chunks = 0;
  for (int64_t i = 0; i < count && !HasFailure(); ++i)
    in_chunks += product(static_cast<uint64_t>(12000 + i), tally, i % 3 == 0, true);
  EXPECT_GT(in_chunks, 0);
  tally.finish("products of two halves");
}

// What fills the last chunk of k up is multiplied by zeros, and must not be what rows before left there.
TEST(Aicore, WhatIsNotFiniteStaysInItsRow) {
  int64_t in_chunks = 0;
  for_seeds(20, 16'000, [&](uint64_t seed, Random& random) {
    Chip chip = small_chip(pick(random, 1, 2));
    chip.two_halves = true;
    const int64_t m = pick(random, 48, 128), k = pick(random, 100, 300) * 16 + pick(random, 1, 15),
                  n = pick(random, 1, 40), bad = m - 1 - pick(random, 0, 31);
    Array a = fine_array(random, {m, k});
    const Array b = random_array(random, {k, n});
    for (int64_t l = 0; l < k; ++l) a.values[static_cast<size_t>(bad * k + l)] = 70'000;
    Node node("MatMul");
    node.operand(a).operand(b, true).result({m, n});
    auto got = node.run(chip);
    ASSERT_TRUE(got);
    in_chunks += node.name.find("chunks") != std::string::npos;
    std::vector<double> expected;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k && i != bad; ++l)
          sum += a.values[static_cast<size_t>(i * k + l)] * b.values[static_cast<size_t>(l * n + j)];
        expected.push_back(sum);
        if (i == bad) (*got)[static_cast<size_t>(i * n + j)] = 0;
      }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text({m, k, n}) + node.name);
    expect_close(*got, expected, 5 * kFineTolerance, node.name);
  });
  EXPECT_GT(in_chunks, 0);
}

TEST(Aicore, Attention) {
  for_seeds(60, 21000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const int64_t batch = pick(random, 1, 6), rows = pick(random, 1, 70), keys = pick(random, 1, 90),
                  depth = pick(random, 1, 70), width = pick(random, 1, 70), mask = pick(random, 0, 2);
    const bool turned = pick(random, 0, 1);
    const regie_elem elem = pick(random, 0, 3) == 0 ? REGIE_F16 : REGIE_F32;
    const Array q = random_array(random, {batch, rows, depth}, 2),
                k = random_array(random,
                                 turned ? std::vector<int64_t>{batch, depth, keys}
                                        : std::vector<int64_t>{batch, keys, depth},
                                 2),
                v = random_array(random, {batch, keys, width}),
                m = random_array(
                    random,
                    mask == 1 ? std::vector<int64_t>{1, 1, keys} : std::vector<int64_t>{batch, rows, keys},
                    3);
    Node node("regie.Attention", elem);
    node.operand(q).operand(k).operand(v);
    if (mask) node.operand(m);
    node.result({batch, rows, width}).attr("scale", 0.25).attr("transpose_k", int64_t{turned});
    std::vector<double> expected;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<double> score;
        double most = -INFINITY, sum = 0;
        for (int64_t t = 0; t < keys; ++t) {
          double s = 0;
          for (int64_t d = 0; d < depth; ++d)
            s += q.values[static_cast<size_t>((b * rows + r) * depth + d)] *
                 k.values[static_cast<size_t>(b * keys * depth + (turned ? d * keys + t : t * depth + d))];
          s *= 0.25;
          if (mask) s += m.values[static_cast<size_t>(mask == 1 ? t : (b * rows + r) * keys + t)];
          most = std::max(most, s);
          score.push_back(s);
        }
        for (double& s : score) sum += s = std::exp(s - most);
        for (int64_t c = 0; c < width; ++c) {
          double y = 0;
          for (int64_t t = 0; t < keys; ++t)
            y += score[static_cast<size_t>(t)] / sum *
                 v.values[static_cast<size_t>((b * keys + t) * width + c)];
          expected.push_back(y);
        }
      }
    std::ostringstream what;
    what << "seed " << seed << ' ' << text({batch, rows, keys, depth, width, mask, turned})
         << (elem == REGIE_F16 ? "f16" : "");
    SCOPED_TRACE(what.str());
    // Scores are rounded to halves where the model's elements are: then probabilities carry that error.
    check(node, chip, expected, elem == REGIE_F16 ? 5e-3 : kTolerance);
  });
}

// What the search believes against what the machine takes, over layers of ResNet-50 and BERT: within a factor
// of two each, and near one in all.
TEST(Aicore, PredictedTimesAreNearTheMachines) {
  struct Layer {
    int64_t in, out, size, kernel, stride;
  };
  const Layer layers[] = {
      {3, 64, 224, 7, 2},   {64, 64, 56, 1, 1},   {64, 64, 56, 3, 1},    {64, 256, 56, 1, 1},
      {256, 128, 56, 1, 1}, {128, 128, 56, 3, 2}, {128, 512, 28, 1, 1},  {512, 256, 28, 1, 1},
      {256, 256, 28, 3, 2}, {256, 256, 14, 3, 1}, {256, 1024, 14, 1, 1}, {1024, 512, 14, 1, 1},
      {512, 512, 14, 3, 2}, {512, 512, 7, 3, 1},  {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1}};
  const Chip chip = chip_of_target("ascend910a-sim");
  Random random(7);
  double logs = 0;
  int64_t count = 0;
  auto check = [&](Node& node, const std::string& what) {
    ASSERT_TRUE(node.run(chip));
    const double ratio = node.predicted / node.cycles;
    if (std::getenv("REGIE_AICORE_PRINT"))
      std::printf("%-28s %-40s predicted %8.0f machine %8.0f ratio %.2f\n", what.c_str(), node.name.c_str(),
                  node.predicted, node.cycles, ratio);
    EXPECT_GT(ratio, 0.5) << what;
    EXPECT_LT(ratio, 2.0) << what;
    logs += std::log(ratio);
    ++count;
  };
  for (const Layer& l : layers) {
    const int64_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
    Node node("Conv");
    node.operand(random_array(random, {1, l.in, l.size, l.size}))
        .operand(random_array(random, {l.out, l.in, l.kernel, l.kernel}), true)
        .result({1, l.out, out, out});
    node.attr("pads", {pad, pad, pad, pad}).attr("strides", {l.stride, l.stride});
    check(node, text({l.in, l.out, l.size, l.kernel, l.stride}));
  }
  for (const auto& [m, k, n] :
       {std::array<int64_t, 3>{128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {1, 2048, 1000}}) {
    Node node("MatMul");
    node.operand(random_array(random, {m, k})).operand(random_array(random, {k, n}), true).result({m, n});
    check(node, text({m, k, n}));
  }
  const double mean = std::exp(logs / static_cast<double>(count));
  EXPECT_GT(mean, 0.8);
  EXPECT_LT(mean, 1.25);
}

}  // namespace
}  // namespace aicore::test
