// More element-wise operators with one tensor: trigonometry, soft activations, tests of floats, bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "broadcast.h"
#include "functors.h"
#include "map.h"
#include "op.h"

namespace regie::ops {
namespace {

// One operator, one struct: what it does to a number.
#define REGIE_OPS_FUNCTION(Name, expression) \
  struct Name {                              \
    template <class A>                       \
    A operator()(A x) const {                \
      return expression;                     \
    }                                        \
  };
REGIE_OPS_FUNCTION(Sin, std::sin(x))
REGIE_OPS_FUNCTION(Cos, std::cos(x))
REGIE_OPS_FUNCTION(Tan, std::tan(x))
REGIE_OPS_FUNCTION(Asin, std::asin(x))
REGIE_OPS_FUNCTION(Acos, std::acos(x))
REGIE_OPS_FUNCTION(Atan, std::atan(x))
REGIE_OPS_FUNCTION(Sinh, std::sinh(x))
REGIE_OPS_FUNCTION(Cosh, std::cosh(x))
REGIE_OPS_FUNCTION(Asinh, std::asinh(x))
REGIE_OPS_FUNCTION(Acosh, std::acosh(x))
REGIE_OPS_FUNCTION(Atanh, std::atanh(x))
REGIE_OPS_FUNCTION(Sign, x > A(0) ? A(1) : x < A(0) ? static_cast<A>(-1) : x)  // NaN stays
REGIE_OPS_FUNCTION(Mish, x* std::tanh(Softplus()(x)))
REGIE_OPS_FUNCTION(BitwiseNot, static_cast<A>(~x))
#undef REGIE_OPS_FUNCTION

struct Selu {
  double alpha, gamma;
  template <class A>
  A operator()(A x) const {
    return static_cast<A>(gamma) * (x > A(0) ? x : static_cast<A>(alpha) * std::expm1(x));
  }
};
struct Celu {
  double alpha;
  template <class A>
  A operator()(A x) const {
    const A a = static_cast<A>(alpha);
    return x > A(0) ? x : a * std::expm1(x / a);
  }
};
struct Shrink {
  double bias, lambd;
  template <class A>
  A operator()(A x) const {
    if (static_cast<double>(x) < -lambd) return static_cast<A>(static_cast<double>(x) + bias);
    if (static_cast<double>(x) > lambd) return static_cast<A>(static_cast<double>(x) - bias);
    return A(0);
  }
};
struct ScaledSwish {
  double alpha;
  template <class A>
  A operator()(A x) const {
    return x / (A(1) + std::exp(-static_cast<A>(alpha) * x));
  }
};
KernelPtr prepare_selu(Prepare& p) {
  const Selu f{p.attrs.number("alpha", 1.67326319217681884765625),
               p.attrs.number("gamma", 1.05070102214813232421875)};
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, f); });
}

template <class F>
KernelPtr prepare_with_alpha(Prepare& p) {
  const F f{p.attrs.number("alpha", 1)};
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, f); });
}

KernelPtr prepare_shrink(Prepare& p) {
  const Shrink f{p.attrs.number("bias", 0), p.attrs.number("lambd", 0.5)};
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() { return map_kernel<T>(p, f); });
}

void infer_gelu(const Infer& infer) {
  std::string_view how = infer.attrs.text("approximate", "none");
  if (how != "none" && how != "tanh") infer.bad("unknown approximate '" + std::string(how) + "'");
  infer_same(infer);
}

KernelPtr prepare_gelu(Prepare& p) {
  const bool by_tanh = p.attrs.text("approximate", "none") == "tanh";
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return by_tanh ? map_kernel<T>(p, GeluTanh(0, 0)) : map_kernel<T>(p, Gelu(0, 0));
  });
}

// ---- Tests ----

void infer_test(const Infer& infer) { infer.result(0, REGIE_BOOL, infer.shape(0)); }

template <class F>
KernelPtr test_kernel(Prepare& p, F f) {
  p.expect_result(0, p.shape(0));
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([f, count = sdk::count_of(p.in(0))](const Call& call) {
      for (int64_t i = 0; i < count; ++i) call.out<Bool>(0)[i] = Bool(f(Compute<T>(call.in<T>(0)[i])));
    });
  });
}

KernelPtr prepare_is_nan(Prepare& p) {
  return test_kernel(p, [](auto x) { return std::isnan(x); });
}

KernelPtr prepare_is_inf(Prepare& p) {
  const bool negative = p.attrs.integer("detect_negative", 1) != 0;
  const bool positive = p.attrs.integer("detect_positive", 1) != 0;
  return test_kernel(p, [=](auto x) { return std::isinf(x) && (x < 0 ? negative : positive); });
}

// ---- PRelu: the slope broadcasts to x ----

void infer_prelu(const Infer& infer) {
  check_addend(infer, 1, infer.shape(0));
  infer_same(infer);
}

KernelPtr prepare_prelu(Prepare& p) {
  if (p.in(0).elem != p.in(1).elem) p.bad("both operands must have one type");
  return p.dispatch(Join<Floats, WideInts>(), p.in(0).elem, [&]<class T>() {
    return binary_kernel<T, T>(
        p, [](auto x, auto slope) { return x < decltype(x)(0) ? decltype(x)(x * slope) : x; });
  });
}

constexpr uint32_t flags = REGIE_OP_INPLACE | REGIE_OP_ELEMENTWISE;
constexpr Op table[] = {
    {"Sin", flags, infer_same, prepare_map<Sin>},
    {"Cos", flags, infer_same, prepare_map<Cos>},
    {"Tan", flags, infer_same, prepare_map<Tan>},
    {"Asin", flags, infer_same, prepare_map<Asin>},
    {"Acos", flags, infer_same, prepare_map<Acos>},
    {"Atan", flags, infer_same, prepare_map<Atan>},
    {"Sinh", flags, infer_same, prepare_map<Sinh>},
    {"Cosh", flags, infer_same, prepare_map<Cosh>},
    {"Asinh", flags, infer_same, prepare_map<Asinh>},
    {"Acosh", flags, infer_same, prepare_map<Acosh>},
    {"Atanh", flags, infer_same, prepare_map<Atanh>},
    {"Sign", flags, infer_same, prepare_map<Sign, Numbers>},
    {"Softsign", flags, infer_same, prepare_map<Softsign>},
    {"Softplus", flags, infer_same, prepare_map<Softplus>},
    {"Mish", flags, infer_same, prepare_map<Mish>},
    {"BitwiseNot", flags, infer_same, prepare_map<BitwiseNot, Ints>},
    {"Selu", flags, infer_same, prepare_selu},
    {"Celu", flags, infer_same, prepare_with_alpha<Celu>},
    {"ThresholdedRelu", flags, infer_same, prepare_with_alpha<ThresholdedRelu>},
    {"Swish", flags, infer_same, prepare_with_alpha<ScaledSwish>},
    {"Shrink", flags, infer_same, prepare_shrink},
    {"Gelu", flags, infer_gelu, prepare_gelu},
    {"IsNaN", REGIE_OP_ELEMENTWISE, infer_test, prepare_is_nan},
    {"IsInf", REGIE_OP_ELEMENTWISE, infer_test, prepare_is_inf},
    {"PRelu", flags, infer_prelu, prepare_prelu},
};

}  // namespace

std::span<const Op> math_ops() { return table; }

}  // namespace regie::ops
