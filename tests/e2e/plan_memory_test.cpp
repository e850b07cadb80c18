// regie plan-memory as a user types it: files in, files out, exit codes, complaints with line numbers.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"

namespace regie::test {
namespace {

namespace fs = std::filesystem;

const std::string kProblems = std::string(REGIE_TEST_MODELS_DIR) + "/memory/";

class PlanMemoryCommand : public ::testing::Test {
 protected:
  ProcessResult plan(const std::string& problem, const std::string& options = "") {
    scratch_.write("in.csv", problem);
    fs::remove(out());
    return run_regie("plan-memory " + shell_word(scratch_.path("in.csv")) + " -o " + shell_word(out()) + " " +
                     options);
  }
  std::string out() const { return scratch_.path("out.csv"); }
  // Bad input: exit code 2, one line that says `words`, nothing written.
  void refuse(const std::string& problem, const std::string& words, const std::string& options = "") {
    const ProcessResult r = plan(problem, options);
    EXPECT_EQ(r.exit_code, 2) << problem << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << problem << r.err;
    EXPECT_EQ(r.out, "") << problem;
    EXPECT_FALSE(fs::exists(out())) << problem;
  }
  Scratch scratch_;
};

TEST_F(PlanMemoryCommand, WritesTheRowsWithOffsets) {
  ProcessResult r = plan("id,lower,upper,size\na,0,2,4\nb,2,4,4\nc,0,4,8\n", "--verify");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::string text = slurp(out());
  EXPECT_TRUE(text == "id,lower,upper,size,offset\na,0,2,4,0\nb,2,4,4,0\nc,0,4,8,4\n" ||
              text == "id,lower,upper,size,offset\na,0,2,4,8\nb,2,4,4,8\nc,0,4,8,0\n")
      << text;
  EXPECT_NE(r.out.find("peak 12 bytes, lower bound 12"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("proven optimal"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("verified"), std::string::npos) << r.out;
}

TEST_F(PlanMemoryCommand, ColumnsInAnyOrderAndForeignOnes) {
  // A mark at the start, line ends of Windows, an empty line, cells in quotes, blanks, no line end at the
  // end.
  ProcessResult r = plan(
      "\xef\xbb\xbfsize, note ,upper,offset,id,alignment,lower\r\n"
      "10,\"x, y\",5,,first,64,1\r\n\r\n"
      "7,,5,128,second,,1\r\n"
      "0,zero,9,, third ,,8",
      "--verify --alignment 16");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(slurp(out()),
            "size, note ,upper,offset,id,alignment,lower\n"
            "10,\"x, y\",5,0,first,64,1\n7,,5,128,second,,1\n0,zero,9,0,third,,8\n");
}

TEST_F(PlanMemoryCommand, HeaderAlone) {
  ProcessResult r = plan("id,lower,upper,size\n", "--json --svg " + shell_word(scratch_.path("none.svg")));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(slurp(out()), "id,lower,upper,size,offset\n");
  EXPECT_EQ(nlohmann::json::parse(r.out)["peak"], 0);
}

TEST_F(PlanMemoryCommand, Capacity) {
  const std::string problem = "id,lower,upper,size\na,0,3,4\nb,2,5,4\n";
  EXPECT_EQ(plan(problem, "--capacity 8").exit_code, 0);
  ProcessResult r = plan(problem, "--capacity 7 --json");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.err.find("no plan meets the capacity (proven)"), std::string::npos) << r.err;
  const auto report = nlohmann::json::parse(r.out);
  EXPECT_EQ(report["capacity_met"], false);
  EXPECT_EQ(report["proven_infeasible"], true);
  EXPECT_EQ(report["peak"], 8);
  EXPECT_EQ(slurp(out()).substr(0, 27), "id,lower,upper,size,offset\n") << "the best plan there is";

  // D's bound is 986,112: the search can neither find a plan nor show that there is none.
  r = run_regie("plan-memory " + kProblems + "D.csv --effort fast --capacity 986112");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.err.find("whether another plan meets it is not known"), std::string::npos) << r.err;
}

TEST_F(PlanMemoryCommand, JsonIsOneObjectAlone) {
  ProcessResult r = plan("id,lower,upper,size\nx,3,9,100\ny,5,7,50\n", "--json --alignment 64 --verify");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  const auto report = nlohmann::json::parse(r.out);
  EXPECT_EQ(report["buffers"], 2);
  // y below, x above it from 64 on.
  EXPECT_EQ(report["peak"], 164);
  EXPECT_EQ(report["lower_bound"], 164);
  EXPECT_EQ(report["proven_optimal"], true);
  EXPECT_EQ(report["verified"], true);
  EXPECT_EQ(report["reproducible"], true);
  EXPECT_EQ(report["fullest"]["step"], 5);
  EXPECT_EQ(report["fullest"]["bytes"], 150);
  EXPECT_EQ(report["fullest"]["largest"][0]["id"], "x");
  EXPECT_EQ(report["topmost"][0]["id"], "x");
  r = plan("id,lower,upper,size\nx,3,9,100\n", "--json --seconds 1");
  EXPECT_EQ(nlohmann::json::parse(r.out)["reproducible"], false);
}

TEST_F(PlanMemoryCommand, BadFiles) {
  const std::string h = "id,lower,upper,size\n";
  refuse("", "the file is empty");
  refuse("id,lower,upper\na,0,1\n", "in.csv:1: there is no column 'size'");
  refuse("id,lower,uper,size\n", "'upper'; is 'uper' meant?");
  refuse("id,lower,upper,size,size\n", "column 'size' is there twice");
  refuse(h + "a,0,1\n", "in.csv:2: this line has 3 cells, the header 4");
  refuse(h + "a,0,1,1\nb,-1,1,1\n", "in.csv:3: lower is '-1', but must not be negative");
  refuse(h + "a,0,1,-4\n", "size is '-4', but must not be negative");
  refuse(h + "a,0,1,x\n", "size is 'x', which is not a whole number");
  refuse(h + "a,0,1,1.5\n", "size is '1.5', which is not a whole number");
  refuse(h + "a,0,1,\n", "size is missing");
  refuse(h + ",0,1,1\n", "id is missing");
  refuse(h + "a,0,1,18446744073709551616\n", "more than 64 bits can hold");
  refuse(h + "a,1,1,1\n", "in.csv:2: lower is 1 and upper 1");
  refuse(h + "a,2,1,1\n", "in.csv:2: lower is 2 and upper 1");
  refuse(h + "a,0,1,1\nb,0,1,1\na,0,1,1\n", "in.csv:4: id 'a' is also that of line 2");
  refuse(h + "\"a,0,1,1\n", "a quote is opened and not closed");
  refuse(h + "a,0,1,9223372036854775807\nb,0,1,9223372036854775807\nc,0,1,9223372036854775807\n",
         "larger than any arena can be");
  refuse("id,lower,upper,size,alignment\na,0,1,1,3\n", "alignment is 3, which is not a power of two");
  refuse("id,lower,upper,size,alignment\na,0,1,1,0\n", "alignment is 0, which is not a power of two");
  refuse("id,lower,upper,size,alignment,offset\na,0,1,1,8,4\n",
         "offset is 4, which the alignment 8 does not divide");
  refuse("id,lower,upper,size,offset\na,0,3,4,0\nb,5,6,1,\nc,2,4,4,3\n",
         "in.csv:4: buffer 'c' is fixed at 3, where buffer 'a' of line 2 is fixed at the same time");
  refuse("id,lower,upper,size,offset\na,0,3,4,18446744073709551614\n", "more than 64 bits can hold");
  const std::string good = h + "a,0,1,1\n";
  refuse(good, "--capacity must be a whole number", "--capacity 1M");
  refuse(good, "--alignment must be a power of two", "--alignment 12");
  refuse(good, "effort", "--effort much");
  refuse(good, "seconds", "--seconds -2");
  refuse(good, "plan-packed", "--planner plan-paked");
  refuse(good, "has no --effort", "--planner plan-greedy --effort fast");
  EXPECT_EQ(run_regie("plan-memory /does/not/exist.csv").exit_code, 2);
}

TEST_F(PlanMemoryCommand, NothingIsWrittenWhereItCannotBe) {
  scratch_.write("in.csv", "id,lower,upper,size\na,0,1,1\n");
  const ProcessResult r = run_regie("plan-memory " + shell_word(scratch_.path("in.csv")) + " -o " +
                                    shell_word(scratch_.path("no/such/out.csv")));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.out, "") << "no report of a plan that is nowhere";
}

TEST_F(PlanMemoryCommand, TheSameBytesTwiceAndAPicture) {
  const std::string first = scratch_.path("1.csv"), second = scratch_.path("2.csv"),
                    svg = scratch_.path("g.svg");
  for (const std::string& path : {first, second})
    ASSERT_EQ(run_regie("plan-memory " + kProblems + "G.csv --verify -o " + shell_word(path) + " --svg " +
                        shell_word(svg))
                  .exit_code,
              0);
  EXPECT_EQ(slurp(first), slurp(second));
  const std::string picture = slurp(svg);
  EXPECT_TRUE(picture.starts_with("<svg xmlns=")) << picture.substr(0, 80);
  size_t boxes = 0;
  for (size_t at = picture.find("<title>"); at != picture.npos; at = picture.find("<title>", at + 1)) ++boxes;
  EXPECT_EQ(boxes, 308u) << "one a buffer";
}

}  // namespace
}  // namespace regie::test
