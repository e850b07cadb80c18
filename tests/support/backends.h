// What the tests of the two backends share: opening a plug-in, convolutions by plain loops, damage to
// kernels, and launches that must not allocate.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "harness.h"
#include "plugins/static_plugins.h"
#include "regie_test_paths.h"
#include "support/alloc_counter.h"

namespace regie::test_backends {

using namespace conformance;
using Ints = std::vector<int64_t>;

// As a shared object, or linked in where the build does so.
inline const Library& library(const std::string& name) {
  static std::map<std::string, Library> open;
  auto at = open.find(name);
  if (at != open.end()) return at->second;
  for (size_t i = 0; i < regie_static_plugin_count; ++i) {
    auto* entry = static_cast<const regie_plugin_entry_t*>(regie_static_plugins[i].entry);
    if (entry->name == name) return open.emplace(name, Library(*entry)).first->second;
  }
  return open.emplace(name, Library(std::string(REGIE_TEST_PLUGIN_DIR) + "/" + name + ".so")).first->second;
}
inline void need_reference_kernels() {
  static const std::string problem = add_reference_kernels(library("ops-standard"));
  ASSERT_EQ(problem, "");
}

struct HostCpu {
  explicit HostCpu(const Settings& settings = {})
      : engine(library("host_cpu").engines(), 0, settings), device(library("host_cpu").devices(), 0, {}) {}
  EngineUnderTest engine;
  DeviceUnderTest device;
};

inline int64_t random_in(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}
inline int64_t product(const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
// Calls f with every index of a box, row-major.
inline void each(const Ints& dims, const std::function<void(const Ints&)>& f) {
  if (product(dims) == 0) return;
  Ints at(dims.size(), 0);
  for (;;) {
    f(at);
    size_t axis = dims.size();
    while (axis > 0 && ++at[axis - 1] == dims[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}
inline int64_t offset(const Ints& dims, const Ints& at) {
  int64_t o = 0;
  for (size_t i = 0; i < dims.size(); ++i) o = o * dims[i] + at[i];
  return o;
}

inline double activate(const std::string& name, double x, double alpha, double beta) {
  if (name == "Relu") return std::max(x, 0.0);
  if (name == "LeakyRelu") return x < 0 ? alpha * x : x;
  if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "Tanh") return std::tanh(x);
  if (name == "HardSigmoid") return std::clamp(alpha * x + beta, 0.0, 1.0);
  if (name == "HardSwish") return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
  if (name == "Clip") return std::clamp(x, alpha, beta);
  if (name == "Elu") return x < 0 ? alpha * std::expm1(x) : x;
  if (name == "Swish") return x / (1 + std::exp(-x));
  if (name == "Gelu") return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "GeluTanh")
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  return x;
}
struct ActivationCase {
  const char* name;
  double alpha, beta;
};
constexpr ActivationCase kActivations[] = {
    {"", 0, 0},          {"Relu", 0, 0},       {"LeakyRelu", 0.125, 0},
    {"Sigmoid", 0, 0},   {"Tanh", 0, 0},       {"HardSigmoid", 0.25, 0.5},
    {"HardSwish", 0, 0}, {"Clip", -0.5, 0.75}, {"Elu", 0.5, 0},
    {"Swish", 0, 0}};

// ---- convolution ----

struct ConvCase {
  Ints x, kernel, strides, dilations, pads;  // pads: begins, then ends
  int64_t out_channels = 1, group = 1;
  bool bias = false, residual = false, constant = true;
  const char* auto_pad = "NOTSET";
  ActivationCase activation = kActivations[0];

  size_t spatial() const { return kernel.size(); }
  Ints effective_pads() const {
    Ints p = pads;
    for (size_t i = 0; i < spatial(); ++i) {
      const std::string mode = auto_pad;
      if (mode == "VALID") p[i] = p[i + spatial()] = 0;
      if (mode.rfind("SAME", 0) != 0) continue;
      const int64_t out = (x[2 + i] + strides[i] - 1) / strides[i];
      const int64_t total =
          std::max<int64_t>(0, (out - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - x[2 + i]);
      p[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      p[i + spatial()] = total - p[i];
    }
    return p;
  }
  Ints result() const {
    Ints y{x[0], out_channels}, p = effective_pads();
    for (size_t i = 0; i < spatial(); ++i)
      y.push_back((x[2 + i] + p[i] + p[i + spatial()] - dilations[i] * (kernel[i] - 1) - 1) / strides[i] + 1);
    return y;
  }
  Ints weight() const {
    Ints w{out_channels, x[1] / group};
    w.insert(w.end(), kernel.begin(), kernel.end());
    return w;
  }
  std::string describe() const {
    auto list = [](const Ints& v) {
      std::string s = "[";
      for (int64_t n : v) s += std::to_string(n) + " ";
      return s + "]";
    };
    return "x " + list(x) + " w " + list(weight()) + " strides " + list(strides) + " dilations " +
           list(dilations) + " pads " + list(pads) + auto_pad + " group " + std::to_string(group) +
           (bias ? " bias" : "") + (residual ? " residual" : "") + (constant ? " constant " : " ") +
           activation.name;
  }
};

inline std::unique_ptr<Node> conv_node(const ConvCase& c, uint64_t seed) {
  std::vector<Attr> attrs = {attr("strides", c.strides), attr("dilations", c.dilations),
                             attr("group", c.group), attr("auto_pad", c.auto_pad),
                             attr("kernel_shape", c.kernel)};
  if (std::string(c.auto_pad) == "NOTSET") attrs.push_back(attr("pads", c.pads));
  const bool fused = c.residual || *c.activation.name;
  if (fused) {
    attrs.push_back(attr("activation", c.activation.name));
    attrs.push_back(attr("activation_alpha", c.activation.alpha));
    attrs.push_back(attr("activation_beta", c.activation.beta));
  }
  std::vector<TensorData> in = {random_floats(c.x, seed), random_floats(c.weight(), seed + 1)};
  in[1].constant = c.constant;
  in.push_back(c.bias ? constant(random_floats({c.out_channels}, seed + 2)) : absent());
  if (fused) in.push_back(c.residual ? random_floats(c.result(), seed + 3) : absent());
  return std::make_unique<Node>(fused ? "regie.FusedConv" : "Conv", attrs, std::move(in),
                                std::vector<TensorData>{zeros(REGIE_F32, c.result())});
}

inline std::vector<TensorData> conv_by_loops(const ConvCase& c, const Node& node) {
  TensorData y = zeros(REGIE_F32, c.result());
  const Ints w_dims = c.weight(), pads = c.effective_pads();
  const float *x = node.operands[0].as<float>(), *w = node.operands[1].as<float>();
  const int64_t out_a_group = c.out_channels / c.group;
  each(y.dims, [&](const Ints& at) {
    double sum = c.bias ? node.operands[2].as<float>()[at[1]] : 0;
    each(Ints(w_dims.begin() + 1, w_dims.end()), [&](const Ints& tap) {
      Ints from{at[0], at[1] / out_a_group * w_dims[1] + tap[0]}, weight{at[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      for (size_t i = 0; i < c.spatial(); ++i) {
        const int64_t p = at[2 + i] * c.strides[i] - pads[i] + tap[1 + i] * c.dilations[i];
        if (p < 0 || p >= c.x[2 + i]) return;
        from.push_back(p);
      }
      sum += static_cast<double>(x[offset(c.x, from)]) * w[offset(w_dims, weight)];
    });
    const int64_t o = offset(y.dims, at);
    if (c.residual) sum += node.operands[3].as<float>()[o];
    y.as<float>()[o] =
        static_cast<float>(activate(c.activation.name, sum, c.activation.alpha, c.activation.beta));
  });
  return {y};
}

inline ConvCase random_conv(std::mt19937_64& random) {
  ConvCase c;
  const auto spatial = static_cast<size_t>(random_in(random, 1, 3));
  const int64_t shape = random_in(random, 0, 3);  // dense, grouped, depth-wise, one input channel
  int64_t in = random_in(random, 1, 20);
  c.out_channels = random_in(random, 1, 36);
  if (shape == 1) {
    c.group = random_in(random, 2, 4);
    in = c.group * random_in(random, 1, 6);
    c.out_channels = c.group * random_in(random, 1, 9);
  } else if (shape == 2) {
    c.group = in;
    c.out_channels = in * random_in(random, 1, 2);
  } else if (shape == 3) {
    in = 1;
  }
  c.x = {random_in(random, 1, 3), in};
  for (size_t i = 0; i < spatial; ++i) {
    c.kernel.push_back(random_in(random, 1, 4));
    c.strides.push_back(random_in(random, 1, 3));
    c.dilations.push_back(random_in(random, 0, 2) == 0 ? 2 : 1);
    c.x.push_back(c.dilations[i] * (c.kernel[i] - 1) + 1 + random_in(random, 0, spatial == 3 ? 4 : 9));
  }
  for (size_t i = 0; i < 2 * spatial; ++i) c.pads.push_back(random_in(random, 0, 2));
  constexpr const char* modes[] = {"NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  c.auto_pad = modes[random() % 6];
  c.bias = random() % 2;
  c.residual = random() % 3 == 0;
  c.constant = random() % 4 != 0;
  c.activation = kActivations[random() % std::size(kActivations)];
  return c;
}

constexpr double kTolerance = 1e-5;

// ---- kernels ----

// A convolution with everything in its blob: packed weight, bias, residual, activation.
inline ConvCase rich_conv() {
  ConvCase c{{2, 6, 7, 7}, {3, 3}, {1, 2}, {1, 1}, {1, 0, 1, 1}};
  c.out_channels = 20;
  c.bias = c.residual = true;
  c.activation = kActivations[1];
  return c;
}

// Truncations and flips of every byte: refused as CORRUPT, or still a kernel that loads and answers to
// prepare.
inline void damage(const DeviceUnderTest& device, const Kernel& kernel, const Node& node) {
  for (size_t size = 0; size < kernel.blob.size(); ++size) {
    Kernel cut = kernel;
    cut.blob.resize(size);
    ASSERT_EQ(device.try_load(cut), REGIE_CORRUPT) << size;
    ASSERT_NE(take_failure(), "");
  }
  Kernel longer = kernel;
  longer.blob += '\0';
  ASSERT_EQ(device.try_load(longer), REGIE_CORRUPT);
  int loaded = 0;
  for (size_t at = 0; at < kernel.blob.size(); ++at) {
    for (int flip : {0x01, 0x80, 0xff}) {
      Kernel bad = kernel;
      bad.blob[at] = static_cast<char>(bad.blob[at] ^ flip);
      const regie_status code = device.try_load(bad);
      ASSERT_TRUE(code == REGIE_OK || code == REGIE_CORRUPT) << at << ": " << code;
      if (code != REGIE_OK) continue;
      ++loaded;
      try {
        device.run(bad, node);
      } catch (const std::runtime_error&) {
      }
    }
  }
  EXPECT_GT(loaded, 0);
}

// ---- allocations ----

inline regie::test::AllocCounter* counting = nullptr;
inline void count_launches(bool before, uint32_t launch) {
  if (launch == 0) return;  // the first may set things up
  before ? counting->start() : counting->stop();
}

inline void expect_no_allocation(const EngineUnderTest& engine, const DeviceUnderTest& device,
                                 const Node& node) {
  const Kernel kernel = engine.compile(node, 2);
  regie::test::AllocCounter counter;
  counting = &counter;
  DeviceUnderTest::Run how{2, 5};
  how.around = count_launches;
  device.run(kernel, node, how);
  counting = nullptr;
  EXPECT_EQ(counter.count(), 0u) << kernel.name << ": "
                                 << (counter.places().empty() ? "" : counter.places()[0]);
}

}  // namespace regie::test_backends
