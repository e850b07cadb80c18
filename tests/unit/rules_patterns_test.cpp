// Rules with several patterns, and the functions of expressions on lists.
#include "rules_support.h"

namespace regie::rules_test {
namespace {

constexpr const char* kOptionalFactor = R"toml(
[[rule]]
name = "hyperbolic"
match = [
  '''
%a = Relu(%x)
%y = Tanh(%a)
''',
  '''
%a = Relu(%x)
%m = Mul~(%a, %factor)
%y = Tanh(%m)
''',
]
let = ["$alpha = scalar(%factor, 1.0)"]
when = ["single-use(%a, %m)", "$alpha <= 2"]
replace = '''
%y = LeakyRelu(%x) {alpha = $alpha}
'''
)toml";

double alpha_of(const Graph& g) { return g.find_attr(find_op(g, "LeakyRelu"), "alpha")->v.f; }

TEST(RulesPatterns, ANameOfAnotherPatternIsAbsent) {
  auto rules = rules_of(kOptionalFactor);
  ASSERT_TRUE(rules);
  EXPECT_EQ(rule_names(*rules), std::vector<std::string>{"hyperbolic"});
  for (bool scaled : {false, true}) {
    Builder b;
    uint32_t a = b.node("Relu", {b.arg("x", {2, 3})}, "a");
    if (scaled) a = b.node("Mul", {b.scalar("f", 0.5f), a}, "m");
    b.results({b.node("Tanh", {a}, "y")});
    RuleStatistics statistics;
    ApplyRulesOptions options;
    options.statistics = &statistics;
    EXPECT_EQ(apply(*rules, b, options), 1u);
    EXPECT_EQ(ops_of(*b.graph), "LeakyRelu");
    EXPECT_EQ(alpha_of(*b.graph), scaled ? 0.5 : 1.0);
    ASSERT_EQ(statistics.rules.size(), 1u);
    EXPECT_EQ(statistics.rules[0].applied, 1u);
    EXPECT_EQ(statistics.rules[0].by_pattern, (std::vector<uint64_t>{!scaled, scaled}));
    EXPECT_EQ(statistics.rules[0].near_misses, 0u);
  }
}

TEST(RulesPatterns, AValueThatIsThereButUnknownIsNotAbsent) {
  auto rules = rules_of(kOptionalFactor);
  ASSERT_TRUE(rules);
  Builder b;
  uint32_t a = b.node("Relu", {b.arg("x", {2, 3})}, "a");
  b.results({b.node("Tanh", {b.node("Mul", {a, b.arg("f", {1})}, "m")}, "y")});
  RuleStatistics statistics;
  ApplyRulesOptions options;
  options.statistics = &statistics;
  EXPECT_EQ(apply(*rules, b, options), 0u);
  EXPECT_EQ(ops_of(*b.graph), "Relu Mul Tanh");
  // The near miss is that of the pattern that got furthest.
  ASSERT_EQ(statistics.rules[0].details.size(), 1u);
  EXPECT_NE(statistics.rules[0].details[0].stopped_at.find("$alpha = scalar(%factor, 1.0)"),
            std::string::npos)
      << statistics.rules[0].details[0].stopped_at;
}

TEST(RulesPatterns, MessagesOfWrongPatterns) {
  auto error = [](const std::string& toml) {
    auto rules = parse_rules("schema = 1\nrevision = \"onnx-21\"\n" + toml, "test.toml", schemas());
    return rules.ok() ? std::string("none") : rules.status().to_string();
  };
  EXPECT_NE(error("[[rule]]\nname = \"a\"\nmatch = []\nreplace = '%y = Relu(%x)'\n").find("needs a pattern"),
            std::string::npos);
  // The root of each pattern makes what is replaced.
  EXPECT_NE(
      error("[[rule]]\nname = \"a\"\nmatch = ['%y = Tanh(%x)', '%z = Exp(%x)']\nreplace = '%y = Relu(%x)'\n")
          .find("only results of its last line"),
      std::string::npos);
}

// Whether a rule for Relu of [2,3,4] with this condition applies.
bool condition_holds(const std::string& condition) {
  auto rules = rules_of("[[rule]]\nname = \"a\"\nmatch = '%y = Relu(%x)'\nwhen = ['" + condition +
                        "']\nreplace = '%y = Tanh(%x)'\n");
  Builder b;
  b.results({b.node("Relu", {b.arg("x", {2, 3, 4})}, "y")});
  return apply(*rules, b) == 1;
}

TEST(RulesPatterns, FunctionsOnLists) {
  for (const char* condition :
       {"swap-last([0, 1, 2]) == [0, 2, 1]", "axes([-1, 0], 3) == [0, 2]", "slice([5, 6, 7], 1, 3) == [6, 7]",
        "concat([1], [2, 3]) == [1, 2, 3]", "fill(3, 7) == [7, 7, 7]", "sum([1, 2, 3]) == 6", "sum([]) == 0",
        "min([3, 1, 2]) == 1", "max([3, 1, 2]) == 3", "min(3, 1) == 1", "dims(%x) == [2, 3, 4]",
        "dims(%x, -1) == [4]", "dims(%x, 3) == []", "[1, 2] + [3, 4] == [4, 6]", "[5, 6] - [1, 2] == [4, 4]",
        "if-equal(rank(%x), 3, 1, 2) == 1", "if-equal(rank(%x), 4, 1, 2) == 2", "default(rank(%x), 9) == 3"})
    EXPECT_TRUE(condition_holds(condition)) << condition;
  for (const char* condition :
       {"swap-last([1]) == [1]", "axes([3], 3) == [3]", "axes([0, -3], 3) == [0, 0]",
        "slice([5, 6], 1, 3) == [6]", "[1] + [1, 2] == [2, 2]", "min([]) == 0", "dims(%x, 4) == []",
        "sum([1, 2, 3]) == 5", "fill(-1, 7) == []", "splat(%x) == 0"})
    EXPECT_FALSE(condition_holds(condition)) << condition;
}

TEST(RulesPatterns, BroadcastsToAndVariesAlong) {
  auto holds = [](const std::string& condition, std::vector<regie_dim> k) {
    auto rules = rules_of("[[rule]]\nname = \"a\"\nmatch = '%y = Add(%x, %k)'\nwhen = ['" + condition +
                          "']\nreplace = '%y = Sub(%x, %k)'\n");
    Builder b;
    b.results({b.node("Add", {b.arg("x", {2, 3, 4}), b.arg("k", std::move(k))}, "y")});
    return apply(*rules, b) == 1;
  };
  EXPECT_TRUE(holds("broadcasts-to(%k, %x)", {}));
  EXPECT_TRUE(holds("broadcasts-to(%k, %x)", {3, 1}));
  EXPECT_FALSE(holds("broadcasts-to(%k, %x)", {1, 1, 1, 1}));
  EXPECT_FALSE(holds("broadcasts-to(%x, %k)", {1, 3, 4}));
  EXPECT_FALSE(holds("broadcasts-to(%k, %x)", {2, 4}));
  EXPECT_TRUE(holds("varies-along(%k, %x, 1)", {3, 1}));
  EXPECT_TRUE(holds("varies-along(%k, %x, 1)", {1}));
  EXPECT_TRUE(holds("varies-along(%k, %x, -2)", {1, 3, 1}));
  EXPECT_FALSE(holds("varies-along(%k, %x, 1)", {3, 4}));
  EXPECT_FALSE(holds("varies-along(%k, %x, 3)", {3, 1}));
}

}  // namespace
}  // namespace regie::rules_test
