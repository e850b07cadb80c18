// Runs over several streams of the simulated device: the runtime hands over every event that the plan has,
// and the device finds each that is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "regie/op_blob.hpp"
#include "support/run_model.h"

namespace regie {
namespace {

using test::Answer;
using test::ModelBuilder;
using test::open;
using test::row;
using test::run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string operator_blob(const char* op) {
  sdk::BlobWriter out;
  sdk::write_op(out, op, nullptr, 0);
  out.put<uint32_t>(0);  // no region
  return out.take();
}

// y = x + relu(x), over three streams; the waits of one task may be left out.
std::shared_ptr<Model> three_streams(std::optional<size_t> without = {}) {
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "host_cpu"), npu = b.device("npu", "simulator");
  b.space("host", cpu);
  b.space("of npu", npu);
  const uint32_t t = b.f32({3});
  const Arg x = b.input("x", t), y = b.output("y", t);
  const Arg near = b.buffer("near", 1, t), half = b.buffer("half", 1, t), sum = b.buffer("sum", 1, t);
  b.copy(npu, 0, x, near);                                           // 0
  b.launch(npu, 1, operator_blob("Relu"), {near}, {half}, {0});      // 1
  b.launch(npu, 0, operator_blob("Add"), {near, half}, {sum}, {1});  // 2
  b.copy(npu, 2, sum, y, {2});                                       // 3
  for (ModelBuffer& buffer : b.m.buffers) buffer.alignment = 512;
  for (ModelKernel& k : b.m.kernels) {
    k.format = "regie.aicpu/1";
    k.flags = REGIE_KERNEL_ANY_SHAPE;
  }
  if (without) b.m.programs[0].tasks[*without].waits.clear();
  return b.finish();
}

class RuntimeSimulatedStreams : public ::testing::Test {
 protected:
  RuntimeSimulatedStreams() { set_current_plugin_host(test::fake_plugins()); }
};

TEST_F(RuntimeSimulatedStreams, WithAllEventsTheAnswerIsRightAgainAndAgain) {
  std::shared_ptr<Session> session = open(three_streams()).value();
  std::shared_ptr<Context> context = session->acquire().value();
  for (int i = 1; i <= 20; ++i) {
    const float v = static_cast<float>(i);
    const Answer a = run(*context, {row({v, -v, 0})}, 1);
    ASSERT_TRUE(a.status.ok()) << a.status.to_string();
    EXPECT_THAT(a.outputs[0].values, ElementsAre(2 * v, -v, 0));
  }
}

TEST_F(RuntimeSimulatedStreams, EachEventThatIsLeftOutIsFound) {
  SessionOptions unchecked;
  unchecked.check_plans = false;
  for (size_t task : {1, 2, 3}) {
    SCOPED_TRACE(task);
    EXPECT_EQ(test::run_once(three_streams(task), {row({1, 2, 3})}).status.code(), REGIE_CORRUPT)
        << "the check of plans comes first";
    std::shared_ptr<Session> session = open(three_streams(task), unchecked).value();
    std::shared_ptr<Context> context = session->acquire().value();
    for (int again = 0; again < 2; ++again) {  // new streams after a failure
      const Answer a = run(*context, {row({1, 2, 3})}, 1);
      EXPECT_EQ(a.status.code(), REGIE_DEVICE);
      const std::string words = a.status.to_string();
      EXPECT_THAT(words, HasSubstr("an event or a wait is missing"));
      EXPECT_THAT(words, HasSubstr(task == 3 ? "a copy of 12 bytes" : "task " + std::to_string(task)));
      if (task != 3) {
        EXPECT_THAT(words, HasSubstr("node 't" + std::to_string(task) + "'"));
      }
    }
  }
}

TEST_F(RuntimeSimulatedStreams, TheRecordSaysWhoWaitedForWhat) {
  std::shared_ptr<Session> session = open(three_streams()).value();
  std::shared_ptr<Context> context = session->acquire().value();
  context->set_profiling(true);
  ASSERT_TRUE(run(*context, {row({1, 2, 3})}, 1).status.ok());
  ASSERT_EQ(context->records().size(), 3u);
  std::map<uint32_t, regie_trace_task> by_task;
  for (const DeviceRecord& r : context->records())
    for (const regie_trace_task& t : r.tasks)
      for (const TaskTime& time : context->times())
        if (time.tag == t.tag) {
          by_task[time.task] = t;
          EXPECT_EQ(time.end_ns - time.begin_ns, t.end_ns - t.begin_ns)
              << "copies, too, in the device's time";
        }
  ASSERT_EQ(by_task.size(), 4u);
  constexpr uint64_t event_ns = 500;  // of a 910A, which the device is without parameters
  for (uint32_t task : {1, 2, 3}) {
    EXPECT_EQ(by_task[task].event_ns, by_task[task - 1].end_ns + event_ns);
    EXPECT_GE(by_task[task].begin_ns, by_task[task].event_ns);
    EXPECT_GE(by_task[task].begin_ns, by_task[task].issued_ns);
  }
  EXPECT_EQ(by_task[0].event_ns, 0u);
  context->set_profiling(false);
  ASSERT_TRUE(run(*context, {row({1, 2, 3})}, 1).status.ok());
}

}  // namespace
}  // namespace regie
