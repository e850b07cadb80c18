// The kernel's check of schedules: whatever is not ordered is found, and nothing else. What a schedule orders
// is recomputed here as reachability in the graph of streams and events.
#include <gtest/gtest.h>

#include <random>

#include "passes/schedule_problem.h"

namespace regie {
namespace {

struct Random {
  CompileState state;
  std::vector<uint32_t> nodes, stream;
  std::vector<std::vector<uint32_t>> after;
  std::vector<std::pair<uint32_t, uint32_t>> waits;

  Random(uint64_t seed, uint32_t count) {
    std::mt19937_64 random(seed);
    state.graph = std::make_unique<Graph>();
    state.target.engines.resize(2);
    state.target.engines[1].device = 1;
    state.target.devices.resize(2);
    for (uint32_t i = 0; i < count; ++i) {
      NodeSpec spec;
      spec.op = "Relu";
      spec.name = "n" + std::to_string(i);
      nodes.push_back(state.graph->add_node(0, spec));
      device.push_back(static_cast<uint32_t>(random() % (1 + seed % 2)));
      state.graph->set_engine(nodes.back(), device.back());
      stream.push_back(static_cast<uint32_t>(random() % 3));
      after.emplace_back();
      for (uint32_t a = 0; a < i; ++a)
        if (random() % 10 == 0) after.back().push_back(a);
      for (uint32_t a : after.back())
        if (!same_line(a, i)) waits.emplace_back(a, i);
    }
  }
  bool same_line(uint32_t a, uint32_t b) const { return device[a] == device[b] && stream[a] == stream[b]; }

  // By reachability: is everything ordered with these waits?
  bool ordered(const std::vector<std::pair<uint32_t, uint32_t>>& with) const {
    const size_t n = nodes.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    for (uint32_t b = 0; b < n; ++b) {
      const auto add = [&](uint32_t a) {
        before[a][b] = true;
        for (size_t k = 0; k < n; ++k)
          if (before[k][a]) before[k][b] = true;
      };
      for (uint32_t a = 0; a < b; ++a)
        if (same_line(a, b)) add(a);
      for (const auto& [from, to] : with)
        if (to == b) add(from);
    }
    for (uint32_t b = 0; b < n; ++b)
      for (uint32_t a : after[b])
        if (!before[a][b]) return false;
    return true;
  }

  Status check(const std::vector<std::pair<uint32_t, uint32_t>>& with) {
    ScheduleProblem p{&state, 0, &nodes, &after, {}, {}, {}, false, std::vector<uint8_t>(nodes.size(), 0)};
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      p.position.push_back(i);
      p.issued.push_back({nodes[i], stream[i], {}, 0});
    }
    for (const auto& [from, to] : with) p.issued[to].waits.push_back(from);
    return check_schedule(p, "scheduler of a test");
  }
  std::vector<uint32_t> device;
};

TEST(ScheduleCheck, FindsWhatIsNotOrderedAndNothingElse) {
  size_t load_bearing = 0, implied = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random x(seed, 40);
    const Status whole = x.check(x.waits);
    ASSERT_TRUE(whole.ok()) << whole.to_string();
    for (size_t w = 0; w < x.waits.size(); ++w) {
      auto fewer = x.waits;
      fewer.erase(fewer.begin() + static_cast<long>(w));
      const Status s = x.check(fewer);
      ASSERT_EQ(s.ok(), x.ordered(fewer)) << "seed " << seed << " wait " << w;
      ++(s.ok() ? implied : load_bearing);
      if (!s.ok()) {
        EXPECT_EQ(s.code(), REGIE_BAD_PLUGIN);
        EXPECT_NE(s.message().find("'n" + std::to_string(x.waits[w].second) + "'"), std::string::npos)
            << s.to_string();
      }
    }
  }
  EXPECT_GT(load_bearing, 500u);
  EXPECT_GT(implied, 500u);
}

// Who reads a view waits for who made its bytes; for the view itself nobody has to wait.
TEST(ScheduleCheck, LooksThroughWhatRunsNothing) {
  Random x(0, 3);
  x.after = {{}, {0}, {1}};
  x.stream = {0, 1, 1};
  x.device = {0, 0, 0};
  for (uint32_t n : x.nodes) x.state.graph->set_engine(n, 0);
  const auto check = [&](std::vector<std::pair<uint32_t, uint32_t>> waits) {
    ScheduleProblem p{&x.state, 0, &x.nodes, &x.after, {0, 1, 2}, {}, {}, false, {0, 1, 0}};
    for (uint32_t i = 0; i < 3; ++i) p.issued.push_back({x.nodes[i], x.stream[i], {}, 0});
    for (const auto& [from, to] : waits) p.issued[to].waits.push_back(from);
    return check_schedule(p, "scheduler of a test");
  };
  EXPECT_TRUE(check({{0, 2}}).ok());
  EXPECT_TRUE(check({{0, 1}}).ok()) << "the stream orders the view before its reader";
  EXPECT_FALSE(check({}).ok());
}

}  // namespace
}  // namespace regie
