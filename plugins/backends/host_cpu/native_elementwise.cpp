// Element-wise operators on float32, with broadcasting, and the conversions between element types.
#include <algorithm>
#include <cmath>
#include <limits>

#include "native.h"
#include "parallel.h"
#include "simd.h"

namespace host_cpu {
namespace {

// The axes of a result with the strides of up to three operands beside them; axes that go together in all are
// one.
struct Broadcast {
  struct Axis {
    int64_t size, step[3];
  };
  std::vector<Axis> outer;
  Axis inner{1, {0, 0, 0}};
  int64_t count = 1;
};

// Dimensions of an operand beside a result of `result`'s format, as row-major ones. An operand of lower rank,
// or row-major beside another format, has the same bytes in that format or is refused.
std::vector<int64_t> beside(const NativeTensor& t, const NativeTensor& result) {
  std::vector<int64_t> dims(result.dims.size(), 1);
  if (t.dims.size() > dims.size()) refuse("an operand has a higher rank than the result");
  std::copy(t.dims.begin(), t.dims.end(), dims.end() - static_cast<std::ptrdiff_t>(t.dims.size()));
  if (t.format != result.format && !same_order(dims, t.format, result.format))
    refuse("an operand's format differs from the result's");
  return physical_dims(dims, result.format);
}

Broadcast broadcast(const NativeRequest& r, std::initializer_list<size_t> operands) {
  const NativeTensor& y = r.out(0);
  const std::vector<int64_t> shape = y.physical();
  std::vector<Broadcast::Axis> axes(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) axes[i] = {shape[i], {0, 0, 0}};
  size_t k = 0;
  for (size_t o : operands) {
    const std::vector<int64_t> dims = beside(r.in(o), y);
    const auto strides = row_major_strides(dims);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (dims[i] != 1 && dims[i] != shape[i]) refuse("an operand does not broadcast to the result");
      axes[i].step[k] = dims[i] == 1 ? 0 : strides[i];
    }
    ++k;
  }
  Broadcast b;
  std::vector<Broadcast::Axis> merged;
  for (const Broadcast::Axis& a : axes) {
    b.count *= a.size;
    if (a.size == 1) continue;
    bool joins = !merged.empty();
    for (size_t i = 0; joins && i < k; ++i) joins = merged.back().step[i] == a.step[i] * a.size;
    if (joins) {
      const int64_t size = merged.back().size * a.size;
      merged.back() = a;
      merged.back().size = size;
    } else {
      merged.push_back(a);
    }
  }
  if (!merged.empty()) {
    b.inner = merged.back();
    merged.pop_back();
  }
  b.outer = std::move(merged);
  return b;
}

// Calls row(result offset, operand offsets, elements) for stretches of the inner axis.
template <class F>
void each_row(const Broadcast& b, uint32_t threads, int64_t weight, F&& row) {
  if (b.count == 0) return;
  int64_t outer = 1;
  for (const auto& a : b.outer) outer *= a.size;
  // Few long rows are cut so that all threads have some.
  int64_t pieces = 1;
  if (outer < 4 * static_cast<int64_t>(threads))
    pieces = std::clamp<int64_t>(b.inner.size / 4096, 1, 4 * threads);
  parallel(threads, outer * pieces, weight * b.inner.size / pieces, [&](int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      int64_t rest = step / pieces;
      const int64_t piece = step % pieces;
      const int64_t first = b.inner.size * piece / pieces, last = b.inner.size * (piece + 1) / pieces;
      int64_t at[3] = {first * b.inner.step[0], first * b.inner.step[1], first * b.inner.step[2]};
      const int64_t to = rest * b.inner.size + first;
      for (size_t i = b.outer.size(); i-- > 0;) {
        const int64_t k = rest % b.outer[i].size;
        rest /= b.outer[i].size;
        for (int o = 0; o < 3; ++o) at[o] += k * b.outer[i].step[o];
      }
      row(to, at, last - first);
    }
  });
}

// ---- one operand ----

NativePtr unary_kernel(const NativeRequest& r, Unary op, float a, float b, int64_t weight) {
  r.need_float(0);
  r.need_float_results();
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.dims != y.dims || !same_order(x.dims, x.format, y.format)) refuse("operand and result differ");
  const int64_t n = x.count();
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    constexpr int64_t kStretch = 1024;
    parallel(threads, (n + kStretch - 1) / kStretch, kStretch * weight, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kStretch, last = std::min(n, end * kStretch);
      simd().unary(op, out_data<float>(l, 0) + first, in_data<float>(l, 0) + first, last - first, a, b);
    });
  });
}

