// The simulator's clock, cache and checks of accesses, against times and bytes that were worked out by hand.
#include "simulator/clock.h"

#include <gtest/gtest.h>

#include <memory>

#include "simulator/accesses.h"
#include "simulator/cache.h"

namespace {

using namespace regie::simulator;

// Costs that are easy to add up.
regie::sdk::Accelerator hardware() {
  regie::sdk::Accelerator h;
  h.issue_ns = 10;
  h.event_issue_ns = 2;
  h.sink_launch_ns = 50;
  h.wait_ns = 100;
  h.gap_ns = 3;
  h.event_ns = 7;
  h.queue_depth = 16;
  h.memory_bytes_per_ns = 10;
  h.aicpu_count = 2;
  return h;
}

struct Fake final : Task {
  Fake(EngineKind kind, Need n) : need(n) { engine = kind; }
  Need begin() override { return need; }
  void ended(const TaskTimes& t) override {
    times = t;
    ++ends;
  }
  Need need;
  TaskTimes times;
  int ends = 0;
};

struct Bench {
  explicit Bench(const regie::sdk::Accelerator& h = hardware(), bool sink = false) : clock(h, sink) {}
  std::shared_ptr<Fake> launch(uint32_t stream, EngineKind kind, Need need) {
    auto task = std::make_shared<Fake>(kind, need);
    const Issue issue = clock.issue_task(stream);
    clock.push(stream, task, issue);
    return task;
  }
  void signal(uint32_t stream, uint32_t fence, uint64_t value) {
    const Issue issue = clock.issue_event(stream);
    clock.push_signal(stream, fence, value, issue);
  }
  void wait(uint32_t stream, uint32_t fence, uint64_t value) {
    const Issue issue = clock.issue_event(stream);
    clock.push_wait(stream, fence, value, issue);
  }
  Clock clock;
};

constexpr Need kPlain{5, 20, 0, 1};  // 5 to start, 20 of work, 1 until the stream knows

TEST(SimulatorClock, WhatTheHostComputesKeepsItFromHandingOver) {
  Bench b;
  const uint32_t s = b.clock.add_stream();
  const auto first = b.launch(s, kCores, kPlain);
  const Issue spent = b.clock.spend(200);
  EXPECT_EQ(spent.begin, 10u);
  EXPECT_EQ(spent.end, 210u);
  EXPECT_EQ(first->times.end, 36u) << "the device went on meanwhile";
  const auto second = b.launch(s, kCores, kPlain);
  b.clock.wait_stream(s);
  EXPECT_EQ(second->times.issue, 210u);
  EXPECT_EQ(second->times.begin, 220u);
}

TEST(SimulatorClock, TasksOfAStreamFollowEachOther) {
  Bench b;
  const uint32_t s = b.clock.add_stream();
  const auto first = b.launch(s, kCores, kPlain), second = b.launch(s, kCores, kPlain);
  const Issue waited = b.clock.wait_stream(s);
  EXPECT_EQ(first->times.issue, 0u);
  EXPECT_EQ(first->times.issued, 10u);
  EXPECT_EQ(first->times.begin, 10u);
  EXPECT_EQ(first->times.run, 15u);
  EXPECT_EQ(first->times.ran, 35u);
  EXPECT_EQ(first->times.end, 36u);
  EXPECT_EQ(second->times.issued, 20u);
  EXPECT_EQ(second->times.free, 36u);
  EXPECT_EQ(second->times.ready, 39u);
  EXPECT_EQ(second->times.begin, 39u);
  EXPECT_EQ(second->times.end, 65u);
  EXPECT_EQ(waited.begin, 20u);
  EXPECT_EQ(waited.end, 165u);  // 65 + 100
  EXPECT_EQ(b.clock.now(), 165u);
  EXPECT_EQ(first->ends, 1);
}

TEST(SimulatorClock, ASlowHostLeavesGaps) {
  Bench b;
  const uint32_t s = b.clock.add_stream();
  constexpr Need brief{0, 4, 0, 0};
  const auto first = b.launch(s, kCores, brief), second = b.launch(s, kCores, brief);
  b.clock.wait_stream(s);
  EXPECT_EQ(first->times.end, 14u);
  EXPECT_EQ(second->times.ready, 17u);
  EXPECT_EQ(second->times.begin, 20u) << "it was handed over at 20 only";
}

TEST(SimulatorClock, AFullQueueHoldsTheHost) {
  regie::sdk::Accelerator h = hardware();
  h.queue_depth = 2;
  Bench b(h);
  const uint32_t s = b.clock.add_stream();
  b.launch(s, kCores, kPlain);
  b.launch(s, kCores, kPlain);
  const auto third = b.launch(s, kCores, kPlain);
  b.clock.wait_stream(s);
  EXPECT_EQ(third->times.issue, 20u);
  EXPECT_EQ(third->times.issued, 36u) << "the first has left the queue then";
  EXPECT_EQ(third->times.begin, 68u);  // 65 + 3
}

TEST(SimulatorClock, AnEventHoldsAnotherStream) {
  Bench b;
  const uint32_t s = b.clock.add_stream(), t = b.clock.add_stream(), fence = b.clock.add_fence();
  const auto first = b.launch(s, kAicpus, kPlain);
  b.signal(s, fence, 1);
  b.wait(t, fence, 1);
  const auto second = b.launch(t, kAicpus, kPlain);
  b.clock.wait_stream(t);
  EXPECT_EQ(first->times.end, 36u);
  EXPECT_EQ(second->times.issued, 24u);  // 10 + 2 + 2 + 10
  EXPECT_EQ(second->times.event, 43u);   // 36 + 7
  EXPECT_EQ(second->times.begin, 43u);
  EXPECT_EQ(second->times.unit, 0u);
}

TEST(SimulatorClock, TheHostWaitsForAFence) {
  Bench b;
  const uint32_t s = b.clock.add_stream(), fence = b.clock.add_fence();
  b.launch(s, kCores, kPlain);
  b.signal(s, fence, 1);
  const auto second = b.launch(s, kCores, kPlain);
  EXPECT_EQ(b.clock.wait_fence(fence, 1).end, 136u);
  EXPECT_EQ(second->ends, 1) << "it has ended while the host slept";
  EXPECT_EQ(b.clock.wait_fence(fence, 1).end, 136u) << "the second time it is known";
}

TEST(SimulatorClock, AnEngineServesOneTaskAtATime) {
  Bench b;
  const uint32_t s = b.clock.add_stream(), t = b.clock.add_stream(), u = b.clock.add_stream();
  b.launch(s, kCores, kPlain);
  const auto second = b.launch(t, kCores, kPlain);
  const auto third = b.launch(u, kAicpus, kPlain);
  for (uint32_t stream : {s, t, u}) b.clock.wait_stream(stream);
  EXPECT_EQ(second->times.ready, 0u);
  EXPECT_EQ(second->times.begin, 35u) << "the first leaves the engine at 35, though its end is known at 36";
  EXPECT_EQ(third->times.begin, 30u) << "another engine";
}

TEST(SimulatorClock, SeveralUnitsServeSeveralTasks) {
  Bench b;
  std::vector<std::shared_ptr<Fake>> tasks;
  std::vector<uint32_t> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(b.clock.add_stream());
    tasks.push_back(b.launch(streams.back(), kAicpus, {0, 100, 0, 0}));
  }
  for (uint32_t s : streams) b.clock.wait_stream(s);
  EXPECT_EQ(tasks[0]->times.unit, 0u);
  EXPECT_EQ(tasks[1]->times.unit, 1u);
  EXPECT_EQ(tasks[1]->times.begin, 20u);
  EXPECT_EQ(tasks[2]->times.begin, 110u);
  EXPECT_EQ(tasks[2]->times.unit, 0u);
}

