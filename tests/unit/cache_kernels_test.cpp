// The cache of kernels.
#include "unit/cache_support.h"

#include <fstream>

namespace regie::cache_test {
namespace {

using testing::IsEmpty;

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
}  // namespace regie::cache_test
