// The digits model from file to answer, against ONNX Runtime's scores for all held-back images.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "model/file.h"
#include "regie_test_paths.h"
#include "support/alloc_counter.h"
#include "support/api_model.h"
#include "support/process.h"

namespace regie::test {
namespace {

const std::string kFolder = std::string(REGIE_TEST_MODELS_DIR) + "/digits/";

struct Digits {
  Tensor images = load_npy(kFolder + "images.npy"), labels = load_npy(kFolder + "labels.npy"),
         scores = load_npy(kFolder + "ort_scores.npy");
};

int64_t answer(const Tensor& scores, int64_t row) {
  auto all = scores.as<float>();
  auto begin = all.begin() + row * 10;
  return std::max_element(begin, begin + 10) - begin;
}

struct Way {
  const char* name;
  const char* target;
  const char* optimise;
  const char* threads;
};
void PrintTo(const Way& w, std::ostream* out) { *out << w.name; }

class DigitsTest : public ::testing::TestWithParam<Way> {
 protected:
  Options options() const {
    return {
        {"target", GetParam().target}, {"optimise", GetParam().optimise}, {"threads", GetParam().threads}};
  }
};

TEST_P(DigitsTest, EveryImageOneCompileManyBatches) {
  Digits d;
  ModelPtr model = compile_file(kFolder + "digits.onnx", options());
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model, {{"threads", GetParam().threads}});
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  for (int64_t batch : {1, 7, 360, 1, 7}) {
    for (int64_t first = 0; first < 360; first += batch) {
      int64_t count = std::min<int64_t>(batch, 360 - first);
      auto out = runner.run({{"x", rows(d.images, first, count)}});
      ASSERT_EQ(runner.status(), REGIE_OK) << regie_last_error();
      ASSERT_TRUE(close(out.at("scores"), rows(d.scores, first, count)))
          << "batch " << batch << " at image " << first;
    }
  }
}

TEST_P(DigitsTest, AccuracyAndSameAnswersAsOnnxRuntime) {
  Digits d;
  ModelPtr model = compile_file(kFolder + "digits.onnx", options());
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model);
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  Tensor scores = runner.run({{"x", d.images}}).at("scores");
  int64_t right = 0;
  for (int64_t i = 0; i < 360; ++i) {
    EXPECT_EQ(answer(scores, i), answer(d.scores, i)) << "image " << i;
    right += answer(scores, i) == d.labels.as<int64_t>()[static_cast<size_t>(i)];
  }
  EXPECT_GE(right, 350) << "accuracy below 97 %";
}

TEST_P(DigitsTest, ContextsOfOneSessionOnManyThreads) {
  Digits d;
  ModelPtr model = compile_file(kFolder + "digits.onnx", options());
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model);
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  std::vector<Runner> runners(3, runner);  // with the first one as many contexts as "null" has streams
  std::vector<int> wrong(runners.size());
  std::vector<std::string> words(runners.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < runners.size(); ++t) {
    runners[t] = runner.sibling();
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 150; ++i) {
        const int64_t batch = 1 + i / 10 % 3, first = (37 * i + 90 * static_cast<int64_t>(t)) % 350;
        auto out = runners[t].run({{"x", rows(d.images, first, batch)}});
        if (runners[t].status() != REGIE_OK)
          words[t] = regie_last_error();
        else
          wrong[t] += !close(out.at("scores"), rows(d.scores, first, batch));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(runners.size())) << "wrong answers by thread";
  EXPECT_EQ(words, std::vector<std::string>(runners.size())) << "failures by thread";
}

