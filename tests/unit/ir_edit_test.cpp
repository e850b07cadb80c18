#include "ir/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "plugins/host.h"
#include "support/fake_op_set.h"
#include "text/text.h"

namespace regie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class IrEdit : public testing::Test {
 protected:
  void load(std::string_view text) {
    auto g = parse(text, "t.rg");
    ASSERT_TRUE(g.ok()) << g.status().to_string();
    graph_ = std::move(*g);
    edit_ = std::make_unique<Edit>(*graph_);
  }
  Graph& g() { return *graph_; }
  Edit& edit() { return *edit_; }

  uint32_t value(std::string_view name) const {
    for (uint32_t v = 0; v < graph_->value_count(); ++v)
      if (graph_->live_value(v) && view(graph_->value(v).name) == name) return v;
    ADD_FAILURE() << "no value " << name;
    return 0;
  }
  uint32_t node(std::string_view result) const { return graph_->value(value(result)).owner; }
  static NodeSpec op(std::string name, std::vector<uint32_t> operands, uint32_t results = 1) {
    NodeSpec spec;
    spec.op = std::move(name);
    spec.operands = std::move(operands);
    spec.result_count = results;
    return spec;
  }
  uint32_t make(NodeSpec spec) {
    auto r = edit().node(std::move(spec));
    EXPECT_TRUE(r.ok()) << r.status().to_string();
    return r.ok() && !r->empty() ? (*r)[0] : 0;
  }
  ApplyOutcome apply(const EditOptions& options = {}) {
    auto out = edit().apply(ops_, options);
    EXPECT_TRUE(out.ok()) << out.status().to_string();
    Status s = verify(g());
    EXPECT_TRUE(s.ok()) << s.to_string();
    return out.ok() ? *out : ApplyOutcome();
  }
  // Refused; the graph is as it was.
  std::string refused() {
    std::string before = print(g());
    auto out = edit().apply(ops_);
    EXPECT_FALSE(out.ok());
    EXPECT_EQ(print(g()), before);
    Status s = verify(g());
    EXPECT_TRUE(s.ok()) << s.to_string();
    return out.ok() ? "" : out.status().to_string();
  }
  void ok(const Status& s) { EXPECT_TRUE(s.ok()) << s.to_string(); }

  test::FakeOpSet ops_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Edit> edit_;
};

constexpr const char* kChain = R"rg(graph @g(%x: f32[2]) -> (%c as "out") {
  %a: f32[2] = Relu(%x) @name("na") @from("fa (F)")
  %b: f32[2] = Neg(%a) @name("nb") @from("fb (F)")
  %c: f32[2] = Relu(%b) @name("nc") @from("fc (F)")
}
)rg";

TEST_F(IrEdit, FusionKeepsNamesAndProvenance) {
  load(kChain);
  ok(edit().begin("fuse", node("c")));
  uint32_t r = make(op("Mix", {value("x")}));
  ok(edit().replace(value("c"), r));
  ok(edit().remove(node("b")));
  ok(edit().remove(node("c")));
  ok(edit().remove(node("a")));
  ok(edit().commit());
  ApplyOutcome out = apply();
  ASSERT_EQ(out.applied.size(), 1u);
  EXPECT_EQ(out.applied[0].title, "fuse");
  EXPECT_EQ(out.applied[0].serial, 0u);
  EXPECT_THAT(out.applied[0].removed, ElementsAre("node 'nb' (Neg)", "node 'nc' (Relu)", "node 'na' (Relu)"));
  EXPECT_THAT(out.applied[0].added, ElementsAre(g().value(r).owner));
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2]) -> (%c as "out") {
  %c: f32[2] = Mix(%x) @from("fa (F)", "fb (F)", "fc (F)")
}
)rg");
}

