// The null backend: memory, streams, failures, limits; and the bytes that name an operator in its kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "regie/op_blob.hpp"
#include "support/backends.h"

namespace {

using namespace regie::test_backends;

TEST(OpBlob, KeepsEveryKindOfAttribute) {
  const std::vector<int64_t> ints = {1, -2, INT64_MAX}, dims = {2, 3}, one = {1};
  const std::vector<double> doubles = {0.5, -1e300};
  const regie_str words[] = {regie::sdk::lit("a"), {nullptr, 0}};
  const std::vector<int16_t> data = {1, 2, 3, 4, 5, 6};
  regie_tensor tensor{REGIE_I16, 0, 2, dims.data(), nullptr, const_cast<int16_t*>(data.data()), 12};
  regie_tensor strings{REGIE_STRING,     0, 1, one.data(), nullptr, const_cast<regie_str*>(words),
                       sizeof(regie_str)};
  std::vector<regie_attr> attrs(8);
  const char* names[] = {"f", "fs", "i", "is", "s", "ss", "t", "u"};
  for (size_t k = 0; k < attrs.size(); ++k) attrs[k] = {regie::sdk::str(names[k]), 0, 1, {}};
  attrs[0].kind = REGIE_ATTR_FLOAT, attrs[0].v.f = 0.1;
  attrs[1].kind = REGIE_ATTR_FLOATS, attrs[1].v.floats = doubles.data(), attrs[1].count = 2;
  attrs[2].kind = REGIE_ATTR_INT, attrs[2].v.i = INT64_MIN;
  attrs[3].kind = REGIE_ATTR_INTS, attrs[3].v.ints = ints.data(), attrs[3].count = 3;
  attrs[4].kind = REGIE_ATTR_STRING, attrs[4].v.s = regie::sdk::lit("text");
  attrs[5].kind = REGIE_ATTR_STRINGS, attrs[5].v.strs = words, attrs[5].count = 2;
  attrs[6].kind = REGIE_ATTR_TENSOR, attrs[6].v.tensor = &tensor;
  attrs[7].kind = REGIE_ATTR_TENSOR, attrs[7].v.tensor = &strings;
  regie::sdk::BlobWriter out;
  regie::sdk::write_op(out, "vendor.Op", attrs.data(), 8);
  const std::string blob = out.take();
  regie::sdk::BlobReader in(blob.data(), blob.size(), "blob");
  const regie::sdk::OpBlob first = regie::sdk::read_op(in);
  in.finish();
  EXPECT_EQ(first.op(), "vendor.Op");
  ASSERT_EQ(first.attrs().size(), 8u);
  const regie::sdk::Attrs back(first.attrs().data(), 8);
  EXPECT_EQ(back.number("f", 0), 0.1);
  EXPECT_TRUE(std::ranges::equal(*back.numbers("fs"), doubles));
  EXPECT_EQ(back.integer("i", 0), INT64_MIN);
  EXPECT_TRUE(std::ranges::equal(*back.integers("is"), ints));
  EXPECT_EQ(back.text("s", ""), "text");
  EXPECT_EQ(regie::sdk::sv(back.find("ss")->v.strs[0]), "a");
  EXPECT_EQ(regie::sdk::sv(back.find("ss")->v.strs[1]), "");
  EXPECT_EQ(std::memcmp(back.tensor("t")->data, data.data(), 12), 0);
  EXPECT_EQ(back.tensor("t")->dims[1], 3);
  EXPECT_EQ(regie::sdk::sv(static_cast<const regie_str*>(back.tensor("u")->data)[0]), "a");
  for (size_t size = 0; size < blob.size(); ++size) {
    const std::string cut = blob.substr(0, size);  // its own allocation, so that ASan sees a byte too far
    regie::sdk::BlobReader short_in(cut.data(), cut.size(), "blob");
    EXPECT_THROW(regie::sdk::read_op(short_in), regie::sdk::Failure) << size;
  }
  EXPECT_THROW(regie::sdk::write_op(out, "If", nullptr, 0, 2), regie::sdk::Failure);
}

struct Null {
  explicit Null(const Settings& settings = {})
      : engine(library("null").engines(), 0, {{"operators", "Relu, Softmax,MaxPool"}}),
        device(library("null").devices(), 0, settings),
        table(device.table()) {}
  EngineUnderTest engine;
  DeviceUnderTest device;
  const regie_device_table& table;
};

Node relu_node() { return Node("Relu", {}, {floats({4}, {-1, 2, -3, 4})}, {zeros(REGIE_F32, {4})}); }

TEST(RuntimeNull, AnswersForItsOperatorsOnly) {
  need_reference_kernels();
  Null null;
  const Node relu = relu_node();
  EXPECT_TRUE(null.engine.ask(relu).can);
  const Node tanh("Tanh", {}, {random_floats({2}, 1)}, {zeros(REGIE_F32, {2})});
  EXPECT_FALSE(null.engine.ask(tanh).can);
  EXPECT_NE(null.engine.ask(tanh).reason.find("Tanh"), std::string::npos);
  EXPECT_EQ(difference({floats({4}, {0, 2, 0, 4})}, null.device.run(null.engine.compile(relu), relu)), 0);
  expect_no_allocation(null.engine, null.device, relu);
  damage(null.device, null.engine.compile(relu), relu);
}

TEST(RuntimeNull, FreshMemoryIsFilledAndTheCapacityHolds) {
  Null null({{"capacity_bytes", "4096"}});
  void* a = nullptr;
  ASSERT_EQ(null.table.allocate(null.device.device(), 0, 1000, &a), REGIE_OK);
  std::vector<unsigned char> bytes(1000, 0);
  ASSERT_EQ(null.table.copy(null.device.stream(), REGIE_COPY_FROM_DEVICE, bytes.data(), a, 1000), REGIE_OK);
  ASSERT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_OK);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0xDB), 1000);
  void* b = nullptr;
  EXPECT_EQ(null.table.allocate(null.device.device(), 0, 4000, &b), REGIE_OUT_OF_MEMORY);
  const std::string words = take_failure();
  EXPECT_NE(words.find("4000 bytes asked for"), std::string::npos) << words;
  EXPECT_NE(words.find("3072 of 4096 left"), std::string::npos) << words;
  null.table.release(null.device.device(), 0, a);
  EXPECT_EQ(null.table.allocate(null.device.device(), 0, 4000, &b), REGIE_OK);
  null.table.release(null.device.device(), 0, b);
  // Addresses that are not its own are refused, not read.
  EXPECT_EQ(null.table.copy(null.device.stream(), REGIE_COPY_FROM_DEVICE, bytes.data(), bytes.data(), 10),
            REGIE_INVALID_INPUT);
}

