// Passes through their C tables, with engines and aliases that no target of the tree offers, and at sizes
// that show their cost. Small cases are texts beside the passes.
#include <gtest/gtest.h>

#include <chrono>

#include "regie/c/op_kernel.h"
#include "support/pass_harness.h"

namespace regie {
namespace {

class Passes : public ::testing::Test {
 protected:
  void SetUp() override {
    Status s = h.open();
    ASSERT_TRUE(s.ok()) << s.to_string();
  }
  void parse(std::string_view text) {
    Status s = h.parse_graph(text);
    ASSERT_TRUE(s.ok()) << s.to_string();
  }
  void pass(const std::string& name, const PassHarness::Settings& settings = {}) {
    Status s = h.run_pass(name, settings);
    ASSERT_TRUE(s.ok()) << s.to_string();
  }
  uint32_t value(std::string_view name) {
    for (uint32_t v = 0; v < h.graph().value_count(); ++v)
      if (h.graph().live_value(v) && view(h.graph().value(v).name) == name) return v;
    ADD_FAILURE() << "there is no value " << name << " in\n" << h.text();
    return 0;
  }
  uint32_t alias_of(std::string_view name) { return h.graph().value(value(name)).alias_of; }

  // x -> op -> op ... -> y, of f32[4].
  std::unique_ptr<Graph> chain(uint32_t length, std::string_view op, bool constant, bool read) {
    auto g = std::make_unique<Graph>();
    const regie_dim four = 4;
    const regie_type type = g->make_type(REGIE_F32, {&four, 1});
    const uint32_t x = g->add_argument(0, type, "x");
    uint32_t v = x;
    if (constant) {
      const int64_t dims = 4;
      Tensor t = Tensor::zeros(REGIE_F32, {&dims, 1});
      static_cast<float*>(t.mutable_data())[1] = -1;
      v = g->add_constant(0, REGIE_VALUE_CONSTANT, t, "k");
    }
    for (uint32_t i = 0; i < length; ++i) {
      NodeSpec spec;
      spec.op = op;
      spec.operands = {v};
      v = g->results(g->add_node(0, spec))[0];
      g->set_type(v, type);
    }
    if (read && constant) {
      NodeSpec spec;
      spec.op = "Add";
      spec.operands = {x, v};
      v = g->results(g->add_node(0, spec))[0];
      g->set_type(v, type);
    }
    if (!read) v = x;
    g->set_region_results(0, {&v, 1});
    return g;
  }

