// Matching and rewriting on graphs built by hand: what must fire, what must be left alone, and what is said
// about it.
#include "rules_support.h"

namespace regie::rules_test {
namespace {

constexpr const char* kFuse = R"toml(
[[rule]]
name = "fuse"
match = '''
%c = Conv(%x, %w, %b?) {...}
%y = ($act: Relu|LeakyRelu)(%c) {alpha = $a}
'''
when = ["single-use(%c)"]
replace = '''
%y = regie.FusedConv(%x, %w, %b) {...%c, activation = $act, activation_alpha = $a}
'''
)toml";

constexpr const char* kResidual = R"toml(
[[rule]]
name = "residual"
match = '''
%c = Conv(%x, %w) {...}
%y = Add~(%c, %r)
'''
when = ["single-use(%c)", "same-type(%c, %r)"]
replace = '''
%y = regie.FusedConv(%x, %w, _, %r) {...%c}
'''
)toml";

TEST(RulesApply, FusesWithAttributesNameAndOrigins) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "conv1", {AttrValue::integers("strides", {1, 1})});
  uint32_t y = b.node("LeakyRelu", {c}, "act1");
  b.results({y});
  EXPECT_EQ(apply(*rules, b), 1u);
  ASSERT_EQ(ops_of(*b.graph), "regie.FusedConv");
  uint32_t n = find_op(*b.graph, "regie.FusedConv");
  const regie_node& node = b.graph->node(n);
  EXPECT_EQ(view(node.name), "conv1");
  EXPECT_EQ(node.origin_count, 2u);
  EXPECT_EQ(node.operand_count, 2u);  // no bias: nothing trails
  EXPECT_EQ(view(b.graph->find_attr(n, "activation")->v.s), "LeakyRelu");
  EXPECT_FLOAT_EQ(static_cast<float>(b.graph->find_attr(n, "activation_alpha")->v.f),
                  0.01f);  // the schema's default
  EXPECT_EQ(b.graph->find_attr(n, "strides")->count, 2u);
  EXPECT_EQ(view(b.graph->value(b.graph->region(0).results[0]).name), "act1");
}

TEST(RulesApply, AbsentAttributeStaysAbsent) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3}), k = b.weight("k", {4});
  b.results({b.node("Relu", {b.node("Conv", {x, w, k}, "c")}, "r")});
  EXPECT_EQ(apply(*rules, b), 1u);
  uint32_t n = find_op(*b.graph, "regie.FusedConv");
  ASSERT_NE(n, REGIE_NONE);
  EXPECT_EQ(b.graph->find_attr(n, "activation_alpha"), nullptr);
  EXPECT_EQ(b.graph->operands(n)[2], k);
}

TEST(RulesApply, SecondReaderIsNamedAsTheOneInTheWay) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "conv1");
  uint32_t y = b.node("Relu", {c}, "relu1"), z = b.node("Add", {c, y}, "add3");
  b.results({z});
  RuleStatistics statistics;
  EXPECT_EQ(apply(*rules, b, {{}, nullptr, &statistics}), 0u);
  ASSERT_EQ(statistics.rules.size(), 1u);
  const RuleCount& count = statistics.rules[0];
  EXPECT_EQ(count.near_misses, 1u);
  ASSERT_EQ(count.details.size(), 1u);
  EXPECT_NE(count.details[0].node_text.find("relu1"), std::string::npos) << count.details[0].node_text;
  EXPECT_NE(count.details[0].stopped_at.find("%c has 2 readers"), std::string::npos)
      << count.details[0].stopped_at;
  EXPECT_NE(count.details[0].stopped_at.find("add3"), std::string::npos) << count.details[0].stopped_at;
  EXPECT_EQ(count.details[0].in_the_way, b.graph->value(z).owner);
  ASSERT_EQ(count.reasons.size(), 1u);
  EXPECT_EQ(count.reasons[0].first, "when: single-use(%c)");
}

