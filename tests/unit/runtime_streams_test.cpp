// Models whose tasks lie on several streams, compiled and run: the plan's check finds each event that is
// taken away, the simulated device gives the same bytes as with one stream, and on this computer two streams
// are at work at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "model/file.h"
#include "model/plan_check.h"
#include "passes/compiler.h"
#include "regie_test_paths.h"
#include "runtime/session.h"
#include "support/run_model.h"
#include "support/scratch.h"

namespace regie {
namespace {

using test::Answer;
using test::Floats;
using ::testing::HasSubstr;
using Settings = std::vector<std::pair<std::string, std::string>>;

// A random graph of operators that AI Cores compute and of such that CPUs of the device do.
std::string random_graph(uint64_t seed, size_t nodes) {
  std::mt19937_64 random(seed);
  std::string body, results;
  std::vector<std::string> values{"x", "w"};
  std::set<std::string> unread;
  auto pick = [&] {
    const std::string v = values[values.size() - 1 - random() % std::min<size_t>(values.size(), 7)];
    unread.erase(v);
    return "%" + v;
  };
  for (size_t i = 0; i < nodes; ++i) {
    const std::string name = "v" + std::to_string(i), made = "  %" + name + ": f32[32,64] = ";
    switch (random() % 6) {
      case 0:
      case 1:
        body += made + "Softmax(" + pick() + ") {axis = 1}\n";
        break;
      case 2:
      case 3:
        body += made + "CumSum(" + pick() + ", %axis)\n";
        break;
      case 4:
        body += made + "Add(" + pick() + ", " + pick() + ")\n";
        break;
      default:
        body += made + "MatMul(" + pick() + ", %k)\n";
    }
    values.push_back(name);
    unread.insert(name);
  }
  for (const std::string& v : unread) results += (results.empty() ? "%" : ", %") + v;
  return "graph @random(%x: f32[32,64], %w: f32[32,64], %k: f32[64,64]) -> (" + results +
         ") {\n  %axis: const i64[] = 1\n" + body + "}\n";
}

class RuntimeStreams : public ::testing::Test {
 protected:
  RuntimeStreams() : plugins_(PluginHost::create().value()) {
    set_current_plugin_host(plugins_);
    std::ifstream in(std::string(REGIE_TEST_SOURCE_DIR) + "/configs/targets/ascend910a-sim.toml");
    std::stringstream text;
    text << in.rdbuf();
    std::string target = text.str();
    const size_t mode = target.find("mode = \"issue\"");
    EXPECT_NE(mode, std::string::npos);
    target.replace(mode, 14, "mode = \"sink\"");
    sink_ = scratch_.write("sink.toml", target);
  }

  Compiled compiled(const std::string& text, const std::string& target, const Settings& settings = {},
                    uint32_t threads = 1, uint64_t memory_limit = 0) {
    CompileOptions options;
    options.memory_limit = memory_limit;
    options.target = target;
    options.settings = settings;
    options.threads = threads;
    Result<Compiled> made = compile(plugins_, scratch_.write("graph.rg", text), {}, options);
    if (!made.ok()) throw std::runtime_error(made.status().to_string() + "\n" + text);
    return std::move(made).value();
  }

  static size_t streams_of(const Model& m, const std::string& device) {
    std::set<uint32_t> used;
    for (const ModelProgram& p : m.programs)
      for (const ModelTask& t : p.tasks)
        if (m.devices[t.device].name == device) used.insert(t.stream);
    return used.size();
  }

  Answer run(std::shared_ptr<const Model> model, const std::vector<Floats>& inputs,
             const SessionOptions& options = {}, std::vector<TaskTime>* times = nullptr) {
    const size_t outputs = model->outputs.size();
    auto session = Session::create(std::move(model), plugins_, options);
    if (!session) return {session.status(), {}};
    auto context = (*session)->acquire();
    if (!context) return {context.status(), {}};
    (*context)->set_profiling(times != nullptr);
    Answer answer;
    for (int again = 0; again < 3; ++again) answer = test::run(**context, inputs, outputs);
    if (times) times->assign((*context)->times().begin(), (*context)->times().end());
    return answer;
  }

  static Floats random_floats(std::vector<int64_t> dims, uint64_t seed) {
    std::mt19937_64 random(seed);
    Floats f;
    f.dims = std::move(dims);
    int64_t count = 1;
    for (int64_t d : f.dims) count *= d;
    for (int64_t i = 0; i < count; ++i)
      f.values.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
    return f;
  }
  static std::vector<Floats> inputs(uint64_t seed) {
    return {random_floats({32, 64}, seed), random_floats({32, 64}, seed + 1),
            random_floats({64, 64}, seed + 2)};
  }

