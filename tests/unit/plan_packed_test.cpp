// The planner with exact search, through its C table. Optima of small problems come from trying every offset
// of every buffer; plans are judged by all pairs of buffers; peaks that the public problems have to reach
// were published with them, or are the sums of sizes live at one step.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "regie_test_paths.h"
#include "support/memory_problem.h"
#include "support/sanitized.h"

namespace regie::test {
namespace {

class PlanPacked : public ::testing::Test {
 protected:
  void check(const Buffers& b, const std::string& what, const Options& options = {},
             const Conflicts& conflicts = {}, uint64_t budget = 0) {
    Status s = planner_.plan(b, UINT64_MAX, budget, options, conflicts);
    ASSERT_TRUE(s.ok()) << what << ": " << s.to_string();
    check_offsets(b, conflicts, planner_.offsets, planner_.answer.peak, what);
    EXPECT_LE(planner_.answer.lower_bound, planner_.answer.peak) << what;
    EXPECT_EQ(planner_.answer.proven_optimal != 0, planner_.answer.lower_bound == planner_.answer.peak)
        << what;
  }
  Planner planner_{"plan-packed"};
};

// Is there a plan within `capacity`? Tries every offset of every buffer.
class Everything {
 public:
  Everything(const Buffers& b, const Conflicts& conflicts) : b_(b), at_(b.size(), 0), apart_(b.size()) {
    for (const auto& c : conflicts) {
      apart_[std::max(c.first, c.second)].push_back(std::min(c.first, c.second));
    }
  }
  // `at_least`: a peak that is surely needed.
  uint64_t least_peak(uint64_t at_least) {
    for (uint64_t capacity = at_least;; ++capacity)
      if (fits(0, capacity)) return capacity;
  }

