// The caches: what is in a key, what an entry is worth when it is damaged, old or another's, and that a
// process whose folder cannot be used compiles each model once all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "cache/cached_compile.h"
#include "cache/kernel_store.h"
#include "cache/model_memory.h"
#include "model/file.h"
#include "regie_test_paths.h"
#include "support/process.h"

namespace regie {
namespace {

namespace fs = std::filesystem;
using test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";

std::string graph(const std::string& weight = "2", const std::string& dim = "4") {
  return "graph @g(%x: f32[" + dim + "]) -> (%y) {\n  %w: const f32[1] = [" + weight + ".0]\n  %m: f32[" +
         dim + "] = Mul(%x, %w)\n  %y: f32[" + dim + "] = Relu(%m)\n}\n";
}

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    auto host = PluginHost::create();
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    plugins = *host;
    options.folder = s.path("cache");
    options.mode = CacheMode::kOn;
    forget();
  }
  static void forget() {
    ModelMemory::forget();
    KernelStore::forget();
    FileDigests::forget();
  }
  CompileRequest request(const std::string& path, const CompileOptions& o = {}) const {
    return {plugins, path, {}, o};
  }
  CachedCompile compile(const std::string& path, const CompileOptions& o = {}) {
    auto made = compile_cached(request(path, o), options);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(made).value() : CachedCompile();
  }
  CacheKey key(const std::string& path, const CompileOptions& o = {}) const {
    auto made = compile_key(request(path, o), FileDigests(nullptr, false));
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(made).value() : CacheKey();
  }
  // The one thing that differs from the key of digits.onnx with default options.
  std::vector<std::string> why(const CompileOptions& o) const {
    return differences(key(kDigits, o), key(kDigits));
  }
  std::string only(const std::string& ending) const {
    std::string found;
    for (const auto& f : fs::directory_iterator(options.folder + "/1/models"))
      if (f.path().extension() == ending) found = f.path().string();
    return found;
  }

  Scratch s;
  std::shared_ptr<PluginHost> plugins;
  CacheOptions options;
};

TEST(CacheKeys, EveryPartCounts) {
  CacheKey a;
  a.add("option", "threads", "1");
  a.add("rules", "conv.toml", "ab");
  for (const KeyPart& other : {KeyPart{"option", "threads", "2"}, KeyPart{"option", "thread", "s1"},
                               KeyPart{"optionthreads", "", "1"}}) {
    CacheKey b;
    b.add(other.kind, other.name, other.value);
    b.add("rules", "conv.toml", "ab");
    EXPECT_NE(a.digest(), b.digest());
    EXPECT_THAT(differences(a, b), testing::Not(IsEmpty()));
  }
  CacheKey c = a;
  EXPECT_EQ(a.digest(), c.digest());
  EXPECT_THAT(differences(a, c), IsEmpty());
  c.add("option", "shape", "x=1");
  EXPECT_THAT(differences(c, a), ElementsAre("the option shape: x=1 here, not given there"));
  EXPECT_THAT(differences(a, c), ElementsAre("the option shape: not given here, x=1 there"));
}

TEST(CacheKeys, LinesKeepWhatTheyAreGiven) {
  const std::vector<std::string> fields = {"a\tb", "", "c\\n\nd\r", "\\"};
  EXPECT_THAT(read_lines(to_line(fields) + to_line({"x"}) + "cut off"),
              ElementsAre(fields, std::vector<std::string>{"x"}));
}

TEST(CacheKeys, SizesAndSettings) {
  EXPECT_EQ(*parse_size("12"), 12u);
  EXPECT_EQ(*parse_size("3k"), 3072u);
  EXPECT_EQ(*parse_size("2G"), uint64_t{2} << 30);
  for (const char* bad : {"", "G", "1.5G", "-1", "1GB", "99999999999999999999", "99999999999999T"})
    EXPECT_FALSE(parse_size(bad).ok()) << bad;
  EXPECT_FALSE(cache_options("maybe", std::nullopt, std::nullopt).ok());
  EXPECT_FALSE(cache_options("on", "", std::nullopt).ok());
  EXPECT_EQ(cache_options("read", "/x", "1M")->limit, 1u << 20);
  // Only who asks for a cache gets one. The variables are those of this process: off, or not set.
  ::unsetenv("REGIE_CACHE");
  const char* was = std::getenv("REGIE_CACHE_DIR");
  const std::string folder = was ? was : "";
  ::unsetenv("REGIE_CACHE_DIR");
  const std::optional<std::string> no;
  EXPECT_EQ(cache_options(no, no, no)->mode, CacheMode::kOff);
  EXPECT_EQ(cache_options(no, "/x", no)->mode, CacheMode::kOn);
  EXPECT_EQ(cache_options("off", "/x", no)->mode, CacheMode::kOff);
  ::setenv("REGIE_CACHE_DIR", "/y", 1);
  EXPECT_EQ(cache_options(no, no, no)->mode, CacheMode::kOn);
  EXPECT_EQ(cache_options(no, no, no)->folder, "/y");
  ::setenv("REGIE_CACHE", "off", 1);
  EXPECT_EQ(cache_options(no, "/x", no)->mode, CacheMode::kOff);
  ::setenv("REGIE_CACHE_DIR", folder.c_str(), 1);  // an empty one counts as none
}