template <Unary kOp, int64_t kWeight = 1>
NativePtr make_unary(const NativeRequest& r) {
  return unary_kernel(r, kOp, 0, 0, kWeight);
}
float number(const NativeRequest& r, std::string_view name, double fallback) {
  return static_cast<float>(r.attrs.number(name, fallback));
}
NativePtr make_elu(const NativeRequest& r) {
  return unary_kernel(r, Unary::kElu, number(r, "alpha", 1), 0, 4);
}
NativePtr make_leaky_relu(const NativeRequest& r) {
  return unary_kernel(r, Unary::kLeakyRelu, number(r, "alpha", 0.01), 0, 1);
}
NativePtr make_hard_sigmoid(const NativeRequest& r) {
  return unary_kernel(r, Unary::kHardSigmoid, number(r, "alpha", 0.2), number(r, "beta", 0.5), 1);
}
NativePtr make_selu(const NativeRequest& r) {
  return unary_kernel(r, Unary::kSelu, number(r, "alpha", 1.67326319217681884765625),
                      number(r, "gamma", 1.05070102214813232421875), 4);
}
NativePtr make_thresholded_relu(const NativeRequest& r) {
  return unary_kernel(r, Unary::kThresholdedRelu, number(r, "alpha", 1), 0, 1);
}
NativePtr make_gelu(const NativeRequest& r) {
  const bool tanh = r.attrs.text("approximate", "none") == "tanh";
  return unary_kernel(r, tanh ? Unary::kGeluTanh : Unary::kGelu, 0, 0, 4);
}
NativePtr make_swish(const NativeRequest& r) {
  return unary_kernel(r, Unary::kSwish, number(r, "alpha", 1), 0, 4);
}

NativePtr make_clip(const NativeRequest& r) {
  float bounds[2] = {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
  for (size_t i = 0; i < 2; ++i) {
    if (!r.has(i + 1)) continue;
    const NativeTensor& t = r.in(i + 1);
    if (!t.data || t.count() != 1) refuse("a bound is no constant scalar");
    r.need_float(i + 1);
    bounds[i] = *static_cast<const float*>(t.data);
  }
  return unary_kernel(r, Unary::kClip, bounds[0], bounds[1], 1);
}

// ---- two operands ----

NativePtr binary_kernel(const NativeRequest& r, Binary op) {
  r.need_float(0);
  r.need_float(1);
  r.need_float_results();
  if (r.operands.size() > 2 && r.has(2)) refuse("more than two operands");
  const Broadcast b = broadcast(r, {0, 1});
  for (int o = 0; o < 2; ++o)
    if (b.inner.step[o] > 1) refuse("an operand is strided along the last axis");
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    each_row(b, threads, 1, [&](int64_t to, const int64_t* at, int64_t n) {
      simd().binary(op, out_data<float>(l, 0) + to, in_data<float>(l, 0) + at[0],
                    in_data<float>(l, 1) + at[1], n, static_cast<int>(b.inner.step[0]),
                    static_cast<int>(b.inner.step[1]));
    });
  });
}
template <Binary kOp>
NativePtr make_binary(const NativeRequest& r) {
  return binary_kernel(r, kOp);
}

// A constant exponent of 2, 0.5 or so is not worth a call of pow.
NativePtr make_pow(const NativeRequest& r) {
  r.need_float(0);
  r.need_float(1);
  r.need_float_results();
  const NativeTensor& e = r.in(1);
  const float exponent = e.data && e.count() == 1 ? *static_cast<const float*>(e.data) : NAN;
  if (exponent == 0.5f && r.in(0).dims == r.out(0).dims) {
    NativeRequest root = r;
    root.operands.resize(1);
    return unary_kernel(root, Unary::kSqrt, 0, 0, 1);
  }
  if (exponent == 2 && r.in(0).dims == r.out(0).dims) {
    NativeRequest square = r;
    square.operands[1] = square.operands[0];
    const Broadcast b = broadcast(square, {0, 1});
    return native_kernel([=, threads = r.threads](const regie_launch& l) {
      each_row(b, threads, 1, [&](int64_t to, const int64_t* at, int64_t n) {
        simd().binary(Binary::kMul, out_data<float>(l, 0) + to, in_data<float>(l, 0) + at[0],
                      in_data<float>(l, 0) + at[0], n, static_cast<int>(b.inner.step[0]),
                      static_cast<int>(b.inner.step[0]));
      });
    });
  }
  const Broadcast b = broadcast(r, {0, 1});
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    each_row(b, threads, 20, [&](int64_t to, const int64_t* at, int64_t n) {
      const float *x = in_data<float>(l, 0) + at[0], *p = in_data<float>(l, 1) + at[1];
      float* y = out_data<float>(l, 0) + to;
      for (int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i * b.inner.step[0]], p[i * b.inner.step[1]]);
    });
  });
}

