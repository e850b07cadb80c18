// Sizes that open axes usually have: what a plan with symbols is made for. Expected sizes are those of the
// graph's own tensors.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/api_model.h"
#include "support/process.h"

namespace regie::test {
namespace {

using ::testing::HasSubstr;

TEST(Typical, PlansForTheSizesAndRunsOthers) {
  Scratch scratch;
  const std::string file =
      scratch.write("g.rg",
                    "graph @g(%x: f32[N,H,8]) -> (%o) where N in 1.., H in 2..64 {\n"
                    "  %t = Softmax(%x) {axis = -1}\n  %u = Transpose(%t) {perm = [1, 0, 2]}\n"
                    "  %o = Softmax(%u) {axis = 0}\n}\n");
  auto report_of = [&](const Options& options) {
    ModelPtr model = compile_file(file, options);
    EXPECT_TRUE(model) << regie_last_error();
    return model ? nlohmann::json::parse(regie_model_report(model.get())) : nlohmann::json();
  };
  auto sizes_of = [](const nlohmann::json& report) {
    std::map<std::string, int64_t> out;
    for (const auto& s : report["model"]["symbols"]) out[s["name"]] = s["reference"];
    return out;
  };
  using Sizes = std::map<std::string, int64_t>;
  const auto plain = report_of({}), both = report_of({{"typical", "x=16,32,8"}}),
             one = report_of({{"typical", "x=?,32,?"}});
  EXPECT_EQ(sizes_of(plain), (Sizes{{"N", 1}, {"H", 2}}));
  EXPECT_EQ(sizes_of(both), (Sizes{{"N", 16}, {"H", 32}}));
  EXPECT_EQ(sizes_of(one), (Sizes{{"N", 1}, {"H", 32}}));
  EXPECT_GE(both["arena_bytes"].get<uint64_t>(), 16u * 32 * 8 * 4);
  EXPECT_LT(plain["arena_bytes"].get<uint64_t>(), 16u * 32 * 8 * 4);

  ModelPtr model = compile_file(file, {{"typical", "x=16,32,8"}});
  Runner runner(model);
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  for (auto [n, h] : {std::pair<int64_t, int64_t>{16, 32}, {3, 64}, {1, 2}}) {
    const int64_t dims[] = {n, h, 8};
    const Tensor out = runner.run({{"x", Tensor::zeros(REGIE_F32, dims)}})["o"];
    ASSERT_EQ(runner.status(), REGIE_OK) << regie_last_error();
    ASSERT_EQ(out.count(), n * h * 8);
    for (float f : out.as<float>()) ASSERT_NEAR(f, 1.0f / static_cast<float>(h), 1e-6f);
  }
}

// A size that was said is what buffers are laid out for, however small it is: at that size the arena is no
// larger than where it is the only one.
TEST(Typical, BuffersAreLaidOutForASmallSize) {
  const std::string rest =
      "  %t1 = Softmax(%x) {axis = -1}\n"
      "  %t2 = Softmax(%z) {axis = -1}\n"
      "  %t3 = Softmax(%t2) {axis = -1}\n"
      "  %t4 = Softmax(%t2) {axis = -1}\n"
      "  %t5 = Softmax(%t3) {axis = -1}\n"
      "  %t6 = Softmax(%t5) {axis = -1}\n"
      "  %t7 = Softmax(%t6) {axis = -1}\n"
      "  %t8 = Softmax(%t4) {axis = -1}\n"
      "  %s9 = Add(%x, %t1)\n"
      "  %s10 = Softmax(%s9) {axis = -1}\n"
      "  %s11 = Add(%z, %t4)\n"
      "  %s12 = Softmax(%s11) {axis = -1}\n"
      "  %s13 = Add(%s12, %t3)\n"
      "  %s14 = Softmax(%s13) {axis = -1}\n"
      "  %s15 = Add(%s14, %t7)\n"
      "  %s16 = Softmax(%s15) {axis = -1}\n"
      "  %s17 = Add(%s16, %t6)\n"
      "  %s18 = Softmax(%s17) {axis = -1}\n"
      "  %s19 = Add(%s18, %t2)\n"
      "  %s20 = Softmax(%s19) {axis = -1}\n"
      "  %s21 = Add(%s20, %t5)\n"
      "  %s22 = Softmax(%s21) {axis = -1}\n"
      "  %s23 = Add(%s22, %t8)\n"
      "  %s24 = Softmax(%s23) {axis = -1}\n"
      "}\n";
  Scratch scratch;
  auto arena_of = [&](const std::string& text, const Options& options) {
    ModelPtr model = compile_file(scratch.write("g.rg", text), options);
    EXPECT_TRUE(model) << regie_last_error();
    return model ? nlohmann::json::parse(regie_model_report(model.get()))["arena_bytes"].get<uint64_t>() : 0;
  };
  const std::string results = "%z: f32[8,64]) -> (%s10, %s24)";
  const std::string open = "graph @g(%x: f32[N,64], " + results + " where N in 8.. {\n" + rest;
  const uint64_t least = arena_of("graph @g(%x: f32[8,64], " + results + " {\n" + rest,
                                  {{"set", "schedule-for-memory.recompute=0"}});
  EXPECT_EQ(arena_of(open, {{"typical", "x=8,64"}}), least);
  // A limit is on the sizes that are planned for, too.
  EXPECT_EQ(arena_of(open, {{"memory-limit", std::to_string(least)}}), least);
}

// With listed sizes it is for the other axes.
TEST(Typical, GoesWithPlansForListedSizes) {
  Scratch scratch;
  const std::string file = scratch.write("g.rg",
                                         "graph @g(%x: f32[N,H,8]) -> (%o) where N in 1.., H in 2..64 {\n"
                                         "  %o = Softmax(%x) {axis = -1}\n}\n");
  const std::string command = "compile " + shell_word(file) + " --shapes 'buckets:x.0=2|16' ";
  for (const char* sizes : {"4,32,8", "16,32,8", "?,32,?"}) {
    const ProcessResult r = run_regie(command + "--typical x=" + sizes);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("planned for H=32")) << sizes;
  }
  for (const char* sizes : {"0,32,8", "4,1,8", "4,32", "4x32x8"})
    EXPECT_EQ(run_regie(command + "--typical x=" + sizes).exit_code, 2) << sizes;
}

TEST(Typical, SaysWhatIsWrong) {
  Scratch scratch;
  const std::string file =
      scratch.write("g.rg",
                    "graph @g(%x: f32[N,H,8], %z: f32[N,8]) -> (%o) where N in 1.., H in 2..64 {\n"
                    "  %a: const i64[1] = 1\n  %t = Softmax(%x) {axis = -1}\n"
                    "  %e = Unsqueeze(%z, %a)\n  %o = Mul(%t, %e)\n}\n");
  struct Wrong {
    const char *options, *words;
  };
  for (const Wrong& w : {Wrong{"--typical y=1", "'y=1': there is no input 'y'; there are: x, z"},
                         Wrong{"--typical x=1,2", "2 dimensions for an input of rank 3"},
                         Wrong{"--typical x=1,2,4", "axis 2 is 8 and cannot be 4"},
                         Wrong{"--typical x=1,65,8", "axis 1 is H and cannot be 65"},
                         Wrong{"--typical x=4,2,8 --typical z=5,8", "N cannot be 4 and 5"},
                         Wrong{"--typical x=1x2x8", "must be like x=16,3,224,224"},
                         Wrong{"--typical x=1,2,8,", "must be like x=16,3,224,224"},
                         Wrong{"--typical x", "must be like x=16,3,224,224"},
                         Wrong{"--typical x=-1,2,8", "must be like x=16,3,224,224"}}) {
    const ProcessResult r = run_regie("compile " + shell_word(file) + " " + w.options);
    EXPECT_EQ(r.exit_code, 2) << w.options;
    EXPECT_THAT(r.err, HasSubstr(w.words)) << w.options;
    EXPECT_THAT(r.err, HasSubstr("option 'typical'")) << w.options;
  }
}

TEST(Typical, WhatWasPlannedForIsSaid) {
  Scratch scratch;
  const std::string file = scratch.write("g.rg",
                                         "graph @g(%x: f32[N,H,8]) -> (%o) where N in 1.., H in 2..64 {\n"
                                         "  %o = Softmax(%x) {axis = -1}\n}\n"),
                    made = shell_word(scratch.path("g.rgm"));
  const ProcessResult compiled =
      run_regie("compile " + shell_word(file) + " -o " + made + " --typical x=4,8,8");
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("planned for N=4, H=8"));
  for (const std::string& command : {"bench " + made + " --duration 0 --warm-up-ms 0", "profile " + made}) {
    EXPECT_THAT(run_regie(command).out, HasSubstr("open axes are as planned: x.0 = 4, x.1 = 8")) << command;
    EXPECT_THAT(run_regie(command + " --shape x=2,2,8").out, ::testing::Not(HasSubstr("as planned")))
        << command;
  }
  // A name may hold '='.
  const std::string odd = scratch.write(
      "odd.rg", "graph @g(%\"n=h\": f32[N,8]) -> (%o) where N in 1.. {\n  %o = Abs(%\"n=h\")\n}\n");
  ASSERT_EQ(run_regie("compile " + shell_word(odd) + " -o " + made).exit_code, 0);
  const std::string command = "profile " + made + " --runs 1";
  EXPECT_THAT(run_regie(command).out, HasSubstr("as planned: n=h.0 = 1"));
  const ProcessResult given = run_regie(command + " --shape n=h=2,8");
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(given.out, ::testing::Not(HasSubstr("as planned")));
}

}  // namespace
}  // namespace regie::test
