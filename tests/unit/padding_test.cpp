// How padding passes through a graph: the rules' text, what is let through and what is refused, with which
// words. That what is let through is also right is for tests/python/test_padding.py, with numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/padding_rule.h"
#include "passes/importer.h"
#include "passes/padding.h"
#include "regie_test_paths.h"

namespace regie::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(PaddingRule, IsRead) {
  const auto rule = read_padding_rule("[... m *], size, _ -> [... m **] except axis zeros if mode=a|b, k=0");
  ASSERT_FALSE(rule.ok());  // two open ends in one list
  EXPECT_THAT(rule.status().to_string(), HasSubstr("once in a list"));
  const auto good = read_padding_rule("[... m *], size, _ -> [... m] except axis zeros if mode=a|b, k=0");
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  EXPECT_EQ(good->operands.size(), 3u);
  EXPECT_EQ(good->operands[0].axes, (std::vector<std::string>{"...", "m", "*"}));
  EXPECT_EQ(good->operands[1].kind, PaddingPattern::kSize);
  EXPECT_EQ(good->operand(7).kind, PaddingPattern::kExact);
  EXPECT_EQ(good->except, "axis");
  EXPECT_TRUE(good->zeros);
  ASSERT_EQ(good->guards.size(), 2u);
  EXPECT_EQ(good->guards[0].second, (std::vector<std::string>{"a", "b"}));
  const auto reduced = read_padding_rule("reduced axes keep keepdims");
  ASSERT_TRUE(reduced.ok());
  EXPECT_EQ(reduced->name, "axes");
  EXPECT_EQ(reduced->keep, "keepdims");
}

TEST(PaddingRule, SaysWhatIsWrong) {
  for (const char* text :
       {"", "[...]", "[...] -> ", "[n n] -> [n]", "[n -> [n]", "[n] -> [n] if", "[n] -> [n] if a",
        "[n] -> [n] more", "permuted", "n -> [n]", "[n] -> [n] except"}) {
    const auto rule = read_padding_rule(text);
    ASSERT_FALSE(rule.ok()) << text;
    EXPECT_THAT(rule.status().to_string(), HasSubstr("padding = \"")) << text;
  }
}

class Padding : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto host = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    host_ = *host;
    auto ops = PluginOpSet::create(host_);
    ASSERT_TRUE(ops.ok()) << ops.status().to_string();
    ops_ = *ops;
  }
  static void TearDownTestSuite() {
    ops_.reset();
    host_.reset();
  }
  // Padded along N; "" or the words.
  static std::string check(const std::string& text) {
    auto g = import_bytes(*host_, *ops_, std::as_bytes(std::span(text)), "test.rg");
    EXPECT_TRUE(g.ok()) << g.status().to_string();
    if (!g.ok()) return "not read";
    const auto n = (*g)->dims().find_symbol("N");
    PaddedSymbols symbols{{*(*g)->dims().symbol_index(*n), "x.0"}};
    const Status s = check_padding(**g, *ops_, symbols);
    return s.ok() ? "" : s.to_string();
  }
  static std::shared_ptr<PluginHost> host_;
  static std::shared_ptr<PluginOpSet> ops_;
};
std::shared_ptr<PluginHost> Padding::host_;
std::shared_ptr<PluginOpSet> Padding::ops_;

TEST_F(Padding, ReachesWhereNobodyReads) {
  // The second result is mixed, but no output.
  EXPECT_EQ(check(R"(graph @g(%x: f32[N,4]) -> (%y) where N in 1..64 {
  %y = Relu(%x)
  %s = Softmax(%x) {axis = 0}
})"),
            "");
}

TEST_F(Padding, NamesTheFirstOperatorThatMixes) {
  EXPECT_THAT(check(R"(graph @g(%x: f32[N,4]) -> (%z) where N in 1..64 {
  %y = Relu(%x)
  %s = Softmax(%y) {axis = 0} @from("mixer")
  %z = Relu(%s)
})"),
              AllOf(HasSubstr("mixer"), HasSubstr("axis 0"), HasSubstr("x.0"), HasSubstr("--shapes dynamic"),
                    HasSubstr("output 'z'")));
}

TEST_F(Padding, NothingDeclaredIsRefusedByName) {
  EXPECT_THAT(check(R"(graph @g(%x: f32[N,4], %c: bool[4]) -> (%y) where N in 1..64 {
  %y = Compress(%x, %c) {axis = 1}
})"),
              AllOf(HasSubstr("Compress"), HasSubstr("declares nothing about padding")));
  // Where no padding comes, none is needed.
  EXPECT_EQ(check(R"(graph @g(%x: f32[N,4], %c: bool[4], %w: f32[4,4]) -> (%y) where N in 1..64 {
  %k = Compress(%w, %c) {axis = 1}
  %y = MatMul(%x, %k)
})"),
            "");
}

