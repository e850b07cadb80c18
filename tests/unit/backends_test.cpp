// The two backends through their C tables alone: answers of oneDNN kernels against plain loops written here,
// packed weights at other shapes, damaged kernels, allocations in a launch; the asynchronous device with its
// failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "harness.h"
#include "regie/c/pass.h"
#include "regie/op_blob.hpp"
#include "regie_test_paths.h"
#include "support/alloc_counter.h"

namespace {

using namespace regie::conformance;
using Ints = std::vector<int64_t>;

const Library& library(const std::string& name) {
  static std::map<std::string, Library> open;
  auto at = open.find(name);
  if (at == open.end())
    at = open.emplace(name, Library(std::string(REGIE_TEST_PLUGIN_DIR) + "/" + name + ".so")).first;
  return at->second;
}
void need_reference_kernels() {
  static const std::string problem =
      add_reference_kernels(std::string(REGIE_TEST_PLUGIN_DIR) + "/ops-standard.so");
  ASSERT_EQ(problem, "");
}

struct HostCpu {
  explicit HostCpu(const Settings& settings = {})
      : engine(library("host_cpu").engines(), 0, settings), device(library("host_cpu").devices(), 0, {}) {}
  EngineUnderTest engine;
  DeviceUnderTest device;
};

int64_t random_in(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}
int64_t product(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
// Calls f with every index of a box, row-major.
void each(const Ints& dims, const std::function<void(const Ints&)>& f) {
  if (product(dims) == 0) return;
  Ints at(dims.size(), 0);
  for (;;) {
    f(at);
    size_t axis = dims.size();
    while (axis > 0 && ++at[axis - 1] == dims[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}
int64_t offset(const Ints& dims, const Ints& at) {
  int64_t o = 0;
  for (size_t i = 0; i < dims.size(); ++i) o = o * dims[i] + at[i];
  return o;
}

double activate(const std::string& name, double x, double alpha, double beta) {
  if (name == "Relu") return std::max(x, 0.0);
  if (name == "LeakyRelu") return x < 0 ? alpha * x : x;
  if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "Tanh") return std::tanh(x);
  if (name == "HardSigmoid") return std::clamp(alpha * x + beta, 0.0, 1.0);
  if (name == "HardSwish") return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
  if (name == "Clip") return std::clamp(x, alpha, beta);
  if (name == "Elu") return x < 0 ? alpha * std::expm1(x) : x;
  if (name == "Swish") return x / (1 + std::exp(-x));
  return x;
}
struct ActivationCase {
  const char* name;
  double alpha, beta;
};
constexpr ActivationCase kActivations[] = {
    {"", 0, 0},          {"Relu", 0, 0},       {"LeakyRelu", 0.125, 0},
    {"Sigmoid", 0, 0},   {"Tanh", 0, 0},       {"HardSigmoid", 0.25, 0.5},
    {"HardSwish", 0, 0}, {"Clip", -0.5, 0.75}, {"Elu", 0.5, 0},
    {"Swish", 0, 0}};

// --- convolution
// -------------------------------------------------------------------------------------------------

struct ConvCase {
  Ints x, kernel, strides, dilations, pads;  // pads: begins, then ends
  int64_t out_channels = 1, group = 1;
  bool bias = false, residual = false, constant = true;
  const char* auto_pad = "NOTSET";
  ActivationCase activation = kActivations[0];

  size_t spatial() const { return kernel.size(); }
  Ints effective_pads() const {
    Ints p = pads;
    for (size_t i = 0; i < spatial(); ++i) {
      const std::string mode = auto_pad;
      if (mode == "VALID") p[i] = p[i + spatial()] = 0;
      if (mode.rfind("SAME", 0) != 0) continue;
      const int64_t out = (x[2 + i] + strides[i] - 1) / strides[i];
      const int64_t total =
          std::max<int64_t>(0, (out - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - x[2 + i]);
      p[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      p[i + spatial()] = total - p[i];
    }
    return p;
  }
  Ints result() const {
    Ints y{x[0], out_channels}, p = effective_pads();
    for (size_t i = 0; i < spatial(); ++i)
      y.push_back((x[2 + i] + p[i] + p[i + spatial()] - dilations[i] * (kernel[i] - 1) - 1) / strides[i] + 1);
    return y;
  }
  Ints weight() const {
    Ints w{out_channels, x[1] / group};
    w.insert(w.end(), kernel.begin(), kernel.end());
    return w;
  }
  std::string describe() const {
    auto list = [](const Ints& v) {
      std::string s = "[";
      for (int64_t n : v) s += std::to_string(n) + " ";
      return s + "]";
    };
    return "x " + list(x) + " w " + list(weight()) + " strides " + list(strides) + " dilations " +
           list(dilations) + " pads " + list(pads) + auto_pad + " group " + std::to_string(group) +
           (bias ? " bias" : "") + (residual ? " residual" : "") + (constant ? " constant " : " ") +
           activation.name;
  }
};

std::unique_ptr<Node> conv_node(const ConvCase& c, uint64_t seed) {
  std::vector<Attr> attrs = {attr("strides", c.strides), attr("dilations", c.dilations),
                             attr("group", c.group), attr("auto_pad", c.auto_pad),
                             attr("kernel_shape", c.kernel)};
  if (std::string(c.auto_pad) == "NOTSET") attrs.push_back(attr("pads", c.pads));
  const bool fused = c.residual || *c.activation.name;
  if (fused) {
    attrs.push_back(attr("activation", c.activation.name));
    attrs.push_back(attr("activation_alpha", c.activation.alpha));
    attrs.push_back(attr("activation_beta", c.activation.beta));
  }
  std::vector<TensorData> in = {random_floats(c.x, seed), random_floats(c.weight(), seed + 1)};
  in[1].constant = c.constant;
  in.push_back(c.bias ? constant(random_floats({c.out_channels}, seed + 2)) : absent());
  if (fused) in.push_back(c.residual ? random_floats(c.result(), seed + 3) : absent());
  return std::make_unique<Node>(fused ? "regie.FusedConv" : "Conv", attrs, std::move(in),
                                std::vector<TensorData>{zeros(REGIE_F32, c.result())});
}

std::vector<TensorData> conv_by_loops(const ConvCase& c, const Node& node) {
  TensorData y = zeros(REGIE_F32, c.result());
  const Ints w_dims = c.weight(), pads = c.effective_pads();
  const float *x = node.operands[0].as<float>(), *w = node.operands[1].as<float>();
  const int64_t out_a_group = c.out_channels / c.group;
  each(y.dims, [&](const Ints& at) {
    double sum = c.bias ? node.operands[2].as<float>()[at[1]] : 0;
    each(Ints(w_dims.begin() + 1, w_dims.end()), [&](const Ints& tap) {
      Ints from{at[0], at[1] / out_a_group * w_dims[1] + tap[0]}, weight{at[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      for (size_t i = 0; i < c.spatial(); ++i) {
        const int64_t p = at[2 + i] * c.strides[i] - pads[i] + tap[1 + i] * c.dilations[i];
        if (p < 0 || p >= c.x[2 + i]) return;
        from.push_back(p);
      }
      sum += static_cast<double>(x[offset(c.x, from)]) * w[offset(w_dims, weight)];
    });
    const int64_t o = offset(y.dims, at);
    if (c.residual) sum += node.operands[3].as<float>()[o];
    y.as<float>()[o] =
        static_cast<float>(activate(c.activation.name, sum, c.activation.alpha, c.activation.beta));
  });
  return {y};
}

ConvCase random_conv(std::mt19937_64& random) {
  ConvCase c;
  const auto spatial = static_cast<size_t>(random_in(random, 1, 3));
  const int64_t shape = random_in(random, 0, 3);  // dense, grouped, depth-wise, one input channel
  int64_t in = random_in(random, 1, 20);
  c.out_channels = random_in(random, 1, 36);
  if (shape == 1) {
    c.group = random_in(random, 2, 4);
    in = c.group * random_in(random, 1, 6);
    c.out_channels = c.group * random_in(random, 1, 9);
  } else if (shape == 2) {
    c.group = in;
    c.out_channels = in * random_in(random, 1, 2);
  } else if (shape == 3) {
    in = 1;
  }
  c.x = {random_in(random, 1, 3), in};
  for (size_t i = 0; i < spatial; ++i) {
    c.kernel.push_back(random_in(random, 1, 4));
    c.strides.push_back(random_in(random, 1, 3));
    c.dilations.push_back(random_in(random, 0, 2) == 0 ? 2 : 1);
    c.x.push_back(c.dilations[i] * (c.kernel[i] - 1) + 1 + random_in(random, 0, spatial == 3 ? 4 : 9));
  }
  for (size_t i = 0; i < 2 * spatial; ++i) c.pads.push_back(random_in(random, 0, 2));
  constexpr const char* modes[] = {"NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  c.auto_pad = modes[random() % 6];
  c.bias = random() % 2;
  c.residual = random() % 3 == 0;
  c.constant = random() % 4 != 0;
  c.activation = kActivations[random() % std::size(kActivations)];
  return c;
}

constexpr double kTolerance = 1e-5;

class Convolution : public testing::TestWithParam<const char*> {};

// Random shapes and attributes; one kernel at the shape that it was compiled for and at another batch, 1 and
// 2 threads.
TEST_P(Convolution, EqualsPlainLoops) {
  HostCpu cpu(Settings{{"layout", GetParam()}});
  std::mt19937_64 random(20240611);
  int packed = 0;
  for (int n = 0; n < 120; ++n) {
    const ConvCase c = random_conv(random);
    SCOPED_TRACE(c.describe());
    auto node = conv_node(c, random());
    const auto answer = cpu.engine.ask(*node);
    ASSERT_TRUE(answer.can && !answer.reference) << answer.reason;
    EXPECT_GT(answer.cost_ns, 0);
    const uint32_t threads = 1 + n % 2;
    const Kernel kernel = cpu.engine.compile(*node, threads);
    ASSERT_EQ(kernel.format, "host_cpu.onednn/1");
    packed += !kernel.weights.empty();
    ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {threads, 1})), kTolerance);
    if (c.residual) {
      ASSERT_EQ(cpu.engine.alias(*node, 0, 3), static_cast<uint32_t>(REGIE_ALIAS_INPLACE));
      ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {threads, 2, 3})),
                kTolerance);
    }
    ConvCase other = c;
    other.x[0] = c.x[0] + random_in(random, 1, 4);
    const uint64_t seed = random();
    auto more = conv_node(other, seed);
    for (uint32_t i : {1u, 2u}) more->operands[i].bytes = node->operands[i].bytes;
    ASSERT_LE(difference(conv_by_loops(other, *more), cpu.device.run(kernel, *more, {threads, 1})),
              kTolerance);
  }
  // Row-major convolution takes the weights as they are.
  EXPECT_GT(packed, std::string(GetParam()) == "plain" ? -1 : 40);
}
INSTANTIATE_TEST_SUITE_P(Layouts, Convolution, testing::Values("auto", "plain", "own"),
                         [](const auto& info) { return std::string(info.param); });

// What oneDNN is not asked for, or has no kernel for, goes to the reference kernel or is refused; never
// wrong.
TEST(HostCpu, AnswersByReferenceKernelWhereOneDnnDoesNot) {
  need_reference_kernels();
  HostCpu cpu;
  auto ask = [&](const Node& node) { return cpu.engine.ask(node); };
  const Node relu("Relu", {}, {random_floats({2, 3}, 1)}, {zeros(REGIE_F32, {2, 3})});
  EXPECT_TRUE(ask(relu).can && ask(relu).reference);
  const Node half("Conv", {attr("pads", Ints{0, 0, 0, 0})},
                  {zeros(REGIE_F16, {1, 2, 4, 4}), constant(zeros(REGIE_F16, {2, 2, 3, 3}))},
                  {zeros(REGIE_F16, {1, 2, 2, 2})});
  EXPECT_TRUE(ask(half).can && ask(half).reference);
  EXPECT_NE(ask(half).reason.find("float32"), std::string::npos) << ask(half).reason;
  const Node deep("Conv", {}, {random_floats({1, 1, 3, 3, 3, 3}, 1), random_floats({1, 1, 2, 2, 2, 2}, 2)},
                  {zeros(REGIE_F32, {1, 1, 2, 2, 2, 2})});
  EXPECT_TRUE(ask(deep).can && ask(deep).reference);
  const Node unknown("vendor.Nothing", {}, {random_floats({2}, 1)}, {zeros(REGIE_F32, {2})});
  EXPECT_FALSE(ask(unknown).can);
  EXPECT_NE(ask(unknown).reason.find("vendor.Nothing"), std::string::npos);
  EXPECT_THROW(cpu.engine.compile(unknown), std::runtime_error);
  const Node strange("regie.FusedConv", {attr("activation", "Sinus")},
                     {random_floats({1, 2, 4, 4}, 1), constant(random_floats({2, 2, 1, 1}, 2))},
                     {zeros(REGIE_F32, {1, 2, 4, 4})});
  EXPECT_FALSE(ask(strange).can);
}

TEST(HostCpu, RunsNothingForEmptyResultsAndReferenceForEmptyOperands) {
  need_reference_kernels();
  HostCpu cpu;
  ConvCase c{{2, 3, 5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  c.out_channels = 4;
  c.bias = true;
  auto node = conv_node(c, 7);
  const Kernel kernel = cpu.engine.compile(*node);
  ASSERT_FALSE(kernel.weights.empty());
  c.x[0] = 0;
  auto none = conv_node(c, 7);
  EXPECT_EQ(cpu.device.run(kernel, *none)[0].bytes.size(), 0u);
  // Compiled for an empty batch, run with a full one.
  const Kernel empty = cpu.engine.compile(*none);
  EXPECT_LE(difference(conv_by_loops(ConvCase{c}, *none), cpu.device.run(empty, *none)), kTolerance);
  EXPECT_LE(difference(node->results, node->results), 0);
  c.x[0] = 2;
  EXPECT_LE(difference(conv_by_loops(c, *node), cpu.device.run(empty, *node)), kTolerance);
  // A product over an empty axis is the addend.
  Node product_node("Gemm", {},
                    {zeros(REGIE_F32, {2, 0}), constant(zeros(REGIE_F32, {0, 3})), floats({3}, {1, 2, 3})},
                    {zeros(REGIE_F32, {2, 3})});
  const Kernel gemm = cpu.engine.compile(product_node);
  EXPECT_EQ(difference({floats({2, 3}, {1, 2, 3, 1, 2, 3})}, cpu.device.run(gemm, product_node)), 0);
}

// --- matrix products
// ---------------------------------------------------------------------------------------------

struct ProductCase {
  std::string op = "MatMul";
  Ints a, b, c, r, y;  // c, r: empty, or the addend's shape (a scalar is {1})
  bool trans_a = false, trans_b = false, constant = true;
  double alpha = 1, beta = 1;
  ActivationCase activation = kActivations[0];
};

// Element of `t` at `at`, right-aligned, 1 broadcast.
double broadcast_element(const TensorData& t, const Ints& at) {
  int64_t o = 0;
  for (size_t i = 0; i < t.dims.size(); ++i)
    o = o * t.dims[i] + (t.dims[i] == 1 ? 0 : at[at.size() - t.dims.size() + i]);
  return t.as<float>()[o];
}

std::unique_ptr<Node> product_node(const ProductCase& c, uint64_t seed) {
  std::vector<Attr> attrs;
  if (c.op != "MatMul") {
    attrs = {attr("transA", int64_t{c.trans_a}), attr("transB", int64_t{c.trans_b}), attr("alpha", c.alpha)};
    if (c.op == "Gemm") attrs.push_back(attr("beta", c.beta));
    if (c.op == "regie.FusedMatMul") {
      attrs.push_back(attr("activation", c.activation.name));
      attrs.push_back(attr("activation_alpha", c.activation.alpha));
      attrs.push_back(attr("activation_beta", c.activation.beta));
    }
  }
  std::vector<TensorData> in = {random_floats(c.a, seed), random_floats(c.b, seed + 1)};
  in[1].constant = c.constant;
  if (c.op != "MatMul") in.push_back(c.c.empty() ? absent() : random_floats(c.c, seed + 2));
  if (c.op == "regie.FusedMatMul") in.push_back(c.r.empty() ? absent() : random_floats(c.r, seed + 3));
  return std::make_unique<Node>(c.op, attrs, std::move(in), std::vector<TensorData>{zeros(REGIE_F32, c.y)});
}

std::vector<TensorData> product_by_loops(const ProductCase& c, const Node& node) {
  TensorData y = zeros(REGIE_F32, c.y);
  const bool vector_a = c.a.size() == 1, vector_b = c.b.size() == 1;
  const int64_t inner = vector_a ? c.a[0] : c.a[c.a.size() - (c.trans_a ? 2 : 1)];
  each(c.y, [&](const Ints& at) {
    Ints full = at;  // with the axes that vectors lack
    if (vector_b) full.push_back(0);
    if (vector_a) full.insert(full.end() - 1, 0);
    const int64_t i = full[full.size() - 2], j = full.back();
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      Ints ia(full.begin(), full.end() - 2), ib = ia;
      if (vector_a) ia = {k};
      if (vector_b) ib = {k};
      if (!vector_a) ia.insert(ia.end(), {c.trans_a ? k : i, c.trans_a ? i : k});
      if (!vector_b) ib.insert(ib.end(), {c.trans_b ? j : k, c.trans_b ? k : j});
      sum += broadcast_element(node.operands[0], ia) * broadcast_element(node.operands[1], ib);
    }
    sum *= c.alpha;
    if (!c.c.empty()) sum += c.beta * broadcast_element(node.operands[2], at);
    if (!c.r.empty()) sum += broadcast_element(node.operands[3], at);
    y.as<float>()[offset(c.y, at)] =
        static_cast<float>(activate(c.activation.name, sum, c.activation.alpha, c.activation.beta));
  });
  return {y};
}

ProductCase random_product(std::mt19937_64& random) {
  constexpr const char* ops[] = {"MatMul", "Gemm", "regie.FusedMatMul"};
  ProductCase c;
  c.op = ops[random() % 3];
  c.constant = random() % 3 != 0;
  const int64_t m = random_in(random, 1, 40), n = random_in(random, 1, 70), k = random_in(random, 1, 50);
  const bool gemm = c.op == "Gemm", fused = c.op == "regie.FusedMatMul";
  if (gemm || fused) {
    c.trans_a = random() % 2;
    c.trans_b = random() % 2;
    c.alpha = random() % 3 == 0 ? 0.5 : 1;
  }
  if (gemm && random() % 3 == 0) c.beta = random() % 2 ? 0.25 : 0;
  Ints batch_a, batch_b, batch;
  for (int64_t axes = gemm ? 0 : random_in(random, 0, 2); axes > 0; --axes) {
    const int64_t size = random_in(random, 1, 3);
    batch.push_back(size);
    batch_a.push_back(random() % 4 == 0 ? 1 : size);
    batch_b.push_back(random() % 2 == 0 ? 1 : size);
    if (batch_a.back() != size && batch_b.back() != size) batch_a.back() = size;
  }
  if (random() % 2 && std::all_of(batch_b.begin(), batch_b.end(), [](int64_t d) { return d == 1; }))
    batch_b.clear();
  const bool plain = !gemm && !c.trans_a && !c.trans_b;
  const bool vector_a = plain && batch.empty() && random() % 6 == 0,
             vector_b = plain && batch_b.empty() && random() % 6 == 0;
  c.a = batch_a;
  c.b = batch_b;
  c.y = batch;
  if (vector_a)
    c.a = {k};
  else
    c.a.insert(c.a.end(), {c.trans_a ? k : m, c.trans_a ? m : k});
  if (vector_b)
    c.b = {k};
  else
    c.b.insert(c.b.end(), {c.trans_b ? n : k, c.trans_b ? k : n});
  if (vector_b) c.y = Ints(c.a.begin(), c.a.end() - 2 + (vector_a ? 1 : 0));
  if (vector_a && vector_b) c.y = {};
  if (!vector_a && vector_b)
    c.y = Ints(batch_a), c.y.push_back(m);
  else if (!vector_b) {
    if (!vector_a) c.y.push_back(m);
    c.y.push_back(n);
  }
  auto addend = [&]() -> Ints {
    if (c.y.empty()) return {};
    Ints dims = c.y;
    switch (random() % 5) {
      case 0:
        return {};
      case 1:
        return {dims.back()};
      case 2:
        return {1};
      case 3:
        dims.back() = 1;
        return dims;
      default:
        return dims;
    }
  };
  if (gemm || fused) c.c = addend();
  if (fused) {
    c.r = addend();
    c.activation = kActivations[random() % std::size(kActivations)];
  }
  return c;
}

TEST(HostCpu, MatrixProductsEqualPlainLoops) {
  need_reference_kernels();
  HostCpu cpu;
  std::mt19937_64 random(77);
  int packed = 0, in_place = 0, by_reference = 0;
  for (int n = 0; n < 400; ++n) {
    const ProductCase c = random_product(random);
    auto text = [](const Ints& d) {
      std::string s;
      for (int64_t k : d) s += std::to_string(k) + ",";
      return s;
    };
    SCOPED_TRACE(std::to_string(n) + " " + c.op + " a " + text(c.a) + " b " + text(c.b) + " c " + text(c.c) +
                 " r " + text(c.r) + " y " + text(c.y) + (c.trans_a ? " tA" : "") + (c.trans_b ? " tB" : "") +
                 (c.constant ? " constant " : " ") + c.activation.name + " alpha " + std::to_string(c.alpha) +
                 " beta " + std::to_string(c.beta));
    auto node = product_node(c, random());
    const auto answer = cpu.engine.ask(*node);
    ASSERT_TRUE(answer.can) << answer.reason;
    by_reference += answer.reference;
    const uint32_t threads = 1 + n % 2;
    const Kernel kernel = cpu.engine.compile(*node, threads);
    packed += !kernel.weights.empty();
    const auto expected = product_by_loops(c, *node);
    ASSERT_LE(difference(expected, cpu.device.run(kernel, *node, {threads, 1})), kTolerance) << kernel.name;
    if (c.op == "regie.FusedMatMul" && !c.r.empty() && cpu.engine.alias(*node, 0, 3) == REGIE_ALIAS_INPLACE) {
      ++in_place;
      ASSERT_LE(difference(expected, cpu.device.run(kernel, *node, {threads, 2, 3})), kTolerance)
          << kernel.name;
    }
    if (c.a.size() < 2 || c.trans_a || !c.c.empty() || !c.r.empty() || c.b.size() > 2 || c.a.size() > 2)
      continue;
    ProductCase other = c;  // more rows
    other.a[0] += 5;
    other.y[0] += 5;
    auto more = product_node(other, random());
    more->operands[1].bytes = node->operands[1].bytes;
    ASSERT_LE(difference(product_by_loops(other, *more), cpu.device.run(kernel, *more, {threads, 1})),
              kTolerance);
  }
  EXPECT_GT(packed, 50);
  EXPECT_GT(in_place, 10);
  EXPECT_LT(by_reference, 40);
}

// --- pooling
// -----------------------------------------------------------------------------------------------------

TEST(HostCpu, PoolingEqualsPlainLoops) {
  need_reference_kernels();
  HostCpu cpu;
  std::mt19937_64 random(5);
  int by_dnnl = 0;
  for (int n = 0; n < 300; ++n) {
    constexpr const char* ops[] = {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    const std::string op = ops[random() % 4];
    const bool global = op[0] == 'G', maximum = op.find("Max") != std::string::npos;
    const auto spatial = static_cast<size_t>(random_in(random, 1, 3));
    Ints x{random_in(random, 1, 3), random_in(random, 1, 18)}, kernel, strides, dilations,
        pads(2 * spatial, 0), y{x[0], x[1]};
    const bool ceil = random() % 3 == 0, include = random() % 2;
    for (size_t i = 0; i < spatial; ++i) {
      kernel.push_back(random_in(random, 1, 4));
      strides.push_back(random_in(random, 1, 3));
      dilations.push_back(random() % 4 == 0 ? 2 : 1);
      const int64_t span = dilations[i] * (kernel[i] - 1) + 1;
      pads[i] = random_in(random, 0, kernel[i] - 1);
      pads[i + spatial] = random_in(random, 0, kernel[i] - 1);
      x.push_back(span + random_in(random, 0, 6));
      if (global) {
        kernel[i] = x[2 + i];
        strides[i] = dilations[i] = 1;
        pads[i] = pads[i + spatial] = 0;
      }
      const int64_t room = x[2 + i] + pads[i] + pads[i + spatial] - (dilations[i] * (kernel[i] - 1) + 1);
      int64_t out = room / strides[i] + 1;
      // ceil_mode: one more window if it begins inside of the input or the padding before it.
      if (ceil && room % strides[i] && out * strides[i] < x[2 + i] + pads[i]) ++out;
      y.push_back(out);
    }
    std::vector<Attr> attrs;
    if (!global) {
      attrs = {attr("kernel_shape", kernel), attr("strides", strides), attr("dilations", dilations),
               attr("pads", pads), attr("ceil_mode", int64_t{ceil})};
      if (!maximum) attrs.push_back(attr("count_include_pad", int64_t{include}));
    }
    Node node(op, attrs, {random_floats(x, random())}, {zeros(REGIE_F32, y)});
    const float* from = node.operands[0].as<float>();
    TensorData expected = zeros(REGIE_F32, y);
    each(y, [&](const Ints& at) {
      double sum = 0, most = -std::numeric_limits<double>::infinity();
      int64_t inside = 0, counted = 0;
      each(kernel, [&](const Ints& tap) {
        Ints source{at[0], at[1]};
        bool in_input = true, in_padding = true;
        for (size_t i = 0; i < spatial; ++i) {
          const int64_t p = at[2 + i] * strides[i] - pads[i] + tap[i] * dilations[i];
          in_input = in_input && p >= 0 && p < x[2 + i];
          in_padding = in_padding && p < x[2 + i] + pads[i + spatial];
          source.push_back(p);
        }
        counted += in_padding;
        if (!in_input) return;
        ++inside;
        const double v = from[offset(x, source)];
        sum += v;
        most = std::max(most, v);
      });
      const int64_t divisor = std::max<int64_t>(1, include && !global ? counted : inside);
      expected.as<float>()[offset(y, at)] =
          static_cast<float>(maximum ? most : sum / static_cast<double>(divisor));
    });
    SCOPED_TRACE(std::to_string(n) + " " + op + (ceil ? " ceil" : "") + (include ? " include" : ""));
    const auto answer = cpu.engine.ask(node);
    ASSERT_TRUE(answer.can) << answer.reason;
    by_dnnl += !answer.reference;
    const Kernel kernel_made = cpu.engine.compile(node, 1);
    ASSERT_LE(difference({expected}, cpu.device.run(kernel_made, node)), kTolerance)
        << kernel_made.name << answer.reason;
  }
  EXPECT_GT(by_dnnl, 150);
}

// --- kernels as data
// ---------------------------------------------------------------------------------------------

// A convolution with everything in its blob: packed weight, bias, residual, activation.
ConvCase rich_conv() {
  ConvCase c{{2, 6, 7, 7}, {3, 3}, {1, 2}, {1, 1}, {1, 0, 1, 1}};
  c.out_channels = 20;
  c.bias = c.residual = true;
  c.activation = kActivations[1];
  return c;
}

// A weight packed in a layout that nobody would choose is taken anyway: repacked, or given to the reference
// kernel.
TEST(HostCpu, TakesAPackedWeightInAnyLayout) {
  need_reference_kernels();
  HostCpu cpu;
  const ConvCase c = rich_conv();
  auto node = conv_node(c, 3);
  Kernel kernel = cpu.engine.compile(*node);
  ASSERT_EQ(kernel.weights.size(), 1u);
  // The layout's text in the blob (kernel_blob.h) stands at the end; here: OIHW in blocks of 5 output
  // channels.
  const Ints w = c.weight();  // 20, 6, 3, 3
  regie::sdk::BlobWriter layout;
  layout.put<uint32_t>(1);  // operand
  layout.put<uint32_t>(4);
  const Ints strides = {6 * 9 * 5, 9 * 5, 3 * 5, 5};
  for (size_t i = 0; i < 4; ++i) {
    layout.put<int64_t>(w[i]);
    layout.put<int64_t>(w[i]);
    layout.put<int64_t>(strides[i]);
  }
  layout.put<uint32_t>(1);
  layout.put<uint32_t>(0);
  layout.put<int64_t>(5);
  layout.put<uint64_t>(20 * 6 * 9 * 4);
  // The blob up to the operand number: what is behind it is 8 + 4 * 24 + 4 + blocks * 12 + 8 bytes long.
  const std::string& blob = kernel.blob;
  size_t cut = std::string::npos;
  for (uint32_t blocks = 0; blocks < 6; ++blocks) {
    const size_t tail = 8 + 4 * 24 + 4 + blocks * 12 + 8;
    uint32_t operand = 0, rank = 0, found = 0;
    std::memcpy(&operand, blob.data() + blob.size() - tail, 4);
    std::memcpy(&rank, blob.data() + blob.size() - tail + 4, 4);
    std::memcpy(&found, blob.data() + blob.size() - tail + 8 + 96, 4);
    if (operand == 1 && rank == 4 && found == blocks) cut = blob.size() - tail;
  }
  ASSERT_NE(cut, std::string::npos);
  kernel.blob = blob.substr(0, cut) + layout.take();
  std::vector<std::byte> bytes(20 * 6 * 9 * 4);
  for (int64_t o = 0; o < 20; ++o)
    for (int64_t rest = 0; rest < 54; ++rest)
      std::memcpy(bytes.data() + (o / 5 * 54 * 5 + rest * 5 + o % 5) * 4,
                  node->operands[1].as<float>() + o * 54 + rest, 4);
  kernel.weights[0].bytes = bytes;
  EXPECT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node)), kTolerance);
  ConvCase other = c;
  other.x[0] = 5;
  auto more = conv_node(other, 3);
  EXPECT_LE(difference(conv_by_loops(other, *more), cpu.device.run(kernel, *more)), kTolerance);
  // Fewer bytes than the layout needs are refused before anything reads them.
  kernel.weights[0].bytes.resize(bytes.size() - 4);
  EXPECT_THROW(cpu.device.run(kernel, *node), std::runtime_error);
}

// Truncations and flips of every byte: refused as CORRUPT, or still a kernel that loads and answers to
// prepare.
void damage(const DeviceUnderTest& device, const Kernel& kernel, const Node& node) {
  for (size_t size = 0; size < kernel.blob.size(); ++size) {
    Kernel cut = kernel;
    cut.blob.resize(size);
    ASSERT_EQ(device.try_load(cut), REGIE_CORRUPT) << size;
    ASSERT_NE(take_failure(), "");
  }
  Kernel longer = kernel;
  longer.blob += '\0';
  ASSERT_EQ(device.try_load(longer), REGIE_CORRUPT);
  int loaded = 0;
  for (size_t at = 0; at < kernel.blob.size(); ++at) {
    for (int flip : {0x01, 0x80, 0xff}) {
      Kernel bad = kernel;
      bad.blob[at] = static_cast<char>(bad.blob[at] ^ flip);
      const regie_status code = device.try_load(bad);
      ASSERT_TRUE(code == REGIE_OK || code == REGIE_CORRUPT) << at << ": " << code;
      if (code != REGIE_OK) continue;
      ++loaded;
      try {
        device.run(bad, node);
      } catch (const std::runtime_error&) {
      }
    }
  }
  EXPECT_GT(loaded, 0);
}

TEST(HostCpu, SurvivesDamagedKernels) {
  need_reference_kernels();
  HostCpu cpu;
  const ConvCase c = rich_conv();
  auto conv = conv_node(c, 3);
  damage(cpu.device, cpu.engine.compile(*conv), *conv);
  const Node soft("Softmax", {attr("axis", int64_t{-1})}, {random_floats({3, 4}, 1)},
                  {zeros(REGIE_F32, {3, 4})});
  damage(cpu.device, cpu.engine.compile(soft), soft);
  Kernel unknown{"vendor.format/1", "", "x", 0, {}, {}, 0};
  EXPECT_EQ(cpu.device.try_load(unknown), REGIE_UNSUPPORTED);
}

TEST(OpBlob, KeepsEveryKindOfAttribute) {
  const std::vector<int64_t> ints = {1, -2, INT64_MAX}, dims = {2, 3}, one = {1};
  const std::vector<double> doubles = {0.5, -1e300};
  const regie_str words[] = {regie::sdk::lit("a"), {nullptr, 0}};
  const std::vector<int16_t> data = {1, 2, 3, 4, 5, 6};
  regie_tensor tensor{REGIE_I16, 0, 2, dims.data(), nullptr, const_cast<int16_t*>(data.data()), 12};
  regie_tensor strings{REGIE_STRING,     0, 1, one.data(), nullptr, const_cast<regie_str*>(words),
                       sizeof(regie_str)};
  std::vector<regie_attr> attrs(8);
  const char* names[] = {"f", "fs", "i", "is", "s", "ss", "t", "u"};
  for (size_t k = 0; k < attrs.size(); ++k) attrs[k] = {regie::sdk::str(names[k]), 0, 1, {}};
  attrs[0].kind = REGIE_ATTR_FLOAT, attrs[0].v.f = 0.1;
  attrs[1].kind = REGIE_ATTR_FLOATS, attrs[1].v.floats = doubles.data(), attrs[1].count = 2;
  attrs[2].kind = REGIE_ATTR_INT, attrs[2].v.i = INT64_MIN;
  attrs[3].kind = REGIE_ATTR_INTS, attrs[3].v.ints = ints.data(), attrs[3].count = 3;
  attrs[4].kind = REGIE_ATTR_STRING, attrs[4].v.s = regie::sdk::lit("text");
  attrs[5].kind = REGIE_ATTR_STRINGS, attrs[5].v.strs = words, attrs[5].count = 2;
  attrs[6].kind = REGIE_ATTR_TENSOR, attrs[6].v.tensor = &tensor;
  attrs[7].kind = REGIE_ATTR_TENSOR, attrs[7].v.tensor = &strings;
  regie::sdk::BlobWriter out;
  regie::sdk::write_op(out, "vendor.Op", attrs.data(), 8);
  const std::string blob = out.take();
  regie::sdk::BlobReader in(blob.data(), blob.size(), "blob");
  const regie::sdk::OpBlob first = regie::sdk::read_op(in);
  in.finish();
  EXPECT_EQ(first.op(), "vendor.Op");
  ASSERT_EQ(first.attrs().size(), 8u);
  const regie::sdk::Attrs back(first.attrs().data(), 8);
  EXPECT_EQ(back.number("f", 0), 0.1);
  EXPECT_TRUE(std::ranges::equal(*back.numbers("fs"), doubles));
  EXPECT_EQ(back.integer("i", 0), INT64_MIN);
  EXPECT_TRUE(std::ranges::equal(*back.integers("is"), ints));
  EXPECT_EQ(back.text("s", ""), "text");
  EXPECT_EQ(regie::sdk::sv(back.find("ss")->v.strs[0]), "a");
  EXPECT_EQ(regie::sdk::sv(back.find("ss")->v.strs[1]), "");
  EXPECT_EQ(std::memcmp(back.tensor("t")->data, data.data(), 12), 0);
  EXPECT_EQ(back.tensor("t")->dims[1], 3);
  EXPECT_EQ(regie::sdk::sv(static_cast<const regie_str*>(back.tensor("u")->data)[0]), "a");
  for (size_t size = 0; size < blob.size(); ++size) {
    const std::string cut = blob.substr(0, size);  // its own allocation, so that ASan sees a byte too far
    regie::sdk::BlobReader short_in(cut.data(), cut.size(), "blob");
    EXPECT_THROW(regie::sdk::read_op(short_in), regie::sdk::Failure) << size;
  }
  EXPECT_THROW(regie::sdk::write_op(out, "If", nullptr, 0, 2), regie::sdk::Failure);
}

// --- allocations
// -------------------------------------------------------------------------------------------------

regie::test::AllocCounter* counting = nullptr;
void count_launches(bool before, uint32_t launch) {
  if (launch == 0) return;  // the first may set things up
  before ? counting->start() : counting->stop();
}

void expect_no_allocation(const EngineUnderTest& engine, const DeviceUnderTest& device, const Node& node) {
  const Kernel kernel = engine.compile(node, 2);
  regie::test::AllocCounter counter;
  counting = &counter;
  DeviceUnderTest::Run how{2, 5};
  how.around = count_launches;
  device.run(kernel, node, how);
  counting = nullptr;
  EXPECT_EQ(counter.count(), 0u) << kernel.name << ": "
                                 << (counter.places().empty() ? "" : counter.places()[0]);
}

TEST(HostCpu, ALaunchAllocatesNothing) {
  need_reference_kernels();
  HostCpu cpu;
  expect_no_allocation(cpu.engine, cpu.device, *conv_node(rich_conv(), 1));
  ProductCase p{"regie.FusedMatMul", {5, 6}, {6, 7}, {5, 7}, {5, 7}, {5, 7}};
  expect_no_allocation(cpu.engine, cpu.device, *product_node(p, 2));
  const Node pool("MaxPool", {attr("kernel_shape", Ints{2, 2})}, {random_floats({1, 3, 6, 6}, 3)},
                  {zeros(REGIE_F32, {1, 3, 5, 5})});
  expect_no_allocation(cpu.engine, cpu.device, pool);
  const Node soft("Softmax", {attr("axis", int64_t{-1})}, {random_floats({3, 4}, 1)},
                  {zeros(REGIE_F32, {3, 4})});
  expect_no_allocation(cpu.engine, cpu.device, soft);
}

TEST(AllocCounter, SeesAllocationsOfALibrary) {
  need_reference_kernels();
  HostCpu cpu;
  auto node = conv_node(rich_conv(), 1);
  regie::test::AllocCounter counter;
  counter.start();
  const Kernel kernel = cpu.engine.compile(*node);
  counter.stop();
  EXPECT_GT(counter.count(), 10u);
  EXPECT_GT(counter.excluded(), 0u);
  EXPECT_FALSE(counter.places().empty());
}

TEST(HostCpu, RefusesUnknownParameters) {
  auto failure = [](const Settings& settings) -> std::string {
    try {
      EngineUnderTest engine(library("host_cpu").engines(), 0, settings);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_NE(failure({{"flops_per_n", "3"}}).find("flops_per_ns"), std::string::npos);
  EXPECT_NE(failure({{"flops_per_ns", "fast"}}).find("positive number"), std::string::npos);
  EXPECT_NE(failure({{"layout", "best"}}).find("auto, plain or own"), std::string::npos);
}

// --- null
// --------------------------------------------------------------------------------------------------------

struct Null {
  explicit Null(const Settings& settings = {})
      : engine(library("null").engines(), 0, {{"operators", "Relu, Softmax,MaxPool"}}),
        device(library("null").devices(), 0, settings),
        table(device.table()) {}
  EngineUnderTest engine;
  DeviceUnderTest device;
  const regie_device_table& table;
};

Node relu_node() { return Node("Relu", {}, {floats({4}, {-1, 2, -3, 4})}, {zeros(REGIE_F32, {4})}); }

TEST(RuntimeNull, AnswersForItsOperatorsOnly) {
  need_reference_kernels();
  Null null;
  const Node relu = relu_node();
  EXPECT_TRUE(null.engine.ask(relu).can);
  const Node tanh("Tanh", {}, {random_floats({2}, 1)}, {zeros(REGIE_F32, {2})});
  EXPECT_FALSE(null.engine.ask(tanh).can);
  EXPECT_NE(null.engine.ask(tanh).reason.find("Tanh"), std::string::npos);
  EXPECT_EQ(difference({floats({4}, {0, 2, 0, 4})}, null.device.run(null.engine.compile(relu), relu)), 0);
  expect_no_allocation(null.engine, null.device, relu);
  damage(null.device, null.engine.compile(relu), relu);
}

TEST(RuntimeNull, FreshMemoryIsFilledAndTheCapacityHolds) {
  Null null({{"capacity_bytes", "4096"}});
  void* a = nullptr;
  ASSERT_EQ(null.table.allocate(null.device.device(), 0, 1000, &a), REGIE_OK);
  std::vector<unsigned char> bytes(1000, 0);
  ASSERT_EQ(null.table.copy(null.device.stream(), REGIE_COPY_FROM_DEVICE, bytes.data(), a, 1000), REGIE_OK);
  ASSERT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_OK);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0xDB), 1000);
  void* b = nullptr;
  EXPECT_EQ(null.table.allocate(null.device.device(), 0, 4000, &b), REGIE_OUT_OF_MEMORY);
  const std::string words = take_failure();
  EXPECT_NE(words.find("4000 bytes asked for"), std::string::npos) << words;
  EXPECT_NE(words.find("3072 of 4096 left"), std::string::npos) << words;
  null.table.release(null.device.device(), 0, a);
  EXPECT_EQ(null.table.allocate(null.device.device(), 0, 4000, &b), REGIE_OK);
  null.table.release(null.device.device(), 0, b);
  // Addresses that are not its own are refused, not read.
  EXPECT_EQ(null.table.copy(null.device.stream(), REGIE_COPY_FROM_DEVICE, bytes.data(), bytes.data(), 10),
            REGIE_INVALID_INPUT);
}

TEST(RuntimeNull, AFailureSticksAndReachesEveryWaiter) {
  need_reference_kernels();
  Null null({{"fail_at_launch", "2"}});
  const Node relu = relu_node();
  const Kernel kernel = null.engine.compile(relu);
  EXPECT_NO_THROW(null.device.run(kernel, relu));
  regie_fence* fence = nullptr;
  regie_stream* other = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.stream_create(null.device.device(), &other), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 1), REGIE_OK);
  EXPECT_EQ(null.table.host_wait(fence, 1, UINT64_MAX), REGIE_OK);
  try {
    null.device.run(kernel, relu);
    FAIL() << "the second launch was to fail";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("task 0"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("fail_at_launch"), std::string::npos) << e.what();
  }
  ASSERT_EQ(null.table.fence_wait(other, fence, 2), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 2), REGIE_OK);
  EXPECT_EQ(null.table.host_wait(fence, 2, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("fail_at_launch"), std::string::npos);
  EXPECT_EQ(null.table.stream_wait(other, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("fail_at_launch"), std::string::npos);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_DEVICE);
  null.table.stream_destroy(other);
  null.table.fence_destroy(fence);
}

