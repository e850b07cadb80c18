// Shapes that depend on data, through the embedding API: a network that picks rows and multiplies them, with
// other counts in each run, on one device and on two, optimised or not, from memory and from a file; what is
// asked of the caller's memory; what is kept from run to run; what is refused, and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "model/file.h"
#include "regie/api/regie.hpp"
#include "regie_test_paths.h"
#include "runtime/session.h"
#include "support/process.h"

namespace regie::test {
namespace {

constexpr char kCpusAlone[] = REGIE_TEST_SOURCE_DIR "/tests/support/cpus_alone.toml";

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 16, kColumns = 4, kResults = 3;

// y = relu(x[c != 0] * w), sums = its sum along each row.
constexpr const char* kPick = R"(
graph @pick(%c: f32[16], %x: f32[16,4]) -> (%y, %sums) {
  %flat: const i64[1] = [-1]
  %last: const i64[1] = [1]
  %w: const f32[4,3] = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0, -10.0, 11.0, -12.0]
  %where = NonZero(%c)
  %rows = Reshape(%where, %flat)
  %picked = Gather(%x, %rows) {axis = 0}
  %m = MatMul(%picked, %w)
  %y = Relu(%m)
  %sums = ReduceSum(%y, %last) {keepdims = 0}
}
)";

api::Model compile(const char* text, const api::Options& options = {}) {
  const std::string_view view(text);
  return api::Model::compile(std::as_bytes(std::span(view.data(), view.size())), "late.rg", options);
}

struct Picking {
  std::vector<float> c = std::vector<float>(kRows), x = std::vector<float>(kRows * kColumns);
  std::vector<float> y, sums;  // expected

  Picking(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < count; ++i) c[i] = 1;
    std::shuffle(c.begin(), c.end(), random);
    for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 17) - 8);
    for (size_t r = 0; r < kRows; ++r) {
      if (c[r] == 0) continue;
      float sum = 0;
      for (size_t k = 0; k < kResults; ++k) {
        float v = 0;
        for (size_t i = 0; i < kColumns; ++i) {
          const size_t n = i * kResults + k;  // w counts 1, -2, 3 ...
          v += x[r * kColumns + i] * static_cast<float>(n + 1) * (n % 2 ? -1.0f : 1.0f);
        }
        y.push_back(std::max(v, 0.0f));
        sum += y.back();
      }
      sums.push_back(sum);
    }
  }
  std::array<regie_tensor, 2> inputs() {
    static const int64_t c_dims[] = {kRows}, x_dims[] = {kRows, kColumns};
    return {api::tensor<float>(c, c_dims), api::tensor<float>(x, x_dims)};
  }
};

std::vector<float> floats(const regie_tensor& t) {
  const auto* p = static_cast<const float*>(t.data);
  return {p, p + t.bytes / 4};
}

void expect_answers(api::Context& context, std::initializer_list<size_t> counts, uint32_t seed = 1) {
  for (size_t count : counts) {
    Picking p(count, seed++);
    const auto inputs = p.inputs();
    const std::vector<regie_tensor> out = context.run(inputs);
    ASSERT_EQ(out[0].rank, 2);
    EXPECT_EQ(out[0].dims[0], static_cast<int64_t>(count));
    EXPECT_EQ(out[0].dims[1], kResults);
    ASSERT_EQ(out[1].rank, 1);
    EXPECT_EQ(out[1].dims[0], static_cast<int64_t>(count));
    EXPECT_EQ(floats(out[0]), p.y);
    EXPECT_EQ(floats(out[1]), p.sums);
  }
}

TEST(RuntimeLateShapes, AnotherCountEachRun) {
  Scratch scratch;
  for (const char* target : {"host_cpu", "host_and_null", kCpusAlone})
    for (const char* optimise : {"1", "0"}) {
      SCOPED_TRACE(std::string(target) + ", optimise " + optimise);
      const api::Model made = compile(kPick, {{"target", target}, {"optimise", optimise}});
      const std::string path = scratch.path("pick.rgm");
      made.save(path);
      const api::Model read = api::Model::load(path);
      for (const api::Model* model : {&made, &read}) {
        api::Session session(*model);
        api::Context context = session.acquire();
        expect_answers(context, {3, 0, 16, 7, 7, 1, 0, 12});
      }
    }
}

