// The two backends through their C tables alone: answers of oneDNN kernels against plain loops written here, packed
// weights at other shapes, damaged kernels, allocations in a launch; the asynchronous device with its failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
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
  if (at == open.end()) at = open.emplace(name, Library(std::string(REGIE_TEST_PLUGIN_DIR) + "/" + name + ".so")).first;
  return at->second;
}
void need_reference_kernels() {
  static const std::string problem = add_reference_kernels(std::string(REGIE_TEST_PLUGIN_DIR) + "/ops-standard.so");
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
constexpr ActivationCase kActivations[] = {{"", 0, 0},          {"Relu", 0, 0},        {"LeakyRelu", 0.125, 0},
                                           {"Sigmoid", 0, 0},   {"Tanh", 0, 0},        {"HardSigmoid", 0.25, 0.5},
                                           {"HardSwish", 0, 0}, {"Clip", -0.5, 0.75}, {"Elu", 0.5, 0},
                                           {"Swish", 0, 0}};

// --- convolution -------------------------------------------------------------------------------------------------

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
      const int64_t total = std::max<int64_t>(0, (out - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - x[2 + i]);
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
    return "x " + list(x) + " w " + list(weight()) + " strides " + list(strides) + " dilations " + list(dilations) + " pads " +
           list(pads) + auto_pad + " group " + std::to_string(group) + (bias ? " bias" : "") + (residual ? " residual" : "") +
           (constant ? " constant " : " ") + activation.name;
  }
};

std::unique_ptr<Node> conv_node(const ConvCase& c, uint64_t seed) {
  std::vector<Attr> attrs = {attr("strides", c.strides), attr("dilations", c.dilations), attr("group", c.group),
                             attr("auto_pad", c.auto_pad), attr("kernel_shape", c.kernel)};
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
    y.as<float>()[o] = static_cast<float>(activate(c.activation.name, sum, c.activation.alpha, c.activation.beta));
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

// Random shapes and attributes; one kernel at the shape that it was compiled for and at another batch, 1 and 2 threads.
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
      ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {threads, 2, 3})), kTolerance);
    }
    ConvCase other = c;
    other.x[0] = c.x[0] + random_in(random, 1, 4);
    const uint64_t seed = random();
    auto more = conv_node(other, seed);
    for (uint32_t i : {1u, 2u}) more->operands[i].bytes = node->operands[i].bytes;
    ASSERT_LE(difference(conv_by_loops(other, *more), cpu.device.run(kernel, *more, {threads, 1})), kTolerance);
  }
  // Row-major convolution takes the weights as they are.
  EXPECT_GT(packed, std::string(GetParam()) == "plain" ? -1 : 40);
}
INSTANTIATE_TEST_SUITE_P(Layouts, Convolution, testing::Values("auto", "plain", "own"),
                         [](const auto& info) { return std::string(info.param); });

// What oneDNN is not asked for, or has no kernel for, goes to the reference kernel or is refused; never wrong.
TEST(HostCpu, AnswersByReferenceKernelWhereOneDnnDoesNot) {
  need_reference_kernels();
  HostCpu cpu;
  auto ask = [&](const Node& node) { return cpu.engine.ask(node); };
  const Node relu("Relu", {}, {random_floats({2, 3}, 1)}, {zeros(REGIE_F32, {2, 3})});
  EXPECT_TRUE(ask(relu).can && ask(relu).reference);
  const Node half("Conv", {attr("pads", Ints{0, 0, 0, 0})},
                  {zeros(REGIE_F16, {1, 2, 4, 4}), constant(zeros(REGIE_F16, {2, 2, 3, 3}))}, {zeros(REGIE_F16, {1, 2, 2, 2})});
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
                     {random_floats({1, 2, 4, 4}, 1), constant(random_floats({2, 2, 1, 1}, 2))}, {zeros(REGIE_F32, {1, 2, 4, 4})});
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
  Node product_node("Gemm", {}, {zeros(REGIE_F32, {2, 0}), constant(zeros(REGIE_F32, {0, 3})), floats({3}, {1, 2, 3})},
                    {zeros(REGIE_F32, {2, 3})});
  const Kernel gemm = cpu.engine.compile(product_node);
  EXPECT_EQ(difference({floats({2, 3}, {1, 2, 3, 1, 2, 3})}, cpu.device.run(gemm, product_node)), 0);
}

