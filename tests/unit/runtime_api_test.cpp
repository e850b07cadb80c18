// The runtime half of the embedding API, through its C functions and the C++ veneer over them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "model/file.h"
#include "regie/api/regie.hpp"
#include "regie/c/engine.h"
#include "regie_test_paths.h"
#include "support/model_builder.h"

namespace regie {
namespace {

using test::ModelBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// y = 3 * x for x: f32[N, 2], with N from 1 to 8.
class RuntimeApi : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "runtime_api_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".rgm";
    ModelBuilder b;
    const uint32_t cpu = b.device("cpu", "fake_inline");
    b.space("host", cpu);
    b.m.name = "thrice";
    b.input("x", 0);
    const ModelDim n = b.symbol("N", 0, 0, 1, 8, 2);
    const uint32_t t = b.f32({n, 2});
    b.m.inputs[0].type = t;
    const Arg h = b.buffer("h", 0, t, b.times(n, 8));
    b.launch(cpu, 0, "scale:1.5", {{Arg::kInput, 0, 0, t, false}}, {h});
    b.launch(cpu, 0, "scale:2", {h}, {b.output("y", t)});
    b.m.kernels[1].flags |= REGIE_KERNEL_REFERENCE;
    b.m.ledger_json = "{\"stages\": [{\"name\": \"import\"}]}";
    ASSERT_TRUE(save_model(*b.finish(), path_).ok());
  }
  void TearDown() override { std::remove(path_.c_str()); }
  static api::Options fake() { return {{"plugin-path", REGIE_TEST_FAKE_DEVICE_DIR}}; }
  std::string path_;
};

