// Element-wise code, rows and pooling of random shapes, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "half.h"
#include "node.h"
#include "rows_reference.h"

namespace aicore::test {
namespace {

constexpr double kTolerance = 1e-3;  // of halves; in f32 results differ by far less

regie_elem any_elem(Random& random) { return pick(random, 0, 2) == 0 ? REGIE_F16 : REGIE_F32; }

std::string words(const char* kind, uint64_t seed, const std::vector<int64_t>& dims, regie_elem elem) {
  std::ostringstream out;
  out << kind << " seed " << seed << " dims";
  for (int64_t d : dims) out << ' ' << d;
  out << (elem == REGIE_F16 ? " f16" : " f32");
  return out.str();
}

void row(const std::string& op, uint64_t seed, Tally& tally) {
  Random random(seed);
  const Chip chip = any_chip(random);
  const regie_elem elem = any_elem(random);
  std::vector<int64_t> dims;
  const int64_t rank = op == "GlobalAveragePool" ? 4 : pick(random, 1, 4), sizes = pick(random, 0, 9);
  const int64_t widest = sizes == 0 ? 6000 : sizes == 1 ? 1100 : 120, most = sizes == 2 ? 24 : 4;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(pick(random, 1, d + 1 == rank ? widest : most));
  Array x = random_array(random, dims, pick(random, 0, 3) ? 4 : 200);
  // Scores that a mask has taken out.
  if (op == "Softmax" && elem == REGIE_F32 && pick(random, 0, 3) == 0)
    for (size_t i = 0; i < x.values.size(); ++i)
      if (i % static_cast<size_t>(dims.back()) && pick(random, 0, 2) == 0)
        x.values[i] =
            pick(random, 0, 1) ? -INFINITY : static_cast<double>(std::numeric_limits<float>::lowest());
  int64_t first = rank - 1;  // the rows' axes
  if (op == "GlobalAveragePool") first = 2;
  if (op[0] == 'R') first = pick(random, 0, rank - 1);
  int64_t width = 1;
  for (int64_t d = first; d < rank; ++d) width *= dims[static_cast<size_t>(d)];
  const Array scale = random_array(random, {width}), bias = random_array(random, {width});
  Node node(op, elem);
  node.operand(x);
  std::vector<int64_t> out = dims;
  if (op[0] == 'R' || op[0] == 'G')
    for (int64_t d = first; d < rank; ++d) out[static_cast<size_t>(d)] = 1;
  if (op[0] == 'R') {
    std::vector<int64_t> axes;
    for (int64_t d = first; d < rank; ++d) axes.push_back(pick(random, 0, 1) ? d : d - rank);
    node.integers(axes);
  }
  const bool with_bias = pick(random, 0, 1);
  if (op[0] == 'L' && op[1] == 'a') {
    node.operand(scale);
    if (with_bias) node.operand(bias);
    node.attr("epsilon", 1e-5);
  }
  node.result(out);
  const std::vector<double> expected =
      along_rows(op, x.values, width, scale.values, with_bias ? bias.values : std::vector<double>{});
  SCOPED_TRACE(words(op.c_str(), seed, dims, elem));
  tally.check(node, chip, expected, kTolerance);
}

TEST(Aicore, Rows) {
  const char* ops[] = {"LogSoftmax", "LayerNormalization", "ReduceSum",        "ReduceMean",
                       "ReduceMax",  "ReduceMin",          "GlobalAveragePool"};
  Tally tally;
  const int64_t count = shapes(200);
  for (int64_t i = 0; i < count && !HasFailure(); ++i)
    row(ops[i % static_cast<int64_t>(std::size(ops))], static_cast<uint64_t>(9000 + i), tally);
  tally.finish("rows");
}

TEST(Aicore, Softmaxes) {
  Tally tally;
  const int64_t count = shapes(150);
  for (int64_t i = 0; i < count && !HasFailure(); ++i)
    row("Softmax", static_cast<uint64_t>(40000 + i), tally);
  tally.finish("soft-max");
}

TEST(Aicore, Pooling) {
  for_seeds(150, 13000, [](uint64_t seed, Random& random) {
    Chip chip = any_chip(random);
    chip.two_halves = seed % 3 == 0;
    const bool average = pick(random, 0, 2) == 0;
    const regie_elem elem = any_elem(random);
    const int64_t n = pick(random, 1, 3),
                  c = pick(random, 0, 2) ? pick(random, 1, 40) : 16 * pick(random, 1, 4),
                  kh = pick(random, 1, 3), kw = pick(random, 1, 3), sh = pick(random, 1, 3),
                  sw = pick(random, 1, 3), dh = average ? 1 : pick(random, 1, 2),
                  dw = average ? 1 : pick(random, 1, 2);
    const int64_t top = pick(random, 0, kh - 1), left = pick(random, 0, kw - 1),
                  bottom = pick(random, 0, kh - 1), right = pick(random, 0, kw - 1);
    const int64_t h = (kh - 1) * dh + 1 + pick(random, 0, 20), w = (kw - 1) * dw + 1 + pick(random, 0, 20);
    const int64_t oh = (h + top + bottom - (kh - 1) * dh - 1) / sh + 1,
                  ow = (w + left + right - (kw - 1) * dw - 1) / sw + 1;
    const Array x = random_array(random, {n, c, h, w}, 3);
    Node node(average ? "AveragePool" : "MaxPool", elem);
    node.operand(x).result({n, c, oh, ow});
    node.attr("kernel_shape", {kh, kw}).attr("strides", {sh, sw}).attr("pads", {top, left, bottom, right});
    if (average)
      node.attr("count_include_pad", int64_t{1});
    else
      node.attr("dilations", {dh, dw});
    std::vector<double> expected;
    for (int64_t p = 0; p < n * c; ++p)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t z = 0; z < ow; ++z) {
          double most = -INFINITY, sum = 0;
          for (int64_t a = 0; a < kh; ++a)
            for (int64_t b = 0; b < kw; ++b) {
              const int64_t row = y * sh - top + a * dh, column = z * sw - left + b * dw;
              if (row < 0 || row >= h || column < 0 || column >= w) continue;
              const double v = x.values[static_cast<size_t>((p * h + row) * w + column)];
              most = std::max(most, v);
              sum += v;
            }
          expected.push_back(average ? sum / static_cast<double>(kh * kw) : most);
        }
    SCOPED_TRACE(words(average ? "AveragePool" : "MaxPool", seed,
                       {n, c, h, w, kh, kw, sh, sw, dh, dw, top, left, bottom, right}, elem));
    if (std::any_of(expected.begin(), expected.end(), [](double v) { return std::isinf(v); })) return;
    check(node, chip, expected, kTolerance);
  });
}

// y = (relu(a + b) * c - a) with operands that broadcast in every way.
TEST(Aicore, Pointwise) {
  for_seeds(200, 17000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    std::vector<int64_t> dims;
    const int64_t rank = pick(random, 0, 4);
    for (int64_t d = 0; d < rank; ++d) dims.push_back(pick(random, 1, d + 1 == rank ? 400 : 10));
    auto operand = [&] {
      std::vector<int64_t> own = dims;
      for (int64_t& d : own)
        if (pick(random, 0, 3) == 0) d = 1;
      return random_array(random, own);
    };
    Array a = random_array(random, dims), b = operand(), c = operand();
    Node node("regie.Pointwise", elem);
    node.operand(a).operand(b).operand(c).result(dims);
    node.body("Add", {0, 1})
        .body("Sigmoid", {3})
        .body("Mul", {4, 2})
        .body("Tanh", {5})
        .body("Sub", {6, 0})
        .body("Gelu", {7});
    std::vector<double> expected;
    const int64_t total = a.count();
    auto at = [&](const Array& x, int64_t flat) {
      int64_t index = 0, step = 1;
      for (size_t d = dims.size(); d-- > 0;) {
        if (x.dims[d] != 1) {
          index += flat % dims[d] * step;
          step *= x.dims[d];
        }
        flat /= dims[d];
      }
      return x.values[static_cast<size_t>(index)];
    };
    for (int64_t e = 0; e < total; ++e) {
      const double s = 1 / (1 + std::exp(-(at(a, e) + at(b, e))));
      const double t = std::tanh(s * at(c, e)) - at(a, e);
      expected.push_back(t * 0.5 * (1 + std::erf(t / std::sqrt(2.0))));
    }
    SCOPED_TRACE(words("Pointwise", seed, dims, elem));
    check(node, chip, expected, kTolerance);
  });
}