TEST_F(IrEdit, OutputsKeepTheirNames) {
  load("graph @g(%x: f32[2]) -> (%a, %b) {\n %a: f32[2] = Identity(%x)\n %b: f32[2] = Identity(%a)\n}");
  for (const char* name : {"a", "b"}) {
    ok(edit().begin("drop", node(name)));
    ok(edit().replace(value(name), g().operands(node(name))[0]));
    ok(edit().remove(node(name)));
    ok(edit().commit());
  }
  // The second patch meets what the first removed.
  ApplyOutcome out = apply();
  EXPECT_EQ(out.applied.size(), 1u);
  EXPECT_EQ(out.dropped, 1u);
  EXPECT_EQ(print(g()), "graph @g(%x: f32[2]) -> (%x as \"a\", %b) {\n  %b: f32[2] = Identity(%x)\n}\n");
  ok(edit().begin("drop", node("b")));
  ok(edit().replace(value("b"), value("x")));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), "graph @g(%x: f32[2]) -> (%x as \"a\", %x as \"b\") {\n}\n");
}

TEST_F(IrEdit, ANodeCanBePutBehindAValue) {
  load(kChain);
  ok(edit().begin("copy", node("b")));
  uint32_t r = make(op("Identity", {value("a")}));
  ok(edit().replace(value("a"), r));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2]) -> (%c as "out") {
  %a: f32[2] = Relu(%x) @name("na") @from("fa (F)")
  %0: f32[2] = Identity(%a) @from("fb (F)")
  %b: f32[2] = Neg(%0) @name("nb") @from("fb (F)")
  %c: f32[2] = Relu(%b) @name("nc") @from("fc (F)")
}
)rg");
}

TEST_F(IrEdit, OrderIsRepairedWhenReadersStandTooEarly) {
  load(kChain);
  // At the end, though b reads it.
  ok(edit().begin("late", node("c")));
  uint32_t r = make(op("Neg", {value("x")}));
  ok(edit().replace(value("a"), r));
  ok(edit().remove(node("a")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2]) -> (%c as "out") {
  %a: f32[2] = Neg(%x) @from("fa (F)")
  %b: f32[2] = Neg(%a) @name("nb") @from("fb (F)")
  %c: f32[2] = Relu(%b) @name("nc") @from("fc (F)")
}
)rg");
}

TEST_F(IrEdit, OrderIsRepairedWhenANewNodeReadsSomethingLater) {
  load(
      "graph @g(%x: f32[2]) -> () {\n %a: f32[2] = Relu(%x)\n %b: f32[2] = Neg(%x)\n Sink(%a)\n Sink(%b)\n}");
  ok(edit().begin("early", node("a")));
  uint32_t r = make(op("Add", {value("b"), value("x")}));
  ok(edit().replace(value("a"), r));
  ok(edit().remove(node("a")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()),
            "graph @g(%x: f32[2]) -> () {\n  %b: f32[2] = Neg(%x)\n  %a: f32[2] = Add(%b, %x)\n  Sink(%a)\n  "
            "Sink(%b)\n}\n");
}

TEST_F(IrEdit, CyclesAreRefused) {
  load(kChain);
  ok(edit().begin("loop", node("b")));
  uint32_t r = make(op("Add", {value("a"), value("c")}));
  ok(edit().replace(value("a"), r));
  ok(edit().commit());
  std::string why = refused();
  EXPECT_THAT(why, HasSubstr("cycle"));
  EXPECT_THAT(why, HasSubstr("while applying patch 'loop'"));
}

TEST_F(IrEdit, RemovingWhatIsReadIsRefused) {
  load(kChain);
  ok(edit().begin("cut", node("b")));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  EXPECT_THAT(refused(),
              HasSubstr("removes node 'nb' (Neg), whose value 'b' is still read by node 'nc' (Relu)"));
  ok(edit().begin("cut", node("c")));
  ok(edit().remove(node("c")));
  ok(edit().commit());
  EXPECT_THAT(refused(), HasSubstr("still read by graph output 'out'"));
}

