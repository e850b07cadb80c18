// Many threads, each with shapes of its own, on one session of a compiled model: what they get is what one
// thread gets, to the last bit. REGIE_TEST_SECONDS says how long they go on; a second if it is not set.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "regie/api/regie.hpp"
#include "regie_test_paths.h"

namespace regie {
namespace {

using Clock = std::chrono::steady_clock;

std::string constants(std::mt19937& random, int count) {
  std::uniform_real_distribution<float> values(-0.5f, 0.5f);
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(values(random));
  return text + "]";
}

// Products, convolutions, fused scalars, a loop, and rows whose number only the data tell.
std::string graph() {
  std::mt19937 random(1);
  return R"(graph @mixed(%x: f32[N,4,H,W]) -> (%y, %rows, %z) where N in 1..6, H in 4..24, W in 4..24 {
  %filters: const f32[8,4,3,3] = )" +
         constants(random, 8 * 4 * 9) + R"(
  %factors: const f32[8,16] = )" +
         constants(random, 8 * 16) + R"(
  %flat: const i64[1] = [-1]
  %half: const f32[] = 0.5
  %axes: const i64[2] = [2, 3]
  %three: const i64[] = 3
  %c = Conv(%x, %filters) {pads = [1, 1, 1, 1]}
  %r = Relu(%c)
  %m = ReduceMean(%r, %axes) {keepdims = 0}
  %p = MatMul(%m, %factors)
  %s = Sigmoid(%p)
  %y = Softmax(%s) {axis = -1}
  %list = Reshape(%p, %flat)
  %some = Greater(%list, %half)
  %rows = Compress(%list, %some)
  %z = Loop(%three, _, %s) {carried = 1} region @body(%i: i64[], %go: bool[], %a: f32[N,16]) -> (%go, %b) {
    %t = Tanh(%a)
    %b = Add(%t, %half)
  }
}
)";
}

struct Request {
  std::vector<int64_t> dims;
  std::vector<float> values;
  std::vector<std::vector<int64_t>> shapes;  // of the results of one thread
  std::vector<std::vector<std::byte>> results;
};

void keep(const std::vector<regie_tensor>& outputs, Request* r) {
  for (const regie_tensor& t : outputs) {
    const auto* from = static_cast<const std::byte*>(t.data);
    r->shapes.emplace_back(t.dims, t.dims + t.rank);
    r->results.emplace_back(from, from + t.bytes);
  }
}

bool same(const std::vector<regie_tensor>& outputs, const Request& r) {
  Request got;
  keep(outputs, &got);
  return got.shapes == r.shapes && got.results == r.results;
}

double seconds() {
  const char* text = std::getenv("REGIE_TEST_SECONDS");
  return text ? std::atof(text) : 1;
}

void run_together(const api::Model& model, std::vector<Request>& requests) {
  {
    api::Session alone(model);
    api::Context context = alone.acquire();
    for (Request& r : requests) {
      const regie_tensor x = api::tensor<float>(r.values, r.dims);
      keep(context.run({&x, 1}), &r);
    }
  }
  api::Session session(model);
  constexpr int kThreads = 8;
  std::atomic<uint64_t> runs = 0, wrong = 0, failed = 0;
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds()));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      do {
        try {
          // Contexts go round among the threads, with the shapes that others made ready.
          api::Context context = session.acquire();
          for (unsigned turns = random() % 4 + 1; turns-- > 0;) {
            const Request& r = requests[random() % requests.size()];
            const regie_tensor x = api::tensor<float>(r.values, r.dims);
            wrong += !same(context.run({&x, 1}), r);
            ++runs;
          }
        } catch (const std::exception& e) {
          if (!failed++) ADD_FAILURE() << e.what();
        }
      } while (Clock::now() < end);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u) << "of " << runs << " runs";
  EXPECT_EQ(failed, 0u) << "of " << runs << " runs";
  EXPECT_GE(runs, uint64_t{kThreads});
  ::testing::Test::RecordProperty("runs", std::to_string(runs));
  std::printf("%llu runs of %zu shapes\n", static_cast<unsigned long long>(runs), requests.size());
}

TEST(RuntimeShapes, EightThreadsGetWhatOneGets) {
  std::mt19937 random(7);
  std::normal_distribution<float> numbers;
  std::vector<Request> requests;
  for (int i = 0; i < 24; ++i) {  // more than a context keeps
    Request r;
    r.dims = {static_cast<int64_t>(random() % 6 + 1), 4, static_cast<int64_t>(random() % 21 + 4),
              static_cast<int64_t>(random() % 21 + 4)};
    r.values.resize(static_cast<size_t>(r.dims[0] * r.dims[1] * r.dims[2] * r.dims[3]));
    for (float& v : r.values) v = numbers(random);
    requests.push_back(std::move(r));
  }
  const std::string text = graph();
  run_together(api::Model::compile(std::as_bytes(std::span(text)), "mixed.rg"), requests);
}

TEST(RuntimeShapes, EightThreadsWithAnImportedNetwork) {
  std::mt19937 random(8);
  std::vector<Request> requests;
  for (int64_t n = 1; n <= 20; ++n) {
    Request r;
    r.dims = {n, 1, 8, 8};
    r.values.resize(static_cast<size_t>(n * 64));
    for (float& v : r.values) v = static_cast<float>(random() % 17);
    requests.push_back(std::move(r));
  }
  run_together(api::Model::compile(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx"), requests);
}

}  // namespace
}  // namespace regie