TEST_F(Cache, EachOptionIsPartOfTheKey) {
  CompileOptions o;
  o.threads = 2;
  EXPECT_THAT(why(o), ElementsAre("the option threads: 2 here, 1 there"));
  o = {};
  o.verify = false;
  EXPECT_THAT(why(o), ElementsAre("the option verify: 0 here, 1 there"));
  o = {};
  o.import_options = {{"shape", "x=2,1,8,8"}};
  EXPECT_THAT(why(o), ElementsAre("the option shape: x=2,1,8,8 here, not given there"));
  o = {};
  o.settings = {{"fold-constants.budget-bytes", "1024"}};
  EXPECT_THAT(why(o), ElementsAre("the option set fold-constants.budget-bytes: 1024 here, not given there"));
  o = {};
  o.held_back_patches = {3};
  EXPECT_THAT(why(o), ElementsAre("the option patches left out: 3 here, not given there"));
  o = {};
  o.stop_after_patches = 2;
  EXPECT_THAT(why(o), ElementsAre("the option stop after patches: 2 here, not given there"));
  o = {};
  o.optimise = false;
  EXPECT_THAT(why(o), testing::Contains("the pipeline: unoptimised here, default there"));
  o = {};
  o.target = "host_and_null";
  EXPECT_THAT(why(o), testing::Contains("target host_and_null: only here"));
}

TEST_F(Cache, EachTextIsPartOfTheKey) {
  const std::string configs = std::string(REGIE_TEST_SOURCE_DIR) + "/configs/";
  // Overlays: a rule file, a file of operators, a pipeline of the product's names, changed by one line.
  const std::string before = key(kDigits).digest();
  for (const auto& [file, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"rules/conv.toml", "rule file conv.toml: other text"},
           {"ops/more.toml", "operator file more.toml: only here"},
           {"targets/host_cpu.toml", "target host_cpu: other text"},
           {"pipelines/default.toml", "the pipeline default: other passes or options"}}) {
    Scratch overlay;
    fs::create_directories(fs::path(overlay.path(file)).parent_path());
    std::string text =
        file == "ops/more.toml" ? "schema = 1\nrevision = \"onnx-21\"\n" : test::slurp(configs + file);
    ASSERT_FALSE(text.empty()) << file;
    if (file == "pipelines/default.toml") {
      const size_t at = text.find("until-stable");
      ASSERT_NE(at, std::string::npos);
      text.replace(at - 1, 14, "\"once\"");
    } else if (file != "ops/more.toml") {
      text += "# another line\n";
    }
    overlay.write(file, text);
    auto host = PluginHost::create({overlay.path()});
    ASSERT_TRUE(host.ok()) << host.status().to_string();
    auto other = compile_key({*host, kDigits, {}, {}}, FileDigests(nullptr, false));
    ASSERT_TRUE(other.ok()) << other.status().to_string();
    EXPECT_THAT(differences(*other, key(kDigits)), ElementsAre(wanted));
    EXPECT_NE(other->digest(), before);
  }
}

