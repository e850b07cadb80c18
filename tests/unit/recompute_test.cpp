// What is computed again for memory. Bytes are counted here from the definitions: a version of a value is
// alive from the run that makes it to the last run that reads it before the next version. The least peak of
// small problems comes from trying every sequence.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "schedule-in-order/memory_order.h"
#include "schedule-in-order/recompute.h"
#include "support/sanitized.h"

namespace regie {
namespace {

using order::Order;
using order::Region;

// Task t makes bytes t; it reads those of the tasks that it is after.
Region network(const std::vector<std::vector<uint32_t>>& reads, const std::vector<int64_t>& size,
               const std::vector<double>& cost) {
  Region r;
  for (uint32_t t = 0; t < reads.size(); ++t) {
    r.after.push_back(reads[t]);
    r.room.push_back(0);
    r.bytes.push_back({size[t], {t}, false, false});
    for (uint32_t a : reads[t]) r.bytes[a].touched_by.push_back(t);
    r.again.push_back(cost[t] > 0 ? t : Region::kNoTask);
    r.cost.push_back(std::max(cost[t], 1.0));
  }
  return r;
}

// -1: a run reads what has never been made, or a task does not run.
int64_t peak_of(const Region& r, const Order& steps) {
  struct Version {
    uint32_t task;
    size_t from, to;
  };
  std::vector<Version> versions;
  std::vector<size_t> last(r.count(), SIZE_MAX);
  for (size_t k = 0; k < steps.size(); ++k) {
    for (uint32_t a : r.after[steps[k]]) {
      if (last[a] == SIZE_MAX) return -1;
      versions[last[a]].to = k;
    }
    last[steps[k]] = versions.size();
    versions.push_back({steps[k], k, k});
  }
  if (std::count(last.begin(), last.end(), SIZE_MAX)) return -1;
  int64_t peak = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    int64_t live = r.room[steps[k]];
    for (const Version& v : versions)
      if (v.from <= k && k <= v.to) live += r.bytes[v.task].size;
    peak = std::max(peak, live);
  }
  return peak;
}

double cost_of(const Region& r, const Order& steps) {
  std::vector<uint32_t> runs(r.count(), 0);
  double cost = 0;
  for (uint32_t t : steps)
    if (runs[t]++) cost += r.cost[t];
  return cost;
}

TEST(Recompute, AMaskIsMadeAgainBehindThePeak) {
  // 0 input, 1 mask, 2 mean of the mask, 3 scaled, 4 wide, 5 narrow, 6 masked; the input stays for the end.
  const Region r =
      network({{}, {0}, {1}, {0, 2}, {3}, {4}, {5, 1, 0}}, {8, 8, 1, 8, 64, 8, 8}, {0, 3, 0, 0, 0, 0, 0});
  const Order from = order::for_memory(r, 100000);
  const int64_t before = peak_of(r, from);
  const order::Recomputed none = order::recompute(r, from, {0, 2, 0, 100}, 100000);
  EXPECT_EQ(none.steps, from);
  const order::Recomputed some = order::recompute(r, from, {0, 3, 0, 100}, 100000);
  EXPECT_EQ(some.peak, before - 8);
  EXPECT_EQ(peak_of(r, some.steps), some.peak);
  EXPECT_EQ(some.cost, 3);
  EXPECT_EQ(std::count(some.steps.begin(), some.steps.end(), 1u), 2);
  // Eight bytes of many are not worth three hundredths of the time, if that is asked for.
  const order::Recomputed dear = order::recompute(r, from, {0, 3, 10, 100}, 100000);
  EXPECT_EQ(dear.steps, from);
}

TEST(Recompute, AChainIsMadeAgainTogether) {
  // 2 is made of 1, which nobody else reads late: only both together go, as 0 stays anyway.
  const Region r =
      network({{}, {0}, {1}, {2}, {3}, {4}, {5, 2, 0}}, {8, 8, 8, 8, 64, 8, 8}, {0, 2, 2, 0, 0, 0, 0});
  const Order from = order::for_memory(r, 100000);
  const order::Recomputed made = order::recompute(r, from, {0, 4, 0, 100}, 100000);
  EXPECT_EQ(made.peak, peak_of(r, from) - 8);
  EXPECT_EQ(peak_of(r, made.steps), made.peak);
  EXPECT_EQ(made.cost, 4);
  EXPECT_EQ(order::recompute(r, from, {0, 3.5, 0, 100}, 100000).cost, 0);
}

Region random_network(uint64_t seed, uint32_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint32_t>> reads(count);
  std::vector<int64_t> size(count);
  std::vector<double> cost(count);
  for (uint32_t t = 0; t < count; ++t) {
    for (uint64_t k = t ? 1 + random() % 3 : 0; k > 0; --k)
      reads[t].push_back(static_cast<uint32_t>(random() % t));
    std::sort(reads[t].begin(), reads[t].end());
    reads[t].erase(std::unique(reads[t].begin(), reads[t].end()), reads[t].end());
    size[t] = static_cast<int64_t>(1 + random() % 5);
    cost[t] = random() % 2 ? static_cast<double>(1 + random() % 3) : 0;
  }
  return network(reads, size, cost);
}

// Of all sequences in which copies take `cost` together.
int64_t least_peak(const Region& r, double cost) {
  int64_t best = INT64_MAX;
  Order steps;
  std::vector<uint32_t> runs(r.count(), 0);
  size_t done = 0;
  std::function<void(double)> extend = [&](double left) {
    if (done == r.count()) {
      best = std::min(best, peak_of(r, steps));
      return;
    }
    for (uint32_t t = 0; t < r.count(); ++t) {
      if (runs[t] ? r.again[t] != t || r.cost[t] > left : false) continue;
      if (std::any_of(r.after[t].begin(), r.after[t].end(), [&](uint32_t a) { return !runs[a]; })) continue;
      if (runs[t] && steps.back() == t) continue;
      done += !runs[t]++;
      steps.push_back(t);
      extend(runs[t] > 1 ? left - r.cost[t] : left);
      steps.pop_back();
      done -= !--runs[t];
    }
  };
  extend(cost);
  return best;
}

TEST(Recompute, SmallProblemsMostlyGetTheBest) {
  size_t best = 0, lower = 0, count = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const Region r = random_network(seed, 7);
    const Order from = order::for_memory(r, 1000000);
    for (double cost : {1.0, 2.0}) {
      const order::Recomputed made = order::recompute(r, from, {0, cost, 0, 100}, 1000000);
      const int64_t least = least_peak(r, cost);
      ASSERT_EQ(peak_of(r, made.steps), made.peak) << seed;
      ASSERT_EQ(cost_of(r, made.steps), made.cost) << seed;
      ASSERT_LE(made.cost, cost) << seed;
      ASSERT_GE(made.peak, least) << seed;
      ASSERT_LE(made.peak, peak_of(r, from)) << seed;
      best += made.peak == least;
      lower += least < peak_of(r, from);
      ++count;
    }
  }
  EXPECT_GE(lower, count / 20);
  EXPECT_GE(best, count * 97 / 100);
}

