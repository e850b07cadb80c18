#include "plugins/host.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/dim.h"
#include "base/names.h"
#include "plugins/library_file.h"
#include "plugins/manifest.h"
#include "plugins/static_plugins.h"
#include "plugins/tables.h"
#include "support/scratch.h"

namespace regie {
namespace {

namespace fs = std::filesystem;

bool mentions(const Status& s, std::string_view text) {
  return s.to_string().find(text) != std::string::npos;
}

// A folder for plug-ins, with folders in it.
struct Scratch : test::Scratch {
  void put(const std::string& name, std::string_view text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    write(name, text);
  }
};
std::string manifest_text(const std::string& name, const std::string& provides) {
  return "schema = 1\nname = \"" + name + "\"\nversion = \"1.0\"\nlibrary = \"" + name +
         ".so\"\nprovides = [" + provides + "]\n";
}

std::shared_ptr<PluginHost> host_with(const Scratch& folder) {
  auto host = PluginHost::create({folder.path()});
  EXPECT_TRUE(host.ok()) << host.status().to_string();
  return *host;
}

TEST(PluginManifest, IsStrict) {
  const auto good = parse_manifest(manifest_text("a", "\"pass:x\", \"op-kernel:Conv\""), "/p/a.toml", false);
  ASSERT_TRUE(good.ok()) << good.status().to_string();
  EXPECT_EQ(good->library, "/p/a.so");
  EXPECT_EQ(good->provides,
            (std::vector<std::pair<std::string, std::string>>{{"pass", "x"}, {"op-kernel", "Conv"}}));
  EXPECT_EQ(parse_manifest(manifest_text("a", "\"pass:x\""), "/p/a.toml", true)->library, "");

  const std::string base = manifest_text("a", "\"pass:x\"");
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = base;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::pair<std::string, const char*> cases[] = {
      {replaced("schema = 1", "schema = 2"), "newer version"},
      {replaced("version", "verison"), "'version' is missing"},
      {base + "licence = 'x'\n", "unknown key 'licence'"},
      {replaced("a.so", "../a.so"), "name of a file in the manifest's folder"},
      {replaced("a.so", ""), "name of a file"},
      {replaced("\"pass:x\"", ""), "must name something"},
      {replaced("pass:x", "pas:x"), "did you mean 'pass'?"},
      {replaced("pass:x", "passx"), "<kind>:<name>"},
      {replaced("pass:x", "pass:"), "<kind>:<name>"},
      {replaced("\"pass:x\"", "\"pass:x\", \"pass:x\""), "twice"},
      {replaced("\"pass:x\"", "3"), "must be a string"},
      {replaced("name = \"a\"", "name = \"\""), "'name' must not be empty"},
  };
  for (const auto& [text, words] : cases) {
    const auto m = parse_manifest(text, "/p/a.toml", false);
    ASSERT_FALSE(m.ok()) << text;
    EXPECT_TRUE(mentions(m.status(), words)) << m.status().to_string();
    EXPECT_TRUE(mentions(m.status(), "/p/a.toml")) << m.status().to_string();
  }
}

TEST(PluginHost, OpensEveryBuiltInPluginAndOnlyWhenAsked) {
  const auto host = PluginHost::create();
  ASSERT_TRUE(host.ok()) << host.status().to_string();
  ASSERT_FALSE((*host)->manifests().empty());
  for (const PluginProblem& p : (*host)->problems()) ADD_FAILURE() << p.path << ": " << p.message;
  EXPECT_TRUE((*host)->opened().empty());
  size_t opened = 0;
  for (const Manifest& m : (*host)->manifests()) {
    const Status s = (*host)->verify_library(m);
    EXPECT_TRUE(s.ok()) << s.to_string();
    opened += s.ok() ? 1 : 0;
    EXPECT_EQ((*host)->opened().size(), opened);
    for (const auto& [kind, name] : m.provides) {
      const auto names = (*host)->names(kind);
      EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << kind << ":" << name;
    }
  }
}

// One that was made before anybody needed it.
TEST(PluginHost, ASilentOneSaysItsProblemsWhenItIsNeeded) {
  Scratch folder;
  folder.put("bad.toml", "name = 3 # pass:anything\n");
  const auto host = *PluginHost::create_silent({folder.path()}, "/no/such/folder");
  auto words_of = [&](const std::function<void()>& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(words_of([&] { EXPECT_EQ(host->problems().size(), 2u); }), "");
  const std::string words = words_of([&] { host->say_problems(); });
  EXPECT_NE(words.find("bad.toml"), std::string::npos) << words;
  EXPECT_NE(words.find("/no/such/folder"), std::string::npos) << words;
  EXPECT_EQ(words_of([&] { host->say_problems(); }), "");
}

TEST(PluginHost, NamesAreFoundAndMissesSayWhatIsNear) {
  const auto host = *PluginHost::create();
  const auto kernel = host->op_kernel("Conv");
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  EXPECT_EQ(view(kernel->table->ops[kernel->index].op), "Conv");
  ASSERT_NE(kernel->manifest, nullptr);
  EXPECT_EQ(host->opened().size(), 1u);
  const Status near = host->op_kernel("Cnov").status();
  EXPECT_EQ(near.code(), REGIE_NOT_FOUND);
  EXPECT_TRUE(mentions(near, "did you mean 'Conv'?") && mentions(near, "REGIE_PLUGIN_PATH"))
      << near.to_string();
  EXPECT_EQ(host->pass("no-such-pass").status().code(), REGIE_NOT_FOUND);
  EXPECT_TRUE(host->names("no-such-kind").empty());
}

TEST(PluginHost, BrokenPluginsHarmNoOther) {
  const Scratch folder;
  folder.put("bad.toml", "schema = 1\nnome = 'bad'\n");
  folder.put("absent.toml", manifest_text("absent", "\"pass:absent-library\""));
  folder.put("text.toml", manifest_text("text", "\"pass:text\""));
  folder.put("text.so", "this is text");
  folder.put("empty.toml", manifest_text("empty", "\"pass:empty\""));
  folder.put("empty.so", "");
  const auto host = host_with(folder);
  ASSERT_EQ(host->problems().size(), 1u);
  EXPECT_NE(host->problems()[0].message.find("bad.toml"), std::string::npos);
  const std::pair<const char*, const char*> cases[] = {
      {"absent-library", "No such file"}, {"text", "no shared library"}, {"empty", "is empty"}};
  for (auto [pass, words] : cases) {
    const Status s = host->pass(pass).status();
    EXPECT_FALSE(s.ok());
    EXPECT_TRUE(mentions(s, words)) << s.to_string();
    EXPECT_TRUE(mentions(s, folder.path())) << s.to_string();
    EXPECT_EQ(host->pass(pass).status().to_string(), s.to_string());  // and the second time
  }
  EXPECT_EQ(host->problems().size(), 4u);
  EXPECT_TRUE(host->op_kernel("Conv").ok());
}

TEST(PluginHost, OneNameTwiceNamesBothFiles) {
  const Scratch folder;
  folder.put("one.toml", manifest_text("one", "\"pass:same\""));
  folder.put("two.toml", manifest_text("two", "\"pass:same\", \"pass:other\""));
  const auto host = host_with(folder);
  const Status s = host->pass("same").status();
  EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(s, folder.path("one.toml")) && mentions(s, folder.path("two.toml"))) << s.to_string();
  EXPECT_EQ(host->names("pass").size(), PluginHost::create().value()->names("pass").size() + 2);
}

TEST(PluginHost, FoldersOfTheEnvironmentComeFirstAndOnce) {
  const Scratch folder;
  folder.put("p/mine.toml", manifest_text("mine", "\"pass:mine\""));
  folder.put("p/targets/board.toml", "schema = 1\n");
  folder.put("p/targets/host_cpu.toml", "schema = 1\n");
  folder.put("p/ops/mine.toml", "schema = 1\n");
  const std::string p = folder.path("p");
  setenv("REGIE_PLUGIN_PATH", (":" + p + ":" + p + "/../p:/no/such/folder").c_str(), 1);
  const auto host = PluginHost::create();
  unsetenv("REGIE_PLUGIN_PATH");
  ASSERT_TRUE(host.ok());
  EXPECT_EQ((*host)->manifests()[0].name, "mine");
  EXPECT_NE((*host)->manifests()[1].name, "mine");
  ASSERT_EQ((*host)->problems().size(), 1u);
  EXPECT_EQ((*host)->problems()[0].path, "/no/such/folder");

  EXPECT_EQ(*(*host)->find_config("targets", "board"), p + "/targets/board.toml");
  EXPECT_EQ(*(*host)->find_config("targets", "board.toml"), p + "/targets/board.toml");
  EXPECT_EQ(*(*host)->find_config("targets", "host_cpu"),
            p + "/targets/host_cpu.toml");  // before the product's
  EXPECT_EQ(*(*host)->find_config("targets", p + "/targets/board.toml"), p + "/targets/board.toml");
  const Status miss = (*host)->find_config("targets", "bord").status();
  EXPECT_TRUE(mentions(miss, "did you mean 'board'?") && mentions(miss, p)) << miss.to_string();
  EXPECT_EQ((*host)->find_config("targets", p + "/none.toml").status().code(), REGIE_NOT_FOUND);
  const auto targets = (*host)->config_names("targets");
  EXPECT_TRUE(std::is_sorted(targets.begin(), targets.end()));
  EXPECT_TRUE(std::find(targets.begin(), targets.end(), "board") != targets.end());
  const auto schemas = (*host)->schema_folders();
  ASSERT_EQ(schemas.size(), 2u);
  EXPECT_TRUE(fs::exists(schemas[0]));
  EXPECT_EQ(schemas[1], p + "/ops");
  EXPECT_TRUE(PluginHost::create().value()->find_config("targets", "host_cpu").ok());
}

TEST(RuntimePlugins, ManyThreadsOpenOneHost) {
  const auto host = *PluginHost::create();
  set_current_plugin_host(host);
  const auto* ops = static_cast<const regie_host_ops*>(host_table()->find(REGIE_HOST_OPS_ID));
  ASSERT_NE(ops, nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> found{0};
  const std::vector<std::string> names = host->names("op-kernel");
  ASSERT_FALSE(names.empty());
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (const std::string& name : names) {
        const regie_op_kernel_table* table = nullptr;
        uint32_t index = 0;
        if (ops->find_kernel(str(name), &table, &index) == REGIE_OK && view(table->ops[index].op) == name)
          ++found;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(found, 4 * static_cast<int>(names.size()));
  clear_plugin_failure();
  const regie_op_kernel_table* table = nullptr;
  uint32_t index = 0;
  const regie_status code = ops->find_kernel(str("NoSuchOp"), &table, &index);
  EXPECT_EQ(code, REGIE_NOT_FOUND);
  EXPECT_TRUE(mentions(take_plugin_failure("test", code), "op-kernel:NoSuchOp"));
}

TEST(PluginFailures, KeepTheirWords) {
  const regie_host* host = host_table();
  const auto failing = [&] {
    return host->fail(REGIE_UNSUPPORTED, str("no f8 here"), str("m.onnx: node 'c'"));
  };
  const Status s = call_plugin("engine 'x'", failing);
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  EXPECT_EQ(s.to_string(), "m.onnx: node 'c': no f8 here (while running engine 'x')");
  EXPECT_TRUE(call_plugin("engine 'x'", [] { return REGIE_OK; }).ok());

  const Status passed_on = call_plugin("pass 'p'", [&]() -> regie_status {
    (void)fail_on_this_thread(invalid_model("rank is 3").while_doing("inferring 'c'"));
    return host->fail(REGIE_INVALID_MODEL, regie_str{nullptr, 0}, regie_str{nullptr, 0});
  });
  EXPECT_EQ(passed_on.code(), REGIE_INVALID_MODEL);
  EXPECT_TRUE(mentions(passed_on, "rank is 3; while inferring 'c'")) << passed_on.to_string();

  // Words of an earlier call are not those of this one.
  (void)failing();
  const Status silent = call_plugin("pass 'p'", []() -> regie_status { return REGIE_LIMIT; });
  EXPECT_EQ(silent.code(), REGIE_LIMIT);
  EXPECT_TRUE(mentions(silent, "pass 'p' failed (limit reached) without saying why")) << silent.to_string();

  const Status rubbish = call_plugin("pass 'p'", []() -> regie_status { return 4711; });
  EXPECT_EQ(rubbish.code(), REGIE_BAD_PLUGIN);
  EXPECT_TRUE(mentions(rubbish, "4711")) << rubbish.to_string();
  EXPECT_EQ(call_plugin("p", []() -> regie_status { return -1; }).code(), REGIE_BAD_PLUGIN);
  EXPECT_EQ(call_plugin("p", []() -> regie_status { throw std::runtime_error("x"); }).code(),
            REGIE_BAD_PLUGIN);
  EXPECT_EQ(call_plugin("p", []() -> regie_status { throw 1; }).code(), REGIE_BAD_PLUGIN);

  // Each thread has its own.
  (void)failing();
  std::thread([] {
    EXPECT_TRUE(mentions(take_plugin_failure("other", REGIE_IO), "without saying why"));
  }).join();
  EXPECT_TRUE(mentions(take_plugin_failure("this", REGIE_UNSUPPORTED), "no f8 here"));
}

TEST(PluginFailures, HostTableDoesDimensions) {
  const regie_host* host = host_table();
  EXPECT_EQ(host->struct_size, sizeof(regie_host));
  EXPECT_EQ(host->find("no/such/interface"), nullptr);
  EXPECT_EQ(host->find(nullptr), nullptr);
  DimTable table;
  const regie_dim n = host->dim_symbol(table.handle(), str("N"), 1, 8, 1);
  EXPECT_TRUE(table.symbol_at(0).data_dependent);
  const regie_dim d =
      host->dim_op(table.handle(), REGIE_DIM_ADD, host->dim_op(table.handle(), REGIE_DIM_MUL, n, 2), 1);
  int64_t low = 0, high = 0;
  host->dim_range(table.handle(), d, &low, &high);
  EXPECT_EQ(low, 3);
  EXPECT_EQ(high, 17);
  char text[8];
  EXPECT_EQ(host->dim_print(table.handle(), d, text, sizeof text), 5u);
  EXPECT_STREQ(text, "2*N+1");
  char tight[3];
  EXPECT_EQ(host->dim_print(table.handle(), d, tight, sizeof tight), 5u);
  EXPECT_STREQ(tight, "2*");
  EXPECT_EQ(host->dim_print(table.handle(), d, nullptr, 0), 5u);
  EXPECT_EQ(host->dim_op(table.handle(), REGIE_DIM_ADD, -999, 1), REGIE_DIM_UNKNOWN);
  host->dim_range(table.handle(), -999, &low, &high);
  EXPECT_EQ(low, INT64_MIN);
}

TEST(PluginFailures, ConfigTextOwnsItsText) {
  ConfigText config;
  {
    std::vector<std::pair<std::string, std::string>> pairs = {{"threads", "4"},
                                                              {"mode", std::string(100, 'm')}};
    config = ConfigText(std::move(pairs));
  }
  const ConfigText copy = config;
  config = ConfigText();
  EXPECT_EQ(config.get()->count, 0u);
  ASSERT_EQ(copy.get()->count, 2u);
  EXPECT_EQ(view(copy.get()->settings[1].key), "mode");
  EXPECT_EQ(view(copy.get()->settings[1].value), std::string(100, 'm'));
}

// A file that lies about itself in any byte is refused or read, never followed out of its bounds.
TEST(PluginLibraryFile, SurvivesAnyBytes) {
  const auto host = *PluginHost::create();
  std::string path;
  for (const Manifest& m : host->manifests())
    if (!m.library.empty() && (path.empty() || fs::file_size(m.library) < fs::file_size(path)))
      path = m.library;
  if (path.empty()) path = fs::canonical("/proc/self/exe").string();  // all linked in: any ELF file serves
  std::ifstream in(path, std::ios::binary);
  std::string good{std::istreambuf_iterator<char>(in), {}};
  if (good.size() > (1 << 20)) good.resize(1 << 20);
  const Scratch folder;
  const std::string file = folder.path("x.so");
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good;
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    // Headers and dynamic tables are what is read; they lie at the front.
    for (int i = 0; i < 1 + round % 30 && !bytes.empty(); ++i)
      bytes[random() % std::min<size_t>(bytes.size(), round % 2 ? 1024 : 8192)] = static_cast<char>(random());
    folder.put("x.so", bytes);
    const auto facts = read_library_file(file);
    if (!facts.ok()) {
      EXPECT_EQ(facts.status().code(), REGIE_BAD_PLUGIN) << facts.status().to_string();
    }
  }
}

}  // namespace
}  // namespace regie