 private:
  bool fits(size_t i, uint64_t capacity) {
    if (i == b_.size()) return true;
    const auto& x = b_[i];
    if (x.size == 0 && x.group == 0) return fits(i + 1, capacity);  // it is in nobody's way
    for (at_[i] = 0; at_[i] + x.size <= (x.size ? capacity : 64); at_[i] += x.alignment)
      if (allowed(i) && fits(i + 1, capacity)) return true;
    return false;
  }
  bool allowed(size_t i) const {
    const auto& x = b_[i];
    if (x.offset != REGIE_OFFSET_FREE && at_[i] != x.offset) return false;
    for (size_t j = 0; j < i; ++j) {
      const auto& y = b_[j];
      if (x.group && x.group == y.group) {
        if (at_[i] != at_[j]) return false;
        continue;
      }
      const bool together = x.lower < y.upper && y.lower < x.upper;
      const bool apart = std::find(apart_[i].begin(), apart_[i].end(), j) != apart_[i].end();
      if (x.size && y.size && (together || apart) && at_[i] < at_[j] + y.size && at_[j] < at_[i] + x.size)
        return false;
    }
    return true;
  }
  const Buffers& b_;
  std::vector<uint64_t> at_;
  std::vector<std::vector<size_t>> apart_;
};

struct Kind {
  const char* name;
  bool aligned, fixed, groups, conflicts;
};
constexpr Kind kKinds[] = {{"plain", false, false, false, false},    {"aligned", true, false, false, false},
                           {"fixed", false, true, false, false},     {"groups", false, false, true, false},
                           {"conflicts", false, false, false, true}, {"all", true, true, true, true}};

TEST_F(PlanPacked, FindsAndProvesTheOptimumOfThousandsOfSmallProblems) {
  size_t planned = 0, above_bound = 0;
  std::map<std::string, size_t> by_kind;
  for (uint64_t seed = 0; seed < 4200; ++seed) {
    const Kind& kind = kKinds[seed % std::size(kKinds)];
    std::mt19937_64 random(seed);
    auto below = [&](uint64_t n) { return random() % n; };
    Buffers b;
    const size_t n = 1 + below(6);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t lower = below(6), upper = lower + 1 + below(4), size = below(9) ? 1 + below(4) : 0;
      b.push_back(buffer(lower, upper, size, kind.aligned ? uint64_t{1} << below(3) : 1));
      if (kind.groups && below(3) == 0) b.back().group = 1 + static_cast<uint32_t>(below(2));
      if (kind.fixed && below(4) == 0) b.back().offset = below(4) * b.back().alignment;
    }
    Conflicts conflicts;
    if (kind.conflicts)
      for (size_t k = below(3); k > 0; --k) {
        const uint64_t i = below(n), j = below(n);
        if (i != j && (b[i].group == 0 || b[i].group != b[j].group)) conflicts.push_back({i, j});
      }
    const std::string what = std::string(kind.name) + ", seed " + std::to_string(seed);
    const Status s = planner_.plan(b, UINT64_MAX, 0, {}, conflicts);
    if (!s.ok()) {
      // Fixed buffers that meet, or a group that is fixed at two places: nothing to plan.
      ASSERT_TRUE(kind.fixed && s.code() == REGIE_INVALID_INPUT) << what << ": " << s.to_string();
      ASSERT_NE(s.message().find("fixed"), std::string::npos) << what << ": " << s.to_string();
      continue;
    }
    ++planned;
    ++by_kind[kind.name];
    ASSERT_NO_FATAL_FAILURE(check_offsets(b, conflicts, planner_.offsets, planner_.answer.peak, what));
    uint64_t live_most = 0;
    for (const auto& at : b) {
      uint64_t live = 0;
      for (const auto& x : b)
        if (x.group == 0 && x.lower <= at.lower && at.lower < x.upper) live += x.size;
      live_most = std::max(live_most, live);
    }
    const uint64_t best = Everything(b, conflicts).least_peak(live_most);
    ASSERT_EQ(planner_.answer.peak, best) << what;
    ASSERT_EQ(planner_.answer.lower_bound, best) << what << ": a proof is due";
    ASSERT_TRUE(planner_.answer.proven_optimal) << what;
    above_bound += best > live_most;
    if (best == 0) continue;
    ASSERT_TRUE(planner_.plan(b, best, 0, {}, conflicts).ok()) << what;
    ASSERT_NO_FATAL_FAILURE(check_offsets(b, conflicts, planner_.offsets, planner_.answer.peak, what));
    ASSERT_EQ(planner_.plan(b, best - 1, 0, {}, conflicts).code(), REGIE_LIMIT) << what;
    ASSERT_TRUE(planner_.answer.proven_infeasible) << what;
  }
  EXPECT_GE(planned, 3500u);
  EXPECT_GE(above_bound, 100u) << "where packing is more than a sum";
  for (const Kind& kind : kKinds) EXPECT_GE(by_kind[kind.name], 200u) << kind.name;
}

TEST_F(PlanPacked, RandomProblemsOfAllSorts) {
  for (uint64_t seed = 0; seed < uint64_t{cases(60)}; ++seed) {
    std::mt19937_64 random(seed * 7919);
    const uint64_t life = seed % 3 == 0 ? 3 : seed % 3 == 1 ? 40 : 400;
    Buffers b = random_buffers(seed, 20 + seed * 5, 200, life, 5000, seed % 2 == 1);
    Conflicts conflicts;
    if (seed % 4 >= 2)
      for (size_t k = 0; k < b.size() / 4; ++k) {
        const uint64_t i = random() % b.size(), j = random() % b.size();
        if (i != j) conflicts.push_back({i, j});
      }
    if (seed % 5 == 4) {
      conflicts.clear();
      for (auto& x : b)
        if (random() % 6 == 0) x.group = 1 + static_cast<uint32_t>(random() % 5);
    }
    if (seed % 5 == 3) {
      uint64_t lane = 0;
      for (size_t i = 0; i < b.size(); i += 9, lane += 8192) b[i].offset = lane;
    }
    ASSERT_NO_FATAL_FAILURE(check(b, "seed " + std::to_string(seed), {{"effort", "fast"}}, conflicts));
  }
}

TEST_F(PlanPacked, Degenerate) {
  ASSERT_NO_FATAL_FAILURE(check({}, "nothing"));
  EXPECT_EQ(planner_.answer.peak, 0u);
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 1, 0), buffer(0, 1, 0, 1, 7)}, "no bytes"));
  EXPECT_EQ(planner_.answer.peak, 0u);
  EXPECT_TRUE(planner_.answer.proven_optimal);
  ASSERT_NO_FATAL_FAILURE(check({buffer(5, 9, 100)}, "one"));
  EXPECT_EQ(planner_.answer.peak, 100u);
  // All at once: they lie on each other, the last one need not be whole.
  ASSERT_NO_FATAL_FAILURE(check(Buffers(50, buffer(0, 10, 100)), "all at once"));
  EXPECT_EQ(planner_.answer.peak, 49u * 128 + 100);
  EXPECT_TRUE(planner_.answer.proven_optimal);
  Buffers same;
  for (uint64_t i = 0; i < 400; ++i) same.push_back(buffer(i % 20, i % 20 + 5, 64));
  ASSERT_NO_FATAL_FAILURE(check(same, "identical ones"));
  EXPECT_EQ(planner_.answer.peak, 5u * 20 * 64);
  Buffers fixed;
  for (uint64_t i = 0; i < 300; ++i) fixed.push_back(buffer(0, 10, 64, 64, i * 64));
  ASSERT_NO_FATAL_FAILURE(check(fixed, "all fixed"));
  EXPECT_EQ(planner_.answer.peak, 300u * 64);
  ASSERT_NO_FATAL_FAILURE(
      check({buffer(0, UINT64_MAX, uint64_t{1} << 58, 1), buffer(7, UINT64_MAX, 5, 1)}, "huge"));
  EXPECT_EQ(planner_.answer.peak, (uint64_t{1} << 58) + 5);
  // A group of buffers without bytes still lies at one place.
  ASSERT_NO_FATAL_FAILURE(
      check({buffer(0, 1, 0, 1, REGIE_OFFSET_FREE, 1), buffer(3, 4, 0, 64, 128, 1), buffer(0, 9, 10)},
            "empty group"));
}

