// What element-wise operators with one tensor share: a result of the operand's type, and the kernel of a
// function.
#pragma once

#include "op.h"

namespace regie::ops {

inline void infer_same(const Infer& infer) { infer.result(0, infer.elem(0), infer.shape(0)); }

// The kernel that applies f to each element.
template <class T, class F>
KernelPtr map_kernel(Prepare& p, F f) {
  p.expect_result(0, p.shape(0));
  return make_kernel([f, count = sdk::count_of(p.in(0))](const Call& call) {
    const T* from = call.in<T>(0);
    T* to = call.out<T>(0);
    for (int64_t i = 0; i < count; ++i) to[i] = T(f(Compute<T>(from[i])));
  });
}

template <class F, class List = Floats>
KernelPtr prepare_map(Prepare& p) {
  return p.dispatch(List(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, F()); });
}

}  // namespace regie::ops