TEST(RuntimeLateShapes, TwoThreadsWithContextsOfTheirOwn) {
  for (const char* target : {"host_cpu", "host_and_null", kCpusAlone}) {
    const api::Model model = compile(kPick, {{"target", target}});
    api::Session session(model);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        api::Context context = session.acquire();
        for (uint32_t i = 0; i < 20; ++i) expect_answers(context, {(5 * i + t) % 17, i % 3}, 100 * t + i);
      });
    for (std::thread& t : threads) t.join();
  }
}

TEST(RuntimeLateShapes, PortsShowTheSymbol) {
  const api::Model model = compile(kPick);
  const std::vector<regie_port> ports = model.outputs();
  EXPECT_STREQ(ports[0].dims_text, "[where.1,3]");
  EXPECT_STREQ(ports[1].dims_text, "[where.1]");
}

TEST(RuntimeLateShapes, OutputsInTheCallersMemory) {
  const api::Model model = compile(kPick);
  api::Session session(model);
  api::Context context = session.acquire();
  Picking p(5, 1);
  const auto inputs = p.inputs();
  std::vector<float> room(15), small(4);
  std::array<regie_tensor, 2> out{};
  out[0].data = room.data();
  out[0].bytes = room.size() * 4;
  context.run(inputs, out);
  EXPECT_EQ(out[0].data, room.data());
  EXPECT_EQ(out[0].bytes, 60u);
  EXPECT_EQ(room, p.y);
  EXPECT_EQ(floats(out[1]), p.sums);
  out = {};
  out[0].data = small.data();
  out[0].bytes = small.size() * 4;
  try {
    context.run(inputs, out);
    FAIL() << "ran without room";
  } catch (const api::Error& e) {
    EXPECT_EQ(e.code(), REGIE_INVALID_INPUT);
    EXPECT_THAT(e.what(), HasSubstr("output 'y' takes 60 bytes, but there is room for 16"));
  }
  expect_answers(context, {5, 2});  // it goes on
}

// Kernels stay ready for sizes that were seen, and memory is used again.
TEST(RuntimeLateShapes, ASteadySizeIsNotPreparedAgain) {
  Scratch scratch;
  compile(kPick).save(scratch.path("m.rgm"));
  auto plugins = PluginHost::create({REGIE_TEST_PLUGIN_DIR});
  ASSERT_TRUE(plugins.ok());
  auto session = Session::create(load_model(scratch.path("m.rgm")).value(), *plugins);
  ASSERT_TRUE(session.ok()) << session.status().to_string();
  std::shared_ptr<Context> context = (*session)->acquire().value();
  auto prepared_by = [&](size_t count, uint32_t seed = 3) {
    const uint64_t before = context->statistics().late_prepared;
    Picking p(count, seed);
    const auto inputs = p.inputs();
    std::array<regie_tensor, 2> out{};
    EXPECT_TRUE(context->run(inputs, out).ok());
    EXPECT_EQ(floats(out[0]), p.y);
    return context->statistics().late_prepared - before;
  };
  const uint64_t first = prepared_by(6), again = prepared_by(6);
  EXPECT_GT(first, 1u);
  EXPECT_EQ(again, 0u);
  EXPECT_EQ(prepared_by(6, 4), 1u);  // other rows: only the kernel that is given the data is another
  EXPECT_GT(prepared_by(9), 1u);
  EXPECT_EQ(prepared_by(6), 0u);
  EXPECT_EQ(prepared_by(9), 0u);
  for (uint32_t seed = 10; seed < 40; ++seed) EXPECT_LE(prepared_by(6, seed), 1u);
}

// Data that are too large to be a part of what kernels are kept by.
TEST(RuntimeLateShapes, LargeOperandsTellShapes) {
  for (const char* target : {"host_cpu", "host_and_null", kCpusAlone}) {
    const api::Model model = compile(R"(
graph @large(%x: f32[3000]) -> (%y) {
  %flat: const i64[1] = [-1]
  %pooled = Reshape(%x, %flat)
  %where = NonZero(%pooled)
  %rows = Reshape(%where, %flat)
  %y = Gather(%x, %rows)
}
)",
                                     {{"target", target}});
    api::Session session(model);
    api::Context context = session.acquire();
    for (const int64_t every : {1, 7, 3000, 11, 7}) {
      std::vector<float> x(3000), want;
      for (size_t i = 0; i < x.size(); i += static_cast<size_t>(every)) {
        x[i] = static_cast<float>(i + 1);
        want.push_back(x[i]);
      }
      const int64_t dims[] = {3000};
      const regie_tensor in = api::tensor<float>(x, dims);
      EXPECT_EQ(floats(context.run({&in, 1})[0]), want);
    }
  }
}

