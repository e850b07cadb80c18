// Reductions over axes (Sum, Mean, Max, Min, Prod, L1, L2, SumSquare) and along one axis (ArgMax, ArgMin).
#include <algorithm>
#include <cmath>
#include <limits>

#include "arithmetic.h"
#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

using Reduced = std::array<bool, max_rank>;  // by axis

// No axes means all, unless noop_with_empty_axes says none: then each element is reduced by itself.
Reduced reduced_axes(std::string_view op, Index axes, size_t rank, bool none_if_empty) {
  check_rank(op, rank);
  Reduced reduced{};
  if (axes.empty()) std::fill_n(reduced.begin(), rank, !none_if_empty);
  for (int64_t axis : axes) {
    bool& r = reduced[static_cast<size_t>(normal_axis(op, axis, static_cast<int64_t>(rank)))];
    if (r)
      throw sdk::Failure(REGIE_INVALID_MODEL,
                         std::string(op) + ": axis " + std::to_string(axis) + " is given twice");
    r = true;
  }
  return reduced;
}

void infer_reduce(const Infer& infer) {
  auto x = infer.shape(0);
  bool keep = infer.attrs.integer("keepdims", 1) != 0,
       none = infer.attrs.integer("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> axes;
  if (infer.has(1)) {
    if (auto known = infer.numbers(1)) {
      axes = std::move(*known);
    } else {
      // Which axes go is not known, but how many.
      if (keep) return infer.result(0, infer.elem(0), Infer::unknown(x.size()));
      const size_t gone = infer.length(1);
      if (gone > x.size()) infer.bad("there are more axes than the input has");
      return infer.result(0, infer.elem(0), Infer::unknown(x.size() - gone));
    }
  }
  Reduced reduced = reduced_axes(infer.op, axes, x.size(), none);
  Shape y;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) y.push_back(x[i]);
    if (reduced[i] && keep) y.push_back(1);
  }
  infer.result(0, infer.elem(0), y);
}

// The number of elements of a shape in symbols is often computed by ReduceProd of it.
void infer_reduce_prod(const Infer& infer) {
  infer_reduce(infer);
  auto content = infer.content(0);
  const auto axes = infer.has(1) ? infer.numbers(1) : std::vector<int64_t>();
  const bool all = axes && (!axes->empty() || infer.attrs.integer("noop_with_empty_axes", 0) == 0);
  if (!content || !all || infer.rank(0) != 1 || (infer.elem(0) != REGIE_I64 && infer.elem(0) != REGIE_I32))
    return;
  regie_dim product = infer.dims.product(*content);
  infer.content(0, {&product, 1});
}

// What a reduction is made of: the start, one step, and what becomes of the accumulated value (of `count`
// elements).
template <class T>
struct Plain {
  using A = Sum<T>;
  static A start() { return A(0); }
  static A finish(A a, int64_t) { return a; }
};
template <class T>
struct SumOf : Plain<T> {
  using A = Sum<T>;
  static A step(A a, A x) { return Plus()(a, x); }
};
// Integers are added in 64 bits, so that the mean of values that fit is one that fits.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<Sum<T>>,
                                std::conditional_t<std::is_unsigned_v<Sum<T>>, uint64_t, int64_t>, Sum<T>>;