TEST(RuntimeNull, AFailureSticksAndReachesEveryWaiter) {
  need_reference_kernels();
  Null null({{"fail_at_launch", "2"}});
  const Node relu = relu_node();
  const Kernel kernel = null.engine.compile(relu);
  EXPECT_NO_THROW(null.device.run(kernel, relu));
  regie_fence* fence = nullptr;
  regie_stream* other = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.stream_create(null.device.device(), &other), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 1), REGIE_OK);
  EXPECT_EQ(null.table.host_wait(fence, 1, UINT64_MAX), REGIE_OK);
  try {
    null.device.run(kernel, relu);
    FAIL() << "the second launch was to fail";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("task 0"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("fail_at_launch"), std::string::npos) << e.what();
  }
  ASSERT_EQ(null.table.fence_wait(other, fence, 2), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 2), REGIE_OK);
  EXPECT_EQ(null.table.host_wait(fence, 2, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("fail_at_launch"), std::string::npos);
  EXPECT_EQ(null.table.stream_wait(other, UINT64_MAX), REGIE_DEVICE);
  EXPECT_NE(take_failure().find("fail_at_launch"), std::string::npos);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_DEVICE);
  null.table.stream_destroy(other);
  null.table.fence_destroy(fence);
}

TEST(RuntimeNull, WaitsEndAtTheirLimit) {
  Null null({{"queue_depth", "4"}});
  std::atomic<bool> go{false};
  auto wait_for_go = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  regie_fence* fence = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.call_host(null.device.stream(), wait_for_go, &go), REGIE_OK);
  ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 7), REGIE_OK);
  EXPECT_EQ(null.table.stream_wait(null.device.stream(), 2'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure().find("2 ms"), std::string::npos);
  EXPECT_EQ(null.table.host_wait(fence, 7, 2'000'000), REGIE_TIMEOUT);
  EXPECT_NE(take_failure().find("stands at 0"), std::string::npos);
  go = true;
  EXPECT_EQ(null.table.host_wait(fence, 7, UINT64_MAX), REGIE_OK);
  EXPECT_EQ(null.table.stream_wait(null.device.stream(), UINT64_MAX), REGIE_OK);
  null.table.fence_destroy(fence);
}

// More work than the queue holds, on two streams that take turns by a fence.
TEST(RuntimeNull, TwoStreamsTakeTurns) {
  Null null({{"queue_depth", "3"}});
  regie_fence* fence = nullptr;
  regie_stream* other = nullptr;
  ASSERT_EQ(null.table.fence_create(null.device.device(), &fence), REGIE_OK);
  ASSERT_EQ(null.table.stream_create(null.device.device(), &other), REGIE_OK);
  std::string order;  // not guarded: the fence is what keeps the two apart
  struct Step {
    std::string* order;
    char letter;
  };
  Step steps[] = {{&order, 'a'}, {&order, 'b'}};
  auto note = [](void* s) { static_cast<Step*>(s)->order->push_back(static_cast<Step*>(s)->letter); };
  std::thread second([&] {
    for (uint64_t n = 0; n < 20; ++n) {
      ASSERT_EQ(null.table.fence_wait(other, fence, 2 * n + 1), REGIE_OK);
      ASSERT_EQ(null.table.call_host(other, note, &steps[1]), REGIE_OK);
      ASSERT_EQ(null.table.fence_signal(other, fence, 2 * n + 2), REGIE_OK);
    }
  });
  for (uint64_t n = 0; n < 20; ++n) {
    ASSERT_EQ(null.table.fence_wait(null.device.stream(), fence, 2 * n), REGIE_OK);
    ASSERT_EQ(null.table.call_host(null.device.stream(), note, &steps[0]), REGIE_OK);
    ASSERT_EQ(null.table.fence_signal(null.device.stream(), fence, 2 * n + 1), REGIE_OK);
  }
  second.join();
  EXPECT_EQ(null.table.host_wait(fence, 40, UINT64_MAX), REGIE_OK);
  null.table.stream_destroy(other);
  std::string expected;
  for (int n = 0; n < 20; ++n) expected += "ab";
  EXPECT_EQ(order, expected);
  null.table.fence_destroy(fence);
}

// One device from several threads, each with its own stream, buffers and executables.
TEST(RuntimeNull, ServesSeveralThreads) {
  need_reference_kernels();
  Null null;
  const Node relu = relu_node();
  const Kernel kernel = null.engine.compile(relu);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      DeviceUnderTest::Run how;
      if (null.table.stream_create(null.device.device(), &how.stream) != REGIE_OK) return;
      for (int n = 0; n < 20; ++n)
        right += difference({floats({4}, {0, 2, 0, 4})}, null.device.run(kernel, relu, how)) == 0;
      null.table.stream_destroy(how.stream);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 60);
}

}  // namespace
