// Streams and events: the algorithms of the scheduler, compared with what trying everything gives; and the
// scheduler through its C table. What a schedule orders is recomputed here as reachability.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "ir/graph.h"
#include "schedule-on-streams/events.h"
#include "schedule-on-streams/lay.h"
#include "schedule-on-streams/predict.h"
#include "support/provider.h"
#include "support/recorded_schedule.h"
#include "support/stream_networks.h"

namespace regie {
namespace {

using streams::Event;
using streams::Network;
using streams::Order;
using streams::Schedule;
using test::Matrix;
using test::needs;
using test::one_line;
using test::pairs_of;
using test::random_network;
using test::random_schedule;
using test::reach;

bool covers(const Network& n, const Matrix& before) {
  for (const auto& [a, b] : needs(n))
    if (!before[a][b]) return false;
  return true;
}

// The least number of pairs between streams, none of which orders more than must be, that cover the needs:
// every set of that many is tried, then of one more.
size_t fewest_by_force(const Network& n, const Schedule& s) {
  const Matrix all = reach(n, s, needs(n));
  std::vector<std::pair<uint32_t, uint32_t>> candidates;
  for (uint32_t a = 0; a < n.tasks.size(); ++a)
    for (uint32_t b = 0; b < n.tasks.size(); ++b)
      if (all[a][b] && !one_line(n, s, a, b)) candidates.emplace_back(a, b);
  for (size_t size = 0; size <= candidates.size(); ++size) {
    std::vector<size_t> pick(size);
    for (size_t i = 0; i < size; ++i) pick[i] = i;
    for (;;) {
      std::vector<std::pair<uint32_t, uint32_t>> chosen;
      for (size_t i : pick) chosen.push_back(candidates[i]);
      if (covers(n, reach(n, s, chosen))) return size;
      size_t k = size;
      while (k > 0 && pick[k - 1] == candidates.size() - size + k - 1) --k;
      if (k == 0) break;
      ++pick[k - 1];
      for (size_t i = k; i < size; ++i) pick[i] = pick[i - 1] + 1;
    }
  }
  return SIZE_MAX;
}

TEST(StreamEvents, AreAsFewAsTryingEverythingFinds) {
  size_t with_events = 0, most = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const Network n = random_network(random, 4 + static_cast<uint32_t>(seed % 4), 1 + seed % 2, 2 + seed % 3);
    const Schedule s = random_schedule(random, n, 2 + seed % 2);
    const std::vector<Event> events = streams::fewest_events(n, s);
    ASSERT_EQ(events.size(), fewest_by_force(n, s)) << "seed " << seed;
    const Matrix before = reach(n, s, pairs_of(events));
    ASSERT_TRUE(covers(n, before)) << "seed " << seed;
    ASSERT_EQ(before, reach(n, s, needs(n))) << "seed " << seed << ": more is ordered than must be";
    with_events += !events.empty();
    most = std::max(most, events.size());
  }
  EXPECT_GT(with_events, 800u);
  EXPECT_GE(most, 5u);
}

TEST(StreamEvents, NoneCanBeLeftOut) {
  size_t count = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Network n = random_network(random, 60, 1 + seed % 3, 14);
    const Schedule s = random_schedule(random, n, 4);
    const std::vector<Event> events = streams::fewest_events(n, s);
    ASSERT_TRUE(covers(n, reach(n, s, pairs_of(events)))) << "seed " << seed;
    for (size_t e = 0; e < events.size(); ++e) {
      auto others = pairs_of(events);
      others.erase(others.begin() + static_cast<long>(e));
      ASSERT_FALSE(covers(n, reach(n, s, others))) << "seed " << seed << " event " << e;
    }
    count += events.size();
    EXPECT_GE(streams::all_events(n, s).size(), events.size());
  }
  EXPECT_GT(count, 1000u);
}

TEST(StreamEvents, FlagsAreUsedAgainOnlyWhenNobodyWaitsForThem) {
  size_t events_in_all = 0, flags_in_all = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Network n = random_network(random, 40, 1 + seed % 2, 10);
    const Schedule s = random_schedule(random, n, 3);
    const std::vector<Event> events = streams::fewest_events(n, s);
    const std::vector<uint32_t> ids = streams::event_ids(n, s, events);
    ASSERT_EQ(ids.size(), events.size());
    const Matrix before = reach(n, s, pairs_of(events));
    std::set<std::pair<uint32_t, uint32_t>> flags;
    std::set<uint32_t> signalled;
    std::vector<size_t> place(n.tasks.size());
    for (size_t k = 0; k < s.order.size(); ++k) place[s.order[k]] = k;
    for (size_t e = 0; e < events.size(); ++e) {
      flags.emplace(n.tasks[events[e].from].device, ids[e]);
      signalled.insert(events[e].from);
      for (size_t f = 0; f < events.size(); ++f) {
        if (n.tasks[events[e].from].device != n.tasks[events[f].from].device) continue;
        if (events[e].from == events[f].from) {
          ASSERT_EQ(ids[e], ids[f]) << "one task, one flag";
        } else if (ids[e] == ids[f] && place[events[e].from] < place[events[f].from]) {
          ASSERT_TRUE(events[e].to == events[f].from || before[events[e].to][events[f].from])
              << "seed " << seed << ": " << events[e].to << " may wait for what " << events[f].from
              << " signals";
        }
      }
    }
    events_in_all += signalled.size();
    flags_in_all += flags.size();
  }
  EXPECT_LT(flags_in_all * 2, events_in_all) << "most are used again";
}

