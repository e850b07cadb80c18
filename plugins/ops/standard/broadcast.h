// What element-wise operators with several tensors share: the broadcast shape, and kernels over it.
#pragma once

#include <algorithm>

#include "op.h"
#include "walk.h"

namespace regie::ops {

// Operand i, where present, must broadcast to `y` without making it larger.
inline void check_addend(const Infer& infer, uint32_t i, std::span<const regie_dim> y) {
  if (!infer.has(i)) return;
  auto c = infer.shape(i);
  bool fits = c.size() <= y.size();
  for (size_t k = 0; fits && k < c.size(); ++k) {
    regie_dim to = y[y.size() - c.size() + k];
    fits = c[k] == 1 || !infer.surely_differ(c[k], to) || !infer.surely_differ(c[k], 1);
  }
  if (!fits)
    infer.bad("operand " + std::to_string(i) + " of shape " + infer.print(c) + " cannot be broadcast to " +
              infer.print(y));
}

// Makes `shape` the one that both broadcast to; broadcast_strides finds out whether they do.
inline void widen(std::vector<int64_t>* shape, Index other) {
  if (shape->size() < other.size()) shape->insert(shape->begin(), other.size() - shape->size(), 1);
  for (size_t i = 0; i < other.size(); ++i)
    if (other[i] != 1) (*shape)[shape->size() - other.size() + i] = other[i];
}

// The common shape of operands first..last-1.
inline Shape broadcast_operands(const Infer& infer, uint32_t first, uint32_t last) {
  Shape shape(infer.shape(first).begin(), infer.shape(first).end());
  for (uint32_t i = first + 1; i < last; ++i) shape = infer.broadcast(shape, infer.shape(i));
  return shape;
}

inline std::vector<int64_t> broadcast_operands(const Prepare& p, uint32_t first, uint32_t last) {
  std::vector<int64_t> shape;
  for (uint32_t i = first; i < last; ++i) widen(&shape, p.shape(i));
  check_rank(p.op, shape.size());
  return shape;
}

inline void infer_broadcast(const Infer& infer) {
  infer.result(0, infer.elem(0), broadcast_operands(infer, 0, 2));
}

// Operands 0 and 1, broadcast, and the result, which must have their common shape.
inline Walk<3> broadcast_walk(const Prepare& p) {
  auto shape = broadcast_operands(p, 0, 2);
  p.expect_result(0, shape);
  return {shape,
          {broadcast_strides(p.op, p.shape(0), shape), broadcast_strides(p.op, p.shape(1), shape),
           dense_strides(shape)}};
}

// result = f(a, b) with operands 0 and 1; T is their type, R the result's.
template <class T, class R, class F>
KernelPtr binary_kernel(Prepare& p, F f) {
  const Walk<3> walk = broadcast_walk(p);
  return make_kernel([=](const Call& call) {
    using A = Compute<T>;
    const T *left = call.in<T>(0), *right = call.in<T>(1);
    R* result = call.out<R>(0);
    walk.rows([&](const auto& at, int64_t count, const auto& step) {
      const T *a = left + at[0], *b = right + at[1];
      R* y = result + at[2];
      if (step[0] == 1 && step[1] == 1) {
        for (int64_t i = 0; i < count; ++i) y[i] = R(f(A(a[i]), A(b[i])));
      } else if (step[0] == 1 && step[1] == 0) {
        for (A scalar = *b; count > 0; --count, ++a, ++y) *y = R(f(A(*a), scalar));
      } else if (step[0] == 0 && step[1] == 1) {
        for (A scalar = *a; count > 0; --count, ++b, ++y) *y = R(f(scalar, A(*b)));
      } else {
        for (int64_t i = 0; i < count; ++i) y[i * step[2]] = R(f(A(a[i * step[0]]), A(b[i * step[1]])));
      }
    });
  });
}

// The same of two operands of one type, which is in the list; R: the result's type, where it is another.
template <class F, class List = Numbers, class R = void>
KernelPtr prepare_binary(Prepare& p) {
  if (p.in(0).elem != p.in(1).elem) p.bad("both operands must have one type");
  return p.dispatch(List(), p.in(0).elem, [&]<class T>() {
    return binary_kernel<T, std::conditional_t<std::is_void_v<R>, T, R>>(p, F());
  });
}

}  // namespace regie::ops