TEST(RulesApply, GraphOutputIsNeverSwallowed) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "conv1"), y = b.node("Relu", {c}, "relu1");
  b.results({y, c});
  EXPECT_EQ(apply(*rules, b), 0u);
  EXPECT_EQ(ops_of(*b.graph), "Conv Relu");
}

// Without single-use the rule fires, and the node that something else reads stays.
TEST(RulesApply, NodeWithOtherReadersStays) {
  std::string text = kFuse;
  text.erase(text.find("when ="), std::string("when = [\"single-use(%c)\"]\n").size());
  auto rules = rules_of(text);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "conv1"), y = b.node("Relu", {c}, "relu1");
  b.results({y, c});
  EXPECT_EQ(apply(*rules, b), 1u);
  EXPECT_EQ(ops_of(*b.graph), "Conv regie.FusedConv");
}

TEST(RulesApply, ControlsBothOrdersOfCommutativeOperands) {
  auto rules = rules_of(kResidual);
  for (bool conv_first : {true, false}) {
    Builder b;
    uint32_t x = b.arg("x", {1, 3, 8, 8}), r = b.arg("r", {1, 4, 6, 6}), w = b.weight("w", {4, 3, 3, 3});
    uint32_t c = b.node("Conv", {x, w}, "c");
    b.results({conv_first ? b.node("Add", {c, r}, "y") : b.node("Add", {r, c}, "y")});
    EXPECT_EQ(apply(*rules, b), 1u);
    uint32_t n = find_op(*b.graph, "regie.FusedConv");
    ASSERT_NE(n, REGIE_NONE);
    EXPECT_EQ(b.graph->operands(n)[3], r);
    EXPECT_EQ(b.graph->operands(n)[2], REGIE_NONE);
  }
}

TEST(RulesApply, BroadcastAddIsLeftAlone) {
  auto rules = rules_of(kResidual);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), r = b.arg("r", {2, 4, 6, 6}), w = b.weight("w", {4, 3, 3, 3});
  b.results(
      {b.node("Add", {b.node("Conv", {x, w}, "c"), r}, "y")});  // the sum is larger than the convolution
  RuleStatistics statistics;
  EXPECT_EQ(apply(*rules, b, {{}, nullptr, &statistics}), 0u);
  ASSERT_EQ(statistics.rules[0].details.size(), 1u);
  EXPECT_NE(statistics.rules[0].details[0].stopped_at.find("same-type(%c, %r)"), std::string::npos)
      << statistics.rules[0].details[0].stopped_at;
}

// Both summands are convolutions: one is fused, the other becomes its residual.
TEST(RulesApply, TwoConvolutionsMeet) {
  auto rules = rules_of(kResidual);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3}), v = b.weight("v", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "c"), d = b.node("Conv", {x, v}, "d");
  b.results({b.node("Add", {c, d}, "y")});
  EXPECT_EQ(apply(*rules, b), 1u);
  EXPECT_EQ(ops_of(*b.graph), "Conv regie.FusedConv");
}

TEST(RulesApply, ResultsOfAPatchAreMatchedAgain) {
  auto rules = rules_of(R"toml(
[[rule]]
name = "halve"
match = '''
%a = Relu(%x)
%y = Relu(%a)
'''
when = ["single-use(%a)"]
replace = "%y = Relu(%x)"
)toml");
  Builder b;
  uint32_t v = b.arg("x", {4});
  for (int i = 0; i < 33; ++i) v = b.node("Relu", {v}, ("r" + std::to_string(i)).c_str());
  b.results({v});
  EXPECT_EQ(apply(*rules, b), 32u);
  EXPECT_EQ(ops_of(*b.graph), "Relu");
}

// The reader that kept %c from being read once goes away with another patch.
TEST(RulesApply, FallingReadersAreNoticed) {
  auto rules = rules_of(std::string(kFuse) + R"toml(
[[rule]]
name = "bypass"
match = '''
%a = Abs(%v)
%y = Mul(%a, %k)
'''
replace = "%y = Neg(%k)"
)toml");
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3}), k = b.arg("k", {1, 4, 6, 6});
  uint32_t c = b.node("Conv", {x, w}, "c"), r = b.node("Relu", {c}, "r");
  uint32_t m = b.node("Mul", {b.node("Abs", {c}, "a"), k}, "m");
  b.results({r, m});
  EXPECT_EQ(apply(*rules, b), 2u);
  EXPECT_EQ(ops_of(*b.graph), "regie.FusedConv Neg");
}

