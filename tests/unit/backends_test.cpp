// host_cpu through its C tables alone: convolutions against plain loops, answers, packed weights in any
// layout, damaged kernels, allocations in a launch.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "regie/c/pass.h"
#include "regie/op_blob.hpp"
#include "support/backends.h"
#include "support/sanitized.h"

namespace {

using namespace regie::test_backends;

class Convolution : public testing::TestWithParam<const char*> {};

// Random shapes and attributes; one kernel at the shape that it was compiled for and at another batch, 1 and
// 2 threads.
TEST_P(Convolution, EqualsPlainLoops) {
  HostCpu cpu(Settings{{"layout", GetParam()}});
  std::mt19937_64 random(20240611);
  int packed = 0;
  for (int n = 0; n < 50; ++n) {
    const ConvCase c = random_conv(random);
    SCOPED_TRACE(c.describe());
    auto node = conv_node(c, random());
    const auto answer = cpu.engine.ask(*node);
    ASSERT_TRUE(answer.can && !answer.reference) << answer.reason;
    EXPECT_GT(answer.cost_ns, 0);
    const uint32_t threads = 1 + n % 2;
    const Kernel kernel = cpu.engine.compile(*node, threads);
    ASSERT_EQ(kernel.format, "host_cpu.onednn/3");
    packed += !kernel.weights.empty();
    ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {threads, 1})), kTolerance);
    if (c.residual) {
      ASSERT_EQ(cpu.engine.alias(*node, 0, 3), static_cast<uint32_t>(REGIE_ALIAS_INPLACE));
      ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {threads, 2, 3})),
                kTolerance);
    }
    ConvCase other = c;
    other.x[0] = c.x[0] + random_in(random, 1, 4);
    const uint64_t seed = random();
    auto more = conv_node(other, seed);
    for (uint32_t i : {1u, 2u}) more->operands[i].bytes = node->operands[i].bytes;
    ASSERT_LE(difference(conv_by_loops(other, *more), cpu.device.run(kernel, *more, {threads, 1})),
              kTolerance);
  }
  // Row-major convolution takes the weights as they are.
  EXPECT_GT(packed, std::string(GetParam()) == "plain" ? -1 : 20);
}
INSTANTIATE_TEST_SUITE_P(Layouts, Convolution, testing::Values("auto", "plain", "own"),
                         [](const auto& info) { return std::string(info.param); });

// One compiled by oneDNN, at the shape that it was compiled for.
void equals_loops(HostCpu& cpu, const ConvCase& c, const Node& node, uint32_t threads, Kernel* kernel) {
  *kernel = cpu.engine.compile(node, threads);
  ASSERT_EQ(kernel->format, "host_cpu.onednn/3");
  ASSERT_LE(difference(conv_by_loops(c, node), cpu.device.run(*kernel, node, {threads, 1})), kTolerance);
}

// Where they see one position, convolutions are a matrix by a vector, for few pictures by a loop of our own.
TEST(HostCpu, ConvolutionsOfOnePositionEqualPlainLoops) {
  HostCpu cpu;
  std::mt19937_64 random(77);
  for (int n = 0; n < 120; ++n) {
    const auto spatial = static_cast<size_t>(random_in(random, 1, 3));
    const Ints ones(spatial, 1);
    ConvCase c{{random_in(random, 1, 6), random_in(random, 1, 90)}, ones, ones, ones, Ints(2 * spatial, 0)};
    c.x.insert(c.x.end(), spatial, 1);
    c.out_channels = random_in(random, 1, 150);
    c.bias = random_in(random, 0, 1) != 0;
    c.residual = random_in(random, 0, 5) == 0;
    c.constant = random_in(random, 0, 5) != 0;
    c.activation = kActivations[static_cast<size_t>(n) % std::size(kActivations)];
    if (random_in(random, 0, 5) == 0) {  // one position with padding behind it
      c.strides = Ints(spatial, 2);
      c.pads[spatial] = 1;
    }
    SCOPED_TRACE(c.describe());
    auto node = conv_node(c, random());
    const uint32_t threads = 1 + n % 2;
    Kernel kernel;
    ASSERT_NO_FATAL_FAILURE(equals_loops(cpu, c, *node, threads, &kernel));
  }
}