TEST_F(IrEdit, WrongNodesAreRefusedWithoutATrace) {
  load(kChain);
  for (const char* wrong : {"Refuse", "Unknown"}) {
    ok(edit().begin("wrong", node("b")));
    uint32_t first = make(op("Relu", {value("a")}));
    uint32_t r = make(op(wrong, {first}));
    ok(edit().replace(value("b"), r));
    ok(edit().remove(node("b")));
    ok(edit().commit());
    EXPECT_THAT(refused(), HasSubstr(wrong));
  }
  // What follows works, and ids go on.
  ok(edit().begin("right", node("b")));
  uint32_t r = make(op("Relu", {value("a")}));
  ok(edit().replace(value("b"), r));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  EXPECT_EQ(apply().applied.size(), 1u);
}

TEST_F(IrEdit, ReplacementsMustBeOfTheSameType) {
  load(
      "graph @g(%x: f32[2], %n: f32[N], %o: f32[3], %h: f16[2], %u: f32[*], %f: f32[2]:NCHW) -> () {\n %a: "
      "f32[2] = Relu(%x)\n Sink(%a)\n}");
  for (const char* bad : {"o", "h", "f"}) {
    ok(edit().begin("swap", node("a")));
    ok(edit().replace(value("a"), value(bad)));
    ok(edit().commit());
    EXPECT_THAT(refused(), HasSubstr("it replaces value 'a', which is f32[2], by value '" + std::string(bad) +
                                     "', which is"));
  }
  for (const char* good : {"n", "u", "x"}) {
    load("graph @g(%x: f32[2], %n: f32[N], %u: f32[*]) -> () {\n %a: f32[2] = Relu(%x)\n Sink(%a)\n}");
    ok(edit().begin("swap", node("a")));
    ok(edit().replace(value("a"), value(good)));
    ok(edit().commit());
    EXPECT_EQ(apply().applied.size(), 1u) << good;
  }
}

TEST_F(IrEdit, AReplacementTakesOverWhatIsKnown) {
  load("graph @g(%x: f32[?,M], %y: ?[*]) -> (%a, %b) {\n %a: f32[N,4] = Relu(%x)\n %b: i64[2] = Op(%y)\n}");
  ok(edit().begin("swap", node("a")));
  uint32_t r = make(op("Neg", {value("x")}));
  ok(edit().replace(value("a"), r));
  ok(edit().remove(node("a")));
  ok(edit().commit());
  ok(edit().begin("untyped", node("b")));
  uint32_t s = make(op("Neg", {value("y")}));
  ok(edit().replace(value("b"), s));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print_type(g(), g().value(r).type), "f32[N,4]");
  EXPECT_EQ(print_type(g(), g().value(s).type), "i64[2]");
  EXPECT_EQ(view(g().value(r).name), "a");
}

TEST_F(IrEdit, ConstantsGoWithTheirLastReader) {
  load(R"rg(graph @g(%x: f32[2], %w: const f32[2]) -> (%a) {
  %k: const f32[2] = [1.0, 2.0]
  %shared: const f32[2] = [3.0, 4.0]
  %unread: const f32[2] = [5.0, 6.0]
  %a: f32[2] = Mix(%x, %k, %shared, %w)
  Sink(%shared)
})rg");
  ok(edit().begin("fold", node("a")));
  const float data[] = {7, 8};
  const int64_t dims[] = {2};
  regie_tensor t{};
  t.elem = REGIE_F32;
  t.rank = 1;
  t.dims = dims;
  t.data = const_cast<float*>(data);
  t.bytes = sizeof data;
  auto folded = edit().constant(REGIE_VALUE_CONSTANT, t, "folded");
  auto useless = edit().constant(REGIE_VALUE_CONSTANT, t, "useless");
  ASSERT_TRUE(folded.ok() && useless.ok());
  ok(edit().replace(value("a"), *folded));
  ok(edit().remove(node("a")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2]) -> (%folded as "a") {
  %shared: const f32[2] = [3.0, 4.0]
  %unread: const f32[2] = [5.0, 6.0]
  %folded: const f32[2] = [7.0, 8.0]
  Sink(%shared)
}
)rg");
}

