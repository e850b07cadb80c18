// Symbols of dimensions that depend on data: what they are called, that inferring again changes nothing, what
// is said of their values, and what becomes of them when the value is known after all.
#include "passes/late_symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/typed_graph.h"

namespace regie {
namespace {

using ::testing::HasSubstr;

class LateSymbols : public test::TypedGraph {
 protected:
  Status infer_all() {
    for (uint32_t n = graph_->region(0).first; n != REGIE_NONE; n = graph_->node(n).next)
      REGIE_TRY(ops_->infer(*graph_, n));
    return {};
  }
  size_t late_dims(std::string_view of) const {
    auto late = ops_->late_dims(*graph_, graph_->value(value(of)).owner);
    EXPECT_TRUE(late.ok());
    return late.ok() ? late->size() : 0;
  }
};

constexpr const char* kChain = R"(
graph @g(%x: f32[N,3], %s: i64[2]) -> (%z) where N in 1..8 {
  %i = NonZero(%x)
  %t = Transpose(%i)
  %y = Expand(%x, %s)
  %z = Concat(%t, %t) {axis = 0}
}
)";

TEST_F(LateSymbols, AreNamedAfterTheValueAndStay) {
  read(kChain);
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(type("i"), "i64[2,\"i.1\"]");
  EXPECT_EQ(type("t"), "i64[\"i.1\",2]");
  EXPECT_EQ(type("y"), "f32[\"y.0\",3]");  // what three is expanded to can only be three
  EXPECT_EQ(type("z"), "i64[2*\"i.1\",2]");
  EXPECT_EQ(late_dims("i"), 1u);
  EXPECT_EQ(late_dims("y"), 1u);
  EXPECT_EQ(late_dims("t"), 0u);
  EXPECT_EQ(late_dims("z"), 0u);
  const size_t symbols = graph_->dims().symbol_count();
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(graph_->dims().symbol_count(), symbols);
  EXPECT_EQ(type("z"), "i64[2*\"i.1\",2]");
  for (size_t s = 0; s < symbols; ++s)
    EXPECT_EQ(graph_->dims().symbol_at(s).data_dependent, graph_->dims().symbol_at(s).name != "N");
}

TEST_F(LateSymbols, PrintAndParse) {
  read(kChain);
  ASSERT_TRUE(infer_all().ok());
  const std::string text = print(*graph_);
  EXPECT_THAT(text, HasSubstr("\"i.1\" in 0.. data"));
  read(text);
  EXPECT_EQ(print(*graph_), text);
  EXPECT_EQ(late_dims("i"), 1u);  // types that were read, not inferred
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(print(*graph_), text);
}

// A name that something else has already.
TEST_F(LateSymbols, DoNotMeetOthers) {
  read(R"(
graph @g(%x: f32["i.1",3]) -> (%i) {
  %i = NonZero(%x)
}
)");
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(type("i"), "i64[2,\"i.1#2\"]");
}

TEST_F(LateSymbols, ASizeThatIsSaidIsHeldTo) {
  read(R"(
graph @g(%x: f32[5]) -> (%y) {
  %i: i64[1,4] = NonZero(%x)
  %y = Transpose(%i)
}
)");
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(type("i"), "i64[1,\"i.1\"]");
  const regie_dim d = graph_->value(value("i")).type.dims[1];
  EXPECT_EQ(graph_->dims().range(d), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_EQ(late_dims("i"), 1u);
  EXPECT_FALSE(is_late(graph_->dims(), graph_->value(value("y")).type));
  EXPECT_TRUE(has_late_symbol(graph_->dims(), graph_->value(value("y")).type));
}

// The same further down, where the symbol came from above.
TEST_F(LateSymbols, SaidLater) {
  read(R"(
graph @g(%x: f32[5]) -> (%y) {
  %i = NonZero(%x)
  %y: i64[4,1] = Transpose(%i)
}
)");
  ASSERT_TRUE(infer_all().ok());
  const regie_dim d = graph_->value(value("i")).type.dims[1];
  EXPECT_EQ(graph_->dims().range(d), std::pair(int64_t{4}, int64_t{4}));
}

TEST_F(LateSymbols, WhatIsKnownAfterAllIsANumber) {
  read(R"(
graph @g(%x: f32[5]) -> (%y) where s in 0.. data {
  %c: const f32[4] = [1.0, 0.0, 2.0, 0.0]
  %i: i64[1,s] = NonZero(%c)
  %y: i64[s,1] = Transpose(%i)
}
)");
  ASSERT_TRUE(infer_all().ok());
  EXPECT_EQ(type("i"), "i64[1,2]");
  EXPECT_EQ(graph_->dims().range(*graph_->dims().find_symbol("s")), std::pair(int64_t{2}, int64_t{2}));
}

TEST_F(LateSymbols, ContradictionsAreErrors) {
  read(R"(
graph @g(%x: f32[5]) -> (%i) where s in 3..9 data {
  %c: const f32[4] = [1.0, 0.0, 2.0, 0.0]
  %i: i64[1,s] = NonZero(%c)
}
)");
  const Status s = infer_all();
  EXPECT_EQ(s.code(), REGIE_INVALID_MODEL);
  EXPECT_THAT(s.to_string(), HasSubstr("is said to be i64[1,s], but is i64[1,2]"));
}

}  // namespace
}  // namespace regie