TEST(Aicore, Transpositions) {
  for_seeds(100, 23000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    const int64_t rank = pick(random, 1, 5);
    std::vector<int64_t> dims, order, out;
    for (int64_t d = 0; d < rank; ++d) {
      // Of one element, the last axis would leave another one innermost, which may move.
      dims.push_back(d + 1 == rank ? pick(random, 2, 90) : pick(random, 1, 7));
      order.push_back(d);
    }
    std::shuffle(order.begin(), order.end() - 1, random);
    for (int64_t d : order) out.push_back(dims[static_cast<size_t>(d)]);
    const Array x = random_array(random, dims);
    std::vector<double> expected;
    for (int64_t flat = 0; flat < x.count(); ++flat) {
      std::vector<int64_t> at(dims.size());
      int64_t rest = flat;
      for (size_t d = dims.size(); d-- > 0;) {
        at[static_cast<size_t>(order[d])] = rest % out[d];
        rest /= out[d];
      }
      int64_t from = 0;
      for (size_t d = 0; d < dims.size(); ++d) from = from * dims[d] + at[d];
      expected.push_back(x.values[static_cast<size_t>(from)]);
    }
    Node node("Transpose", elem);
    node.operand(x).result(out).attr("perm", order);
    SCOPED_TRACE(words("Transpose", seed, dims, elem));
    check(node, chip, expected, kTolerance);
  });
}