TEST_P(DigitsTest, OfflineModelInANewProcess) {
  Digits d;
  Scratch scratch;
  ModelPtr model = compile_file(kFolder + "digits.onnx", options());
  ASSERT_TRUE(model) << regie_last_error();
  std::string rgm = scratch.path("digits.rgm");
  ASSERT_EQ(regie_model_save(model.get(), rgm.c_str()), REGIE_OK) << regie_last_error();
  for (int64_t batch : {1, 7, 360}) {
    std::string input = scratch.path("x.npy"), out = scratch.path("out");
    ASSERT_TRUE(cli::write_npy(input, rows(d.images, 0, batch).view()).ok());
    ProcessResult r = run_regie("run " + shell_word(rgm) + " --input x=" + shell_word(input) +
                                " --output-dir " + shell_word(out));
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(close(load_npy(out + "/scores.npy"), rows(d.scores, 0, batch))) << "batch " << batch;
  }
}

TEST_P(DigitsTest, SameInputSameBytes) {
  Scratch scratch;
  for (const char* name : {"a.rgm", "b.rgm"}) {
    ModelPtr model = compile_file(kFolder + "digits.onnx", options());
    ASSERT_TRUE(model) << regie_last_error();
    ASSERT_EQ(regie_model_save(model.get(), scratch.path(name).c_str()), REGIE_OK);
  }
  EXPECT_TRUE(slurp(scratch.path("a.rgm")) == slurp(scratch.path("b.rgm")))
      << "two compiles gave different files";
}

TEST_P(DigitsTest, ARunAllocatesNothingAfterTheFirst) {
  Digits d;
  ModelPtr model = compile_file(kFolder + "digits.onnx", options());
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model, {{"threads", GetParam().threads}});
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  Tensor one = rows(d.images, 0, 1), seven = rows(d.images, 1, 7);
  regie_tensor output{};
  auto run = [&](const Tensor& x) {
    output = {};
    return regie_run(runner.context(), &x.view(), 1, &output, 1);
  };
  for (int i = 0; i < 2; ++i)
    for (const Tensor* x : {&one, &seven}) ASSERT_EQ(run(*x), REGIE_OK) << regie_last_error();
  AllocCounter counter;
  counter.start();
  regie_status status = REGIE_OK;
  for (int i = 0; i < 20 && !status; ++i) status = run(i % 2 ? one : seven);
  counter.stop();
  EXPECT_EQ(status, REGIE_OK) << regie_last_error();
  EXPECT_EQ(counter.count(), 0u) << ::testing::PrintToString(counter.places());
}

INSTANTIATE_TEST_SUITE_P(Ways, DigitsTest,
                         ::testing::Values(Way{"host", "host_cpu", "1", "1"},
                                           Way{"host_2_threads", "host_cpu", "1", "2"},
                                           Way{"host_plain", "host_cpu", "0", "1"},
                                           Way{"null", "host_and_null", "1", "1"},
                                           Way{"null_plain", "host_and_null", "0", "1"}),
                         [](const auto& info) { return std::string(info.param.name); });

nlohmann::json report_of(const Options& options) {
  ModelPtr model = compile_file(kFolder + "digits.onnx", options);
  EXPECT_TRUE(model) << regie_last_error();
  return model ? nlohmann::json::parse(regie_model_report(model.get())) : nlohmann::json();
}

TEST(DigitsReport, NoBatchNormalizationIsLeftAndMemoryIsAtItsBound) {
  auto report = report_of({});
  for (const auto& p : report["placements"]) EXPECT_NE(p["operator"], "BatchNormalization") << p["node"];
  EXPECT_FALSE(report["fusions"].empty());
  EXPECT_EQ(report["arena_bytes"], report["arena_lower_bound_bytes"]);
  EXPECT_LT(report["arena_bytes"].get<uint64_t>(), report["sum_of_tensors_bytes"].get<uint64_t>());
}

TEST(DigitsReport, TwoDevicesMeanCopiesEventsAndTwoArenas) {
  auto report = report_of({{"target", "host_and_null"}});
  EXPECT_GT(report["events"].get<uint64_t>(), 0u);
  ASSERT_EQ(report["memory"].size(), 2u);
  for (const auto& m : report["memory"]) EXPECT_GT(m["arena_bytes"].get<uint64_t>(), 0u) << m["space"];
  std::set<std::string> engines;
  for (const auto& p : report["placements"]) engines.insert(p["engine"].get<std::string>());
  EXPECT_EQ(engines.size(), 2u);
}

