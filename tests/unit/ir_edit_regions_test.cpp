// Edits of graphs: regions made and inlined, captures, control edges, single operands.
#include "ir_edit_support.h"

namespace regie::edit_test {
namespace {

using testing::HasSubstr;

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

}  // namespace
}  // namespace regie::edit_test
