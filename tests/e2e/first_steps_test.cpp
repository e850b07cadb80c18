// What somebody meets who tries the commands for the first time: options that count or are refused, words
// that say what to do, figures that say which clock they are of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";
const std::string kNpu = " --target ascend910a-sim";
const std::string kGreedy = kNpu + " --shape x=1,1,8,8 --set placement=greedy";

Json json_of(const std::string& arguments) {
  const ProcessResult r = run_regie(arguments + " --json");
  EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
  Json j = Json::parse(r.out, nullptr, false);
  EXPECT_FALSE(j.is_discarded()) << arguments << ": " << r.out.substr(0, 400);
  return j;
}

void refuse(const std::string& arguments, const std::vector<std::string>& words) {
  const ProcessResult r = run_regie(arguments);
  EXPECT_EQ(r.exit_code, 2) << arguments << r.err;
  EXPECT_EQ(r.out, "") << arguments;
  for (const std::string& w : words) EXPECT_THAT(r.err, HasSubstr(w)) << arguments;
}

std::string offline(const Scratch& scratch, const std::string& options = "") {
  const std::string path = scratch.path("digits.rgm");
  const ProcessResult r = run_regie("compile " + shell_word(kDigits) + " -o " + shell_word(path) + options);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return shell_word(path);
}

// Of an offline model the options are followed as of the framework's file: both come to the same.
TEST(ExplainOptions, CountForAnOfflineModel) {
  Scratch scratch;
  const std::string rgm = offline(scratch);
  for (const std::string& options :
       {std::string(" --target host_and_null"), kGreedy, std::string(" --no-optimise"),
        std::string(" --set placement=greedy --target host_and_null")}) {
    Json of_file = json_of("explain " + shell_word(kDigits) + options);
    Json again = json_of("explain " + rgm + options);
    of_file.erase("model");
    again.erase("model");
    EXPECT_EQ(of_file, again) << options;
    EXPECT_THAT(run_regie("explain " + rgm + options).err,
                HasSubstr("compiled again from the portable graph"));
  }
  EXPECT_EQ(run_regie("explain " + rgm).err, "") << "what the file has kept is read";
  refuse("explain " + rgm + " --cache on", {"--cache", "leave it out"});
  refuse("explain " + rgm + " --target nowhere", {"nowhere"});
  refuse("cache list --target ascend910a-sim", {"--target", "cache why"});
}

TEST(ExplainOptions, CountForAPlanOfSeveral) {
  Scratch scratch;
  const std::string rgm = offline(scratch, " --shapes 'buckets:x.0=1|4'");
  const Json four = json_of("explain " + rgm + " --plan x.0=4 --target host_and_null");
  EXPECT_EQ(four.at("target"), "host_and_null");
  Json of_file = json_of("explain " + shell_word(kDigits) + " --shape x=4,1,8,8 --target host_and_null");
  EXPECT_EQ(four.at("memory"), of_file.at("memory"));
  const Json two = json_of("explain " + rgm + " --shape x=2,1,8,8");
  EXPECT_EQ(two.at("memory"), json_of("explain " + shell_word(kDigits) + " --shape x=2,1,8,8").at("memory"));
  refuse("explain " + rgm + " --shape x=2,1,8,8 --plan x.0=4", {"--plan"});
}