  double seconds(const std::function<void()>& f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  PassHarness h;
};

// ---- Cost ----

TEST_F(Passes, InferShapesVisitsEachNodeOnce) {
  h.take_graph(chain(100000, "Relu", false, true));
  EXPECT_LT(seconds([&] { pass("infer-shapes"); }), 20);
  EXPECT_EQ(h.inferences, 100000u);
  EXPECT_EQ(h.runs, 1u);
}

TEST_F(Passes, RemoveDeadIsLinear) {
  h.take_graph(chain(100000, "Relu", false, false));
  EXPECT_LT(seconds([&] { pass("remove-dead"); }), 20);
  EXPECT_EQ(h.graph().live_node_count(), 0u);
  EXPECT_EQ(h.patches, 1u);
}

TEST_F(Passes, FoldingAChainCostsItsLength) {
  h.take_graph(chain(10000, "Neg", true, true));
  EXPECT_LT(seconds([&] { pass("fold-constants"); }), 20);
  EXPECT_EQ(h.graph().live_node_count(), 1u);
  EXPECT_EQ(h.evaluations, 10000u);
  // All nodes once; then in each wave the one reader of what was folded, and its reader, whose type is
  // inferred again.
  EXPECT_LE(h.shown, 3 * 10001u);
  // 10,000 negations: the number that there was.
  const Graph& g = h.graph();
  const regie_node& add = g.node(g.region(0).first);
  EXPECT_EQ(g.tensor(add.operands[1]).as<float>()[1], -1.0f);
}

TEST_F(Passes, RemoveIdentityIsLinear) {
  h.take_graph(chain(20000, "Identity", false, true));
  Status s;
  EXPECT_LT(seconds([&] { s = h.run_rewrite("remove-identity"); }), 20);
  ASSERT_TRUE(s.ok()) << s.to_string();
  EXPECT_EQ(h.graph().live_node_count(), 1u);  // the last one makes an output of the input
}

TEST_F(Passes, AliasInPlaceIsLinear) {
  auto g = chain(100000, "Relu", false, true);
  g->set_engines({{"cpu", {{}, str("cpu"), 0, 0}}});
  for (uint32_t n = 0; n < g->node_count(); ++n) {
    g->set_engine(n, 0);
    g->set_space(g->results(n)[0], 0);
  }
  h.take_graph(std::move(g));
  h.alias = [](const Graph&, uint32_t, uint32_t, uint32_t) { return uint32_t{REGIE_ALIAS_INPLACE}; };
  EXPECT_LT(seconds([&] { pass("alias-in-place"); }), 20);
  // All but the first, which would overwrite the input, and the last, which is the output.
  size_t aliased = 0;
  for (uint32_t v = 0; v < h.graph().value_count(); ++v) aliased += h.graph().value(v).alias_of != REGIE_NONE;
  EXPECT_EQ(aliased, 99998u);
}

TEST_F(Passes, InsertCopiesSharesOneCopyAmongManyReaders) {
  auto g = std::make_unique<Graph>();
  const regie_dim four = 4;
  const regie_type type = g->make_type(REGIE_F32, {&four, 1});
  const uint32_t x = g->add_argument(0, type, "x");
  g->set_engines({{"cpu", {{}, str("cpu"), 0, 0}}, {"npu", {{}, str("npu0"), 1, 1}}});
  uint32_t last = x;
  for (uint32_t i = 0; i < 20000; ++i) {
    NodeSpec spec;
    spec.op = "Add";
    spec.operands = {x, last};
    const uint32_t n = g->add_node(0, spec);
    last = g->results(n)[0];
    g->set_type(last, type);
    g->set_engine(n, 1);
  }
  g->set_region_results(0, {&last, 1});
  h.take_graph(std::move(g));
  EXPECT_LT(seconds([&] { pass("insert-copies"); }), 20);
  EXPECT_EQ(h.graph().live_node_count(), 20002u);  // x there, the output back
}

// ---- fold-constants ----

TEST_F(Passes, FoldConstantsLeavesWhatIsNotDeterministic) {
  constexpr std::string_view text = R"(graph @g() -> (%y) {
  %k: const f32[2] = [1.0, 2.0]
  %y: f32[2] = Neg(%k)
}
)";
  parse(text);
  h.flags = [](std::string_view, uint32_t real) { return real | REGIE_OP_NONDETERMINISTIC; };
  pass("fold-constants");
  EXPECT_EQ(h.text(), text);
  h.flags = nullptr;
  pass("fold-constants");
  EXPECT_EQ(h.graph().live_node_count(), 0u) << h.text();
}

TEST_F(Passes, FoldConstantsKeepsToItsTotal) {
  parse(R"(graph @g() -> (%a, %b, %c) {
  %k: const f32[2] = [1.0, 2.0]
  %a: f32[2] = Neg(%k)
  %b: f32[2] = Abs(%k)
  %c: f32[2] = Exp(%k)
}
)");
  pass("fold-constants", {{"total-bytes", "16"}});
  EXPECT_EQ(h.graph().live_node_count(), 1u) << h.text();
  EXPECT_TRUE(h.noted("kept", "exceeds what is left of total-bytes = 16")) << h.all_notes();
}