TEST(SimulatorClock, EqualTasksShareTheMemory) {
  Bench b;
  const uint32_t s = b.clock.add_stream(), t = b.clock.add_stream();
  const auto first = b.launch(s, kAicpus, {0, 100, 800, 0});   // 8 a ns
  const auto second = b.launch(t, kAicpus, {0, 100, 800, 0});  // 10 are there
  b.clock.wait_stream(s);
  b.clock.wait_stream(t);
  // Alone from 10 to 20; then each gets 5 of the 8 that it wants: 90 left take 144. The other did 90 in that
  // time, and has 10 left for itself.
  EXPECT_EQ(first->times.end, 164u);
  EXPECT_EQ(second->times.end, 174u);
}

TEST(SimulatorClock, WhoWantsLittleGetsIt) {
  Bench b;
  const uint32_t s = b.clock.add_stream(), t = b.clock.add_stream();
  const auto modest = b.launch(s, kAicpus, {0, 100, 200, 0});   // 2 a ns
  const auto greedy = b.launch(t, kAicpus, {0, 100, 1600, 0});  // 16 a ns
  b.clock.wait_stream(s);
  b.clock.wait_stream(t);
  EXPECT_EQ(modest->times.end, 110u);
  // From 20 to 110 it gets 8 of 16, then 10 of 16: 45, and the other 55 take 88.
  EXPECT_EQ(greedy->times.end, 198u);
}

TEST(SimulatorClock, ASunkQueueIsHandedOverAtOnce) {
  Bench b(hardware(), true);
  const uint32_t s = b.clock.add_stream();
  const auto first = b.launch(s, kCores, kPlain), second = b.launch(s, kCores, kPlain);
  b.clock.wait_stream(s);
  EXPECT_EQ(first->times.begin, 50u);
  EXPECT_EQ(second->times.issued, 50u);
  EXPECT_EQ(second->times.begin, 79u);  // 76 + 3
  EXPECT_EQ(b.clock.now(), 205u);       // 105 + 100
  const auto third = b.launch(s, kCores, kPlain);
  b.clock.wait_stream(s);
  EXPECT_EQ(third->times.issued, 255u) << "after a wait another launch is due";
}

