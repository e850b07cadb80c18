// Element-wise operators with one tensor: activations, mathematics, rounding, Not, Clip.
#include <algorithm>
#include <cmath>
#include <limits>

#include "functors.h"
#include "map.h"
#include "op.h"

namespace regie::ops {
namespace {

// Neg and Abs occur in the arithmetic on shapes.
void infer_neg(const Infer& infer) {
  infer_same(infer);
  if (auto content = infer.content(0)) {
    for (regie_dim& d : *content) d = infer.dims.sub(0, d);
    infer.content(0, *content);
  }
}

void infer_abs(const Infer& infer) {
  infer_same(infer);
  if (auto content = infer.content(0)) {
    for (regie_dim& d : *content) d = infer.dims.max(d, infer.dims.sub(0, d));
    infer.content(0, *content);
  }
}

// Whole numbers stay what they are.
void infer_rounding(const Infer& infer) {
  infer_same(infer);
  if (auto elements = infer.elements(0)) infer.content(0, *elements);
}

void infer_clip(const Infer& infer) {
  for (uint32_t i = 1; i <= 2; ++i)
    if (infer.has(i))
      for (regie_dim d : infer.shape(i))
        if (!infer.agree(d, 1)) infer.bad("the bounds must be single numbers");
  infer_same(infer);
}

// Not occurs in conditions on shapes.
void infer_not(const Infer& infer) {
  infer_same(infer);
  auto numbers = infer.numbers(0);
  if (!numbers) return;
  for (int64_t& n : *numbers) n = n == 0;
  infer.content(0, *numbers);
}

// Operators whose function is one of functors.h.
template <class F>
KernelPtr prepare_activation(Prepare& p) {
  F f(p.attrs.number("alpha", 0), p.attrs.number("beta", 0));
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, f); });
}

KernelPtr prepare_relu(Prepare& p) {
  return p.dispatch(SignedNumbers(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, Relu(0, 0)); });
}

struct Erf {
  template <class A>
  A operator()(A x) const {
    return std::erf(x);
  }
};
struct Exp {
  template <class A>
  A operator()(A x) const {
    return std::exp(x);
  }
};
struct Log {
  template <class A>
  A operator()(A x) const {
    return std::log(x);
  }
};
struct Sqrt {
  template <class A>
  A operator()(A x) const {
    return std::sqrt(x);
  }
};
struct Reciprocal {
  template <class A>
  A operator()(A x) const {
    return A(1) / x;
  }
};
struct Floor {
  template <class A>
  A operator()(A x) const {
    return std::floor(x);
  }
};
struct Ceil {
  template <class A>
  A operator()(A x) const {
    return std::ceil(x);
  }
};
// Halves go to the even neighbour, whatever the rounding mode of the thread is.
struct Round {
  template <class A>
  A operator()(A x) const {
    A down = std::floor(x), rest = x - down;
    if (rest < A(0.5)) return std::copysign(down, x);
    if (rest > A(0.5)) return std::copysign(down + A(1), x);
    return rest == A(0.5) ? std::copysign(A(2) * std::floor(down / A(2) + A(0.5)), x) : x;
  }
};
// Integers wrap around, also where the language leaves it undefined.
struct Neg {
  template <class A>
  A operator()(A x) const {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(uint64_t{0} - static_cast<uint64_t>(x));
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class A>
  A operator()(A x) const {
    if constexpr (std::is_floating_point_v<A>) {
      return std::fabs(x);
    } else if constexpr (std::is_unsigned_v<A>) {
      return x;
    } else {
      return x < 0 ? Neg()(x) : x;
    }
  }
};
struct Not {
  bool operator()(bool x) const { return !x; }
};

KernelPtr prepare_clip(Prepare& p) {
  p.expect_result(0, p.shape(0));
  bool lower = p.has(1), upper = p.has(2);
  for (uint32_t i = 1; i <= 2; ++i)
    if (p.has(i) && (sdk::count_of(p.in(i)) != 1 || p.in(i).elem != p.in(0).elem))
      p.bad("the bounds must be single numbers of the input's type");
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, count = sdk::count_of(p.in(0))](const Call& call) {
      using A = Compute<T>;
      A low = lower ? A(*call.in<T>(1)) : least<T>;
      A high = upper ? A(*call.in<T>(2)) : greatest<T>;
      const T* from = call.in<T>(0);
      T* to = call.out<T>(0);
      for (int64_t i = 0; i < count; ++i) {
        A x = from[i];
        x = x < low ? low : x;
        to[i] = T(x > high ? high : x);
      }
    });
  });
}

constexpr uint32_t flags = REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE;
constexpr Op table[] = {
    {"Relu", flags, infer_same, prepare_relu},
    {"LeakyRelu", flags, infer_same, prepare_activation<LeakyRelu>},
    {"Sigmoid", flags, infer_same, prepare_activation<Sigmoid>},
    {"Tanh", flags, infer_same, prepare_activation<Tanh>},
    {"HardSigmoid", flags, infer_same, prepare_activation<HardSigmoid>},
    {"HardSwish", flags, infer_same, prepare_activation<HardSwish>},
    {"Elu", flags, infer_same, prepare_activation<Elu>},
    {"Erf", flags, infer_same, prepare_map<Erf>},
    {"Exp", flags, infer_same, prepare_map<Exp>},
    {"Log", flags, infer_same, prepare_map<Log>},
    {"Sqrt", flags, infer_same, prepare_map<Sqrt>},
    {"Reciprocal", flags, infer_same, prepare_map<Reciprocal>},
    {"Floor", flags, infer_rounding, prepare_map<Floor>},
    {"Ceil", flags, infer_rounding, prepare_map<Ceil>},
    {"Round", flags, infer_rounding, prepare_map<Round>},
    {"Abs", flags, infer_abs, prepare_map<Abs, Numbers>},
    {"Neg", flags, infer_neg, prepare_map<Neg, SignedNumbers>},
    {"Not", flags, infer_not, prepare_map<Not, Types<Bool>>},
    {"Clip", flags, infer_clip, prepare_clip},
};

}  // namespace

std::span<const Op> unary_ops() { return table; }

}  // namespace regie::ops