TEST(ExplainShortly, FiveRulesUnlessAllAreWanted) {
  Scratch scratch;
  const std::string model = scratch.write("chain.rg",
                                          "graph @chain(%x: f32[4,8], %z: f32[4,8]) -> (%y) {\n"
                                          "  %two: const f32[] = 2.0\n"
                                          "  %s = Sigmoid(%x) @name(\"gate\")\n"
                                          "  %a = Mul(%s, %z) @name(\"product\")\n"
                                          "  %b = Mul(%a, %two) @name(\"twice\")\n"
                                          "  %y = Mul(%b, %x) @name(\"last\")\n}\n");
  const std::string node = "explain " + shell_word(model) + " product";
  const ProcessResult brief = run_regie(node), all = run_regie(node + " --all");
  const Json j = json_of(node);
  const size_t tried = j.at("rules").size();
  ASSERT_GT(tried, 7u);
  auto names_in = [&](const std::string& text) {
    size_t n = 0;
    for (const Json& r : j.at("rules"))
      n += text.find("\n  " + r.at("name").get<std::string>() + " ") != std::string::npos;
    return n;
  };
  size_t applied = 0;
  for (const Json& r : j.at("rules")) applied += r.at("applied") != 0;
  EXPECT_EQ(names_in(all.out), tried);
  EXPECT_EQ(names_in(brief.out), std::min(tried, applied + 5));
  EXPECT_THAT(brief.out,
              HasSubstr("and " + std::to_string(tried - applied - 5) + " rules that got no further; --all"));
  EXPECT_THAT(all.out, Not(HasSubstr("--all")));
  // Who is left out got no further than who is shown.
  uint64_t least_shown = UINT64_MAX, most_hidden = 0;
  for (const Json& r : j.at("rules")) {
    uint64_t furthest = 0;
    for (const Json& s : r.at("stopped")) furthest = std::max(furthest, s.at("passed").get<uint64_t>());
    if (r.at("applied") != 0) continue;
    const bool shown = brief.out.find("\n  " + r.at("name").get<std::string>() + " ") != std::string::npos;
    if (shown)
      least_shown = std::min(least_shown, furthest);
    else
      most_hidden = std::max(most_hidden, furthest);
  }
  EXPECT_LE(most_hidden, least_shown);
}

TEST(OfflineShapes, AreFixedByTheSymbolsOfThePortableGraph) {
  Scratch scratch;
  const std::string rgm = offline(scratch), out = " -o " + shell_word(scratch.path("fixed.rgm"));
  const Json again = json_of("compile " + rgm + out + " --shape x=3,1,8,8");
  const std::string fixed = shell_word(scratch.path("fixed.rgm"));
  const Json fresh = json_of("compile " + shell_word(kDigits) + " -o " +
                             shell_word(scratch.path("fresh.rgm")) + " --shape x=3,1,8,8");
  for (const char* key : {"arena_bytes", "operators_after", "tasks"})
    EXPECT_EQ(again.at(key), fresh.at(key)) << key;
  EXPECT_THAT(run_regie("run " + fixed + " --random 1").out, HasSubstr("[3,10]"));
  EXPECT_EQ(run_regie("compile " + rgm + out + " --shape x=?,1,8,8").exit_code, 0);
  const std::string compile = "compile " + rgm + " -o " + shell_word(scratch.path("no.rgm")) + " --shape ";
  refuse(compile + "x=3,3,8,8", {"--shape", "axis 1", "1", "framework's file"});
  refuse(compile + "x=3,1,8", {"3 sizes were given"});
  refuse(compile + "y=3,1,8,8", {"no input 'y'", "'x'"});
  const std::string few = scratch.write(
      "few.rg",
      "graph @few(%x: f32[N,2,N * 2]) -> (%y) where N in 1..64 {\n  %y: f32[N,2,N * 2] = Relu(%x)\n}\n");
  ASSERT_EQ(run_regie("compile " + shell_word(few) + " -o " + shell_word(scratch.path("few.rgm"))).exit_code,
            0);
  const std::string of_few = "compile " + shell_word(scratch.path("few.rgm")) + " -o " +
                             shell_word(scratch.path("n.rgm")) + " --shape ";
  refuse(of_few + "x=65,2,130", {"range of N", "1..64"});
  refuse(of_few + "x=3,2,7", {"make it 6, not 7"});
  refuse(of_few + "x=?,2,6", {"computed from others"});
  EXPECT_EQ(run_regie(of_few + "x=3,2,6").exit_code, 0);
  EXPECT_THAT(run_regie("run " + shell_word(scratch.path("n.rgm")) + " --random 1").out,
              HasSubstr("f32[3,2,6]"));
  for (const std::string& command : {compile, "run " + rgm + " --random 1 --shape "})
    refuse(command + "x=2x1x8x8", {"malformed", "2x1x8x8", "x=1,3,224,224"});
  refuse("run " + rgm + " --random 1 --shape x=1,1,8,8 --shape x=2,1,8,8", {"given twice"});
  EXPECT_FALSE(std::filesystem::exists(scratch.path("no.rgm")));
}