// A constant that its readers packed, or that a pass made and nobody reads, is no part of the file.
TEST(DigitsModelFile, EveryWeightHasAReader) {
  Scratch scratch;
  for (const char* target : {"host_cpu", "host_and_null", "ascend910a-sim"}) {
    const std::string path = scratch.path("digits.rgm");
    ASSERT_EQ(run_regie("compile " + shell_word(kFolder + "digits.onnx") + " -o " + shell_word(path) +
                        " --target " + target)
                  .exit_code,
              0);
    const std::shared_ptr<const Model> model = load_model(path).value();
    std::set<uint32_t> read;
    for (const auto& [digest, weight] : model->portable_constants) read.insert(weight);
    size_t packed = 0;
    for (const ModelTask& task : model->programs.at(0).tasks) {
      for (const Arg& a : task.operands)
        if (a.kind == Arg::kWeight) read.insert(a.index);
      for (uint32_t w : task.kernel_weights) packed += w != REGIE_NONE;
    }
    EXPECT_EQ(read.size(), model->weights.size()) << target;
    EXPECT_TRUE(packed > 0 || std::string(target) == "host_and_null") << target;
  }
}

// A convolution over symbolic height and width cannot be planned for size 1; whatever it was planned for,
// other sizes run. Expected values: the sums of 3 x 3 windows of ones.
TEST(SymbolicSizes, ConvolutionOverAnyHeightAndWidth) {
  Scratch scratch;
  std::string path = scratch.write(
      "g.rg",
      "graph @g(%x: f32[N,1,H,W]) -> (%y) where N in 1.., H in 1.., W in 1.. {\n"
      "  %w: const f32[1,1,3,3] = [1, 1, 1, 1, 1, 1, 1, 1, 1]\n  %c = Conv(%x, %w)\n  %y = Relu(%c)\n}\n");
  for (const char* target : {"host_cpu", "host_and_null"}) {
    ModelPtr model = compile_file(path, {{"target", target}});
    ASSERT_TRUE(model) << regie_last_error();
    Runner runner(model);
    ASSERT_TRUE(runner.ready()) << regie_last_error();
    for (auto [h, w] : {std::pair<int64_t, int64_t>{3, 3}, {5, 17}, {40, 4}}) {
      const int64_t dims[] = {2, 1, h, w};
      Tensor x = Tensor::zeros(REGIE_F32, dims);
      for (int64_t i = 0; i < x.count(); ++i) static_cast<float*>(x.mutable_data())[i] = 1;
      Tensor y = runner.run({{"x", x}})["y"];
      ASSERT_EQ(runner.status(), REGIE_OK) << regie_last_error();
      ASSERT_EQ(y.count(), 2 * (h - 2) * (w - 2));
      for (float f : y.as<float>()) ASSERT_EQ(f, 9.0f);
    }
  }
}

TEST(DigitsReport, FixedShapeRefusesOtherBatches) {
  Digits d;
  ModelPtr model = compile_file(kFolder + "digits.onnx", {{"shape", "x=16,1,8,8"}});
  ASSERT_TRUE(model) << regie_last_error();
  Runner runner(model);
  ASSERT_TRUE(runner.ready()) << regie_last_error();
  EXPECT_TRUE(close(runner.run({{"x", rows(d.images, 0, 16)}}).at("scores"), rows(d.scores, 0, 16)));
  runner.run({{"x", rows(d.images, 0, 7)}});
  EXPECT_EQ(runner.status(), REGIE_INVALID_INPUT);
  EXPECT_NE(std::string(regie_last_error()).find("'x'"), std::string::npos) << regie_last_error();
}

}  // namespace
}  // namespace regie::test
