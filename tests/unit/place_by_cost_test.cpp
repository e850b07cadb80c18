// The default placer against exhaustive search, a Viterbi search of chains, and place-by-priority. What a
// placement costs is reckoned here from the graphs as they were drawn, not by the placer.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "support/placement.h"
#include "support/sanitized.h"

namespace regie {
namespace {

using test::kCannot;
using test::PlacementAnswer;
using ::testing::HasSubstr;

constexpr uint32_t kEngines = 3;
constexpr uint32_t kSpace[kEngines] = {1, 1, 0};  // two engines of a device, and the host's
constexpr double kSync = 300;

struct Drawn {
  struct Node {
    std::vector<int> reads;  // nodes; -1: the input
    int bytes = 4;
    bool handed_out = false;
    double cost[kEngines] = {};
    bool can[kEngines] = {};
  };
  int input_bytes = 4;
  std::vector<Node> nodes;

  std::string text() const {
    std::string t = "graph @g(%x: f32[" + std::to_string(input_bytes / 4) + "]) -> (";
    bool first = true;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].handed_out) t += (first ? "%v" : ", %v") + std::to_string(i), first = false;
    t += ") on \"cube\" = \"npu0\" 1 space 1, \"scalar\" = \"npu0\" 1 space 1, \"cpu\" = \"cpu\" 0 space 0 "
         "{\n";
    for (size_t i = 0; i < nodes.size(); ++i) {
      t += "  %v" + std::to_string(i) + ": f32[" + std::to_string(nodes[i].bytes / 4) + "] = Sum(";
      for (size_t r = 0; r < nodes[i].reads.size(); ++r)
        t += (r ? ", " : "") + (nodes[i].reads[r] < 0 ? "%x" : "%v" + std::to_string(nodes[i].reads[r]));
      t += ")\n";
    }
    return t + "}\n";
  }

  std::vector<std::vector<PlacementAnswer>> answers() const {
    std::vector<std::vector<PlacementAnswer>> rows;
    for (const Node& n : nodes) {
      rows.emplace_back();
      for (uint32_t e = 0; e < kEngines; ++e)
        rows.back().push_back(n.can[e] ? PlacementAnswer{true, false, n.cost[e], "can"} : kCannot);
    }
    return rows;
  }

  double cost(const std::vector<uint32_t>& engine) const {
    double ns = 0;
    std::vector<std::vector<size_t>> readers(nodes.size() + 1);  // the input's first
    for (size_t i = 0; i < nodes.size(); ++i)
      for (int v : nodes[i].reads) readers[static_cast<size_t>(v + 1)].push_back(i);
    for (int v = -1; v < static_cast<int>(nodes.size()); ++v) {
      std::set<uint32_t> spaces, waiting;
      for (size_t i : readers[static_cast<size_t>(v + 1)]) {
        spaces.insert(kSpace[engine[i]]);
        waiting.insert(engine[i]);
      }
      if (v >= 0 && nodes[static_cast<size_t>(v)].handed_out) spaces.insert(0);
      spaces.erase(v < 0 ? 0 : kSpace[engine[static_cast<size_t>(v)]]);
      ns += static_cast<double>(spaces.size()) *
            (1000.0 + (v < 0 ? input_bytes : nodes[static_cast<size_t>(v)].bytes));
      if (v < 0) continue;
      const uint32_t from = engine[static_cast<size_t>(v)];
      ns += nodes[static_cast<size_t>(v)].cost[from];
      for (uint32_t e : waiting)
        if (e != from && kSpace[e] == kSpace[from]) ns += kSync;
    }
    return ns;
  }
};

