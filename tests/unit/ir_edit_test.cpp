// Edits of graphs: patches recorded, applied one by one, refused whole.
#include "ir_edit_support.h"

namespace regie::edit_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace regie::edit_test