TEST_F(Cache, TheModelAndItsFilesArePartOfTheKey) {
  const std::string a = s.write("a.rg", graph("2")), b = s.write("b.rg", graph("3")),
                    c = s.write("c.onnx", graph("2"));
  EXPECT_THAT(differences(key(a), key(b)), ElementsAre("the model: other bytes"));
  EXPECT_EQ(key(a).digest(), key(s.write("copy.rg", graph("2"))).digest()) << "the path does not count";
  EXPECT_NE(key(a).digest(), key(c).digest()) << "the ending does: it decides who reads it";
  const std::string bytes = graph("2");
  auto of_bytes =
      compile_key({plugins, "name.rg", std::as_bytes(std::span(bytes)), {}}, FileDigests(nullptr, false));
  ASSERT_TRUE(of_bytes.ok());
  s.write("w.bin", "one");
  CacheKey one = key(a), two = key(a);
  ASSERT_TRUE(add_externals(&one, request(a), {"w.bin"}, FileDigests(nullptr, false)).ok());
  s.write("w.bin", "two");
  ASSERT_TRUE(add_externals(&two, request(a), {"w.bin"}, FileDigests(nullptr, false)).ok());
  EXPECT_THAT(differences(one, two), ElementsAre("the model's file w.bin: other bytes"));
  EXPECT_FALSE(add_externals(&two, request(a), {"../w.bin"}, FileDigests(nullptr, false)).ok());
}

TEST_F(Cache, PlugInsLibrariesProcessorAndEnvironmentArePartOfTheKey) {
  const CacheKey k = key(kDigits);
  for (const auto& [kind, name] :
       std::vector<std::pair<std::string, std::string>>{{"regie", ""},
                                                        {"plug-in", "host_cpu"},
                                                        {"plug-in", "ops-standard"},
                                                        {"plug-in", "frontend-onnx"},
                                                        {"version", "host_cpu"},
                                                        {"plug-in", "pass-fold-constants"},
                                                        {"cpu", "name"},
                                                        {"cpu", "features"}})
    EXPECT_NE(k.find(kind, name), "") << kind << " " << name;
  EXPECT_EQ(k.find("plug-in", "null"), "") << "takes no part";
  bool dnnl = false;
  for (const KeyPart& p : k.parts()) dnnl |= p.kind == "library" && p.name.find("dnnl") != std::string::npos;
  EXPECT_TRUE(dnnl) << "what an engine is linked with decides what it makes";
  ASSERT_EQ(::setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1), 0);
  const CacheKey with = key(kDigits);
  ::unsetenv("ONEDNN_MAX_CPU_ISA");
  EXPECT_THAT(differences(with, k),
              ElementsAre("the environment variable ONEDNN_MAX_CPU_ISA: AVX2 here, not given there"));
}

TEST_F(Cache, AFileThatWasJustChangedIsReadAgain) {
  const FileDigests files(CacheFolder::open(options.folder), true);
  const std::string big(100000, 'a');
  const std::string path = s.write("f", big);
  const std::string before = *files.digest(path);
  for (char c : {'b', 'c', 'd'}) {  // same size, perhaps the same tick of the clock
    s.write("f", std::string(100000, c));
    EXPECT_NE(*files.digest(path), before);
  }
  s.write("f", big);
  EXPECT_EQ(*files.digest(path), before);
}

TEST_F(Cache, WhatIsRememberedOfAFileIsCheckedByVerify) {
  const std::string path = s.write("f", std::string(100000, 'a'));
  const timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // the time of state cannot be set
  auto folder = CacheFolder::open(options.folder);
  const FileDigests files(folder, true);
  const std::string digest = *files.digest(path);
  ASSERT_EQ(folder->list("files").size(), 1u);
  FileDigests::forget();
  EXPECT_EQ(*files.digest(path), digest);
  EXPECT_THAT(FileDigests::verify(*folder), IsEmpty());
  // A record that is sound in itself and says another digest, as if the file had changed unseen.
  std::string record = test::slurp(folder->list("files")[0].path);
  record.replace(record.find(digest), 4, digest.substr(0, 4) == "0000" ? "1111" : "0000");
  std::ofstream(folder->list("files")[0].path) << record;
  EXPECT_THAT(FileDigests::verify(*folder), testing::SizeIs(1));
  EXPECT_THAT(folder->list("files"), IsEmpty());
}

TEST_F(Cache, AHitIsTheModelThatACompileGives) {
  const CachedCompile first = compile(kDigits);
  EXPECT_EQ(first.cache.outcome, "miss");
  EXPECT_TRUE(first.cache.stored) << first.cache.not_stored;
  EXPECT_EQ(compile(kDigits).model, first.model) << "shared with whoever has it";
  forget();
  const CachedCompile second = compile(kDigits);
  EXPECT_EQ(second.cache.outcome, "hit");
  EXPECT_EQ(second.cache.from, "folder");
  EXPECT_EQ(second.cache.key, first.cache.key);
  ASSERT_TRUE(save_model(*first.model, s.path("a.rgm")).ok());
  ASSERT_TRUE(save_model(*second.model, s.path("b.rgm")).ok());
  EXPECT_EQ(test::slurp(s.path("a.rgm")), test::slurp(s.path("b.rgm")));
}

