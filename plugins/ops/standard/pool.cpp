// MaxPool, AveragePool, LpPool, and GlobalMaxPool, GlobalAveragePool, GlobalLpPool.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op.h"
#include "window.h"

namespace regie::ops {
namespace {

using MaxTypes = Join<Floats, Types<int8_t, uint8_t>>;

// `checks_pads`: padding must be smaller than the kernel, so that no window is all padding.
template <bool checks_pads>
void infer_pool(const Infer& infer) {
  auto x = infer.shape(0);
  const Window window = attribute_window(infer);
  Shape y{x[0], x[1]};
  for (size_t i = 0; i < window.rank(); ++i) {
    if (checks_pads && (window.begin[i] >= window.extent(i) || window.end[i] >= window.extent(i)))
      infer.bad("padding must be smaller than the kernel");
    y.push_back(window.result_dim(infer, i, x[2 + i], window.kernel[i]));
  }
  infer.result(0, infer.elem(0), y);
  infer.result(1, REGIE_I64, y);
}

void infer_global_pool(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() < 2) infer.bad("the input has rank " + std::to_string(x.size()) + "; it needs at least 2");
  Shape y(x.size(), 1);
  std::copy_n(x.begin(), 2, y.begin());
  infer.result(0, infer.elem(0), y);
}

Window prepare_window(Prepare& p) {
  Index x = p.shape(0);
  Window window = attribute_window(p);
  p.expect_result(0, window.resolved_result(x[0], x[1], x.subspan(2)));
  return window;
}

// Number of the element at position `flat` of a row-major plane if the first axis were the fastest.
int64_t column_major(int64_t flat, const std::vector<int64_t>& plane) {
  int64_t strides = 1;
  for (int64_t size : plane) strides *= size;
  int64_t result = 0;
  for (size_t axis = plane.size(); axis-- > 0;) {
    strides /= plane[axis];
    result += flat % plane[axis] * strides;
    flat /= plane[axis];
  }
  return result;
}

template <class T>
KernelPtr max_pool_kernel(Prepare& p, const Window& window) {
  using A = Compute<T>;
  Taps taps(window, p.out_shape(0).subspan(2), p.shape(0).subspan(2));
  Index x = p.shape(0);
  int64_t planes = x[0] * x[1];
  bool indices = p.wants(1), by_columns = p.attrs.integer("storage_order", 0) != 0;
  std::vector<int64_t> sizes(x.begin() + 2, x.end());
  return make_kernel([=](const Call& call) {
    A least = is_float<T> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
    int64_t area = taps.dense_size(), input_area = taps.strided_size();
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* from = call.in<T>(0) + plane * input_area;
      T* to = call.out<T>(0) + plane * area;
      std::fill_n(to, area, T(least));
      if (!indices) {
        for (int64_t tap = 0; tap < taps.count(); ++tap)
          taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i)
              if (A(from[in + i * step]) > A(to[out + i])) to[out + i] = from[in + i * step];
          });
        continue;
      }
      int64_t* where = call.out<int64_t>(1) + plane * area;
      std::fill_n(where, area, int64_t{-1});
      for (int64_t tap = 0; tap < taps.count(); ++tap)
        taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i) {
            if (where[out + i] >= 0 && !(A(from[in + i * step]) > A(to[out + i]))) continue;
            to[out + i] = from[in + i * step];
            where[out + i] = in + i * step;
          }
        });
      for (int64_t i = 0; i < area; ++i)
        if (where[i] >= 0)
          where[i] = plane * input_area + (by_columns ? column_major(where[i], sizes) : where[i]);
    }
  });
}

KernelPtr prepare_max_pool(Prepare& p) {
  Window window = prepare_window(p);
  return p.dispatch(MaxTypes(), p.in(0).elem, [&]<class T>() { return max_pool_kernel<T>(p, window); });
}

// How many elements each mean is of: those inside of the input, or inside of input and padding.
std::vector<int64_t> divisors(const Window& window, Index input, Index output, bool with_padding) {
  Window w = window;
  std::vector<int64_t> extent(input.begin(), input.end());
  if (with_padding)
    for (size_t i = 0; i < w.rank(); ++i) {
      extent[i] += w.begin[i] + w.end[i];
      w.begin[i] = w.end[i] = 0;
    }
  Taps taps(w, output, extent);
  std::vector<int64_t> counts(static_cast<size_t>(taps.dense_size()), 0);
  for (int64_t tap = 0; tap < taps.count(); ++tap)
    taps.rows(tap, [&](int64_t out, int64_t, int64_t count, int64_t) {
      for (int64_t i = 0; i < count; ++i) ++counts[static_cast<size_t>(out + i)];
    });
  for (int64_t& count : counts) count = std::max<int64_t>(count, 1);
  return counts;
}