// --- matrix products ---------------------------------------------------------------------------------------------

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
  for (size_t i = 0; i < t.dims.size(); ++i) o = o * t.dims[i] + (t.dims[i] == 1 ? 0 : at[at.size() - t.dims.size() + i]);
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
  if (random() % 2 && std::all_of(batch_b.begin(), batch_b.end(), [](int64_t d) { return d == 1; })) batch_b.clear();
  const bool plain = !gemm && !c.trans_a && !c.trans_b;
  const bool vector_a = plain && batch.empty() && random() % 6 == 0, vector_b = plain && batch_b.empty() && random() % 6 == 0;
  c.a = batch_a;
  c.b = batch_b;
  c.y = batch;
  if (vector_a) c.a = {k};
  else c.a.insert(c.a.end(), {c.trans_a ? k : m, c.trans_a ? m : k});
  if (vector_b) c.b = {k};
  else c.b.insert(c.b.end(), {c.trans_b ? n : k, c.trans_b ? k : n});
  if (vector_b) c.y = Ints(c.a.begin(), c.a.end() - 2 + (vector_a ? 1 : 0));
  if (vector_a && vector_b) c.y = {};
  if (!vector_a && vector_b) c.y = Ints(batch_a), c.y.push_back(m);
  else if (!vector_b) {
    if (!vector_a) c.y.push_back(m);
    c.y.push_back(n);
  }
  auto addend = [&]() -> Ints {
    if (c.y.empty()) return {};
    Ints dims = c.y;
    switch (random() % 5) {
      case 0: return {};
      case 1: return {dims.back()};
      case 2: return {1};
      case 3: dims.back() = 1; return dims;
      default: return dims;
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
    SCOPED_TRACE(std::to_string(n) + " " + c.op + " a " + text(c.a) + " b " + text(c.b) + " c " + text(c.c) + " r " + text(c.r) +
                 " y " + text(c.y) + (c.trans_a ? " tA" : "") + (c.trans_b ? " tB" : "") + (c.constant ? " constant " : " ") +
                 c.activation.name + " alpha " + std::to_string(c.alpha) + " beta " + std::to_string(c.beta));
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
      ASSERT_LE(difference(expected, cpu.device.run(kernel, *node, {threads, 2, 3})), kTolerance) << kernel.name;
    }
    if (c.a.size() < 2 || c.trans_a || !c.c.empty() || !c.r.empty() || c.b.size() > 2 || c.a.size() > 2) continue;
    ProductCase other = c;  // more rows
    other.a[0] += 5;
    other.y[0] += 5;
    auto more = product_node(other, random());
    more->operands[1].bytes = node->operands[1].bytes;
    ASSERT_LE(difference(product_by_loops(other, *more), cpu.device.run(kernel, *more, {threads, 1})), kTolerance);
  }
  EXPECT_GT(packed, 50);
  EXPECT_GT(in_place, 10);
  EXPECT_LT(by_reference, 40);
}

// --- pooling -----------------------------------------------------------------------------------------------------

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
    Ints x{random_in(random, 1, 3), random_in(random, 1, 18)}, kernel, strides, dilations, pads(2 * spatial, 0), y{x[0], x[1]};
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
      attrs = {attr("kernel_shape", kernel), attr("strides", strides), attr("dilations", dilations), attr("pads", pads),
               attr("ceil_mode", int64_t{ceil})};
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
      expected.as<float>()[offset(y, at)] = static_cast<float>(maximum ? most : sum / static_cast<double>(divisor));
    });
    SCOPED_TRACE(std::to_string(n) + " " + op + (ceil ? " ceil" : "") + (include ? " include" : ""));
    const auto answer = cpu.engine.ask(node);
    ASSERT_TRUE(answer.can) << answer.reason;
    by_dnnl += !answer.reference;
    const Kernel kernel_made = cpu.engine.compile(node, 1);
    ASSERT_LE(difference({expected}, cpu.device.run(kernel_made, node)), kTolerance) << kernel_made.name << answer.reason;
  }
  EXPECT_GT(by_dnnl, 150);
}

}  // namespace