TEST_F(Cache, NobodyGetsAnothersEntry) {
  // Equal structure and other weights; equal names and other shapes; one option at a time. All in one folder.
  std::set<std::string> keys;
  std::vector<std::pair<std::string, CompileOptions>> all;
  for (const char* weight : {"2", "3"})
    for (const char* dim : {"4", "5"})
      all.emplace_back(s.write(std::string(weight) + dim + ".rg", graph(weight, dim)), CompileOptions());
  CompileOptions o;
  o.threads = 2;
  all.emplace_back(all[0].first, o);
  o = {};
  o.optimise = false;
  all.emplace_back(all[0].first, o);
  o = {};
  o.target = "host_and_null";
  all.emplace_back(all[0].first, o);
  o = {};
  o.settings = {{"fold-constants.budget-bytes", "0"}};
  all.emplace_back(all[0].first, o);
  std::vector<std::string> bytes;
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < all.size(); ++i) {
      const CachedCompile made = compile(all[i].first, all[i].second);
      EXPECT_EQ(made.cache.outcome, turn ? "hit" : "miss") << i;
      keys.insert(made.cache.key);
      ASSERT_TRUE(save_model(*made.model, s.path("m.rgm")).ok());
      if (turn == 0)
        bytes.push_back(test::slurp(s.path("m.rgm")));
      else
        EXPECT_EQ(test::slurp(s.path("m.rgm")), bytes[i]) << i;
    }
    forget();
  }
  EXPECT_EQ(keys.size(), all.size());
}

TEST_F(Cache, DamagedEntriesAreNotServed) {
  const std::string path = s.write("g.rg", graph());
  const CachedCompile first = compile(path);
  for (const char* ending : {".rgm", ".key"}) {
    const std::string file = only(ending), whole = test::slurp(file);
    ASSERT_FALSE(whole.empty());
    for (size_t at : {size_t{0}, size_t{28}, whole.size() / 3, whole.size() / 2, whole.size() - 2}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ 0x21);
      std::ofstream(file, std::ios::binary) << bad;
      ModelMemory::forget();
      auto got = ModelStore(CacheFolder::open(options.folder)).load(first.cache.key, key(path));
      // Between sections lie zeros that no checksum covers and nobody reads.
      EXPECT_TRUE(!got.ok() || (ending == std::string(".rgm") && whole[at] == 0)) << ending << " " << at;
    }
    std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2);
    ModelMemory::forget();
    const CachedCompile again = compile(path);
    EXPECT_EQ(again.cache.outcome, "miss") << ending;
    EXPECT_TRUE(again.cache.stored);
    ModelMemory::forget();
    EXPECT_EQ(compile(path).cache.from, "folder") << "made again in its place";
  }
  // A sound model in the place of another.
  const std::string other = s.write("other.rg", graph("7"));
  const CachedCompile second = compile(other);
  const std::string models = options.folder + "/1/models/";
  fs::copy_file(models + second.cache.key + ".rgm", models + first.cache.key + ".rgm",
                fs::copy_options::overwrite_existing);
  ModelMemory::forget();
  EXPECT_THAT(compile(path).cache.why, ElementsAre(HasSubstr("another model than its record says")));
}

TEST_F(Cache, VerifyRemovesWhatIsDamaged) {
  const CachedCompile a = compile(s.write("a.rg", graph("1"))), b = compile(s.write("b.rg", graph("2")));
  const ModelStore store(CacheFolder::open(options.folder));
  EXPECT_THAT(store.verify(), IsEmpty());
  const std::string file = options.folder + "/1/models/" + a.cache.key + ".rgm";
  std::string bytes = test::slurp(file);
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_THAT(store.verify(), ElementsAre(HasSubstr(a.cache.key)));
  EXPECT_FALSE(fs::exists(file));
  ASSERT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.list()[0].digest, b.cache.key);
}