// ---- selection, comparison, conversion ----

NativePtr make_where(const NativeRequest& r) {
  const uint32_t size = elem_size(r.out(0).elem);
  if (r.in(0).elem != REGIE_BOOL) refuse("the condition is not bool");
  if (r.in(1).elem != r.out(0).elem || r.in(2).elem != r.out(0).elem) refuse("the operands' types differ");
  const Broadcast b = broadcast(r, {0, 1, 2});
  auto make = [&]<class T>(T) {
    return native_kernel([b, threads = r.threads](const regie_launch& l) {
      each_row(b, threads, 2, [&](int64_t to, const int64_t* at, int64_t n) {
        const uint8_t* c = in_data<uint8_t>(l, 0) + at[0];
        const T *p = in_data<T>(l, 1) + at[1], *q = in_data<T>(l, 2) + at[2];
        T* y = out_data<T>(l, 0) + to;
        const int64_t sc = b.inner.step[0], sp = b.inner.step[1], sq = b.inner.step[2];
        for (int64_t i = 0; i < n; ++i) y[i] = c[i * sc] ? p[i * sp] : q[i * sq];
      });
    });
  };
  return size == 1   ? make(uint8_t{})
         : size == 2 ? make(uint16_t{})
         : size == 4 ? make(uint32_t{})
                     : make(uint64_t{});
}

template <class F>
NativePtr compare_kernel(const NativeRequest& r, F f) {
  if (r.in(1).elem != r.in(0).elem) refuse("the operands' types differ");
  if (r.out(0).elem != REGIE_BOOL) refuse("the result is not bool");
  const Broadcast b = broadcast(r, {0, 1});
  auto make = [&]<class T>(T) {
    return native_kernel([b, f, threads = r.threads](const regie_launch& l) {
      each_row(b, threads, 2, [&](int64_t to, const int64_t* at, int64_t n) {
        const T *p = in_data<T>(l, 0) + at[0], *q = in_data<T>(l, 1) + at[1];
        uint8_t* y = out_data<uint8_t>(l, 0) + to;
        const int64_t sp = b.inner.step[0], sq = b.inner.step[1];
        for (int64_t i = 0; i < n; ++i) y[i] = f(p[i * sp], q[i * sq]) ? 1 : 0;
      });
    });
  };
  switch (r.in(0).elem) {
    case REGIE_F32:
      return make(float{});
    case REGIE_I64:
      return make(int64_t{});
    case REGIE_I32:
      return make(int32_t{});
    case REGIE_BOOL:
    case REGIE_U8:
      return make(uint8_t{});
    default:
      refuse("its element type is not covered");
  }
}
NativePtr make_equal(const NativeRequest& r) {
  return compare_kernel(r, [](auto a, auto b) { return a == b; });
}
NativePtr make_greater(const NativeRequest& r) {
  return compare_kernel(r, [](auto a, auto b) { return a > b; });
}
NativePtr make_greater_equal(const NativeRequest& r) {
  return compare_kernel(r, [](auto a, auto b) { return a >= b; });
}
NativePtr make_less(const NativeRequest& r) {
  return compare_kernel(r, [](auto a, auto b) { return a < b; });
}
NativePtr make_less_equal(const NativeRequest& r) {
  return compare_kernel(r, [](auto a, auto b) { return a <= b; });
}
NativePtr make_and(const NativeRequest& r) {
  if (r.in(0).elem != REGIE_BOOL) refuse("the operands are not bool");
  return compare_kernel(r, [](auto a, auto b) { return a != 0 && b != 0; });
}
NativePtr make_or(const NativeRequest& r) {
  if (r.in(0).elem != REGIE_BOOL) refuse("the operands are not bool");
  return compare_kernel(r, [](auto a, auto b) { return a != 0 || b != 0; });
}

// Floats are cut towards zero and held within the range, NaN becomes 0, as in row-major order.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (v != v) return 0;
    if (v <= static_cast<From>(Limits::min())) return Limits::min();
    return v >= static_cast<From>(Limits::max()) ? Limits::max() : static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class From, class To>
