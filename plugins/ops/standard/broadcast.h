// What element-wise operators with several tensors share: the broadcast shape, and kernels over it.
#pragma once

#include <algorithm>

#include "op.h"
#include "walk.h"

namespace regie::ops {

// Operand i, where present, must broadcast to `y` without making it larger.
inline void check_addend(const Infer& infer, uint32_t i, const Shape& y) {
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

// The common shape of operands first..last-1.
inline Shape broadcast_operands(const Infer& infer, uint32_t first, uint32_t last) {
  Shape shape(infer.shape(first).begin(), infer.shape(first).end());
  for (uint32_t i = first + 1; i < last; ++i) shape = infer.broadcast(shape, infer.shape(i));
  return shape;
}

inline std::vector<int64_t> broadcast_operands(const Prepare& p, uint32_t first, uint32_t last) {
  size_t rank = 0;
  for (uint32_t i = first; i < last; ++i) rank = std::max(rank, p.shape(i).size());
  check_rank(p.op, rank);
  std::vector<int64_t> shape(rank, 1);
  for (uint32_t i = first; i < last; ++i) {
    Index s = p.shape(i);
    for (size_t k = 0; k < s.size(); ++k)
      if (s[k] != 1) shape[rank - s.size() + k] = s[k];
  }
  return shape;
}

// result = f(a, b) with operands 0 and 1; T is their type, R the result's.
template <class T, class R, class F>
KernelPtr binary_kernel(Prepare& p, F f) {
  auto shape = broadcast_operands(p, 0, 2);
  p.expect_result(0, shape);
  Walk<3> walk(shape, {broadcast_strides(p.op, p.shape(0), shape), broadcast_strides(p.op, p.shape(1), shape),
                       dense_strides(shape)});
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

}  // namespace regie::ops