TEST_F(Cache, TheLeastRecentlyUsedGoFirst) {
  std::vector<std::string> keys;
  auto age = [&](const std::string& key, int hours) {
    for (const char* ending : {".rgm", ".key"}) {
      const std::string file = options.folder + "/1/models/" + key + ending;
      fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
    }
  };
  for (int i = 0; i < 6; ++i) {
    keys.push_back(compile(s.write(std::to_string(i) + ".rg", graph(std::to_string(i)))).cache.key);
    age(keys.back(), 10 - i);
  }
  ModelMemory::forget();
  EXPECT_EQ(compile(s.path("0.rg")).cache.from, "folder");  // used now
  auto folder = CacheFolder::open(options.folder);
  const uint64_t all = folder->bytes();
  uint64_t one = 0;
  for (const CacheFile& f : folder->list("models")) one += f.name.starts_with(keys[5]) ? f.bytes : 0;
  folder->shrink(all - one);  // room for all but one, or two
  std::set<std::string> left;
  for (const EntryInfo& e : ModelStore(folder).list()) left.insert(e.digest);
  EXPECT_EQ(left.count(keys[1]), 0u) << "the oldest";
  EXPECT_EQ(left.count(keys[0]), 1u) << "used last";
  EXPECT_EQ(left.count(keys[5]), 1u);
  EXPECT_LE(folder->bytes(), all - one);
  // The limit holds by itself.
  options.limit = 3 * one;
  for (int i = 10; i < 20; ++i) compile(s.write(std::to_string(i) + ".rg", graph(std::to_string(i))));
  EXPECT_LE(folder->bytes(), options.limit);
  EXPECT_GE(ModelStore(folder).list().size(), 1u);
  options.limit = 100;  // smaller than any entry
  const CachedCompile large = compile(kDigits);
  EXPECT_FALSE(large.cache.stored);
  EXPECT_THAT(large.cache.not_stored, HasSubstr("half of the cache's limit"));
  EXPECT_EQ(compile(kDigits).cache.from, "process");
}

