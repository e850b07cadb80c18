// Normalisations over parts of a tensor: Layer, RMS, Instance, Group, Lp, mean and variance, LRN; Hardmax.
//
// Sums are kept in double; what is written is computed in the type that the elements compute in.
#include <algorithm>
#include <cmath>
#include <vector>

#include "broadcast.h"
#include "map.h"

namespace regie::ops {
namespace {

struct Moments {
  double mean, inverse;  // 1 / sqrt(variance + epsilon)
};

// In two passes, as the difference of large squares would lose what is small.
template <class T>
Moments moments(const T* x, int64_t count, double epsilon) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(Compute<T>(x[i]));
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(Compute<T>(x[i])) - mean;
    squares += d * d;
  }
  return {mean, 1 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

// ---- LayerNormalization, RMSNormalization ----

void infer_layer_norm(const Infer& infer) {
  auto x = infer.shape(0);
  const size_t axis = infer.axis_attribute(-1);
  for (uint32_t i = 1; i <= 2; ++i) check_addend(infer, i, x.subspan(axis));
  infer.result(0, infer.elem(0), x);
  Shape rest(x.begin(), x.end());
  std::fill(rest.begin() + static_cast<std::ptrdiff_t>(axis), rest.end(), 1);
  infer.result(1, REGIE_F32, rest);
  infer.result(2, REGIE_F32, rest);
}

template <bool centred>
KernelPtr prepare_layer_norm(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const size_t axis = p.axis_attribute(-1);
  Index part = x.subspan(axis);
  int64_t rows = 1, size = 1;
  for (size_t i = 0; i < x.size(); ++i) (i < axis ? rows : size) *= x[i];
  const double epsilon = p.attrs.number("epsilon", 1e-5);
  const bool shift = p.has(2), mean_out = p.wants(1), inverse_out = p.wants(2);
  for (uint32_t i = 1; i <= (shift ? 2u : 1u); ++i)
    if (p.in(i).elem != p.in(0).elem) p.bad("the parameters must have the input's type");
  Walk<2> scales(part, {broadcast_strides(p.op, p.shape(1), part), dense_strides(part)}), shifts;
  if (shift) shifts = Walk<2>(part, {broadcast_strides(p.op, p.shape(2), part), dense_strides(part)});
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    using A = Compute<T>;
    p.scratch_bytes = static_cast<uint64_t>(2 * size) * sizeof(A);
    return make_kernel([=](const Call& call) {
      A *scale = call.scratch<A>(), *bias = scale + size;
      std::fill_n(bias, size, A(0));
      auto spread = [&](const Walk<2>& walk, uint32_t operand, A* to) {
        walk.rows([&](const auto& at, int64_t n, const auto& step) {
          for (int64_t i = 0; i < n; ++i)
            to[at[1] + i * step[1]] = A(call.in<T>(operand)[at[0] + i * step[0]]);
        });
      };
      spread(scales, 1, scale);
      if (shift) spread(shifts, 2, bias);
      for (int64_t r = 0; r < rows; ++r) {
        const T* from = call.in<T>(0) + r * size;
        T* to = call.out<T>(0) + r * size;
        Moments m{0, 0};
        if constexpr (centred) {
          m = moments(from, size, epsilon);
        } else {
          double squares = 0;
          for (int64_t i = 0; i < size; ++i) {
            const double v = static_cast<double>(A(from[i]));
            squares += v * v;
          }
          m.inverse = 1 / std::sqrt(squares / static_cast<double>(size) + epsilon);
        }
        const A mean = static_cast<A>(m.mean), inverse = static_cast<A>(m.inverse);
        for (int64_t i = 0; i < size; ++i) to[i] = T((A(from[i]) - mean) * inverse * scale[i] + bias[i]);
        if (mean_out) call.out<float>(1)[r] = static_cast<float>(m.mean);
        if (inverse_out) call.out<float>(2)[r] = static_cast<float>(m.inverse);
      }
    });
  });
}

// ---- InstanceNormalization, GroupNormalization ----