TEST(BenchClock, SimulatedTimeIsGivenAndTold) {
  const std::string few = " --duration 0 --warm-up-ms 0";
  const std::string bench = "bench " + shell_word(kDigits) + kGreedy + few;
  const Json measured = json_of(bench);
  const Json profiled = json_of("profile " + shell_word(kDigits) + kGreedy + " --runs 2");
  ASSERT_EQ(measured.at("simulated").size(), 1u);
  const double us = measured["simulated"][0].at("run_us");
  EXPECT_NEAR(us, profiled.at("simulated")[0].at("run_us").get<double>(), 1e-3 * us);
  EXPECT_THAT(measured.at("clock").get<std::string>(), HasSubstr("simulates"));
  const std::string text = run_regie(bench).out;
  EXPECT_THAT(text, HasSubstr("a run on npu (simulator), by its own clock"));
  EXPECT_LT(text.find("of this computer"), text.find("throughput"));
  const Json real = json_of("bench " + shell_word(kDigits) + few);
  EXPECT_FALSE(real.contains("simulated"));
  EXPECT_EQ(real.at("clock"), "of this computer");
  const Json several = json_of("bench " + shell_word(kDigits) + kNpu + " --set placement=greedy" + few +
                               " --shapes 'buckets:x.0=1' --shape x=1,1,8,8 --shape x=1,1,8,8");
  for (const Json& s : several.at("shapes")) EXPECT_GT(s.at("simulated")[0].at("run_us").get<double>(), 0);
}

TEST(DeviceSettings, WhatTheCompileWentByIsSaid) {
  Scratch scratch;
  const std::string rgm = offline(scratch, kGreedy);
  auto err = [&](const std::string& setting) {
    const ProcessResult r = run_regie("profile " + rgm + " --runs 1 --device-set " + setting);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.err;
  };
  EXPECT_THAT(err("npu.mode=sink"), HasSubstr("compiled for mode = issue"));
  EXPECT_THAT(err("npu.mode=sink"), HasSubstr("target file of your own"));
  EXPECT_EQ(err("npu.mode=issue"), "") << "as it was compiled";
  EXPECT_EQ(err("npu.numerics=off"), "") << "no schedule depends on it";
  refuse("profile " + rgm + " --device-set npu.mod=sink",
         {"unknown parameter 'mod'", "did you mean 'mode'?"});
  const ProcessResult unknown = run_regie("profile " + rgm + " --device-set npu.mod=sink");
  EXPECT_LT(unknown.err.size(), 400u) << unknown.err;
}

// Every node that an engine did not get is counted under one reason.
TEST(WhyNot, EveryNodeHasAReason) {
  Scratch scratch;
  const std::string compile =
      "compile " + shell_word(kDigits) + kNpu + " --shape x=1,1,8,8 -o " + shell_word(scratch.path("d.rgm"));
  const Json j = json_of(compile);
  std::map<std::string, size_t> elsewhere;
  for (const Json& p : j.at("placements"))
    for (const char* e : {"aicore", "aicpu", "cpu"}) elsewhere[e] += p.at("engine") != e;
  std::set<std::string> named;
  for (const Json& e : j.at("engines")) {
    size_t nodes = 0;
    named.insert(e.at("name"));
    for (const Json& r : e.value("not_taken", Json::array())) nodes += r.at("nodes").get<size_t>();
    EXPECT_EQ(nodes, elsewhere[e.at("name")]) << e;
  }
  EXPECT_THAT(named, testing::ElementsAre("aicore", "aicpu", "cpu"));
  ASSERT_GT(elsewhere["aicore"], 0u);
  const std::string text = run_regie(compile).out;
  EXPECT_THAT(text, testing::ContainsRegex("not on +aicore: [0-9]+ could, "));
  EXPECT_THAT(text, testing::ContainsRegex("could, [0-9.]+ us, with transfers [0-9.]+ us more"));
  EXPECT_THAT(text, Not(HasSubstr("not on     cpu")));
  EXPECT_THAT(run_regie("explain " + shell_word(kDigits) + kNpu + " --shape x=1,1,8,8").out,
              HasSubstr("not on aicore, by reason"));
  const std::string node =
      run_regie("explain " + shell_word(kDigits) + " stem.conv" + kNpu + " --shape x=1,1,8,8").out;
  EXPECT_THAT(node, testing::ContainsRegex("not aicore: could, [0-9.]+ us, with transfers [0-9.]+ us more"));
  EXPECT_THAT(node, testing::ContainsRegex("why: own kernel, predicted [0-9.]+ us"));
  // One node on another engine leaves nothing to say of that engine.
  const std::string greedy =
      run_regie("compile " + shell_word(kDigits) + kGreedy + " -o " + shell_word(scratch.path("g.rgm"))).out;
  EXPECT_THAT(greedy, Not(HasSubstr("not on     aicore")));
}