// Any permutation, of small axes and large ones.
TEST(Aicore, TranspositionsOfElements) {
  for_seeds(100, 31000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    const int64_t rank = pick(random, 2, 5);
    std::vector<int64_t> dims, order;
    for (int64_t d = 0; d < rank; ++d) {
      dims.push_back(pick(random, 1, rank == 2 ? 300 : rank == 3 ? 60 : 12));
      order.push_back(d);
    }
    std::shuffle(order.begin(), order.end(), random);
    const Array x = random_array(random, dims);
    std::vector<int64_t> out, strides(dims.size(), 1);
    for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    for (int64_t o : order) out.push_back(dims[static_cast<size_t>(o)]);
    std::vector<double> expected;
    for (int64_t i = 0; i < x.count(); ++i) {
      int64_t rest = i, from = 0;
      for (size_t d = out.size(); d-- > 0; rest /= out[d])
        from += rest % out[d] * strides[static_cast<size_t>(order[d])];
      expected.push_back(x.values[static_cast<size_t>(from)]);
    }
    Node node("Transpose", elem);
    node.operand(x).result(out).attr("perm", order);
    SCOPED_TRACE(words("Transpose", seed, dims, elem));
    check(node, chip, expected, 0);
  });
}

TEST(Aicore, ResizesByWholeFactors) {
  const std::pair<const char*, const char*> modes[] = {{"asymmetric", "floor"},
                                                       {"half_pixel", "round_prefer_floor"},
                                                       {"pytorch_half_pixel", "round_prefer_ceil"}};
  for_seeds(80, 32000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    const std::vector<int64_t> dims{pick(random, 1, 2), pick(random, 1, 40), pick(random, 1, 20),
                                    pick(random, 1, seed % 5 ? 40 : 400)};
    const int64_t fh = pick(random, 1, 4), fw = pick(random, 1, 8);
    const std::vector<int64_t> out{dims[0], dims[1], dims[2] * fh, dims[3] * fw};
    const Array x = random_array(random, dims);
    std::vector<double> expected;
    for (int64_t p = 0; p < dims[0] * dims[1]; ++p)
      for (int64_t h = 0; h < out[2]; ++h)
        for (int64_t w = 0; w < out[3]; ++w)
          expected.push_back(x.values[static_cast<size_t>((p * dims[2] + h / fh) * dims[3] + w / fw)]);
    Node node("Resize", elem);
    node.operand(x).absent().absent().integers(out).result(out);
    node.attr("coordinate_transformation_mode", modes[seed % 3].first)
        .attr("nearest_mode", modes[seed % 3].second);
    SCOPED_TRACE(words("Resize", seed, dims, elem));
    check(node, chip, expected, 0);
  });
}