// Along one axis: long ones, whose fast kernels take long to be made, and dilated ones, which are computed
// over rows where the sizes are whole ones. The weights are packed at one length and used at another.
TEST(HostCpu, ConvolutionsOfOneAxisEqualPlainLoops) {
  HostCpu cpu;
  std::mt19937_64 random(20240612);
  constexpr int64_t kDilations[] = {1, 2, 8, 12, 16, 32};
  for (int n = 0; n < regie::test::cases(80); ++n) {
    const int64_t d = kDilations[static_cast<size_t>(n) % std::size(kDilations)];
    auto length = [&] { return d * random_in(random, 4, 12) + (random_in(random, 0, 2) == 0 ? d / 2 : 0); };
    auto padding = [&] { return random_in(random, 0, 3) == 0 ? d / 2 : d * random_in(random, 0, 2); };
    ConvCase c{{random_in(random, 1, 2), random_in(random, 1, 40), length()},
               {random_in(random, 1, 4)},
               {1},
               {d},
               {padding(), padding()}};
    if (n % 5 == 0) c.x[2] = random_in(random, 257, 400);
    if (n % 10 == 0) c.strides = {2};
    c.out_channels = random_in(random, 1, 70);
    c.bias = random_in(random, 0, 1) != 0;
    c.residual = random_in(random, 0, 3) == 0;
    c.activation = kActivations[static_cast<size_t>(n) % std::size(kActivations)];
    SCOPED_TRACE(c.describe());
    auto node = conv_node(c, random());
    const uint32_t threads = 1 + n % 2;
    Kernel kernel;
    ASSERT_NO_FATAL_FAILURE(equals_loops(cpu, c, *node, threads, &kernel));
    ConvCase other = c;
    other.x[2] = length();
    auto longer = conv_node(other, random());
    for (uint32_t i : {1u, 2u}) longer->operands[i].bytes = node->operands[i].bytes;
    ASSERT_LE(difference(conv_by_loops(other, *longer), cpu.device.run(kernel, *longer, {threads, 1})),
              kTolerance);
  }
}

// Windows that lie in the padding altogether, where not each of oneDNN's implementations adds what it should.
TEST(HostCpu, WindowsInThePadding) {
  need_reference_kernels();
  HostCpu cpu;
  for (const bool residual : {false, true})
    for (const size_t activation : {size_t{0}, size_t{1}})
      for (const Ints& pads : {Ints{1, 1, 0, 0}, Ints{0, 0, 1, 2}, Ints{2, 1, 0, 1}, Ints{0, 0, 0, 0}}) {
        ConvCase c{{1, 8, 7, 7}, {1, 1}, {1, 2}, {1, 1}, pads};
        c.out_channels = 8;
        c.bias = true;
        c.residual = residual;
        c.activation = kActivations[activation];
        SCOPED_TRACE(c.describe());
        auto node = conv_node(c, 7);
        const auto answer = cpu.engine.ask(*node);
        ASSERT_TRUE(answer.can && !answer.reference) << answer.reason;
        const Kernel kernel = cpu.engine.compile(*node, 1);
        ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {1, 1})), kTolerance);
      }
}

// Of processors with less than AVX2 oneDNN's kernels read an addend as if it were aligned.
TEST(HostCpu, DepthwiseConvolutionsOfAnyChannelsAdd) {
  need_reference_kernels();
  HostCpu cpu;
  for (const int64_t channels : {5, 8, 31, 33})
    for (const int64_t window : {1, 3}) {
      ConvCase c{{1, channels, 7, 6}, {window, window}, {1, 1}, {1, 1}, Ints(4, window / 2)};
      c.out_channels = c.group = channels;
      c.residual = true;
      SCOPED_TRACE(c.describe());
      auto node = conv_node(c, 7);
      const Kernel kernel = cpu.engine.compile(*node, 1);
      ASSERT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node, {1, 1})), kTolerance);
    }
}