constexpr const char* kCall = R"rg(graph @g(%x: f32[2], %y: f32[2]) -> (%c, %d) {
  %k: const f32[2] = [1.0, 2.0]
  %c: f32[2], %d: f32[2] = Call(%x, %y) @name("call") @from("call (F)") region @body(%p: f32[2], %q: f32[2]) -> (%s, %q) {
    %m: const f32[2] = [3.0, 4.0]
    %r: f32[2] = Mix(%p, %k, %m)
    %s: f32[2] = Add(%r, %q)
  }
}
)rg";

TEST_F(IrEdit, RegionsAreInlined) {
  load(kCall);
  ok(edit().begin("inline", node("c")));
  std::vector<uint32_t> args{value("x"), value("y")};
  auto results = edit().inline_region(node("c"), 0, args);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ((*results)[1], value("y"));
  ok(edit().replace(value("c"), (*results)[0]));
  ok(edit().replace(value("d"), (*results)[1]));
  ok(edit().remove(node("c")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2], %y: f32[2]) -> (%s as "c", %y as "d") {
  %k: const f32[2] = [1.0, 2.0]
  %m: const f32[2] = [3.0, 4.0]
  %r: f32[2] = Mix(%x, %k, %m)
  %s: f32[2] = Add(%r, %y)
}
)rg");
}

TEST_F(IrEdit, ARefusedInliningLeavesTheRegionWhole) {
  load(kCall);
  ok(edit().begin("inline", node("c")));
  std::vector<uint32_t> args{value("x"), value("y")};
  auto results = edit().inline_region(node("c"), 0, args);
  ASSERT_TRUE(results.ok());
  make(op("Refuse", {(*results)[0]}));
  ok(edit().remove(node("c")));
  ok(edit().commit());
  refused();
}

TEST_F(IrEdit, InliningWithoutRemovalIsRefusedAtCommit) {
  load(kCall);
  ok(edit().begin("inline", node("c")));
  EXPECT_FALSE(edit().inline_region(node("c"), 0, std::vector<uint32_t>{value("x")}).ok());
  EXPECT_FALSE(edit().inline_region(node("c"), 1, std::vector<uint32_t>{value("x"), value("y")}).ok());
  ASSERT_TRUE(edit().inline_region(node("c"), 0, std::vector<uint32_t>{value("x"), value("y")}).ok());
  EXPECT_THAT(edit().commit().message(),
              HasSubstr("inlines a region of node 'call' (Call) but does not remove it"));
}

TEST_F(IrEdit, RegionsAreMade) {
  load(kChain);
  ok(edit().begin("outline", node("b")));
  std::vector<uint32_t> args;
  regie_type type = g().value(value("a")).type;
  auto region = edit().open_region("body", {&type, 1}, std::vector<std::string>{"p"}, &args);
  ASSERT_TRUE(region.ok());
  auto k = edit().constant(REGIE_VALUE_CONSTANT, Tensor::zeros(REGIE_F32, std::vector<int64_t>{1}), "z");
  ASSERT_TRUE(k.ok());
  uint32_t inner = make(op("Mix", {args[0], *k}));
  ok(edit().close_region(std::vector<uint32_t>{inner}));
  NodeSpec call = op("Call", {value("a")});
  call.regions = {*region};
  uint32_t r = make(call);
  ok(edit().replace(value("b"), r));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  apply();
  EXPECT_EQ(print(g()), R"rg(graph @g(%x: f32[2]) -> (%c as "out") {
  %a: f32[2] = Relu(%x) @name("na") @from("fa (F)")
  %b: f32[2] = Call(%a) @from("fb (F)") region @body(%p: f32[2]) -> (%0) {
    %z: const f32[1] = [0.0]
    %0: f32[2] = Mix(%p, %z) @from("fb (F)")
  }
  %c: f32[2] = Relu(%b) @name("nc") @from("fc (F)")
}
)rg");
}