TEST_F(Passes, FoldConstantsSaysWhyItKeeps) {
  parse(R"(graph @g() -> (%a) {
  %k: const f32[1] = [1.0]
  %s: const i64[4] = [1024, 1024, 1024, 4]
  %a: f32[1024,1024,1024,4] = Expand(%k, %s)
}
)");
  pass("fold-constants");
  EXPECT_TRUE(h.noted("kept", "exceeds budget-bytes = 268435456")) << h.all_notes();
  pass("fold-constants", {{"budget-bytes", "1000000000000"}});
  EXPECT_TRUE(h.noted("kept", "exceeds what is left of total-bytes = 2147483648")) << h.all_notes();
  pass("fold-constants", {{"budget-bytes", "1000000000000"}, {"total-bytes", "1000000000000"}});
  EXPECT_EQ(h.evaluations, 0u);
  EXPECT_TRUE(h.noted("kept", "17179869184 bytes is more than 8 times its operands' 36 bytes"))
      << h.all_notes();
  EXPECT_EQ(h.run_pass("fold-constants", {{"budget-bytes", "-1"}}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(h.run_pass("fold-constants", {{"budget-bytes", "much"}}).code(), REGIE_INVALID_INPUT);
}

// ---- alias-in-place ----

// Result 0 over operand 0, or as a view of it, by the operator's name.
uint32_t invented(const Graph& g, uint32_t node, uint32_t result, uint32_t operand) {
  const std::string_view op = view(g.node(node).op);
  if (result != 0) return REGIE_ALIAS_NONE;
  if (op == "Reshape" || op == "Identity") return operand == 0 ? REGIE_ALIAS_VIEW : REGIE_ALIAS_NONE;
  if (op == "MatMul")
    return operand == 1 ? REGIE_ALIAS_INPLACE : REGIE_ALIAS_NONE;  // reads operand 0 until the end
  if (op == "If") return REGIE_ALIAS_NONE;
  return REGIE_ALIAS_INPLACE;
}

constexpr std::string_view kOn = R"(on "cpu" = "cpu" 0 space 0, "npu" = "npu0" 1 space 1)";

TEST_F(Passes, AliasNotWhereTheNodeReadsTheBytesElsewhereToo) {
  parse("graph @g(%x: f32[2,2]) -> (%y) " + std::string(kOn) + R"( {
  %a: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %m: f32[2,2] @space(0) = MatMul(%a, %a) @engine("cpu")
  %b: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %s: f32[2,2] @space(0) = Add(%b, %b) @engine("cpu")
  %c: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %v: f32[2,2] @space(0) = Identity(%c) @engine("cpu")
  %t: f32[2,2] @space(0) = Add(%c, %v) @engine("cpu")
  %p: f32[2,2] @space(0) = Add(%m, %s) @engine("cpu")
  %y: f32[2,2] @space(0) = Add(%p, %t) @engine("cpu")
}
)");
  h.alias = invented;
  pass("alias-in-place");
  EXPECT_EQ(alias_of("m"), REGIE_NONE) << "operand 0 is read until the last element is written";
  EXPECT_TRUE(h.noted("near-miss", "it also reads them as operand 0")) << h.all_notes();
  EXPECT_EQ(alias_of("s"), value("b")) << "it may overwrite both of its operands, which are one";
  EXPECT_EQ(alias_of("v"), value("c"));
  EXPECT_EQ(alias_of("t"), REGIE_NONE) << "it reads the bytes under two shapes";
  EXPECT_TRUE(h.noted("near-miss", "it also reads them as %v")) << h.all_notes();
}

TEST_F(Passes, AliasCountsReadersOfTheWholeClass) {
  parse("graph @g(%x: f32[2,2]) -> (%y, %w) " + std::string(kOn) + R"( {
  %a: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %v: f32[2,2] @space(0) = Identity(%a) @engine("cpu")
  %b: f32[2,2] @space(0) = Exp(%v) @engine("cpu")
  %c: f32[2,2] @space(0) = Neg(%a) @engine("cpu") @name("last")
  %d: f32[2,2] @space(0) = Neg(%c) @engine("cpu")
  %y: f32[2,2] @space(0) = Add(%b, %d) @engine("cpu")
  %w: f32[2,2] @space(0) = Abs(%b) @engine("cpu")
}
)");
  h.alias = invented;
  pass("alias-in-place");
  EXPECT_EQ(alias_of("v"), value("a"));
  EXPECT_EQ(alias_of("b"), REGIE_NONE) << "%a is read by %c, and %v is only a view of it";
  EXPECT_TRUE(h.noted("near-miss", "node 'last' (Neg) still reads %a")) << h.all_notes();
  EXPECT_EQ(alias_of("c"), value("a")) << "the last reader of the class";
  EXPECT_EQ(alias_of("d"), value("a")) << "named by the root";
}

TEST_F(Passes, AliasNotAcrossDevicesSpacesAndSizes) {
  parse("graph @g(%x: f32[N,4], %shape: i64[1]) -> (%y, %z) where N in 1.. " + std::string(kOn) + R"( {
  %a: f32[N,4] @space(0) = Relu(%x) @engine("cpu")
  %f: f32[N,4] @space(1) = regie.Copy(%a) @engine("npu") @name("away")
  %b: f32[N,4] @space(0) = Neg(%a) @engine("cpu")
  %c: f32[4*N] @space(0) = Reshape(%b, %shape) @engine("cpu")
  %d: f16[4*N] @space(0) = Cast(%c) {to = 10} @engine("cpu")
  %e: i32[4*N] @space(0) = Cast(%c) {to = 6} @engine("cpu")
  %g: f32[N,4] @space(1) = Relu(%f) @engine("npu")
  %y: i32[4*N] @space(0) = Neg(%e) @engine("cpu")
  %z: f32[N,4] @space(1) = Relu(%g) @engine("npu")
}
)");
  h.alias = invented;
  pass("alias-in-place");
  EXPECT_EQ(alias_of("b"), REGIE_NONE) << "the copy on the other device may still be reading";
  EXPECT_TRUE(h.noted("near-miss", "node 'away' (regie.Copy) reads them on another device")) << h.all_notes();
  EXPECT_EQ(alias_of("f"), REGIE_NONE) << "another memory space";
  EXPECT_EQ(alias_of("c"), value("b")) << "N*4 elements either way";
  EXPECT_EQ(alias_of("d"), REGIE_NONE) << "half the bytes";
  EXPECT_EQ(alias_of("e"), value("b")) << "the same bytes, read by it last";
  EXPECT_EQ(alias_of("g"), value("f"));
}

