// The greedy memory planner, through its C table. Every plan is checked by comparing all pairs of buffers,
// which shares no code with the planner; bounds come from a sum over every step.
#include <gtest/gtest.h>

#include <map>

#include "regie_test_paths.h"
#include "support/memory_problem.h"
#include "support/sanitized.h"

namespace regie::test {
namespace {

constexpr uint64_t kSmallBudget = 300000;  // enough for every kind of plan, at these sizes

class PlanGreedy : public ::testing::Test {
 protected:
  Status plan(const Buffers& buffers, uint64_t capacity = UINT64_MAX, uint64_t budget = 0) {
    Status s = planner_.plan(buffers, capacity, budget);
    offsets_ = planner_.offsets;
    answer_ = planner_.answer;
    return s;
  }

  // Plans, and checks all that a plan promises.
  void check(const Buffers& b, const std::string& what, uint64_t budget = 0) {
    Status s = plan(b, UINT64_MAX, budget);
    ASSERT_TRUE(s.ok()) << what << ": " << s.to_string();
    check_offsets(b, {}, offsets_, answer_.peak, what);
    // Something is most crowded where some buffer starts. All but the topmost take whole units of the least
    // alignment.
    uint64_t grain = UINT64_MAX, bound = 0;
    for (const auto& x : b)
      if (x.size) grain = std::min(grain, x.alignment);
    for (const auto& at : b) {
      uint64_t live = 0, left = 0;
      for (const auto& other : b) {
        if (other.size == 0 || other.lower > at.lower || at.lower >= other.upper) continue;
        const uint64_t whole = (other.size + grain - 1) / grain * grain;
        live += whole;
        left = std::max(left, whole - other.size);
      }
      bound = std::max(bound, live - left);
    }
    for (const auto& x : b)
      if (x.size && x.offset != REGIE_OFFSET_FREE) bound = std::max(bound, x.offset + x.size);
    EXPECT_GE(answer_.lower_bound, bound) << what;
    EXPECT_LE(answer_.lower_bound, answer_.peak) << what;
  }

  Planner planner_{"plan-greedy"};
  std::vector<uint64_t> offsets_;
  regie_memory_answer answer_{};
};

TEST_F(PlanGreedy, AChainNeedsTwoNeighbours) {
  // a[0,2) 100, b[1,3) 200, c[2,4) 100: at most a+b or b+c live: 128 + 256 rounded up to 64; c takes the
  // place of a.
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 2, 100), buffer(1, 3, 200), buffer(2, 4, 100)}, "chain"));
  EXPECT_EQ(answer_.lower_bound, 128u + 200u) << "the topmost one need not be whole";
  EXPECT_EQ(answer_.peak, 328u);
  EXPECT_EQ(answer_.proven_optimal, 1u);
}

TEST_F(PlanGreedy, NothingToPlan) {
  ASSERT_NO_FATAL_FAILURE(check({}, "empty"));
  EXPECT_EQ(answer_.peak, 0u);
  EXPECT_EQ(answer_.proven_optimal, 1u);
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 1, 0), buffer(0, 1, 0)}, "empty buffers"));
  EXPECT_EQ(answer_.peak, 0u);
}

TEST_F(PlanGreedy, FindsTheOptimumOfSmallInstances) {
  // Optima by trying every order of placement at the lowest place: for the peak, some order reaches the
  // optimum.
  size_t reached = 0, trials = 60;
  for (uint64_t seed = 0; seed < trials; ++seed) {
    Buffers b = random_buffers(seed, 6, 8, 4, 5, false);
    for (auto& x : b) {
      x.alignment = 1;
      x.size += 1;
    }
    ASSERT_NO_FATAL_FAILURE(check(b, "seed " + std::to_string(seed)));
    std::vector<size_t> order{0, 1, 2, 3, 4, 5};
    uint64_t best = UINT64_MAX;
    do {
      std::vector<uint64_t> at(6, 0);
      uint64_t peak = 0;
      for (size_t k = 0; k < 6; ++k) {
        uint64_t o = 0;
        for (bool moved = true; moved;) {
          moved = false;
          for (size_t m = 0; m < k; ++m) {
            const auto &x = b[order[k]], &y = b[order[m]];
            if (x.lower < y.upper && y.lower < x.upper && o < at[order[m]] + y.size &&
                at[order[m]] < o + x.size) {
              o = at[order[m]] + y.size;
              moved = true;
            }
          }
        }
        at[order[k]] = o;
        peak = std::max(peak, o + b[order[k]].size);
      }
      best = std::min(best, peak);
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_GE(answer_.peak, best) << "below the optimum: the plan or the optimum is wrong, seed " << seed;
    if (answer_.proven_optimal) {
      EXPECT_EQ(answer_.peak, best) << "claimed to be optimal, seed " << seed;
    }
    reached += answer_.peak == best;
  }
  EXPECT_GE(reached, trials - 3) << "six buffers are easy";
}

TEST_F(PlanGreedy, RandomInstances) {
  for (uint64_t seed = 0; seed < 24; ++seed)
    for (bool mixed : {false, true}) {
      const uint64_t life = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 40 : 400;
      ASSERT_NO_FATAL_FAILURE(check(random_buffers(seed, 20 + seed * 10, 200, life, 5000, mixed),
                                    "seed " + std::to_string(seed) + (mixed ? ", mixed alignments" : ""),
                                    kSmallBudget));
    }
}

TEST_F(PlanGreedy, FixedBuffersStay) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Buffers b = random_buffers(seed + 100, 60, 50, 20, 3000, seed % 2 == 1);
    // Fixed ones in lanes of their own, so that they do not meet each other: every eighth buffer, far up or
    // at the bottom.
    uint64_t lane = 0;
    for (size_t i = 0; i < b.size(); i += 8) {
      b[i].offset = lane;
      lane += 4096;
    }
    ASSERT_NO_FATAL_FAILURE(check(b, "seed " + std::to_string(seed), kSmallBudget));
  }
}

