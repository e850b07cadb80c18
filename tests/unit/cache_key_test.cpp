// What is in the key of a compile, and what is remembered of the digests of files.
#include "unit/cache_support.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

namespace regie::cache_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

TEST(CacheKeys, Settings) {
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

}  // namespace
}  // namespace regie::cache_test