// Symbols of which only some values go together with the weights: no engine can be asked at sizes that fit,
// so it is when they are known.
TEST(RuntimeLateShapes, SymbolsThatFitTheWeightsAtSomeSizes) {
  const api::Model model = compile(R"(
graph @flat(%x: f32[N,3,H,W]) -> (%y) {
  %w: const f32[12,2] = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 2.0]
  %f = Flatten(%x) {axis = 1}
  %y = MatMul(%f, %w)
})");
  api::Session session(model);
  api::Context context = session.acquire();
  std::vector<float> x(36);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const auto& [n, h, w] : {std::tuple{1, 2, 2}, {3, 1, 4}, {2, 4, 1}}) {
    const int64_t dims[] = {n, 3, h, w};
    const regie_tensor in = api::tensor<float>(std::span(x).first(static_cast<size_t>(12 * n)), dims);
    std::vector<float> want;
    for (int b = 0; b < n; ++b) {
      want.push_back(static_cast<float>(144 * b + 66));  // 12b + ... + 12b + 11
      want.push_back(static_cast<float>(2 * (12 * b + 11)));
    }
    EXPECT_EQ(floats(context.run({&in, 1})[0]), want);
  }
  const int64_t dims[] = {1, 3, 3, 3};
  const regie_tensor in = api::tensor<float>(std::span(x).first(27), dims);
  try {
    context.run({&in, 1});
    ADD_FAILURE() << "27 numbers by 12 rows";
  } catch (const api::Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("[12, 2]"));
  }
}

TEST(RuntimeLateShapes, ReportsSayWhatIsLate) {
  const api::Model model = compile(kPick);
  EXPECT_THAT(model.report(), HasSubstr(R"("late_buffers": 2)"));
  EXPECT_THAT(model.report(), HasSubstr(R"("late": true)"));
  EXPECT_THAT(model.plan(), HasSubstr(R"("late":true)"));
  const auto figures = nlohmann::json::parse(model.report())["model"];
  int on_devices = 0;
  for (const auto& device : figures["devices"]) on_devices += device["tasks"].get<int>();
  EXPECT_EQ(figures["tasks"]["all"], on_devices);
}

// The parameters of operators as inputs; expected by hand.
TEST(RuntimeLateShapes, ParametersAsInputs) {
  const api::Model model = compile(R"(
graph @parameters(%x: f32[2,3], %shape: i64[2], %axis: i64[1], %k: i64[1]) -> (%r, %u, %s, %best, %where) {
  %r = Reshape(%x, %shape)
  %u = Unsqueeze(%x, %axis)
  %s = ReduceSum(%x, %axis) {keepdims = 1}
  %best, %where = TopK(%x, %k)
}
)");
  api::Session session(model);
  api::Context context = session.acquire();
  const std::vector<float> x{1, 5, 3, 6, 2, 4};
  auto run = [&](std::vector<int64_t> shape, std::vector<int64_t> axis, std::vector<int64_t> k) {
    const int64_t x_dims[] = {2, 3}, two[] = {2}, one[] = {1};
    const regie_tensor in[] = {api::tensor<float>(x, x_dims), api::tensor<int64_t>(shape, two),
                               api::tensor<int64_t>(axis, one), api::tensor<int64_t>(k, one)};
    return context.run(in);
  };
  auto dims = [](const regie_tensor& t) { return std::vector<int64_t>(t.dims, t.dims + t.rank); };
  std::vector<regie_tensor> out = run({3, -1}, {0}, {2});
  EXPECT_THAT(dims(out[0]), ElementsAre(3, 2));
  EXPECT_EQ(floats(out[0]), x);
  EXPECT_THAT(dims(out[1]), ElementsAre(1, 2, 3));
  EXPECT_THAT(dims(out[2]), ElementsAre(1, 3));
  EXPECT_THAT(floats(out[2]), ElementsAre(7, 7, 7));
  EXPECT_THAT(dims(out[3]), ElementsAre(2, 2));
  EXPECT_THAT(floats(out[3]), ElementsAre(5, 3, 6, 4));
  out = run({1, 6}, {1}, {1});
  EXPECT_THAT(dims(out[0]), ElementsAre(1, 6));
  EXPECT_THAT(dims(out[1]), ElementsAre(2, 1, 3));
  EXPECT_THAT(dims(out[2]), ElementsAre(2, 1));
  EXPECT_THAT(floats(out[2]), ElementsAre(9, 12));
  EXPECT_THAT(floats(out[3]), ElementsAre(5, 6));
  for (auto [shape, axis, k, words] :
       {std::tuple<std::vector<int64_t>, int64_t, int64_t, const char*>{{4, -1}, 0, 1, "rows of 4"},
        {{3, 2}, 7, 1, "axis 7"},
        {{3, 2}, 0, 4, "k is 4"}}) {
    try {
      run(shape, {axis}, {k});
      ADD_FAILURE() << "ran: " << words;
    } catch (const api::Error& e) {
      EXPECT_EQ(e.code(), REGIE_INVALID_INPUT) << e.what();
      EXPECT_THAT(e.what(), HasSubstr(words));
      EXPECT_THAT(e.what(), HasSubstr("(while running task"));
    }
  }
}

