// Products and convolutions of bytes, of random shapes, scales and zero points: sums of 32 bits must be
// exact, and what is made of them what the operators' definitions say, worked out here from whole numbers and
// in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "node.h"

namespace aicore::test {
namespace {

int64_t low_of(regie_elem e) { return e == REGIE_U8 ? 0 : -128; }

Array random_bytes(Random& random, std::vector<int64_t> dims, regie_elem elem) {
  Array a{std::move(dims), {}};
  a.values.resize(static_cast<size_t>(a.count()));
  for (double& v : a.values) v = static_cast<double>(low_of(elem) + static_cast<int64_t>(random() % 256));
  return a;
}
Array random_scales(Random& random, int64_t count, double around) {
  Array a{count == 1 && pick(random, 0, 1) ? std::vector<int64_t>{} : std::vector<int64_t>{count}, {}};
  for (int64_t i = 0; i < count; ++i)
    a.values.push_back(static_cast<float>(around * (0.25 + static_cast<double>(random() % 1000) / 500)));
  return a;
}
Array one(double value) { return {{}, {value}}; }

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
    {"HardSwish", 0, 0, [](double x, double, double) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
};

// What a node makes of exact sums, by the definition of its operator.
struct Ending {
  enum Kind { kInteger, kLinear, kFused, kFloat } kind = kInteger;
  regie_elem result = REGIE_I32;
  double x_scale = 1, y_scale = 1;
  int64_t y_zero = 0;
  Array w_scale, bias;  // bias: whole numbers of kLinear, real ones of kFused and kFloat; empty: none
  bool late_scale = false;
  const Activation* act = &kActivations[0];