// What oneDNN is not asked for, or has no kernel for, goes to the reference kernel or is refused; never
// wrong.
TEST(HostCpu, AnswersByReferenceKernelWhereOneDnnDoesNot) {
  need_reference_kernels();
  HostCpu cpu;
  auto ask = [&](const Node& node) { return cpu.engine.ask(node); };
  const Node relu("Relu", {}, {random_floats({2, 3}, 1)}, {zeros(REGIE_F32, {2, 3})});
  EXPECT_TRUE(ask(relu).can && !ask(relu).reference) << "element-wise operators have loops of their own";
  EXPECT_EQ(cpu.engine.compile(relu).format, "host_cpu.pointwise/1");
  const Node softmax("Softmax", {attr("axis", int64_t{1})}, {random_floats({2, 3}, 1)},
                     {zeros(REGIE_F32, {2, 3})});
  EXPECT_TRUE(ask(softmax).can && !ask(softmax).reference);
  const Node half("Conv", {attr("pads", Ints{0, 0, 0, 0})},
                  {zeros(REGIE_F16, {1, 2, 4, 4}), constant(zeros(REGIE_F16, {2, 2, 3, 3}))},
                  {zeros(REGIE_F16, {1, 2, 2, 2})});
  EXPECT_TRUE(ask(half).can && ask(half).reference);
  EXPECT_NE(ask(half).reason.find("float32"), std::string::npos) << ask(half).reason;
  const Node deep("Conv", {}, {random_floats({1, 1, 3, 3, 3, 3}, 1), random_floats({1, 1, 2, 2, 2, 2}, 2)},
                  {zeros(REGIE_F32, {1, 1, 2, 2, 2, 2})});
  EXPECT_TRUE(ask(deep).can && ask(deep).reference);
  const Node unknown("vendor.Nothing", {}, {random_floats({2}, 1)}, {zeros(REGIE_F32, {2})});
  EXPECT_FALSE(ask(unknown).can);
  EXPECT_NE(ask(unknown).reason.find("vendor.Nothing"), std::string::npos);
  EXPECT_THROW(cpu.engine.compile(unknown), std::runtime_error);
  const Node strange("regie.FusedConv", {attr("activation", "Sinus")},
                     {random_floats({1, 2, 4, 4}, 1), constant(random_floats({2, 2, 1, 1}, 2))},
                     {zeros(REGIE_F32, {1, 2, 4, 4})});
  EXPECT_FALSE(ask(strange).can);
}