TEST(SimulatorClock, AWaitForWhatIsOverCostsNothing) {
  Bench b;
  const uint32_t s = b.clock.add_stream();
  EXPECT_EQ(b.clock.wait_stream(s).end, 0u) << "nothing was ever there";
  b.launch(s, kCores, kPlain);
  b.clock.wait_stream(s);
  const Ns then = b.clock.now();
  b.clock.wait_stream(s);
  EXPECT_EQ(b.clock.now(), then);
}

TEST(SimulatorCache, TheLeastRecentlyUsedBytesGo) {
  Cache cache(100);
  cache.touch(1000, 60);
  cache.touch(2000, 40);
  EXPECT_EQ(cache.hits(1000, 60), 60u);
  cache.touch(1000, 60);  // now 2000 is the older one
  cache.touch(3000, 30);
  EXPECT_EQ(cache.hits(2000, 40), 10u);
  EXPECT_EQ(cache.hits(2030, 10), 10u) << "the end stays longer than the beginning";
  EXPECT_EQ(cache.hits(1000, 60), 60u);
  EXPECT_EQ(cache.hits(3000, 30), 30u);
  EXPECT_EQ(cache.hits(1050, 100), 10u);
  cache.drop(1020, 10);
  EXPECT_EQ(cache.hits(1000, 60), 50u);
  cache.touch(5000, 1000);
  EXPECT_EQ(cache.hits(5000, 1000), 100u);
  EXPECT_EQ(cache.hits(5900, 100), 100u);
  EXPECT_EQ(cache.hits(3000, 30), 0u);
  Cache none(0);
  none.touch(0, 10);
  EXPECT_EQ(none.hits(0, 10), 0u);
}

Access access(uint32_t stream, uint64_t count) {
  return {stream, count, "task " + std::to_string(10 * stream + count)};
}
Knowledge knowing(std::initializer_list<uint64_t> counts) {
  Knowledge k;
  uint32_t stream = 0;
  for (uint64_t c : counts) k.know(stream++, c);
  return k;
}

TEST(SimulatorAccesses, ReadsNeedAWriterThatIsOver) {
  Accesses a;
  a.allocate(4096, 1024);
  EXPECT_NE(a.read(4096, 4, access(0, 1), knowing({1})).find("nobody has written"), std::string::npos);
  EXPECT_EQ(a.write(4096, 512, access(0, 2), knowing({2})), "");
  EXPECT_EQ(a.read(4196, 100, access(0, 3), knowing({3})), "");
  EXPECT_NE(a.read(4096, 513, access(0, 4), knowing({4})), "") << "one byte too far";
  const std::string race = a.read(4200, 8, access(1, 1), knowing({1, 1}));
  EXPECT_NE(race.find("task 11"), std::string::npos) << race;
  EXPECT_NE(race.find("task 2 "), std::string::npos) << race;
  EXPECT_EQ(a.read(4200, 8, access(1, 2), knowing({2, 2})), "") << "it knows of the writer's end";
}

TEST(SimulatorAccesses, WritesNeedReadersThatAreOver) {
  Accesses a;
  a.allocate(4096, 1024);
  EXPECT_EQ(a.write(4096, 1024, access(0, 1), knowing({1})), "");
  EXPECT_EQ(a.read(4096, 256, access(1, 1), knowing({1, 1})), "");
  EXPECT_EQ(a.write(4352, 10, access(0, 2), knowing({2})), "") << "nobody reads these";
  EXPECT_NE(a.write(4300, 100, access(0, 3), knowing({3})), "");
  EXPECT_EQ(a.write(4300, 100, access(0, 4), knowing({4, 1})), "");
  EXPECT_NE(a.write(4300, 1, access(1, 2), knowing({3, 2})), "") << "two writers";
}

TEST(SimulatorAccesses, ScratchAndFreedMemoryHoldNothing) {
  Accesses a;
  a.allocate(4096, 1024);
  EXPECT_EQ(a.write(4096, 1024, access(0, 1), knowing({1})), "");
  EXPECT_EQ(a.spoil(4196, 100, access(0, 2), knowing({2})), "");
  EXPECT_NE(a.read(4096, 1024, access(0, 3), knowing({3})).find("scratch of task 2"), std::string::npos);
  EXPECT_EQ(a.read(4296, 100, access(0, 3), knowing({3})), "");
  EXPECT_TRUE(a.holds(4096, 1024));
  EXPECT_FALSE(a.holds(4097, 1024));
  uint32_t stream = 7;
  EXPECT_NE(a.release(4096, knowing({2}), &stream).find("task 3"), std::string::npos);
  EXPECT_EQ(stream, 0u);
  EXPECT_FALSE(a.holds(4096, 1));
  a.allocate(4096, 512);
  EXPECT_EQ(a.write(4096, 512, access(0, 4), knowing({4})), "");
  EXPECT_EQ(a.release(4096, knowing({4}), &stream), "");
}

}  // namespace
