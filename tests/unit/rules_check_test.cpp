// The tester of rules: wrong rules must not get through, whichever way they are wrong; the rules of the
// product must. And the graph interpreter below it. Uses the real operator plug-in.
#include <gmock/gmock.h>

#include <fstream>

#include "passes/plugin_op_set.h"
#include "regie_test_paths.h"
#include "rules/check.h"
#include "rules/evaluate.h"
#include "text/text.h"

namespace regie {
namespace {

using testing::HasSubstr;

struct World {
  std::shared_ptr<PluginHost> host;
  std::shared_ptr<PluginOpSet> ops;
  static const World& get() {
    static const World world = [] {
      World w;
      auto host = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
      EXPECT_TRUE(host.ok()) << host.status().to_string();
      w.host = *host;
      set_current_plugin_host(w.host);
      auto ops = PluginOpSet::create(w.host);
      EXPECT_TRUE(ops.ok()) << ops.status().to_string();
      w.ops = *ops;
      return w;
    }();
    return world;
  }
};

Result<CheckReport> check(const std::string& toml, CheckOptions options = {}) {
  const World& w = World::get();
  auto rules = parse_rules("schema = 1\nrevision = \"onnx-21\"\n" + toml, "t.toml", w.ops->schemas());
  if (!rules.ok()) return std::move(rules).status();
  return check_rules(**rules, w.ops->schemas(), *w.ops, options);
}

// A test in which a rule must not fire, so that rules below need only say what matters.
constexpr const char* kRests = R"toml(
[[rule.test]]
before = "graph @g(%x: f32[2]) -> (%y) { %y = Exp(%x) }"
expect = "does-not-fire"
)toml";

std::string failures_of(const std::string& toml) {
  auto report = check(toml);
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  if (!report.ok()) return {};
  EXPECT_EQ(report->passed(), report->rules[0].failures.empty());
  std::string text;
  for (const std::string& f : report->rules[0].failures) text += f + "\n";
  return text;
}

TEST(RulesCheck, GoodRulePasses) {
  EXPECT_EQ(failures_of(std::string(R"toml(
[[rule]]
name = "sub-to-add"
match = "%y = Sub(%a, %b)"
replace = '''
%m = Neg(%b)
%y = Add(%a, %m)
'''
[[rule.test]]
before = "graph @g(%a: f32[N,3], %b: f32[3]) -> (%y) { %y = Sub(%a, %b) }"
after = "graph @g(%a: f32[N,3], %b: f32[3]) -> (%y) { %k = Neg(%b)  %y = Add(%a, %k) }"
)toml") + kRests),
            "");
}

TEST(RulesCheck, WrongValueIsCaught) {
  std::string f = failures_of(std::string(R"toml(
[[rule]]
name = "swapped"
match = "%y = Sub(%a, %b)"
replace = '''
%m = Neg(%a)
%y = Add(%m, %b)
'''
[[rule.test]]
before = "graph @g(%a: f32[2,3], %b: f32[3]) -> (%y) { %y = Sub(%a, %b) }"
)toml") + kRests);
  EXPECT_THAT(f, HasSubstr("differs at element"));
  EXPECT_THAT(f, HasSubstr("t.toml:11"));
}

// The test is in the order in which the rule is right; the variant is in the other.
TEST(RulesCheck, WrongClaimOfCommutativityIsCaughtByAVariant) {
  std::string f = failures_of(std::string(R"toml(
[[rule]]
name = "commutes"
match = "%y = Sub~(%x, %k)"
when = ["const(%k)"]
replace = '''
%m = Neg(%k)
%y = Add(%x, %m)
'''
[[rule.test]]
before = "graph @g(%x: f32[2,3], %k: const f32[3]) -> (%y) { %y = Sub(%x, %k) }"
)toml") + kRests);
  EXPECT_THAT(f, HasSubstr("variant 'commuted operands"));
  EXPECT_THAT(f, HasSubstr("differs"));
  EXPECT_THAT(f, testing::Not(HasSubstr("test 1: ")));  // as written it is right
}

TEST(RulesCheck, AttributeTestedWithoutItsDefaultIsCaughtByAVariant) {
  std::string f = failures_of(std::string(R"toml(
[[rule]]
name = "softmax"
match = "%y = Softmax(%x) {axis = none}"
replace = "%y = Softmax(%x) {axis = -1}"
[[rule.test]]
before = "graph @g(%x: f32[2,3]) -> (%y) { %y = Softmax(%x) }"
)toml") + kRests);
  EXPECT_THAT(f, HasSubstr("written out': the rule does not fire"));
  EXPECT_THAT(f, HasSubstr("attribute 'axis' has another value"));
}

TEST(RulesCheck, TypeThatChangesIsRefused) {
  std::string f = failures_of(std::string(R"toml(
[[rule]]
name = "grows"
match = "%y = Relu(%x)"
replace = '''
%axes = const(i64, [0])
%y = Unsqueeze(%x, %axes)
'''
[[rule.test]]
before = "graph @g(%x: f32[2,3]) -> (%y) { %y = Relu(%x) }"
)toml") + kRests);
  EXPECT_THAT(f, HasSubstr("the replacement is refused"));
}

TEST(RulesCheck, VerdictsAreChecked) {
  std::string f = failures_of(R"toml(
[[rule]]
name = "relu"
match = "%y = Relu(%x)"
when = ["rank(%x) == 2"]
replace = "%y = LeakyRelu(%x) {alpha = 0.0}"
[[rule.test]]
before = "graph @g(%x: f32[2]) -> (%y) { %y = Relu(%x) }"
[[rule.test]]
before = "graph @g(%x: f32[2,2]) -> (%y) { %y = Relu(%x) }"
expect = "does-not-fire"
)toml");
  EXPECT_THAT(f, HasSubstr("test 1: the rule does not fire"));
  EXPECT_THAT(f, HasSubstr("rank(%x) == 2"));
  EXPECT_THAT(f, HasSubstr("test 2: the rule fires and must not"));
}

TEST(RulesCheck, BothKindsOfTestAreDemanded) {
  std::string f = failures_of("[[rule]]\nname = \"r\"\nmatch = \"%y = Relu(%x)\"\nreplace = \"%y = %x\"\n");
  EXPECT_THAT(f, HasSubstr("no test in which the rule fires"));
  EXPECT_THAT(f, HasSubstr("no test in which the rule must not fire"));
}

TEST(RulesCheck, AfterIsCompared) {
  const std::string rule = R"toml(
[[rule]]
name = "neg-neg"
match = '''
%a = Neg(%x)
%y = Neg(%a)
'''
replace = "%y = Identity(%x)"
[[rule.test]]
before = "graph @g(%x: f32[2]) -> (%y) { %a = Neg(%x)  %y = Neg(%a) }"
)toml";
  EXPECT_EQ(failures_of(rule + "after = \"graph @g(%x: f32[2]) -> (%y) { %y = Identity(%x) }\"\n" + kRests),
            "");
  EXPECT_THAT(failures_of(rule + "after = \"graph @g(%x: f32[2]) -> (%y) { %y = Abs(%x) }\"\n" + kRests),
              HasSubstr("not as in 'after'"));
}

TEST(RulesCheck, NotANumberIsNoAnswer) {
  const std::string rule = R"toml(
[[rule]]
name = "sqrt"
match = "%y = Sqrt(%x)"
replace = '''
%k = const(f32, 0.5)
%y = Pow(%x, %k)
'''
[[rule.test]]
before = "graph @g(%x: f32[64]) -> (%y) { %y = Sqrt(%x) }"
)toml";
  EXPECT_THAT(failures_of(rule + kRests), HasSubstr("give ranges"));
  EXPECT_EQ(failures_of(rule + "ranges = { x = [0.0, 4.0] }\n" + kRests), "");
}

TEST(RulesCheck, BadTestGraphIsBadInput) {
  const char* graphs[] = {"graph @g(%x: f32[2]) -> (%y) { %y = Relu(%z) }",
                          "graph @g(%x: f32[2]) -> (%y) { %y = Add(%x) }",
                          "graph @g(%a: f32[2], %b: f32[3]) -> (%y) { %y = Add(%a, %b) }", "graph {"};
  for (const char* graph : graphs) {
    auto report =
        check(std::string("[[rule]]\nname = \"r\"\nmatch = \"%y = Relu(%x)\"\nreplace = \"%y = %x\"\n"
                          "[[rule.test]]\nbefore = \"") +
              graph + "\"\n");
    ASSERT_FALSE(report.ok()) << graph;
    EXPECT_THAT(report.status().to_string(), HasSubstr("t.toml:8")) << graph;
  }
}

TEST(RulesCheck, SameSeedSameReport) {
  const World& w = World::get();
  const std::string conv = REGIE_TEST_SOURCE_DIR "/configs/rules/conv.toml";
  auto rules = load_rules({conv}, w.ops->schemas());
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  CheckOptions options;
  options.only = {"conv-bias", "conv-batchnorm"};
  auto a = check_rules(**rules, w.ops->schemas(), *w.ops, options),
       b = check_rules(**rules, w.ops->schemas(), *w.ops, options);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->to_text(), b->to_text());
}

TEST(RulesCheck, ExampleOfTheDocumentationPasses) {
  std::ifstream in(REGIE_TEST_SOURCE_DIR "/docs/rules.md");
  std::string page((std::istreambuf_iterator<char>(in)), {});
  size_t from = page.find("```toml\n") + 8, to = page.find("```", from);
  ASSERT_NE(to, std::string::npos);
  const World& w = World::get();
  auto rules = parse_rules(page.substr(from, to - from), "docs/rules.md", w.ops->schemas());
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  auto report = check_rules(**rules, w.ops->schemas(), *w.ops);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->passed()) << report->to_text();
}

// Several seeds, as one may be lucky. Every rule fires in variants too, not only as its author wrote it.
TEST(RulesCheck, RulesOfTheProductPass) {
  const World& w = World::get();
  const std::string folder = REGIE_TEST_SOURCE_DIR "/configs/rules/";
  auto rules = load_rules({folder + "conv.toml", folder + "matmul.toml"}, w.ops->schemas());
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  for (uint64_t seed : {1, 2}) {
    CheckOptions options;
    options.seed = seed;
    auto report = check_rules(**rules, w.ops->schemas(), *w.ops, options);
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_TRUE(report->passed()) << report->to_text();
    for (const RuleCheck& r : report->rules) EXPECT_GT(r.fired, r.tests / 2) << r.rule;
  }
}

// A rule with one condition less, or one number changed, is found out: the tests of the product are worth
// something.
TEST(RulesCheck, MutantsOfTheProductsRulesFail) {
  const World& w = World::get();
  struct Mutant {
    const char *file, *from, *to;
  };
  const Mutant mutants[] = {
      {"conv", "\"const(%w, %b, %scale, %shift, %mean, %var)\",", "\"const(%w)\","},
      {"conv", "%v = Add(%var, %eps)", "%v = Sub(%var, %eps)"},
      {"conv", "%centre = Neg(%mean) if absent(%b)", "%centre = Abs(%mean) if absent(%b)"},
      {"conv", "%scaled = Mul(%centre, %s)", "%scaled = Mul(%centre, %scale)"},
      {"conv", "$axes = range(1, rank(%w))", "$axes = range(1, 4)"},
      {"conv", "\"const(%k)\", \"broadcasts-to-channel(%k, %c, 1)\"", "\"const(%k)\""},
      {"conv", "\"const(%k)\", \"broadcasts-to-channel(%k, %c, 1)\"",
       "\"const(%k)\", \"count(%k) == dim(%c, 1)\""},
      {"conv", "%b2 = Add(%b, %k1) if present(%b)", "%b2 = Sub(%b, %k1) if present(%b)"},
      {"conv", "\"single-use(%c)\", \"same-type(%c, %r)\"", "\"single-use(%c)\", \"same-elem(%c, %r)\""},
      {"conv", "\"single-use(%c)\", \"same-type(%c, %r)\"", "\"same-type(%c, %r)\", \"rank(%c) == 3\""},
      {"conv", "activation_alpha = $alpha, activation_beta = $beta", "activation_beta = $beta"},
      {"conv", "scalar(%least, -3.4028234663852886e38)", "scalar(%least, 0.0)"},
      {"conv", ", \"elem(%x) in [f32, f16, bf16]\"", ""},
      {"conv", "%s = Sigmoid(%c)\n%y = Mul~(%c, %s)", "%s = Sigmoid(%g)\n%y = Mul~(%c, %s)"},
      {"matmul", "{alpha = $alpha, beta = 1.0, transA", "{alpha = $alpha, beta = $beta, transA"},
      {"matmul", "%k) {alpha = $alpha, transA = $ta, transB = $tb}",
       "%k) {alpha = $alpha, transA = $tb, transB = $ta}"},
      {"matmul", "\"dim(%k, 0) == dim(%p, -1)\",\n  \"rank(%a) >= 2\",", "\"dim(%k, 0) == dim(%p, -1)\","},
      {"matmul", "$right = 1 - default($tb, 0)", "$right = 1"},
      {"activation", "scalar(%most) == 6", "scalar(%most) >= 0"},
      {"activation", "scalar(%kappa) == 0.044715 +- 1e-4", "scalar(%kappa) > 0"},
      {"attention", "$axis in [-1, rank(%p) - 1]", "$axis < 10"},
      {"attention", "broadcasts-to(%mask, %p)", "rank(%mask) <= rank(%p)"},
      {"attention", "swap-last(default($perm, [1, 0]))", "default($perm, [1, 0])"},
      {"attention", "min(scalar(%fill), -1e30)", "scalar(%fill) * 0 - 10"},
      {"norm", "$axes == range($rank - $count, $rank)", "$count < 2"},
      {"norm", "axes(ints(%axes2), $rank) == $axes", "$count > 0"},
      {"norm", "splat(%ones) == 1", "splat(%zeros) == 0"},
      {"pad", "max($pads) < min($kernel)", "min($pads) >= 0"},
      {"conv", "sum(default($pads, [0])) == 0", "len(default($pads, [0])) > 0"},
      {"affine", "%t = Sub(%shift, %moved)", "%t = Add(%shift, %moved)"},
      {"matmul", "\"broadcasts-to-channel(%k, %p, -1)\",", "\"dim(%k, -1) == dim(%p, -1)\","},
      {"matmul", "\"same-type(%p, %r)\",", ""},
      {"matmul", "activation = $act, activation_alpha = $alpha, activation_beta",
       "activation = $act, activation_beta"},
  };
  for (const Mutant& m : mutants) {
    const std::string path = std::string(REGIE_TEST_SOURCE_DIR "/configs/rules/") + m.file + ".toml";
    std::ifstream in(path);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    size_t at = text.find(m.from);
    ASSERT_NE(at, std::string::npos) << m.from;
    size_t name = text.rfind("\nname = \"", at) + 9;
    CheckOptions options;
    options.only = {text.substr(name, text.find('"', name) - name)};
    text.replace(at, std::string(m.from).size(), m.to);
    auto rules = parse_rules(text, path, w.ops->schemas());
    ASSERT_TRUE(rules.ok()) << m.to << ": " << rules.status().to_string();
    auto report = check_rules(**rules, w.ops->schemas(), *w.ops, options);
    ASSERT_TRUE(report.ok()) << m.to << ": " << report.status().to_string();
    EXPECT_FALSE(report->passed()) << "not noticed: " << m.from << " -> " << m.to;
  }
}

std::vector<float> run(const char* text, std::vector<std::pair<std::string, Tensor>> inputs) {
  const World& w = World::get();
  auto graph = parse(text, "t.rg");
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  if (!graph.ok()) return {};
  Graph& g = **graph;
  ValueBindings bindings;
  for (uint32_t i = 0; i < g.region(0).arg_count; ++i)
    for (auto& [name, tensor] : inputs)
      if (name == view(g.value(g.region(0).args[i]).name)) bindings[g.region(0).args[i]] = tensor;
  auto results = evaluate_graph(g, *w.ops, bindings);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  if (!results.ok()) return {};
  std::span<const float> first = (*results)[0].as<float>();
  return {first.begin(), first.end()};
}

Tensor floats(std::vector<float> v) {
  const int64_t n = static_cast<int64_t>(v.size());
  Tensor t = Tensor::zeros(REGIE_F32, {&n, 1});
  std::copy(v.begin(), v.end(), static_cast<float*>(t.mutable_data()));
  return t;
}
Tensor truth(bool b) {
  Tensor t = Tensor::zeros(REGIE_BOOL, {});
  *static_cast<uint8_t*>(t.mutable_data()) = b;
  return t;
}

TEST(RulesEvaluate, ChainWithConstants) {
  EXPECT_EQ(run(R"(graph @g(%x: f32[3]) -> (%y) {
    %k: const f32[3] = [1.0, 2.0, 3.0]
    %a: f32[3] = Mul(%x, %k)
    %b: f32[3] = Add(%a, %x)
    %y: f32[3] = Neg(%b)
  })",
                {{"x", floats({1, -1, 2})}}),
            (std::vector<float>{-2, 3, -8}));
}

