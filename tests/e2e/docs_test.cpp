// What the documents and the help texts show is run: every line of a code block, or of a help text's example,
// that begins with "regie", one document after the other, each in a folder that holds the files they speak
// of.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

namespace fs = std::filesystem;

const std::string kSource = REGIE_TEST_SOURCE_DIR;
const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/";

// The files that documents take for granted.
void furnish(const Scratch& scratch) {
  fs::copy(kDigits + "digits.onnx", scratch.path("model.onnx"));
  for (const char* name : {"image.npy", "x.npy"}) fs::copy(kDigits + "digit_3.npy", scratch.path(name));
  fs::copy(kDigits + "images.npy", scratch.path("images.npy"));
  fs::copy(std::string(REGIE_TEST_MODELS_DIR) + "/memory/C.csv", scratch.path("buffers.csv"));
  fs::copy(kSource + "/configs/rules/conv.toml", scratch.path("my_rules.toml"));
  fs::copy(kSource + "/configs/pipelines/unoptimised.toml", scratch.path("mine.toml"));
  fs::create_directory_symlink(kSource + "/configs", scratch.path("configs"));
  scratch.write(
      "graph.rg",
      "graph @g(%x: f32[2,3]) -> (%y) {\n  %a: f32[2,3] = Identity(%x)\n  %y: f32[2,3] = Relu(%a)\n}\n");
}

std::vector<std::string> commands_of(const std::string& document) {
  std::vector<std::string> commands;
  std::istringstream text(slurp(document));
  std::string line;
  bool code = false;
  while (std::getline(text, line)) {
    if (line.starts_with("```")) code = !code;
    if (!code) continue;
    if (line.starts_with("build/release/bin/")) line = line.substr(18);
    if (line.starts_with("regie ")) commands.push_back(line);
  }
  return commands;
}

// Runs them in order in one furnished folder; `regie` is the built one.
void run_all(const std::vector<std::string>& commands, const std::string& from) {
  Scratch scratch;
  furnish(scratch);
  ASSERT_EQ(run_shell("cd " + shell_word(scratch.path()) + " && " +
                      shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin/regie") +
                      " compile model.onnx -o model.rgm")
                .exit_code,
            0);
  for (const std::string& command : commands) {
    ProcessResult r = run_shell("cd " + shell_word(scratch.path()) +
                                " && PATH=" + shell_word(std::string(REGIE_TEST_BUILD_DIR) + "/bin") +
                                ":$PATH && " + command);
    EXPECT_EQ(r.exit_code, 0) << from << ": " << command << "\n" << r.out << r.err;
  }
}

TEST(Documents, CommandsWork) {
  std::vector<std::string> documents{kSource + "/README.md"};
  for (const auto& entry : fs::directory_iterator(kSource + "/docs"))
    if (entry.path().extension() == ".md") documents.push_back(entry.path().string());
  std::sort(documents.begin(), documents.end());
  size_t commands = 0;
  for (const std::string& document : documents) {
    auto found = commands_of(document);
    commands += found.size();
    if (found.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(run_all(found, document));
  }
  EXPECT_GE(commands, 10u);
}

// As `regie --help` lists them.
std::vector<std::string> commands_of_regie() {
  std::vector<std::string> commands;
  std::istringstream text(run_regie("--help").out);
  std::string line, word;
  while (std::getline(text, line))
    if (line.starts_with("  ") && !line.starts_with("  regie") && std::istringstream(line) >> word)
      commands.push_back(word);
  return commands;
}

TEST(Documents, HelpOfEveryCommandShowsAnExampleThatWorks) {
  const std::vector<std::string> all = commands_of_regie();
  EXPECT_GE(all.size(), 10u);
  for (const std::string& command : all) {
    ProcessResult help = run_regie(command + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    size_t at = help.out.find("Example:\n");
    ASSERT_NE(at, std::string::npos) << command << ": " << help.out;
    std::istringstream text(help.out.substr(at + 9));
    std::vector<std::string> examples;
    std::string line;
    while (std::getline(text, line))
      if (line.starts_with("  regie ")) examples.push_back(line.substr(2));
    EXPECT_FALSE(examples.empty()) << command;
    ASSERT_NO_FATAL_FAILURE(run_all(examples, std::string("regie ") + command + " --help"));
  }
}

}  // namespace
}  // namespace regie::test