// `reach`: how far back a node reads.
Drawn draw(std::mt19937_64& r, size_t nodes, int reach) {
  auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(r); };
  Drawn d;
  d.input_bytes = 4 * pick(1, 1000);
  std::vector<bool> read(nodes, false);
  for (size_t i = 0; i < nodes; ++i) {
    Drawn::Node n;
    const int count = pick(1, 3), here = static_cast<int>(i);
    for (int k = 0; k < count; ++k) n.reads.push_back(std::max(-1, here - pick(1, reach)));
    for (int v : n.reads)
      if (v >= 0) read[static_cast<size_t>(v)] = true;
    n.bytes = 4 * pick(1, 1000);
    for (uint32_t e = 0; e < kEngines; ++e) {
      n.can[e] = pick(0, 3) > 0;
      n.cost[e] = pick(1, 6000);
    }
    n.can[kEngines - 1] |= !n.can[0] && !n.can[1];
    d.nodes.push_back(std::move(n));
  }
  for (size_t i = 0; i < nodes; ++i) d.nodes[i].handed_out = !read[i] || pick(0, 9) == 0;
  return d;
}

class PlaceByCost : public ::testing::Test, protected test::PlacementRun {
 protected:
  PlaceByCost() : PlacementRun("place-by-cost") { sync = kSync; }

  double placed(const Drawn& d) {
    const Status s = place(d.text(), d.answers());
    EXPECT_TRUE(s.ok()) << s.to_string();
    for (size_t i = 0; i < engine.size(); ++i) EXPECT_TRUE(d.nodes[i].can[engine[i]]);
    return d.cost(engine);
  }
};

TEST_F(PlaceByCost, SmallGraphsEqualExhaustiveSearch) {
  std::mt19937_64 r(20);
  for (int n = 0; n < test::cases(1000); ++n) {
    const Drawn d = draw(r, 2 + n % 9, n % 2 ? 3 : 100);
    std::vector<uint32_t> engine(d.nodes.size(), 0);
    double least = INFINITY;
    for (bool more = true; more;) {
      bool can = true;
      for (size_t i = 0; i < engine.size(); ++i) can = can && d.nodes[i].can[engine[i]];
      if (can) least = std::min(least, d.cost(engine));
      size_t i = 0;
      while (i < engine.size() && ++engine[i] == kEngines) engine[i++] = 0;
      more = i < engine.size();
    }
    ASSERT_NEAR(placed(d), least, 1e-6 * least) << d.text();
  }
}

TEST_F(PlaceByCost, LongChainsEqualViterbi) {
  std::mt19937_64 r(21);
  for (int n = 0; n < 20; ++n) {
    Drawn d = draw(r, 400, 1);
    for (size_t i = 0; i < d.nodes.size(); ++i) {
      d.nodes[i].reads = {static_cast<int>(i) - 1};
      d.nodes[i].handed_out = i + 1 == d.nodes.size();
    }
    std::vector<double> best;
    for (uint32_t e = 0; e < kEngines; ++e) best.push_back(kSpace[e] == 0 ? 0 : 1000.0 + d.input_bytes);
    for (size_t i = 0; i < d.nodes.size(); ++i) {
      std::vector<double> next(kEngines, INFINITY);
      for (uint32_t e = 0; e < kEngines; ++e) {
        if (!d.nodes[i].can[e]) continue;
        if (i == 0) next[e] = best[e] + d.nodes[0].cost[e];
        for (uint32_t f = 0; i > 0 && f < kEngines; ++f) {
          const double move = f == e ? 0 : kSpace[f] == kSpace[e] ? kSync : 1000.0 + d.nodes[i - 1].bytes;
          next[e] = std::min(next[e], best[f] + move + d.nodes[i].cost[e]);
        }
      }
      best = next;
    }
    double least = INFINITY;
    for (uint32_t e = 0; e < kEngines; ++e)
      least = std::min(least, best[e] + (kSpace[e] == 0 ? 0 : 1000.0 + d.nodes.back().bytes));
    ASSERT_NEAR(placed(d), least, 1e-6 * least);
  }
}

TEST_F(PlaceByCost, LargeGraphsAreNeverSlowerThanByPriority) {
  std::mt19937_64 r(22);
  test::PlacementRun greedy("place-by-priority");
  greedy.sync = kSync;
  double logs = 0;
  constexpr int kGraphs = static_cast<int>(test::cases(1000));
  for (int n = 0; n < kGraphs; ++n) {
    const Drawn d = draw(r, 20 + n % 150, n % 3 == 0 ? 3 : n % 3 == 1 ? 12 : 1000);
    ASSERT_TRUE(greedy.place(d.text(), d.answers()).ok());
    const double ratio = placed(d) / d.cost(greedy.engine);
    ASSERT_LE(ratio, 1 + 1e-9);
    logs += std::log(ratio);
  }
  EXPECT_LE(std::exp(logs / kGraphs), 0.9);
}

