// Order, control flow, failures, profiles and allocations of runs, on streams that take their time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/alloc_counter.h"
#include "support/run_model.h"

namespace regie {
namespace {

using test::Answer;
using test::Floats;
using test::ModelBuilder;
using test::open;
using test::row;
using test::run;
using test::run_once;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x goes to two devices and between their streams and back: y = ((2x + x) * 5) + 7x, with `waits` or without.
std::shared_ptr<Model> crossing(bool waits, const char* delay = "300") {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  const uint32_t a = b.device("a", "fake_async", {{"delay-us", delay}, {"seed", "3"}});
  const uint32_t c = b.device("c", "fake_async", {{"delay-us", delay}, {"seed", "11"}});
  b.space("host", cpu);
  b.space("of a", a);
  b.space("of c", c);
  const uint32_t t = b.f32({3});
  const Arg x = b.input("x", t), y = b.output("y", t);
  const Arg xa = b.buffer("xa", 1, t), twice = b.buffer("twice", 1, t), thrice = b.buffer("thrice", 1, t);
  const Arg mid = b.buffer("mid", 0, t), xc = b.buffer("xc", 2, t), five = b.buffer("five", 2, t);
  const Arg back = b.buffer("back", 0, t), seven = b.buffer("seven", 0, t);
  auto on = [&](std::vector<uint32_t> w) { return waits ? w : std::vector<uint32_t>{}; };
  b.copy(a, 0, x, xa);                                    // 0
  b.launch(a, 1, "scale:2", {xa}, {twice}, on({0}));      // 1: other stream, same device
  b.launch(a, 0, "add", {xa, twice}, {thrice}, on({1}));  // 2: and back
  b.copy(a, 2, thrice, mid, on({2}));                     // 3
  b.copy(c, 0, mid, xc, on({3}));                         // 4: other device
  b.launch(c, 0, "scale:5", {xc}, {five});                // 5
  b.launch(cpu, 0, "scale:7", {x}, {seven});              // 6: inline, at once
  b.copy(c, 1, five, back, on({5}));                      // 7
  b.launch(cpu, 0, "add", {back, seven}, {y}, on({7}));   // 8: the host waits
  return b.finish();
}

TEST(RuntimeExecutor, WaitsHold) {
  std::shared_ptr<Session> session = open(crossing(true)).value();
  std::shared_ptr<Context> context = session->acquire().value();
  for (int i = 1; i <= 40; ++i) {
    const float v = static_cast<float>(i);
    const Answer a = run(*context, {row({v, 2 * v, 3 * v})}, 1);
    ASSERT_TRUE(a.status.ok()) << a.status.to_string();
    EXPECT_THAT(a.outputs[0].values, ElementsAre(22 * v, 44 * v, 66 * v));
  }
}

#ifndef __SANITIZE_THREAD__  // it would rightly report the race
TEST(RuntimeExecutor, TheFakeDeviceShowsMissingWaits) {
  EXPECT_EQ(run_once(crossing(false), {row({1, 2, 3})}).status.code(), REGIE_CORRUPT);
  SessionOptions unchecked;
  unchecked.check_plans = false;
  std::shared_ptr<Session> session = open(crossing(false), unchecked).value();
  std::shared_ptr<Context> context = session->acquire().value();
  int wrong = 0;
  for (int i = 1; i <= 40; ++i) {
    const Answer a = run(*context, {row({1.0f * i, 2, 3})}, 1);
    ASSERT_TRUE(a.status.ok()) << a.status.to_string();
    wrong += a.outputs[0].values[0] != 22.0f * i;
  }
  EXPECT_GT(wrong, 0) << "the tests of waits on this device could not fail";
}
#endif

TEST(RuntimeExecutor, TwoContextsFromTwoThreads) {
  std::shared_ptr<Session> session = open(crossing(true, "50")).value();
  std::atomic<int> good{0};
  auto work = [&](float base) {
    for (int i = 0; i < 10; ++i) {
      std::shared_ptr<Context> context = session->acquire().value();
      const float v = base + static_cast<float>(i);
      const Answer a = run(*context, {row({v, v, v})}, 1);
      if (a.status.ok() && a.outputs[0].values == std::vector<float>(3, 22 * v)) ++good;
    }
  };
  std::thread other(work, 100.0f);
  work(1.0f);
  other.join();
  EXPECT_EQ(good, 20);
}

// y = x0 < 3 ? 2x : (x0 < 5 ? x + w : w); z = x0 < 3 ? x : 10x, on a device with memory of its own.
std::shared_ptr<Model> branching(bool condition_on_device) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline"), a = b.device("a", "fake_async", {{"delay-us", "200"}});
  b.space("host", cpu);
  b.space("own", a);
  for (int i = 0; i < 5; ++i) b.program();
  const uint32_t t = b.f32({2}), flag = b.type(REGIE_BOOL, {});
  const Arg x = b.input("x", t), w = b.weight({100, 200}, t);
  const Arg xa = b.buffer("xa", 1, t), y = b.buffer("y far", 1, t), inner = b.buffer("inner", 1, t);
  const Arg z = b.buffer("z near", 0, t), more = b.buffer("more", 0, t), sum = b.buffer("sum", 1, t);
  const uint32_t where = condition_on_device ? 1u : 0u, who = condition_on_device ? a : cpu;
  const Arg small = b.buffer("small", where, flag), medium = b.buffer("medium", where, flag);
  b.copy(a, 0, x, xa);
  b.launch(who, 1, "less:3", {condition_on_device ? xa : x}, {small},
           condition_on_device ? std::vector<uint32_t>{0} : std::vector<uint32_t>{});
  b.launch(a, 2, "scale:2", {xa}, {y}, {0}, 1);  // waits are of the program: see below
  b.m.programs[1].tasks[0].waits.clear();
  b.launch(who, 1, "less:5", {condition_on_device ? xa : x}, {medium}, {}, 2);
  b.launch(cpu, 0, "scale:10", {x}, {more}, {}, 2);
  b.launch(a, 2, "add", {xa, w}, {sum}, {}, 3);
  b.branch(who, 1, medium, {inner}, 3, {sum}, 4, {w}, {}, 2);
  // In the first branch y is written in place and z is the captured input; in the second both are copied.
  b.branch(who, 1, small, {y, z}, 1, {y, x}, 2, {inner, more}, {0});
  b.copy(a, 0, y, b.output("y", t), {2});
  b.m.output_sources.push_back(z);
  b.m.outputs.push_back({"z", t});
  return b.finish();
}

TEST(RuntimeExecutor, BranchesTakeTheOneThatTheDataSays) {
  for (const bool far : {false, true}) {
    const std::shared_ptr<Model> m = branching(far);
    std::shared_ptr<Session> session = open(m).value();
    std::shared_ptr<Context> context = session->acquire().value();
    for (int round = 0; round < 8; ++round) {
      Answer a = run(*context, {row({1, 2})}, 2);
      ASSERT_TRUE(a.status.ok()) << a.status.to_string();
      EXPECT_THAT(a.outputs[0].values, ElementsAre(2, 4));
      EXPECT_THAT(a.outputs[1].values, ElementsAre(1, 2));
      a = run(*context, {row({4, 5})}, 2);
      EXPECT_THAT(a.outputs[0].values, ElementsAre(104, 205));
      EXPECT_THAT(a.outputs[1].values, ElementsAre(40, 50));
      a = run(*context, {row({6, 7})}, 2);
      EXPECT_THAT(a.outputs[0].values, ElementsAre(100, 200));
      EXPECT_THAT(a.outputs[1].values, ElementsAre(60, 70));
    }
  }
}

// ---- Failures
// -----------------------------------------------------------------------------------------------------

std::shared_ptr<Model> failing(const char* plugin, const char* kernel) {
  ModelBuilder b;
  const uint32_t d = b.device("d", plugin, {{"visible", "1"}, {"delay-us", "100"}});
  b.space("host", d);
  const uint32_t t = b.f32({1});
  const Arg x = b.input("x", t), h = b.buffer("h", 0, t), i = b.buffer("i", 0, t);
  b.launch(d, 0, "scale:2", {x}, {h});
  b.launch(d, 0, kernel, {h}, {i});
  b.launch(d, 0, "scale:2", {i}, {b.output("y", t)});
  return b.finish();
}

TEST(RuntimeExecutor, DeviceErrorsNameTheTask) {
  for (const char* plugin : {"fake_async", "fake_inline"}) {
    std::shared_ptr<Session> session = open(failing(plugin, "fail")).value();
    std::shared_ptr<Context> context = session->acquire().value();
    for (int i = 0; i < 3; ++i) {  // the streams are made anew each time
      const Answer a = run(*context, {row({1})}, 1);
      EXPECT_EQ(a.status.code(), REGIE_DEVICE);
      const std::string text = a.status.to_string();
      EXPECT_THAT(text, HasSubstr("the fake kernel fails on purpose"));
      EXPECT_THAT(text, HasSubstr(std::string("device 'd' (") + plugin + ")"));
      if (std::string(plugin) == "fake_async") {
        EXPECT_EQ(a.status.where(), "node 't1'");
        EXPECT_THAT(text, HasSubstr("made from origin1"));
      }
    }
  }
}

TEST(RuntimeExecutor, TheStreamThatFailedSpeaksNotTheOneThatWaits) {
  ModelBuilder b;
  const uint32_t d = b.device("d", "fake_async", {{"visible", "1"}, {"delay-us", "300"}});
  b.space("host", d);
  const uint32_t t = b.f32({1});
  const Arg x = b.input("x", t), g = b.buffer("g", 0, t), h = b.buffer("h", 0, t);
  b.launch(d, 0, "scale:2", {x}, {g});
  b.launch(d, 1, "fail", {x}, {h});
  b.launch(d, 0, "add", {g, h}, {b.output("y", t)}, {1});
  std::shared_ptr<Session> session = open(b.finish()).value();
  std::shared_ptr<Context> context = session->acquire().value();
  for (int i = 0; i < 5; ++i) {
    const Answer a = run(*context, {row({1})}, 1);
    EXPECT_EQ(a.status.code(), REGIE_DEVICE);
    EXPECT_EQ(a.status.where(), "node 't1'") << a.status.to_string();
    EXPECT_THAT(a.status.to_string(), HasSubstr("fails on purpose"));
  }
}

TEST(RuntimeExecutor, ExceptionsOfPluginsStopAtTheBoundary) {
  const Answer a = run_once(failing("fake_async", "throw"), {row({1})});
  EXPECT_EQ(a.status.code(), REGIE_BAD_PLUGIN);
  EXPECT_EQ(a.status.where(), "node 't1'");
}

TEST(RuntimeExecutor, WaitsHaveALimit) {
  std::shared_ptr<Model> m = failing("fake_async", "scale:3");
  m->devices[0].params = {{"visible", "1"}, {"delay-us", "2000000"}, {"seed", "5"}};
  SessionOptions options;
  options.timeout_ns = 1000000;
  std::shared_ptr<Session> session = open(m, options).value();
  std::shared_ptr<Context> context = session->acquire().value();
  const Floats x = row({1});  // outlives the context: the device still reads it
  regie_tensor in = x.view(), out{};
  const Status s = context->run({&in, 1}, {&out, 1});
  EXPECT_EQ(s.code(), REGIE_TIMEOUT) << s.to_string();
  EXPECT_THAT(s.to_string(), HasSubstr("waiting for device 'd' (fake_async)"));
  context.reset();
  session.reset();
}

// ---- Profiles and allocations
// -------------------------------------------------------------------------------------

TEST(RuntimeExecutor, Profile) {
  std::shared_ptr<Session> session = open(crossing(true)).value();
  std::shared_ptr<Context> context = session->acquire().value();
  ASSERT_TRUE(run(*context, {row({1, 2, 3})}, 1).status.ok());
  EXPECT_TRUE(context->times().empty());
  context->set_profiling(true);
  ASSERT_TRUE(run(*context, {row({1, 2, 3})}, 1).status.ok());
  std::span<const TaskTime> times = context->times();
  ASSERT_EQ(times.size(), 9u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].task, i);
    if (i > 0) {
      EXPECT_GE(times[i].issue_ns, times[i - 1].issue_ns);
    }
  }
  for (const size_t launch : {1, 2, 5, 6, 8}) {
    EXPECT_GT(times[launch].begin_ns, 0u) << launch;
    EXPECT_GE(times[launch].end_ns, times[launch].begin_ns);
  }
  EXPECT_GE(times[2].begin_ns, times[1].end_ns);
  for (const TaskTime& t : times) {
    EXPECT_LE(t.wait_ns, t.issue_ns) << t.task;
    EXPECT_LE(t.issue_ns, t.issued_ns) << t.task;
    EXPECT_GE(t.begin_ns, t.issue_ns) << t.task << ": on the host's clock, copies too";
    EXPECT_GE(t.end_ns, t.begin_ns) << t.task;
  }
}

