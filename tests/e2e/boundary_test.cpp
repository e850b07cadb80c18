// Proof of the boundary: one built-in plug-in of each kind, copied out of the tree under another name and
// built from the install prefix alone, takes the place of the original and gives the same model but for the
// identity stamp.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "model/file.h"
#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::test {
namespace {

namespace fs = std::filesystem;

const std::string kSource = REGIE_TEST_SOURCE_DIR;
const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";

// Folders under plugins/, one of each kind of table: frontend; op-shape and op-kernel; rewrite; pass; placer;
// scheduler; memory; engine and device (two of them).
const char* const kPlugins[] = {"frontends/onnx",           "ops/standard",        "passes/remove-identity",
                                "passes/fold-constants",    "passes/infer-shapes", "passes/place-by-cost",
                                "passes/schedule-in-order", "passes/plan-packed",  "passes/insert-copies",
                                "backends/host_cpu",        "backends/null"};

void must(const std::string& command) {
  ProcessResult r = run_shell(command);
  ASSERT_EQ(r.exit_code, 0) << command << "\n"
                            << r.out.substr(r.out.size() > 4000 ? r.out.size() - 4000 : 0) << r.err;
}

std::string replace_in_file(const std::string& path, const std::string& pattern, const std::string& by) {
  std::string text = slurp(path);
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(pattern))) << path << " has no " << pattern;
  std::string found = match.size() > 1 ? match[1].str() : "";
  std::ofstream(path) << std::regex_replace(text, std::regex(pattern), by);
  return found;
}

// The model's bytes with the names of its plug-ins taken out.
std::string without_identity(const std::string& path, const Scratch& scratch) {
  auto loaded = load_model(path);
  EXPECT_TRUE(loaded.ok()) << loaded.status().to_string();
  if (!loaded.ok()) return "";
  Model model = **loaded;
  model.plugins.clear();
  EXPECT_TRUE(save_model(model, scratch.path("plain.rgm")).ok());
  return slurp(scratch.path("plain.rgm"));
}

TEST(Boundary, PluginsBuiltOutsideTheTreeGiveTheSameModel) {
  Scratch scratch;
  const std::string prefix = scratch.path("prefix"), moved = scratch.path("moved");
  ASSERT_NO_FATAL_FAILURE(must(shell_word(REGIE_TEST_CMAKE) + " --install " +
                               shell_word(REGIE_TEST_BUILD_DIR) + " --prefix " + shell_word(prefix)));
  const std::string regie = shell_word(prefix + "/bin/regie");
  for (const char* target : {"host_cpu", "host_and_null"})
    ASSERT_NO_FATAL_FAILURE(must(regie + " compile " + shell_word(kDigits) + " --target " + target + " -o " +
                                 shell_word(scratch.path(std::string("original-") + target + ".rgm"))));

  std::ofstream top(scratch.path("CMakeLists.txt"));
  top << "cmake_minimum_required(VERSION 3.25)\nproject(Moved LANGUAGES C CXX)\nset(CMAKE_CXX_STANDARD 20)\n"
         "find_package(Regie REQUIRED)\nset(REGIE_PLUGIN_OUTPUT_DIRECTORY \""
      << moved << "\")\n";
  std::vector<std::string> names;
  for (const char* plugin : kPlugins) {
    std::string folder = scratch.path(std::string("src-") + fs::path(plugin).filename().string());
    fs::copy(kSource + "/plugins/" + plugin, folder, fs::copy_options::recursive);
    if (std::string(plugin) == "frontends/onnx")
      fs::copy(kSource + "/third_party/onnx/onnx.proto", folder + "/onnx.proto");
    names.push_back(replace_in_file(folder + "/CMakeLists.txt", "NAME\\s+([a-z0-9_-]+)", "NAME $1-moved"));
    top << "add_subdirectory(" << fs::path(folder).filename().string() << ")\n";
  }
  top.close();
  ASSERT_NO_FATAL_FAILURE(must(shell_word(REGIE_TEST_CMAKE) + " -G Ninja -S " + shell_word(scratch.path()) +
                               " -B " + shell_word(scratch.path("build")) +
                               " -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=" +
                               shell_word(REGIE_TEST_CXX) + " -DCMAKE_PREFIX_PATH=" + shell_word(prefix)));
  ASSERT_NO_FATAL_FAILURE(
      must(shell_word(REGIE_TEST_CMAKE) + " --build " + shell_word(scratch.path("build")) + " -j 2"));

  for (const std::string& name : names) {
    EXPECT_TRUE(fs::remove(prefix + "/lib/regie/plugins/" + name + ".so")) << name;
    fs::remove(prefix + "/lib/regie/plugins/" + name + ".toml");
    EXPECT_TRUE(fs::exists(moved + "/" + name + "-moved.so")) << name;
  }
  EXPECT_EQ(
      run_shell(regie + " compile " + shell_word(kDigits) + " -o " + shell_word(scratch.path("none.rgm")))
          .exit_code,
      2)
      << "the originals were still found";
  for (const char* target : {"host_cpu", "host_and_null"}) {
    std::string rgm = scratch.path(std::string("moved-") + target + ".rgm");
    ASSERT_NO_FATAL_FAILURE(must("REGIE_PLUGIN_PATH=" + shell_word(moved) + " " + regie + " compile " +
                                 shell_word(kDigits) + " --target " + target + " -o " + shell_word(rgm)));
    auto model = load_model(rgm);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    size_t from_outside = 0;
    for (const std::string& p : (*model)->plugins) from_outside += p.find("-moved") != std::string::npos;
    EXPECT_GE(from_outside, 9u);
    EXPECT_TRUE(without_identity(rgm, scratch) ==
                without_identity(scratch.path(std::string("original-") + target + ".rgm"), scratch))
        << "the moved plug-ins gave another model for " << target;
    ASSERT_NO_FATAL_FAILURE(must("REGIE_PLUGIN_PATH=" + shell_word(moved) + " " + regie + " run " +
                                 shell_word(rgm) + " --random 1"));
  }
}

TEST(Boundary, AnEmbeddingProgramBuildsAgainstThePrefix) {
  Scratch scratch;
  const std::string prefix = scratch.path("prefix");
  ASSERT_NO_FATAL_FAILURE(must(shell_word(REGIE_TEST_CMAKE) + " --install " +
                               shell_word(REGIE_TEST_BUILD_DIR) + " --prefix " + shell_word(prefix)));
  ASSERT_NO_FATAL_FAILURE(must(shell_word(REGIE_TEST_CMAKE) + " -G Ninja -S " +
                               shell_word(prefix + "/share/regie/sdk/examples/embed") + " -B " +
                               shell_word(scratch.path("build")) +
                               " -DCMAKE_PREFIX_PATH=" + shell_word(prefix)));
  ASSERT_NO_FATAL_FAILURE(
      must(shell_word(REGIE_TEST_CMAKE) + " --build " + shell_word(scratch.path("build"))));
  const std::string embed = shell_word(scratch.path("build/embed"));
  ASSERT_NO_FATAL_FAILURE(must(shell_word(prefix + "/bin/regie") + " compile " + shell_word(kDigits) +
                               " -o " + shell_word(scratch.path("d.rgm"))));
  for (const std::string& arguments :
       {shell_word(kDigits), shell_word(kDigits) + " host_and_null", shell_word(scratch.path("d.rgm"))}) {
    ProcessResult r = run_shell(embed + " " + arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, "scores: 2 dimensions, 40 bytes\n");
  }
  EXPECT_EQ(run_shell(embed + " /nowhere.onnx").exit_code, 2);
}

}  // namespace
}  // namespace regie::test
