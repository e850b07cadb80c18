// What every engine promises (regie/c/engine.h), and that its kernels compute on its device what the
// reference kernels do.
//
// An engine may say no to any node as long as it says why; what it says yes to must be right.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regie/c/pass.h"
#include "suite.h"

namespace regie::conformance {
namespace {

using Ints = std::vector<int64_t>;
using NodePtr = std::unique_ptr<Node>;

// A node for a batch size; its weights do not depend on the batch.
struct Case {
  const char* name;
  NodePtr (*make)(int64_t batch);
};

TensorData result(Ints dims) { return zeros(REGIE_F32, std::move(dims)); }
TensorData weight(Ints dims, uint64_t seed) { return constant(random_floats(std::move(dims), seed)); }
template <class... Tensors>
std::vector<TensorData> list(Tensors... tensors) {
  return {std::move(tensors)...};
}
NodePtr unary(const char* op, int64_t batch, std::vector<Attr> attrs = {}) {
  return std::make_unique<Node>(op, std::move(attrs), list(random_floats({batch, 3, 5}, 1)),
                                list(result({batch, 3, 5})));
}
NodePtr pool(const char* op, int64_t batch) {
  return std::make_unique<Node>(
      op,
      std::vector<Attr>{attr("kernel_shape", Ints{3, 3}), attr("strides", Ints{2, 2}),
                        attr("pads", Ints{1, 1, 1, 1})},
      list(random_floats({batch, 5, 8, 8}, 1)), list(result({batch, 5, 4, 4})));
}
NodePtr global_pool(const char* op, int64_t batch) {
  return std::make_unique<Node>(op, std::vector<Attr>{}, list(random_floats({batch, 5, 6, 7}, 1)),
                                list(result({batch, 5, 1, 1})));
}
NodePtr conv(int64_t batch, int64_t group, int64_t dilation) {
  const int64_t edge = 9 - 2 * dilation;
  return std::make_unique<Node>(
      "Conv",
      std::vector<Attr>{attr("group", group), attr("dilations", Ints{dilation, dilation}),
                        attr("kernel_shape", Ints{3, 3})},
      list(random_floats({batch, 6, 9, 9}, 1), weight({12, 6 / group, 3, 3}, 2), weight({12}, 3)),
      list(result({batch, 12, edge, edge})));
}
NodePtr fused_conv(int64_t batch) {
  return std::make_unique<Node>("regie.FusedConv",
                                std::vector<Attr>{attr("pads", Ints{1, 1, 1, 1}), attr("activation", "Relu")},
                                list(random_floats({batch, 4, 8, 8}, 1), weight({8, 4, 3, 3}, 2),
                                     weight({8}, 3), random_floats({batch, 8, 8, 8}, 4)),
                                list(result({batch, 8, 8, 8})));
}

const Case kCases[] = {
    {"Add",
     [](int64_t n) {
       return std::make_unique<Node>("Add", std::vector<Attr>{},
                                     list(random_floats({n, 3, 5}, 1), random_floats({n, 3, 5}, 2)),
                                     list(result({n, 3, 5})));
     }},
    {"AddOfAConstantRow",
     [](int64_t n) {
       return std::make_unique<Node>("Add", std::vector<Attr>{},
                                     list(random_floats({n, 3, 5}, 1), weight({5}, 2)),
                                     list(result({n, 3, 5})));
     }},
    {"AveragePool", [](int64_t n) { return pool("AveragePool", n); }},
    {"Conv", [](int64_t n) { return conv(n, 1, 1); }},
    {"ConvDepthwise", [](int64_t n) { return conv(n, 6, 1); }},
    {"ConvDilated", [](int64_t n) { return conv(n, 1, 2); }},
    {"ConvGrouped", [](int64_t n) { return conv(n, 2, 1); }},
    {"Flatten",
     [](int64_t n) {
       return std::make_unique<Node>("Flatten", std::vector<Attr>{attr("axis", int64_t{1})},
                                     list(random_floats({n, 3, 5}, 1)), list(result({n, 15})));
     }},
    {"FusedConv", fused_conv},
    {"FusedMatMul",
     [](int64_t n) {
       return std::make_unique<Node>("regie.FusedMatMul", std::vector<Attr>{attr("activation", "Relu")},
                                     list(random_floats({n, 7}, 1), weight({7, 9}, 2), weight({9}, 3)),
                                     list(result({n, 9})));
     }},
    {"Gemm",
     [](int64_t n) {
       return std::make_unique<Node>("Gemm", std::vector<Attr>{attr("transB", int64_t{1})},
                                     list(random_floats({n, 7}, 1), weight({9, 7}, 2), weight({9}, 3)),
                                     list(result({n, 9})));
     }},
    {"GlobalAveragePool", [](int64_t n) { return global_pool("GlobalAveragePool", n); }},
    {"GlobalMaxPool", [](int64_t n) { return global_pool("GlobalMaxPool", n); }},
    {"MatMul",
     [](int64_t n) {
       return std::make_unique<Node>("MatMul", std::vector<Attr>{},
                                     list(random_floats({n, 4, 7}, 1), random_floats({n, 7, 3}, 2)),
                                     list(result({n, 4, 3})));
     }},
    {"MaxPool", [](int64_t n) { return pool("MaxPool", n); }},
    {"Relu", [](int64_t n) { return unary("Relu", n); }},
    {"Sigmoid", [](int64_t n) { return unary("Sigmoid", n); }},
    {"Softmax", [](int64_t n) { return unary("Softmax", n, {attr("axis", int64_t{-1})}); }},
};

constexpr double kTolerance = 1e-5;

struct Backend {
  Backend()
      : engine(suite().engine_library->engines(), suite().engine, suite().engine_settings),
        device(suite().library->devices(), suite().device, suite().device_settings) {}
  EngineUnderTest engine;
  DeviceUnderTest device;
};

class Kernels : public testing::TestWithParam<Case> {
 protected:
  // The node with its right results; NULL if the engine says no, with a reason.
  NodePtr node(int64_t batch) {
    NodePtr made = GetParam().make(batch);
    const auto answer = backend.engine.ask(*made);
    if (!answer.can) {
      EXPECT_NE(answer.reason, "") << "a refusal needs a reason";
      return nullptr;
    }
    EXPECT_TRUE(std::isfinite(answer.cost_ns) && answer.cost_ns >= 0);
    made->run_reference();
    return made;
  }
  double error(const Kernel& kernel, const Node& n, const DeviceUnderTest::Run& how = {}) {
    const double d = difference(n.results, backend.device.run(kernel, n, how));
    return d < 0 ? HUGE_VAL : d;
  }
  Backend backend;
};

TEST_P(Kernels, ComputeWhatTheReferenceDoes) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  EXPECT_LE(error(kernel, *n), kTolerance) << kernel.name;
  DeviceUnderTest::Run thrice;
  thrice.launches = 3;
  EXPECT_LE(error(kernel, *n, thrice), kTolerance) << "launched again";
  const Kernel wide = backend.engine.compile(*n, 2);
  DeviceUnderTest::Run two;
  two.threads = 2;
  EXPECT_LE(error(wide, *n, two), kTolerance) << "two threads";
}

TEST_P(Kernels, AreWellFormed) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  const auto& d = backend.device.description();
  auto among = [](const regie_str* names, uint32_t count, const std::string& name) {
    for (uint32_t i = 0; i < count; ++i)
      if (sdk::sv(names[i]) == name) return true;
    return false;
  };
  EXPECT_TRUE(among(d.formats, d.format_count, kernel.format)) << kernel.format;
  for (const std::string& c : kernel.needs) EXPECT_TRUE(among(d.capabilities, d.capability_count, c)) << c;
  EXPECT_NE(kernel.name, "");
  for (const PackedWeight& w : kernel.weights) {
    ASSERT_LT(w.operand, n->operands.size());
    EXPECT_TRUE(n->operands[w.operand].constant) << "only constants can be packed";
    EXPECT_TRUE(w.layout == "portable" || w.layout.starts_with("opaque:")) << w.layout;
  }
  const Kernel again = backend.engine.compile(*n);
  EXPECT_EQ(kernel.blob, again.blob) << "the same node must give the same bytes";
  ASSERT_EQ(kernel.weights.size(), again.weights.size());
  for (size_t i = 0; i < kernel.weights.size(); ++i)
    EXPECT_EQ(kernel.weights[i].bytes, again.weights[i].bytes);
}