template <class T>
struct MeanOf {
  using A = Wide<T>;
  static A start() { return A(0); }
  static A step(A a, A x) { return Plus()(a, x); }
  static A finish(A a, int64_t count) {
    if constexpr (std::is_integral_v<A>) {
      return count == 0 ? A(0) : static_cast<A>(a / static_cast<A>(count));
    } else {
      return a / static_cast<A>(count);
    }
  }
};
template <class T>
struct ProdOf : Plain<T> {
  using A = Sum<T>;
  static A start() { return A(1); }
  static A step(A a, A x) { return Times()(a, x); }
};
template <class T>
struct L1Of : Plain<T> {
  using A = Sum<T>;
  static A step(A a, A x) {
    if constexpr (std::is_unsigned_v<A>) {
      return Plus()(a, x);
    } else {
      return Plus()(a, x < A(0) ? static_cast<A>(A(0) - x) : x);
    }
  }
};
template <class T>
struct SumSquareOf : Plain<T> {
  using A = Sum<T>;
  static A step(A a, A x) { return Plus()(a, Times()(x, x)); }
};
// The root of a sum of squares fits where the sum does not: integers are squared as double.
template <class T>
struct L2Of {
  using A = std::conditional_t<std::is_integral_v<Sum<T>>, double, Sum<T>>;
  static A start() { return A(0); }
  static A step(A a, A x) { return a + x * x; }
  static A finish(A a, int64_t) {
    const A root = static_cast<A>(std::sqrt(a));
    if constexpr (is_float<T>) {
      return root;
    } else {  // the greatest double that converts
      const A most = static_cast<A>(std::numeric_limits<Compute<T>>::max());
      return std::min(root, sizeof(Compute<T>) < 8 ? most : std::nextafter(most, A(0)));
    }
  }
};
template <class T>
struct LogSumOf : SumOf<T> {
  using A = Sum<T>;
  static A finish(A a, int64_t) { return static_cast<A>(std::log(a)); }
};
// log(exp(x0) + exp(x1) + ...) as the greatest so far and a sum relative to it: nothing overflows.
struct LogSum {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  LogSum() = default;
  template <class X>
  explicit LogSum(X x) : most(static_cast<double>(x)), sum(1) {}
  template <class X>
  explicit operator X() const {
    return static_cast<X>(std::isinf(most) ? most : most + std::log(sum));
  }
};
template <class T>
struct LogSumExpOf {
  using A = LogSum;
  static A start() { return {}; }
  static A step(A a, A x) {
    if (a.most < x.most) std::swap(a, x);
    if (x.sum != 0 && !std::isinf(a.most)) a.sum += x.sum * std::exp(x.most - a.most);
    if (std::isnan(x.most)) a.most = x.most;
    return a;
  }
  static A finish(A a, int64_t) { return a; }
};
template <class T>
struct MaxOf {
  using A = Compute<T>;
  static A start() {
    return is_float<T> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  }
  static A step(A a, A x) { return Greatest()(a, x); }
  static A finish(A a, int64_t) { return a; }
};
template <class T>
struct MinOf {
  using A = Compute<T>;
  static A start() {
    return is_float<T> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  }
  static A step(A a, A x) { return Least()(a, x); }
  static A finish(A a, int64_t) { return a; }
};

// A reduction of a tensor, ready to run once the axes are known.
struct Reduction {
  std::string op;
  std::vector<int64_t> shape, result;
  bool keep, none_if_empty;

  // Input to accumulators.
  Walk<2> walk(const Reduced& reduced) const {
    Dims to{};
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      to[axis] = reduced[axis] ? 0 : stride;
      if (!reduced[axis]) stride *= shape[axis];
    }
    return {shape, {dense_strides(shape), to}};
  }
  // INVALID_INPUT if these axes do not give the result's shape.
  void check(const Reduced& reduced) const {
    size_t at = 0;
    bool fits = true;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (reduced[axis] && !keep) continue;
      fits = fits && at < result.size() && result[at] == (reduced[axis] ? 1 : shape[axis]);
      ++at;
    }
    if (!fits || at != result.size())
      throw sdk::Failure(REGIE_INVALID_INPUT, op + ": the axes do not reduce " + print_shape(shape) + " to " +
                                                  print_shape(result));
  }
};

template <class T, class Rule>
KernelPtr reduce_kernel(Prepare& p, Reduction r) {
  using A = typename Rule::A;
  int64_t count = sdk::count_of(p.in(0)), results = sdk::count_of(p.out(0));
  p.scratch_bytes = static_cast<uint64_t>(results) * sizeof(A);
  bool has_axes = p.has(1);
  return make_kernel([=](const Call& call) {
    Index axes =
        has_axes ? Index(call.in<int64_t>(1), static_cast<size_t>(sdk::count_of(call.operand(1)))) : Index();
    Reduced reduced = reduced_axes(r.op, axes, r.shape.size(), r.none_if_empty);
    r.check(reduced);
    T* to = call.out<T>(0);
    A* sums = call.scratch<A>();
    std::fill_n(sums, results, Rule::start());
    r.walk(reduced).rows([&](const auto& at, int64_t n, const auto& step) {
      const T* from = call.in<T>(0) + at[0];
      A* sum = sums + at[1];
      if (step[1] == 0) {
        A local = *sum;
        for (int64_t i = 0; i < n; ++i)
          local = Rule::step(local, static_cast<A>(Compute<T>(from[i * step[0]])));
        *sum = local;
      } else {
        for (int64_t i = 0; i < n; ++i)
          sum[i * step[1]] = Rule::step(sum[i * step[1]], static_cast<A>(Compute<T>(from[i * step[0]])));
      }
    });
    int64_t each = results == 0 ? 0 : count / results;
    for (int64_t i = 0; i < results; ++i) to[i] = T(static_cast<Compute<T>>(Rule::finish(sums[i], each)));
  });
}

