// Products and convolutions of bytes, of random shapes, scales and zero points: sums of 32 bits must be
// exact, and what is made of them what the operators' definitions say, worked out here from whole numbers and
// in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "bytes.h"
#include "convolution.h"

namespace aicore::test {
namespace {

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

// Half of them of whole blocks of 32 channels, which may lie so.
void draw_channels(Random& random, Convolution& c) {
  c.draw_channels(random, 70, 80, 40);
  if (pick(random, 0, 1)) return;
  const auto whole = [](int64_t n) { return (n + 31) / 32 * 32; };
  if (c.depthwise) {
    const int64_t each = c.out / c.in;
    c.in = c.group = whole(c.in);
    c.out = c.in * each;
  } else if (c.group == 1) {
    c.in = whole(c.in);
    c.out = whole(c.out);
  }
}

bool convolution(uint64_t seed, Tally& tally) {
  Random random(seed);
  const Chip chip = any_chip(random);
  Convolution c;
  draw_channels(random, c);
  if (!c.draw_map(random, 4, 5, 3, 2) || c.products() > 2'000'000) return false;
  const regie_elem x_elem = pick(random, 0, 1) ? REGIE_U8 : REGIE_I8,
                   w_elem = pick(random, 0, 2) ? REGIE_I8 : REGIE_U8;
  const Array x = random_bytes(random, c.x_dims(), x_elem), weight = random_bytes(random, c.w_dims(), w_elem);
  const Zeros zeros = draw_zeros(random, x_elem, w_elem, c.out);
  const Ending e = draw_ending(random, c.out, c.in / c.group * c.kh * c.kw, false);
  constexpr const char* kNames[] = {"ConvInteger", "QLinearConv", "regie.QConv", "regie.QConv"};
  Node node(kNames[e.kind], REGIE_F32);
  put_operands(node, e, c.shaped(x), x_elem, zeros.x, false, c.shaped(weight), w_elem, zeros.w);
  node.result(c.spatial(c.y_dims()), e.result);
  c.put_attrs(node);
  if (e.kind >= Ending::kFused)
    node.attr("activation", e.act->name)
        .attr("activation_alpha", e.act->alpha)
        .attr("activation_beta", e.act->beta);
  std::vector<double> reals;
  const auto x_zero = static_cast<int64_t>(zeros.x.values[0]);
  c.each_element([&](int64_t b, int64_t o, int64_t i) {
    const auto w_zero =
        static_cast<int64_t>(zeros.w.values[zeros.w.values.size() == 1 ? 0 : static_cast<size_t>(o)]);
    int64_t sum = 0;
    c.each_product(b, o, i, [&](size_t left, size_t right) {
      sum += (static_cast<int64_t>(x.values[left]) - x_zero) *
             (static_cast<int64_t>(weight.values[right]) - w_zero);
    });
    reals.push_back(e.real(sum, o));
  });
  SCOPED_TRACE("seed " + std::to_string(seed) + ' ' + kNames[e.kind] + ' ' + c.text() + ' ' + e.act->name);
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

// A residual sum behind a convolution: what DequantizeLinear, Add, Relu and QuantizeLinear give of the
// convolution's own bytes, each rounded to f32.
bool sum_of_bytes(uint64_t seed, Tally& tally) {
  Random random(seed);
  const Chip chip = any_chip(random);
  Convolution c;
  draw_channels(random, c);
  if (!c.draw_map(random, 3, 3, 2, 2) || c.products() > 1'000'000) return false;
  const auto any_byte = [&] { return static_cast<regie_elem>(pick(random, 0, 1) ? REGIE_U8 : REGIE_I8); };
  const regie_elem x_elem = any_byte(), elem = any_byte(), r_elem = any_byte();
  const Array x = random_bytes(random, c.x_dims(), x_elem),
              weight = random_bytes(random, c.w_dims(), REGIE_I8),
              added = random_bytes(random, c.y_dims(), r_elem);
  const auto zero_of = [&](regie_elem e) {
    return pick(random, 0, 2) ? low_of(e) + pick(random, 0, 255) : pick(random, 0, 1) ? low_of(e) : 0;
  };
  const int64_t x_zero = zero_of(x_elem), c_zero = zero_of(elem), r_zero = zero_of(r_elem),
                y_zero = zero_of(elem);
  const bool relu = pick(random, 0, 1);
  const double depth = static_cast<double>(c.in / c.group * c.kh * c.kw),
               x_scale = static_cast<float>(0.01 + static_cast<double>(random() % 100) / 2000);
  const Array w_scale = random_scales(random, pick(random, 0, 1) ? c.out : 1, 0.01);
  const auto near = [&](double v) {
    return static_cast<float>(v * (0.5 + static_cast<double>(random() % 100) / 100));
  };
  const float c_scale = near(x_scale * 0.01 * 80 * 80 * std::sqrt(depth) / 60), r_scale = near(c_scale),
              y_scale = near(1.5 * c_scale);
  Array bias;
  const int64_t biases = pick(random, 0, 2);  // none, whole ones, any
  const auto scale_of = [&](int64_t o) {
    return x_scale * w_scale.values[w_scale.values.size() == 1 ? 0 : static_cast<size_t>(o)];
  };
  if (biases) {
    bias.dims = {c.out};
    for (int64_t o = 0; o < c.out; ++o)
      bias.values.push_back(static_cast<float>(static_cast<double>(pick(random, -9000, 9000)) * scale_of(o) *
                                               (biases == 1 ? 1 : 1.37)));
  }
  Node node("regie.QConvAdd", REGIE_F32);
  node.operand(c.shaped(x), false, x_elem).operand(one(x_scale), true, REGIE_F32);
  node.operand(one(static_cast<double>(x_zero)), true, x_elem).operand(c.shaped(weight), true, REGIE_I8);
  node.operand(w_scale, true, REGIE_F32).operand(one(0), true, REGIE_I8);
  if (biases)
    node.operand(bias, true, REGIE_F32);
  else
    node.absent();
  node.operand(one(c_scale), true, REGIE_F32).operand(one(static_cast<double>(c_zero)), true, elem);
  node.operand(c.shaped(added), false, r_elem).operand(one(r_scale), true, REGIE_F32);
  node.operand(one(static_cast<double>(r_zero)), true, r_elem).operand(one(y_scale), true, REGIE_F32);
  node.operand(one(static_cast<double>(y_zero)), true, elem).result(c.spatial(c.y_dims()), elem);
  c.put_attrs(node);
  node.attr("activation", relu ? "Relu" : "");
  const double low = static_cast<double>(low_of(elem));
  std::vector<double> expected;
  std::vector<bool> open;  // between two whole numbers, before it is a byte
  c.each_element([&](int64_t b, int64_t o, int64_t i) {
    int64_t sum = 0;
    c.each_product(b, o, i, [&](size_t left, size_t right) {
      sum += (static_cast<int64_t>(x.values[left]) - x_zero) * static_cast<int64_t>(weight.values[right]);
    });
    double real = static_cast<double>(sum) * scale_of(o);
    if (biases) real += bias.values[static_cast<size_t>(o)];
    real /= static_cast<double>(c_scale);
    open.push_back(std::abs(std::abs(real - std::floor(real)) - 0.5) < 1e-3);
    const double whole = std::clamp(std::nearbyint(real) + static_cast<double>(c_zero), low, low + 255);
    const float inner = static_cast<float>(whole - static_cast<double>(c_zero)) * c_scale,
                outer =
                    static_cast<float>(added.values[expected.size()] - static_cast<double>(r_zero)) * r_scale;
    float value = inner + outer;
    if (relu) value = std::max(value, 0.0F);
    const double q = std::nearbyint(static_cast<double>(value / y_scale)) + static_cast<double>(y_zero);
    expected.push_back(std::clamp(q, low, low + 255));
  });
  SCOPED_TRACE("seed " + std::to_string(seed) + ' ' + c.text());
  tally.check(node, chip, [&](const std::vector<double>& got, const std::string& name) {
    ASSERT_EQ(got.size(), expected.size()) << name;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_LE(std::abs(got[i] - expected[i]), open[i] ? 2 : 0) << name << ", element " << i;
  });
  return true;
}

TEST(Aicore, SumsOfBytes) {
  Tally tally;
  const int64_t count = shapes(150);
  uint64_t seed = 540'000;
  for (int64_t i = 0; i < count && !HasFailure();) i += sum_of_bytes(seed++, tally);
  tally.finish("convolutions and sums of bytes");
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

}  // namespace
}  // namespace aicore::test
