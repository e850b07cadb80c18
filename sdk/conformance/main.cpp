// regie-conformance --plugin FILE [--engine-plugin FILE] [--reference FILE]... [--engine NAME] [--device
// NAME] [--set-engine KEY=VALUE]...
//                   [--set-device KEY=VALUE]... [--list FILE] [GoogleTest flags]
//
// The list names tests that are not run and tests that are known to fail, one a line with its reason:
//   unsupported       Device.AFenceHoldsAStreamBack*   one stream only
//   expected-failure  Of/Kernels.SurviveDamage/Conv    bug 17
// An expected failure runs in a process of its own and must fail; one that passes is an error, as is a line
// that fits no test. Without --engine and --device the library's first ones are taken.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "suite.h"

namespace regie::conformance {
namespace {

Suite chosen;

struct Options {
  std::string plugin, engine_plugin, engine, device, list;
  std::vector<std::string> references;
  std::vector<std::pair<std::string, std::string>> engine_settings, device_settings;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 >= argc) throw std::runtime_error(flag + " needs a value");
    const std::string value = argv[i + 1];
    auto setting = [&]() -> std::pair<std::string, std::string> {
      const size_t at = value.find('=');
      if (at == std::string::npos) throw std::runtime_error(flag + " needs KEY=VALUE");
      return {value.substr(0, at), value.substr(at + 1)};
    };
    if (flag == "--plugin")
      o.plugin = value;
    else if (flag == "--engine-plugin")
      o.engine_plugin = value;
    else if (flag == "--engine")
      o.engine = value;
    else if (flag == "--device")
      o.device = value;
    else if (flag == "--list")
      o.list = value;
    else if (flag == "--reference")
      o.references.push_back(value);
    else if (flag == "--set-engine")
      o.engine_settings.push_back(setting());
    else if (flag == "--set-device")
      o.device_settings.push_back(setting());
    else
      throw std::runtime_error("unknown option " + flag);
  }
  if (o.plugin.empty()) throw std::runtime_error("--plugin is missing");
  return o;
}

template <class Info>
uint32_t index_of(const Info* infos, uint32_t count, const std::string& name, const char* what) {
  if (name.empty() && count) return 0;
  for (uint32_t i = 0; i < count; ++i)
    if (sdk::sv(infos[i].name) == name) return i;
  throw std::runtime_error(std::string("the library has no ") + what + " '" + name + "'");
}

struct Line {
  bool expected_failure;
  std::string pattern, reason;
};

bool fits(const std::string& pattern, const std::string& name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return name == pattern;
}

std::vector<std::string> all_tests() {
  std::vector<std::string> names;
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int s = 0; s < unit.total_test_suite_count(); ++s)
    for (int t = 0; t < unit.GetTestSuite(s)->total_test_count(); ++t)
      names.push_back(std::string(unit.GetTestSuite(s)->name()) + "." +
                      unit.GetTestSuite(s)->GetTestInfo(t)->name());
  return names;
}

std::vector<Line> read_list(const std::string& path) {
  std::vector<Line> lines;
  if (path.empty()) return lines;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    std::istringstream words(text);
    std::string kind, pattern, reason;
    if (!(words >> kind) || kind[0] == '#') continue;
    words >> pattern >> std::ws;
    std::getline(words, reason);
    const std::string where = path + ":" + std::to_string(number) + ": ";
    if (kind != "unsupported" && kind != "expected-failure")
      throw std::runtime_error(where + "unknown kind '" + kind + "'");
    if (reason.empty()) throw std::runtime_error(where + "a pattern and a reason must follow");
    bool used = false;
    for (const std::string& name : all_tests()) used = used || fits(pattern, name);
    if (!used) throw std::runtime_error(where + "no test is called '" + pattern + "'");
    lines.push_back({kind == "expected-failure", pattern, reason});
  }
  return lines;
}

// The suite once more for one test: true if it fails there, or takes its process with it.
bool fails_alone(const std::string& test, const std::vector<std::string>& arguments) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    std::vector<std::string> words = arguments;
    words.push_back("--gtest_filter=" + test);
    words.push_back("--gtest_brief=1");
    std::vector<char*> raw;
    for (std::string& w : words) raw.push_back(w.data());
    raw.push_back(nullptr);
    if (!std::freopen("/dev/null", "w", stdout)) _exit(3);
    execv("/proc/self/exe", raw.data());
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) > 1)
    throw std::runtime_error("could not run " + test + " by itself");
  return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + 1);
  testing::InitGoogleTest(&argc, argv);
  const Options o = parse(argc, argv);
  // What a process for one test gets: everything but the list and GoogleTest's own flags.
  for (int i = 1; i < argc; i += 2)
    if (std::string(argv[i]) != "--list") arguments.insert(arguments.end(), {argv[i], argv[i + 1]});
  for (const std::string& path : o.references)
    if (std::string problem = add_reference_kernels(Library(path)); !problem.empty())
      throw std::runtime_error(problem);
  static const Library library(o.plugin);
  static const Library engine_library(o.engine_plugin.empty() ? o.plugin : o.engine_plugin);
  if (!engine_library.engines() || !library.devices())
    throw std::runtime_error(o.plugin + (o.engine_plugin.empty() ? "" : " and " + o.engine_plugin) +
                             " have not both an engine and a device");
  chosen.library = &library;
  chosen.engine_library = &engine_library;
  const regie_engine_table& engines = *engine_library.engines();
  chosen.engine = index_of(engines.engines, engines.count, o.engine, "engine");
  chosen.device = index_of(library.devices()->devices, library.devices()->count, o.device, "device");
  chosen.engine_settings = Settings(o.engine_settings);
  chosen.device_settings = Settings(o.device_settings);

  const std::vector<Line> lines = read_list(o.list);
  int surprises = 0;
  std::string without;
  for (const Line& line : lines) {
    without += (without.empty() ? "" : ":") + line.pattern;
    if (!line.expected_failure) {
      std::printf("not supported: %s (%s)\n", line.pattern.c_str(), line.reason.c_str());
      continue;
    }
    for (const std::string& name : all_tests()) {
      if (!fits(line.pattern, name)) continue;
      const bool failed = fails_alone(name, arguments);
      std::printf("%s: %s (%s)\n", failed ? "fails as expected" : "PASSES, but is listed as a failure",
                  name.c_str(), line.reason.c_str());
      surprises += !failed;
    }
  }
  if (!without.empty()) {
    const std::string filter = GTEST_FLAG_GET(filter);
    GTEST_FLAG_SET(filter, filter + (filter.find('-') == std::string::npos ? "-" : ":") + without);
  }
  return RUN_ALL_TESTS() || surprises ? 1 : 0;
}

}  // namespace

const Suite& suite() { return chosen; }

}  // namespace regie::conformance

int main(int argc, char** argv) {
  try {
    return regie::conformance::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "regie-conformance: %s\n", e.what());
    return 2;
  }
}
