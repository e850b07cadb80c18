// Conv, ConvTranspose and regie.FusedConv, with any number of spatial axes.
#include <algorithm>

#include "functors.h"
#include "op.h"
#include "window.h"

namespace regie::ops {
namespace {

size_t spatial_rank(const Infer& infer) {
  if (infer.rank(0) < 3)
    infer.bad("the input has rank " + std::to_string(infer.rank(0)) + "; it needs at least 3");
  if (infer.rank(0) != infer.rank(1))
    infer.bad("the input has rank " + std::to_string(infer.rank(0)) + ", the weight " +
              std::to_string(infer.rank(1)));
  return static_cast<size_t>(infer.rank(0) - 2);
}

int64_t group_of(std::string_view op, const sdk::Attrs& attrs) {
  int64_t group = attrs.integer("group", 1);
  if (group < 1)
    throw sdk::Failure(REGIE_INVALID_MODEL,
                       std::string(op) + ": attribute 'group' is " + std::to_string(group));
  return group;
}

void check_bias(const Infer& infer, regie_dim channels) {
  if (!infer.has(2)) return;
  if (infer.rank(2) != 1 || !infer.agree(infer.shape(2)[0], channels))
    infer.bad("the bias has the shape " + infer.print(infer.shape(2)) + "; it needs [" +
              infer.dims.print(channels) + "]");
}

void check_kernel_shape(const Infer& infer, const Window& window) {
  for (size_t i = 0; i < window.kernel.size(); ++i)
    if (!infer.agree(window.kernel[i], infer.shape(1)[2 + i]))
      infer.bad("attribute 'kernel_shape' does not fit the weight's shape " + infer.print(infer.shape(1)));
}

void infer_conv(const Infer& infer) {
  size_t spatial = spatial_rank(infer);
  auto x = infer.shape(0), w = infer.shape(1);
  int64_t group = group_of(infer.op, infer.attrs);
  Window window(infer.op, infer.attrs, spatial);
  check_kernel_shape(infer, window);
  regie_dim channels = infer.dims.mul(w[1], group);
  if (!infer.agree(x[1], channels))
    infer.bad("the weight has " + infer.dims.print(channels) + " input channels (" + std::to_string(group) +
              " groups), the input has " + infer.dims.print(x[1]));
  if (w[0] >= 0 && w[0] % group != 0)
    infer.bad(std::to_string(w[0]) + " output channels cannot be split into " + std::to_string(group) +
              " groups");
  check_bias(infer, w[0]);
  Shape y{x[0], w[0]};
  for (size_t i = 0; i < spatial; ++i) y.push_back(window.result_dim(infer, i, x[2 + i], w[2 + i]));
  infer.result(0, infer.elem(0), y);
}

void infer_fused_conv(const Infer& infer) {
  Activation(infer.op, infer.attrs);
  infer_conv(infer);
}

// Sizes that convolution and its transpose have in common. `in`, `out`: channels a group.
struct Sizes {
  int64_t batch, group, in, out;
};

template <class T>
KernelPtr conv_kernel(Prepare& p, const Window& window, const Sizes& sizes) {
  using A = Compute<T>;
  Taps taps(window, p.out_shape(0).subspan(2), p.shape(0).subspan(2));
  bool bias = p.has(2), residual = p.has(3);
  if (residual) {
    Index y = p.out_shape(0), r = p.shape(3);
    if (!std::equal(y.begin(), y.end(), r.begin(), r.end()))
      p.bad("the residual has the shape " + print_shape(r) + ", the result " + print_shape(y));
  }
  constexpr bool direct = std::is_same_v<A, T>;
  if (!direct) p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(A);
  return make_kernel([=, activation = Activation(p.op, p.attrs)](const Call& call) {
    const T *x = call.in<T>(0), *w = call.in<T>(1);
    int64_t area = taps.dense_size(), input_area = taps.strided_size(), outputs = sizes.group * sizes.out;
    for (int64_t plane = 0; plane < sizes.batch * outputs; ++plane) {
      int64_t m = plane % outputs, n = plane / outputs, group = m / sizes.out;
      T* y = call.out<T>(0) + plane * area;
      A* sum;
      if constexpr (direct) {
        sum = y;
      } else {
        sum = call.scratch<A>();
      }
      std::fill_n(sum, area, bias ? A(call.in<T>(2)[m]) : A(0));
      for (int64_t c = 0; c < sizes.in; ++c) {
        const T* from = x + ((n * sizes.group + group) * sizes.in + c) * input_area;
        const T* weight = w + (m * sizes.in + c) * taps.count();
        for (int64_t tap = 0; tap < taps.count(); ++tap) {
          A factor = weight[tap];
          taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i) sum[out + i] += factor * A(from[in + i * step]);
          });
        }
      }
      if (residual) {
        const T* r = call.in<T>(3) + plane * area;
        for (int64_t i = 0; i < area; ++i) sum[i] += A(r[i]);
      }
      activation.apply(sum, area);
      if constexpr (!direct)
        for (int64_t i = 0; i < area; ++i) y[i] = T(sum[i]);
    }
  });
}