TEST(RuntimeExecutor, NothingIsAllocatedInLaterRuns) {
  struct Case {
    const char* name;
    std::shared_ptr<Model> model;
    std::vector<Floats> inputs;
    size_t outputs;
  };
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  b.input("x", 0);
  const ModelDim n = b.symbol("N", 0, 0, 1, 9, 1);
  const uint32_t t = b.f32({n});
  b.m.inputs[0].type = t;
  const Arg x{Arg::kInput, 0, 0, t, false}, h = b.buffer("h", 0, t, b.times(n, 4));
  b.launch(cpu, 0, "scale:2", {x}, {h});
  b.launch(cpu, 0, "add", {h, b.weight({1}, b.f32({1}))}, {b.output("y", t)});
  const Case cases[] = {{"inline", b.finish(), {row({1, 2}), row({3}), row({1, 2, 3})}, 1},
                        {"crossing", crossing(true, "0"), {row({1, 2, 3})}, 1},
                        {"branching", branching(true), {row({1, 2}), row({4, 5}), row({6, 7})}, 2}};
  for (const Case& c : cases) {
    std::shared_ptr<Session> session = open(c.model).value();
    std::shared_ptr<Context> context = session->acquire().value();
    std::vector<regie_tensor> in(1), out(c.outputs);
    for (int round = 0; round < 2; ++round)
      for (const Floats& f : c.inputs) {
        in[0] = f.view();
        ASSERT_TRUE(context->run(in, out).ok());
      }
    test::AllocCounter counter({"fake_device"});  // the device's queue is its own business
    counter.start();
    bool good = true;
    for (int round = 0; round < 5; ++round)
      for (const Floats& f : c.inputs) {
        in[0] = f.view();
        good &= context->run(in, out).ok();
      }
    counter.stop();
    EXPECT_TRUE(good);
    EXPECT_EQ(counter.count(), 0u) << c.name << "\n" << ::testing::PrintToString(counter.places());
    if (std::string(c.name) == "crossing") {
      EXPECT_GT(counter.excluded(), 0u) << "the counter sees nothing";
    }
  }
}

}  // namespace
}  // namespace regie