void infer_channel_norm(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() < 2) infer.bad("the input has rank " + std::to_string(x.size()) + "; it needs at least 2");
  for (uint32_t i = 1; i <= 2; ++i)
    if (infer.rank(i) != 1 || !infer.agree(infer.shape(i)[0], x[1]))
      infer.bad("operand " + std::to_string(i) + " has the shape " + infer.print(infer.shape(i)) +
                "; it needs [" + infer.dims.print(x[1]) + "]");
  if (infer.attrs.has("num_groups")) {
    const int64_t groups = infer.attrs.integer("num_groups", 1);
    auto channels = infer.number(x[1]);
    if (groups < 1 || (channels && *channels % groups != 0))
      infer.bad(infer.dims.print(x[1]) + " channels cannot be split into " + std::to_string(groups) +
                " groups");
  }
  infer.result(0, infer.elem(0), x);
}

KernelPtr prepare_channel_norm(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  if (x.size() < 2) p.bad("the input needs a rank of at least 2");
  const int64_t channels = x[1],
                groups = p.attrs.has("num_groups") ? p.attrs.integer("num_groups", 1) : channels;
  int64_t area = 1;
  for (int64_t d : x.subspan(2)) area *= d;
  for (uint32_t i = 1; i <= 2; ++i)
    if (sdk::count_of(p.in(i)) != channels || p.in(i).elem != p.in(0).elem)
      p.bad("the parameters do not fit");
  if (channels != 0 && (groups < 1 || channels % groups != 0))
    p.bad("the channels do not split into the groups");
  const double epsilon = p.attrs.number("epsilon", 1e-5);
  const int64_t each = channels == 0 ? 0 : channels / groups;
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, batch = x[0]](const Call& call) {
      using A = Compute<T>;
      const T *scale = call.in<T>(1), *bias = call.in<T>(2);
      for (int64_t g = 0; g < batch * groups; ++g) {
        const T* from = call.in<T>(0) + g * each * area;
        T* to = call.out<T>(0) + g * each * area;
        const Moments m = moments(from, each * area, epsilon);
        for (int64_t c = 0; c < each; ++c) {
          const int64_t channel = g % groups * each + c;
          const A factor = static_cast<A>(static_cast<double>(A(scale[channel])) * m.inverse);
          const A mean = static_cast<A>(m.mean), shift = A(bias[channel]);
          for (int64_t i = c * area; i < (c + 1) * area; ++i) to[i] = T((A(from[i]) - mean) * factor + shift);
        }
      }
    });
  });
}

// ---- MeanVarianceNormalization ----

KernelPtr prepare_mean_variance(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  check_rank(p.op, x.size());
  std::vector<int64_t> axes{0, 2, 3};
  if (auto given = p.attrs.integers("axes")) axes.assign(given->begin(), given->end());
  Dims dense = dense_strides(x), to{};
  std::vector<bool> reduced(x.size(), false);
  for (int64_t a : axes) reduced[static_cast<size_t>(p.axis(a, static_cast<int64_t>(x.size())))] = true;
  int64_t groups = 1;
  for (size_t i = x.size(); i-- > 0;)
    if (!reduced[i]) to[i] = groups, groups *= x[i];
  Walk<2> walk(x, {dense, to});
  const int64_t count = sdk::count_of(p.in(0));
  p.scratch_bytes = static_cast<uint64_t>(2 * groups) * sizeof(double);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      double *mean = call.scratch<double>(), *deviation = mean + groups;
      std::fill_n(mean, 2 * groups, 0.0);
      const auto each = groups == 0 ? 0.0 : static_cast<double>(count / groups);
      auto visit = [&](auto&& f) {
        walk.rows([&](const auto& at, int64_t n, const auto& step) {
          for (int64_t i = 0; i < n; ++i) f(at[0] + i * step[0], at[1] + i * step[1]);
        });
      };
      const T* from = call.in<T>(0);
      auto value = [&](int64_t i) { return static_cast<double>(Compute<T>(from[i])); };
      visit([&](int64_t i, int64_t g) { mean[g] += value(i); });
      for (int64_t g = 0; g < groups; ++g) mean[g] /= each;
      visit([&](int64_t i, int64_t g) { deviation[g] += (value(i) - mean[g]) * (value(i) - mean[g]); });
      for (int64_t g = 0; g < groups; ++g) deviation[g] = std::sqrt(deviation[g] / each);
      visit([&](int64_t i, int64_t g) {
        call.out<T>(0)[i] = T(static_cast<Compute<T>>((value(i) - mean[g]) / (deviation[g] + 1e-9)));
      });
    });
  });
}