TEST(StreamLayout, SchedulesAreValidAndKeepTheNumberOfStreams) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    Network n = random_network(random, 50, 1 + seed % 3, 12);
    n.devices[0].host = seed % 4 == 0;
    if (n.devices[0].host) n.devices[0].streams = 1;
    if (seed % 5 == 0) n.tasks[25].barrier = true;
    for (const Order order : {Order::kGiven, Order::kFirst, Order::kHostLast})
      for (uint32_t most : {2u, 3u, 8u}) {
        const Schedule s = streams::lay(n, most, order);
        ASSERT_EQ(s.order.size(), n.tasks.size());
        std::vector<bool> done(n.tasks.size(), false);
        std::map<uint32_t, std::set<uint32_t>> used;
        for (uint32_t t : s.order) {
          ASSERT_FALSE(done[t]);
          for (uint32_t a : n.tasks[t].after) ASSERT_TRUE(done[a]);
          done[t] = true;
          used[n.tasks[t].device].insert(s.stream[t]);
          if (n.tasks[25].barrier) {
            ASSERT_EQ(t < 25, !done[25]) << "what is before a barrier stays there";
          }
        }
        for (const auto& [device, numbers] : used) {
          ASSERT_LE(numbers.size(), std::min(most, n.devices[device].streams));
          ASSERT_EQ(*numbers.rbegin() + 1, numbers.size()) << "numbered without gaps";
        }
      }
  }
}