  double scale_of(int64_t column) const {
    return x_scale * w_scale.values[w_scale.values.size() == 1 ? 0 : static_cast<size_t>(column)];
  }
  // Before it is rounded, in units of the result.
  double real(int64_t sum, int64_t column) const {
    if (kind == kInteger) return static_cast<double>(sum);
    double value = static_cast<double>(sum) * scale_of(column);
    if (!bias.values.empty())
      value += bias.values[static_cast<size_t>(column)] * (kind == kLinear ? scale_of(column) : 1);
    value = act->of(value, act->alpha, act->beta);
    return kind == kFloat ? value : value / y_scale;
  }
};

Ending draw_ending(Random& random, int64_t columns, int64_t depth, bool can_be_late) {
  Ending e;
  e.kind = static_cast<Ending::Kind>(pick(random, 0, 3));
  if (e.kind == Ending::kInteger) return e;
  e.x_scale = static_cast<float>(0.01 + static_cast<double>(random() % 100) / 2000);
  e.w_scale = random_scales(random, pick(random, 0, 1) ? columns : 1, 0.01);
  // Sums of `depth` products of bytes are about so large; results should fill their bytes.
  const double spread = e.x_scale * 0.01 * 80 * 80 * std::sqrt(static_cast<double>(depth));
  e.y_scale = static_cast<float>(spread * (0.5 + static_cast<double>(random() % 100) / 50) / 60);
  if (e.kind != Ending::kLinear)
    e.act = &kActivations[pick(random, 0, static_cast<int64_t>(std::size(kActivations)) - 1)];
  if (pick(random, 0, 1)) {
    // Whole numbers of units, as tools write it, or any.
    const bool whole = e.kind == Ending::kLinear || pick(random, 0, 2);
    e.bias.dims = {columns};
    for (int64_t n = 0; n < columns; ++n) {
      const auto units = static_cast<double>(pick(random, -9000, 9000));
      const double real = units * e.scale_of(n);
      e.bias.values.push_back(e.kind == Ending::kLinear ? units
                              : whole                   ? static_cast<float>(real)
                                                        : static_cast<float>(real * 1.37));
    }
  }
  if (e.kind == Ending::kFloat) {
    e.result = REGIE_F32;
    e.late_scale = can_be_late && pick(random, 0, 2) == 0;
  } else {
    e.result = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8;
    e.y_zero = low_of(e.result) + pick(random, 0, 255);
    if (pick(random, 0, 3) == 0) e.y_zero = pick(random, 0, 1) ? low_of(e.result) : 0;
  }
  return e;
}

// The operands of a node in its operator's order.
void put_operands(Node& node, const Ending& e, const Array& x, regie_elem x_elem, const Array& x_zero,
                  bool late_zero, const Array& w, regie_elem w_elem, const Array& w_zero) {
  if (e.kind == Ending::kInteger) {
    node.operand(x, false, x_elem).operand(w, true, w_elem);
    node.operand(x_zero, !late_zero, x_elem).operand(w_zero, true, w_elem);
    return;
  }
  node.operand(x, false, x_elem).operand(one(e.x_scale), !e.late_scale, REGIE_F32);
  node.operand(x_zero, !late_zero, x_elem).operand(w, true, w_elem).operand(e.w_scale, true, REGIE_F32);
  node.operand(w_zero, true, w_elem);
  auto bias = [&] {
    if (e.bias.values.empty())
      node.absent();
    else
      node.operand(e.bias, true, e.kind == Ending::kLinear ? REGIE_I32 : REGIE_F32);
  };
  if (e.kind != Ending::kLinear) bias();
  if (e.kind != Ending::kFloat)
    node.operand(one(e.y_scale), true, REGIE_F32).operand(one(static_cast<double>(e.y_zero)), true, e.result);
  if (e.kind == Ending::kLinear && !e.bias.values.empty()) bias();
}

// Sums exactly; bytes exactly but where the value before rounding is nearly between two of them.
void judge(const Ending& e, const std::vector<double>& reals, const std::vector<double>& got,
           const std::string& name) {
  ASSERT_EQ(got.size(), reals.size()) << name;
  if (e.kind == Ending::kFloat) return expect_close(got, reals, 1e-5, name);
  for (size_t i = 0; i < got.size(); ++i) {
    if (e.kind == Ending::kInteger) {
      ASSERT_EQ(got[i], reals[i]) << name << ", element " << i;
      continue;
    }
    const double low = static_cast<double>(low_of(e.result)), high = low + 255;
    const double whole = std::nearbyint(reals[i]) + static_cast<double>(e.y_zero);
    const double expected = std::clamp(whole, low, high);
    const bool between = std::abs(std::abs(reals[i] - std::floor(reals[i])) - 0.5) < 1e-3;
    ASSERT_LE(std::abs(got[i] - expected), between ? 1 : 0)
        << name << ", element " << i << " of " << reals[i] << " + " << e.y_zero;
  }
}

struct Zeros {
  Array x, w;
};
Zeros draw_zeros(Random& random, regie_elem x_elem, regie_elem w_elem, int64_t columns) {
  Zeros z;
  const int64_t kind = pick(random, 0, 3);
  z.x = one(kind == 0 ? (x_elem == REGIE_U8 ? 128 : 0)
                      : static_cast<double>(low_of(x_elem) + pick(random, 0, 255)));
  const bool each = pick(random, 0, 3) == 0;
  z.w.dims = each ? std::vector<int64_t>{columns} : std::vector<int64_t>{};
  const int64_t usual = w_elem == REGIE_U8 ? 128 : 0;
  for (int64_t n = 0; n < (each ? columns : 1); ++n)
    z.w.values.push_back(
        static_cast<double>(pick(random, 0, 2) ? usual : low_of(w_elem) + pick(random, 0, 255)));
  return z;
}

bool convolution(uint64_t seed, Tally& tally) {
  Random random(seed);
  const Chip chip = any_chip(random);
  const int64_t kinds = pick(random, 0, 3), sizes = pick(random, 0, 9);
  // One spatial axis; a wide map of few channels; a small map of many; the usual.
  const bool flat = sizes == 0, wide = sizes == 1, deep = sizes == 2;
  int64_t group = 1,
          in = pick(random, 1,
                    deep   ? 600
                    : wide ? 6
                           : 70),
          out = pick(random, 1,
                     deep   ? 300
                     : wide ? 20
                            : 70);
  if (kinds == 1) {  // depth-wise
    group = in = pick(random, 2, 80);
    out = in * pick(random, 1, 2);
  } else if (kinds == 2) {
    group = pick(random, 2, 6);
    in = group * pick(random, 1, 40);
    out = group * pick(random, 1, 20);
  }
  const int64_t n = pick(random, 1, 3), kh = flat ? 1 : pick(random, 1, 4), kw = pick(random, 1, 5),
                sh = flat ? 1 : pick(random, 1, 3), sw = pick(random, 1, 3),
                dh = flat ? 1 : pick(random, 1, 2), dw = pick(random, 1, 2),
                top = flat ? 0 : pick(random, 0, kh), left = pick(random, 0, kw),
                bottom = flat ? 0 : pick(random, 0, kh), right = pick(random, 0, kw);
  auto size = [&](int64_t least, int64_t more) {
    return std::max<int64_t>(least, 1) + pick(random, 0, more);
  };
  const int64_t h = flat ? 1
                         : size((kh - 1) * dh + 1 - top - bottom, wide   ? 60
                                                                  : deep ? 6
                                                                         : 20),
                w = size((kw - 1) * dw + 1 - left - right, wide || flat ? 260
                                                           : deep       ? 7
                                                                        : 24),
                oh = (h + top + bottom - (kh - 1) * dh - 1) / sh + 1,
                ow = (w + left + right - (kw - 1) * dw - 1) / sw + 1;
  if (h + top + bottom < (kh - 1) * dh + 1 || w + left + right < (kw - 1) * dw + 1) return false;
  if (n * out * oh * ow * in / group * kh * kw > 2'000'000) return false;
  const regie_elem x_elem = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8,
                   w_elem = pick(random, 0, 2) ? REGIE_I8 : REGIE_U8;
  const Array x = random_bytes(random, {n, in, h, w}, x_elem),
              weight = random_bytes(random, {out, in / group, kh, kw}, w_elem);
  const Zeros zeros = draw_zeros(random, x_elem, w_elem, out);
  const Ending e = draw_ending(random, out, in / group * kh * kw, false);
  constexpr const char* kNames[] = {"ConvInteger", "QLinearConv", "regie.QConv", "regie.QConv"};
  auto spatial = [flat](std::vector<int64_t> both) {  // without the first spatial axis
    if (flat) both.erase(both.end() - 2);
    return both;
  };
  auto shaped = [&](Array a) {
    a.dims = spatial(a.dims);
    return a;
  };
  Node node(kNames[e.kind], REGIE_F32);
  put_operands(node, e, shaped(x), x_elem, zeros.x, false, shaped(weight), w_elem, zeros.w);
  node.result(spatial({n, out, oh, ow}), e.result).attr("group", group);
  node.attr("strides", spatial({sh, sw})).attr("dilations", spatial({dh, dw}));
  node.attr("pads",
            flat ? std::vector<int64_t>{left, right} : std::vector<int64_t>{top, left, bottom, right});
  if (e.kind >= Ending::kFused)
    node.attr("activation", e.act->name)
        .attr("activation_alpha", e.act->alpha)
        .attr("activation_beta", e.act->beta);
  std::vector<double> reals;
  const auto x_zero = static_cast<int64_t>(zeros.x.values[0]);
  for (int64_t b = 0; b < n; ++b)
    for (int64_t o = 0; o < out; ++o) {
      const auto w_zero =
          static_cast<int64_t>(zeros.w.values[zeros.w.values.size() == 1 ? 0 : static_cast<size_t>(o)]);
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t z = 0; z < ow; ++z) {
          int64_t sum = 0;
          for (int64_t c = 0; c < in / group; ++c)
            for (int64_t i = 0; i < kh; ++i)
              for (int64_t j = 0; j < kw; ++j) {
                const int64_t row = y * sh - top + i * dh, column = z * sw - left + j * dw;
                if (row < 0 || row >= h || column < 0 || column >= w) continue;
                const int64_t channel = o / (out / group) * (in / group) + c;
                sum += (static_cast<int64_t>(
                            x.values[static_cast<size_t>(((b * in + channel) * h + row) * w + column)]) -
                        x_zero) *
                       (static_cast<int64_t>(
                            weight.values[static_cast<size_t>(((o * (in / group) + c) * kh + i) * kw + j)]) -
                        w_zero);
              }
          reals.push_back(e.real(sum, o));
        }
    }
  std::ostringstream what;
  what << "seed " << seed << ' ' << kNames[e.kind] << " x " << n << ' ' << in << ' ' << h << ' ' << w
       << ", w " << out << ' ' << kh << ' ' << kw << ", group " << group << ", strides " << sh << ' ' << sw
       << ", dilations " << dh << ' ' << dw << ", pads " << top << ' ' << left << ' ' << bottom << ' '
       << right << ' ' << e.act->name;
  SCOPED_TRACE(what.str());
  tally.check(node, chip,
              [&](const std::vector<double>& got, const std::string& name) { judge(e, reals, got, name); });
  return true;
}

TEST(Aicore, ConvolutionsOfBytes) {
  Tally tally;
  const int64_t count = shapes(200);
  uint64_t seed = 500'000;
  for (int64_t i = 0; i < count && !HasFailure();) i += convolution(seed++, tally);
  tally.finish("convolutions of bytes");
}

void product(uint64_t seed, Tally& tally) {
  Random random(seed);
  const Chip chip = any_chip(random);
  const int64_t sizes = pick(random, 0, 9), batch = pick(random, 0, 3) ? 1 : pick(random, 2, 5);
  const int64_t m = sizes == 0   ? pick(random, 150, 1500)
                    : sizes == 1 ? 1
                                 : pick(random, 1, 150),
                k = sizes == 2   ? pick(random, 330, 6000)
                    : sizes == 5 ? pick(random, 60, 190) * 32
                    : sizes == 0 ? pick(random, 1, 60)
                                 : pick(random, 1, 330),
                n = sizes == 3   ? pick(random, 200, 2000)
                    : sizes == 4 ? 1
                                 : pick(random, 1, 120);
  const regie_elem x_elem = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8,
                   w_elem = pick(random, 0, 2) ? REGIE_I8 : REGIE_U8;
  const Zeros zeros = draw_zeros(random, x_elem, w_elem, n);
  Ending e = draw_ending(random, n, k, true);
  const bool turned = e.kind >= Ending::kFused && pick(random, 0, 1),
             late_zero = (e.kind == Ending::kInteger || e.kind == Ending::kFloat) && pick(random, 0, 1);
  const Array x = random_bytes(
                  random, batch > 1 ? std::vector<int64_t>{batch, m, k} : std::vector<int64_t>{m, k}, x_elem),
              weight = random_bytes(random, turned ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n},
                                    w_elem);
  constexpr const char* kNames[] = {"MatMulInteger", "QLinearMatMul", "regie.QMatMul", "regie.QMatMul"};
  if (e.kind == Ending::kLinear) e.bias = {};  // it has none
  Node node(kNames[e.kind], REGIE_F32);
  put_operands(node, e, x, x_elem, zeros.x, late_zero, weight, w_elem, zeros.w);
  node.result(batch > 1 ? std::vector<int64_t>{batch, m, n} : std::vector<int64_t>{m, n}, e.result);
  if (e.kind >= Ending::kFused)
    node.attr("activation", e.act->name)
        .attr("activation_alpha", e.act->alpha)
        .attr("activation_beta", e.act->beta)
        .attr("transB", int64_t{turned});
  std::vector<double> reals;
  const auto x_zero = static_cast<int64_t>(zeros.x.values[0]);
  for (int64_t i = 0; i < batch * m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const auto w_zero =
          static_cast<int64_t>(zeros.w.values[zeros.w.values.size() == 1 ? 0 : static_cast<size_t>(j)]);
      int64_t sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (static_cast<int64_t>(x.values[static_cast<size_t>(i * k + l)]) - x_zero) *
               (static_cast<int64_t>(weight.values[static_cast<size_t>(turned ? j * k + l : l * n + j)]) -
                w_zero);
      reals.push_back(e.real(sum, j));
    }
  std::ostringstream what;
  what << "seed " << seed << ' ' << kNames[e.kind] << " batch " << batch << " m k n " << m << ' ' << k << ' '
       << n << (turned ? " turned" : "") << (late_zero ? " late zero" : "")
       << (e.late_scale ? " late scale " : " ") << e.act->name;
  SCOPED_TRACE(what.str());
  tally.check(node, chip,
              [&](const std::vector<double>& got, const std::string& name) { judge(e, reals, got, name); });
}

TEST(Aicore, ProductsOfBytes) {
  Tally tally;
  const int64_t count = shapes(200);
  for (int64_t i = 0; i < count && !HasFailure(); ++i) product(static_cast<uint64_t>(600'000 + i), tally);
  tally.finish("products of bytes");
}

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
