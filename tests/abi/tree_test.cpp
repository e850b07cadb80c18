// What the tree promises about the boundary: built-in plug-ins export one symbol and need nothing of the
// kernel, and the kernel names no operator beyond the structural ones.
#include <gtest/gtest.h>
#include <stdio.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "plugins/host.h"
#include "regie_test_paths.h"

namespace regie {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return lines;
  std::string text;
  char block[4096];
  while (size_t n = fread(block, 1, sizeof block, pipe)) text.append(block, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

#ifndef REGIE_ABI_STATIC
TEST(AbiTree, BuiltInPluginsExportOneSymbolAndNeedNothingOfTheKernel) {
  size_t libraries = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(REGIE_TEST_PLUGIN_DIR)) {
    if (entry.path().extension() != ".so") continue;
    // Left behind in the build folder by a plug-in that is no more: the next build makes no manifest for it.
    ASSERT_TRUE(fs::exists(fs::path(entry.path()).replace_extension(".toml"))) << entry.path();
    ++libraries;
    const std::string file = "'" + entry.path().string() + "'";
    std::vector<std::string> exported;
    for (const std::string& line : lines_of("nm -D --defined-only --format=posix " + file)) {
      const std::string name = line.substr(0, line.find(' '));
      // AddressSanitizer marks each global that is visible.
      if (REGIE_TEST_SANITIZER[0] != '\0' && name.rfind("__odr_asan", 0) == 0) continue;
      exported.push_back(name);
    }
    EXPECT_EQ(exported, std::vector<std::string>{"regie_plugin_entry"}) << entry.path();
    for (const std::string& line : lines_of("nm -D --undefined-only " + file + " | c++filt"))
      EXPECT_EQ(line.find("regie"), std::string::npos) << entry.path() << " needs " << line;
  }
  EXPECT_GT(libraries, 5u);
}
#else
TEST(AbiTree, BuiltInPluginsAreLinkedIn) {
  const auto host = *PluginHost::create();
  EXPECT_GT(host->manifests().size(), 5u);
  for (const Manifest& m : host->manifests()) EXPECT_EQ(m.library, "") << m.path;
}
#endif

// Text of a source without comments that begin with //; good enough for code that is formatted by a tool.
std::string without_comments(const std::string& text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    bool quoted = false;
    size_t end = line.size();
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      if (line[i] == '\\')
        ++i;
      else if (line[i] == '"')
        quoted = !quoted;
      else if (!quoted && line[i] == '/' && line[i + 1] == '/') {
        end = i;
        break;
      }
    }
    out.append(line, 0, end).append("\n");
  }
  return out;
}

// Two types of one name would be one to the linker: members that the compiler does not inline are then those
// of either.
TEST(AbiTree, TypesOfTheKernelHaveOneDefinition) {
  const std::regex definition(R"(^(?:struct|class) (\w+)(?: final)?(?: : [^{;]*)? \{)");
  std::map<std::string, fs::path> seen;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(REGIE_TEST_SOURCE_DIR "/kernel")) {
    if (entry.path().extension() != ".h") continue;
    std::istringstream in(read(entry.path()));
    for (std::string line; std::getline(in, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, definition)) continue;
      const auto [it, fresh] = seen.emplace(found[1], entry.path());
      EXPECT_TRUE(fresh) << found[1] << " is defined in " << it->second << " and in " << entry.path();
    }
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(AbiTree, TheKernelNamesNoOperator) {
  const fs::path source = REGIE_TEST_SOURCE_DIR;
  std::set<std::string> names;
  const std::regex name_line("(^|\n)[ \t]*name[ \t]*=[ \t]*\"([A-Za-z0-9_.]+)\"");
  for (const fs::directory_entry& entry : fs::directory_iterator(source / "configs/ops")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string text = read(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), name_line), end; at != end; ++at)
      names.insert((*at)[2]);
  }
  ASSERT_GT(names.size(), 50u);
  ASSERT_TRUE(names.count("Conv") && names.count("Relu") && names.count("MatMul"));
  for (const char* structural : {"If", "Loop", "Scan", "regie.Copy", "regie.Call"}) names.erase(structural);

  size_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / "kernel")) {
    const std::string ending = entry.path().extension().string();
    if (ending != ".cpp" && ending != ".h" && ending != ".proto") continue;
    ++files;
    const std::string code = without_comments(read(entry.path()));
    for (const std::string& name : names)
      EXPECT_EQ(code.find('"' + name + '"'), std::string::npos)
          << entry.path() << " names the operator " << name;
  }
  EXPECT_GT(files, 50u);
}

}  // namespace
}  // namespace regie