TEST_F(IrEdit, CapturesMustBeOperands) {
  load(kChain);
  ok(edit().begin("capture", node("b")));
  std::vector<uint32_t> args;
  auto region = edit().open_region("body", {}, {}, &args);
  ASSERT_TRUE(region.ok());
  uint32_t inner = make(op("Relu", {value("a")}));
  ok(edit().close_region(std::vector<uint32_t>{inner}));
  NodeSpec call = op("Call", {});
  call.regions = {*region};
  make(call);
  ok(edit().commit());
  EXPECT_THAT(refused(), HasSubstr("reads value 'a' of another region; captures must be operands"));
}

TEST_F(IrEdit, ControlEdgesPassToTheReplacement) {
  load(R"rg(graph @g(%x: f32[2]) -> () {
  %a = Relu(%x)
  %b = Neg(%x) @after(%a)
  %c = Neg(%x) @after(%b)
})rg");
  ok(edit().begin("renew", node("b")));
  make(op("Relu", {value("x")}));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  apply();
  EXPECT_THAT(print(g()), HasSubstr("%0: f32[2] = Relu(%x) @after(%a)\n  %c = Neg(%x) @after(%0)"));
  ok(edit().begin("gone", node("c")));
  ok(edit().remove(g().node(node("c")).prev));
  ok(edit().commit());
  apply();
  EXPECT_THAT(print(g()), HasSubstr("%a = Relu(%x)\n  %c = Neg(%x) @after(%a)"));
}

TEST_F(IrEdit, SetOperandRewiresOne) {
  load("graph @g(%x: f32[2], %y: f32[2]) -> () {\n %a: f32[2] = Add(%x, %x)\n}");
  ok(edit().begin("rewire", node("a")));
  ok(edit().set_operand(node("a"), 1, value("y")));
  ok(edit().commit());
  apply();
  EXPECT_THAT(print(g()), HasSubstr("Add(%x, %y)"));
  ok(edit().begin("rewire", node("a")));
  EXPECT_FALSE(edit().set_operand(node("a"), 2, value("y")).ok());
  ok(edit().set_operand(node("a"), 0, value("a")));
  ok(edit().commit());
  EXPECT_THAT(refused(), HasSubstr("read its own result"));
}

TEST_F(IrEdit, BisectionLeavesPatchesOut) {
  uint32_t serial = 10;
  EditOptions options;
  options.next_serial = &serial;
  options.accept = [](uint32_t s) { return s != 11; };
  load(
      "graph @g(%x: f32[2]) -> () {\n %a: f32[2] = Relu(%x)\n %b: f32[2] = Relu(%x)\n %c: f32[2] = "
      "Relu(%x)\n}");
  for (const char* name : {"a", "b", "c"}) {
    ok(edit().begin(name, node(name)));
    ok(edit().remove(node(name)));
    ok(edit().commit());
  }
  ApplyOutcome out = apply(options);
  EXPECT_EQ(out.held_back, 1u);
  EXPECT_EQ(serial, 13u);
  ASSERT_EQ(out.applied.size(), 2u);
  EXPECT_EQ(out.applied[1].serial, 12u);
  EXPECT_THAT(print(g()), HasSubstr("{\n  %b: f32[2] = Relu(%x)\n}"));
}

TEST_F(IrEdit, AVetoUndoesThePatch) {
  load(kChain);
  std::string before = print(g());
  EditOptions options;
  options.veto = [](const Graph& graph, uint32_t n) {
    return view(graph.node(n).op) == "Mix" ? unsupported("too big for the unit") : Status();
  };
  ok(edit().begin("fuse", node("c")));
  uint32_t r = make(op("Mix", {value("b")}));
  ok(edit().replace(value("c"), r));
  ok(edit().remove(node("c")));
  ok(edit().commit());
  ApplyOutcome out = apply(options);
  EXPECT_EQ(out.vetoed, 1u);
  EXPECT_TRUE(out.applied.empty());
  ASSERT_EQ(out.notes.size(), 1u);
  EXPECT_EQ(out.notes[0].kind, "veto");
  EXPECT_EQ(out.notes[0].text, "'fuse': too big for the unit");
  EXPECT_EQ(print(g()), before);
}