constexpr std::string_view kThree = R"(
graph @g(%x: f32[1000]) -> (%y) on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[1000] = Relu(%x) @name("first")
  %b: f32[1000] = Neg(%a) @name("second")
  %y: f32[1000] = Relu(%b) @name("third")
}
)";

TEST_F(PlaceByCost, NeighboursStayTogether) {
  // Alone, each node would stay on the host: 5000 ns to bring a tensor, 3000 ns to win. Together they go.
  ASSERT_TRUE(place(kThree, {{{true, false, 1000, "vector"}, {true, false, 5000, ""}},
                             {{true, false, 1000, "vector"}, {true, false, 5000, ""}},
                             {{true, false, 1000, "vector"}, {true, false, 5000, "loops"}}})
                  .ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{0, 0, 0}));
  // An operator that the npu does not have, and each boundary costs more than is won.
  ASSERT_TRUE(place(kThree, {{{true, false, 1000, "vector"}, {true, false, 5000, ""}},
                             {kCannot, {true, false, 5000, ""}},
                             {{true, false, 1000, "vector"}, {true, false, 5000, "loops"}}})
                  .ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_THAT(reason[0], HasSubstr("npu: could, 1.0 us, with transfers 6.0 us more"));
  EXPECT_THAT(reason[1], HasSubstr("npu says: not in its list"));
}

TEST_F(PlaceByCost, WhatIsAskedForIsObeyedOrRefused) {
  const PlacementAnswer fast{true, false, 1, ""}, slow{true, false, 90000, ""};
  ASSERT_TRUE(place(kThree, {{fast, slow}, {fast, slow}, {fast, slow}}, {REGIE_NONE, 1, REGIE_NONE}).ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(reason[1], "asked for by the user");
  Status s = place(kThree, {{kCannot, slow}, {fast, slow}, {fast, slow}}, {0});
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  for (const char* part : {"node 'first' (Relu)", "engine 'npu', which says: not in its list"})
    EXPECT_THAT(s.to_string(), HasSubstr(part));
  s = place(kThree, {{fast, slow}, {fast, slow}, {kCannot, kCannot}});
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  for (const char* part : {"node 'third' (Relu)", "npu says: not in its list"})
    EXPECT_THAT(s.to_string(), HasSubstr(part));
}

TEST_F(PlaceByCost, WhatControlFlowReadsAndGivesLiesOnTheHost) {
  constexpr std::string_view text = R"(
graph @g(%x: f32[1000]) -> (%y) on "npu" = "npu0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %c: bool[] = Cast(%x)
  %y: f32[1000] = If(%c, %x) region (%a: f32[1000]) -> (%p) {
    %p: f32[1000] = Relu(%a)
  } region (%b: f32[1000]) -> (%q) {
    %q: f32[1000] = Neg(%b)
  }
}
)";
  // The condition is one byte, x and what the branches give 4000. All on the npu: 3 x 1000 to compute, 5000
  // to bring x, 1001 and twice 5000 to bring the condition and the results back.
  const PlacementAnswer npu{true, false, 1000, ""}, cheap{true, false, 6000, ""};
  const std::vector<PlacementAnswer> control{kCannot, kCannot};
  ASSERT_TRUE(place(text, {{npu, cheap}, control, {npu, cheap}, {npu, cheap}}, {REGIE_NONE, 1}).ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{1, 1, 1, 1}));
  // The condition's node goes to the npu, by 1 ns. Then x is there, and a branch need only bring its result
  // back.
  ASSERT_TRUE(place(text,
                    {{npu, {true, false, 7002, ""}},
                     control,
                     {npu, {true, false, 6100, ""}},
                     {npu, {true, false, 5900, ""}}},
                    {REGIE_NONE, 1})
                  .ok());
  EXPECT_EQ(engine, (std::vector<uint32_t>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace regie
