// Models on simulated accelerators: answers against ONNX Runtime's, simulated times that are functions of the
// model and the target alone, and the arithmetic of their profiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "regie/api/regie.hpp"
#include "regie_test_paths.h"
#include "support/api_model.h"
#include "support/process.h"

namespace regie::test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const std::string kCpusAlone = std::string(REGIE_TEST_SOURCE_DIR) + "/tests/support/cpus_alone.toml";
// The network is so small that by cost it stays on the host.
const std::pair<std::string, std::string> kAsManyAsCan{"set", "placement=greedy"};
const std::string kFolder = std::string(REGIE_TEST_MODELS_DIR) + "/digits/";

class SimulatorTarget : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulatorTarget, DigitsAreReadAsByOnnxRuntime) {
  const Tensor images = load_npy(kFolder + "images.npy"), scores = load_npy(kFolder + "ort_scores.npy");
  const ModelPtr model =
      compile_file(kFolder + "digits.onnx", {{"target", GetParam()}, {"shape", "x=360,1,8,8"}});
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model);
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  const Tensor got = runner.run({{"x", images}}).at("scores");
  ASSERT_EQ(got.count(), scores.count());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < static_cast<size_t>(got.count()); ++i) {
    difference += std::pow(element(got, i) - element(scores, i), 2);
    norm += std::pow(element(scores, i), 2);
  }
  EXPECT_LE(std::sqrt(difference / norm), 5e-3) << "relative L2";
  for (int64_t row = 0; row < 360; ++row) {
    const auto best = [&](const Tensor& t) {
      const auto all = t.as<float>().subspan(static_cast<size_t>(row) * 10, 10);
      return std::max_element(all.begin(), all.end()) - all.begin();
    };
    EXPECT_EQ(best(got), best(scores)) << "image " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SimulatorTarget,
                         ::testing::Values("ascend310-sim", "ascend310p3-sim", "ascend910a-sim",
                                           "ascend910b3-sim"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// Operators of all kinds, control flow and shapes that the run tells among them: values are right, and no
// task reads what nobody wrote or without the order that it needs.
TEST(SimulatorAicpu, VariantsEqualOnnxRuntime) {
  const std::string target = kCpusAlone, folder = std::string(REGIE_TEST_VARIANTS_DIR) + "/";
  size_t models = 0;
  for (const Json& v : Json::parse(slurp(folder + "variants.json"))) {
    if (v["group"] == "refused") continue;
    std::map<std::string, Tensor> inputs;
    for (const auto& [name, file] : v["inputs"].items())
      inputs.emplace(name, load_npy(folder + file.get<std::string>()));
    for (const char* optimise : {"1", "0"}) {
      SCOPED_TRACE(v["name"].get<std::string>() + (optimise[0] == '1' ? "" : ", not optimised"));
      const ModelPtr model =
          compile_file(folder + v["model"].get<std::string>(), {{"target", target}, {"optimise", optimise}});
      EXPECT_TRUE(model) << regie_last_error();
      if (!model) continue;
      Runner runner(model);
      EXPECT_TRUE(runner.ready()) << regie_last_error();
      if (!runner.ready()) continue;
      for (int again = 0; again < 2; ++again) {
        auto out = runner.run(inputs);
        EXPECT_EQ(runner.status(), REGIE_OK) << regie_last_error();
        for (const auto& [name, file] : v["outputs"].items())
          EXPECT_TRUE(close(out[name], load_npy(folder + file.get<std::string>()))) << "output " << name;
      }
    }
    ++models;
  }
  EXPECT_GE(models, 80u);
}

// In double precision, which the AI Cores do not have.
TEST(SimulatorAicpu, ElementwiseChainsKeepTheirRegion) {
  Scratch scratch;
  const std::string path = scratch.path("chain.rg");
  std::ofstream(path) << "graph @chain(%x: f64[2,3], %b: f64[3]) -> (%y) {\n"
                         "  %two: const f64[] = 2.0\n"
                         "  %s: f64[2,3] = Sigmoid(%x)\n"
                         "  %d: f64[2,3] = Mul(%s, %two)\n"
                         "  %y: f64[2,3] = Add(%d, %b)\n"
                         "}\n";
  const api::Model model = api::Model::compile(path, {{"target", "ascend910a-sim"}, kAsManyAsCan});
  const Json plan = Json::parse(model.plan());
  size_t fused = 0;
  for (const Json& kernel : plan.at("kernels")) fused += kernel.at("name") == "aicpu regie.Pointwise";
  EXPECT_EQ(fused, 1u) << plan.at("kernels");
  const std::vector<double> x{-2, -1, 0, 0.5, 1, 3}, b{0.25, -4, 1e6};
  const int64_t x_dims[] = {2, 3}, b_dims[] = {3};
  const regie_tensor inputs[] = {api::tensor<double>(x, x_dims), api::tensor<double>(b, b_dims)};
  api::Session session(model);
  api::Context context = session.acquire();
  const std::vector<regie_tensor> outputs = context.run(inputs);
  ASSERT_EQ(outputs[0].bytes, 48u);
  for (size_t i = 0; i < 6; ++i) {
    const double expected = 2 / (1 + std::exp(-x[i])) + b[i % 3];
    EXPECT_NEAR(static_cast<const double*>(outputs[0].data)[i], expected,
                1e-12 * std::max(1.0, std::fabs(expected)));
  }
}

// The record of the second run of a session, its clock's beginning taken off.
Json record(const std::string& target, const api::Options& options = {}) {
  static const std::vector<float> image(64, 0.5f);
  const int64_t dims[] = {1, 1, 8, 8};
  const regie_tensor x = api::tensor<float>(image, dims);
  const api::Model model = api::Model::compile(kFolder + "digits.onnx", {{"target", target}, kAsManyAsCan});
  api::Session session(model, options);
  api::Context context = session.acquire();
  context.run({&x, 1});
  context.set_profiling(true);
  context.run({&x, 1});
  return Json::parse(context.device_times());
}

uint64_t length(const Json& record) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (const Json& s : record.at("streams")) {
    for (const Json& t : s.at("tasks")) begin = std::min(begin, t.at("issue").get<uint64_t>());
    for (const Json& w : s.at("waits")) end = std::max(end, w.at("end").get<uint64_t>());
  }
  return end - begin;
}

TEST(SimulatorTimes, EqualSchedulesTakeEqualTimes) {
  const Json once = record("ascend910a-sim");
  ASSERT_FALSE(once.at("streams").empty());
  ASSERT_GT(once.at("streams")[0].at("tasks").size(), 2u);
  EXPECT_EQ(record("ascend910a-sim"), once);
  EXPECT_EQ(record("ascend910a-sim", {{"device-set", "npu.numerics=off"}}), once);
  EXPECT_NE(record("ascend310-sim"), once);
}

TEST(SimulatorTimes, ASunkModelIsIssuedOnce) {
  const Json issued = record("ascend910a-sim"),
             sunk = record("ascend910a-sim", {{"device-set", "npu.mode=sink"}});
  EXPECT_LE(length(sunk), length(issued));
  for (const Json& s : sunk.at("streams")) {
    double spent = 0;
    for (const Json& t : s.at("tasks"))
      spent += static_cast<double>(t.at("issued").get<uint64_t>() - t.at("issue").get<uint64_t>());
    EXPECT_EQ(spent, 5000) << "sink_launch_ns of the target, once";
  }
}

TEST(SimulatorTimes, AnExpensiveHostMakesTheRunLonger) {
  const Json cheap = record("ascend910a-sim", {{"device-set", "npu.issue_ns=0"}}),
             dear = record("ascend910a-sim", {{"device-set", "npu.issue_ns=50000000"}});
  const size_t tasks = dear.at("streams")[0].at("tasks").size();
  // Host-bound: one issue after the other, and the last task behind the last of them.
  EXPECT_GE(length(dear), 50'000'000 * tasks);
  EXPECT_LT(length(dear), 50'000'000 * tasks + length(cheap));
}

TEST(SimulatorTimes, ParametersOfDevicesAreChecked) {
  const api::Model model =
      api::Model::compile(kFolder + "digits.onnx", {{"target", "ascend910a-sim"}, kAsManyAsCan});
  const auto words = [&](const char* setting) {
    const regie_option option{"device-set", setting};
    regie_session* session = nullptr;
    EXPECT_EQ(regie_session_create(model.get(), &option, 1, &session), REGIE_INVALID_INPUT) << setting;
    return std::string(regie_last_error());
  };
  EXPECT_THAT(words("npu0.mode=sink"), HasSubstr("cpu, npu"));
  EXPECT_THAT(words("npu.mode"), HasSubstr("DEVICE.PARAMETER=VALUE"));
  EXPECT_THAT(words("npu.mood=sink"), HasSubstr("mood"));
  EXPECT_THAT(words("npu.mode=sunk"), HasSubstr("sunk"));
}

TEST(SimulatorPlacement, SymbolicSizesThatKeepAllOnTheHostAreSaid) {
  Scratch scratch;
  const std::string compile =
      "compile " + kFolder + "digits.onnx --target ascend910a-sim -o " + scratch.path("digits.rgm");
  const ProcessResult open = run_regie(compile);
  EXPECT_EQ(open.exit_code, 0) << open.err;
  EXPECT_THAT(open.err, HasSubstr("nothing runs on 'npu' of target 'ascend910a-sim'"));
  EXPECT_THAT(open.err, HasSubstr("--shape"));
  const ProcessResult fixed = run_regie(compile + " --shape x=16,1,8,8 --set placement=greedy");
  EXPECT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_THAT(fixed.err, testing::Not(HasSubstr("nothing runs on")));
}

// A task of the host between two of the device: it takes what its engine predicts, in simulated time, and the
// device stands still for it; equal again in the next run and without numerics.
TEST(SimulatorProfile, TheHostsOwnWorkTakesSimulatedTime) {
  Scratch scratch;
  const std::string graph = scratch.path("host.rg"), pipeline = scratch.path("host.toml");
  std::ofstream(graph) << "graph @host(%x: f32[64,512]) -> (%y) {\n"
                          "  %axis: const i64[] = 1\n"
                          "  %a: f32[64,512] = Sigmoid(%x)\n"
                          "  %s: f32[64,512] = CumSum(%a, %axis)\n"
                          "  %y: f32[64,512] = Sigmoid(%s)\n"
                          "}\n";
  std::ofstream(pipeline) << "schema = 1\nname = \"host\"\nextends = \"default\"\n"
                             "[[force]]\nengine = \"cpu\"\noperator = \"CumSum\"\n"
                             "[[force]]\nengine = \"aicore\"\noperator = \"Sigmoid\"\n";
  const auto profiled = [&](const std::string& more) {
    const ProcessResult r = run_regie("profile " + graph + " --target ascend910a-sim --pipeline " + pipeline +
                                      " --runs 2 --json -o " + scratch.path("trace.json") + more);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return Json::parse(r.out);
  };
  const Json once = profiled(""), device = once.at("simulated").at(0);
  const double spent = device.at("host_work_us");
  EXPECT_GT(spent, 0);
  double host_gaps = 0;
  for (const Json& s : device.at("streams")) host_gaps += s.at("gap_us").at("host").get<double>();
  EXPECT_GE(host_gaps, spent);
  EXPECT_GE(device.at("run_us").get<double>(), spent);
  EXPECT_EQ(profiled(" --device-set npu.numerics=off").at("simulated").at(0), device);
  const Json events = Json::parse(slurp(scratch.path("trace.json"))).at("traceEvents");
  size_t host_slices = 0;
  for (const Json& e : events) {
    if (e.at("ph") == "X") host_slices += e.at("cat") == "host";
    if (e.at("ph") != "M") continue;
    const std::string name = e.at("args").at("name");
    EXPECT_TRUE(name.ends_with(", real time") || name.ends_with(", simulated time")) << name;
  }
  EXPECT_EQ(host_slices, 2u) << "one a run";
}

TEST(SimulatorTimes, MemoryThatIsTooSmallIsSaid) {
  const ProcessResult r = run_regie(
      "run " + kFolder + "digits.onnx --target ascend910a-sim --set placement=greedy --input x=" + kFolder +
      "digit_0.npy --device-set npu.memory_bytes=1024");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("of 1024 left"));
}

