// The command regie-tile: text to bytes and back, what it says of faults, and what it leaves behind.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "programs.h"
#include "regie_test_paths.h"

namespace regie::tile_test {
namespace {

namespace fs = std::filesystem;

class TileTool : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(REGIE_TEST_BUILD_DIR) / "tests" / "tile_tool" /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  // The exit code; what it printed is in the file "said".
  int tool(const std::string& arguments) const {
    std::string command = "cd '" + folder_.string() + "' && '" REGIE_TEST_BUILD_DIR "/bin/regie-tile' " +
                          arguments + " > said 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  fs::path folder_;
};

TEST_F(TileTool, TextToBytesAndBack) {
  const Program p = matmul(50, 48, 100, 32, 48, 2).program;
  write("p.tile", "# a comment\n" + tile::disassemble(p));
  ASSERT_EQ(tool("asm p.tile -o p.bin"), 0) << read("said");
  EXPECT_EQ(read("p.bin"), tile::encode(p));
  ASSERT_EQ(tool("disasm p.bin -o again.tile"), 0) << read("said");
  EXPECT_EQ(read("again.tile"), tile::disassemble(p));
  ASSERT_EQ(tool("disasm p.bin"), 0);
  EXPECT_EQ(read("said"), tile::disassemble(p));
  for (const char* form : {"p.tile", "p.bin"}) {
    ASSERT_EQ(tool(std::string("verify ") + form), 0) << read("said");
    EXPECT_EQ(read("said"), std::string(form) + ": no fault in " +
                                std::to_string(tile::verify(p).instructions) + " concrete instructions\n");
  }
}

TEST_F(TileTool, AFullDeviceIsSaidAndStaysADevice) {
  const Program p = vector_add(1000, 128, 3).program;
  write("p.tile", tile::disassemble(p));
  write("p.bin", tile::encode(p));
  for (const char* arguments : {"asm p.tile -o /dev/full", "disasm p.bin -o /dev/full"}) {
    EXPECT_EQ(tool(arguments), 2) << arguments;
    EXPECT_NE(read("said").find("/dev/full: cannot be written: No space left"), std::string::npos)
        << read("said");
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(tool("disasm p.bin 2> words > /dev/full; test $? = 2 && cat words"), 0);
  EXPECT_NE(read("said").find("standard output: cannot be written"), std::string::npos) << read("said");
  EXPECT_EQ(tool("asm p.tile -o ./p.tile"), 2);
  EXPECT_NE(read("said").find("is what is read"), std::string::npos) << read("said");
  EXPECT_EQ(read("p.tile"), tile::disassemble(p));
}

TEST_F(TileTool, SaysWhatIsWrongAndLeavesNothing) {
  Program p = vector_add(1000, 128, 3).program;
  p.code.erase(p.code.begin() + 5);  // a wait
  write("p.bin", tile::encode(p));
  EXPECT_EQ(tool("verify p.bin"), 2);
  EXPECT_EQ(read("said").rfind("regie-tile: p.bin: set-twice: core 0, instruction ", 0), 0u) << read("said");
  write("cut.bin", tile::encode(p).substr(0, 300));
  EXPECT_EQ(tool("disasm cut.bin -o out"), 2);
  EXPECT_EQ(read("said"),
            "regie-tile: cut.bin: tile program is damaged: its size does not match its header\n");
  write("bad.tile", "tile 1\n\ncopy ub gm0 to=0\n");
  EXPECT_EQ(tool("asm bad.tile -o out"), 2);
  EXPECT_EQ(read("said"), "regie-tile: bad.tile:3: unknown place 'gm0'\n");
  EXPECT_EQ(tool("asm absent.tile -o out"), 2);
  EXPECT_EQ(read("said"), "regie-tile: absent.tile: cannot be read: No such file or directory\n");
  write("good.tile", tile::disassemble(vector_add(1000, 128, 3).program));
  EXPECT_EQ(tool("asm good.tile -o absent/out"), 2);
  EXPECT_EQ(read("said").rfind("regie-tile: absent/out: cannot be written", 0), 0u) << read("said");
  EXPECT_EQ(tool("asm good.tile"), 2);
  EXPECT_EQ(read("said").rfind("usage: regie-tile asm", 0), 0u);
  EXPECT_EQ(tool("--help"), 0);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_FALSE(fs::exists(folder_ / "out.part"));
}

TEST_F(TileTool, UnusedWritesAreAFaultIfAskedFor) {
  write("p.tile", "tile 1\ncores 1\nchip ub 64\ngm 0 operand 0 64 read\ncopy ub gm0 to=0 from=0 bytes=64\n");
  EXPECT_EQ(tool("verify p.tile"), 0) << read("said");
  EXPECT_EQ(tool("verify p.tile --unused"), 2);
  EXPECT_EQ(read("said"), "regie-tile: p.tile: unused-write: 64 bytes on chip are written and never read\n");
}

}  // namespace
}  // namespace regie::tile_test
