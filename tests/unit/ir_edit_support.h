// The fixture of the tests of edits: a graph from text, an edit of it, and what each application must keep.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/edit.h"
#include "ir/verify.h"
#include "support/fake_op_set.h"
#include "text/text.h"

namespace regie::edit_test {

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

constexpr const char* kCall = R"rg(graph @g(%x: f32[2], %y: f32[2]) -> (%c, %d) {
  %k: const f32[2] = [1.0, 2.0]
  %c: f32[2], %d: f32[2] = Call(%x, %y) @name("call") @from("call (F)") region @body(%p: f32[2], %q: f32[2]) -> (%s, %q) {
    %m: const f32[2] = [3.0, 4.0]
    %r: f32[2] = Mix(%p, %k, %m)
    %s: f32[2] = Add(%r, %q)
  }
}
)rg";

}  // namespace regie::edit_test