TEST(HostCpu, RunsNothingForEmptyResultsAndReferenceForEmptyOperands) {
  need_reference_kernels();
  HostCpu cpu;
  ConvCase c{{2, 3, 5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  c.out_channels = 4;
  c.bias = true;
  auto node = conv_node(c, 7);
  const Kernel kernel = cpu.engine.compile(*node);
  ASSERT_FALSE(kernel.weights.empty());
  c.x[0] = 0;
  auto none = conv_node(c, 7);
  EXPECT_EQ(cpu.device.run(kernel, *none)[0].bytes.size(), 0u);
  // Compiled for an empty batch, run with a full one.
  const Kernel empty = cpu.engine.compile(*none);
  EXPECT_LE(difference(conv_by_loops(ConvCase{c}, *none), cpu.device.run(empty, *none)), kTolerance);
  EXPECT_LE(difference(node->results, node->results), 0);
  c.x[0] = 2;
  EXPECT_LE(difference(conv_by_loops(c, *node), cpu.device.run(empty, *node)), kTolerance);
  // A product over an empty axis is the addend.
  Node product_node("Gemm", {},
                    {zeros(REGIE_F32, {2, 0}), constant(zeros(REGIE_F32, {0, 3})), floats({3}, {1, 2, 3})},
                    {zeros(REGIE_F32, {2, 3})});
  const Kernel gemm = cpu.engine.compile(product_node);
  EXPECT_EQ(difference({floats({2, 3}, {1, 2, 3, 1, 2, 3})}, cpu.device.run(gemm, product_node)), 0);
}

// ---- kernels as data ----

// A weight packed in a layout that nobody would choose is taken anyway: repacked, or given to the reference
// kernel.
TEST(HostCpu, TakesAPackedWeightInAnyLayout) {
  need_reference_kernels();
  HostCpu cpu;
  const ConvCase c = rich_conv();
  auto node = conv_node(c, 3);
  Kernel kernel = cpu.engine.compile(*node);
  ASSERT_EQ(kernel.weights.size(), 1u);
  // The layout's text in the blob (kernel_blob.h) stands at the end; here: OIHW in blocks of 5 output
  // channels.
  const Ints w = c.weight();  // 20, 6, 3, 3
  regie::sdk::BlobWriter layout;
  layout.put<uint32_t>(1);  // operand
  layout.put<uint32_t>(4);
  layout.put<uint32_t>(3);  // dnnl_f32
  const Ints strides = {6 * 9 * 5, 9 * 5, 3 * 5, 5};
  for (size_t i = 0; i < 4; ++i) {
    layout.put<int64_t>(w[i]);
    layout.put<int64_t>(w[i]);
    layout.put<int64_t>(strides[i]);
  }
  layout.put<uint32_t>(1);
  layout.put<uint32_t>(0);
  layout.put<int64_t>(5);
  for (int nothing_behind = 0; nothing_behind < 3; ++nothing_behind) layout.put<uint32_t>(0);
  layout.put<uint64_t>(20 * 6 * 9 * 4);
  // The blob up to the operand number: what is behind it is 12 + 4 * 24 + 4 + blocks * 12 + 20 bytes long.
  const std::string& blob = kernel.blob;
  size_t cut = std::string::npos;
  for (uint32_t blocks = 0; blocks < 6; ++blocks) {
    const size_t tail = 12 + 4 * 24 + 4 + blocks * 12 + 20;
    uint32_t operand = 0, rank = 0, found = 0;
    std::memcpy(&operand, blob.data() + blob.size() - tail, 4);
    std::memcpy(&rank, blob.data() + blob.size() - tail + 4, 4);
    std::memcpy(&found, blob.data() + blob.size() - tail + 12 + 96, 4);
    if (operand == 1 && rank == 4 && found == blocks) cut = blob.size() - tail;
  }
  ASSERT_NE(cut, std::string::npos);
  kernel.blob = blob.substr(0, cut) + layout.take();
  std::vector<std::byte> bytes(20 * 6 * 9 * 4);
  for (int64_t o = 0; o < 20; ++o)
    for (int64_t rest = 0; rest < 54; ++rest)
      std::memcpy(bytes.data() + (o / 5 * 54 * 5 + rest * 5 + o % 5) * 4,
                  node->operands[1].as<float>() + o * 54 + rest, 4);
  kernel.weights[0].bytes = bytes;
  EXPECT_LE(difference(conv_by_loops(c, *node), cpu.device.run(kernel, *node)), kTolerance);
  ConvCase other = c;
  other.x[0] = 5;
  auto more = conv_node(other, 3);
  EXPECT_LE(difference(conv_by_loops(other, *more), cpu.device.run(kernel, *more)), kTolerance);
  // Fewer bytes than the layout needs are refused before anything reads them.
  kernel.weights[0].bytes.resize(bytes.size() - 4);
  EXPECT_THROW(cpu.device.run(kernel, *node), std::runtime_error);
}

TEST(HostCpu, SurvivesDamagedKernels) {
  need_reference_kernels();
  HostCpu cpu;
  const ConvCase c = rich_conv();
  auto conv = conv_node(c, 3);
  damage(cpu.device, cpu.engine.compile(*conv), *conv);
  const Node soft("Softmax", {attr("axis", int64_t{-1})}, {random_floats({3, 4}, 1)},
                  {zeros(REGIE_F32, {3, 4})});
  damage(cpu.device, cpu.engine.compile(soft), soft);
  Kernel unknown{"vendor.format/1", "", "x", 0, {}, {}, 0};
  EXPECT_EQ(cpu.device.try_load(unknown), REGIE_UNSUPPORTED);
}

// Element-wise kernels: both operands stretched, in short rows, long rows and one by one, with one and two
// threads, in place, at another size than they were compiled for.
TEST(HostCpu, ElementWiseKernelsBroadcast) {
  need_reference_kernels();
  HostCpu cpu;
  const std::vector<std::pair<Ints, Ints>> shapes = {{{5, 7}, {5, 7}},
                                                     {{3, 1, 49}, {4, 1}},
                                                     {{64, 3, 7, 7}, {3, 1, 1}},
                                                     {{2, 3000}, {3000}},
                                                     {{2000, 300}, {2000, 1}},
                                                     {{1}, {1}},
                                                     {{}, {4, 5}},
                                                     {{9, 1, 17}, {1, 40, 1}},
                                                     {{70, 6, 33}, {70, 1, 33}},
                                                     {{4, 128, 300}, {128, 1}},
                                                     {{33, 257}, {257}}};
  for (const auto& [a, b] : shapes) {
    const size_t rank = std::max(a.size(), b.size());
    Ints y(rank, 1), wide_a = a, wide_b = b;
    wide_a.insert(wide_a.begin(), rank - a.size(), 1);
    wide_b.insert(wide_b.begin(), rank - b.size(), 1);
    for (size_t i = 0; i < rank; ++i) y[i] = std::max(wide_a[i], wide_b[i]);
    Node node("Sub", {}, {random_floats(a, 1), random_floats(b, 2)}, {zeros(REGIE_F32, y)});
    TensorData want = zeros(REGIE_F32, y);
    each(y, [&](const Ints& at) {
      Ints from_a = at, from_b = at;
      for (size_t i = 0; i < rank; ++i) {
        if (wide_a[i] == 1) from_a[i] = 0;
        if (wide_b[i] == 1) from_b[i] = 0;
      }
      want.as<float>()[offset(y, at)] = node.operands[0].as<float>()[offset(wide_a, from_a)] -
                                        node.operands[1].as<float>()[offset(wide_b, from_b)];
    });
    for (uint32_t threads : {1u, 2u}) {
      const Kernel kernel = cpu.engine.compile(node, threads);
      ASSERT_EQ(kernel.format, "host_cpu.pointwise/1");
      EXPECT_EQ(difference({want}, cpu.device.run(kernel, node, {threads, 2})), 0);
      if (a == y) {
        EXPECT_EQ(difference({want}, cpu.device.run(kernel, node, {threads, 2, 0})), 0);
      }
    }
  }
}

TEST(HostCpu, SurvivesDamagedElementWiseKernels) {
  need_reference_kernels();
  HostCpu cpu;
  Node node("Clip", {}, {random_floats({70}, 1), constant(floats({}, {-0.5f})), constant(floats({}, {0.5f}))},
            {zeros(REGIE_F32, {70})});
  damage(cpu.device, cpu.engine.compile(node), node);
  Node leaky("LeakyRelu", {attr("alpha", 0.25)}, {random_floats({70}, 1)}, {zeros(REGIE_F32, {70})});
  damage(cpu.device, cpu.engine.compile(leaky), leaky);
  expect_no_allocation(cpu.engine, cpu.device, leaky);
}

TEST(HostCpu, ALaunchAllocatesNothing) {
  need_reference_kernels();
  HostCpu cpu;
  expect_no_allocation(cpu.engine, cpu.device, *conv_node(rich_conv(), 1));
  const Node matmul("regie.FusedMatMul", {},
                    {random_floats({5, 6}, 1), constant(random_floats({6, 7}, 2)), random_floats({5, 7}, 3),
                     random_floats({5, 7}, 4)},
                    {zeros(REGIE_F32, {5, 7})});
  expect_no_allocation(cpu.engine, cpu.device, matmul);
  const Node pool("MaxPool", {attr("kernel_shape", Ints{2, 2})}, {random_floats({1, 3, 6, 6}, 3)},
                  {zeros(REGIE_F32, {1, 3, 5, 5})});
  expect_no_allocation(cpu.engine, cpu.device, pool);
  const Node soft("Softmax", {attr("axis", int64_t{-1})}, {random_floats({3, 4}, 1)},
                  {zeros(REGIE_F32, {3, 4})});
  expect_no_allocation(cpu.engine, cpu.device, soft);
}

TEST(AllocCounter, SeesAllocationsOfALibrary) {
  need_reference_kernels();
  HostCpu cpu;
  auto node = conv_node(rich_conv(), 1);
  regie::test::AllocCounter counter;
  counter.start();
  const Kernel kernel = cpu.engine.compile(*node);
  counter.stop();
  EXPECT_GT(counter.count(), 10u);
  EXPECT_GT(counter.excluded(), 0u);
  EXPECT_FALSE(counter.places().empty());
}

TEST(HostCpu, RefusesUnknownParameters) {
  auto failure = [](const Settings& settings) -> std::string {
    try {
      EngineUnderTest engine(library("host_cpu").engines(), 0, settings);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_NE(failure({{"flops_per_n", "3"}}).find("flops_per_ns"), std::string::npos);
  EXPECT_NE(failure({{"flops_per_ns", "fast"}}).find("positive number"), std::string::npos);
  EXPECT_NE(failure({{"layout", "best"}}).find("auto, plain or own"), std::string::npos);
}

}  // namespace