TEST(Aicore, TransposedConvolutionsWithoutOverlap) {
  Tally tally;
  for_seeds(60, 33000, [&](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    const std::vector<int64_t> dims{pick(random, 1, 2), pick(random, 1, 50), pick(random, 1, 12),
                                    pick(random, 1, 20)};
    const int64_t maps = pick(random, 1, 20), kh = pick(random, 1, 3), kw = pick(random, 1, 4);
    const Array x = random_array(random, dims), w = random_array(random, {dims[1], maps, kh, kw}),
                bias = random_array(random, {maps});
    const std::vector<int64_t> out{dims[0], maps, dims[2] * kh, dims[3] * kw};
    std::vector<double> expected;
    for (int64_t n = 0; n < dims[0]; ++n)
      for (int64_t m = 0; m < maps; ++m)
        for (int64_t h = 0; h < out[2]; ++h)
          for (int64_t v = 0; v < out[3]; ++v) {
            double sum = seed % 2 ? bias.values[static_cast<size_t>(m)] : 0;
            for (int64_t c = 0; c < dims[1]; ++c)
              sum +=
                  x.values[static_cast<size_t>(((n * dims[1] + c) * dims[2] + h / kh) * dims[3] + v / kw)] *
                  w.values[static_cast<size_t>(((c * maps + m) * kh + h % kh) * kw + v % kw)];
            expected.push_back(sum);
          }
    Node node("ConvTranspose", elem);
    node.operand(x).operand(w, true);
    if (seed % 2) node.operand(bias, true);
    node.result(out).attr("strides", {kh, kw});
    SCOPED_TRACE(words("ConvTranspose", seed, dims, elem));
    tally.check(node, chip, expected, 2e-3);
  });
  tally.finish("transposed convolutions");
}

TEST(Aicore, BatchNormalizations) {
  for_seeds(60, 29000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    std::vector<int64_t> dims{pick(random, 1, 3), pick(random, 1, 40)};
    for (int64_t d = pick(random, 0, 2); d > 0; --d) dims.push_back(pick(random, 1, 30));
    const int64_t channels = dims[1];
    const Array x = random_array(random, dims, 3), scale = random_array(random, {channels}),
                bias = random_array(random, {channels}), mean = random_array(random, {channels});
    Array variance = random_array(random, {channels});
    for (double& v : variance.values) v = std::abs(v) + 0.25;
    Node node("BatchNormalization", elem);
    node.operand(x).operand(scale, true).operand(bias, true).operand(mean, true).operand(variance, true);
    node.attr("epsilon", 0.125).result(dims);
    std::vector<double> expected;
    const int64_t inner = x.count() / dims[0] / channels;
    for (int64_t e = 0; e < x.count(); ++e) {
      const auto c = static_cast<size_t>(e / inner % channels);
      // Halves are what the node holds of the variance.
      const double v =
          elem == REGIE_F16 ? from_half(to_half(static_cast<float>(variance.values[c]))) : variance.values[c];
      expected.push_back((x.values[static_cast<size_t>(e)] - mean.values[c]) / std::sqrt(v + 0.125) *
                             scale.values[c] +
                         bias.values[c]);
    }
    SCOPED_TRACE(words("BatchNormalization", seed, dims, elem));
    check(node, chip, expected, kTolerance);
  });
}

