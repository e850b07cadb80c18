// The search for an order that keeps few bytes alive, on problems with what a graph alone does not show:
// results written over what they read for the last time, room that kernels need, bytes that several tasks may
// be the first to touch. Live bytes are counted here from the definitions; the least peak comes from trying
// every order.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "schedule-in-order/memory_order.h"
#include "schedule-in-order/order_search.h"

namespace regie {
namespace {

using order::Bytes;
using order::Order;
using order::Region;

Region random_region(uint64_t seed, uint32_t count) {
  std::mt19937_64 random(seed);
  Region r;
  for (uint32_t t = 0; t < count; ++t) {
    r.after.emplace_back();
    r.room.push_back(random() % 4 == 0 ? static_cast<int64_t>(random() % 20) : 0);
    r.bytes.push_back({static_cast<int64_t>(1 + random() % 4) * 4, {t}, false, random() % 8 == 0});
    for (uint64_t k = t ? random() % 4 : 0; k > 0; --k) {
      const auto from = static_cast<uint32_t>(random() % t);
      if (std::count(r.after[t].begin(), r.after[t].end(), from)) continue;
      r.after[t].push_back(from);
      r.bytes[from].touched_by.push_back(t);
      if (r.bytes[from].size == r.bytes[t].size && random() % 3) r.overwrites.push_back({t, t, from});
    }
  }
  // A whole whose parts are made by any of its tasks first.
  Bytes whole{static_cast<int64_t>(8 + random() % 16), {}, random() % 4 == 0, false};
  for (uint32_t t = 0; t < count; ++t)
    if (random() % 3 == 0) whole.touched_by.push_back(t);
  if (!whole.touched_by.empty()) r.bytes.push_back(whole);
  return r;
}

int64_t peak_of(const Region& r, const Order& tasks) {
  std::vector<size_t> place(tasks.size());
  for (size_t k = 0; k < tasks.size(); ++k) place[tasks[k]] = k;
  const auto life = [&](const Bytes& b) {
    std::pair<size_t, size_t> of{SIZE_MAX, 0};
    for (uint32_t t : b.touched_by) of = {std::min(of.first, place[t]), std::max(of.second, place[t])};
    return std::pair{b.begun ? 0 : of.first, b.kept ? tasks.size() : of.second};
  };
  int64_t peak = 0;
  for (const Bytes& b : r.bytes) peak += b.begun ? b.size : 0;  // before the first task
  for (size_t k = 0; k < tasks.size(); ++k) {
    int64_t live = r.room[tasks[k]];
    for (const Bytes& b : r.bytes) {
      const auto [from, to] = life(b);
      if (from <= k && k <= to) live += b.size;
    }
    std::vector<uint32_t> used;  // each is written over once, and lies over one
    for (const order::Overwrite& o : r.overwrites) {
      if (o.task != tasks[k] || std::count(used.begin(), used.end(), o.made + 1000) ||
          std::count(used.begin(), used.end(), o.over))
        continue;
      const auto made = life(r.bytes[o.made]), over = life(r.bytes[o.over]);
      if (made.first != k || made.second == k || over.second != k || over.first == k) continue;
      live -= r.bytes[o.made].size;
      used.insert(used.end(), {o.made + 1000, o.over});
    }
    peak = std::max(peak, live);
  }
  return peak;
}

int64_t least_peak(const Region& r) {
  int64_t best = INT64_MAX;
  Order tasks;
  std::vector<bool> done(r.count(), false);
  std::function<void()> extend = [&] {
    if (tasks.size() == r.count()) {
      best = std::min(best, peak_of(r, tasks));
      return;
    }
    for (uint32_t t = 0; t < r.count(); ++t) {
      if (done[t] || !std::all_of(r.after[t].begin(), r.after[t].end(), [&](uint32_t a) { return done[a]; }))
        continue;
      done[t] = true;
      tasks.push_back(t);
      extend();
      tasks.pop_back();
      done[t] = false;
    }
  };
  extend();
  return best;
}

int64_t begun(const Region& r) {
  int64_t live = 0;
  for (const Bytes& b : r.bytes) live += b.begun ? b.size : 0;
  return live;
}

bool valid(const Region& r, const Order& tasks) {
  std::vector<bool> done(r.count(), false);
  for (uint32_t t : tasks) {
    if (done[t]) return false;
    for (uint32_t a : r.after[t])
      if (!done[a]) return false;
    done[t] = true;
  }
  return tasks.size() == r.count();
}

TEST(MemoryOrder, AReplayCountsWhatIsAlive) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Region r = random_region(seed, 12);
    Order tasks(r.count());
    std::iota(tasks.begin(), tasks.end(), 0);
    EXPECT_EQ(order::Replay(r).peak(tasks, begun(r)), peak_of(r, tasks)) << seed;
  }
}

TEST(MemoryOrder, TheSearchFindsTheLeastPeakAndProvesIt) {
  size_t below = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Region r = random_region(seed, 7);
    const int64_t best = least_peak(r);
    uint64_t budget = 1'000'000;
    Order found;
    ASSERT_EQ(order::order_below(r, begun(r), best + 1, {1000}, &budget, &found), order::Found::kOrder)
        << seed;
    ASSERT_TRUE(valid(r, found)) << seed;
    ASSERT_EQ(peak_of(r, found), best) << seed;
    ASSERT_EQ(order::order_below(r, begun(r), best, {1000}, &budget, &found), order::Found::kNoSuchOrder)
        << seed;
    Order given(r.count());
    std::iota(given.begin(), given.end(), 0);
    below += best < peak_of(r, given);
  }
  EXPECT_GT(below, 60u);
}

TEST(MemoryOrder, ABudgetThatIsUsedUpProvesNothing) {
  const Region r = random_region(3, 12);
  uint64_t budget = 3;
  Order found;
  EXPECT_EQ(order::order_below(r, begun(r), 1 << 20, {1000}, &budget, &found), order::Found::kNothing);
}

// What holds back any order: nothing here has begun.
TEST(MemoryOrder, TheOrderIsTheBestOfSmallProblemsAndNeverWorse) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Region r = random_region(seed, 7);
    for (Bytes& b : r.bytes) b.begun = false;
    const Order tasks = order::for_memory(r, 1'000'000);
    ASSERT_TRUE(valid(r, tasks)) << seed;
    ASSERT_EQ(peak_of(r, tasks), least_peak(r)) << seed;
    for (uint64_t small : {0, 50, 1000}) {
      Region larger = random_region(seed, 60);
      for (Bytes& b : larger.bytes) b.begun = false;
      const Order other = order::for_memory(larger, small);
      Order given(larger.count());
      std::iota(given.begin(), given.end(), 0);
      ASSERT_TRUE(valid(larger, other)) << seed;
      ASSERT_LE(peak_of(larger, other), peak_of(larger, given)) << seed;
    }
  }
}

}  // namespace
}  // namespace regie