TEST_F(PlanPacked, GroupsAndConflicts) {
  // Alone, the two would share their bytes.
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 2, 100, 1), buffer(2, 4, 100, 1)}, "apart in time"));
  EXPECT_EQ(planner_.answer.peak, 100u);
  ASSERT_NO_FATAL_FAILURE(check({buffer(0, 2, 100, 1), buffer(2, 4, 100, 1)}, "conflict", {}, {{0, 1}}));
  EXPECT_EQ(planner_.answer.peak, 200u);
  EXPECT_TRUE(planner_.answer.proven_optimal);
  // A group at one place although they live at the same time; whoever meets only the small one may lie lower.
  const Buffers b = {buffer(0, 4, 10, 1, REGIE_OFFSET_FREE, 3), buffer(2, 6, 40, 1, REGIE_OFFSET_FREE, 3),
                     buffer(0, 2, 30, 1), buffer(4, 6, 5, 1)};
  ASSERT_NO_FATAL_FAILURE(check(b, "group"));
  EXPECT_EQ(planner_.answer.peak, 45u);

  Status s = planner_.plan({buffer(0, 1, 8, 1, 0, 1), buffer(2, 3, 8, 1, 8, 1)});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_NE(s.message().find("another of its group at 0"), std::string::npos) << s.to_string();
  s = planner_.plan({buffer(0, 1, 8, 1, REGIE_OFFSET_FREE, 1), buffer(2, 3, 8, 1, REGIE_OFFSET_FREE, 1)},
                    UINT64_MAX, 0, {}, {{0, 1}});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_NE(s.message().find("share no byte"), std::string::npos) << s.to_string();
  s = planner_.plan({buffer(0, 1, 8)}, UINT64_MAX, 0, {}, {{0, 1}});
  EXPECT_NE(s.message().find("buffer 1, which does not exist"), std::string::npos) << s.to_string();
  s = planner_.plan({buffer(0, 1, 8, 1, 4, 1), buffer(2, 3, 8, 8, REGIE_OFFSET_FREE, 1)});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
}

TEST_F(PlanPacked, BadOptions) {
  for (const Options& options :
       {Options{{"effort", "much"}}, Options{{"seconds", "-1"}}, Options{{"seconds", "soon"}}})
    EXPECT_EQ(planner_.plan({buffer(0, 1, 8)}, UINT64_MAX, 0, options).code(), REGIE_INVALID_INPUT);
}

struct Public {
  const char* name;
  uint64_t capacity;  // published, or the bound
  uint64_t peak;      // to be reached without a capacity
};
// The fullest step of each; but D, whose optimum is not known, gets a short search here and a long one in
// tests/bench/memory.py.
constexpr Public kPublic[] = {
    {"A", 1048576, 1048576}, {"C", 1048576, 1039360},         {"D", 1048576, 1070000},
    {"F", 1048576, 1048576}, {"G", 1048576, 1048576},         {"K", 1048576, 1048576},
    {"example", 12, 12},     {"G_1", 3030937746, 3030937746}, {"somas_resnet50", 1515472556, 1515472556}};