TEST_F(Padding, SizesStaySizes) {
  // A Reshape to the input's own size: right at every one. The size as a number in the data: not.
  EXPECT_EQ(check(R"(graph @g(%x: f32[N,4]) -> (%y) where N in 1..64 {
  %shape = Shape(%x)
  %r = Relu(%x)
  %y = Reshape(%r, %shape)
})"),
            "");
  EXPECT_THAT(check(R"(graph @g(%x: f32[N,4]) -> (%y) where N in 1..64 {
  %shape = Shape(%x)
  %f = Cast(%shape) {to = 1}
  %s = ReduceProd(%f) {keepdims = 0}
  %y = Div(%x, %s)
})"),
              AllOf(HasSubstr("ReduceProd"), HasSubstr("made of the padded sizes")));
  EXPECT_THAT(check(R"(graph @g(%x: f32[N,4]) -> (%y) where N in 1..64 {
  %y = Shape(%x)
})"),
              HasSubstr("made of the padded sizes themselves"));
}

TEST_F(Padding, AxesThatAreJoined) {
  // Padding of the outer one of two joined axes is at the end; of the inner one it is in between.
  EXPECT_EQ(check(R"(graph @g(%x: f32[N,4,3]) -> (%y) where N in 1..64 {
  %s: const i64[2] = [-1, 3]
  %y = Reshape(%x, %s)
})"),
            "");
  EXPECT_THAT(check(R"(graph @g(%x: f32[4,N,3]) -> (%y) where N in 1..64 {
  %s: const i64[2] = [-1, 3]
  %y = Reshape(%x, %s)
})"),
              AllOf(HasSubstr("Reshape"), HasSubstr("not the first")));
}

TEST_F(Padding, BroadcastsOnlyAtSomeSizes) {
  // Equal at some sizes, broadcast at one, an error at others.
  EXPECT_THAT(check(R"(graph @g(%x: f32[N,4], %z: f32[M,4]) -> (%y) where N in 1..64, M in 1..64 {
  %y = Add(%x, %z)
})"),
              HasSubstr("Add"));
  EXPECT_EQ(check(R"(graph @g(%x: f32[N,4], %z: f32[N,1]) -> (%y) where N in 1..64 {
  %y = Add(%x, %z)
})"),
            "");
}

TEST_F(Padding, SizesThatFallAreRefused) {
  // 64-N: more is left the less there is of x.
  EXPECT_NE(check(R"(graph @g(%x: f32[N], %w: f32[64]) -> (%y) where N in 1..64 {
  %n = Shape(%x)
  %whole: const i64[1] = [64]
  %rest = Sub(%whole, %n)
  %zero: const i64[1] = [0]
  %y = Slice(%w, %zero, %rest)
})"),
            "");
  EXPECT_EQ(check(R"(graph @g(%x: f32[N], %w: f32[64]) -> (%y) where N in 1..64 {
  %n = Shape(%x)
  %zero: const i64[1] = [0]
  %part = Slice(%w, %zero, %n)
  %y = Add(%x, %part)
})"),
            "");
}

TEST_F(Padding, GoesThroughBranches) {
  const std::string branches = R"(graph @g(%x: f32[N,4], %c: bool[]) -> (%y) where N in 1..64 {
  %y: f32[N,4] = If(%c, %x) region @then(%a: f32[N,4]) -> (%u) {
    %u: f32[N,4] = Relu(%a)
  } region @else(%b: f32[N,4]) -> (%v) {
    %v: f32[N,4] = Softmax(%b) {axis = 1}
  }
})";
  EXPECT_EQ(check(branches), "");
  std::string mixed = branches;
  mixed.replace(mixed.find("axis = 1"), 8, "axis = 0");
  EXPECT_THAT(check(mixed), AllOf(HasSubstr("has a branch in which"), HasSubstr("Softmax")));
}

TEST_F(Padding, GoesThroughLoops) {
  const std::string loop = R"(graph @g(%x: f32[N,4], %w: f32[4,4]) -> (%y, %all) where N in 1..64 {
  %count: const i64[] = 3
  %y: f32[N,4], %all: f32[3,N,4] = Loop(%count, _, %x, %w) {carried = 1} region @body(%i: i64[], %c: bool[], %h: f32[N,4], %m: f32[4,4]) -> (%c, %next, %next) {
    %p: f32[N,4] = MatMul(%h, %m)
    %next: f32[N,4] = Softmax(%p) {axis = 1}
  }
})";
  EXPECT_EQ(check(loop), "");
  std::string mixed = loop;
  mixed.replace(mixed.find("axis = 1"), 8, "axis = 0");
  EXPECT_THAT(check(mixed), AllOf(HasSubstr("has a body in which"), HasSubstr("Softmax")));
}

// The places of a slice may be sizes where they only say how much of it is taken.
TEST_F(Padding, PartsThatSizesPlace) {
  EXPECT_THAT(check(R"(graph @g(%x: f32[N], %w: f32[64]) -> (%y) where N in 1..60 {
  %n = Shape(%x)
  %two: const i64[1] = [2]
  %end = Add(%n, %two)
  %y = Slice(%w, %n, %end)
})"),
              AllOf(HasSubstr("Slice"), HasSubstr("begins")));
}

// What data decide may be decided by padding.
TEST_F(Padding, SizesThatDataDecide) {
  EXPECT_THAT(check(R"(graph @g(%x: f32[N]) -> (%y) where N in 1..64 {
  %where = NonZero(%x)
  %y = Shape(%where)
})"),
              HasSubstr("NonZero"));
}

}  // namespace
}  // namespace regie::test