template <template <class> class Rule, class List = Numbers>
KernelPtr prepare_reduce(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, x.size());
  Reduction r{std::string(p.op),
              {x.begin(), x.end()},
              {y.begin(), y.end()},
              p.attrs.integer("keepdims", 1) != 0,
              p.attrs.integer("noop_with_empty_axes", 0) != 0};
  if (p.has(1) && (p.in(1).elem != REGIE_I64 || p.in(1).rank > 1)) p.bad("the axes must be a list of i64");
  if (!p.has(1) || p.in(1).data) {
    Index axes = p.has(1) ? Index(static_cast<const int64_t*>(p.in(1).data),
                                  static_cast<size_t>(sdk::count_of(p.in(1))))
                          : Index();
    r.check(reduced_axes(p.op, axes, x.size(), r.none_if_empty));
  }
  return p.dispatch(List(), p.in(0).elem, [&]<class T>() { return reduce_kernel<T, Rule<T>>(p, r); });
}

// ---- ArgMax, ArgMin ----

void infer_arg(const Infer& infer) {
  auto x = infer.shape(0);
  size_t axis = infer.axis_attribute(0);
  bool some = x[axis] == 0;  // of nothing, unless nothing is asked for
  for (size_t a = 0; some && a < x.size(); ++a) some = a == axis || infer.surely_at_least(x[a], 1);
  if (some) infer.bad("the axis has no elements");
  Shape y(x.begin(), x.end());
  if (infer.attrs.integer("keepdims", 1) != 0) {
    y[axis] = 1;
  } else {
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  infer.result(0, REGIE_I64, y);
}

template <bool greatest>
KernelPtr prepare_arg(Prepare& p) {
  Index x = p.shape(0);
  size_t axis = p.axis_attribute(0);
  std::vector<int64_t> y(x.begin(), x.end());
  y[axis] = 1;
  if (p.attrs.integer("keepdims", 1) == 0) y.erase(y.begin() + static_cast<std::ptrdiff_t>(axis));
  p.expect_result(0, y);
  const Lines lines(x, axis);
  if (lines.size == 0 && lines.outer * lines.inner != 0) p.bad("the axis has no elements");
  bool last = p.attrs.integer("select_last_index", 0) != 0;
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      auto* to = call.out<int64_t>(0);
      lines.each([&](int64_t first) {
        const T* from = call.in<T>(0) + first;
        int64_t best = 0;
        A value = from[0];
        for (int64_t i = 1; i < lines.size; ++i) {
          A x = from[i * lines.inner];
          bool better = greatest ? x > value : x < value;
          if (!better && !(last && x == value)) continue;
          best = i;
          value = x;
        }
        *to++ = best;
      });
    });
  });
}

constexpr Op table[] = {
    {"ReduceSum", 0, infer_reduce, prepare_reduce<SumOf>},
    {"ReduceMean", 0, infer_reduce, prepare_reduce<MeanOf>},
    {"ReduceMax", 0, infer_reduce, prepare_reduce<MaxOf, All>},
    {"ReduceMin", 0, infer_reduce, prepare_reduce<MinOf, All>},
    {"ReduceProd", 0, infer_reduce_prod, prepare_reduce<ProdOf>},
    {"ReduceL1", 0, infer_reduce, prepare_reduce<L1Of>},
    {"ReduceL2", 0, infer_reduce, prepare_reduce<L2Of>},
    {"ReduceSumSquare", 0, infer_reduce, prepare_reduce<SumSquareOf>},
    {"ReduceLogSum", 0, infer_reduce, prepare_reduce<LogSumOf, Floats>},
    {"ReduceLogSumExp", 0, infer_reduce, prepare_reduce<LogSumExpOf, Floats>},
    {"ArgMax", 0, infer_arg, prepare_arg<true>},
    {"ArgMin", 0, infer_arg, prepare_arg<false>},
};

}  // namespace

std::span<const Op> reduce_ops() { return table; }

}  // namespace regie::ops