// Parts along an axis: split, joined again, and one of them sliced.
TEST(Aicore, Parts) {
  for_seeds(100, 27000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = any_elem(random);
    const int64_t rank = pick(random, 1, 4), axis = pick(random, 0, rank - 1), parts = pick(random, 1, 4);
    std::vector<int64_t> dims, sizes;
    for (int64_t d = 0; d < rank; ++d) dims.push_back(pick(random, 1, d + 1 == rank ? 900 : 12));
    const auto a = static_cast<size_t>(axis);
    dims[a] = 0;
    for (int64_t k = 0; k < parts; ++k) sizes.push_back(pick(random, 1, axis + 1 == rank ? 300 : 20));
    for (int64_t s : sizes) dims[a] += s;
    const Array x = random_array(random, dims);
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < dims.size(); ++d) (d < a ? outer : inner) *= d == a ? 1 : dims[d];
    std::vector<Array> expected;
    int64_t first = 0;
    for (int64_t s : sizes) {
      Array part{dims, {}};
      part.dims[a] = s;
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t e = 0; e < s * inner; ++e)
          part.values.push_back(x.values[static_cast<size_t>((o * dims[a] + first) * inner + e)]);
      first += s;
      expected.push_back(std::move(part));
    }
    SCOPED_TRACE(words("parts", seed, dims, elem));
    Node split("Split", elem), join("Concat", elem), slice("Slice", elem);
    split.operand(x).attr("axis", axis);
    for (const Array& part : expected) split.result(part.dims), join.operand(part);
    join.attr("axis", axis - rank).result(dims);
    const int64_t last = sizes.back();
    slice.operand(x).integers({-last}).integers({INT64_MAX}).integers({axis}).result(expected.back().dims);
    ASSERT_TRUE(split.run(chip));
    for (size_t k = 0; k < expected.size(); ++k) EXPECT_EQ(split.value_of(k), expected[k].values) << k;
    ASSERT_TRUE(join.run(chip));
    EXPECT_EQ(join.value_of(0), x.values);
    ASSERT_TRUE(slice.run(chip));
    EXPECT_EQ(slice.value_of(0), expected.back().values);
  });
}

struct Function {
  const char* op;
  double (*of)(double);
  double low, high;
};
TEST(Aicore, Functions) {
  const Function functions[] = {
      {"Abs", [](double x) { return std::abs(x); }, -4, 4},
      {"Exp", [](double x) { return std::exp(x); }, -4, 4},
      {"Erf", [](double x) { return std::erf(x); }, -4, 4},
      {"Log", [](double x) { return std::log(x); }, 0.1, 9},
      {"Neg", [](double x) { return -x; }, -4, 4},
      {"Reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
      {"Relu", [](double x) { return std::max(x, 0.0); }, -4, 4},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -30, 30},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, -30, 30},
      {"Sqrt", [](double x) { return std::sqrt(x); }, 0, 9},
      {"Tanh", [](double x) { return std::tanh(x); }, -30, 30},
      {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }, -4, 4},
      {"LeakyRelu", [](double x) { return x > 0 ? x : 0.01 * x; }, -4, 4},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }, -4, 4},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -4, 4},
      {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -9, 9},
      {"Gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }, -9, 9},
  };
  for (const Function& f : functions) {
    Array x{{1000}, {}};
    std::vector<double> expected;
    for (int64_t i = 0; i < 1000; ++i) {
      x.values.push_back(static_cast<float>(f.low + (f.high - f.low) * static_cast<double>(i) / 999));
      expected.push_back(f.of(x.values.back()));
    }
    Node node(f.op);
    node.operand(x).result({1000});
    SCOPED_TRACE(f.op);
    const auto got = node.run(chip_of_target("ascend910a-sim"));
    ASSERT_TRUE(got);
    expect_close(*got, expected, 2e-6, f.op);
  }
}

// What has a limit has it, and is no NaN on the way there.
TEST(Aicore, FunctionsOfGreatNumbersAndOfInfinity) {
  const Function functions[] = {
      {"Erf", [](double x) { return std::erf(x); }, 0, 0},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 0, 0},
      {"Tanh", [](double x) { return std::tanh(x); }, 0, 0},
      {"Softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 0, 0},
      {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }, 0, 0},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }, 0, 0},
      {"Gelu", [](double x) { return x < 0 && std::isfinite(x) ? 0 : x * 0.5 * (1 + std::erf(x)); }, 0, 0},
  };
  const Array x{{6}, {INFINITY, 1e37F, 100, -100, -1e37F, -INFINITY}};
  for (const Function& f : functions) {
    SCOPED_TRACE(f.op);
    Node node(f.op);
    node.operand(x).result({6});
    const auto got = node.run(chip_of_target("ascend910a-sim"));
    ASSERT_TRUE(got);
    for (size_t i = 0; i < x.values.size(); ++i) {
      const double value = (*got)[i], expected = f.of(x.values[i]);
      EXPECT_TRUE(value == expected ||
                  std::abs(value - expected) <= 2e-6 * std::max(1.0, std::abs(expected)) ||
                  (std::isnan(value) && std::isnan(expected)))
          << x.values[i] << ": " << value << ", not " << expected;
    }
  }
}

}  // namespace
}  // namespace aicore::test