TEST_P(Kernels, RunAtOtherShapesIfTheySaySo) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  if (!(kernel.flags & REGIE_KERNEL_ANY_SHAPE)) return;
  for (int64_t batch : {1, 7, 0}) {
    NodePtr other = GetParam().make(batch);
    other->run_reference();
    EXPECT_LE(error(kernel, *other), kTolerance) << "batch " << batch;
  }
}

TEST_P(Kernels, AllowTheAliasesThatTheEngineAllows) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  for (uint32_t i = 0; i < n->operands.size(); ++i) {
    if (n->operands[i].constant || backend.engine.alias(*n, 0, i) == REGIE_ALIAS_NONE) continue;
    ASSERT_EQ(n->operands[i].bytes.size(), n->results[0].bytes.size());
    DeviceUnderTest::Run how;
    how.alias = i;
    EXPECT_LE(error(kernel, *n, how), kTolerance) << "result on operand " << i;
  }
}

// A model file may name any packed weight for any operand; its size is all that a device knows of it.
TEST_P(Kernels, RefuseOperandsThatAreTooShort) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  for (uint32_t i = 0; i < n->operands.size(); ++i) {
    if (n->operands[i].elem == REGIE_ELEM_UNKNOWN) continue;
    Kernel bad = kernel;
    std::erase_if(bad.weights, [&](const PackedWeight& w) { return w.operand == i; });
    bad.weights.push_back({i, std::vector<std::byte>(4), "opaque:conformance:0"});
    EXPECT_THROW(backend.device.run(bad, *n), std::runtime_error) << "operand " << i << " of four bytes";
  }
  EXPECT_LE(error(kernel, *n), kTolerance) << "the device is as before";
}

