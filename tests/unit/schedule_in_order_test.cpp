// The default scheduler, through its C table. What the schedule orders is recomputed here as reachability in
// the graph of streams and events: everything that must be ordered is, and no event can be left out.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph.h"
#include "support/provider.h"
#include "support/recorded_schedule.h"

namespace regie {
namespace {

struct Instance {
  std::vector<uint32_t> device;
  std::vector<std::vector<uint32_t>> after;
};

class ScheduleInOrder : public ::testing::Test {
 protected:
  Status schedule(const Instance& x, uint32_t devices, uint32_t max_events = 0) {
    Graph graph;
    std::vector<regie_schedule_task> tasks;
    for (size_t i = 0; i < x.device.size(); ++i) {
      NodeSpec spec;
      spec.op = "Relu";
      spec.name = "n" + std::to_string(i);
      const uint32_t node = graph.add_node(0, spec);
      tasks.push_back(
          {node, x.device[i], static_cast<uint32_t>(x.after[i].size()), 0, x.after[i].data(), 1.0});
    }
    std::vector<regie_schedule_device> list;
    std::vector<std::string> names;
    for (uint32_t d = 0; d < devices; ++d) names.push_back("dev" + std::to_string(d));
    for (uint32_t d = 0; d < devices; ++d) list.push_back({str(names[d]), 1, max_events});
    regie_schedule_problem p{};
    p.struct_size = sizeof(p);
    p.task_count = static_cast<uint32_t>(tasks.size());
    p.device_count = devices;
    p.graph = &graph.view();
    p.tasks = tasks.data();
    p.devices = list.data();
    recorded_.record(&p);
    return call_plugin("schedule-in-order", [&] {
      return scheduler_.table->schedule(scheduler_.index, host_table(), nullptr, &p);
    });
  }

  // order[i][j]: i has ended before j starts, by streams and the events apart from `left_out`.
  static std::vector<std::vector<bool>> ordered(const Instance& x,
                                                const std::vector<std::pair<uint32_t, uint32_t>>& events,
                                                size_t left_out) {
    const size_t n = x.device.size();
    std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
    for (size_t j = 0; j < n; ++j) {
      auto add = [&](size_t i) {
        before[i][j] = true;
        for (size_t k = 0; k < n; ++k)
          if (before[k][i]) before[k][j] = true;
      };
      for (size_t i = 0; i < j; ++i)
        if (x.device[i] == x.device[j]) add(i);
      for (size_t e = 0; e < events.size(); ++e)
        if (e != left_out && events[e].second == j) add(events[e].first);
    }
    return before;
  }

  test::Provided<regie_scheduler_table> scheduler_{&PluginHost::scheduler, "schedule-in-order"};
  test::RecordedSchedule recorded_;
};

TEST_F(ScheduleInOrder, OneDeviceNeedsNoEvents) {
  ASSERT_TRUE(schedule({{0, 0, 0}, {{}, {0}, {0, 1}}}, 1).ok());
  EXPECT_TRUE(recorded_.events.empty());
  ASSERT_EQ(recorded_.issued.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(recorded_.issued[i], std::pair(i, 0u));
}

TEST_F(ScheduleInOrder, OneEventServesWhatItImplies) {
  // 0 and 1 on the host, 2 on the other device needs both: waiting for 1 is enough. 3 there needs 0: known. 4
  // on the host needs 3, and 5 on the host needs 2: known from 4.
  ASSERT_TRUE(schedule({{0, 0, 1, 1, 0, 0}, {{}, {0}, {0, 1}, {0}, {3}, {2, 4}}}, 2).ok());
  EXPECT_EQ(recorded_.events, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}, {3, 4}}));
  EXPECT_NE(recorded_.reasons[0].find("node 'n2' (Relu) on dev1 needs node 'n1' (Relu) on dev0"),
            std::string::npos)
      << recorded_.reasons[0];
}

TEST_F(ScheduleInOrder, AThirdDeviceIsImpliedThroughASecond) {
  // 1 on device 1 waits for 0; 2 on device 2 waits for 1 and needs 0 as well: implied.
  ASSERT_TRUE(schedule({{0, 1, 2}, {{}, {0}, {0, 1}}}, 3).ok());
  EXPECT_EQ(recorded_.events, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {1, 2}}));
}

TEST_F(ScheduleInOrder, RandomGraphsAreOrderedWithoutASpareEvent) {
  size_t events = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t devices = 2 + seed % 3;
    Instance x;
    for (uint32_t i = 0; i < 40; ++i) {
      x.device.push_back(static_cast<uint32_t>(random() % devices));
      std::vector<uint32_t> after;
      for (uint32_t j = 0; j < i; ++j)
        if (random() % 12 == 0) after.push_back(j);
      x.after.push_back(after);
    }
    ASSERT_TRUE(schedule(x, devices).ok());
    events += recorded_.events.size();
    auto holds = [&](size_t left_out) {
      const auto before = ordered(x, recorded_.events, left_out);
      for (size_t j = 0; j < x.after.size(); ++j)
        for (uint32_t i : x.after[j])
          if (!before[i][j]) return false;
      return true;
    };
    ASSERT_TRUE(holds(SIZE_MAX)) << "seed " << seed;
    for (size_t e = 0; e < recorded_.events.size(); ++e)
      ASSERT_FALSE(holds(e)) << "seed " << seed << ": the event " << recorded_.events[e].first << " -> "
                             << recorded_.events[e].second << " is implied";
  }
  EXPECT_GT(events, 100u);
}

TEST_F(ScheduleInOrder, RefusesWhatCannotBe) {
  Status s = schedule({{0, 1, 0, 1}, {{}, {0}, {1}, {2}}}, 2, 1);
  EXPECT_EQ(s.code(), REGIE_LIMIT) << s.to_string();
  EXPECT_NE(s.message().find("'dev0' has 1 events"), std::string::npos) << s.to_string();
  EXPECT_EQ(schedule({{0, 1}, {{1}, {}}}, 2).code(), REGIE_INTERNAL);
}

}  // namespace
}  // namespace regie