TEST(Recompute, NothingIsMadeAgainThatThePeakDoesNotNeed) {
  constexpr uint64_t kNetworks = test::cases(60);
  size_t copies = 0;
  for (uint64_t seed = 0; seed < kNetworks; ++seed) {
    const Region r = random_network(seed, 24);
    const Order from = order::for_memory(r, 1000000);
    const order::Recomputed made = order::recompute(r, from, {0, 8, 0, 100}, 2000000);
    ASSERT_EQ(peak_of(r, made.steps), made.peak) << seed;
    ASSERT_LE(made.peak, peak_of(r, from)) << seed;
    ASSERT_LE(made.cost, 8) << seed;
    std::vector<uint32_t> runs(r.count(), 0);
    for (size_t k = 0; k < made.steps.size(); ++k) {
      if (!runs[made.steps[k]]++) continue;
      ++copies;
      Order fewer = made.steps;
      fewer.erase(fewer.begin() + static_cast<long>(k));
      EXPECT_GT(peak_of(r, fewer), made.peak) << seed << ": step " << k << " is of no use";
    }
    const order::Recomputed again = order::recompute(r, from, {0, 8, 0, 100}, 2000000);
    EXPECT_EQ(again.steps, made.steps) << seed;
  }
  EXPECT_GT(copies, kNetworks / 6);
}

TEST(Recompute, ALimitIsEnough) {
  const Region r = random_network(3, 24);
  const Order from = order::for_memory(r, 1000000);
  const int64_t before = peak_of(r, from);
  const order::Recomputed all = order::recompute(r, from, {0, 100, 0, 100}, 4000000);
  const order::Recomputed some = order::recompute(r, from, {before - 1, 100, 0, 100}, 4000000);
  ASSERT_LT(all.peak, before);
  EXPECT_LE(some.peak, before - 1);
  EXPECT_LE(some.cost, all.cost);
}

}  // namespace
}  // namespace regie