TEST(RulesEvaluate, BranchesAndCaptures) {
  constexpr const char* kText = R"(graph @g(%c: bool[], %x: f32[2], %z: f32[2]) -> (%y) {
    %d: f32[2] = Add(%x, %x)
    %r: f32[2] = If(%c, %d, %z) region @then(%p: f32[2], %q: f32[2]) -> (%t) {
      %t: f32[2] = Add(%p, %q)
    } region @else(%p: f32[2], %q: f32[2]) -> (%q) {
    }
    %y: f32[2] = Neg(%r)
  })";
  EXPECT_EQ(run(kText, {{"c", truth(true)}, {"x", floats({1, 2})}, {"z", floats({10, 20})}}),
            (std::vector<float>{-12, -24}));
  EXPECT_EQ(run(kText, {{"c", truth(false)}, {"x", floats({1, 2})}, {"z", floats({10, 20})}}),
            (std::vector<float>{-10, -20}));
}

TEST(RulesEvaluate, SaysWhatIsMissing) {
  const World& w = World::get();
  auto graph = parse("graph @g(%x: f32[2]) -> (%y) { %y: f32[2] = Relu(%x) }", "t.rg");
  ASSERT_TRUE(graph.ok());
  auto results = evaluate_graph(**graph, *w.ops, {});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.status().code(), REGIE_INVALID_INPUT);
  EXPECT_THAT(results.status().message(), HasSubstr("'x'"));
}

