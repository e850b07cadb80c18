// host_cpu's own kernels against the reference kernels, at random shapes.
#include <gtest/gtest.h>

#include <random>

#include "support/native_cases.h"

namespace {

using namespace regie::test_backends;

NodePtr unary(const char* op, std::mt19937_64& r, std::vector<Attr> attrs = {}, float scale = 4) {
  Ints d = random_dims(r, static_cast<size_t>(random_in(r, 1, 4)));
  TensorData x = random_floats(d, r());
  for (int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] *= scale;
  return std::make_unique<Node>(op, std::move(attrs), list({x}), list({zeros(REGIE_F32, d)}));
}
// Both operands broadcast, along any axes.
NodePtr binary(const char* op, std::mt19937_64& r, regie_elem result = REGIE_F32) {
  Ints y = random_dims(r, static_cast<size_t>(random_in(r, 1, 5)), 9), a = y, b = y;
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t which = random_in(r, 0, 4);
    if (which == 0) a[i] = 1;
    if (which == 1) b[i] = 1;
  }
  for (size_t i = 0; i < y.size(); ++i) y[i] = std::max(a[i], b[i]);
  if (random_in(r, 0, 3) == 0) {
    a[0] = y[0];
    b.erase(b.begin());
  }
  return std::make_unique<Node>(op, std::vector<Attr>{}, list({random_floats(a, r()), random_floats(b, r())}),
                                list({zeros(result, y)}));
}
NodePtr reduction(const char* op, std::mt19937_64& r) {
  Ints d = random_dims(r, static_cast<size_t>(random_in(r, 1, 4)), 12);
  const int64_t rank = static_cast<int64_t>(d.size()), first = random_in(r, 0, rank - 1),
                last = random_in(r, first, rank - 1), keep = random_in(r, 0, 1);
  Ints axes, y;
  for (int64_t i = 0; i < rank; ++i) {
    const bool in = i >= first && i <= last;
    if (in) axes.push_back(i);
    if (!in || keep) y.push_back(in ? 1 : d[static_cast<size_t>(i)]);
  }
  return std::make_unique<Node>(
      op, std::vector<Attr>{attr("keepdims", keep)},
      list({random_floats(d, r()), integers({static_cast<int64_t>(axes.size())}, axes)}),
      list({zeros(REGIE_F32, y)}));
}
NodePtr softmax(const char* op, std::mt19937_64& r) {
  Ints d = random_dims(r, 3, 40);
  return std::make_unique<Node>(op, std::vector<Attr>{attr("axis", random_in(r, -3, 2))},
                                list({random_floats(d, r())}), list({zeros(REGIE_F32, d)}));
}
NodePtr recurrent(const char* op, int64_t gates, std::mt19937_64& r, std::vector<Attr> attrs, int64_t t,
                  int64_t in) {
  const int64_t b = random_in(r, 1, 5), h = random_in(r, 1, 40);
  const char* directions[] = {"forward", "reverse", "bidirectional"};
  const int64_t which = random_in(r, 0, 2), d = which == 2 ? 2 : 1;
  attrs.push_back(attr("direction", directions[which]));
  attrs.push_back(attr("hidden_size", h));
  auto weights = [&](Ints dims) {
    TensorData w = random_floats(std::move(dims), r());
    for (int64_t i = 0; i < w.count(); ++i) w.as<float>()[i] *= 0.25f;
    return w;
  };
  const bool state = random_in(r, 0, 1) != 0;
  auto operands =
      list({random_floats({t, b, in}, r()), weights({d, gates * h, in}), weights({d, gates * h, h}),
            random_in(r, 0, 1) ? weights({d, 2 * gates * h}) : absent(), absent(),
            state ? random_floats({d, b, h}, r()) : absent()});
  auto results = list({zeros(REGIE_F32, {t, d, b, h}), zeros(REGIE_F32, {d, b, h})});
  if (gates == 4) {
    operands.push_back(state ? random_floats({d, b, h}, r()) : absent());
    results.push_back(zeros(REGIE_F32, {d, b, h}));
  }
  return std::make_unique<Node>(op, std::move(attrs), std::move(operands), std::move(results));
}
NodePtr recurrent(const char* op, int64_t gates, std::mt19937_64& r, std::vector<Attr> attrs) {
  const int64_t t = random_in(r, 1, 5), in = random_in(r, 1, 20);
  return recurrent(op, gates, r, std::move(attrs), t, in);
}
NodePtr attention(std::mt19937_64& r) {
  const int64_t b = random_in(r, 1, 3), heads = random_in(r, 1, 3), s = random_in(r, 1, 70),
                t = random_in(r, 1, 70), d = random_in(r, 1, 33), e = random_in(r, 1, 33),
                turned = random_in(r, 0, 1);
  TensorData mask = absent();
  if (random_in(r, 0, 1))
    mask = random_floats({random_in(r, 0, 1) ? b : 1, 1, random_in(r, 0, 1) ? s : 1, t}, r());
  return std::make_unique<Node>(
      "regie.Attention", std::vector<Attr>{attr("scale", 0.3), attr("transpose_k", turned)},
      list({random_floats({b, heads, s, d}, r()),
            random_floats(turned ? Ints{b, heads, d, t} : Ints{b, heads, t, d}, r()),
            random_floats({b, heads, t, e}, r()), mask}),
      list({zeros(REGIE_F32, {b, heads, s, e})}));
}
NodePtr transpose(std::mt19937_64& r) {
  Ints d = random_dims(r, static_cast<size_t>(random_in(r, 1, 5)), 24), perm(d.size()), y(d.size());
  for (size_t i = 0; i < d.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::shuffle(perm.begin(), perm.end(), r);
  for (size_t i = 0; i < d.size(); ++i) y[i] = d[static_cast<size_t>(perm[i])];
  return std::make_unique<Node>("Transpose", std::vector<Attr>{attr("perm", perm)},
                                list({random_floats(d, r())}), list({zeros(REGIE_F32, y)}));
}
NodePtr slice(std::mt19937_64& r) {
  Ints d = random_dims(r, 3, 12), starts, ends, axes, steps, y = d;
  for (int64_t a = 0; a < 3; ++a) {
    const int64_t n = d[static_cast<size_t>(a)],
                  step = random_in(r, 0, 1) ? random_in(r, 1, 3) : -random_in(r, 1, 2);
    const int64_t from = random_in(r, 0, n - 1),
                  to = step > 0 ? random_in(r, from, n) : random_in(r, 0, from);
    axes.push_back(a);
    starts.push_back(from);
    ends.push_back(to);
    steps.push_back(step);
    y[static_cast<size_t>(a)] = std::max<int64_t>(1, (to - from + step + (step > 0 ? -1 : 1)) / step);
    if ((to - from + step + (step > 0 ? -1 : 1)) / step < 1) {  // never empty here
      starts.back() = 0;
      ends.back() = n;
      steps.back() = 1;
      y[static_cast<size_t>(a)] = n;
    }
  }
  return std::make_unique<Node>("Slice", std::vector<Attr>{},
                                list({random_floats(d, r()), integers({3}, starts), integers({3}, ends),
                                      integers({3}, axes), integers({3}, steps)}),
                                list({zeros(REGIE_F32, y)}));
}
NodePtr pad(std::mt19937_64& r) {
  Ints d = random_dims(r, 3, 6), y = d, pads(6);
  for (size_t i = 0; i < 3; ++i) {
    pads[i] = random_in(r, -1, 3);
    pads[3 + i] = random_in(r, 0, 2);
    if (d[i] + pads[i] < 1) pads[i] = 0;
    y[i] += pads[i] + pads[3 + i];
  }
  return std::make_unique<Node>(
      "Pad", std::vector<Attr>{attr("mode", "constant")},
      list({random_floats(d, r()), integers({6}, pads), constant(floats({}, {1.5f}))}),
      list({zeros(REGIE_F32, y)}));
}
NodePtr pad_by_itself(std::mt19937_64& r) {
  static constexpr const char* kModes[] = {"reflect", "edge", "wrap"};
  const char* mode = kModes[static_cast<size_t>(random_in(r, 0, 2))];
  const bool some = random_in(r, 0, 1) != 0;  // by axes
  Ints d = random_dims(r, 3, 6), y = d, axes = some ? Ints{-1, 0} : Ints{0, 1, 2}, pads(2 * axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + 3 : axes[i]);
    const int64_t most = std::string_view(mode) == "edge" ? 4 : d[axis] - 1;
    for (size_t side : {i, axes.size() + i})
      y[axis] += pads[side] = random_in(r, 0, std::min<int64_t>(most, 3));
  }
  auto operands = list({random_floats(d, r()), integers({static_cast<int64_t>(pads.size())}, pads)});
  if (some) {
    operands.push_back(constant(floats({}, {7})));  // of no meaning here
    operands.push_back(integers({2}, axes));
  }
  return std::make_unique<Node>("Pad", std::vector<Attr>{attr("mode", mode)}, std::move(operands),
                                list({zeros(REGIE_F32, y)}));
}
NodePtr gather(std::mt19937_64& r) {
  Ints d = random_dims(r, 3, 9);
  const int64_t axis = random_in(r, 0, 2), n = d[static_cast<size_t>(axis)];
  TensorData index = zeros(REGIE_I64, random_dims(r, 2, 5));
  for (int64_t i = 0; i < index.count(); ++i) index.as<int64_t>()[i] = random_in(r, -n, n - 1);
  Ints y(d.begin(), d.begin() + axis);
  y.insert(y.end(), index.dims.begin(), index.dims.end());
  y.insert(y.end(), d.begin() + axis + 1, d.end());
  return std::make_unique<Node>("Gather", std::vector<Attr>{attr("axis", axis)},
                                list({random_floats(d, r()), index}), list({zeros(REGIE_F32, y)}));
}
NodePtr layer_norm(std::mt19937_64& r) {
  Ints d = random_dims(r, 3, 70);
  const TensorData scale = constant(random_floats({d[2]}, r())), shift = constant(random_floats({d[2]}, r()));
  return std::make_unique<Node>("LayerNormalization", std::vector<Attr>{attr("axis", int64_t{-1})},
                                list({random_floats(d, r()), scale, shift}), list({zeros(REGIE_F32, d)}));
}
NodePtr resize(const char* mode, std::mt19937_64& r) {
  const char* coordinates[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  const char* roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const Ints d = random_dims(r, 4, 9);
  const bool by_scales = random_in(r, 0, 1) != 0;
  Ints y{d[0], d[1], random_in(r, 1, 20), random_in(r, 1, 20)};
  std::vector<float> scales(4, 1.f);
  if (by_scales)
    for (size_t i : {2u, 3u}) {  // quarters that give at least one element
      scales[i] = static_cast<float>(random_in(r, (4 + d[i] - 1) / d[i], 12)) / 4;
      y[i] = static_cast<int64_t>(scales[i] * static_cast<float>(d[i]));
    }
  return std::make_unique<Node>(
      "Resize",
      std::vector<Attr>{attr("mode", mode),
                        attr("coordinate_transformation_mode", coordinates[random_in(r, 0, 3)]),
                        attr("nearest_mode", roundings[random_in(r, 0, 3)]),
                        attr("corners", random_in(r, 0, 1) ? "scaled" : "whole")},
      list({random_floats(d, r()), absent(), by_scales ? constant(floats({4}, scales)) : absent(),
            by_scales ? absent() : integers({4}, y)}),
      list({zeros(REGIE_F32, y)}));
}
// Strides, dilation, groups, padding of both kinds.
NodePtr conv_transpose(std::mt19937_64& r) {
  const int64_t g = random_in(r, 1, 3), in = g * random_in(r, 1, 5), out = random_in(r, 1, 6);
  const Ints k{random_in(r, 1, 3), random_in(r, 1, 3)}, s{random_in(r, 1, 3), random_in(r, 1, 3)},
      d{random_in(r, 1, 2), random_in(r, 1, 2)};
  Ints x{random_in(r, 1, 2), in, random_in(r, 2, 6), random_in(r, 2, 6)}, y{x[0], out * g, 0, 0}, pads(4),
      extra(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t span = d[i] * (k[i] - 1);
    pads[i] = random_in(r, 0, span / 2);
    pads[2 + i] = random_in(r, 0, span / 2);
    extra[i] = random_in(r, 0, std::min(pads[2 + i], s[i] - 1));
    y[2 + i] = (x[2 + i] - 1) * s[i] + span + 1 - pads[i] - pads[2 + i] + extra[i];
  }
  return std::make_unique<Node>(
      "ConvTranspose",
      std::vector<Attr>{attr("group", g), attr("kernel_shape", k), attr("strides", s), attr("dilations", d),
                        attr("pads", pads), attr("output_padding", extra)},
      list({random_floats(x, r()), constant(random_floats({in, out, k[0], k[1]}, r())),
            random_in(r, 0, 1) ? constant(random_floats({out * g}, r())) : absent()}),
      list({zeros(REGIE_F32, y)}));
}

const Case kCases[] = {
    {"Abs", [](std::mt19937_64& r) { return unary("Abs", r); }},
    {"Add", [](std::mt19937_64& r) { return binary("Add", r); }},
    {"Attention", attention},
    {"BatchNormalization",
     [](std::mt19937_64& r) { return by_channel("BatchNormalization", r, {}, random_in(r, 1, 33)); }},
    {"Ceil", [](std::mt19937_64& r) { return unary("Ceil", r); }},
    {"Concat", [](std::mt19937_64& r) { return concat(r, 3, random_in(r, 0, 2), 1); }},
    {"PRelu", [](std::mt19937_64& r) { return binary("PRelu", r); }},
    {"ConvTranspose", conv_transpose},
    {"Elu", [](std::mt19937_64& r) { return unary("Elu", r, {attr("alpha", 0.5)}); }},
    {"Erf", [](std::mt19937_64& r) { return unary("Erf", r); }},
    {"Exp", [](std::mt19937_64& r) { return unary("Exp", r, {}, 2); }},
    {"Floor", [](std::mt19937_64& r) { return unary("Floor", r); }},
    {"FusedBatchNormalization",
     [](std::mt19937_64& r) {
       return by_channel("regie.FusedBatchNormalization", r, {attr("activation", "Relu")},
                         random_in(r, 1, 33));
     }},
    {"GRU",
     [](std::mt19937_64& r) { return recurrent("GRU", 3, r, {attr("linear_before_reset", int64_t{0})}); }},
    {"GRUBeforeReset",
     [](std::mt19937_64& r) { return recurrent("GRU", 3, r, {attr("linear_before_reset", int64_t{1})}); }},
    {"Gather", gather},
    {"Gelu", [](std::mt19937_64& r) { return unary("Gelu", r, {attr("approximate", "none")}); }},
    {"GeluTanh", [](std::mt19937_64& r) { return unary("Gelu", r, {attr("approximate", "tanh")}); }},
    {"Greater", [](std::mt19937_64& r) { return binary("Greater", r, REGIE_BOOL); }},
    {"HardSigmoid",
     [](std::mt19937_64& r) {
       return unary("HardSigmoid", r, {attr("alpha", 0.2), attr("beta", 0.5)});
     }},
    {"HardSwish", [](std::mt19937_64& r) { return unary("HardSwish", r); }},
    {"InstanceNormalization",
     [](std::mt19937_64& r) { return by_channel("InstanceNormalization", r, {}, random_in(r, 1, 9)); }},
    {"LSTM", [](std::mt19937_64& r) { return recurrent("LSTM", 4, r, {}); }},
    {"LSTMOfManySteps",
     [](std::mt19937_64& r) {
       return recurrent("LSTM", 4, r, {}, random_in(r, 8, 40), random_in(r, 1, 90));
     }},
    {"LSTMOfWideInputs",
     [](std::mt19937_64& r) {
       return recurrent("LSTM", 4, r, {}, random_in(r, 8, 9), random_in(r, 1020, 1050));
     }},
    {"LayerNormalization", layer_norm},
    {"LeakyRelu", [](std::mt19937_64& r) { return unary("LeakyRelu", r, {attr("alpha", 0.125)}); }},
    {"Less", [](std::mt19937_64& r) { return binary("Less", r, REGIE_BOOL); }},
    {"LogSoftmax", [](std::mt19937_64& r) { return softmax("LogSoftmax", r); }},
    {"Max", [](std::mt19937_64& r) { return binary("Max", r); }},
    {"Min", [](std::mt19937_64& r) { return binary("Min", r); }},
    {"Mul", [](std::mt19937_64& r) { return binary("Mul", r); }},
    {"Neg", [](std::mt19937_64& r) { return unary("Neg", r); }},
    {"Pad", pad},
    {"PadByItself", pad_by_itself},
    {"ReduceL1", [](std::mt19937_64& r) { return reduction("ReduceL1", r); }},
    {"ReduceL2", [](std::mt19937_64& r) { return reduction("ReduceL2", r); }},
    {"ReduceMax", [](std::mt19937_64& r) { return reduction("ReduceMax", r); }},
    {"ReduceMean", [](std::mt19937_64& r) { return reduction("ReduceMean", r); }},
    {"ReduceMin", [](std::mt19937_64& r) { return reduction("ReduceMin", r); }},
    {"ReduceProd", [](std::mt19937_64& r) { return reduction("ReduceProd", r); }},
    {"ReduceSum", [](std::mt19937_64& r) { return reduction("ReduceSum", r); }},
    {"ReduceSumSquare", [](std::mt19937_64& r) { return reduction("ReduceSumSquare", r); }},
    {"Relu", [](std::mt19937_64& r) { return unary("Relu", r); }},
    {"ResizeLinear", [](std::mt19937_64& r) { return resize("linear", r); }},
    {"ResizeNearest", [](std::mt19937_64& r) { return resize("nearest", r); }},
    {"Round", [](std::mt19937_64& r) { return unary("Round", r); }},
    {"Sigmoid", [](std::mt19937_64& r) { return unary("Sigmoid", r); }},
    {"Slice", slice},
    {"Softmax", [](std::mt19937_64& r) { return softmax("Softmax", r); }},
    {"Softplus", [](std::mt19937_64& r) { return unary("Softplus", r); }},
    {"Sub", [](std::mt19937_64& r) { return binary("Sub", r); }},
    {"Tanh", [](std::mt19937_64& r) { return unary("Tanh", r); }},
    {"Transpose", transpose},
};

class Native : public testing::TestWithParam<Case> {};

TEST_P(Native, EqualsTheReference) {
  need_reference_kernels();
  HostCpu cpu;
  std::mt19937_64 random(4711);
  int own = 0;
  for (int n = 0; n < 12; ++n) {
    SCOPED_TRACE(n);
    NodePtr node = GetParam().make(random);
    const auto answer = cpu.engine.ask(*node);
    ASSERT_TRUE(answer.can) << answer.reason;
    node->run_reference();
    const uint32_t threads = 1 + n % 2;
    const Kernel kernel = cpu.engine.compile(*node, threads);
    own += !(kernel.flags & REGIE_KERNEL_REFERENCE);
    ASSERT_LE(difference(node->results, cpu.device.run(kernel, *node, {threads, 1})), kNativeTolerance)
        << kernel.name;
    ASSERT_GE(difference(node->results, cpu.device.run(kernel, *node, {threads, 1})), 0) << "types or shapes";
  }
  EXPECT_GE(own, 8) << "the reference kernel did most of them";
}
INSTANTIATE_TEST_SUITE_P(Of, Native, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(NativeValues, NotANumberAndInfinityGoThrough) {
  need_reference_kernels();
  HostCpu cpu;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op :
       {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Exp", "Erf", "HardSigmoid", "Log", "Sqrt", "Abs"}) {
    SCOPED_TRACE(op);
    // Defaults are explicit from placement on.
    std::vector<Attr> attrs;
    if (op == std::string("LeakyRelu")) attrs = {attr("alpha", 0.01)};
    if (op == std::string("HardSigmoid")) attrs = {attr("alpha", 0.2), attr("beta", 0.5)};
    Node node(op, attrs, {floats({20}, {nan, inf, -inf, 0.f,  -0.f,  1e-40f, 100.f,  -100.f, 88.f, -88.f,
                                        1.f, nan, inf,  -inf, 3e38f, 90.f,   -104.f, 2.f,    nan,  5.f})},
              {zeros(REGIE_F32, {20})});
    node.run_reference();
    const auto got = cpu.device.run(cpu.engine.compile(node), node);
    for (int64_t i = 0; i < 20; ++i) {
      const float want = node.results[0].as<float>()[i], is = got[0].as<float>()[i];
      if (std::isnan(want))
        EXPECT_TRUE(std::isnan(is)) << i << ": " << is;
      else if (std::isinf(want))
        EXPECT_EQ(want, is) << i;
      else
        EXPECT_NEAR(is / std::max(1.f, std::fabs(want)), want / std::max(1.f, std::fabs(want)), 3e-6) << i;
    }
  }
}

}  // namespace
