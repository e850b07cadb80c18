// docs/plugin.md and docs/overlay.md are followed to the letter: their files are written, their commands run,
// against an installed Regie.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/npy.h"
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

// Writes the page's files below the scratch folder, each named before its block, and runs its commands there,
// with a prefix that was just installed.
class Page {
 public:
  explicit Page(const std::string& name) {
    const ProcessResult install =
        run_shell(shell_word(REGIE_TEST_CMAKE) + " --install " + shell_word(REGIE_TEST_BUILD_DIR) +
                  " --prefix " + shell_word(prefix()));
    EXPECT_EQ(install.exit_code, 0) << install.err;
    for (const Block& block : blocks_of(slurp(std::string(REGIE_TEST_SOURCE_DIR) + "/docs/" + name))) {
      if (block.kind.empty()) {
        if (block.text.find("$PREFIX") != std::string::npos) commands_ = block.text;
        continue;
      }
      const std::string file = file_named_in(block.before);
      fs::create_directories(fs::path(scratch.path(file)).parent_path());
      scratch.write(file, block.text);
      files.push_back(file);
    }
  }
  std::string prefix() const { return scratch.path("prefix"); }
  ProcessResult run() const {
    EXPECT_NE(commands_, "");
    return run_shell("set -e; cd " + shell_word(scratch.path()) + "; export PREFIX=" + shell_word(prefix()) +
                     " CXX=" + shell_word(REGIE_TEST_CXX) + "\n" + commands_);
  }
  Scratch scratch;
  std::vector<std::string> files;

 private:
  std::string commands_;
};

TEST(Documents, PluginPageWorksAsItIsWritten) {
  Page page("plugin.md");
  fs::copy(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx", page.scratch.path("model.onnx"));
  page.scratch.write("relu.rg",
                     "graph @g(%x: f32[4]) -> (%b) {\n  %a: f32[4] = Relu(%x)\n  %b: f32[4] = Relu(%a)\n}\n");
  EXPECT_EQ(page.files, (std::vector<std::string>{"my-pass/CMakeLists.txt", "my-pass/merge_relu.cpp",
                                                  "my-pipeline.toml"}));
  const ProcessResult r = page.run();
  ASSERT_EQ(r.exit_code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("rewrite merge-relu"), std::string::npos) << r.out;
  // One Relu is left.
  const size_t graph = r.out.find("graph @g");
  ASSERT_NE(graph, std::string::npos) << r.out;
  const size_t relu = r.out.find("Relu(%x)", graph);
  EXPECT_NE(relu, std::string::npos) << r.out;
  EXPECT_EQ(r.out.find("Relu(%a)", graph), std::string::npos) << r.out;
  EXPECT_TRUE(fs::exists(page.scratch.path("model.rgm")));
}

// Every file of the installation with its size and time.
std::vector<std::string> state_of(const std::string& folder) {
  std::vector<std::string> state;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      state.push_back(entry.path().string() + " " + std::to_string(entry.file_size()) + " " +
                      std::to_string(entry.last_write_time().time_since_epoch().count()));
  std::sort(state.begin(), state.end());
  return state;
}

// An operator of the overlay's own is inferred, folded, fused and run, and nothing of the installation
// changes.
TEST(Documents, OverlayPageWorksAsItIsWritten) {
  Page page("overlay.md");
  ASSERT_EQ(page.files.size(), 6u);
  constexpr int64_t kRows = 3;
  std::vector<float> x;
  for (int i = 0; i < kRows * 4; ++i) x.push_back(static_cast<float>(i) / 4 - 1);
  const int64_t dims[] = {kRows, 4};
  const regie_tensor tensor{REGIE_F32, 0, 2, dims, nullptr, x.data(), x.size() * sizeof(float)};
  ASSERT_TRUE(cli::write_npy(page.scratch.path("x.npy"), tensor).ok());
  const auto before = state_of(page.prefix());
  const ProcessResult r = page.run();
  ASSERT_EQ(r.exit_code, 0) << r.out << r.err;
  EXPECT_EQ(state_of(page.prefix()), before);

  EXPECT_NE(r.out.find("ok   acme-affine: 2 tests"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("rule acme-affine x1"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("fold acme.Affine x1"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("(acme.Affine) on cpu, kernel reference acme.Affine"), std::string::npos) << r.out;
  const auto y = cli::read_npy(page.scratch.path("out/y.npy"));
  ASSERT_TRUE(y.ok()) << y.status().to_string();
  ASSERT_EQ(y->count(), kRows * 4);
  const float s[] = {1, 2, 3, 4}, b[] = {0.5f, 0.25f, 0.125f, 1};
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_FLOAT_EQ(y->as<float>()[i], x[i] * (s[i % 4] * s[i % 4] + b[i % 4]) + b[i % 4]) << i;
}

// A program written by hand is taken where it is predicted to be quicker, and the model runs without the
// overlay.
TEST(Documents, TileOverlayPageWorksAsItIsWritten) {
  Page page("tile-overlay.md");
  EXPECT_EQ(page.files, (std::vector<std::string>{"quick/relu.cpp", "quick/CMakeLists.txt", "relu.rg"}));
  const std::vector<std::vector<int64_t>> dims{{256}, {16, 1024}};
  const char* inputs[] = {"few", "many"};
  std::vector<float> x[2];
  for (size_t t = 0; t < 2; ++t) {
    const size_t count = t == 0 ? 256 : 16 * 1024;
    for (size_t i = 0; i < count; ++i) x[t].push_back(static_cast<float>(i * 7919 % 1000) / 250 - 2);
    const regie_tensor tensor{
        REGIE_F32, 0, static_cast<int32_t>(dims[t].size()), dims[t].data(), nullptr, x[t].data(), count * 4};
    ASSERT_TRUE(cli::write_npy(page.scratch.path(std::string(inputs[t]) + ".npy"), tensor).ok());
  }
  const ProcessResult r = page.run();
  ASSERT_EQ(r.exit_code, 0) << r.out << r.err;
  EXPECT_NE(
      r.out.find("node 'short' (Relu) on aicore, kernel hand-written relu of few elements (regie.tile/1)"),
      std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("us; its own: vector Relu, "), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("node 'long' (Relu) on aicore, kernel vector Relu (regie.tile/1)"), std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("us; hand-written relu of few elements: "), std::string::npos) << r.out;
  for (size_t t = 0; t < 2; ++t) {
    const auto y = cli::read_npy(page.scratch.path(t == 0 ? "out/a.npy" : "out/b.npy"));
    ASSERT_TRUE(y.ok()) << y.status().to_string();
    ASSERT_EQ(y->count(), static_cast<int64_t>(x[t].size()));
    for (size_t i = 0; i < x[t].size(); ++i) EXPECT_EQ(y->as<float>()[i], std::max(x[t][i], 0.0f)) << i;
  }
}

}  // namespace
}  // namespace regie::test