// Tensors are let go after their last reader, so a long chain needs little memory; and no recursion.
TEST(RulesEvaluate, LongChain) {
  const World& w = World::get();
  Graph g;
  const regie_dim dims[] = {4096};
  uint32_t v = g.add_argument(0, g.make_type(REGIE_F32, dims), "x");
  const uint32_t x = v;
  for (int i = 0; i < 20000; ++i) {
    NodeSpec spec;
    spec.op = "Neg";
    spec.operands = {v};
    v = g.results(g.add_node(0, spec))[0];
    g.set_type(v, g.make_type(REGIE_F32, dims));
  }
  g.set_region_results(0, std::vector<uint32_t>{v});
  const int64_t n = 4096;
  Tensor t = Tensor::zeros(REGIE_F32, {&n, 1});
  static_cast<float*>(t.mutable_data())[7] = 3;
  auto results = evaluate_graph(g, *w.ops, {{x, t}});
  ASSERT_TRUE(results.ok()) << results.status().to_string();
  EXPECT_EQ((*results)[0].as<float>()[7], 3.0f);
}

TEST(RulesCheck, EachPatternMustFire) {
  const std::string rule = R"toml(
[[rule]]
name = "max-or-min"
match = ["%y = Max~(%x, %zero)", "%y = Relu(%x)"]
when = ["scalar(%zero) == 0"]
replace = "%y = Clip(%x, %zero) if present(%zero)\n%n = const(elem(%x), 0) if absent(%zero)\n%y = Clip(%x, %n) if absent(%zero)"

[[rule.test]]
before = "graph @g(%x: f32[2]) -> (%y) { %y = Relu(%x) }"
)toml";
  EXPECT_THAT(failures_of(rule + kRests), HasSubstr("no test in which pattern 1 of 'match' fires"));
  EXPECT_EQ(failures_of(rule + R"toml(
[[rule.test]]
before = """graph @g(%x: f32[2]) -> (%y) {
  %z: const f32[1] = [0.0]
  %y = Max(%x, %z)
}"""
)toml" + kRests),
            "");
}

}  // namespace
}  // namespace regie
