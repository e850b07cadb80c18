// After a patch, what is better known of an operand goes on to all that depends on it.
#include <gtest/gtest.h>

#include "ir/edit.h"
#include "passes/plugin_op_set.h"
#include "regie_test_paths.h"
#include "text/text.h"

namespace regie {
namespace {

class PatchTypes : public testing::Test {
 protected:
  void SetUp() override {
    auto host = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    host_ = *host;
    set_current_plugin_host(host_);
    auto ops = PluginOpSet::create(host_);
    ASSERT_TRUE(ops.ok()) << ops.status().to_string();
    ops_ = *ops;
  }
  void read(const char* text) {
    auto graph = parse(text, "test.rg");
    ASSERT_TRUE(graph.ok()) << graph.status().to_string();
    graph_ = std::move(*graph);
  }
  uint32_t value(std::string_view name) const {
    for (uint32_t v = 0; v < graph_->value_count(); ++v)
      if (graph_->live_value(v) && view(graph_->value(v).name) == name) return v;
    return REGIE_NONE;
  }
  std::string type(std::string_view name) const {
    return print_type(*graph_, graph_->value(value(name)).type);
  }
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

  std::shared_ptr<PluginHost> host_;
  std::shared_ptr<PluginOpSet> ops_;
  std::unique_ptr<Graph> graph_;
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
