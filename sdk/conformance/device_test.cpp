// What every device promises (regie/c/device.h): memory, order, copies, fences, limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "suite.h"

namespace regie::conformance {
namespace {

class Device : public testing::Test {
 protected:
  Device()
      : under(suite().library->devices(), suite().device, suite().device_settings), table(under.table()) {}
  void* allocate(uint64_t bytes) {
    void* at = nullptr;
    EXPECT_EQ(table.allocate(under.device(), 0, bytes, &at), REGIE_OK) << take_failure();
    return at;
  }
  void release(void* at) { table.release(under.device(), 0, at); }
  void copy(uint32_t direction, void* to, const void* from, uint64_t bytes) {
    ASSERT_EQ(table.copy(under.stream(), direction, to, from, bytes), REGIE_OK) << take_failure();
  }
  void wait() { ASSERT_EQ(table.stream_wait(under.stream(), UINT64_MAX), REGIE_OK) << take_failure(); }
  regie_fence* fence() {
    regie_fence* made = nullptr;
    EXPECT_EQ(table.fence_create(under.device(), &made), REGIE_OK) << take_failure();
    return made;
  }
  static std::vector<unsigned char> pattern(size_t bytes, unsigned seed) {
    std::vector<unsigned char> p(bytes);
    for (size_t i = 0; i < bytes; ++i)
      p[i] = static_cast<unsigned char>((i * 31 + seed * 97 + i / 251) & 0xff);
    return p;
  }