TEST(RuntimeNull, WaitsEndAtTheirLimit) {
  Null null({{"queue_depth", "4"}});
  std::atomic<bool> go{false};
  auto wait_for_go = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  regie_fence* fence = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.call_host(null.device.stream(), wait_for_go, &go), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 7), REGIE_OK);
  EXPECT_EQ(null.table.stream_wait(null.device.stream(), 2'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure().find("2 ms"), std::string::npos);
  EXPECT_EQ(null.table.host_wait(fence, 7, 2'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure().find("stands at 0"), std::string::npos);
  go = true;
  EXPECT_EQ(null.table.host_wait(fence, 7, UINT64_MAX), REGIE_OK);
  EXPECT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_OK);
  null.table.fence_destroy(fence);
}

// More work than the queue holds, on two streams that take turns by a fence.
TEST(RuntimeNull, TwoStreamsTakeTurns) {
  Null null({{"queue_depth", "3"}});
  regie_fence* fence = nullptr;
  regie_stream* other = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.stream_create(null.device.device(), &other), REGIE_OK);
  std::string order;  // not guarded: the fence is what keeps the two apart
  struct Step {
    std::string* order;
    char letter;
  };
  Step steps[] = {{&order, 'a'}, {&order, 'b'}};
  auto note = [](void* s) { static_cast<Step*>(s)->order->push_back(static_cast<Step*>(s)->letter); };
  std::thread second([&] {
    for (uint64_t n = 0; n < 20; ++n) {
      ASSERT_EQ(null.table.fence_wait(other, fence, 2 * n + 1), REGIE_OK);
      ASSERT_EQ(null.table.call_host(other, note, &steps[1]), REGIE_OK);
      ASSERT_EQ(null.table.fence_signal(other, fence, 2 * n + 2), REGIE_OK);
    }
  });
  for (uint64_t n = 0; n < 20; ++n) {
    ASSERT_EQ(null.table.fence_wait(null.device.stream(), fence, 2 * n), REGIE_OK);
    ASSERT_EQ(null.table.call_host(null.device.stream(), note, &steps[0]), REGIE_OK);
    ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 2 * n + 1), REGIE_OK);
  }
  second.join();
  EXPECT_EQ(null.table.host_wait(fence, 40, UINT64_MAX), REGIE_OK);
  null.table.stream_destroy(other);
  std::string expected;
  for (int n = 0; n < 20; ++n) expected += "ab";
  EXPECT_EQ(order, expected);
  null.table.fence_destroy(fence);
}

// One device from several threads, each with its own stream, buffers and executables.
TEST(RuntimeNull, ServesSeveralThreads) {
  need_reference_kernels();
  Null null;
  const Node relu = relu_node();
  const Kernel kernel = null.engine.compile(relu);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      DeviceUnderTest::Run how;
      if (null.table.stream_create(null.device.device(), &how.stream) != REGIE_OK) return;
      for (int n = 0; n < 20; ++n)
        right += difference({floats({4}, {0, 2, 0, 4})}, null.device.run(kernel, relu, how)) == 0;
      null.table.stream_destroy(how.stream);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 60);
}

}  // namespace