  test::Scratch scratch_;
  std::shared_ptr<PluginHost> plugins_;
  std::string sink_;
};

// Nothing of these is run, so they need not be under the thread sanitizer.
class StreamsCompiled : public RuntimeStreams {};

TEST_F(StreamsCompiled, EachEventThatIsTakenAwayIsFoundByTheCheck) {
  size_t events = 0, models = 0, for_bytes = 0;
  for (uint64_t seed = 0; seed < 36; ++seed) {
    SCOPED_TRACE(seed);
    const Compiled made = compiled(random_graph(seed, 24), sink_);
    for_bytes += nlohmann::json::parse(made.report).value("reuse_events", size_t{0});
    models += streams_of(*made.model, "npu") > 1;
    ASSERT_TRUE(check_plan(*made.model).ok());
    for (size_t t = 0; t < made.model->programs[0].tasks.size(); ++t)
      for (size_t w = 0; w < made.model->programs[0].tasks[t].waits.size(); ++w) {
        Model broken = *made.model;
        auto& waits = broken.programs[0].tasks[t].waits;
        waits.erase(waits.begin() + static_cast<long>(w));
        EXPECT_FALSE(check_plan(broken).ok()) << "task " << t << " wait " << w;
        ++events;
      }
  }
  EXPECT_GE(models, 8u);
  EXPECT_GT(events, 50u);
  EXPECT_GT(for_bytes, 5u) << "of them some are there for the sake of memory alone";
}

TEST_F(StreamsCompiled, EventsForBytesSaveThemAtNextToNoTime) {
  size_t smaller = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_graph(seed, 24);
    const auto with = nlohmann::json::parse(compiled(text, sink_).report);
    const auto without =
        nlohmann::json::parse(compiled(text, sink_, {{"schedule-on-streams.reuse", "off"}}).report);
    const uint64_t bytes = with["arena_bytes"], before = without["arena_bytes"];
    EXPECT_LE(bytes, before);
    EXPECT_EQ(before - bytes, with.value("reuse_saved_bytes", uint64_t{0}));
    EXPECT_LE(with.value("predicted_ns", 0.0), 1.01 * without.value("predicted_ns", 0.0));
    EXPECT_LE(with.value("predicted_ns", 0.0), with.value("predicted_one_stream_ns", 0.0));
    EXPECT_FALSE(without.contains("reuse_events"));
    if (!with.contains("reuse_events")) continue;
    ++smaller;
    size_t told = 0;
    for (const std::string reason : with["event_reasons"])
      told += reason.find(" so that ") != std::string::npos &&
              reason.find(" may lie where ") != std::string::npos;
    EXPECT_EQ(told, with["reuse_events"]);
  }
  EXPECT_GT(smaller, 3u);
}

TEST_F(RuntimeStreams, ResultsAreThoseOfOneStreamInBothModes) {
  SessionOptions issue;
  issue.device_settings = {{"npu", "mode", "issue"}};
  size_t laid = 0;
  for (uint64_t seed = 20; seed < 23; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_graph(seed, 24);
    const Answer one = run(compiled(text, sink_, {{"streams", "1"}}).model, inputs(seed));
    ASSERT_TRUE(one.status.ok()) << one.status.to_string();
    const Compiled several = compiled(text, sink_), every = compiled(text, sink_, {{"events", "every"}});
    laid += streams_of(*several.model, "npu") > 1;
    for (const auto& [model, options] : {std::pair(several.model, SessionOptions{}),
                                         {several.model, issue},
                                         {every.model, SessionOptions{}}}) {
      const Answer got = run(model, inputs(seed), options);
      ASSERT_TRUE(got.status.ok()) << got.status.to_string();
      ASSERT_EQ(got.outputs.size(), one.outputs.size());
      for (size_t o = 0; o < one.outputs.size(); ++o) EXPECT_EQ(got.outputs[o].values, one.outputs[o].values);
    }
    const auto fewest = nlohmann::json::parse(several.report), most = nlohmann::json::parse(every.report);
    // Those for bytes nobody needs.
    EXPECT_GE(most["events"].get<int>(), fewest["events"].get<int>() - fewest.value("reuse_events", 0));
    EXPECT_LE(fewest["predicted_ns"], fewest["predicted_one_stream_ns"]);
  }
  EXPECT_GT(laid, 0u);
}

TEST_F(StreamsCompiled, UnderAMemoryLimitEventsAreAddedThenOneStreamIsTakenRatherThanAnythingTwice) {
  size_t limited = 0, met = 0, fell_back = 0;
  const auto bytes = [](const Compiled& c) {
    return nlohmann::json::parse(c.report)["arena_bytes"].get<uint64_t>();
  };
  for (uint64_t seed = 60; seed < 68; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_graph(seed, 24);
    const Compiled several = compiled(text, sink_), one = compiled(text, sink_, {{"streams", "1"}});
    const Compiled bare = compiled(text, sink_, {{"schedule-on-streams.reuse", "off"}});
    if (streams_of(*several.model, "npu") < 2 || bytes(one) >= bytes(bare)) continue;
    ++limited;
    uint64_t told = 0;
    const auto report = nlohmann::json::parse(several.report);
    for (const auto& m : report["memory"]) told += m.value("one_stream_lower_bound_bytes", uint64_t{0});
    EXPECT_EQ(told, nlohmann::json::parse(one.report)["arena_lower_bound_bytes"]) << "nothing grows silently";
    const double one_ns = report["predicted_one_stream_ns"];
    for (const uint64_t limit : {bytes(bare) - 1, bytes(one)}) {
      const Compiled fits = compiled(text, sink_, {}, 1, limit);
      ASSERT_LE(bytes(fits), limit);
      EXPECT_TRUE(check_plan(*fits.model).ok());
      EXPECT_EQ(fits.model->programs[0].tasks.size(), one.model->programs[0].tasks.size());
      const auto fitted = nlohmann::json::parse(fits.report);
      if (streams_of(*fits.model, "npu") > 1) {
        ++met;
        EXPECT_GT(fitted.value("reuse_events", 0u), 0u);
        EXPECT_LE(fitted["predicted_ns"], one_ns);
      } else {
        ++fell_back;
        EXPECT_THAT(fits.report, HasSubstr("above the memory limit"));
        EXPECT_THAT(fits.report, HasSubstr("no events make several streams meet the memory limit"));
      }
      // Without such events one stream is all that is left.
      EXPECT_EQ(
          streams_of(*compiled(text, sink_, {{"schedule-on-streams.reuse", "off"}}, 1, limit).model, "npu"),
          1u);
    }
  }
  EXPECT_GT(limited, 1u);
  EXPECT_GT(met, 1u);
  EXPECT_GT(fell_back, 0u);
}

// Two chains of products of matrices, and their sum.
std::string two_branches() {
  std::string body;
  for (const char* branch : {"a", "b"})
    for (int i = 0; i < 8; ++i) {
      const std::string before = i ? "%" + (branch + std::to_string(i - 1)) : "%x";
      body += "  %" + (branch + std::to_string(i)) + ": f32[384,384] = MatMul(" + before + ", %" + branch +
              "w)\n";
    }
  return "graph @two(%x: f32[384,384], %aw: f32[384,384], %bw: f32[384,384]) -> (%y) {\n" + body +
         "  %y: f32[384,384] = Add(%a7, %b7)\n}\n";
}

TEST_F(RuntimeStreams, OnThisComputerTwoStreamsWorkAtTheSameTime) {
  const std::vector<Floats> in{random_floats({384, 384}, 1), random_floats({384, 384}, 2),
                               random_floats({384, 384}, 3)};
  const Compiled one = compiled(two_branches(), "host_cpu");
  EXPECT_EQ(streams_of(*one.model, "cpu"), 1u) << "unless it is asked for";
  const Compiled two = compiled(two_branches(), "host_cpu", {{"streams", "2"}}, 2);
  ASSERT_EQ(streams_of(*two.model, "cpu"), 2u);
  for (const ModelTask& t : two.model->programs[0].tasks) EXPECT_EQ(t.threads, 1u) << "they share the width";
  // A model file keeps streams and events.
  const std::string file = scratch_.path("two.rgm");
  ASSERT_TRUE(save_model(*two.model, file).ok());
  auto loaded = load_model(file);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_EQ(streams_of(**loaded, "cpu"), 2u);
  const Answer expected = run(one.model, in), got = run(*loaded, in);
  ASSERT_TRUE(expected.status.ok()) << expected.status.to_string();
  ASSERT_TRUE(got.status.ok()) << got.status.to_string();
  EXPECT_EQ(got.outputs[0].values, expected.outputs[0].values);
  // On a computer that is busy with other things one thread may have done before the other begins: then
  // again.
  size_t both = 0;
  for (int again = 0; again < 100 && both == 0; ++again) {
    std::vector<TaskTime> times;
    ASSERT_TRUE(run(*loaded, in, {}, &times).status.ok());
    const auto stream = [&](const TaskTime& t) { return (*loaded)->programs[0].tasks[t.task].stream; };
    for (const TaskTime& a : times)
      for (const TaskTime& b : times)
        if (stream(a) == 0 && stream(b) == 1 && a.begin_ns && b.begin_ns)
          both += std::max(a.begin_ns, b.begin_ns) < std::min(a.end_ns, b.end_ns);
  }
  EXPECT_GT(both, 0u) << "no kernel of the one stream was at work together with one of the other";
}

TEST_F(RuntimeStreams, ManyRunsOverThreadsGiveTheSame) {
  size_t laid = 0;
  for (uint64_t seed = 40; seed < 44; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = random_graph(seed, 30);
    const Answer one = run(compiled(text, "host_cpu").model, inputs(seed));
    ASSERT_TRUE(one.status.ok()) << one.status.to_string();
    const Compiled several = compiled(text, "host_cpu", {{"streams", "3"}});
    laid += streams_of(*several.model, "cpu") > 1;
    const Answer got = run(several.model, inputs(seed));
    ASSERT_TRUE(got.status.ok()) << got.status.to_string();
    for (size_t o = 0; o < one.outputs.size(); ++o) EXPECT_EQ(got.outputs[o].values, one.outputs[o].values);
  }
  EXPECT_GT(laid, 0u);
}

// Branches before a loop, in each of its iterations and after it.
TEST_F(RuntimeStreams, ALoopWaitsForAllStreamsAndTheyForIt) {
  const std::string matrix = ": f32[128,128]";
  // Of `of`, two chains of two products each, and their sum.
  const auto branches = [](const std::string& name, const std::string& of, const std::string& a,
                           const std::string& b) {
    return "%" + name + "p = MatMul(%" + of + ", %" + a + ")\n%" + name + "r = MatMul(%" + name + "p, %" + a +
           ")\n%" + name + "q = MatMul(%" + of + ", %" + b + ")\n%" + name + "s = MatMul(%" + name + "q, %" +
           b + ")\n%" + name + " = Add(%" + name + "r, %" + name + "s)\n";
  };
  const std::string text =
      "graph @loop(%x" + matrix + ", %a" + matrix + ", %b" + matrix +
      ") -> (%y) {\n%three: const i64[] = 3\n" + branches("s", "x", "a", "b") +
      "%l = Loop(%three, _, %s, %a, %b) {carried = 1} region @body(%i: i64[], %g: bool[], %v" + matrix +
      ", %ka" + matrix + ", %kb" + matrix + ") -> (%g, %w) {\n" + branches("o", "v", "ka", "kb") +
      "%w = Softmax(%o) {axis = 1}\n}\n" + branches("y", "l", "a", "b") + "}\n";
  const std::vector<Floats> in{random_floats({128, 128}, 1), random_floats({128, 128}, 2),
                               random_floats({128, 128}, 3)};
  const Compiled one = compiled(text, "host_cpu"), two = compiled(text, "host_cpu", {{"streams", "2"}});
  EXPECT_EQ(streams_of(*two.model, "cpu"), 2u);
  const Answer expected = run(one.model, in);
  ASSERT_TRUE(expected.status.ok()) << expected.status.to_string();
  for (int again = 0; again < 10; ++again) {
    const Answer got = run(two.model, in);
    ASSERT_TRUE(got.status.ok()) << got.status.to_string();
    EXPECT_EQ(got.outputs[0].values, expected.outputs[0].values);
  }
}

TEST_F(RuntimeStreams, AFailureOnOneStreamIsToldAndTheNextRunIsFine) {
  // Rows that are picked by what the run gives: a row that is not there fails.
  const std::string text =
      "graph @pick(%x: f32[64,64], %i: f32[8]) -> (%y, %z) {\n"
      "  %r: i64[8] = Cast(%i) {to = 7}\n"
      "  %g: f32[8,64] = Gather(%x, %r) {axis = 0}\n"
      "  %y: f32[8,64] = Softmax(%g) {axis = 1}\n"
      "  %a: f32[64,64] = MatMul(%x, %x)\n"
      "  %b: f32[64,64] = MatMul(%a, %x)\n"
      "  %z: f32[64,64] = MatMul(%b, %x)\n}\n";
  const Compiled made =
      compiled(text, "host_cpu", {{"streams", "2"}, {"schedule-on-streams.events", "fewest"}});
  ASSERT_EQ(streams_of(*made.model, "cpu"), 2u);
  const size_t outputs = made.model->outputs.size();
  auto session = Session::create(made.model, plugins_, {}).value();
  auto context = session->acquire().value();
  const Floats x = random_floats({64, 64}, 5);
  const Floats good{{8}, {0, 1, 2, 3, 4, 5, 6, 7}}, bad{{8}, {0, 1, 2, 3, 4, 5, 6, 900}};
  for (int again = 0; again < 3; ++again) {
    EXPECT_TRUE(test::run(*context, {x, good}, outputs).status.ok());
    const Status s = test::run(*context, {x, bad}, outputs).status;
    ASSERT_FALSE(s.ok());
    EXPECT_THAT(s.to_string(), HasSubstr("Gather"));
  }
}

}  // namespace
}  // namespace regie
