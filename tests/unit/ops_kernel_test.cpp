// Reference kernels beyond their values: what they refuse, and that one prepared kernel serves many threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "unit/ops_harness.h"

namespace regie::ops_test {
namespace {

using testing::HasSubstr;

Result result(regie_elem elem, std::vector<regie_dim> dims) { return {true, elem, std::move(dims), {}}; }

TEST(OpsKernel, RefusesWhatItDoesNotCover) {
  Tensor halfs = Tensor::zeros(REGIE_F8E5M2, std::vector<int64_t>{2});
  Ran ran = run("Relu", {}, {halfs}, {result(REGIE_F8E5M2, {2})});
  EXPECT_EQ(ran.code, REGIE_UNSUPPORTED);
  EXPECT_EQ(ran.message, "Relu: no reference kernel for elements of type f8e5m2");
  Tensor packed = Tensor::zeros(REGIE_U4, std::vector<int64_t>{2});
  ran = run("Identity", {}, {packed}, {result(REGIE_U4, {2})});
  EXPECT_EQ(ran.code, REGIE_UNSUPPORTED);
  EXPECT_THAT(ran.message, HasSubstr("u4"));
  std::vector<int64_t> ones(17, 1);
  Tensor deep = Tensor::zeros(REGIE_F32, ones);
  ran = evaluate("Transpose", {}, {deep});
  EXPECT_EQ(ran.code, REGIE_UNSUPPORTED);
  EXPECT_THAT(ran.message, HasSubstr("rank 17"));
}

TEST(OpsKernel, RefusesSizesThatDoNotFit) {
  // What symbols leave open shows when the sizes are known.
  Tensor two = floats({2}, {1, 2}), three = floats({3}, {1, 2, 3});
  Ran ran = run("Add", {}, {two, three}, {result(REGIE_F32, {3})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  EXPECT_THAT(ran.message, HasSubstr("[2] cannot be broadcast to [3]"));
  ran = run("Relu", {}, {two}, {result(REGIE_F32, {3})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  EXPECT_THAT(ran.message, HasSubstr("[2], not [3]"));
  ran = run("Reshape", {}, {three, integers({1}, {2})}, {result(REGIE_F32, {2})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  ran = run("MatMul", {}, {floats({1, 2}, {1, 2}), floats({3, 1}, {1, 2, 3})}, {result(REGIE_F32, {1, 1})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  ran = run("Concat", {AttrValue::integer("axis", 0)}, {two, three}, {result(REGIE_F32, {6})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  ran = run("Conv", {},
            {Tensor::zeros(REGIE_F32, std::vector<int64_t>{1, 2, 4}),
             Tensor::zeros(REGIE_F32, std::vector<int64_t>{1, 3, 2})},
            {result(REGIE_F32, {1, 1, 3})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
}

// A model file may say another type than the schema allows; what is smaller than the kernel's is not touched.
TEST(OpsKernel, RefusesTypesThatDoNotFit) {
  const std::vector<int64_t> many = {1 << 16};
  const Tensor x = Tensor::zeros(REGIE_F32, many), small = Tensor::zeros(REGIE_U8, many);
  struct Case {
    const char* op;
    Attrs attrs;
    std::vector<Tensor> operands;
    Result result;
  };
  const Case cases[] = {
      {"Add", {}, {x, small}, result(REGIE_F32, {1 << 16})},
      {"Add", {}, {x, x}, result(REGIE_U8, {1 << 16})},
      {"Relu", {}, {x}, result(REGIE_U8, {1 << 16})},
      {"Concat", {AttrValue::integer("axis", 0)}, {x, x}, result(REGIE_U8, {1 << 17})},
      {"Transpose", {}, {x}, result(REGIE_U8, {1 << 16})},
      {"Identity", {}, {x}, result(REGIE_U8, {1 << 16})},
      {"Expand", {}, {x, integers({1}, {1 << 16})}, result(REGIE_U8, {1 << 16})},
      {"Gather", {}, {x, integers({1}, {0})}, result(REGIE_U8, {1})},
      {"Slice", {}, {x, integers({1}, {0}), integers({1}, {9})}, result(REGIE_U8, {9})},
      {"Pad", {}, {x, integers({2}, {1, 1})}, result(REGIE_U8, {(1 << 16) + 2})},
      {"Tile", {}, {x, integers({1}, {2})}, result(REGIE_U8, {1 << 17})},
      {"Reshape", {}, {x, integers({1}, {1 << 16})}, result(REGIE_U8, {1 << 16})},
  };
  for (const Case& c : cases) {
    const Ran ran = run(c.op, c.attrs, c.operands, {c.result});
    EXPECT_EQ(ran.code, REGIE_INVALID_INPUT) << c.op << ": " << ran.message;
  }
}

TEST(OpsKernel, RefusesDataThatDoesNotFit) {
  Tensor x = integers({3}, {10, 20, 30});
  Ran ran = run("Gather", {}, {x, integers({1}, {3})}, {result(REGIE_I64, {1})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  EXPECT_EQ(ran.message, "Gather: index 3 is outside of an axis of size 3");
  ran = run("Gather", {}, {x, integers({1}, {-4})}, {result(REGIE_I64, {1})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  ran = evaluate("Div", {}, {x, integers({1}, {0})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  EXPECT_THAT(ran.message, HasSubstr("zero"));
  // Parameters that arrive at run time and contradict the promised shape.
  ran = run("Slice", {}, {x, integers({1}, {0}), integers({1}, {3})}, {result(REGIE_I64, {2})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  EXPECT_THAT(ran.message, HasSubstr("[3], not [2]"));
  ran = run("Slice", {}, {x, integers({1}, {0}), integers({1}, {3}), integers({1}, {1})},
            {result(REGIE_I64, {3})});
  EXPECT_NE(ran.code, REGIE_OK);
  ran = run("Pad", {}, {x, integers({2}, {1, 1})}, {result(REGIE_I64, {4})});
  EXPECT_EQ(ran.code, REGIE_INVALID_INPUT);
  ran = run("ReduceSum", {}, {x, integers({1}, {5})}, {result(REGIE_I64, {1})});
  EXPECT_NE(ran.code, REGIE_OK);
}

TEST(OpsKernel, IntegerExtremes) {
  Ran ran = evaluate("Div", {}, {integers({3}, {INT64_MIN, -7, 7}), integers({3}, {-1, 2, -2})});
  ASSERT_TRUE(ran.ok()) << ran.message;
  auto got = ran.results[0].as<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(got.begin(), got.end()), testing::ElementsAre(INT64_MIN, -3, -3));
  // Out of range: the end of the range, and 0 for NaN; the same on every machine.
  ran = evaluate("Cast", {AttrValue::integer("to", REGIE_I32)}, {floats({4}, {1e20f, -1e20f, NAN, -3.9f})});
  ASSERT_TRUE(ran.ok()) << ran.message;
  auto cast = ran.results[0].as<int32_t>();
  EXPECT_THAT(std::vector<int32_t>(cast.begin(), cast.end()),
              testing::ElementsAre(INT32_MAX, INT32_MIN, 0, -3));
  Tensor base = integers({4}, {2, -1, 3, 0}), exponent = integers({4}, {62, -3, -1, 0});
  ran = evaluate("Pow", {}, {base, exponent});
  ASSERT_TRUE(ran.ok()) << ran.message;
  auto power = ran.results[0].as<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(power.begin(), power.end()),
              testing::ElementsAre(int64_t{1} << 62, -1, 0, 1));
}

// The result of a mean over nothing is NaN, of a sum 0, of a product 1:
// https://onnx.ai/onnx/operators/onnx__ReduceSum.html
TEST(OpsKernel, ReductionsOverNothing) {
  Tensor nothing = Tensor::zeros(REGIE_F32, std::vector<int64_t>{2, 0});
  auto reduce = [&](const char* op) {
    return evaluate(op, {}, {nothing, integers({1}, {1})}).results.at(0).as<float>()[1];
  };
  EXPECT_EQ(reduce("ReduceSum"), 0);
  EXPECT_EQ(reduce("ReduceProd"), 1);
  EXPECT_EQ(reduce("ReduceMax"), -INFINITY);
  EXPECT_EQ(reduce("ReduceMin"), INFINITY);
  EXPECT_TRUE(std::isnan(reduce("ReduceMean")));
}

// One kernel, several threads, each with its own scratch: results as from one thread.
TEST(RuntimeOps, OneKernelManyThreads) {
  const Plugin& plugin = Plugin::get();
  std::vector<int64_t> x_dims{2, 3, 9, 9}, y_dims{2, 3, 4, 4}, kernel{3, 3}, strides{2, 2};
  std::vector<uint16_t> x(2 * 3 * 9 * 9);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(0x3c00 + i % 512);  // 1 .. 1.5
  auto view = [](std::vector<int64_t>& dims, void* data, uint64_t bytes) {
    return regie_tensor{REGIE_F16, 0, static_cast<int32_t>(dims.size()), dims.data(), nullptr, data, bytes};
  };
  regie_attr attrs[2]{};
  attrs[0] = {{"kernel_shape", 12}, REGIE_ATTR_INTS, 2, {}};
  attrs[0].v.ints = kernel.data();
  attrs[1] = {{"strides", 7}, REGIE_ATTR_INTS, 2, {}};
  attrs[1].v.ints = strides.data();
  regie_tensor in = view(x_dims, nullptr, x.size() * 2), out = view(y_dims, nullptr, 2 * 3 * 4 * 4 * 2);
  regie_op_request request{};
  request.struct_size = sizeof(request);
  request.attr_count = 2;
  request.operand_count = request.result_count = 1;
  request.op = {"AveragePool", 11};
  request.attrs = attrs;
  request.operands = &in;
  request.results = &out;
  regie_op_state* state = nullptr;
  uint64_t scratch_bytes = 0;
  ASSERT_EQ(plugin.kernels->prepare(plugin.kernel_index.at("AveragePool"), test_host(), &request, &state,
                                    &scratch_bytes),
            REGIE_OK)
      << last_failure();
  auto once = [&] {
    std::vector<uint16_t> y(2 * 3 * 4 * 4, 0xffff);
    void* scratch = std::aligned_alloc(64, (scratch_bytes + 63) / 64 * 64);
    regie_tensor input = view(x_dims, x.data(), x.size() * 2), output = view(y_dims, y.data(), y.size() * 2);
    regie_op_call call{};
    call.struct_size = sizeof(call);
    call.operands = &input;
    call.results = &output;
    call.scratch = scratch;
    if (plugin.kernels->run(state, test_host(), &call) != REGIE_OK) y.clear();
    std::free(scratch);
    return y;
  };
  std::vector<uint16_t> want = once();
  ASSERT_FALSE(want.empty());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) wrong += once() != want;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  plugin.kernels->release(state);
}

}  // namespace
}  // namespace regie::ops_test