TEST(StreamLayout, TwoChainsSideBySideTakeHalfTheTime) {
  Network n;
  n.devices.push_back({});
  n.devices[0].streams = 2;
  n.units = {{1}, {1}};
  for (uint32_t t = 0; t < 10; ++t) {
    streams::Task task;
    task.unit = t / 5;
    task.busy_ns = 1000;
    if (t % 5) task.after = {t - 1};
    n.tasks.push_back(task);
  }
  const Schedule one = streams::one_stream(n);
  EXPECT_EQ(streams::predict(n, one, {}), 10'000);
  const Schedule two = streams::lay(n, 2, Order::kFirst);
  EXPECT_EQ(streams::predict(n, two, streams::fewest_events(n, two)), 5'000);
}

TEST(StreamPrediction, HostIssueEventsGapsAndUnitsCount) {
  Network n;
  n.devices.push_back({});
  n.devices[0].issue_ns = 10;
  n.devices[0].event_issue_ns = 3;
  n.devices[0].gap_ns = 5;
  n.devices[0].event_ns = 50;
  n.devices[0].wait_ns = 7;
  n.units = {{1}};
  for (int t = 0; t < 2; ++t) n.tasks.push_back({0, 0, 100, 20, false, {}});
  Schedule s{{0, 1}, {0, 0}};
  // 10 until it starts, 120, a gap, 120, and the host's notice.
  EXPECT_EQ(streams::predict(n, s, {}), 10 + 120 + 5 + 120 + 7);
  s.stream = {0, 1};  // the unit is free 20 before the stream knows
  EXPECT_EQ(streams::predict(n, s, {}), 10 + 100 + 120 + 7);
  n.tasks[1].after = {0};
  EXPECT_EQ(streams::predict(n, s, {{0, 1}}), 10 + 120 + 50 + 120 + 7);
  n.tasks[0].busy_ns = 0;  // then the host's own time tells: 10, a signal, a wait, 10
  n.tasks[0].tail_ns = 0;
  n.devices[0].event_ns = 0;
  EXPECT_EQ(streams::predict(n, s, {{0, 1}}), 10 + 3 + 10 + 3 + 120 + 7);
}

// ---- The scheduler itself

class ScheduleOnStreams : public ::testing::Test {
 protected:
  // Two chains of `length` tasks and one that reads both; a device with limits.
  Status schedule(uint32_t length, double cost_ns, uint32_t max_streams, uint32_t max_events,
                  const std::vector<std::pair<std::string, std::string>>& more = {}) {
    Graph graph;
    std::vector<std::vector<uint32_t>> after;
    for (uint32_t t = 0; t < 2 * length; ++t)
      after.push_back(t % length ? std::vector<uint32_t>{t - 1} : std::vector<uint32_t>{});
    after.push_back({length - 1, 2 * length - 1});
    std::vector<regie_schedule_task> tasks;
    for (size_t t = 0; t < after.size(); ++t) {
      NodeSpec spec;
      spec.op = "Relu";
      spec.name = "n" + std::to_string(t);
      tasks.push_back(
          {graph.add_node(0, spec), 0, static_cast<uint32_t>(after[t].size()), 0, after[t].data(), cost_ns});
    }
    const regie_schedule_device device{str("npu"), max_streams, max_events};
    std::vector<std::pair<std::string, std::string>> settings{
        {"device.npu.issue_ns", "10"}, {"device.npu.event_ns", "10"}, {"device.npu.completion_ns", "3000"}};
    settings.insert(settings.end(), more.begin(), more.end());
    const ConfigText config(settings);
    regie_schedule_problem p{};
    p.struct_size = sizeof(p);
    p.task_count = static_cast<uint32_t>(tasks.size());
    p.device_count = 1;
    p.graph = &graph.view();
    p.tasks = tasks.data();
    p.devices = &device;
    recorded_.record(&p);
    return call_plugin("schedule-on-streams", [&] {
      return scheduler_.table->schedule(scheduler_.index, host_table(), config.get(), &p);
    });
  }
  size_t streams_used() const {
    std::set<uint32_t> used;
    for (const auto& [task, stream] : recorded_.issued) used.insert(stream);
    return used.size();
  }

  test::Provided<regie_scheduler_table> scheduler_{&PluginHost::scheduler, "schedule-on-streams"};
  test::RecordedSchedule recorded_;
};

TEST_F(ScheduleOnStreams, BranchesGoSideBySide) {
  ASSERT_TRUE(schedule(5, 6000, 8, 0).ok());
  EXPECT_EQ(streams_used(), 2u);
  ASSERT_EQ(recorded_.events.size(), 1u);
  EXPECT_EQ(recorded_.events[0].second, 10u);
  EXPECT_NE(recorded_.reasons[0].find("node 'n10' (Relu) on npu stream "), std::string::npos)
      << recorded_.reasons[0];
  EXPECT_NE(recorded_.reasons[0].find("nothing that it waits for implies that"), std::string::npos);
}

TEST_F(ScheduleOnStreams, LimitsAreKept) {
  ASSERT_TRUE(schedule(5, 6000, 1, 0).ok());
  EXPECT_EQ(streams_used(), 1u);
  ASSERT_TRUE(schedule(5, 6000, 0, 0).ok()) << "a device of which the target says nothing has one";
  EXPECT_EQ(streams_used(), 1u);
  ASSERT_TRUE(schedule(5, 6000, 8, 0, {{"streams", "1"}}).ok());
  EXPECT_EQ(streams_used(), 1u);
  ASSERT_TRUE(schedule(5, 6000, 0, 0, {{"streams", "2"}}).ok());
  EXPECT_EQ(streams_used(), 2u);
  ASSERT_TRUE(schedule(5, 6000, 8, 1).ok()) << "one event is enough";
  EXPECT_EQ(streams_used(), 2u);
}

TEST_F(ScheduleOnStreams, NothingIsGainedNothingIsChanged) {
  ASSERT_TRUE(schedule(5, 6000, 8, 0, {{"device.npu.event_ns", "1000000"}}).ok());
  EXPECT_EQ(streams_used(), 2u) << "settings given first count";
  ASSERT_TRUE(schedule(1, 100, 8, 0).ok());
  EXPECT_EQ(streams_used(), 1u) << "less than a microsecond";
  EXPECT_TRUE(recorded_.events.empty());
  for (uint32_t i = 0; i < recorded_.issued.size(); ++i) EXPECT_EQ(recorded_.issued[i].first, i);
}

TEST_F(ScheduleOnStreams, WrongOptionsAreNamed) {
  EXPECT_EQ(schedule(2, 100, 8, 0, {{"streams", "0"}}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(schedule(2, 100, 8, 0, {{"streams", "many"}}).code(), REGIE_INVALID_INPUT);
  const Status s = schedule(2, 100, 8, 0, {{"events", "some"}});
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_NE(s.message().find("fewest or every"), std::string::npos) << s.to_string();
  EXPECT_EQ(schedule(2, 100, 8, 0, {{"reuse", "-1"}}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(schedule(2, 100, 8, 0, {{"reuse", "some"}}).code(), REGIE_INVALID_INPUT);
  EXPECT_EQ(schedule(2, 100, 8, 0, {{"reuse-worth", ""}}).code(), REGIE_INVALID_INPUT);
  EXPECT_TRUE(schedule(2, 100, 8, 0, {{"reuse", "off"}}).ok());
}

}  // namespace
}  // namespace regie
