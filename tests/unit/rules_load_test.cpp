// Mistakes in rule files: each is an error with file and line that says what would be right.
#include <gmock/gmock.h>

#include "rules_support.h"

namespace regie::rules_test {
namespace {

using testing::HasSubstr;

std::string with(const std::string& match, const std::string& replace, const std::string& rest = {}) {
  return "schema = 1\nrevision = \"onnx-21\"\n[[rule]]\nname = \"r\"\n" + rest + "match = '''\n" + match +
         "\n'''\nreplace = '''\n" + replace + "\n'''\n";
}

struct Mistake {
  const char* what;
  std::string text;
  std::vector<std::string> says;
};

TEST(RulesLoad, MistakesAreNamed) {
  const std::string relu = "%y = Relu(%x)";
  const Mistake mistakes[] = {
      {"no schema", "revision = \"onnx-21\"\nrule = []\n", {"schema"}},
      {"other revision",
       "schema = 1\nrevision = \"onnx-13\"\nrule = []\n",
       {"bad.toml:2", "onnx-13", "onnx-21"}},
      {"unknown key", with(relu, relu, "wehn = []\n"), {"bad.toml:5", "wehn", "when"}},
      {"unknown operator", with("%y = Rleu(%x)", relu), {"bad.toml:6", "unknown operator 'Rleu'", "'Relu'"}},
      {"second line", with(relu + "\n%z = Rleu(%y)", relu), {"bad.toml:7"}},
      {"operator of the replacement", with(relu, "%y = Sigmiod(%x)"), {"bad.toml:9", "'Sigmoid'"}},
      {"attribute neither named nor waived",
       with("%y = LeakyRelu(%x)", relu),
       {"bad.toml:6", "'alpha'", "neither named"}},
      {"unknown attribute", with("%y = LeakyRelu(%x) {alfa = 1}", relu), {"no attribute 'alfa'", "'alpha'"}},
      {"kind of an attribute", with("%y = Softmax(%x) {axis = \"one\"}", relu), {"'axis'", "another kind"}},
      {"unquoted string",
       with("%y = Conv(%x, %w) {auto_pad = NOTSET, ...}", relu),
       {"'auto_pad'", "in quotes"}},
      {"made twice", with(relu + "\n%y = Relu(%x)", relu), {"bad.toml:7", "%y is made twice"}},
      {"used above", with("%z = Relu(%y)\n%y = Relu(%z)", relu), {"used above"}},
      {"not connected", with("%a = Relu(%x)\n" + relu, relu), {"bad.toml:6", "last line"}},
      {"too many operands", with("%y = Relu(%x, %z)", relu), {"at most 1"}},
      {"too few operands", with(relu, "%y = Add(%x)"), {"takes 2 to 2"}},
      {"root not made", with(relu, "%z = Relu(%x)"), {"does not make %y"}},
      {"root read", with(relu, "%y = Relu(%y)"), {"is what is replaced"}},
      {"inner value replaced",
       with("%a = Relu(%x)\n%y = Relu(%a)", "%a = Relu(%x)\n%y = Relu(%a)"),
       {"only results of its last line"}},
      {"unknown value", with(relu, "%y = Relu(%xx)"), {"%xx is not known", "%x"}},
      {"unknown attribute name",
       with("%y = LeakyRelu(%x) {alpha = $alpha}", "%y = LeakyRelu(%x) {alpha = $alhpa}"),
       {"$alhpa", "$alpha"}},
      {"unknown predicate",
       with(relu, relu, "when = [\n  \"single-used(%x)\"]\n"),
       {"bad.toml:6", "single-used", "'single-use'"}},
      {"unknown function", with(relu, relu, "when = [\"1 + rnak(%x) == 2\"]\n"), {"rnak", "'rank'"}},
      {"no comparison", with(relu, relu, "when = [\"rank(%x)\"]\n"), {"expected a comparison"}},
      {"values of a predicate", with(relu, relu, "when = [\"same-shape(%x)\"]\n"), {"at least 2"}},
      {"tolerance", with(relu, relu, "when = [\"rank(%x) < 2 +- 1\"]\n"), {"tolerance"}},
      {"condition of a line",
       with("%y = Conv(%x, %w, %b?) {...}", "%y = Relu(%b) if present(%b)"),
       {"under a condition"}},
      {"spread into another",
       with("%y = Conv(%x, %w) {...}", "%y = Relu(%x) {...%y}"),
       {"Relu does not have"}},
      {"required attribute", with(relu, "%y = MaxPool(%x)"), {"'kernel_shape'", "must be given"}},
      {"commutative operands", with("%y = Relu~(%x)", relu), {"two operands"}},
      {"optional inner value", with("%a = Relu(%x)\n%y = Relu(%a?)", relu), {"cannot be optional"}},
      {"stray sign", with("%y = Relu(%x) @", relu), {"bad.toml:6"}},
      {"open bracket", with("%y = Relu(%x", relu), {"expected"}},
      {"let twice", with(relu, relu, "let = [\"$a = 1\", \"$a = 2\"]\n"), {"$a is bound already"}},
      {"expect",
       with(relu, relu) + "[[rule.test]]\nbefore = \"graph {}\"\nexpect = \"maybe\"\n",
       {"does-not-fire"}},
      {"test file", with(relu, relu) + "[[rule.test]]\nbefore = \"no_such.rg\"\n", {"no_such.rg"}},
      {"range",
       with(relu, relu) + "[[rule.test]]\nbefore = \"graph {}\"\nranges = { x = [2, 1] }\n",
       {"[least, greatest]"}},
      {"two of a name",
       with(relu, relu) + "[[rule]]\nname = \"r\"\nmatch = \"%y = Relu(%x)\"\nreplace = \"%y = %x\"\n",
       {"there already", "bad.toml:3"}},
  };
  for (const Mistake& m : mistakes) {
    auto rules = parse_rules(m.text, "bad.toml", schemas());
    ASSERT_FALSE(rules.ok()) << m.what;
    EXPECT_EQ(rules.status().code() == REGIE_INVALID_INPUT || rules.status().code() == REGIE_NOT_FOUND, true)
        << m.what << ": " << rules.status().to_string();
    for (const std::string& s : m.says) EXPECT_THAT(rules.status().to_string(), HasSubstr(s)) << m.what;
  }
}

// Any prefix of a good rule, and any rule with one byte changed, loads or is refused; it never crashes.
TEST(RulesLoad, DamagedTextIsRefusedQuietly) {
  const std::string good = with(
      "%c = Conv(%x, %w, %b?) {group = $g, ...}\n%y = ($op: Relu|Elu)(%c) {alpha = $a}",
      "%k = const(elem(%x), [1, $g])\n%y = regie.FusedConv(%x, %w, %b) {...%c, activation = $op}",
      "when = [\"rank(%x) - 1 == 3 +- 0.5\", \"elem(%x) in [f32]\"]\nlet = [\"$l = range(1, rank(%w))\"]\n");
  ASSERT_TRUE(parse_rules(good, "good.toml", schemas()).ok())
      << parse_rules(good, "good.toml", schemas()).status().to_string();
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    refused += !parse_rules(good.substr(0, i), "cut.toml", schemas()).ok();
    for (char c : {'%', '(', '}', '$', '.', '\n', '\xff', '0'}) {
      std::string changed = good;
      changed[i] = c;
      refused += !parse_rules(changed, "changed.toml", schemas()).ok();
    }
  }
  EXPECT_GT(refused, good.size() * 4);
}

TEST(RulesLoad, DeepExpressionsAreRefused) {
  std::string deep(100000, '(');
  auto rules = parse_rules(with("%y = Relu(%x)", "%y = Relu(%x)", "when = [\"" + deep + "1\"]\n"),
                           "deep.toml", schemas());
  ASSERT_FALSE(rules.ok());
  EXPECT_THAT(rules.status().message(), HasSubstr("nested too deeply"));
  std::string minus;
  for (int i = 0; i < 100000; ++i) minus += "- ";
  rules = parse_rules(with("%y = Relu(%x)", "%y = Relu(%x)", "when = [\"" + minus + "1 == 1\"]\n"),
                      "deep.toml", schemas());
  ASSERT_FALSE(rules.ok());
  EXPECT_THAT(rules.status().message(), HasSubstr("nested too deeply"));
}

TEST(RulesLoad, FilesOfTheProductLoad) {
  const std::string folder = REGIE_TEST_SOURCE_DIR "/configs/rules/";
  auto rules = load_rules({folder + "conv.toml", folder + "matmul.toml"}, schemas());
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  EXPECT_THAT(rule_names(**rules),
              testing::IsSupersetOf({"conv-batchnorm", "conv-bias", "conv-residual", "conv-activation",
                                     "gemm", "matmul-bias", "matmul-activation"}));
}

}  // namespace
}  // namespace regie::rules_test
