// Every operator in every format that host_cpu's engine offers for it, against the reference kernels: what
// goes in and comes out is brought into the format by plain loops here.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "regie/c/pass.h"
#include "support/native_cases.h"
#include "support/sanitized.h"

namespace {

using namespace regie::test_backends;

constexpr regie_format kBlocked = REGIE_FORMAT_NC1HWC0 | 16u << 16;

// Where an element of logical index `at` lies in a tensor of the format, by the definition of the formats.
int64_t place(const Ints& d, const Ints& at, regie_format f) {
  int64_t spatial = 0, size = 1;
  for (size_t i = 2; i < d.size(); ++i) {
    spatial = spatial * d[i] + at[i];
    size *= d[i];
  }
  if (f == REGIE_FORMAT_NHWC) return (at[0] * size + spatial) * d[1] + at[1];
  const int64_t block = std::min<int64_t>(d[1], 16);
  return ((at[0] * (d[1] / block) + at[1] / block) * size + spatial) * block + at[1] % block;
}
TensorData reformatted(const TensorData& t, regie_format f, bool back) {
  TensorData out = t;
  if (f == REGIE_FORMAT_ND) return out;
  const size_t size = t.bytes.size() / static_cast<size_t>(t.count());
  each(t.dims, [&](const Ints& at) {
    const auto plain = static_cast<size_t>(offset(t.dims, at)),
               other = static_cast<size_t>(place(t.dims, at, f));
    std::memcpy(out.bytes.data() + (back ? plain : other) * size,
                t.bytes.data() + (back ? other : plain) * size, size);
  });
  return out;
}

std::vector<regie_format_wish> wishes_of(const Node& node) {
  const regie_engine_table* table = library("host_cpu").engines();
  regie_engine* engine = nullptr;
  EXPECT_EQ(table->create(0, host(), nullptr, &engine), REGIE_OK);
  std::vector<regie_format_wish> wishes(64);
  wishes.resize(table->formats(engine, node.graph(), 0, node.shapes(), wishes.data(), 64));
  table->destroy(engine);
  return wishes;
}

// Calls `run` with every combination of formats that is offered and those of the results, while the node's
// operands and values have them.
void each_option(Node& node,
                 const std::function<void(uint32_t option, const std::vector<regie_format>& results)>& run) {
  const std::vector<TensorData> operands = node.operands;
  const std::vector<regie_format_wish> wishes = wishes_of(node);
  const uint32_t options = wishes.empty() ? 0 : wishes.back().option;
  for (uint32_t option = 1; option <= options; ++option) {
    // The graph is the node's own; what it says of its values is written as the host would.
    auto* values = const_cast<regie_value*>(node.graph()->values);
    const regie_node& view = node.graph()->nodes[0];
    std::vector<regie_format> results(node.results.size(), REGIE_FORMAT_ND);
    node.operands = operands;
    std::vector<uint32_t> touched;
    for (const regie_format_wish& w : wishes) {
      if (w.option != option) continue;
      ASSERT_TRUE(w.format == REGIE_FORMAT_NHWC || w.format == kBlocked);
      const uint32_t id = w.is_result ? view.results[w.index] : view.operands[w.index];
      values[id].type.format = w.format;
      touched.push_back(id);
      if (w.is_result)
        results[w.index] = w.format;
      else
        node.operands[w.index].bytes = reformatted(operands[w.index], w.format, false).bytes;
    }
    run(option, results);
    for (uint32_t id : touched) values[id].type.format = REGIE_FORMAT_ND;
  }
  node.operands = operands;
}

NodePtr four_dims(const char* op, std::mt19937_64& r, Ints second) {
  Ints d{random_in(r, 1, 2), 16 * random_in(r, 1, 3), random_in(r, 2, 7), random_in(r, 2, 7)};
  for (size_t i = 0; i < second.size(); ++i)
    if (second[i] < 0) second[i] = d[d.size() - second.size() + i];
  auto operands = list({random_floats(d, r())});
  if (!second.empty()) operands.push_back(random_floats(second, r()));
  return std::make_unique<Node>(op, std::vector<Attr>{}, std::move(operands), list({zeros(REGIE_F32, d)}));
}

// The first elements beyond what a 32-bit integer, or any, holds.
NodePtr with_limits(NodePtr node) {
  const float inf = std::numeric_limits<float>::infinity();
  const float limits[] = {3e9f, -3e9f, inf, -inf, 2147483648.f, -2147483648.f};
  std::copy(std::begin(limits), std::end(limits), node->operands[0].as<float>());
  return node;
}

// Convolutions of all the kinds that loops of our own compute: windows, strides, dilations, maps that are
// smaller than what is computed at once and larger, channels that fill no vector where the format has it so.
NodePtr any_convolution(std::mt19937_64& r, bool depthwise) {
  auto some = [&](std::initializer_list<int64_t> of) {
    return *(of.begin() + random_in(r, 0, static_cast<int64_t>(of.size()) - 1));
  };
  const int64_t in = some({16, 32, 48, 80, 3, 24, 72}), window = some({1, 3, 3, 5});
  ConvCase c;
  c.x = {some({1, 1, 2}), in, random_in(r, 7, 30), random_in(r, 7, 30)};
  c.kernel = {window, some({window, window, 1, 3})};
  c.strides = Ints(2, some({1, 1, 2}));
  c.dilations = Ints(2, window > 1 && c.x[2] > 9 && c.x[3] > 9 ? some({1, 1, 2}) : 1);
  for (int i = 0; i < 4; ++i)
    c.pads.push_back(random_in(r, 0, 3) == 0 ? random_in(r, 0, window - 1) : c.dilations[0] * (window / 2));
  c.group = depthwise ? in : 1;
  c.out_channels = depthwise ? in : some({16, 32, 48, 64, 80, 96, 24, 100});
  c.bias = random_in(r, 0, 3) != 0;
  c.residual = random_in(r, 0, 2) == 0;
  c.activation = kActivations[static_cast<size_t>(random_in(r, 0, int64_t{std::size(kActivations)} - 1))];
  return conv_node(c, r());
}

// Windows, strides beyond them, padding, dilation and numbers of channels as they come; NaN among what a
// maximum is taken of.
NodePtr any_pooling(std::mt19937_64& r) {
  const bool maximum = random_in(r, 0, 1) != 0, ceil = random_in(r, 0, 2) == 0;
  const int64_t channels = random_in(r, 0, 1) ? 16 * random_in(r, 1, 9) : random_in(r, 1, 70);
  const auto spatial = static_cast<size_t>(random_in(r, 1, 2));
  Ints x{random_in(r, 1, 2), channels}, y = x, kernel, strides, dilations, pads(2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    kernel.push_back(random_in(r, 1, 5));
    strides.push_back(random_in(r, 1, 6));
    dilations.push_back(random_in(r, 0, 3) == 0 ? 2 : 1);
    const int64_t span = dilations[i] * (kernel[i] - 1) + 1;
    if (dilations[i] == 1) {
      pads[i] = random_in(r, 0, kernel[i] - 1);
      pads[i + spatial] = random_in(r, 0, kernel[i] - 1);
    }
    x.push_back(span + random_in(r, 0, 40));
    const int64_t room = x[2 + i] + pads[i] + pads[i + spatial] - span;
    int64_t out = room / strides[i] + 1;
    if (ceil && room % strides[i] && out * strides[i] < x[2 + i] + pads[i]) ++out;
    y.push_back(out);
  }
  std::vector<Attr> attrs{attr("kernel_shape", kernel), attr("strides", strides),
                          attr("dilations", dilations), attr("pads", pads), attr("ceil_mode", int64_t{ceil})};
  if (!maximum) attrs.push_back(attr("count_include_pad", random_in(r, 0, 1)));
  TensorData from = random_floats(x, r());
  if (maximum)
    for (int64_t i = 0; i < from.count(); i += random_in(r, 1, 60))
      from.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  return std::make_unique<Node>(maximum ? "MaxPool" : "AveragePool", attrs, list({from}),
                                list({zeros(REGIE_F32, y)}));
}
const Case kInFormats[] = {
    {"AddSame",
     [](std::mt19937_64& r) {
       return four_dims("Add", r, {-1, -1, -1, -1});
     }},
    {"AddChannels",
     [](std::mt19937_64& r) {
       return four_dims("Add", r, {-1, 1, 1});
     }},
    {"AddScalar", [](std::mt19937_64& r) { return four_dims("Add", r, {1}); }},
    {"MulGates",
     [](std::mt19937_64& r) {
       return four_dims("Mul", r, {-1, -1, 1, 1});
     }},
    {"Relu", [](std::mt19937_64& r) { return four_dims("Relu", r, {}); }},
    {"ClipWithoutBounds", [](std::mt19937_64& r) { return with_limits(four_dims("Clip", r, {})); }},
    {"CastToIntegers",
     [](std::mt19937_64& r) {
       NodePtr made = with_limits(four_dims("Relu", r, {}));
       const Ints& d = made->results[0].dims;
       return std::make_unique<Node>("Cast", std::vector<Attr>{attr("to", int64_t{6})},
                                     list({made->operands[0]}), list({zeros(REGIE_I32, d)}));
     }},
    {"BatchNormalization",
     [](std::mt19937_64& r) { return by_channel("BatchNormalization", r, {}, 16 * random_in(r, 1, 2)); }},
    {"FusedBatchNormalization",
     [](std::mt19937_64& r) {
       return by_channel("regie.FusedBatchNormalization", r, {attr("activation", "Relu")},
                         random_in(r, 0, 1) ? 16 * random_in(r, 1, 5) : random_in(r, 1, 90));
     }},
    {"Concat", [](std::mt19937_64& r) { return concat(r, 4, 1, 16); }},
    {"ReduceMean",
     [](std::mt19937_64& r) {
       Ints d{random_in(r, 1, 2), 32, random_in(r, 2, 7), random_in(r, 2, 7)};
       return std::make_unique<Node>("ReduceMean", std::vector<Attr>{attr("keepdims", int64_t{1})},
                                     list({random_floats(d, r()), integers({2}, {2, 3})}),
                                     list({zeros(REGIE_F32, {d[0], d[1], 1, 1})}));
     }},
    {"Transpose",
     [](std::mt19937_64& r) {
       Ints d{random_in(r, 1, 2), random_in(r, 1, 20), random_in(r, 2, 7), random_in(r, 2, 7)};
       return std::make_unique<Node>("Transpose", std::vector<Attr>{attr("perm", Ints{0, 2, 3, 1})},
                                     list({random_floats(d, r())}),
                                     list({zeros(REGIE_F32, {d[0], d[2], d[3], d[1]})}));
     }},
    {"Conv",
     [](std::mt19937_64& r) {
       ConvCase c{{random_in(r, 1, 2), 16 * random_in(r, 1, 3), 9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
       c.out_channels = 16 * random_in(r, 1, 3);
       c.bias = true;
       c.residual = random_in(r, 0, 1) != 0;
       if (c.residual) c.activation = kActivations[1];
       return conv_node(c, r());
     }},
    {"AnyConv", [](std::mt19937_64& r) { return any_convolution(r, false); }},
    {"AnyDepthwiseConv", [](std::mt19937_64& r) { return any_convolution(r, true); }},
    {"GlobalAveragePool",
     [](std::mt19937_64& r) {
       const int64_t channels = random_in(r, 0, 1) ? 16 * random_in(r, 1, 20) : random_in(r, 1, 90);
       Ints d{random_in(r, 1, 2), channels, random_in(r, 1, 9), random_in(r, 2, 9)};
       return std::make_unique<Node>("GlobalAveragePool", std::vector<Attr>{}, list({random_floats(d, r())}),
                                     list({zeros(REGIE_F32, {d[0], d[1], 1, 1})}));
     }},
    {"Pooling", any_pooling},
    {"MaxPool",
     [](std::mt19937_64& r) {
       Ints d{random_in(r, 1, 2), 16 * random_in(r, 1, 3), 8, 8};
       return std::make_unique<Node>(
           "MaxPool", std::vector<Attr>{attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{2, 2})},
           list({random_floats(d, r())}), list({zeros(REGIE_F32, {d[0], d[1], 4, 4})}));
     }},
};

class InFormats : public testing::TestWithParam<Case> {};

TEST_P(InFormats, GiveTheSameInAnotherOrder) {
  need_reference_kernels();
  HostCpu cpu;
  std::mt19937_64 random(99);
  uint32_t tried = 0, direct = 0;
  const bool many = std::string(GetParam().name).starts_with("Any");
  const bool pooling = GetParam().name == std::string("Pooling");
  for (int n = 0; n < (many || pooling ? regie::test::cases(100) : 8); ++n) {
    SCOPED_TRACE(n);
    NodePtr node = GetParam().make(random);
    node->run_reference();
    const std::vector<TensorData> expected = node->results;
    each_option(*node, [&](uint32_t option, const std::vector<regie_format>& results) {
      const uint32_t threads = 1 + (n + option) % 2;
      const Kernel kernel = cpu.engine.compile(*node, threads);
      std::vector<TensorData> got = cpu.device.run(kernel, *node, {threads, 1});
      if (pooling) {
        EXPECT_EQ(kernel.name.substr(0, 11), "own pooling");
        const Kernel other = cpu.engine.compile(*node, 3 - threads);
        EXPECT_EQ(cpu.device.run(other, *node, {3 - threads, 1})[0].bytes, got[0].bytes);
      }
      for (size_t i = 0; i < got.size(); ++i) got[i] = reformatted(got[i], results[i], true);
      // Winograd's algorithm trades exactness for multiplications.
      const bool winograd = kernel.name.find("wino") != std::string::npos;
      ASSERT_LE(difference(expected, got), winograd ? 2e-5 : kNativeTolerance) << kernel.name;
      ASSERT_GE(difference(expected, got), 0);
      direct += kernel.name.starts_with("own direct convolution");
      ++tried;
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GE(tried, 8u) << "no format was offered";
#if defined(__x86_64__)
  if (many && __builtin_cpu_supports("avx2")) {
    EXPECT_GE(2 * direct, tried) << "by loops of our own";
  }
#endif
}
INSTANTIATE_TEST_SUITE_P(Of, InFormats, testing::ValuesIn(kInFormats),
                         [](const auto& info) { return std::string(info.param.name); });

// Puts 0 for NaN and infinity; says where NaN and where infinity was, of which sign.
std::vector<int> without_special(TensorData& t) {
  std::vector<int> special;
  for (int64_t i = 0; i < t.count(); ++i) {
    float& x = t.as<float>()[i];
    special.push_back(std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 1 : -1) : 0);
    if (special.back()) x = 0;
  }
  return special;
}

// What a sum becomes, by each of the functions, at the edges of maps and in vectors that channels do not
// fill; the same bits by any number of threads. NaN and infinity come out where the definition has them.
TEST(DirectConvolutions, EndInEachActivation) {
#if defined(__x86_64__)
  const bool ours = __builtin_cpu_supports("avx2");
#else
  const bool ours = false;
#endif
  constexpr ActivationCase kAll[] = {
      {"", 0, 0},           {"Relu", 0, 0},        {"Clip", -0.5, 0.75}, {"HardSwish", 0, 0},
      {"Swish", 0, 0},      {"Sigmoid", 0, 0},     {"Tanh", 0, 0},       {"HardSigmoid", 0.25, 0.5},
      {"LeakyRelu", -1, 0}, {"LeakyRelu", 0.1, 0}, {"Elu", 0.5, 0},      {"Gelu", 0, 0},
      {"GeluTanh", 0, 0}};
  struct Size {
    int64_t in, out, height, width, window, stride;
    bool depthwise;
  };
  constexpr Size kSizes[] = {
      {16, 32, 7, 7, 1, 1, false},  {24, 72, 5, 9, 3, 1, false},  {3, 24, 9, 9, 3, 2, false},
      {80, 100, 3, 3, 3, 1, false}, {48, 48, 1, 3, 3, 1, false},  {16, 16, 7, 7, 5, 1, true},
      {72, 72, 7, 7, 3, 1, true},   {48, 48, 14, 14, 5, 1, true}, {24, 24, 14, 14, 5, 2, true},
      {32, 32, 3, 29, 3, 2, true},  {20, 20, 1, 1, 3, 1, true},   {16, 16, 1, 2, 5, 1, true},
      {336, 336, 7, 7, 5, 1, true}, {17, 17, 9, 4, 3, 1, true},   {16, 16, 8, 8, 7, 1, true},
      {64, 48, 13, 13, 1, 1, false}};
  HostCpu cpu;
  int direct = 0, tried = 0;
  for (const Size& size : kSizes)
    for (const ActivationCase& activation : kAll) {
      ConvCase c{{1, size.in, size.height, size.width},
                 Ints(2, size.window),
                 Ints(2, size.stride),
                 {1, 1},
                 Ints(4, size.window / 2)};
      c.out_channels = size.out;
      c.group = size.depthwise ? size.in : 1;
      c.bias = tried % 4 != 0;
      c.residual = tried % 3 == 0;
      c.activation = activation;
      SCOPED_TRACE(c.describe());
      auto node = conv_node(c, static_cast<uint64_t>(tried));
      float* x = node->operands[0].as<float>();
      const int64_t map = size.height * size.width;
      for (int64_t i = 0; i < product(c.x); ++i) x[i] *= i % 5 == 0 ? 8.f : 1.f;
      // One channel's corner, another's middle.
      if (map > 1) x[0] = std::numeric_limits<float>::quiet_NaN();
      // Of minus infinity only the approximation of Gelu is not what its definition is.
      const bool infinite = std::string(activation.name) != "GeluTanh";
      if (map > 9 && infinite) x[2 * map + map / 2] = std::numeric_limits<float>::infinity();
      std::vector<TensorData> expected = conv_by_loops(c, *node);
      const std::vector<int> special = without_special(expected[0]);
      each_option(*node, [&](uint32_t, const std::vector<regie_format>& results) {
        std::vector<TensorData> first;
        for (uint32_t threads : {1u, 2u, 3u, 5u}) {
          const Kernel kernel = cpu.engine.compile(*node, threads);
          std::vector<TensorData> got = cpu.device.run(kernel, *node, {threads, 1});
          ++tried;
          if (!kernel.name.starts_with("own direct convolution")) continue;
          ++direct;
          if (first.empty()) first = got;
          ASSERT_EQ(std::memcmp(first[0].bytes.data(), got[0].bytes.data(), got[0].bytes.size()), 0)
              << threads;
          got[0] = reformatted(got[0], results[0], true);
          ASSERT_EQ(special, without_special(got[0])) << kernel.name;
          ASSERT_LE(difference(expected, got), 2e-6) << kernel.name;
          ASSERT_GE(difference(expected, got), 0);
        }
      });
      ASSERT_FALSE(HasFatalFailure());
    }
  if (ours)
    EXPECT_GE(10 * direct, 9 * tried) << "of " << tried;
  else
    EXPECT_EQ(direct, 0) << "no kernels are compiled for this processor";
}

}  // namespace
