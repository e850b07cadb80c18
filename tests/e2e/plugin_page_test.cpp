// docs/plugin.md is followed to the letter: its files are written, its commands run, against an installed
// Regie.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string kind;    // after the three backticks
  std::string before;  // the text between this block and the one before it
  std::string text;
};

std::vector<Block> blocks_of(const std::string& document) {
  std::vector<Block> blocks;
  std::istringstream in(document);
  std::string line, before;
  Block* open = nullptr;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) {
      if (open) {
        open = nullptr;
      } else {
        blocks.push_back({line.substr(3), before, {}});
        open = &blocks.back();
        before.clear();
      }
    } else {
      (open ? open->text : before) += line + "\n";
    }
  }
  return blocks;
}

// The last `name` in backticks, with a dot, before a block.
std::string file_named_in(const std::string& text) {
  std::string found;
  for (size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    const size_t end = text.find('`', at + 1);
    if (end == std::string::npos) break;
    const std::string word = text.substr(at + 1, end - at - 1);
    if (word.find('.') != std::string::npos && word.find(' ') == std::string::npos) found = word;
    at = end;
  }
  return found;
}

TEST(Documents, PluginPageWorksAsItIsWritten) {
  Scratch scratch;
  const std::string prefix = scratch.path("prefix");
  const ProcessResult install =
      run_shell(shell_word(REGIE_TEST_CMAKE) + " --install " + shell_word(REGIE_TEST_BUILD_DIR) +
                " --prefix " + shell_word(prefix));
  ASSERT_EQ(install.exit_code, 0) << install.err;
  fs::copy(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx", scratch.path("model.onnx"));
  scratch.write("relu.rg",
                "graph @g(%x: f32[4]) -> (%b) {\n  %a: f32[4] = Relu(%x)\n  %b: f32[4] = Relu(%a)\n}\n");

  std::string commands;
  size_t files = 0;
  for (const Block& block : blocks_of(slurp(std::string(REGIE_TEST_SOURCE_DIR) + "/docs/plugin.md"))) {
    if (block.kind.empty()) {
      if (block.text.find("$PREFIX") != std::string::npos) commands = block.text;
      continue;
    }
    std::string name = block.kind == "toml" ? "my-pipeline.toml" : file_named_in(block.before);
    fs::create_directories(fs::path(scratch.path(name)).parent_path());
    scratch.write(name, block.text);
    ++files;
  }
  ASSERT_EQ(files, 3u);
  ASSERT_TRUE(fs::exists(scratch.path("my-pass/CMakeLists.txt")) &&
              fs::exists(scratch.path("my-pass/merge_relu.cpp")));
  ASSERT_NE(commands, "");
  const std::string start = "set -e; cd " + shell_word(scratch.path()) +
                            "; export PREFIX=" + shell_word(prefix) + " CXX=" + shell_word(REGIE_TEST_CXX) +
                            "\n";
  const ProcessResult r = run_shell(start + commands);
  ASSERT_EQ(r.exit_code, 0) << commands << r.out << r.err;
  EXPECT_NE(r.out.find("rewrite merge-relu"), std::string::npos) << r.out;
  // One Relu is left.
  const size_t graph = r.out.find("graph @g");
  ASSERT_NE(graph, std::string::npos) << r.out;
  const size_t relu = r.out.find("Relu(%x)", graph);
  EXPECT_NE(relu, std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("Relu(%a)", graph), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(scratch.path("model.rgm")));
}

}  // namespace
}  // namespace regie::test
