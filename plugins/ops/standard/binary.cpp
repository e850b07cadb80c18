// Arithmetic with broadcasting: Add, Sub, Mul, Div, Pow, and the variadic Min and Max.
#include <cmath>

#include "arithmetic.h"
#include "broadcast.h"

namespace regie::ops {
namespace {

// ---- Content: arithmetic on shapes ----

using DimFunction = regie_dim (*)(const Infer& infer, regie_dim a, regie_dim b);

void infer_arithmetic(const Infer& infer, DimFunction f) {
  Shape shape = broadcast_operands(infer, 0, 2);
  infer.result(0, infer.elem(0), shape);
  if (shape.size() > 1) return;
  auto a = infer.content(0), b = infer.content(1);
  if (!a || !b || a->empty() || b->empty()) return;
  Shape content(std::max(a->size(), b->size()));
  if ((a->size() != 1 && a->size() != content.size()) || (b->size() != 1 && b->size() != content.size()))
    return;
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = f(infer, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
  infer.content(0, content);
}

template <regie_dim (sdk::Dims::*f)(regie_dim, regie_dim) const>
void infer_exact(const Infer& infer) {
  infer_arithmetic(infer, [](const Infer& i, regie_dim a, regie_dim b) { return (i.dims.*f)(a, b); });
}

// ONNX truncates, expressions round down: the same for non-negative numbers.
void infer_div(const Infer& infer) {
  infer_arithmetic(infer, [](const Infer& i, regie_dim a, regie_dim b) {
    auto x = i.number(a), y = i.number(b);
    const bool fraction = i.elem(0) != REGIE_I64 && i.elem(0) != REGIE_I32;
    if (fraction) return x && y && *y != 0 && *x % *y == 0 ? i.dim(*x / *y) : b == 1 ? a : REGIE_DIM_UNKNOWN;
    if (x && y) return *y == 0 || (*x == INT64_MIN && *y == -1) ? REGIE_DIM_UNKNOWN : i.dim(*x / *y);
    bool same = i.surely_at_least(a, 0) && i.surely_at_least(b, 1);
    return same ? i.dims.floordiv(a, b) : REGIE_DIM_UNKNOWN;
  });
}

// ---- Kernels ----

struct Minus {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(Wrap<A>(a) - Wrap<A>(b));
  }
};
struct Divided {
  template <class A>
  A operator()(A a, A b) const {
    if constexpr (std::is_integral_v<A>) {
      if (b == 0) throw sdk::Failure(REGIE_INVALID_INPUT, "Div: division of an integer by zero");
      if constexpr (std::is_signed_v<A>)
        if (b == A(-1)) return static_cast<A>(uint64_t{0} - static_cast<uint64_t>(a));
    }
    return static_cast<A>(a / b);
  }
};
// ---- Pow: base and exponent may differ in type; the result is of the base's ----

// base^exponent; wraps around. Negative exponents truncate towards zero.
template <class A>
A integer_power(A base, int64_t exponent) {
  if (exponent < 0) {
    if (base == A(1)) return base;
    if constexpr (std::is_signed_v<A>)
      if (base == A(-1)) return exponent % 2 == 0 ? A(1) : A(-1);
    return A(0);
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1, square *= square)
    if (e & 1) result *= square;
  return static_cast<A>(result);
}

template <class T, class E>
KernelPtr pow_kernel(Prepare& p) {
  const Walk<3> walk = broadcast_walk(p);
  return make_kernel([=](const Call& call) {
    using A = Compute<T>;
    walk.rows([&](const auto& at, int64_t count, const auto& step) {
      const T* base = call.in<T>(0) + at[0];
      const E* exponent = call.in<E>(1) + at[1];
      T* y = call.out<T>(0) + at[2];
      for (int64_t i = 0; i < count; ++i) {
        A x = base[i * step[0]];
        Compute<E> e = exponent[i * step[1]];
        if constexpr (is_float<T>) {
          y[i * step[2]] = T(std::pow(x, static_cast<A>(e)));
        } else if constexpr (is_float<E>) {
          y[i * step[2]] = saturated<T>(std::pow(static_cast<double>(x), static_cast<double>(e)));
        } else {
          y[i * step[2]] = integer_power(x, static_cast<int64_t>(e));
        }
      }
    });
  });
}

KernelPtr prepare_pow(Prepare& p) {
  using Bases = Join<Floats, Types<int32_t, int64_t>>;
  return p.dispatch(Bases(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(Numbers(), p.in(1).elem, [&]<class E>() { return pow_kernel<T, E>(p); });
  });
}

// ---- Min and Max ----

template <regie_dim (sdk::Dims::*f)(regie_dim, regie_dim) const>
void infer_extremum(const Infer& infer) {
  if (infer.operands() == 2) return infer_exact<f>(infer);
  if (infer.operands() == 0) infer.bad("needs at least one operand");
  infer.result(0, infer.elem(0), broadcast_operands(infer, 0, infer.operands()));
  if (infer.operands() != 1) return;
  if (auto content = infer.content(0)) infer.content(0, *content);
}

// Element by element over all operands, as the result may lie on any of them.
template <class T, class F>
KernelPtr extremum_kernel(Prepare& p, F f) {
  auto shape = broadcast_operands(p, 0, p.operands());
  p.expect_result(0, shape);
  std::vector<Dims> strides;
  for (uint32_t i = 0; i < p.operands(); ++i) strides.push_back(broadcast_strides(p.op, p.shape(i), shape));
  return make_kernel([=, count = sdk::count_of(p.out(0))](const Call& call) {
    Dims index{};
    for (int64_t at = 0; at < count; ++at) {
      Compute<T> value{};
      for (uint32_t k = 0; k < strides.size(); ++k) {
        int64_t from = 0;
        for (size_t axis = 0; axis < shape.size(); ++axis) from += index[axis] * strides[k][axis];
        Compute<T> next = call.in<T>(k)[from];
        value = k == 0 ? next : f(value, next);
      }
      call.out<T>(0)[at] = T(value);
      for (size_t axis = shape.size(); axis-- > 0;) {
        if (++index[axis] < shape[axis]) break;
        index[axis] = 0;
      }
    }
  });
}

template <class F>
KernelPtr prepare_extremum(Prepare& p) {
  for (uint32_t i = 0; i < p.operands(); ++i)
    if (p.in(i).elem != p.in(0).elem) p.bad("all operands must have one type");
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() {
    return p.operands() == 2 ? binary_kernel<T, T>(p, F()) : extremum_kernel<T>(p, F());
  });
}

constexpr uint32_t flags = REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE;
constexpr Op table[] = {
    {"Add", flags, infer_exact<&sdk::Dims::add>, prepare_binary<Plus>},
    {"Sub", flags, infer_exact<&sdk::Dims::sub>, prepare_binary<Minus>},
    {"Mul", flags, infer_exact<&sdk::Dims::mul>, prepare_binary<Times>},
    {"Div", flags, infer_div, prepare_binary<Divided>},
    {"Pow", flags, infer_broadcast, prepare_pow},
    {"Min", flags, infer_extremum<&sdk::Dims::min>, prepare_extremum<Least>},
    {"Max", flags, infer_extremum<&sdk::Dims::max>, prepare_extremum<Greatest>},
};

}  // namespace

std::span<const Op> binary_ops() { return table; }

}  // namespace regie::ops