// What a graph says of a size holds at run time, or the run says where it does not.
TEST(RuntimeLateShapes, DeclaredSizesAreChecked) {
  const api::Model model = compile(R"(
graph @declared(%c: f32[4]) -> (%n) {
  %where = NonZero(%c)
  %n: i64[1,2] = Mul(%where, %where)
}
)");
  api::Session session(model);
  api::Context context = session.acquire();
  auto run = [&](std::vector<float> c) {
    const int64_t dims[] = {4};
    const regie_tensor in = api::tensor<float>(c, dims);
    return context.run({&in, 1});
  };
  EXPECT_EQ(run({0, 1, 0, 1})[0].dims[1], 2);
  try {
    const auto out = run({0, 1, 1, 1});
    FAIL() << "ran with " << out[0].dims[1];
  } catch (const api::Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("dimension 1 of result 0 is 3, but the model says 2"));
    EXPECT_THAT(e.what(), HasSubstr("NonZero"));
  }
}

// Branches of one rank and other sizes.
TEST(RuntimeLateShapes, BranchesOfOtherSizes) {
  for (const char* target : {"host_cpu", "host_and_null", kCpusAlone}) {
    const api::Model model = compile(R"(
graph @choose(%c: bool[], %x: f32[6]) -> (%y, %z) {
  %y = If(%c, %x) region @yes(%p: f32[6]) -> (%q) {
    %s: const i64[2] = [2, 3]
    %q = Reshape(%p, %s)
  } region @no(%r: f32[6]) -> (%t) {
    %a: const i64[1] = [1]
    %one: const f32[] = 1.0
    %more = Add(%r, %one)
    %t = Unsqueeze(%more, %a)
  }
  %z = Softmax(%y)
}
)",
                                     {{"target", target}});
    api::Session session(model);
    api::Context context = session.acquire();
    const std::vector<float> x{1, 2, 3, 4, 5, 6};
    for (bool c : {true, false, true}) {
      const int64_t six[] = {6};
      regie_tensor in[] = {{REGIE_BOOL, 0, 0, nullptr, nullptr, &c, 1}, api::tensor<float>(x, six)};
      const std::vector<regie_tensor> out = context.run(in);
      EXPECT_EQ(out[0].dims[0], c ? 2 : 6);
      EXPECT_EQ(out[0].dims[1], c ? 3 : 1);
      if (c)
        EXPECT_THAT(floats(out[0]), ElementsAre(1, 2, 3, 4, 5, 6));
      else
        EXPECT_THAT(floats(out[0]), ElementsAre(2, 3, 4, 5, 6, 7));
      EXPECT_EQ(out[1].bytes, 24u);
      EXPECT_FLOAT_EQ(floats(out[1])[0], c ? 0.09003057f : 1.0f);
    }
  }
}

}  // namespace
}  // namespace regie::test
