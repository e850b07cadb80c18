// Bad pipelines, as files and as settings, through the command line.
#include <gtest/gtest.h>

#include "e2e/bad_input.h"

namespace regie::test {
namespace {

std::string compile_pipeline(Scratch& s, const std::string& toml) {
  return "compile " + shell_word(kDigits) + " -o OUT --pipeline " + shell_word(s.write("p.toml", toml));
}

std::string stage(const std::string& passes) {
  return "schema = 1\nname = \"p\"\n[[stage]]\nname = \"only\"\npasses = [" + passes + "]\n";
}

std::string forced(const std::string& what) {
  return "schema = 1\nname = \"p\"\nextends = \"default\"\n[[force]]\n" + what;
}

std::vector<Case> cases() {
  return {
      {"pipeline: unknown key",
       [](Scratch& s) {
         return compile_pipeline(s, "schema = 1\nname = \"p\"\nrepaet = 1\n" + stage("").substr(22));
       },
       {"p.toml:3", "repaet"}},
      {"pipeline: unknown pass",
       [](Scratch& s) { return compile_pipeline(s, stage("\"fold-constant\"")); },
       {"p.toml:5", "fold-constant", "fold-constants"}},
      {"pipeline: impossible order",
       [](Scratch& s) { return compile_pipeline(s, stage("\"infer-shapes\", \"plan-packed\"")); },
       {"plan-packed", "scheduled"}},
      {"pipeline: not to the end",
       [](Scratch& s) { return compile_pipeline(s, stage("\"infer-shapes\"")); },
       {"placed"}},
      {"pipeline: newer schema",
       [](Scratch& s) { return compile_pipeline(s, "schema = 99\nname = \"p\"\n"); },
       {"p.toml", "99"}},
      {"pipeline: no TOML", [](Scratch& s) { return compile_pipeline(s, "schema = = 1\n"); }, {"p.toml:1"}},
      {"pipeline: a choice that is not offered",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --set placement=gready"; },
       {"--set placement", "cost, greedy", "gready"}},
      {"pipeline: a setting that is no choice",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --set placemnt=greedy"; },
       {"pass.option=value", "placement", "placemnt"}},
      {"pipeline: a short name for what is no option",
       [](Scratch& s) {
         return compile_pipeline(
             s, "schema = 1\nname = \"p\"\nextends = \"default\"\n[short-names]\nlanes = \"streams\"\n");
       },
       {"p.toml:5", "short-names", "pass.option"}},
      {"pipeline: a default that is none of the values",
       [](Scratch& s) {
         return compile_pipeline(s, stage("{ choose = \"x\", default = \"a\", b = \"remove-dead\" }"));
       },
       {"p.toml:5", "'a'"}},
      {"pipeline: an engine that the target does not have",
       [](Scratch& s) { return compile_pipeline(s, forced("engine = \"cpo\"\noperator = \"Softmax\"\n")); },
       {"p.toml:4", "'cpo'", "'cpu'"}},
      {"pipeline: a node that is not there",
       [](Scratch& s) { return compile_pipeline(s, forced("engine = \"cpu\"\nnode = \"conv77\"\n")); },
       {"p.toml:4", "'conv77'"}},
      {"pipeline: an operator that nobody knows",
       [](Scratch& s) { return compile_pipeline(s, forced("engine = \"cpu\"\noperator = \"Sigmoyd\"\n")); },
       {"p.toml:4", "'Sigmoyd'", "'Sigmoid'"}},
      {"pipeline: forced by node and operator",
       [](Scratch& s) {
         return compile_pipeline(s, forced("engine = \"cpu\"\nnode = \"a\"\noperator = \"Softmax\"\n"));
       },
       {"p.toml:4", "one of them"}},
      {"pipeline: extends itself",
       [](Scratch& s) {
         return compile_pipeline(s, "schema = 1\nname = \"p\"\nextends = \"" + s.path("p.toml") + "\"\n");
       },
       {"p.toml"}},
      {"pipeline: change after the schedule",
       [](Scratch& s) {
         return compile_pipeline(s,
                                 "schema = 1\nname = \"p\"\nextends = \"unoptimised\"\n[[stage]]\nname = "
                                 "\"late\"\nafter = \"schedule\"\npasses = [\"remove-dead\"]\n");
       },
       {"remove-dead", "scheduled"}},
      {"pipeline: fusion after the plan",
       [](Scratch& s) {
         return compile_pipeline(s,
                                 "schema = 1\nname = \"p\"\nextends = \"default\"\n[[stage]]\nname = "
                                 "\"late\"\nafter = \"plan\"\npasses = [{ pass = \"apply-rules\", rules = "
                                 "[\"conv\"] }]\n");
       },
       {"apply-rules", "placed"}},
      {"pipeline and no optimisation",
       [](Scratch&) { return "compile " + shell_word(kDigits) + " -o OUT --no-optimise --pipeline default"; },
       {"pipeline", "not both"}},
  };
}

TEST(BadPipeline, IsRefusedWithWordsThatHelp) {
  for (const Case& c : cases()) expect_refused(c);
}

}  // namespace
}  // namespace regie::test