TEST(RulesApply, RewritingForEverIsAnError) {
  auto rules = rules_of(R"toml(
[[rule]]
name = "swap"
match = "%y = Add(%a, %b)"
replace = "%y = Add(%b, %a)"
)toml");
  Builder b;
  uint32_t x = b.arg("x", {4}), z = b.arg("z", {4});
  b.results({b.node("Add", {x, z}, "y")});
  Edit edit(*b.graph);
  auto applied = apply_rules(*rules, *b.graph, edit, [&] { return edit.apply(b.ops); });
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.status().message().find("for ever"), std::string::npos) << applied.status().to_string();
  EXPECT_NE(applied.status().message().find("'swap'"), std::string::npos);
}

// Two matches come of each: the graph would double with every row of rewrites.
TEST(RulesApply, GrowingForEverIsAnError) {
  auto rules = rules_of(R"toml(
[[rule]]
name = "double"
match = "%y = Relu(%a)"
replace = """
%b = Relu(%a)
%y = Relu(%b)
"""
)toml");
  Builder b;
  b.results({b.node("Relu", {b.arg("x", {4})}, "y")});
  Edit edit(*b.graph);
  auto applied = apply_rules(*rules, *b.graph, edit, [&] { return edit.apply(b.ops); });
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.status().code(), REGIE_INVALID_INPUT);  // of the rules, not of Regie
  EXPECT_NE(applied.status().to_string().find("rule 'double' rewrites its own results for ever"),
            std::string::npos)
      << applied.status().to_string();
  EXPECT_LT(b.graph->live_node_count(), 100'000u);
}

TEST(RulesApply, HeldBackPatchesAreNotTriedAgain) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t w = b.weight("w", {3, 3, 1, 1}), v = b.arg("x", {1, 3, 8, 8});
  for (int i = 0; i < 6; ++i) v = b.node("Relu", {b.node("Conv", {v, w}, "c")}, "r");
  b.results({v});
  RuleStatistics statistics;
  uint32_t serial = 0;
  EditOptions hold;
  hold.accept = [](uint32_t s) { return s % 2 == 0; };
  hold.next_serial = &serial;
  uint64_t applied = apply(*rules, b, {{}, nullptr, &statistics}, hold);
  EXPECT_EQ(applied, 3u);
  EXPECT_EQ(statistics.rules[0].matched, 6u);
  EXPECT_EQ(statistics.rules[0].applied, 3u);
}

TEST(RulesApply, OnlyNamedRules) {
  auto rules = rules_of(std::string(kFuse) + kResidual);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  b.results({b.node("Relu", {b.node("Conv", {x, w}, "c")}, "y")});
  EXPECT_EQ(apply(*rules, b, {{"residual"}, nullptr, nullptr}), 0u);
  EXPECT_EQ(apply(*rules, b, {{"fuse"}, nullptr, nullptr}), 1u);
  Edit edit(*b.graph);
  ApplyRulesOptions wrong;
  wrong.only = {"residuals"};
  auto applied = apply_rules(
      *rules, *b.graph, edit, [&] { return edit.apply(b.ops); }, wrong);
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.status().message().find("did you mean 'residual'"), std::string::npos);
}

TEST(RulesApply, SameNameMeansSameValue) {
  auto rules = rules_of(R"toml(
[[rule]]
name = "double"
match = "%y = Add(%x, %x)"
replace = '''
%two = const(elem(%x), 2)
%y = Mul(%x, %two)
'''
)toml");
  Builder b;
  uint32_t x = b.arg("x", {4}), z = b.arg("z", {4});
  b.results({b.node("Add", {x, x}, "y"), b.node("Add", {x, z}, "u")});
  EXPECT_EQ(apply(*rules, b), 1u);
  EXPECT_EQ(ops_of(*b.graph), "Mul Add");
  uint32_t two = b.graph->operands(find_op(*b.graph, "Mul"))[1];
  ASSERT_TRUE(b.graph->is_constant(two));
  EXPECT_EQ(b.graph->tensor(two).as<float>()[0], 2.0f);
}