KernelPtr prepare_conv(Prepare& p) {
  Index x = p.shape(0), w = p.shape(1);
  if (x.size() < 3 || x.size() != w.size()) p.bad("input and weight must have one rank of at least 3");
  Window window(p.op, p.attrs, x.size() - 2);
  window.kernel.assign(w.begin() + 2, w.end());
  p.expect_result(0, window.resolved_result(x[0], w[0], x.subspan(2)));
  int64_t group = group_of(p.op, p.attrs);
  if (x[1] != w[1] * group || w[0] % group != 0 || (p.has(2) && sdk::count_of(p.in(2)) != w[0]))
    p.bad("the channels of input, weight and bias do not fit");
  Sizes sizes{x[0], group, w[1], w[0] / group};
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() { return conv_kernel<T>(p, window, sizes); });
}

// ---- ConvTranspose ----

struct Transposed {
  Window window;
  std::vector<int64_t> output_padding, output_shape;  // output_shape: empty if absent

  Transposed(std::string_view op, const sdk::Attrs& attrs, size_t rank)
      : window(op, attrs, rank), output_padding(rank, 0) {
    auto check = [&](std::span<const int64_t> list, std::string_view name) {
      if (list.size() != rank || std::any_of(list.begin(), list.end(), [](int64_t n) { return n < 0; }))
        throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": attribute '" + std::string(name) +
                                                    "' needs " + std::to_string(rank) +
                                                    " numbers of at least 0");
    };
    if (auto given = attrs.integers("output_padding"); given && !given->empty()) {
      check(*given, "output_padding");
      output_padding.assign(given->begin(), given->end());
    }
    if (auto given = attrs.integers("output_shape"); given && !given->empty()) {
      check(*given, "output_shape");
      output_shape.assign(given->begin(), given->end());
    }
  }
  bool same() const { return window.auto_pad == Window::kSameUpper || window.auto_pad == Window::kSameLower; }
  // Pads follow from the size of the result where that is given.
  void resolve(Index input) {
    for (size_t i = 0; i < window.rank(); ++i) {
      if (output_shape.empty() && !same()) continue;
      int64_t full = window.strides[i] * (input[i] - 1) + output_padding[i] + window.extent(i);
      int64_t wanted = output_shape.empty() ? input[i] * window.strides[i] : output_shape[i];
      int64_t total = std::max<int64_t>(0, full - wanted);
      window.begin[i] = window.auto_pad == Window::kSameUpper ? total / 2 : total - total / 2;
      window.end[i] = total - window.begin[i];
    }
  }
};

void infer_conv_transpose(const Infer& infer) {
  size_t spatial = spatial_rank(infer);
  auto x = infer.shape(0), w = infer.shape(1);
  int64_t group = group_of(infer.op, infer.attrs);
  Transposed t(infer.op, infer.attrs, spatial);
  check_kernel_shape(infer, t.window);
  if (!infer.agree(x[1], w[0]))
    infer.bad("the weight has " + infer.dims.print(w[0]) + " input channels, the input has " +
              infer.dims.print(x[1]));
  if (w[0] >= 0 && w[0] % group != 0)
    infer.bad(std::to_string(w[0]) + " input channels cannot be split into " + std::to_string(group) +
              " groups");
  const sdk::Dims& d = infer.dims;
  regie_dim channels = d.mul(w[1], group);
  check_bias(infer, channels);
  Shape y{x[0], channels};
  for (size_t i = 0; i < spatial; ++i) {
    const Window& v = t.window;
    regie_dim extent = d.add(d.mul(d.sub(w[2 + i], 1), v.dilations[i]), 1);
    regie_dim full = d.add(d.add(d.mul(d.sub(x[2 + i], 1), v.strides[i]), extent), t.output_padding[i]);
    if (!t.output_shape.empty()) {
      y.push_back(t.output_shape[i]);
    } else if (t.same()) {
      y.push_back(d.mul(x[2 + i], v.strides[i]));
    } else {
      y.push_back(d.sub(full, v.begin[i] + v.end[i]));
    }
  }
  infer.result(0, infer.elem(0), y);
}

