// What the tests of the caches share: a host, a cache folder of their own, and compiles through it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/cached_compile.h"
#include "cache/kernel_store.h"
#include "cache/model_memory.h"
#include "regie_test_paths.h"
#include "support/process.h"

namespace regie::cache_test {

namespace fs = std::filesystem;
using test::Scratch;

inline const std::string kDigits = std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx";

inline std::string graph(const std::string& weight = "2", const std::string& dim = "4") {
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

}  // namespace regie::cache_test