TEST(RulesApply, ValueTakesTheRootsPlaceUnlessItIsAnOutput) {
  auto rules = rules_of(R"toml(
[[rule]]
name = "add-zero"
match = "%y = Add~(%x, %k)"
when = ["scalar(%k) == 0"]
replace = "%y = %x"
)toml");
  Builder b;
  uint32_t x = b.arg("x", {4}), zero = b.scalar("zero", 0), one = b.scalar("one", 1);
  uint32_t inner = b.node("Add", {zero, x}, "inner");
  uint32_t used = b.node("Relu", {inner}, "used"), last = b.node("Add", {used, zero}, "last");
  b.results({last, b.node("Add", {x, one}, "other")});
  RuleStatistics statistics;
  EXPECT_EQ(apply(*rules, b, {{}, nullptr, &statistics}), 1u);
  EXPECT_EQ(ops_of(*b.graph), "Relu Add Add");
  EXPECT_EQ(b.graph->operands(find_op(*b.graph, "Relu"))[0], x);
  EXPECT_EQ(statistics.rules[0].near_misses, 2u);
}

TEST(RulesApply, ConditionsOnShapesAndAttributes) {
  struct Case {
    const char* when;
    bool fires;
  };
  const Case cases[] = {
      {"rank(%x) == 4", true},
      {"rank(%x) > 4", false},
      {"dim(%x, 1) == 3", true},
      {"dim(%x, -1) >= 8", true},
      {"dim(%x, 0) == dim(%x, 1)", false},
      {"dim(%x, 2) == dim(%x, 3)", true},
      {"dim(%x, 0) >= 1", true},   // N in 1..32
      {"dim(%x, 0) >= 2", false},  // may be 1
      {"dim(%x, 0) + 1 > dim(%x, 0)", true},
      {"dim(%x, 9) == 1", false},
      {"elem(%x) in [f16, f32]", true},
      {"elem(%x) in [f16]", false},
      {"static-shape(%w)", true},
      {"static-shape(%x)", false},
      {"weight(%w)", true},
      {"const(%x)", false},
      {"absent(%b)", true},
      {"present(%b)", false},
      {"const(%b)", true},  // absent: nothing to ask
      {"const(%b, %w)", true},
      {"const(%b, %x)", false},  // but of the others
      {"same-elem(%b, %x, %w)", true},
      {"same-shape(%b, %x, %w)", false},
      {"count(%w) == 108", true},
      {"$strides == [2, 2]", true},
      {"at($strides, 0) * 2 == 4", true},
      {"len($strides) - 1 == 1", true},
      {"max(at($strides, 0), 3) == 3", true},
      {"$group == 1", true},  // by default
      {"$group == 1.5 ± 0.6", true},
      {"$group != 1 +- 0.1", false},
      {"broadcasts-to-channel(%w, %x)", false},
      {"same-elem(%x, %w)", true},
      {"same-shape(%x, %w)", false},
      {"not-output(%y)", false},
      {"not-output(%x)", true},
  };
  for (const Case& c : cases) {
    auto rules = rules_of(std::string(R"toml(
[[rule]]
name = "r"
match = "%y = Conv(%x, %w, %b?) {strides = $strides, group = $group, ...}"
when = [")toml") + c.when +
                          R"toml("]
replace = "%y = regie.FusedConv(%x, %w, %b) {...%y}"
)toml");
    ASSERT_NE(rules, nullptr) << c.when;
    Builder b;
    regie_dim n = b.graph->dims().symbol("N", 1, 32);
    uint32_t x = b.arg("x", {n, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
    b.results({b.node("Conv", {x, w}, "c", {AttrValue::integers("strides", {2, 2})})});
    EXPECT_EQ(apply(*rules, b), c.fires ? 1u : 0u) << c.when;
  }
}

TEST(RulesApply, ValuesOfConstants) {
  struct Case {
    const char* when;
    bool fires;
  };
  for (const Case& c : {Case{"scalar(%k) == 0.5", true}, Case{"scalar(%k) == 0.50001 +- 1e-4", true},
                        Case{"scalar(%k) < 0.5", false}, Case{"is-splat(%k)", true},
                        Case{"is-splat(%w)", false}, Case{"scalar(%w) == 0", false}}) {
    auto rules = rules_of(
        std::string(
            "[[rule]]\nname = \"r\"\nmatch = '''\n%a = Mul(%x, %k)\n%y = Add(%a, %w)\n'''\nwhen = [\"") +
        c.when + "\"]\nreplace = \"%y = Add(%w, %x)\"\n");
    ASSERT_NE(rules, nullptr);
    Builder b;
    uint32_t x = b.arg("x", {4}), w = b.weight("w", {4}), k = b.scalar("k", 0.5f);
    b.results({b.node("Add", {b.node("Mul", {x, k}, "m"), w}, "y")});
    EXPECT_EQ(apply(*rules, b), c.fires ? 1u : 0u) << c.when;
  }
}

TEST(RulesApply, ChangedNodesOnly) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t c = b.node("Conv", {x, w}, "c"), d = b.node("Conv", {x, w}, "d");
  uint32_t y = b.node("Relu", {c}, "y"), z = b.node("Relu", {d}, "z");
  b.results({y, z});
  // The convolution changed; the root is what reads it.
  std::vector<uint32_t> changed{b.graph->value(d).owner};
  EXPECT_EQ(apply(*rules, b, {{}, &changed, nullptr}), 1u);
  EXPECT_EQ(ops_of(*b.graph), "Conv Relu regie.FusedConv");
}

TEST(RulesApply, NearMissesKeepReasonsApart) {
  auto rules = rules_of(kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {3, 3, 1, 1});
  std::vector<uint32_t> out;
  for (int i = 0; i < 20; ++i) out.push_back(b.node("Relu", {x}, ("plain" + std::to_string(i)).c_str()));
  uint32_t c = b.node("Conv", {x, w}, "shared");
  out.push_back(b.node("Relu", {c}, "first"));
  out.push_back(b.node("Relu", {c}, "second"));
  b.results(out);
  RuleStatistics statistics;
  EXPECT_EQ(apply(*rules, b, {{}, nullptr, &statistics, 8, 3}), 0u);
  const RuleCount& count = statistics.rules[0];
  EXPECT_EQ(count.near_misses, 22u);
  ASSERT_EQ(count.reasons.size(), 2u);
  EXPECT_EQ(count.reasons[0].second, 20u);
  EXPECT_EQ(count.reasons[0].first, "%c: Conv expected");
  EXPECT_EQ(count.reasons[1].second, 2u);
  EXPECT_EQ(count.details.size(), 5u);  // three of the first reason, two of the other
}

TEST(RulesApply, NearMissThatMatchesLaterIsNone) {
  // The Relu fails first, as batch normalization lies between; then that is folded away.
  auto rules = rules_of(std::string(R"toml(
[[rule]]
name = "drop-identity"
match = "%y = Identity(%x)"
replace = "%y = %x"
)toml") + kFuse);
  Builder b;
  uint32_t x = b.arg("x", {1, 3, 8, 8}), w = b.weight("w", {4, 3, 3, 3});
  uint32_t i = b.node("Identity", {b.node("Conv", {x, w}, "c")}, "i");
  b.results({b.node("Relu", {i}, "y")});
  RuleStatistics statistics;
  EXPECT_EQ(apply(*rules, b, {{}, nullptr, &statistics}), 2u);
  EXPECT_EQ(ops_of(*b.graph), "regie.FusedConv");
  EXPECT_EQ(statistics.rules[1].near_misses, 0u);
}

}  // namespace
}  // namespace regie::rules_test