TEST(ProfileOfADevice, PartsAddUpAndTheGreatestBinds) {
  Scratch scratch;
  const std::string graph = scratch.write("host.rg",
                                          "graph @host(%x: f32[64,512]) -> (%y) {\n"
                                          "  %axis: const i64[] = 1\n"
                                          "  %a: f32[64,512] = Sigmoid(%x) @name(\"before\")\n"
                                          "  %s: f32[64,512] = CumSum(%a, %axis) @name(\"sums\")\n"
                                          "  %y: f32[64,512] = Sigmoid(%s) @name(\"after\")\n}\n");
  const std::string pipeline = scratch.write("host.toml",
                                             "schema = 1\nname = \"host\"\nextends = \"default\"\n"
                                             "[[force]]\nengine = \"cpu\"\noperator = \"CumSum\"\n"
                                             "[[force]]\nengine = \"aicore\"\noperator = \"Sigmoid\"\n");
  const std::string profile =
      "profile " + shell_word(graph) + kNpu + " --pipeline " + shell_word(pipeline) + " --runs 2";
  const Json d = json_of(profile).at("simulated")[0];
  double host = 0, parts = 0;
  for (const Json& h : d.at("by_host_work")) host += h.at("us").get<double>();
  EXPECT_NEAR(host, d.at("host_work_us").get<double>(), 1e-6);
  EXPECT_GT(host, 0);
  double before = 1e300;
  for (const Json& p : d.at("binds").at("parts")) {
    EXPECT_LE(p.at("us").get<double>(), before) << "greatest first";
    EXPECT_GE(p.at("us").get<double>(), 0);
    parts += before = p.at("us").get<double>();
  }
  EXPECT_NEAR(parts, d.at("run_us").get<double>(), 1e-6 * parts) << "each moment of the run is in one part";
  const std::string text = run_regie(profile).out;
  EXPECT_THAT(text, HasSubstr("by what the host computes itself"));
  EXPECT_THAT(text, HasSubstr("sums"));
  EXPECT_THAT(text, HasSubstr("what binds " + d["binds"]["parts"][0].at("what").get<std::string>()));
  EXPECT_THAT(text, HasSubstr("in shares of"));
}

TEST(ProfileOfADevice, NothingRanIsSaid) {
  const ProcessResult r = run_regie("profile " + shell_word(kDigits) + kNpu + " --shape x=1,1,8,8 --runs 1");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("nothing ran on"));
  EXPECT_THAT(r.out, Not(HasSubstr("0 launches")));
}

TEST(ProfileOfTheHost, ShortTimesAreInMicroseconds) {
  Scratch scratch;
  const std::string graph =
      scratch.write("one.rg", "graph @one(%x: f32[8]) -> (%y) {\n  %y: f32[8] = Sigmoid(%x)\n}\n");
  const std::string text = run_regie("profile " + shell_word(graph) + " --runs 3").out;
  EXPECT_THAT(text, testing::ContainsRegex("kernels    [0-9.]+ us a run"));
  EXPECT_THAT(text, Not(testing::ContainsRegex("0\\.0[0-9]+ ms")));
}

