// The simulated accelerator as a device: what it computes, what its clock says, what it refuses and finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/backends.h"

namespace {

using namespace regie::test_backends;

// Costs that are easy to add up; half a gigabyte of memory.
const std::vector<std::pair<std::string, std::string>> kCosts = {
    {"memory_bytes", "536870912"},  {"issue_ns", "10"},
    {"event_issue_ns", "2"},        {"wait_ns", "100"},
    {"dispatch_ns", "1"},           {"gap_ns", "3"},
    {"hardware_start_ns", "1"},     {"aicpu_start_ns", "3"},
    {"completion_ns", "1"},         {"event_ns", "7"},
    {"copy_start_ns", "30"},        {"copy_in_bytes_per_ns", "4"},
    {"aicpu_flops_per_ns", "2"},    {"aicpu_count", "2"},
    {"copy_out_bytes_per_ns", "2"}, {"sink_launch_ns", "50"},
    {"aicpu_bytes_per_ns", "1"}};

Settings costs(std::vector<std::pair<std::string, std::string>> more = {}) {
  auto all = kCosts;
  all.insert(all.end(), more.begin(), more.end());
  return Settings(all);
}

struct Simulator {
  explicit Simulator(const Settings& settings = costs())
      : engine(library("aicpu").engines(), 0, settings),
        device(library("simulator").devices(), 0, settings),
        table(device.table()) {}
  ~Simulator() {
    for (regie_stream* s : streams) table.stream_destroy(s);
    for (regie_fence* f : fences) table.fence_destroy(f);
  }
  regie_stream* stream() {
    streams.push_back(nullptr);
    EXPECT_EQ(table.stream_create(device.device(), &streams.back()), REGIE_OK) << take_failure();
    return streams.back();
  }
  regie_fence* fence() {
    fences.push_back(nullptr);
    EXPECT_EQ(table.fence_create(device.device(), &fences.back()), REGIE_OK) << take_failure();
    return fences.back();
  }
  void* allocate(uint64_t bytes) {
    void* at = nullptr;
    EXPECT_EQ(table.allocate(device.device(), 0, bytes, &at), REGIE_OK) << take_failure();
    return at;
  }
  void in(regie_stream* s, void* to, const void* from, uint64_t bytes) {
    EXPECT_EQ(table.copy(s, REGIE_COPY_TO_DEVICE, to, from, bytes), REGIE_OK) << take_failure();
  }
  void out(regie_stream* s, void* to, const void* from, uint64_t bytes) {
    EXPECT_EQ(table.copy(s, REGIE_COPY_FROM_DEVICE, to, from, bytes), REGIE_OK) << take_failure();
  }
  uint64_t now() const { return table.now(device.device()); }
  EngineUnderTest engine;
  DeviceUnderTest device;
  const regie_device_table& table;
  std::vector<regie_stream*> streams;
  std::vector<regie_fence*> fences;
};

Node relu_node() { return Node("Relu", {}, {floats({4}, {-1, 2, -3, 4})}, {zeros(REGIE_F32, {4})}); }

TEST(RuntimeSimulator, ComputesWhatReferenceKernelsDo) {
  need_reference_kernels();
  Simulator sim;
  const Node relu = relu_node();
  const auto answer = sim.engine.ask(relu);
  EXPECT_TRUE(answer.can);
  EXPECT_FALSE(answer.reference) << "it is what this engine is for";
  // 1 + 1 + 3 to start, 1 to end, 3 between; 4 operations on each of 4 elements at 2 a ns, 32 bytes at 1 a
  // ns.
  EXPECT_EQ(answer.cost_ns, 41);
  const Kernel kernel = sim.engine.compile(relu);
  EXPECT_EQ(kernel.format, "regie.aicpu/1");
  EXPECT_EQ(difference({floats({4}, {0, 2, 0, 4})}, sim.device.run(kernel, relu)), 0);
  damage(sim.device, kernel, relu);
}

TEST(RuntimeSimulator, TheEngineSaysWhyNot) {
  need_reference_kernels();
  Simulator sim;
  const Node words("StringNormalizer", {}, {zeros(REGIE_STRING, {0})}, {zeros(REGIE_STRING, {0})});
  EXPECT_FALSE(sim.engine.ask(words).can);
  EXPECT_NE(sim.engine.ask(words).reason.find("strings"), std::string::npos) << sim.engine.ask(words).reason;
  const Node unknown("vendor.Odd", {}, {floats({1}, {1})}, {zeros(REGIE_F32, {1})});
  EXPECT_NE(sim.engine.ask(unknown).reason.find("vendor.Odd"), std::string::npos);
}

TEST(RuntimeSimulator, ItsClockSaysWhatTheTargetSays) {
  need_reference_kernels();
  Simulator sim;
  regie_stream* s = sim.stream();
  void* at = sim.allocate(4000);
  std::vector<unsigned char> bytes(4000, 1);
  ASSERT_EQ(sim.now(), 0u);
  sim.in(s, at, bytes.data(), 4000);
  EXPECT_EQ(sim.now(), 10u) << "the host is free when it has handed the copy over";
  ASSERT_EQ(sim.table.stream_wait(s, UINT64_MAX), REGIE_OK);
  EXPECT_EQ(sim.now(), 10u + 30 + 1000 + 100);  // 4000 bytes at 4 a ns
  sim.out(s, bytes.data(), at, 4000);
  ASSERT_EQ(sim.table.stream_wait(s, UINT64_MAX), REGIE_OK);
  EXPECT_EQ(sim.now(), 1140u + 10 + 30 + 2000 + 100);
}

// What the harness does for a node, in simulated time.
uint64_t time_of_a_run(const Settings& settings) {
  Simulator sim(settings);
  const Node relu = relu_node();
  sim.device.run(sim.engine.compile(relu), relu);
  return sim.now();
}

TEST(RuntimeSimulator, TimesDependOnNothingElse) {
  need_reference_kernels();
  const uint64_t once = time_of_a_run(costs());
  EXPECT_GT(once, 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(time_of_a_run(costs()), once);
  EXPECT_EQ(time_of_a_run(costs({{"numerics", "off"}})), once) << "nor on whether anything is computed";
}

TEST(RuntimeSimulator, TheCapacityIsTheTargets) {
  Simulator sim(costs({{"memory_bytes", "4096"}}));
  void* a = sim.allocate(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 512, 0u);
  void* b = nullptr;
  EXPECT_EQ(sim.table.allocate(sim.device.device(), 0, 4000, &b), REGIE_OUT_OF_MEMORY);
  const std::string words = take_failure();
  EXPECT_NE(words.find("4000 bytes asked for, 3072 of 4096 left"), std::string::npos) << words;
  sim.table.release(sim.device.device(), 0, a);
  b = sim.allocate(4000);
  ASSERT_NE(b, nullptr);
  sim.table.release(sim.device.device(), 0, b);
}

TEST(RuntimeSimulator, ItsLimitsAreTheTargets) {
  Simulator sim(costs({{"streams", "2"}, {"events", "1"}}));
  sim.stream();
  regie_stream* third = nullptr;
  EXPECT_EQ(sim.table.stream_create(sim.device.device(), &third), REGIE_LIMIT);  // the harness has one
  EXPECT_NE(take_failure().find("2 streams"), std::string::npos);
  sim.fence();
  regie_fence* second = nullptr;
  EXPECT_EQ(sim.table.fence_create(sim.device.device(), &second), REGIE_LIMIT);
  EXPECT_NE(take_failure().find("1 events"), std::string::npos);
}

TEST(RuntimeSimulator, FindsAMissingEvent) {
  std::vector<unsigned char> bytes(512, 7), back(512, 0);
  for (const bool with_event : {true, false}) {
    Simulator sim;
    regie_stream *writer = sim.stream(), *reader = sim.stream();
    regie_fence* f = sim.fence();
    void* at = sim.allocate(512);
    sim.in(writer, at, bytes.data(), 512);
    ASSERT_EQ(sim.table.fence_signal(writer, f, 1), REGIE_OK);
    if (with_event) {
      ASSERT_EQ(sim.table.fence_wait(reader, f, 1), REGIE_OK);
    }
    sim.out(reader, back.data(), at, 512);
    const regie_status waited = sim.table.stream_wait(reader, UINT64_MAX);
    if (with_event) {
      EXPECT_EQ(waited, REGIE_OK) << take_failure();
      EXPECT_EQ(back, bytes);
    } else {
      EXPECT_EQ(waited, REGIE_DEVICE);
      const std::string words = take_failure();
      EXPECT_NE(words.find("an event or a wait is missing"), std::string::npos) << words;
      EXPECT_NE(words.find("512 bytes from the device"), std::string::npos) << words;
    }
    sim.table.stream_wait(writer, UINT64_MAX);
  }
}

TEST(RuntimeSimulator, WhatTheHostWaitedForIsOrdered) {
  std::vector<unsigned char> bytes(512, 7), back(512, 0);
  Simulator sim;
  regie_stream *writer = sim.stream(), *reader = sim.stream();
  regie_fence* f = sim.fence();
  void* at = sim.allocate(512);
  sim.in(writer, at, bytes.data(), 512);
  ASSERT_EQ(sim.table.fence_signal(writer, f, 1), REGIE_OK);
  ASSERT_EQ(sim.table.host_wait(f, 1, UINT64_MAX), REGIE_OK);
  sim.out(reader, back.data(), at, 512);
  EXPECT_EQ(sim.table.stream_wait(reader, UINT64_MAX), REGIE_OK) << take_failure();
  EXPECT_EQ(back, bytes);
}

TEST(RuntimeSimulator, FindsReadsOfWhatNobodyWrote) {
  std::vector<unsigned char> bytes(512, 7);
  Simulator sim;
  regie_stream* s = sim.stream();
  void* at = sim.allocate(1024);
  sim.in(s, at, bytes.data(), 512);
  sim.out(s, bytes.data(), static_cast<char*>(at) + 256, 512);
  EXPECT_EQ(sim.table.stream_wait(s, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("nobody has written"), std::string::npos);
  EXPECT_EQ(sim.table.copy(s, REGIE_COPY_FROM_DEVICE, bytes.data(), bytes.data(), 4), REGIE_INVALID_INPUT);
  EXPECT_NE(take_failure().find("does not lie in its memory"), std::string::npos);
}

TEST(RuntimeSimulator, FindsMemoryThatIsGivenBackTooEarly) {
  std::vector<unsigned char> bytes(512, 7);
  Simulator sim;
  regie_stream* s = sim.stream();
  void* at = sim.allocate(512);
  sim.in(s, at, bytes.data(), 512);
  sim.table.release(sim.device.device(), 0, at);
  EXPECT_EQ(sim.table.stream_wait(s, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("may still use it"), std::string::npos);
}

TEST(RuntimeSimulator, AWaitThatNobodyEndsHasALimit) {
  Simulator sim(costs({{"wait_timeout_ms", "50"}, {"queue_depth", "2"}}));
  regie_stream* s = sim.stream();
  regie_fence* f = sim.fence();
  ASSERT_EQ(sim.table.fence_wait(s, f, 1), REGIE_OK);
  EXPECT_EQ(sim.table.stream_wait(s, 5'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure().find("nobody has signalled"), std::string::npos);
  ASSERT_EQ(sim.table.fence_signal(s, f, 2), REGIE_OK);  // behind the wait: it cannot help
  EXPECT_EQ(sim.table.fence_signal(s, f, 3), REGIE_TIMEOUT) << "the queue is full";
  EXPECT_NE(take_failure().find("full"), std::string::npos);
  ASSERT_EQ(sim.table.fence_signal(sim.device.stream(), f, 1), REGIE_OK);
  EXPECT_EQ(sim.table.stream_wait(s, UINT64_MAX), REGIE_OK) << take_failure();
}

TEST(RuntimeSimulator, RefusesParametersThatMakeNoSense) {
  const std::pair<const char*, const char*> wrong[] = {{"issue_ns", "-1"},    {"core_count", "2.5"},
                                                       {"mode", "fast"},      {"numerics", "1"},
                                                       {"memory_bytes", "x"}, {"no_such_key", "1"}};
  for (const auto& [key, value] : wrong) {
    const Settings odd({{key, value}});
    regie_device* device = nullptr;
    EXPECT_EQ(library("simulator").devices()->create(0, host(), odd.get(), &device), REGIE_INVALID_INPUT)
        << key;
    EXPECT_NE(take_failure().find(key), std::string::npos);
  }
  regie_engine* engine = nullptr;
  const Settings odd({{"isue_ns", "1"}});
  EXPECT_EQ(library("aicpu").engines()->create(0, host(), odd.get(), &engine), REGIE_INVALID_INPUT);
  EXPECT_NE(take_failure().find("isue_ns"), std::string::npos);
}

}  // namespace