// ---- Along one axis: LpNormalization, Hardmax ----

void infer_along_axis(const Infer& infer) {
  infer.axis_attribute(-1);
  infer_same(infer);
}

KernelPtr prepare_lp_norm(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const Lines lines(x, p.axis_attribute(-1));
  const int64_t power = p.attrs.integer("p", 2);
  if (power != 1 && power != 2) p.bad("attribute 'p' must be 1 or 2");
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      lines.each([&](int64_t first) {
        double sum = 0;
        auto value = [&](int64_t i) {
          return static_cast<double>(Compute<T>(call.in<T>(0)[first + i * lines.inner]));
        };
        for (int64_t i = 0; i < lines.size; ++i) sum += power == 1 ? std::abs(value(i)) : value(i) * value(i);
        const double norm = power == 1 ? sum : std::sqrt(sum);
        for (int64_t i = 0; i < lines.size; ++i)
          call.out<T>(0)[first + i * lines.inner] =
              T(static_cast<Compute<T>>(norm == 0 ? 0 : value(i) / norm));
      });
    });
  });
}

KernelPtr prepare_hardmax(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const Lines lines(x, p.axis_attribute(-1));
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      lines.each([&](int64_t first) {
        const T* from = call.in<T>(0) + first;
        int64_t best = 0;
        for (int64_t i = 1; i < lines.size; ++i)
          if (A(from[i * lines.inner]) > A(from[best * lines.inner])) best = i;
        for (int64_t i = 0; i < lines.size; ++i)
          call.out<T>(0)[first + i * lines.inner] = T(A(i == best ? 1 : 0));
      });
    });
  });
}

// ---- LRN: over a window of channels ----

KernelPtr prepare_lrn(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  if (x.size() < 2) p.bad("the input needs a rank of at least 2");
  const int64_t size = p.attrs.integer("size", 1), channels = x[1];
  const double alpha = p.attrs.number("alpha", 1e-4), beta = p.attrs.number("beta", 0.75),
               bias = p.attrs.number("bias", 1);
  if (size < 1) p.bad("attribute 'size' must be positive");
  int64_t area = 1;
  for (int64_t d : x.subspan(2)) area *= d;
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, batch = x[0]](const Call& call) {
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t low = std::max<int64_t>(0, c - (size - 1) / 2),
                        high = std::min(channels - 1, c + size / 2);
          for (int64_t i = 0; i < area; ++i) {
            const T* from = call.in<T>(0) + n * channels * area + i;
            double sum = 0;
            for (int64_t k = low; k <= high; ++k) {
              const double v = static_cast<double>(Compute<T>(from[k * area]));
              sum += v * v;
            }
            const double scale = std::pow(bias + alpha / static_cast<double>(size) * sum, beta);
            call.out<T>(0)[(n * channels + c) * area + i] =
                T(static_cast<Compute<T>>(static_cast<double>(Compute<T>(from[c * area])) / scale));
          }
        }
    });
  });
}

constexpr Op table[] = {
    {"LayerNormalization", 0, infer_layer_norm, prepare_layer_norm<true>},
    {"RMSNormalization", 0, infer_layer_norm, prepare_layer_norm<false>},
    {"InstanceNormalization", 0, infer_channel_norm, prepare_channel_norm},
    {"GroupNormalization", 0, infer_channel_norm, prepare_channel_norm},
    {"MeanVarianceNormalization", 0, infer_same, prepare_mean_variance},
    {"LpNormalization", 0, infer_along_axis, prepare_lp_norm},
    {"Hardmax", 0, infer_along_axis, prepare_hardmax},
    {"LRN", 0, infer_same, prepare_lrn},
};

}  // namespace

std::span<const Op> layer_norm_ops() { return table; }

}  // namespace regie::ops