// ---- insert-copies ----

TEST_F(Passes, CopiesBetweenThreeDevices) {
  parse(
      R"(graph @g(%x: f32[2]) -> (%b) on "cpu" = "cpu" 0 space 0, "p" = "p0" 1 space 1, "q" = "q0" 2 space 2 {
  %k: const f32[2] = [1.0, 2.0]
  %a: f32[2] = Add(%x, %k) @engine("p")
  %b: f32[2] = Add(%a, %k) @engine("q")
  %c: f32[2] = Add(%a, %b) @engine("p")
  %d: f32[2] = Add(%b, %c) @engine("cpu")
}
)");
  pass("insert-copies");
  EXPECT_EQ(
      h.text(),
      R"(graph @g(%x: f32[2] @space(0)) -> (%b.host as "b") on "cpu" = "cpu" 0 space 0, "p" = "p0" 1 space 1, "q" = "q0" 2 space 2 {
  %k: const f32[2] = [1.0, 2.0]
  %x.p0: f32[2] @space(1) = regie.Copy(%x) @name("x to p0") @engine("p")
  %a: f32[2] @space(1) = Add(%x.p0, %k) @engine("p")
  %a.q0: f32[2] @space(2) = regie.Copy(%a) @name("a to q0") @engine("q")
  %b: f32[2] @space(2) = Add(%a.q0, %k) @engine("q")
  %b.host: f32[2] @space(0) = regie.Copy(%b) @name("b to host") @engine("q")
  %b.p0: f32[2] @space(1) = regie.Copy(%b) @name("b to p0") @engine("p")
  %c: f32[2] @space(1) = Add(%a, %b.p0) @engine("p")
  %c.host: f32[2] @space(0) = regie.Copy(%c) @name("c to host") @engine("p")
  %d: f32[2] @space(0) = Add(%b.host, %c.host) @engine("cpu")
}
)");
  // Once more changes nothing.
  const std::string once = h.text();
  pass("insert-copies");
  EXPECT_EQ(h.text(), once);
}

TEST_F(Passes, CopiesForTheConditionOfAnIf) {
  parse(R"(graph @g(%x: f32[1]) -> (%y) on "cpu" = "cpu" 0 space 0, "p" = "p0" 1 space 1 {
  %b: bool[1] = Cast(%x) {to = 9} @engine("p")
  %y: f32[1] = If(%b, %x) @engine("cpu") region (%t: f32[1]) -> (%t) {
  } region (%e: f32[1]) -> (%n) {
    %n: f32[1] = Neg(%e) @engine("cpu")
  }
}
)");
  pass("insert-copies");
  EXPECT_NE(h.text().find("If(%b.host, %x)"), std::string::npos) << h.text();
}

TEST_F(Passes, CopiesNeedAPlacedGraph) {
  parse(R"(graph @g(%x: f32[1]) -> (%y) on "cpu" = "cpu" 0 space 0 {
  %y: f32[1] = Neg(%x) @name("n1")
}
)");
  Status s = h.run_pass("insert-copies");
  EXPECT_EQ(s.code(), REGIE_INTERNAL);
  EXPECT_NE(s.to_string().find("node 'n1' (Neg)"), std::string::npos) << s.to_string();
}

// ---- remove-identity ----

TEST_F(Passes, DropoutOnlyOutsideOfTraining) {
  parse(R"(graph @g(%x: f32[2], %t: bool[]) -> (%a, %b, %c, %m) {
  %r: f32[2] = Relu(%x)
  %ratio: const f32[] = 0.5
  %no: const bool[] = false
  %yes: const bool[] = true
  %d1: f32[2], _ = Dropout(%r, %ratio, %no)
  %d2: f32[2] = Dropout(%r, %ratio, %yes)
  %d3: f32[2] = Dropout(%r, %ratio, %t)
  %d4: f32[2], %m: bool[2] = Dropout(%r)
  %a: f32[2] = Neg(%d1)
  %b: f32[2] = Add(%d2, %d3)
  %c: f32[2] = Neg(%d4)
}
)");
  Status s = h.run_rewrite("remove-identity");
  ASSERT_TRUE(s.ok()) << s.to_string();
  const Graph& g = h.graph();
  EXPECT_EQ(g.node(g.value(value("a")).owner).operands[0], value("r")) << "training_mode is false";
  value("d2");
  value("d3");
  value("d4");
}

}  // namespace
}  // namespace regie