// An attention of so many keys that no tile of its second product fits stays in parts, and the ledger has the
// figures.
TEST(SimulatorAicore, AFusionThatOverflowsTheBuffersIsVetoed) {
  Scratch scratch;
  auto compiled = [&](int64_t keys) {
    const std::string pairs = "f32[1,2," + std::to_string(keys) + ",16]";
    scratch.write("attend.rg",
                  "graph @attend(%q: f32[1,2,16,16], %k: " + pairs + ", %v: " + pairs + R"() -> (%y) {
  %scale: const f32[] = 0.25
  %t = Transpose(%k) {perm = [0, 1, 3, 2]}
  %s = MatMul(%q, %t)
  %c = Mul(%s, %scale)
  %p = Softmax(%c)
  %y = MatMul(%p, %v)
}
)");
    const ProcessResult r =
        run_regie("compile " + scratch.path("attend.rg") + " -o " + scratch.path("attend.rgm") +
                  " --target ascend910a-sim --set placement=greedy --json");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.out;
  };
  const std::string wide = compiled(14000), narrow = compiled(900);
  EXPECT_THAT(wide, HasSubstr("engine 'aicore' vetoes it: no tile of it fits the buffers of a core (L1 has "
                              "1048576 bytes, the smallest needs "));
  const Json in_parts = Json::parse(wide);
  // Each is told once, though the rule is tried in every round.
  std::vector<std::string> told;
  for (const Json& n : in_parts["notes"])
    if (n.at("kind") == "veto") told.push_back(n.dump());
  EXPECT_FALSE(told.empty());
  EXPECT_EQ(std::set<std::string>(told.begin(), told.end()).size(), told.size());
  EXPECT_FALSE(in_parts["fusions"].contains("attention"));
  EXPECT_TRUE(Json::parse(narrow)["fusions"].contains("attention"));
  EXPECT_THAT(narrow, testing::Not(HasSubstr("vetoes it")));
  // The rows of scores are too long for the unified buffer, and come in pieces.
  bool softmax = false;
  for (const Json& p : in_parts["placements"]) {
    if (p.at("operator") != "Softmax") continue;
    softmax = true;
    EXPECT_EQ(p.at("engine"), "aicore") << p;
  }
  EXPECT_TRUE(softmax);
}