TEST_F(PlanGreedy, AFixedBufferThatComesLaterKeepsItsPlaceFree) {
  // The free one starts first and would sit at 0, where the fixed one comes while it is alive.
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 10, 64), buffer(5, 6, 64, 64, 0)}, "fixed later"));
  EXPECT_EQ(offsets_[0], 64u);
}

TEST_F(PlanGreedy, CapacityAndBadInput) {
  Status s = plan({buffer(0, 2, 100, 1), buffer(1, 3, 100, 1)}, 150);
  EXPECT_EQ(s.code(), REGIE_LIMIT);
  EXPECT_NE(s.message().find("needs 200 bytes, the memory space has 150"), std::string::npos)
      << s.to_string();
  EXPECT_NE(s.message().find("no plan can do with less than 200"), std::string::npos) << s.to_string();
  EXPECT_TRUE(plan({buffer(0, 2, 100, 1), buffer(1, 3, 100, 1)}, 200).ok());

  EXPECT_EQ(plan({buffer(2, 2, 1)}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(plan({buffer(0, 2, 1, 3)}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(plan({buffer(0, 2, 1, 0)}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(plan({buffer(0, 2, 1, 64, 32)}).code(), REGIE_INVALID_INPUT);
  s = plan({buffer(0, 2, 65, 64, 0), buffer(1, 2, 1, 64, 64)});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_NE(s.message().find("buffer 0 and buffer 1 are fixed in one place"), std::string::npos)
      << s.to_string();
  EXPECT_EQ(plan(Buffers(16, buffer(0, 2, uint64_t{1} << 60))).code(), REGIE_LIMIT);
  EXPECT_EQ(plan({buffer(0, 2, UINT64_MAX)}).code(), REGIE_INVALID_INPUT);
}

TEST_F(PlanGreedy, TheSameProblemGivesTheSamePlan) {
  const Buffers b = random_buffers(7, 400, 300, 60, 10000, true);
  ASSERT_TRUE(plan(b, UINT64_MAX, kSmallBudget).ok());
  const std::vector<uint64_t> first = offsets_;
  ASSERT_TRUE(plan(b, UINT64_MAX, kSmallBudget).ok());
  EXPECT_EQ(first, offsets_);
}

TEST_F(PlanGreedy, MoreBudgetIsNeverWorse) {
  const Buffers b = random_buffers(11, 300, 100, 40, 10000, false);
  uint64_t last = UINT64_MAX;
  for (uint64_t budget : {uint64_t{1}, uint64_t{100000}, uint64_t{1000000}}) {
    ASSERT_TRUE(plan(b, UINT64_MAX, budget).ok());
    EXPECT_LE(answer_.peak, last) << budget;
    last = answer_.peak;
  }
}

// How long that takes is measured by tests/bench/memory.py; a planner with lists of pairs would not come to
// an end.
TEST_F(PlanGreedy, ManyBuffers) {
  constexpr auto kMany = static_cast<uint64_t>(cases(cases(60000)));
  for (uint64_t life : {uint64_t{20}, kMany}) {
    const Buffers b = random_buffers(life, kMany, kMany, life, 100000, false);
    ASSERT_TRUE(plan(b).ok());
    EXPECT_LE(static_cast<double>(answer_.peak), 1.1 * static_cast<double>(answer_.lower_bound))
        << "lives of up to " << life;
    // The same pairs as a sweep over time sees them: who is alive when a buffer starts, kept by offset.
    std::vector<size_t> order(b.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t x, size_t y) { return b[x].lower < b[y].lower; });
    std::map<uint64_t, size_t> live;
    std::multimap<uint64_t, size_t> ends;
    for (size_t i : order) {
      while (!ends.empty() && ends.begin()->first <= b[i].lower) {
        live.erase(offsets_[ends.begin()->second]);
        ends.erase(ends.begin());
      }
      if (b[i].size == 0) continue;
      auto after = live.lower_bound(offsets_[i]);
      ASSERT_TRUE(after == live.end() || after->first >= offsets_[i] + b[i].size)
          << i << " and " << after->second;
      if (after != live.begin()) {
        auto before = std::prev(after);
        ASSERT_LE(before->first + b[before->second].size, offsets_[i]) << i << " and " << before->second;
      }
      live.emplace(offsets_[i], i);
      ends.emplace(b[i].upper, i);
    }
  }
}

TEST_F(PlanGreedy, PublicProblems) {
  // The best of the greedy planners in use elsewhere comes to this share of the bound.
  const std::pair<const char*, double> problems[] = {
      {"A", 1.31}, {"C", 1.36}, {"D", 1.31},  {"F", 1.12},
      {"G", 1.25}, {"K", 1.29}, {"G_1", 1.0}, {"somas_resnet50", 1.003}};
  for (const auto& [name, share] : problems) {
    const Buffers b = read_problem(std::string(REGIE_TEST_MODELS_DIR) + "/memory/" + name + ".csv");
    ASSERT_GE(b.size(), 100u) << name;
    ASSERT_NO_FATAL_FAILURE(check(b, name));
    EXPECT_LE(static_cast<double>(answer_.peak), (share + 0.0051) * static_cast<double>(answer_.lower_bound))
        << name << ": " << answer_.peak;
  }
}

}  // namespace
}  // namespace regie::test
