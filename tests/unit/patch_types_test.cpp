// After a patch, what is better known of an operand goes on to all that depends on it.
#include <gtest/gtest.h>

#include "ir/edit.h"
#include "support/typed_graph.h"

namespace regie {
namespace {

class PatchTypes : public test::TypedGraph {
 protected:
  // `by` takes the place of `old`, whose node goes.
  void replace(std::string_view old, std::string_view by) {
    Edit edit(*graph_);
    const uint32_t v = value(old), node = graph_->value(v).owner;
    ASSERT_TRUE(edit.begin("test", node).ok());
    ASSERT_TRUE(edit.replace(v, value(by)).ok());
    ASSERT_TRUE(edit.remove(node).ok());
    ASSERT_TRUE(edit.commit().ok());
    auto outcome = edit.apply(*ops_);
    ASSERT_TRUE(outcome.ok()) << outcome.status().to_string();
  }
};

TEST_F(PatchTypes, GoOnDownstreamAndOutOfBranches) {
  read(R"(
graph @g(%x: f32[2,N], %c: bool[]) -> (%z, %w) {
  %a = Identity(%x)
  %b = Relu(%a)
  %z = Transpose(%b)
  %w = If(%c, %b) region @then(%d: f32[2,N]) -> (%d) {
  } region @else(%e: f32[2,N]) -> (%f) {
    %f: f32[2,N] = Neg(%e)
  }
}
)");
  replace("a", "x");
  EXPECT_EQ(type("b"), "f32[2,N]");
  EXPECT_EQ(type("z"), "f32[N,2]");
  EXPECT_EQ(type("w"), "f32[2,N]");
}

TEST_F(PatchTypes, ConstantsGiveShapes) {
  read(R"(
graph @g(%x: f32[2,6], %s: i64[2]) -> (%z) {
  %k: const i64[2] = [3, -1]
  %shape: i64[2] = Identity(%s)
  %r: f32[A,B] = Reshape(%x, %shape)
  %z: f32[A,B] = Relu(%r)
}
)");
  replace("shape", "k");
  EXPECT_EQ(type("r"), "f32[3,4]");
  EXPECT_EQ(type("z"), "f32[3,4]");
}

TEST_F(PatchTypes, WhatCannotBeInferredKeepsItsType) {
  read(R"(
graph @g(%x: f32[2,6], %s: i64[2], %t: i64[2]) -> (%z) {
  %shape: i64[2] = Identity(%s)
  %r: f32[A,B] = Reshape(%x, %shape)
  %z: f32[A,B] = Relu(%r)
}
)");
  replace("shape", "t");
  EXPECT_EQ(type("r"), "f32[A,B]");
  EXPECT_EQ(type("z"), "f32[A,B]");
}

}  // namespace
}  // namespace regie