TEST_F(RuntimeApi, LoadQueryRun) {
  const api::Model model = api::Model::load(path_);
  ASSERT_EQ(model.inputs().size(), 1u);
  const regie_port x = model.inputs()[0], y = model.outputs()[0];
  EXPECT_STREQ(x.name, "x");
  EXPECT_STREQ(x.dims_text, "[N,2]");
  EXPECT_EQ(x.elem, REGIE_F32);
  ASSERT_EQ(x.rank, 2);
  EXPECT_LT(x.dims[0], 0);
  EXPECT_EQ(x.dims[1], 2);
  EXPECT_STREQ(y.name, "y");
  EXPECT_STREQ(regie_model_input(model.get(), 9).name, "");

  api::Session session(model, fake());
  api::Context context = session.acquire();
  const std::vector<float> values = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  const regie_tensor in = api::tensor<float>(values, dims);
  const std::vector<regie_tensor> out = context.run({&in, 1});
  EXPECT_THAT(api::values<float>(out[0]), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(std::vector<int64_t>(out[0].dims, out[0].dims + 2), ElementsAre(2, 2));
  const auto statistics = nlohmann::json::parse(context.statistics());
  EXPECT_EQ(statistics["runs"], 1);
  EXPECT_EQ(statistics["shapes_prepared"], 1);
  EXPECT_EQ(statistics["last_shape_change"], "first run");
}

TEST_F(RuntimeApi, ReportHasLedgerAndFigures) {
  const auto report = nlohmann::json::parse(api::Model::load(path_).report());
  EXPECT_EQ(report["stages"][0]["name"], "import");
  const auto& m = report["model"];
  EXPECT_EQ(m["name"], "thrice");
  EXPECT_EQ(m["inputs"][0]["dims"], "[N,2]");
  EXPECT_EQ(m["tasks"]["all"], 2);
  EXPECT_EQ(m["spaces"][0]["arena_bytes"], 16);
  EXPECT_EQ(m["devices"][0]["kernels"], 2);
  EXPECT_EQ(m["devices"][0]["reference_kernels"], 1);
  EXPECT_EQ(m["symbols"][0]["upper"], 8);
}

TEST_F(RuntimeApi, ObjectsAreFreedInAnyOrder) {
  regie_model* model = nullptr;
  regie_session* session = nullptr;
  regie_context* context = nullptr;
  const regie_option options[] = {
      {"plugin-path", REGIE_TEST_FAKE_DEVICE_DIR}, {"threads", "2"}, {"timeout-ms", "5000"}};
  ASSERT_EQ(regie_model_load(path_.c_str(), &model), REGIE_OK);
  ASSERT_EQ(regie_session_create(model, options, 3, &session), REGIE_OK) << regie_last_error();
  ASSERT_EQ(regie_context_acquire(session, &context), REGIE_OK);
  regie_model_release(model);
  regie_session_release(session);
  const std::vector<float> values = {1, 2};
  const int64_t dims[] = {1, 2};
  const regie_tensor in = api::tensor<float>(values, dims);
  regie_tensor out{};
  ASSERT_EQ(regie_run(context, &in, 1, &out, 1), REGIE_OK) << regie_last_error();
  EXPECT_EQ(static_cast<const float*>(out.data)[1], 6);
  regie_context_release(context);
  regie_model_release(nullptr);
  regie_session_release(nullptr);
  regie_context_release(nullptr);
}

TEST_F(RuntimeApi, ErrorsHaveWordsOfTheirThread) {
  const api::Model model = api::Model::load(path_);
  regie_session* session = nullptr;
  auto refused = [&](std::vector<regie_option> options) {
    EXPECT_EQ(regie_session_create(model.get(), options.data(), options.size(), &session),
              REGIE_INVALID_INPUT);
    EXPECT_EQ(session, nullptr);
    return std::string(regie_last_error());
  };
  EXPECT_THAT(refused({{"thread", "2"}}), HasSubstr("unknown option 'thread'; did you mean 'threads'?"));
  EXPECT_THAT(refused({{"threads", "two"}}),
              HasSubstr("option 'threads' must be a number from 1 to 1024, not 'two'"));
  EXPECT_THAT(refused({{"threads", "1"}, {"threads", "2"}}), HasSubstr("given twice"));
  EXPECT_THAT(refused({{"threads", nullptr}}), HasSubstr("option 0 has no value"));
  std::thread([] { EXPECT_STREQ(regie_last_error(), ""); }).join();

  regie_model* none = nullptr;
  EXPECT_EQ(regie_model_load(nullptr, &none), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_model_load("/nowhere.rgm", &none), REGIE_NOT_FOUND);
  EXPECT_THAT(regie_last_error(), HasSubstr("/nowhere.rgm"));
  EXPECT_EQ(regie_session_create(nullptr, nullptr, 0, &session), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_session_create(model.get(), nullptr, 1, &session), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_context_acquire(nullptr, nullptr), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_run(nullptr, nullptr, 0, nullptr, 0), REGIE_INVALID_INPUT);
  EXPECT_STREQ(regie_model_report(nullptr), "{}");

  api::Session good(model, fake());
  api::Context context = good.acquire();
  const std::vector<float> values(18);
  const int64_t dims[] = {9, 2};
  const regie_tensor in = api::tensor<float>(values, dims);
  try {
    context.run({&in, 1});
    FAIL();
  } catch (const api::Error& e) {
    EXPECT_EQ(e.code(), REGIE_INVALID_INPUT);
    EXPECT_THAT(e.what(),
                StartsWith("input 'x': dimension 0 (N) is 9; the model was compiled for N from 1 to 8"));
  }
  EXPECT_EQ(regie_run(context.get(), &in, 1, nullptr, 1), REGIE_INVALID_INPUT);
  EXPECT_STREQ(regie_last_error(), "regie_run: inputs or outputs are NULL");
}

TEST_F(RuntimeApi, ProfilesAddUpTimedRuns) {
  const api::Model model = api::Model::load(path_);
  api::Session session(model, fake());
  api::Context context = session.acquire();
  api::Profile profile(model);
  EXPECT_EQ(nlohmann::json::parse(profile.summary())["tasks"].size(), 0u) << "nothing was run";
  const std::vector<float> values = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  const regie_tensor in = api::tensor<float>(values, dims);
  for (int run = 0; run < 3; ++run) {
    std::vector<regie_tensor> out(1);
    profile.run(context, {&in, 1}, out);
    EXPECT_THAT(api::values<float>(out[0]), ElementsAre(3, 6, 9, 12));
  }
  context.run({&in, 1});
  EXPECT_TRUE(context.task_times().empty()) << "a later run is timed";
  const auto summary = nlohmann::json::parse(profile.summary());
  EXPECT_EQ(summary["model"], path_);
  EXPECT_EQ(summary["runs"], 3);
  ASSERT_EQ(summary["tasks"].size(), 2u);
  double sum = 0;
  for (const auto& task : summary["tasks"]) {
    EXPECT_EQ(task["calls"], 3);
    EXPECT_EQ(task["kind"], "launch");
    EXPECT_GE(task["ms_a_run"], task["least_ms_a_call"]);
    sum += task["ms_a_run"].get<double>();
  }
  EXPECT_FALSE(summary["tasks"][0]["reference"].get<bool>());
  EXPECT_TRUE(summary["tasks"][1]["reference"].get<bool>());
  EXPECT_LE(sum, summary["run_ms"]["mean"].get<double>());
  EXPECT_THAT(profile.trace(), HasSubstr("traceEvents"));

  // A run that fails is not kept, and its words are the run's.
  const int64_t many[] = {9, 2};
  const std::vector<float> more(18);
  const regie_tensor large = api::tensor<float>(more, many);
  regie_tensor out{};
  EXPECT_EQ(regie_profile_run(profile.get(), context.get(), &large, 1, &out, 1), REGIE_INVALID_INPUT);
  EXPECT_THAT(regie_last_error(), StartsWith("input 'x': dimension 0 (N) is 9"));
  EXPECT_EQ(nlohmann::json::parse(profile.summary())["runs"], 3);
}

TEST_F(RuntimeApi, ProfilesAndExplanationsOfNothingAreRefused) {
  const api::Model model = api::Model::load(path_);
  regie_profile* profile = nullptr;
  EXPECT_EQ(regie_profile_create(nullptr, &profile), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_profile_create(model.get(), nullptr), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_profile_run(nullptr, nullptr, nullptr, 0, nullptr, 0), REGIE_INVALID_INPUT);
  EXPECT_STREQ(regie_profile_summary(nullptr), "{}");
  EXPECT_STREQ(regie_profile_trace(nullptr), "{}");
  regie_profile_release(nullptr);

  // Tasks of another model: its file has fewer.
  ModelBuilder b;
  const uint32_t cpu = b.device("cpu", "fake_inline");
  b.space("host", cpu);
  b.input("x", 0);
  const uint32_t t = b.f32({2});
  b.m.inputs[0].type = t;
  b.launch(cpu, 0, "scale:2", {{Arg::kInput, 0, 0, t, false}}, {b.output("y", t)});
  const std::string other_path = path_ + ".other";
  ASSERT_TRUE(save_model(*b.finish(), other_path).ok());
  const api::Model other = api::Model::load(other_path);
  std::remove(other_path.c_str());
  api::Profile of_other(other);
  api::Session session(model, fake());
  api::Context context = session.acquire();
  const std::vector<float> values = {1, 2};
  const int64_t dims[] = {1, 2};
  const regie_tensor in = api::tensor<float>(values, dims);
  regie_tensor out{};
  EXPECT_EQ(regie_profile_run(of_other.get(), context.get(), &in, 1, &out, 1), REGIE_INVALID_INPUT);
  EXPECT_THAT(regie_last_error(), HasSubstr("the context is of another model"));
  EXPECT_EQ(nlohmann::json::parse(of_other.summary())["runs"], 0);

  const char* text = nullptr;
  EXPECT_EQ(regie_model_explain(nullptr, nullptr, 0, &text), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_model_explain(model.get(), nullptr, 0, nullptr), REGIE_INVALID_INPUT);
  const regie_option unknown[] = {{"nodes", "x"}};
  EXPECT_EQ(regie_model_explain(model.get(), unknown, 1, &text), REGIE_INVALID_INPUT);
  EXPECT_THAT(regie_last_error(), HasSubstr("unknown option 'nodes'; did you mean 'node'?"));
  // The ledger of this file is none that a compile wrote.
  EXPECT_EQ(regie_model_explain(model.get(), nullptr, 0, &text), REGIE_CORRUPT);
  EXPECT_THAT(regie_last_error(), HasSubstr("its ledger cannot be read; compile the model again"));
  EXPECT_EQ(text, nullptr);
}

// What is opened ahead is found open, and what cannot be opened is said by who needs it, in the same words.
TEST_F(RuntimeApi, OpenedAheadRunsAndFailsAsOtherwise) {
  EXPECT_EQ(regie_open_ahead(nullptr, nullptr), REGIE_INVALID_INPUT);
  EXPECT_EQ(regie_open_ahead("", nullptr), REGIE_INVALID_INPUT);

  const api::Model model = api::Model::load(path_);
  auto words_of = [&](const std::string& path) -> std::string {
    try {
      api::Session(model, {{"plugin-path", path}});
    } catch (const api::Error& e) {
      return e.what();
    }
    return "";
  };
  // A folder without the device, and none at all: each path has its own host.
  const std::string empty = ::testing::TempDir() + "runtime_api_no_plugins";
  std::filesystem::create_directory(empty);
  for (const std::string& path : {empty, std::string("/nowhere")}) {
    std::string other = path + "/";
    EXPECT_EQ(regie_open_ahead("fake_inline", other.c_str()), REGIE_OK);
    std::string ahead = words_of(other), plain = words_of(path);
    ASSERT_NE(plain, "");
    if (const size_t at = ahead.find(other); at != std::string::npos) ahead.replace(at, other.size(), path);
    EXPECT_EQ(ahead, plain);
  }

  const std::string path = std::string(REGIE_TEST_FAKE_DEVICE_DIR) + "/.";  // opened by nobody yet
  for (int i = 0; i < 3; ++i) EXPECT_EQ(regie_open_ahead("fake_inline", path.c_str()), REGIE_OK);
  EXPECT_EQ(regie_open_ahead("no_such_device", path.c_str()), REGIE_OK);
  api::Session session(model, {{"plugin-path", path}});
  const std::vector<float> x = {1, 2};
  const int64_t dims[] = {1, 2};
  const regie_tensor in = api::tensor<float>(x, dims);
  api::Context context = session.acquire();
  const std::vector<regie_tensor> y = context.run({&in, 1});
  EXPECT_THAT(std::vector<float>(static_cast<float*>(y[0].data), static_cast<float*>(y[0].data) + 2),
              ElementsAre(3, 6));
}

}  // namespace
}  // namespace regie