// Nor need a result be of the type that the kernel gives: what is written must fit into what is there.
TEST_P(Kernels, RefuseResultsOfAnotherType) {
  NodePtr n = node(2), other = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  other->results[0] = zeros(REGIE_U8, other->results[0].dims);
  // A device may find out at the launch, which ends the stream that it is on.
  const regie_device_table& table = backend.device.table();
  DeviceUnderTest::Run how;
  ASSERT_EQ(table.stream_create(backend.device.device(), &how.stream), REGIE_OK);
  EXPECT_THROW(backend.device.run(kernel, *other, how), std::runtime_error);
  table.stream_destroy(how.stream);
  EXPECT_LE(error(kernel, *n), kTolerance) << "the device is as before";
}

TEST_P(Kernels, SurviveDamage) {
  NodePtr n = node(2);
  if (!n) return;
  const Kernel kernel = backend.engine.compile(*n);
  for (size_t size = 0; size < kernel.blob.size(); size += 1 + size / 64) {
    Kernel cut = kernel;
    cut.blob.resize(size);
    EXPECT_EQ(backend.device.try_load(cut), REGIE_CORRUPT)
        << size << " of " << kernel.blob.size() << " bytes";
  }
  for (size_t at = 0; at < kernel.blob.size(); at += 1 + at / 32) {
    Kernel bad = kernel;
    bad.blob[at] = static_cast<char>(bad.blob[at] ^ 0x41);
    const regie_status code = backend.device.try_load(bad);
    EXPECT_TRUE(code == REGIE_OK || code == REGIE_CORRUPT) << at << ": " << code;
  }
  EXPECT_LE(error(kernel, *n), kTolerance) << "the device is as before";
}

INSTANTIATE_TEST_SUITE_P(Of, Kernels, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Engine, SaysYesToSomethingAndWhyNotToTheRest) {
  Backend backend;
  int yes = 0;
  for (const Case& c : kCases) {
    const auto answer = backend.engine.ask(*c.make(2));
    yes += answer.can;
    EXPECT_TRUE(answer.can || !answer.reason.empty()) << c.name;
  }
  EXPECT_GT(yes, 0);
  const Node unknown("regie.conformance.NoSuchOperator", {}, list(random_floats({2}, 1)), list(result({2})));
  const auto answer = backend.engine.ask(unknown);
  EXPECT_FALSE(answer.can);
  EXPECT_NE(answer.reason, "");
  EXPECT_THROW(backend.engine.compile(unknown), std::runtime_error);
}

TEST(Engine, RefusesAParameterThatItDoesNotKnow) {
  try {
    EngineUnderTest engine(suite().engine_library->engines(), suite().engine,
                           Settings({{"regie_conformance_no_such_key", "1"}}));
    FAIL() << "it was accepted";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("regie_conformance_no_such_key"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace regie::conformance