// The file of numpy.asfortranarray: the first index runs fastest.
TEST(NpyFiles, FortranOrderIsRead) {
  Scratch scratch;
  const std::string graph =
      scratch.write("same.rg", "graph @same(%x: f32[2,3,4]) -> (%y) {\n  %y: f32[2,3,4] = Abs(%x)\n}\n");
  auto file = [&](const char* name, bool fortran) {
    std::string header = std::string("{'descr': '<f4', 'fortran_order': ") + (fortran ? "True" : "False") +
                         ", 'shape': (2, 3, 4), }";
    header.append(117 - header.size(), ' ');
    header += '\n';
    std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
    bytes += header;
    auto add = [&](int i, int j, int k) {
      const auto value = static_cast<float>(100 * i + 10 * j + k);
      bytes.append(reinterpret_cast<const char*>(&value), 4);
    };
    if (fortran)
      for (int k = 0; k < 4; ++k)
        for (int j = 0; j < 3; ++j)
          for (int i = 0; i < 2; ++i) add(i, j, k);
    else
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
          for (int k = 0; k < 4; ++k) add(i, j, k);
    return scratch.write(name, bytes);
  };
  std::string answers[2];
  for (bool fortran : {false, true}) {
    const std::string path = file(fortran ? "f.npy" : "c.npy", fortran);
    const ProcessResult r = run_regie("run " + shell_word(graph) + " --input " + shell_word("x=" + path) +
                                      " --output-dir " + shell_word(scratch.path("out")));
    ASSERT_EQ(r.exit_code, 0) << r.err;
    answers[fortran] = slurp(scratch.path("out") + "/y.npy");
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[1].substr(answers[1].size() - 96), slurp(scratch.path("c.npy")).substr(128));
}

TEST(Messages, SayWhatIsMeant) {
  Scratch scratch;
  refuse("run " + shell_word(kDigits) + " --input zebra=a.npy", {"no input 'zebra'. Its inputs: x"});
  const ProcessResult rule = run_regie("explain " + shell_word(kDigits) + " --rule zzzz");
  EXPECT_LT(rule.err.size(), 400u) << rule.err;
  auto check = [&](const std::string& match, const std::string& when) {
    const std::string rules = scratch.write(
        "r.toml", "schema = 1\nrevision = \"onnx-21\"\n[[rule]]\nname = \"r\"\nmatch = '''\n" + match +
                      "'''\nwhen = [\"" + when + "\"]\nreplace = '''\n%y = Relu(%x)\n'''\n");
    return run_regie("check " + shell_word(rules)).err;
  };
  EXPECT_THAT(check("%y = Relu(%x)\n", "constant(%x)"), HasSubstr("did you mean 'const'?"));
  EXPECT_THAT(check("%y = Sum(%x, %z)\n", "const(%z)"), HasSubstr("frontends write it out as Add"));
}

TEST(Messages, CacheWhyNamesEachPlugInOnce) {
  Scratch scratch;
  const std::string cache = " --cache on --cache-dir " + shell_word(scratch.path("cache"));
  ASSERT_EQ(run_regie("compile " + shell_word(kDigits) + " -o " + shell_word(scratch.path("d.rgm")) + cache)
                .exit_code,
            0);
  const ProcessResult r = run_regie("cache why " + shell_word(kDigits) + " --no-optimise" + cache);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_LT(std::count(r.out.begin(), r.out.end(), '\n'), 12) << r.out;
  const size_t once = r.out.find("pass-fuse-pointwise");
  ASSERT_NE(once, std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("pass-fuse-pointwise", once + 1), std::string::npos) << r.out;
}

