// The boundary, with real shared objects: those of plugins/, each right or wrong in one way.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/names.h"
#include "plugins/host.h"
#include "support/scratch.h"

namespace regie {
namespace {

namespace fs = std::filesystem;

std::string case_folder(const std::string& name, const std::string& set = "all") {
  return std::string(REGIE_ABI_DIR) + "/" + set + "/cases/" + name;
}

std::shared_ptr<PluginHost> host_of(std::vector<std::string> folders) {
  auto host = PluginHost::create(std::move(folders));
  EXPECT_TRUE(host.ok()) << host.status().to_string();
  for (const PluginProblem& p : (*host)->problems()) ADD_FAILURE() << p.path << ": " << p.message;
  return *host;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// Makes a pass of the plug-in, and gives the failure of that.
Status create_pass(PluginHost& host, const std::string& name, const Settings& settings, regie_pass** pass) {
  auto provider = host.pass(name);
  if (!provider.ok()) return provider.status();
  const ConfigText config(settings);
  return call_plugin("pass '" + name + "'", [&] {
    return provider->table->create(provider->index, host_table(), config.get(), pass);
  });
}

Status try_pass(PluginHost& host, const std::string& name, const Settings& settings = {}) {
  regie_pass* pass = nullptr;
  Status s = create_pass(host, name, settings, &pass);
  if (s.ok()) host.pass(name)->table->destroy(pass);
  return s;
}

// What `run` of the pass says: the passes of these tests speak by failing.
std::string words_of_run(PluginHost& host, const std::string& name, regie_pass* pass) {
  regie_pass_context context{};
  context.struct_size = sizeof context;
  context.host = host_table();
  return call_plugin(name, [&] { return host.pass(name)->table->run(pass, &context); }).message();
}

bool mentions(const Status& s, std::string_view text) {
  return s.to_string().find(text) != std::string::npos;
}

void check_good(PluginHost& host, const std::string& name) {
  EXPECT_TRUE(try_pass(host, name, {{"level", "3"}, {"pattern", "a*b"}}).ok())
      << try_pass(host, name).to_string();
  const Status failure = try_pass(host, name, {{"level", "12"}});
  EXPECT_EQ(failure.code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(failure.message(), "level 12 is above 9");
  EXPECT_EQ(try_pass(host, name, {{"level", "x"}}).code(), REGIE_INVALID_INPUT);
  // An exception of the plug-in's own standard library, turned into a status by its own code.
  EXPECT_EQ(try_pass(host, name, {{"pattern", "("}}).code(), REGIE_INTERNAL);
}

TEST(Abi, GoodPluginWorks) {
  const auto host = host_of({case_folder("good")});
  check_good(*host, "abi-good");
  EXPECT_EQ(host->opened(), std::vector<std::string>{"good 1.2.3"});
}

TEST(Abi, AnotherCompilerAndStandardLibraryWork) {
  std::ifstream in(case_folder("libcxx", "good") + "/libcxx.so", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(bytes.find("libc++.so.1"), std::string::npos);
  EXPECT_EQ(bytes.find("libstdc++.so"), std::string::npos);
  const auto host = host_of({case_folder("libcxx", "good"), case_folder("good")});
  check_good(*host, "abi-libcxx");
  check_good(*host, "abi-good");
}

struct Refused {
  const char* folder;
  std::vector<const char*> words;
};

class AbiRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(AbiRefused, ByNameWithTheReason) {
  const Refused& c = GetParam();
  const std::string pass = std::string("abi-") + c.folder;
  const auto host = host_of({case_folder(c.folder), case_folder("good")});
  const Status s = host->pass(pass).status();
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(s, case_folder(c.folder) + "/" + c.folder + ".so")) << s.to_string();
  EXPECT_TRUE(mentions(s, "plug-in '" + std::string(c.folder) + "' is refused")) << s.to_string();
  for (const char* words : c.words)
    EXPECT_TRUE(mentions(s, words)) << words << " is not in: " << s.to_string();
  ASSERT_EQ(host->problems().size(), 1u);
  // The others go on working.
  check_good(*host, "abi-good");
  EXPECT_EQ(host->opened(), std::vector<std::string>{"good 1.2.3"});
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AbiRefused,
    ::testing::Values(Refused{"empty", {"exports no symbol regie_plugin_entry", "REGIE_PLUGIN"}},
                      Refused{"not-data", {"exports no symbol regie_plugin_entry"}},
                      Refused{"newer-major", {"version 2.0", "has 1.0", "use a newer Regie"}},
                      Refused{"older-major", {"version 0.0", "has 1.0", "build it with the SDK"}},
                      Refused{"newer-minor", {"version 1.7", "has 1.0", "use a newer Regie"}},
                      Refused{"bad-magic", {"magic number"}},
                      Refused{"short-entry", {"16 bytes", "needs 48"}},
                      Refused{"other-sanitizer", {"was built with", "AddressSanitizer", "no sanitizer"}},
                      Refused{"hidden-sanitizer", {"run time of a sanitizer"}},
                      Refused{"other-digest", {"draft/regie.pass", "another regie/c/pass.h", "0123456789ab"}},
                      Refused{"no-digest", {"draft/regie.pass has no header digest"}},
                      Refused{"short-table", {"draft/regie.pass has a table of 24 bytes", "struct_size"}},
                      Refused{"other-name", {"name is 'somebody-else'", "manifest says 'other-name'"}},
                      Refused{"no-name", {"name is '(nothing)'"}},
                      Refused{"other-version", {"version is '9.9.9'", "manifest says '1.2.3'"}},
                      Refused{"no-find", {"no find function"}},
                      Refused{"find-throws", {"find function threw an exception"}},
                      Refused{"no-table", {"'engine:abi-no-table'", "no interface draft/regie.engine"}},
                      Refused{"null-function", {"lacks 'run'"}}, Refused{"null-list", {"lacks 'passes'"}},
                      Refused{"count-zero", {"'pass:abi-count-zero', which the library does not provide"}},
                      Refused{"count-rubbish", {"claims 4294967280 entries"}},
                      Refused{"other-entry",
                              {"provides 'pass:abi-another-entry', which its manifest does not name"}},
                      Refused{"nameless-entry", {"entry without a name"}},
                      Refused{"double-entry", {"two entries named 'abi-double-entry'"}},
                      Refused{"unannounced", {"provides 'scheduler:abi-unannounced'"}}),
    [](const auto& info) {
      std::string name = info.param.folder;
      for (char& c : name)
        if (c == '-') c = '_';
      return name;
    });

TEST(Abi, ThrowingPluginIsNamedAndTheOthersWork) {
  const auto host =
      host_of({case_folder("throws"), case_folder("libcxx-throws", "good"), case_folder("good")});
  for (const char* name : {"abi-throws", "abi-libcxx-throws"})
    for (int i = 0; i < 3; ++i) {
      const Status s = try_pass(*host, name);
      EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
      EXPECT_TRUE(mentions(s, std::string("pass '") + name + "' threw an exception")) << s.to_string();
    }
  check_good(*host, "abi-good");
}

TEST(Abi, RubbishStatusIsNamed) {
  const auto host = host_of({case_folder("unknown-status"), case_folder("silent")});
  const Status unknown = try_pass(*host, "abi-unknown-status");
  EXPECT_EQ(unknown.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(unknown, "unknown status code 4711") && mentions(unknown, "abi-unknown-status"));
  const Status silent = try_pass(*host, "abi-silent");
  EXPECT_EQ(silent.code(), REGIE_LIMIT);
  EXPECT_TRUE(mentions(silent, "without saying why")) << silent.to_string();
}

TEST(Abi, OneNameFromTwoPluginsNamesBoth) {
  const auto host = host_of({case_folder("same-1"), case_folder("same-2"), case_folder("good")});
  const Status s = try_pass(*host, "abi-same");
  EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(s, case_folder("same-1") + "/same-1.toml") &&
              mentions(s, case_folder("same-2") + "/same-2.toml"))
      << s.to_string();
  EXPECT_TRUE(host->opened().empty());
  check_good(*host, "abi-good");
}

// Two plug-ins whose messages have one name and different fields: each must get its own back.
void check_messages(PluginHost& host, const std::string& first, const std::string& second) {
  regie_pass *a = nullptr, *b = nullptr;
  const Status made_a = create_pass(host, first, {{"text", "hello"}}, &a);
  ASSERT_TRUE(made_a.ok()) << made_a.to_string();
  const Status made_b = create_pass(host, second, {{"text", "hello"}}, &b);
  ASSERT_TRUE(made_b.ok()) << made_b.to_string();
  // Field 1 and field 7, both of wire type 2 (length, bytes), by protobuf's encoding.
  EXPECT_EQ(words_of_run(host, first, a), "\x0a\x05hello");
  EXPECT_EQ(words_of_run(host, second, b), "\x3a\x05hello");
  host.pass(first)->table->destroy(a);
  host.pass(second)->table->destroy(b);
}

TEST(Abi, MessagesOfOneNameDoNotMeet) {
  const auto host = host_of({case_folder("proto-a"), case_folder("proto-b")});
  check_messages(*host, "abi-proto-a", "abi-proto-b");
}

TEST(Abi, TwoProtobufLibrariesDoNotMeet) {
  const auto host = host_of({case_folder("own-proto-a"), case_folder("own-proto-b")});
  check_messages(*host, "abi-own-proto-a", "abi-own-proto-b");
  // Both really brought theirs, beside the one that this process has.
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  for (const std::string copy : {"a", "b"})
    EXPECT_NE(mapped.find(case_folder("own-proto-" + copy) + "/libabi-own-proto-" + copy + ".so"),
              std::string::npos)
        << mapped;
}

TEST(Abi, TwoCopiesOfOneLibraryDoNotMeet) {
  const auto host = host_of({case_folder("twin-a"), case_folder("twin-b")});
  regie_pass *a = nullptr, *b = nullptr;
  ASSERT_TRUE(create_pass(*host, "abi-twin-a", {}, &a).ok());  // aborts the process if the registry is shared
  ASSERT_TRUE(create_pass(*host, "abi-twin-b", {}, &b).ok());
  EXPECT_EQ(words_of_run(*host, "abi-twin-a", a), "a 1 1 1 1");
  EXPECT_EQ(words_of_run(*host, "abi-twin-b", b), "b 1 1 1 1");
  host->pass("abi-twin-a")->table->destroy(a);
  host->pass("abi-twin-b")->table->destroy(b);
}

// A copy of the good plug-in whose library may be replaced.
struct Scratch : test::Scratch {
  Scratch() { fs::copy(case_folder("good"), path()); }
  Status open(const std::string& bytes) const {
    fs::remove(path("good.so"));
    write("good.so", bytes);
    return host_of({path()})->pass("abi-good").status();
  }
};

std::string good_bytes() {
  std::ifstream in(case_folder("good") + "/good.so", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Abi, GarbageIsRefused) {
  const Scratch scratch;
  std::mt19937 random(1);
  std::string garbage(10000, '\0');
  for (char& c : garbage) c = static_cast<char>(random());
  EXPECT_TRUE(mentions(scratch.open(garbage), "no shared library"));
  EXPECT_TRUE(mentions(scratch.open(""), "empty"));
  EXPECT_TRUE(mentions(scratch.open("\x7f"), "no shared library"));
  EXPECT_TRUE(mentions(scratch.open("\x7f"
                                    "ELF"),
                       "truncated"));
  std::string headed = good_bytes().substr(0, 64) + garbage;
  EXPECT_EQ(scratch.open(headed).code(), REGIE_BAD_PLUGIN);
  // Another machine's, and an executable.
  std::string foreign = good_bytes();
  foreign[18] = static_cast<char>(0x7e);
  EXPECT_TRUE(mentions(scratch.open(foreign), "another kind of machine"));
  std::string executable = good_bytes();
  executable[16] = 2;
  EXPECT_TRUE(mentions(scratch.open(executable), "no shared library"));
}

TEST(Abi, TruncatedLibraryIsRefusedAtEveryLength) {
  const std::string good = good_bytes();
  const Scratch scratch;
  for (int i = 1; i < 60; ++i) {
    const size_t length = good.size() * static_cast<size_t>(i) / 60;
    const Status s = scratch.open(good.substr(0, length));
    EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN) << length;
    EXPECT_TRUE(mentions(s, "truncated") || mentions(s, "no shared library")) << s.to_string();
  }
  EXPECT_TRUE(mentions(scratch.open(good.substr(0, good.size() - 1)), "truncated"));
  EXPECT_TRUE(scratch.open(good).ok());
}

TEST(Abi, MissingSymbolsAreToldByTheLinker) {
  // A library that needs another one that is not there.
  std::string bytes = good_bytes();
  const std::string from = "libstdc++.so.6";
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, from.size(), "libnowhere.so9");
  const Scratch scratch;
  const Status s = scratch.open(bytes);
  EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(s, "libnowhere.so9") && mentions(s, "dynamic linker")) << s.to_string();
}

}  // namespace
}  // namespace regie