Buffers public_problem(const char* name) {
  return read_problem(std::string(REGIE_TEST_MODELS_DIR) + "/memory/" + name + ".csv");
}

TEST_F(PlanPacked, PublicProblems) {
  for (const Public& p : kPublic) {
    const Buffers b = public_problem(p.name);
    ASSERT_GE(b.size(), 5u) << p.name;
    ASSERT_TRUE(planner_.plan(b, p.capacity).ok()) << p.name;
    ASSERT_NO_FATAL_FAILURE(check_offsets(b, {}, planner_.offsets, planner_.answer.peak, p.name));
    EXPECT_LE(planner_.answer.peak, p.capacity) << p.name;

    ASSERT_NO_FATAL_FAILURE(check(b, std::string(p.name) + ", fast", {{"effort", "fast"}}));
    EXPECT_LE(static_cast<double>(planner_.answer.peak),
              1.15 * static_cast<double>(planner_.answer.lower_bound))
        << p.name << ", fast";

    const uint64_t budget = std::string(p.name) == "D" ? 60'000 : 0;
    ASSERT_NO_FATAL_FAILURE(check(b, p.name, {}, {}, budget));
    EXPECT_LE(planner_.answer.peak, p.peak) << p.name;
  }
}

TEST_F(PlanPacked, TheSameProblemGivesTheSamePlan) {
  const Buffers b = public_problem("D");
  ASSERT_NO_FATAL_FAILURE(check(b, "once", {}, {}, 50'000));
  const std::vector<uint64_t> first = planner_.offsets;
  const uint64_t nodes = planner_.answer.nodes;
  EXPECT_GE(nodes, 40'000u);
  EXPECT_LE(nodes, 50'000u);
  Planner another("plan-packed");
  ASSERT_TRUE(another.plan(b, UINT64_MAX, 50'000).ok());
  EXPECT_EQ(first, another.offsets);
  EXPECT_EQ(nodes, another.answer.nodes);
}

TEST_F(PlanPacked, TheClockStopsIt) {
  const Buffers b = public_problem("D");
  const auto start = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(check(b, "clock", {{"seconds", "0.2"}}));
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
}

// Who is aligned to a page begins on one, however small it is: three of them take two pages and a bit, and
// the others have room between them.
TEST_F(PlanPacked, LargeAlignmentsCountInTheBound) {
  const Buffers b{buffer(0, 4, 10, 4096), buffer(0, 4, 20, 4096), buffer(1, 3, 30, 4096),
                  buffer(0, 4, 3000, 1),  buffer(0, 4, 3000, 1),  buffer(4, 9, 5000, 64)};
  for (const char* effort : {"fast", "default"}) {
    ASSERT_NO_FATAL_FAILURE(check(b, effort, {{"effort", effort}}));
    EXPECT_EQ(planner_.answer.lower_bound, 2u * 4096 + 10) << effort;
    EXPECT_EQ(planner_.answer.peak, 2u * 4096 + 10) << effort;
  }
}

// Sizes over four orders of magnitude, a tenth of the buffers with long lives: more than are searched.
TEST_F(PlanPacked, ManyBuffersComeClose) {
  std::mt19937_64 random(5);
  Buffers b;
  constexpr uint64_t kCount = 24'000;
  std::vector<uint64_t> live(kCount / 3 + 500, 0);
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t lower = i / 3, life = random() % 10 ? 1 + random() % 7 : 8 + random() % 392;
    const uint64_t size = (uint64_t{64} << random() % 16) + random() % 64 * 64;
    b.push_back(buffer(lower, lower + life, size));
    for (uint64_t t = lower; t < lower + life; ++t) live[t] += size;
  }
  const auto fullest = static_cast<double>(*std::max_element(live.begin(), live.end()));
  ASSERT_NO_FATAL_FAILURE(check(b, "many"));
  EXPECT_LE(static_cast<double>(planner_.answer.peak), 1.05 * fullest);
}

TEST_F(PlanPacked, NeverWorseThanGreedy) {
  Planner greedy("plan-greedy");
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const Buffers b = random_buffers(seed + 500, 30 + seed * 8, 100, 30, 3000, seed % 2 == 1);
    ASSERT_TRUE(greedy.plan(b).ok());
    ASSERT_NO_FATAL_FAILURE(check(b, "seed " + std::to_string(seed), {}, {}, 5000));
    EXPECT_LE(planner_.answer.peak, greedy.answer.peak) << "seed " << seed;
  }
}

}  // namespace
}  // namespace regie::test