// Rows of a layer normalisation that the unified buffer does not hold as a whole are no reason to leave it in
// parts.
TEST(SimulatorAicore, LongRowsAreFusedAsShortOnesAre) {
  Scratch scratch;
  for (int64_t width : {900, 20000, 300001}) {
    const std::string rows = "f32[4," + std::to_string(width) + "]";
    scratch.write("norm.rg", "graph @norm(%x: " + rows + R"() -> (%y) {
  %scale: const f32[1] = [1.5]
  %two: const f32[1] = [2.0]
  %eps: const f32[1] = [0.00001]
  %axes: const i64[1] = [-1]
  %m = ReduceMean(%x, %axes)
  %d = Sub(%x, %m)
  %p = Pow(%d, %two)
  %v = ReduceMean(%p, %axes)
  %e = Add(%v, %eps)
  %s = Sqrt(%e)
  %q = Div(%d, %s)
  %y = Mul(%q, %scale)
}
)");
    const ProcessResult r =
        run_regie("compile " + scratch.path("norm.rg") + " -o " + scratch.path("norm.rgm") +
                  " --target ascend910a-sim --set placement=greedy --json");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const Json report = Json::parse(r.out);
    EXPECT_TRUE(report["fusions"].contains("layer-norm")) << width;
    EXPECT_THAT(r.out, testing::Not(HasSubstr("vetoes it"))) << width;
    for (const Json& e : report["engines"])
      EXPECT_EQ(e.at("operators") == 0, e.at("name") != "aicore") << width << ' ' << e;
  }
}