  DeviceUnderTest under;
  const regie_device_table& table;
};

TEST_F(Device, DescribesItself) {
  const regie_device_description& d = under.description();
  ASSERT_GE(d.space_count, 1u);
  for (uint32_t s = 0; s < d.space_count; ++s) {
    EXPECT_GT(d.spaces[s].name.size, 0u);
    EXPECT_GT(d.spaces[s].alignment, 0u);
    EXPECT_EQ(d.spaces[s].alignment & (d.spaces[s].alignment - 1), 0u);
  }
  ASSERT_GE(d.format_count, 1u);
  EXPECT_GE(d.limits.streams, 1u);
  EXPECT_GE(d.limits.fences, 1u);
  EXPECT_GE(d.limits.queue_depth, 1u);
  EXPECT_GT(d.limits.wait_timeout_ns, 0u);
  EXPECT_EQ(&d, table.describe(under.device())) << "the description lives as long as the device";
}

TEST_F(Device, RefusesAParameterThatItDoesNotKnow) {
  regie_device* made = nullptr;
  const Settings odd({{"regie_conformance_no_such_key", "1"}});
  EXPECT_EQ(table.create(suite().device, host(), odd.get(), &made), REGIE_INVALID_INPUT);
  EXPECT_NE(take_failure().find("regie_conformance_no_such_key"), std::string::npos);
}

TEST_F(Device, BuffersAreAlignedAndApart) {
  const uint64_t sizes[] = {1, 3, 64, 65, 4096, 100'000};
  std::vector<void*> buffers;
  for (uint64_t bytes : sizes) {
    buffers.push_back(allocate(bytes));
    ASSERT_NE(buffers.back(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back()) % under.description().spaces[0].alignment, 0u);
  }
  std::vector<std::vector<unsigned char>> sent;
  for (size_t i = 0; i < buffers.size(); ++i) {
    sent.push_back(pattern(sizes[i], static_cast<unsigned>(i)));
    copy(REGIE_COPY_TO_DEVICE, buffers[i], sent[i].data(), sizes[i]);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::vector<unsigned char> back(sizes[i]);
    copy(REGIE_COPY_FROM_DEVICE, back.data(), buffers[i], sizes[i]);
    wait();
    EXPECT_EQ(back, sent[i]);
    release(buffers[i]);
  }
}

TEST_F(Device, CopiesInsideTheDevice) {
  auto sent = pattern(1000, 5);
  std::vector<unsigned char> back(1000);
  void *a = allocate(1000), *b = allocate(1000);
  copy(REGIE_COPY_TO_DEVICE, a, sent.data(), 1000);
  copy(REGIE_COPY_INSIDE, b, a, 1000);
  copy(REGIE_COPY_FROM_DEVICE, back.data(), b, 1000);
  wait();
  EXPECT_EQ(back, sent);
  copy(REGIE_COPY_INSIDE, static_cast<char*>(b) + 128, static_cast<char*>(a) + 64, 100);
  copy(REGIE_COPY_FROM_DEVICE, back.data(), b, 1000);
  wait();
  std::copy_n(sent.begin() + 64, 100, sent.begin() + 128);
  auto expected = pattern(1000, 5);
  std::copy_n(pattern(1000, 5).begin() + 64, 100, expected.begin() + 128);
  EXPECT_EQ(back, expected);
  release(a);
  release(b);
}

TEST_F(Device, SaysWhatIsLeftWhenMemoryRunsOut) {
  const uint64_t capacity = under.description().spaces[0].capacity;
  void* at = nullptr;
  EXPECT_EQ(table.allocate(under.device(), 0, capacity ? capacity + 1 : uint64_t{1} << 62, &at),
            REGIE_OUT_OF_MEMORY);
  EXPECT_NE(take_failure(), "");
  EXPECT_NE(table.allocate(under.device(), 9999, 64, &at), REGIE_OK) << "there is no such memory space";
  take_failure();
  void* after = allocate(64);
  ASSERT_NE(after, nullptr) << "a refusal must not break the device";
  release(after);
}

struct Log {
  std::vector<int>* list;
  int number;
};
void append(void* context) {
  auto* log = static_cast<Log*>(context);
  log->list->push_back(log->number);
}

TEST_F(Device, WorkRunsInTheOrderOfItsStream) {
  const int count = static_cast<int>(std::min<uint32_t>(under.description().limits.queue_depth, 1000)) * 3;
  std::vector<int> list;
  std::vector<Log> logs;
  for (int i = 0; i < count; ++i) logs.push_back({&list, i});
  for (Log& log : logs) ASSERT_EQ(table.call_host(under.stream(), append, &log), REGIE_OK) << take_failure();
  wait();
  ASSERT_EQ(list.size(), logs.size());
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
}

TEST_F(Device, AFenceReachesTheHostAndNeverGoesBack) {
  regie_fence* f = fence();
  EXPECT_EQ(table.host_wait(f, 0, 0), REGIE_OK);
  ASSERT_EQ(table.fence_signal(under.stream(), f, 5), REGIE_OK);
  EXPECT_EQ(table.host_wait(f, 5, UINT64_MAX), REGIE_OK) << take_failure();
  ASSERT_EQ(table.fence_signal(under.stream(), f, 3), REGIE_OK);
  wait();
  EXPECT_EQ(table.host_wait(f, 5, 0), REGIE_OK) << take_failure();
  table.fence_destroy(f);
}

TEST_F(Device, AWaitEndsAtItsLimit) {
  regie_fence* f = fence();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(table.host_wait(f, 1, 5'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure(), "");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(4));
  ASSERT_EQ(table.fence_signal(under.stream(), f, 1), REGIE_OK);
  EXPECT_EQ(table.host_wait(f, 1, UINT64_MAX), REGIE_OK) << "a timeout is no failure of the stream";
  table.fence_destroy(f);
}

TEST_F(Device, AFenceHoldsAStreamBackUntilAnotherSignals) {
  regie_stream* other = nullptr;
  ASSERT_EQ(table.stream_create(under.device(), &other), REGIE_OK) << take_failure();
  regie_fence* f = fence();
  std::vector<int> list;
  Log first{&list, 1}, second{&list, 2};
  auto slowly = [](void* context) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    append(context);
  };
  ASSERT_EQ(table.call_host(under.stream(), slowly, &first), REGIE_OK);
  ASSERT_EQ(table.fence_signal(under.stream(), f, 1), REGIE_OK);
  ASSERT_EQ(table.fence_wait(other, f, 1), REGIE_OK);
  ASSERT_EQ(table.call_host(other, append, &second), REGIE_OK);
  EXPECT_EQ(table.stream_wait(other, UINT64_MAX), REGIE_OK) << take_failure();
  wait();
  EXPECT_EQ(list, (std::vector<int>{1, 2}));
  table.stream_destroy(other);
  table.fence_destroy(f);
}

TEST_F(Device, DestroyingAStreamWaitsForItsWork) {
  regie_stream* other = nullptr;
  ASSERT_EQ(table.stream_create(under.device(), &other), REGIE_OK) << take_failure();
  std::vector<int> list;
  Log log{&list, 1};
  for (int i = 0; i < 3; ++i) ASSERT_EQ(table.call_host(other, append, &log), REGIE_OK);
  table.stream_destroy(other);
  EXPECT_EQ(list.size(), 3u);
}

TEST_F(Device, SeveralThreadsWithAStreamEach) {
  const uint32_t count = std::min(4u, under.description().limits.streams - 1);
  ASSERT_GE(count, 1u);
  std::vector<int> wrong(count, -1);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      regie_stream* mine = nullptr;
      if (table.stream_create(under.device(), &mine) != REGIE_OK) return;
      int bad = 0;
      for (unsigned n = 0; n < 20; ++n) {
        const auto sent = pattern(777, t * 100 + n);
        std::vector<unsigned char> back(777);
        void* at = nullptr;
        bad += table.allocate(under.device(), 0, 777, &at) != REGIE_OK;
        bad += table.copy(mine, REGIE_COPY_TO_DEVICE, at, sent.data(), 777) != REGIE_OK;
        bad += table.copy(mine, REGIE_COPY_FROM_DEVICE, back.data(), at, 777) != REGIE_OK;
        bad += table.stream_wait(mine, UINT64_MAX) != REGIE_OK;
        bad += back != sent;
        table.release(under.device(), 0, at);
      }
      table.stream_destroy(mine);
      wrong[t] = bad;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(count, 0));
}

TEST_F(Device, TheClockNeverGoesBack) {
  uint64_t last = table.now(under.device());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t next = table.now(under.device());
    ASSERT_GE(next, last);
    last = next;
  }
}

TEST_F(Device, RefusesForeignAndBrokenKernels) {
  Kernel kernel;
  kernel.format = "regie.conformance.no-such-format/1";
  kernel.blob = "x";
  EXPECT_EQ(under.try_load(kernel), REGIE_UNSUPPORTED);
  EXPECT_NE(take_failure(), "");
  for (uint32_t f = 0; f < under.description().format_count; ++f) {
    kernel.format = std::string(sdk::sv(under.description().formats[f]));
    for (size_t size : {0, 1, 4, 64, 1000}) {
      const auto bytes = pattern(size, f);
      kernel.blob.assign(bytes.begin(), bytes.end());
      EXPECT_EQ(under.try_load(kernel), REGIE_CORRUPT) << kernel.format << ", " << size << " bytes";
      EXPECT_NE(take_failure(), "");
    }
  }
}

}  // namespace
}  // namespace regie::conformance
