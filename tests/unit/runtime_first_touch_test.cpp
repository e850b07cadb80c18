// Memory that is touched ahead: what it holds stays as it is, whoever writes there meanwhile; arenas that are
// made with the session are those of its first context.
#include "runtime/first_touch.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "support/run_model.h"

namespace regie {
namespace {

using test::Answer;
using test::ModelBuilder;
using test::row;
using test::run;

class Mapping {
 public:
  explicit Mapping(size_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() { ::munmap(at_, bytes_); }
  std::span<std::byte> span() { return {static_cast<std::byte*>(at_), bytes_}; }
  size_t resident() const {
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> there((bytes_ + page - 1) / page);
    EXPECT_EQ(::mincore(at_, bytes_, there.data()), 0);
    return static_cast<size_t>(
        std::count_if(there.begin(), there.end(), [](unsigned char c) { return c & 1; }));
  }

 private:
  size_t bytes_;
  void* at_;
};

TEST(RuntimeFirstTouch, AllPagesAreThereInTheEnd) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (const size_t bytes : {page, size_t{1} << 20, (size_t{5} << 20) + 3 * page}) {
    Mapping memory(bytes);
    EXPECT_EQ(memory.resident(), 0u);
    FirstTouch touch({memory.span()});
    touch.finish();
    EXPECT_EQ(memory.resident(), bytes / page);
    touch.finish();  // again, for nothing
  }
}

// Only pages that lie wholly within are touched: nothing beyond the bytes that were given is written to.
TEST(RuntimeFirstTouch, PartsOfPagesAreLeft) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  Mapping memory(8 * page);
  FirstTouch({memory.span().subspan(100, 3 * page), memory.span().subspan(7 * page + 1, 50), {}}).finish();
  EXPECT_EQ(memory.resident(), 2u);
}

TEST(RuntimeFirstTouch, WhatIsWrittenMeanwhileStays) {
  Mapping memory(size_t{32} << 20);
  const std::span<std::byte> all = memory.span();
  {
    FirstTouch touch({all});
    for (size_t i = 0; i < all.size(); i += 512) all[i] = static_cast<std::byte>(i / 512 % 251 + 1);
  }
  size_t wrong = 0;
  for (size_t i = 0; i < all.size(); ++i)
    wrong += all[i] != (i % 512 ? std::byte{0} : static_cast<std::byte>(i / 512 % 251 + 1));
  EXPECT_EQ(wrong, 0u);
}

// y = 8 x by way of two buffers of the arena.
std::shared_ptr<Model> eightfold() {
  ModelBuilder b;
  const uint32_t d = b.device("d", "fake_inline", {{"visible", "1"}});
  b.space("host", d);
  const uint32_t t = b.f32({1024});
  const Arg x = b.input("x", t), y = b.output("y", t), h0 = b.buffer("h0", 0, t), h1 = b.buffer("h1", 0, t);
  b.launch(d, 0, "scale:2", {x}, {h0});
  b.launch(d, 0, "scale:2", {h0}, {h1});
  b.launch(d, 0, "scale:2", {h1}, {y});
  return b.finish();
}

TEST(RuntimeFirstTouch, ArenasThatAreMadeAheadAreOfTheFirstContext) {
  SessionOptions options;
  options.arenas_ahead = true;
  auto session = test::open(eightfold(), options);
  ASSERT_TRUE(session.ok()) << session.status().message();
  auto first = (*session)->acquire(), second = (*session)->acquire();
  ASSERT_TRUE(first.ok() && second.ok());
  for (const float value : {1.0F, 2.0F})
    for (auto* context : {&*first, &*second}) {
      const Answer a = run(**context, {row(std::vector<float>(1024, value))}, 1);
      ASSERT_TRUE(a.status.ok()) << a.status.message();
      EXPECT_EQ(a.outputs[0].values, std::vector<float>(1024, 8 * value));
    }
}

TEST(RuntimeFirstTouch, ASessionThatIsNeverRunEnds) {
  SessionOptions options;
  options.arenas_ahead = true;
  auto unused = test::open(eightfold(), options);
  ASSERT_TRUE(unused.ok());
  auto acquired = test::open(eightfold(), options);
  ASSERT_TRUE((*acquired)->acquire().ok());
}

}  // namespace
}  // namespace regie