NativePtr cast_kernel(const NativeRequest& r) {
  const int64_t n = r.in(0).count();
  const bool to_bool = r.out(0).elem == REGIE_BOOL;
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    constexpr int64_t kStretch = 4096;
    parallel(threads, (n + kStretch - 1) / kStretch, kStretch, [&](int64_t begin, int64_t end) {
      const From* x = in_data<From>(l, 0);
      To* y = out_data<To>(l, 0);
      const int64_t last = std::min(n, end * kStretch);
      if (to_bool)
        for (int64_t i = begin * kStretch; i < last; ++i) y[i] = x[i] != From{} ? To{1} : To{0};
      else
        for (int64_t i = begin * kStretch; i < last; ++i) y[i] = convert<To>(x[i]);
    });
  });
}

template <class F>
NativePtr by_type(regie_elem elem, F&& f) {
  switch (elem) {
    case REGIE_F32:
      return f(float{});
    case REGIE_F64:
      return f(double{});
    case REGIE_I64:
      return f(int64_t{});
    case REGIE_I32:
      return f(int32_t{});
    case REGIE_BOOL:
      return f(uint8_t{});
    default:
      refuse("its element types are not covered");
  }
}
NativePtr make_cast(const NativeRequest& r) {
  if (r.in(0).dims != r.out(0).dims || !same_order(r.in(0).dims, r.in(0).format, r.out(0).format))
    refuse("operand and result differ");
  return by_type(r.in(0).elem, [&]<class From>(From) {
    return by_type(r.out(0).elem, [&]<class To>(To) { return cast_kernel<From, To>(r); });
  });
}

constexpr Takes kEach = Takes::kElementwise;
constexpr NativeOp kOps[] = {
    {"Abs", make_unary<Unary::kAbs>, kEach, true},
    {"Add", make_binary<Binary::kAdd>, kEach, true},
    {"And", make_and, kEach},
    {"Cast", make_cast, kEach},
    {"Ceil", make_unary<Unary::kCeil>, kEach, true},
    {"Clip", make_clip, kEach, true},
    {"Div", make_binary<Binary::kDiv>, kEach, true},
    {"Elu", make_elu, kEach, true, 8},
    {"Equal", make_equal, kEach},
    {"Erf", make_unary<Unary::kErf, 4>, kEach, true, 8},
    {"Exp", make_unary<Unary::kExp, 4>, kEach, true, 8},
    {"Floor", make_unary<Unary::kFloor>, kEach, true},
    {"Gelu", make_gelu, kEach, true, 12},
    {"Greater", make_greater, kEach},
    {"GreaterOrEqual", make_greater_equal, kEach},
    {"HardSigmoid", make_hard_sigmoid, kEach, true},
    {"HardSwish", make_unary<Unary::kHardSwish>, kEach, true},
    {"LeakyRelu", make_leaky_relu, kEach, true},
    {"Less", make_less, kEach},
    {"LessOrEqual", make_less_equal, kEach},
    {"Log", make_unary<Unary::kLog, 4>, kEach, true, 8},
    {"Max", make_binary<Binary::kMax>, kEach, true},
    {"Min", make_binary<Binary::kMin>, kEach, true},
    {"Mish", make_unary<Unary::kMish, 8>, kEach, true, 16},
    {"Mul", make_binary<Binary::kMul>, kEach, true},
    {"Neg", make_unary<Unary::kNeg>, kEach, true},
    {"Or", make_or, kEach},
    {"PRelu", make_binary<Binary::kPRelu>, kEach, true},
    {"Pow", make_pow, kEach, true, 8},
    {"Reciprocal", make_unary<Unary::kReciprocal>, kEach, true},
    {"Relu", make_unary<Unary::kRelu>, kEach, true},
    {"Round", make_unary<Unary::kRound>, kEach, true},
    {"Selu", make_selu, kEach, true, 8},
    {"Sigmoid", make_unary<Unary::kSigmoid, 4>, kEach, true, 8},
    {"Sign", make_unary<Unary::kSign>, kEach, true},
    {"Softplus", make_unary<Unary::kSoftplus, 8>, kEach, true, 16},
    {"Softsign", make_unary<Unary::kSoftsign>, kEach, true, 2},
    {"Sqrt", make_unary<Unary::kSqrt>, kEach, true, 2},
    {"Sub", make_binary<Binary::kSub>, kEach, true},
    {"Swish", make_swish, kEach, true, 8},
    {"Tanh", make_unary<Unary::kTanh, 4>, kEach, true, 8},
    {"ThresholdedRelu", make_thresholded_relu, kEach, true},
    {"Where", make_where, kEach},
};

}  // namespace

std::span<const NativeOp> native_elementwise() { return kOps; }

}  // namespace host_cpu
