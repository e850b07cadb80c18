// Matrix products and pooling of host_cpu against plain loops, on random shapes and attributes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "regie/c/pass.h"
#include "support/backends.h"

namespace {

using namespace regie::test_backends;

// ---- matrix products ----

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
  int packed = 0, direct = 0, in_place = 0, by_reference = 0;
  for (int n = 0; n < 250; ++n) {
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
    direct += kernel.name.starts_with("own direct product");
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
  EXPECT_GT(packed, 40);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw")) {
    EXPECT_GT(direct, 20) << "packed in blocks that loops of our own read";
  }
#endif
  EXPECT_GT(in_place, 10);
  EXPECT_LT(by_reference, 40);
}

// Of alpha 0 one of oneDNN's products leaves the result as it finds it.
TEST(HostCpu, AProductThatCountsForNothing) {
  need_reference_kernels();
  HostCpu cpu;
  for (const Ints& addend : {Ints{}, Ints{12}}) {
    ProductCase c;
    c.op = "Gemm";
    c.a = {7, 9}, c.b = {9, 12}, c.c = addend, c.y = {7, 12};
    c.alpha = 0;
    auto node = product_node(c, 3);
    EXPECT_THAT(cpu.engine.ask(*node).reason, testing::HasSubstr("alpha is 0"));
    const Kernel kernel = cpu.engine.compile(*node, 1);
    EXPECT_EQ(kernel.format, "host_cpu.reference/1");
    ASSERT_LE(difference(product_by_loops(c, *node), cpu.device.run(kernel, *node, {1, 1})), kTolerance);
  }
}

// ---- pooling ----

TEST(HostCpu, PoolingEqualsPlainLoops) {
  need_reference_kernels();
  HostCpu cpu;
  std::mt19937_64 random(5);
  int by_dnnl = 0;
  for (int n = 0; n < 150; ++n) {
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
  EXPECT_GT(by_dnnl, 75);
}

}  // namespace