// A mistake of a rule that variants show as well is told once.
TEST(Messages, CheckTellsAMistakeOnce) {
  Scratch scratch;
  const std::string rules = scratch.write(
      "twice.toml",
      "schema = 1\nrevision = \"onnx-21\"\n[[rule]]\nname = \"twice\"\nmatch = '''\n%c = Mul(%a, %k)\n"
      "%y = Add(%c, %b)\n'''\nwhen = [\"const(%k)\", \"rank(%k) == 3\"]\nreplace = '''\n%d = Mul(%k, %a)\n"
      "%y = Add(%d, %b)\n'''\n[[rule.test]]\nbefore = '''\n"
      "graph @g(%a: f32[N,4], %b: f32[N,4], %k: const f32[4]) -> (%y) {\n  %c = Mul(%a, %k)\n"
      "  %y = Add(%c, %b)\n}\n'''\n");
  const ProcessResult r = run_regie("check " + shell_word(rules));
  EXPECT_EQ(r.exit_code, 1) << r.err;
  const std::string what = "test 1: the rule does not fire";
  EXPECT_THAT(r.out, testing::ContainsRegex(what + ".*rank.*\\(and the same in [0-9]+ variant"));
  EXPECT_EQ(r.out.find("the rule does not fire", r.out.find(what) + what.size()), std::string::npos) << r.out;
}

// Of two Relu one is left.
std::string halving(const std::string& name) {
  return "schema = 1\nrevision = \"onnx-21\"\n[[rule]]\nname = \"" + name +
         "\"\nmatch = '''\n%a = Relu(%x)\n%y = Relu(%a)\n'''\nreplace = '''\n%y = Relu(%x)\n'''\n";
}

// Rules that come with a pipeline lie in `rules` beside it, and go before others of that name.
TEST(PipelineByPath, FindsTheRulesBesideIt) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("mine/rules"));
  scratch.write("mine/rules/conv.toml", halving("halve"));
  const std::string graph = scratch.write("two.rg",
                                          "graph @two(%x: f32[4]) -> (%y) {\n  %a: f32[4] = Relu(%x)\n"
                                          "  %y: f32[4] = Relu(%a)\n}\n");
  const std::string cache = " --cache on --cache-dir " + shell_word(scratch.path("cache"));
  const std::string minimal =
      scratch.write("mine/whole.toml",
                    "schema = 1\nname = \"whole\"\nextends = \"unoptimised\"\n[[stage]]\n"
                    "name = \"mine\"\nbefore = \"place\"\npasses = [{ pass = "
                    "\"apply-rules\", rules = [\"conv\"] }]\n");
  const std::string compile = "compile " + shell_word(graph) + " --pipeline " + shell_word(minimal) + " -o " +
                              shell_word(scratch.path("o.rgm"));
  EXPECT_EQ(json_of(compile).at("fusions").value("halve", 0), 1);
  // What is in them is a part of the cache's key.
  EXPECT_EQ(json_of(compile + cache).at("cache").at("outcome"), "miss");
  EXPECT_EQ(json_of(compile + cache).at("cache").at("outcome"), "hit");
  scratch.write("mine/rules/conv.toml", halving("other"));
  const Json other = json_of(compile + cache);
  EXPECT_EQ(other.at("cache").at("outcome"), "miss");
  EXPECT_EQ(other.at("fusions").value("other", 0), 1);
}

// What several stages do by the same rules is counted once each.
TEST(PipelineByPath, CountsRulesOfTwoStagesTogether) {
  Scratch scratch;
  std::filesystem::create_directories(scratch.path("rules"));
  scratch.write("rules/halve.toml", halving("halve"));
  const std::string graph = scratch.write("three.rg",
                                          "graph @three(%x: f32[4]) -> (%y) {\n  %a: f32[4] = Relu(%x)\n"
                                          "  %b: f32[4] = Relu(%a)\n  %y: f32[4] = Relu(%b)\n}\n");
  const std::string stage =
      "before = \"place\"\npasses = [{ pass = \"apply-rules\", rules = [\"halve\"] }]\n";
  const std::string pipeline =
      scratch.write("twice.toml",
                    "schema = 1\nname = \"twice\"\nextends = \"unoptimised\"\n[[stage]]\nname = "
                    "\"first\"\n" +
                        stage + "[[stage]]\nname = \"second\"\n" + stage);
  const Json report = json_of("compile " + shell_word(graph) + " --pipeline " + shell_word(pipeline) +
                              " -o " + shell_word(scratch.path("o.rgm")));
  EXPECT_EQ(report.at("fusions").value("halve", 0), 2);
  EXPECT_EQ(report.at("operators_after"), 1);
}

}  // namespace
}  // namespace regie::test
