// Work beside a start: what is most urgent first, nothing of it once its owner has gone, and everything done
// by its owner where no thread comes.
#include "base/background.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace regie {
namespace {

using Urgency = Background::Urgency;

template <class Done>
bool comes(Done done) {
  for (int i = 0; i < 10000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done();
}

TEST(RuntimeBackground, DoesAllPieces) {
  std::atomic<int> next{0}, done{0};
  Background work;
  work.begin(Urgency::kMemory, 2, [&] {
    if (next++ >= 100) return false;
    ++done;
    return true;
  });
  EXPECT_TRUE(comes([&] { return done == 100; }));
}

TEST(RuntimeBackground, ForNoThreadNothingIsBegun) {
  std::atomic<bool> begun{false};
  {
    Background work;
    work.begin(Urgency::kKernels, 0, [&] {
      begun = true;
      return false;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(begun);
}

// One thread is held up by a first job while two others are given to it; its end sees them in order of
// urgency. More processors have more threads: all but one are held up, too.
TEST(RuntimeBackground, TheMostUrgentComesFirst) {
  std::atomic<bool> go{false};
  std::atomic<size_t> held{0};
  const size_t threads = std::max(2u, std::thread::hardware_concurrency()) - 1;
  std::mutex mutex;
  std::vector<Urgency> order;
  Background holder;
  holder.begin(Urgency::kKernels, threads, [&] {
    ++held;
    while (!go) std::this_thread::yield();
    return false;
  });
  ASSERT_TRUE(comes([&] { return held == threads; }));
  std::vector<std::atomic<int>> left(2);
  Background checksums, kernels;
  const auto job = [&](Urgency urgency, std::atomic<int>* pieces) {
    return [&, urgency, pieces] {
      if ((*pieces)-- <= 0) return false;
      std::lock_guard lock(mutex);
      order.push_back(urgency);
      return true;
    };
  };
  left[0] = left[1] = 50;
  checksums.begin(Urgency::kChecksums, 1, job(Urgency::kChecksums, &left[0]));
  kernels.begin(Urgency::kKernels, 1, job(Urgency::kKernels, &left[1]));
  go = true;
  const auto count = [&] {
    std::lock_guard lock(mutex);
    return order.size();
  };
  ASSERT_TRUE(comes([&] { return count() == 100; }));
  if (threads > 1) return;  // they run beside each other
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(order[i], Urgency::kKernels) << i;
}

TEST(RuntimeBackground, NothingRunsOnceItsOwnerHasGone) {
  for (int turn = 0; turn < 50; ++turn) {
    auto pieces = std::make_unique<std::atomic<int>>(0);
    {
      Background work;
      work.begin(Urgency::kChecksums, 3, [p = pieces.get()] {
        ++*p;
        std::this_thread::yield();
        return true;
      });
      if (turn % 2) {
        EXPECT_TRUE(comes([&] { return *pieces > 0; }));
      }
    }
    const int seen = *pieces;
    std::this_thread::yield();
    EXPECT_EQ(*pieces, seen);
  }
}

// Not with the tests of the runtime: ThreadSanitizer allows no threads after a fork.
TEST(Background, AChildProcessHasThreadsOfItsOwn) {
  std::atomic<int> done{0};
  Background before;
  before.begin(Urgency::kMemory, 1, [&] { return ++done < 3; });
  ASSERT_TRUE(comes([&] { return done == 3; }));
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> pieces{0};
    Background work;
    work.begin(Urgency::kMemory, 1, [&] { return ++pieces < 5; });
    ::_exit(comes([&] { return pieces == 5; }) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace regie