template <class T>
KernelPtr average_pool_kernel(Prepare& p, const Window& window) {
  using A = Compute<T>;
  Index x = p.shape(0), y = p.out_shape(0);
  Taps taps(window, y.subspan(2), x.subspan(2));
  auto counts = divisors(window, x.subspan(2), y.subspan(2), p.attrs.integer("count_include_pad", 0) != 0);
  p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(A);
  return make_kernel([=, planes = x[0] * x[1]](const Call& call) {
    int64_t area = taps.dense_size();
    A* sum = call.scratch<A>();
    for (int64_t plane = 0; plane < planes; ++plane) {
      const T* from = call.in<T>(0) + plane * taps.strided_size();
      T* to = call.out<T>(0) + plane * area;
      std::fill_n(sum, area, A(0));
      for (int64_t tap = 0; tap < taps.count(); ++tap)
        taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i) sum[out + i] += A(from[in + i * step]);
        });
      for (int64_t i = 0; i < area; ++i) to[i] = T(sum[i] / static_cast<A>(counts[static_cast<size_t>(i)]));
    }
  });
}

KernelPtr prepare_average_pool(Prepare& p) {
  Window window = prepare_window(p);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() { return average_pool_kernel<T>(p, window); });
}

// ---- Norms of windows ----

double power_of(double x, int64_t p) {
  x = std::abs(x);
  return p == 1 ? x : p == 2 ? x * x : std::pow(x, static_cast<double>(p));
}
double root_of(double x, int64_t p) {
  return p == 1 ? x : p == 2 ? std::sqrt(x) : std::pow(x, 1 / static_cast<double>(p));
}

KernelPtr prepare_lp_pool(Prepare& p) {
  Index x = p.shape(0);
  const Window window = prepare_window(p);
  Taps taps(window, p.out_shape(0).subspan(2), x.subspan(2));
  const int64_t power = p.attrs.integer("p", 2);
  p.scratch_bytes = static_cast<uint64_t>(taps.dense_size()) * sizeof(double);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, planes = x[0] * x[1]](const Call& call) {
      auto* sum = call.scratch<double>();
      for (int64_t plane = 0; plane < planes; ++plane) {
        const T* from = call.in<T>(0) + plane * taps.strided_size();
        std::fill_n(sum, taps.dense_size(), 0.0);
        for (int64_t tap = 0; tap < taps.count(); ++tap)
          taps.rows(tap, [&](int64_t out, int64_t in, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i)
              sum[out + i] += power_of(static_cast<double>(Compute<T>(from[in + i * step])), power);
          });
        T* to = call.out<T>(0) + plane * taps.dense_size();
        for (int64_t i = 0; i < taps.dense_size(); ++i)
          to[i] = T(static_cast<Compute<T>>(root_of(sum[i], power)));
      }
    });
  });
}

// ---- Over whole planes ----

// Elements of a plane; checks the result.
int64_t global_area(const Prepare& p) {
  Index x = p.shape(0);
  if (x.size() < 2) p.bad("the input needs a rank of at least 2");
  std::vector<int64_t> y(x.size(), 1);
  std::copy_n(x.begin(), 2, y.begin());
  p.expect_result(0, y);
  int64_t area = 1;
  for (int64_t size : x.subspan(2)) area *= size;
  return area;
}

template <bool average>
KernelPtr prepare_global_pool(Prepare& p) {
  Index x = p.shape(0);
  const int64_t area = global_area(p);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([area, planes = x[0] * x[1]](const Call& call) {
      using A = Compute<T>;
      for (int64_t plane = 0; plane < planes; ++plane) {
        const T* from = call.in<T>(0) + plane * area;
        double sum = 0;
        A most = -std::numeric_limits<A>::infinity();
        for (int64_t i = 0; i < area; ++i) {
          if constexpr (average) {
            sum += A(from[i]);
          } else {
            most = std::max(most, A(from[i]));
          }
        }
        call.out<T>(0)[plane] = T(average ? static_cast<A>(sum / static_cast<double>(area)) : most);
      }
    });
  });
}

KernelPtr prepare_global_lp_pool(Prepare& p) {
  Index x = p.shape(0);
  const int64_t area = global_area(p);
  const int64_t power = p.attrs.integer("p", 2);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, planes = x[0] * x[1]](const Call& call) {
      for (int64_t plane = 0; plane < planes; ++plane) {
        double sum = 0;
        for (int64_t i = 0; i < area; ++i)
          sum += power_of(static_cast<double>(Compute<T>(call.in<T>(0)[plane * area + i])), power);
        call.out<T>(0)[plane] = T(static_cast<Compute<T>>(root_of(sum, power)));
      }
    });
  });
}

constexpr Op table[] = {
    {"MaxPool", 0, infer_pool<true>, prepare_max_pool},
    {"AveragePool", 0, infer_pool<true>, prepare_average_pool},
    {"LpPool", 0, infer_pool<false>, prepare_lp_pool},
    {"GlobalMaxPool", 0, infer_global_pool, prepare_global_pool<false>},
    {"GlobalAveragePool", 0, infer_global_pool, prepare_global_pool<true>},
    {"GlobalLpPool", 0, infer_global_pool, prepare_global_lp_pool},
};

}  // namespace

std::span<const Op> pool_ops() { return table; }

}  // namespace regie::ops
