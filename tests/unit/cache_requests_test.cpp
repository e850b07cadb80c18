// What many requests of one process cost, with a good folder and with one that cannot be used.
#include "unit/cache_support.h"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <thread>

namespace regie::cache_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

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

}  // namespace
}  // namespace regie::cache_test