TEST_F(IrEdit, LaterPatchesMayUseEarlierOnes) {
  load(kChain);
  ok(edit().begin("one", node("b")));
  uint32_t r = make(op("Relu", {value("a")}));
  ok(edit().replace(value("b"), r));
  ok(edit().remove(node("b")));
  ok(edit().commit());
  ok(edit().begin("left", node("c")));
  make(op("Relu", {value("x")}));
  ok(edit().abandon());
  ok(edit().begin("two", node("c")));
  uint32_t s = make(op("Neg", {r}));
  ok(edit().replace(value("c"), s));
  ok(edit().remove(node("c")));
  ok(edit().commit());
  EXPECT_EQ(apply().applied.size(), 2u);
  EXPECT_EQ(g().operands(g().value(s).owner)[0], r);
  // An abandoned patch's ids are never given out again.
  EXPECT_EQ(g().live_node_count(), 3u);
  EXPECT_EQ(g().node_count(), 6u);
}

TEST_F(IrEdit, RecordingMistakesAreErrorsAtOnce) {
  load(kChain);
  EXPECT_FALSE(edit().commit().ok());
  EXPECT_FALSE(edit().abandon().ok());
  EXPECT_FALSE(edit().replace(value("a"), value("b")).ok());
  EXPECT_FALSE(edit().begin("x", 77).ok());
  ok(edit().begin("x", node("a")));
  EXPECT_FALSE(edit().begin("y", node("a")).ok());
  EXPECT_FALSE(edit().node(op("", {})).ok());
  EXPECT_FALSE(edit().node(op("Relu", {999})).ok());
  EXPECT_FALSE(edit().replace(value("a"), value("a")).ok());
  EXPECT_FALSE(edit().remove(999).ok());
  ok(edit().remove(node("a")));
  EXPECT_FALSE(edit().remove(node("a")).ok());
  EXPECT_FALSE(edit().close_region({}).ok());
  NodeSpec twice = op("Relu", {value("a")});
  twice.attrs = {AttrValue::integer("k", 1), AttrValue::integer("k", 2)};
  EXPECT_THAT(edit().node(twice).status().message(),
              HasSubstr("patch 'x': attribute 'k' of Relu is there twice"));
  NodeSpec foreign = op("Call", {});
  foreign.regions = {5};
  EXPECT_FALSE(edit().node(foreign).ok());
  EXPECT_FALSE(edit().constant(REGIE_VALUE_RESULT, Tensor::zeros(REGIE_F32, {}), "k").ok());
  EXPECT_FALSE(edit().constant(REGIE_VALUE_CONSTANT, Tensor(), "k").ok());
  EXPECT_FALSE(edit().apply(ops_).ok());
}

TEST_F(IrEdit, Assignments) {
  load(kChain);
  regie_engine_ref e{};
  g().set_engines({{"cpu", e}, {"npu", e}});
  ok(edit().set_engine(node("a"), 1, "it is fast"));
  EXPECT_FALSE(edit().set_engine(node("a"), 2, "").ok());
  ok(edit().set_space(value("a"), 1));
  ok(edit().set_space(value("x"), 1));
  ok(edit().set_alias(value("a"), value("x"), 64, "in place"));
  edit().note(node("b"), "near-miss", "read twice");
  ApplyOutcome out = apply();
  EXPECT_EQ(out.assignments, 4u);
  ASSERT_EQ(out.notes.size(), 3u);
  EXPECT_EQ(out.notes[0].text, "read twice");
  EXPECT_EQ(out.notes[1].kind, "engine");
  EXPECT_EQ(out.notes[2].kind, "alias");
  EXPECT_THAT(
      print(g()),
      HasSubstr(
          "%a: f32[2] @space(1) @alias(%x, 64) = Relu(%x) @name(\"na\") @from(\"fa (F)\") @engine(\"npu\")"));
  // The same again changes nothing.
  ok(edit().set_engine(node("a"), 1, "it is fast"));
  ok(edit().set_space(value("a"), 1));
  EXPECT_EQ(apply().assignments, 0u);
}