TEST(SimulatorProfile, GapsAndBusyTimesAddUp) {
  Scratch scratch;
  const std::string trace = scratch.path("trace.json");
  const ProcessResult r =
      run_regie("profile " + kFolder +
                "digits.onnx --target ascend910a-sim --set placement=greedy --runs 2 --json -o " + trace);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json all = Json::parse(r.out);
  const Json& device = all.at("simulated").at(0);
  EXPECT_EQ(device.at("device"), "npu (simulator)");
  EXPECT_GE(device.at("launches").get<double>(), 1);
  EXPECT_EQ(device.at("copies").get<double>(), 2) << "the image in, the scores out";
  EXPECT_EQ(device.at("copied_bytes").get<double>(), 64 * 4 + 10 * 4);
  double busy = 0, tasks = 0;
  for (const Json& s : device.at("streams")) {
    double stream = s.at("busy_us");
    for (const auto& [cause, us] : s.at("gap_us").items()) stream += us.get<double>();
    EXPECT_LE(stream, device.at("run_us").get<double>() + 1e-6);
    busy += s.at("busy_us").get<double>();
    tasks += s.at("tasks").get<double>();
  }
  EXPECT_NEAR(busy, device.at("task_duration_us").get<double>() * tasks, 1e-6 * busy);
  double by_source = 0;
  for (const Json& o : device.at("by_source")) by_source += o.at("us").get<double>();
  EXPECT_NEAR(by_source, busy, 1e-6 * busy);
  for (const Json& e : device.at("engines"))
    EXPECT_NEAR(e.at("busy_us").get<double>() + e.at("idle_us").get<double>(),
                device.at("run_us").get<double>(), 1e-6);

  const Json events = Json::parse(slurp(trace)).at("traceEvents");
  size_t lanes = 0, engine_slices = 0, arrows = 0;
  for (const Json& e : events) {
    if (e.at("ph") == "M" && e.at("args").at("name") == "device npu (simulator), simulated time") ++lanes;
    if (e.at("ph") == "X") {
      EXPECT_GE(e.at("dur").get<double>(), 0);
      engine_slices += e.at("cat") == "engine";
    }
    arrows += e.at("ph") == "s";
  }
  EXPECT_EQ(lanes, 1u);
  EXPECT_EQ(engine_slices, 2 * static_cast<size_t>(device.at("launches").get<double>() + 2));
  EXPECT_GE(arrows, engine_slices);
}

}  // namespace
}  // namespace regie::test