// The folder as something that nothing can be written into, also by root: what a request costs then.
TEST_F(Cache, AFolderThatCannotBeUsedCostsNoCompile) {
  for (const bool foreign : {false, true}) {
    forget();
    Scratch scratch;
    options.folder = scratch.path("cache");
    if (foreign) {
      ASSERT_EQ(::mkdir(options.folder.c_str(), 0755), 0);
      if (::geteuid() == 0)
        ASSERT_EQ(::chown(options.folder.c_str(), 12345, 12345), 0);
      else
        options.folder = "/";
    } else {
      scratch.write("cache", "a file");
    }
    const CacheStatistics before = cache_statistics();
    CompileOptions o;
    double slowest = 0;
    for (int turn = 0; turn < 250; ++turn)
      for (int n = 1; n <= 4; ++n) {
        o.import_options = {{"shape", "x=" + std::to_string(n) + ",1,8,8"}};
        const auto start = std::chrono::steady_clock::now();
        const CachedCompile made = compile(kDigits, o);
        if (turn) {
          EXPECT_EQ(made.cache.from, "process");
          slowest = std::max(
              slowest,
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
        }
        EXPECT_EQ(made.cache.outcome, turn ? "hit" : "miss");
      }
    const CacheStatistics after = cache_statistics();
    EXPECT_EQ(after.compiles - before.compiles, 4u);
    EXPECT_EQ(after.memory_hits - before.memory_hits, 996u);
    EXPECT_EQ(after.stored, before.stored);
    EXPECT_LT(slowest, 500) << "milliseconds";
  }
}

TEST_F(Cache, TheProcessKeepsNoMoreThanItMay) {
  options.folder = s.write("cache", "a file");
  options.memory = 1;  // only the newest
  compile(s.write("a.rg", graph("1")));
  compile(s.write("b.rg", graph("2")));
  EXPECT_EQ(compile(s.path("b.rg")).cache.from, "process");
  EXPECT_EQ(compile(s.path("a.rg")).cache.outcome, "miss");
}

TEST_F(Cache, AGoodFolderServesTheNextProcess) {
  CompileOptions o;
  for (int turn = 0; turn < 2; ++turn) {
    const CacheStatistics before = cache_statistics();
    for (int i = 0; i < 40; ++i) {
      o.import_options = {{"shape", "x=" + std::to_string(i % 4 + 1) + ",1,8,8"}};
      compile(kDigits, o);
    }
    EXPECT_EQ(cache_statistics().compiles - before.compiles, turn ? 0u : 4u);
    forget();  // as a new process
  }
  options.mode = CacheMode::kRead;
  o.import_options = {{"shape", "x=9,1,8,8"}};
  EXPECT_THAT(compile(kDigits, o).cache.not_stored, HasSubstr("only read"));
  EXPECT_EQ(compile(kDigits, o).cache.from, "process");
  forget();
  EXPECT_EQ(compile(kDigits, o).cache.outcome, "miss");
  options.mode = CacheMode::kOff;
  o.import_options = {{"shape", "x=1,1,8,8"}};
  EXPECT_EQ(compile(kDigits, o).cache.outcome, "off");
}

TEST_F(Cache, ThreadsThatWantTheSameModelCompileItOnce) {
  const CacheStatistics before = cache_statistics();
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const Model>> models(8);
  for (size_t i = 0; i < models.size(); ++i)
    threads.emplace_back([&, i] {
      CompileOptions o;
      o.import_options = {{"shape", "x=3,1,8,8"}};
      auto made = compile_cached(request(kDigits, o), options);
      if (made.ok()) models[i] = made->model;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cache_statistics().compiles - before.compiles, 1u);
  for (const auto& m : models) EXPECT_EQ(m, models[0]);
}

TEST_F(Cache, FailuresAreNotRemembered) {
  const std::string path =
      s.write("bad.rg", "graph @g(%x: f32[2]) -> (%y) {\n  %y: f32[2] = NoSuchOperator(%x)\n}\n");
  for (int turn = 0; turn < 2; ++turn) {
    auto made = compile_cached(request(path), options);
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.status().to_string(), HasSubstr("NoSuchOperator"));
  }
  auto absent = compile_cached(request(s.path("absent.onnx")), options);
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(absent.status().to_string(), HasSubstr("absent.onnx"));
  EXPECT_THAT(ModelStore(CacheFolder::open(options.folder)).list(), IsEmpty());
}

// ---- Kernels ----

CompiledKernel kernel(const std::string& blob) {
  CompiledKernel k;
  k.format = "f/1";
  k.name = "a\tname\n";
  k.blob = blob;
  k.flags = 3;
  k.requires_ = {"one", "two"};
  k.scratch_bytes = 77;
  const int64_t size = 5;
  k.weights.push_back({2, Tensor::zeros(REGIE_U8, {&size, 1}), "opaque:x:1"});
  return k;
}

TEST(CacheKernels, ComeBackAsTheyWere) {
  const CompiledKernel k = kernel(std::string("\n\n\0binary", 9));
  const std::string bytes = kernel_to_bytes(k, "request");
  auto back = kernel_from_bytes(bytes, "request");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(kernel_to_bytes(*back, "request"), bytes);
  EXPECT_EQ(back->blob, k.blob);
  EXPECT_EQ(back->weights[0].bytes.bytes(), 5u);
  EXPECT_FALSE(kernel_from_bytes(bytes, "another").ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(kernel_from_bytes(bad, "request").ok()) << i;
    EXPECT_FALSE(kernel_from_bytes(bytes.substr(0, i), "request").ok()) << i;
  }
}

TEST_F(Cache, KernelsThatTookLongAreKept) {
  CacheKey engine, other;
  engine.add("engine", "e", "1");
  other.add("engine", "e", "2");
  auto folder = CacheFolder::open(options.folder);
  const auto request = [] { return std::string("r"); };
  const auto never = []() -> std::string {
    ADD_FAILURE() << "nothing is known of this engine: there is nothing to compare with";
    return "";
  };
  {
    KernelStore store({engine, other}, folder, true);
    EXPECT_FALSE(store.find(0, never));
    store.keep(0, request, kernel("slow"), 500000000);
    store.keep(1, request, kernel("quick"), 10);
    EXPECT_EQ(store.find(0, request)->blob, "slow");
    EXPECT_FALSE(store.find(1, never));
  }
  KernelStore::forget();
  KernelStore next({engine, other}, folder, true);
  EXPECT_EQ(next.find(0, request)->blob, "slow");
  EXPECT_FALSE(next.find(0, [] { return std::string("another"); }));
  EXPECT_FALSE(next.find(1, never));
  EXPECT_THAT(KernelStore::verify(*folder), IsEmpty());
  const std::string file = options.folder + "/1/kernels/" + engine.digest() + "/r.kernel";
  std::ofstream(file, std::ios::app) << "x";
  KernelStore damaged({engine}, folder, true);
  EXPECT_FALSE(damaged.find(0, request));
  EXPECT_FALSE(fs::exists(file));
}

}  // namespace
}  // namespace regie