TEST_F(IrEdit, TypesGrowMorePreciseAndNeverTurn) {
  load("graph @g(%x: f32[N,?]) -> () {\n %a = Relu(%x)\n}");
  const regie_dim unknown_first[] = {REGIE_DIM_UNKNOWN, 4}, other[] = {3, 5};
  ok(edit().set_type(value("a"), g().make_type(REGIE_F32, unknown_first)));
  EXPECT_EQ(apply().assignments, 1u);
  const regie_dim dims[] = {2, REGIE_DIM_UNKNOWN};
  ok(edit().set_type(value("a"), g().make_type(REGIE_F32, dims)));
  apply();
  EXPECT_EQ(print_type(g(), g().value(value("a")).type), "f32[2,4]");
  ok(edit().set_type(value("a"), g().make_type(REGIE_F32, other)));
  EXPECT_THAT(refused(), HasSubstr("value 'a' is f32[2,4] and cannot become f32[3,5]"));
  // A layout pass changes how the bytes lie.
  regie_type packed = g().make_type(REGIE_F32, std::vector<regie_dim>{1, 2, 4});
  packed.format = REGIE_FORMAT_FRACTAL_NZ;
  ok(edit().set_type(value("a"), packed));
  apply();
  EXPECT_EQ(print_type(g(), g().value(value("a")).type), "f32[1,2,4]:FRACTAL_NZ");
}

// ---- The C table ----

regie_status last_code = REGIE_OK;
std::string last_message;

class IrEditApi : public IrEdit {
 protected:
  void SetUp() override {
    set_edit_failure_sink([](const Status& s) {
      last_code = s.code();
      last_message = s.to_string();
      return s.code();
    });
    last_code = REGIE_OK;
  }
  void TearDown() override { set_edit_failure_sink(fail_on_this_thread); }
  const regie_edit_api& api() { return *edit_api(); }
  regie_edit* e() { return edit().handle(); }
};

TEST_F(IrEditApi, ReplacesANodeAsAPluginWould) {
  load(kChain);
  regie_str title = str(std::string_view("swap"));
  EXPECT_EQ(api().begin(e(), title, node("b")), REGIE_OK);
  int64_t pads[] = {1, 2};
  regie_attr attrs[2] = {};
  attrs[0].name = str(std::string_view("pads"));
  attrs[0].kind = REGIE_ATTR_INTS;
  attrs[0].count = 2;
  attrs[0].v.ints = pads;
  attrs[1].name = str(std::string_view("axis"));
  attrs[1].kind = REGIE_ATTR_INT;
  attrs[1].count = 1;
  attrs[1].v.i = 3;
  uint32_t a = value("a"), results[2] = {};
  const uint8_t omitted[] = {1, 0};
  regie_node_desc desc{};
  desc.struct_size = sizeof desc;
  desc.op = str(std::string_view("Split"));
  desc.operands = &a;
  desc.operand_count = 1;
  desc.attrs = attrs;
  desc.attr_count = 2;
  desc.result_count = 2;
  desc.results_omitted = omitted;
  EXPECT_EQ(api().node(e(), &desc, results), REGIE_OK);
  EXPECT_EQ(results[0], REGIE_NONE);
  EXPECT_EQ(api().replace(e(), value("b"), results[1]), REGIE_OK);
  EXPECT_EQ(api().remove(e(), node("b")), REGIE_OK);
  EXPECT_EQ(api().commit(e()), REGIE_OK);
  apply();
  EXPECT_THAT(print(g()), HasSubstr("_, %b: f32[2] = Split(%a) {axis = 3, pads = [1, 2]} @from(\"fb (F)\")"));
}

