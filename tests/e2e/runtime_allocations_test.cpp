// Digits through the embedding API: later runs with the same shape allocate nothing in our own code, on
// either target.
#include <gtest/gtest.h>

#include "regie/api/regie.hpp"
#include "regie_test_paths.h"
#include "support/alloc_counter.h"

namespace regie::test {
namespace {

TEST(RuntimeAllocations, LaterRunsOfDigitsAllocateNothing) {
  for (const char* target : {"host_cpu", "host_and_null"}) {
    const api::Model model =
        api::Model::compile(std::string(REGIE_TEST_MODELS_DIR) + "/digits/digits.onnx", {{"target", target}});
    api::Session session(model);
    api::Context context = session.acquire();
    std::vector<float> pixels(7 * 64, 3.0f);
    const int64_t seven[] = {7, 1, 8, 8}, one[] = {1, 1, 8, 8};
    const regie_tensor inputs[] = {api::tensor<float>(pixels, seven),
                                   api::tensor<float>(std::span<const float>(pixels).first(64), one)};
    regie_tensor scores{};
    auto run_both = [&] {
      for (const regie_tensor& x : inputs) context.run({&x, 1}, {&scores, 1});
    };
    run_both();
    run_both();
    AllocCounter counter;
    counter.start();
    for (int i = 0; i < 10; ++i) run_both();
    counter.stop();
    EXPECT_EQ(counter.count(), 0u) << target << "\n" << ::testing::PrintToString(counter.places());
  }
}

// A thousand iterations, one loop in another one, what is carried swapped and collected.
TEST(RuntimeAllocations, IterationsAllocateNothing) {
  static constexpr std::string_view kGraph = R"(
graph @loops(%x: f32[2,16]) -> (%y, %z, %all) {
  %thousand: const i64[] = 1000
  %two: const i64[] = 2
  %y, %z, %all = Loop(%thousand, _, %x, %x) {carried = 2} region @body(%i: i64[], %g: bool[], %a: f32[2,16], %b: f32[2,16]) -> (%g, %b, %u, %u) {
    %h: const f32[] = 0.25
    %u = Loop(%two, _, %a, %b) {carried = 1} region @inner(%j: i64[], %k: bool[], %c: f32[2,16], %d: f32[2,16]) -> (%k, %v) {
      %s = Mul(%c, %h)
      %v = Add(%s, %d)
    }
  }
}
)";
  for (const char* target : {"host_cpu", "host_and_null"}) {
    const api::Model model =
        api::Model::compile(std::as_bytes(std::span(kGraph)), "loops.rg", {{"target", target}});
    api::Session session(model);
    api::Context context = session.acquire();
    std::vector<float> values(32, 3.0f);
    const int64_t dims[] = {2, 16};
    const regie_tensor x = api::tensor<float>(values, dims);
    regie_tensor out[3] = {};
    context.run({&x, 1}, out);
    context.run({&x, 1}, out);
    AllocCounter counter;
    counter.start();
    for (int i = 0; i < 3; ++i) context.run({&x, 1}, out);
    counter.stop();
    EXPECT_EQ(counter.count(), 0u) << target << "\n" << ::testing::PrintToString(counter.places());
  }
}

}  // namespace
}  // namespace regie::test
