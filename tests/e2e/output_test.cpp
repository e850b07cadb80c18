// Where input comes from and output goes to when neither is a plain file with room: pipes, devices, full
// disks, names that no file can have; and sizes that no memory has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

using testing::HasSubstr;

const std::string kRegie = shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie");
const char kGraph[] = "graph @g(%x: f32[2]) -> (%y) {\n  %y: f32[2] = Relu(%x)\n}\n";

TEST(Output, AFullOneIsAFailure) {
  Scratch s;
  const std::string graph = shell_word(s.write("g.rg", kGraph));
  for (const std::string& arguments :
       {"opt " + graph + " --passes infer-shapes", std::string("plugins list"), std::string("--help")}) {
    const ProcessResult r = run_shell("( " + kRegie + " " + arguments + " > /dev/full )");
    EXPECT_EQ(r.exit_code, 2) << arguments;
    EXPECT_THAT(r.err, HasSubstr("cannot write to standard output")) << arguments;
  }
}

TEST(Output, PipesAreReadAndDevicesRefused) {
  Scratch s;
  const std::string graph = shell_word(s.write("g.rg", kGraph));
  const ProcessResult piped =
      run_shell("( cat " + graph + " | " + kRegie + " opt /dev/stdin --passes infer-shapes )");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, kGraph);
  ASSERT_EQ(::mkfifo(s.path("fifo").c_str(), 0600), 0);  // that nobody writes to
  for (const std::string& from :
       {shell_word(s.path("fifo")), std::string("/dev/zero"), std::string("/dev/null")}) {
    const ProcessResult r = run_shell("timeout 20 " + kRegie + " opt " + from + " --passes infer-shapes");
    EXPECT_EQ(r.exit_code, 2) << from << r.err;
  }
}

TEST(Output, AllOutputsAreWrittenOrNone) {
  Scratch s;
  const std::string graph =
      s.write("g.rg", "graph @g(%x: f32[2]) -> (%y, %z as \"" + std::string(300, 'z') +
                          "\") {\n  %y: f32[2] = Relu(%x)\n  %z: f32[2] = Neg(%x)\n}\n");
  const ProcessResult r =
      run_regie("run " + shell_word(graph) + " --random 1 --output-dir " + shell_word(s.path("out")));
  EXPECT_EQ(r.exit_code, 2) << r.out << r.err;
  EXPECT_THAT(r.err, HasSubstr("too long"));
  EXPECT_TRUE(std::filesystem::is_empty(s.path("out")));
}

TEST(Output, SizesBeyondTheLibrariesEndInWords) {
  Scratch s;
  const std::string digits = shell_word(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx");
  for (const char* batch : {"2147483647", "4294967296", "1099511627776", "9007199254740992"}) {
    const ProcessResult r =
        run_regie("compile " + digits + " --shape x=" + batch + ",1,8,8 -o " + shell_word(s.path("o.rgm")));
    EXPECT_TRUE(r.exit_code == 0 || (r.exit_code == 2 && !r.err.empty()))
        << batch << ": " << r.exit_code << r.err;
  }
}

}  // namespace
}  // namespace regie::test