TEST_F(IrEditApi, RegionsConstantsAndAssignments) {
  load(kCall);
  EXPECT_EQ(api().begin(e(), str(std::string_view("inline")), node("c")), REGIE_OK);
  uint32_t args[] = {value("x"), value("y")}, results[2];
  EXPECT_EQ(api().inline_region(e(), node("c"), 0, args, results), REGIE_OK);
  regie_type type = g().value(value("x")).type;
  uint32_t region = 0, arg = 0, k = 0;
  EXPECT_EQ(api().open_region(e(), str(std::string_view("r")), 1, &type, nullptr, &region, &arg), REGIE_OK);
  const int64_t dims[] = {2};
  int32_t data[] = {5, 6};
  regie_tensor t{};
  t.elem = REGIE_I32;
  t.rank = 1;
  t.dims = dims;
  t.data = data;
  t.bytes = sizeof data;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_WEIGHT, &t, str(std::string_view("k")), &k), REGIE_OK);
  uint32_t operands[] = {arg, k}, inner = 0;
  regie_node_desc mix{};
  mix.struct_size = sizeof mix;
  mix.op = str(std::string_view("Mix"));
  mix.operands = operands;
  mix.operand_count = 2;
  mix.result_count = 1;
  EXPECT_EQ(api().node(e(), &mix, &inner), REGIE_OK);
  EXPECT_EQ(api().close_region(e(), 1, &inner), REGIE_OK);
  regie_node_desc call = mix;
  call.op = str(std::string_view("Call"));
  call.operand_count = 1;
  call.operands = &results[0];
  call.region_count = 1;
  call.regions = &region;
  uint32_t out = 0;
  EXPECT_EQ(api().node(e(), &call, &out), REGIE_OK);
  EXPECT_EQ(api().replace(e(), value("c"), out), REGIE_OK);
  EXPECT_EQ(api().replace(e(), value("d"), results[1]), REGIE_OK);
  EXPECT_EQ(api().remove(e(), node("c")), REGIE_OK);
  EXPECT_EQ(api().set_space(e(), out, 1), REGIE_OK);
  EXPECT_EQ(api().commit(e()), REGIE_OK);
  apply();
  EXPECT_THAT(print(g()), HasSubstr("%c: f32[2] @space(1) = Call(%s)"));
  EXPECT_THAT(print(g()), HasSubstr("%k#1: weight i32[2] = [5, 6]"));
}

TEST_F(IrEditApi, RubbishIsRefusedByName) {
  load(kChain);
  EXPECT_EQ(api().begin(nullptr, {}, 0), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().commit(e()), REGIE_BAD_PLUGIN);
  EXPECT_THAT(last_message, HasSubstr("commit without begin"));
  EXPECT_EQ(api().begin(e(), str(std::string_view("p")), node("a")), REGIE_OK);
  uint32_t out[2];
  EXPECT_EQ(api().node(e(), nullptr, out), REGIE_BAD_PLUGIN);
  regie_node_desc desc{};
  EXPECT_EQ(api().node(e(), &desc, out), REGIE_BAD_PLUGIN);  // no struct_size
  desc.struct_size = sizeof desc;
  desc.op = str(std::string_view("Relu"));
  desc.operand_count = 1;
  EXPECT_EQ(api().node(e(), &desc, out), REGIE_BAD_PLUGIN);  // a count without its list
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, nullptr, {}, out), REGIE_BAD_PLUGIN);
  regie_tensor t{};
  const int64_t dims[] = {2}, negative[] = {-1};
  t.elem = REGIE_F32;
  t.rank = 1;
  t.dims = dims;
  t.bytes = 8;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);  // no data
  float data[] = {1, 2};
  t.data = data;
  t.bytes = 4;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);
  EXPECT_THAT(last_message, HasSubstr("has 4 bytes; its type needs 8"));
  t.dims = negative;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().inline_region(e(), node("a"), 0, nullptr, out), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().set_type(e(), value("a"), nullptr), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().close_region(e(), 1, nullptr), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().set_engine(e(), node("a"), 3, {}), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().abandon(e()), REGIE_OK);
}

}  // namespace
}  // namespace regie