template <class T>
KernelPtr conv_transpose_kernel(Prepare& p, const Window& window, const Sizes& sizes) {
  using A = Compute<T>;
  Taps taps(window, p.shape(0).subspan(2), p.out_shape(0).subspan(2));
  bool bias = p.has(2);
  constexpr bool direct = std::is_same_v<A, T>;
  if (!direct) p.scratch_bytes = static_cast<uint64_t>(taps.strided_size()) * sizeof(A);
  return make_kernel([=](const Call& call) {
    const T *x = call.in<T>(0), *w = call.in<T>(1);
    int64_t area = taps.strided_size(), input_area = taps.dense_size(), outputs = sizes.group * sizes.out;
    for (int64_t plane = 0; plane < sizes.batch * outputs; ++plane) {
      int64_t m = plane % outputs, n = plane / outputs, group = m / sizes.out;
      T* y = call.out<T>(0) + plane * area;
      A* sum;
      if constexpr (direct) {
        sum = y;
      } else {
        sum = call.scratch<A>();
      }
      std::fill_n(sum, area, bias ? A(call.in<T>(2)[m]) : A(0));
      for (int64_t c = 0; c < sizes.in; ++c) {
        int64_t channel = group * sizes.in + c;
        const T* from = x + (n * sizes.group * sizes.in + channel) * input_area;
        const T* weight = w + (channel * sizes.out + m % sizes.out) * taps.count();
        for (int64_t tap = 0; tap < taps.count(); ++tap) {
          A factor = weight[tap];
          taps.rows(tap, [&](int64_t in, int64_t out, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i) sum[out + i * step] += factor * A(from[in + i]);
          });
        }
      }
      if constexpr (!direct)
        for (int64_t i = 0; i < area; ++i) y[i] = T(sum[i]);
    }
  });
}

KernelPtr prepare_conv_transpose(Prepare& p) {
  Index x = p.shape(0), w = p.shape(1);
  if (x.size() < 3 || x.size() != w.size()) p.bad("input and weight must have one rank of at least 3");
  Transposed t(p.op, p.attrs, x.size() - 2);
  t.window.kernel.assign(w.begin() + 2, w.end());
  t.resolve(x.subspan(2));
  int64_t group = group_of(p.op, p.attrs);
  std::vector<int64_t> y{x[0], w[1] * group};
  for (size_t i = 0; i < t.window.rank(); ++i) {
    const Window& v = t.window;
    int64_t full = v.strides[i] * (x[2 + i] - 1) + t.output_padding[i] + v.extent(i);
    int64_t same = t.same() ? x[2 + i] * v.strides[i] : full - v.begin[i] - v.end[i];
    y.push_back(t.output_shape.empty() ? same : t.output_shape[i]);
  }
  p.expect_result(0, y);
  if (x[1] != w[0] || w[0] % group != 0 || (p.has(2) && sdk::count_of(p.in(2)) != y[1]))
    p.bad("the channels of input, weight and bias do not fit");
  Sizes sizes{x[0], group, w[0] / group, w[1]};
  return p.dispatch(Floats(), p.in(0).elem,
                    [&]<class T>() { return conv_transpose_kernel<T>(p, t.window, sizes); });
}

constexpr Op table[] = {
    {"Conv", 0, infer_conv, prepare_conv},
    {"ConvTranspose", 0, infer_conv_transpose, prepare_conv_transpose},
    {"regie.FusedConv", 0, infer_fused_conv, prepare_conv},
};

}  // namespace

std::span<const Op> conv_ops() { return table; }

}  // namespace regie::ops
