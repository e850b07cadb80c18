// Scalar functions of one element, shared by the element-wise operators and by the activations of fused ones.
//
// Those that activations may be are made from two parameters (unused ones are ignored). All work on what
// Compute<T> gives.
#pragma once

#include <cmath>
#include <string_view>
#include <type_traits>

#include "regie/plugin.hpp"

namespace regie::ops {

struct Same {
  Same(double, double) {}
  template <class A>
  A operator()(A x) const {
    return x;
  }
};

struct Relu {
  Relu(double, double) {}
  template <class A>
  A operator()(A x) const {
    return x < A(0) ? A(0) : x;
  }
};

struct LeakyRelu {
  LeakyRelu(double a, double) : alpha(a) {}
  template <class A>
  A operator()(A x) const {
    return x < A(0) ? A(alpha) * x : x;
  }
  double alpha;
};

struct Sigmoid {
  Sigmoid(double, double) {}
  template <class A>
  A operator()(A x) const {
    return A(1) / (A(1) + std::exp(-x));
  }
};

struct Tanh {
  Tanh(double, double) {}
  template <class A>
  A operator()(A x) const {
    return std::tanh(x);
  }
};

struct HardSigmoid {
  HardSigmoid(double a, double b) : alpha(a), beta(b) {}
  template <class A>
  A operator()(A x) const {
    A y = A(alpha) * x + A(beta);
    return y < A(0) ? A(0) : y > A(1) ? A(1) : y;
  }
  double alpha, beta;
};

struct HardSwish {
  HardSwish(double, double) {}
  template <class A>
  A operator()(A x) const {
    return x * HardSigmoid(1.0 / 6.0, 0.5)(x);
  }
};

struct Swish {
  Swish(double, double) {}
  template <class A>
  A operator()(A x) const {
    return x * Sigmoid(0, 0)(x);
  }
};

struct Elu {
  Elu(double a, double) : alpha(a) {}
  template <class A>
  A operator()(A x) const {
    return x < A(0) ? A(alpha) * std::expm1(x) : x;
  }
  double alpha;
};

struct ClipTo {
  ClipTo(double low, double high) : lower(low), upper(high) {}
  template <class A>
  A operator()(A x) const {
    A y = x < A(lower) ? A(lower) : x;
    return y > A(upper) ? A(upper) : y;
  }
  double lower, upper;
};

struct Gelu {
  Gelu(double, double) {}
  template <class A>
  A operator()(A x) const {
    return A(0.5) * x * (A(1) + std::erf(x * A(0.70710678118654752440)));
  }
};

// The approximation by tanh.
struct GeluTanh {
  GeluTanh(double, double) {}
  template <class A>
  A operator()(A x) const {
    A inner = A(0.79788456080286535588) * (x + A(0.044715) * x * x * x);  // sqrt(2 / pi)
    return A(0.5) * x * (A(1) + std::tanh(inner));
  }
};

struct ThresholdedRelu {
  double alpha;
  template <class A>
  A operator()(A x) const {
    return x > static_cast<A>(alpha) ? x : A(0);
  }
};

struct Softsign {
  template <class A>
  A operator()(A x) const {
    return x / (A(1) + std::abs(x));
  }
};

struct Softplus {
  template <class A>
  A operator()(A x) const {
    return (x > A(0) ? x : A(0)) + std::log1p(std::exp(-std::abs(x)));
  }
};

// `activation`, `activation_alpha` and `activation_beta` of the fused operators.
class Activation {
 public:
  explicit Activation(std::string_view op, const sdk::Attrs& attrs)
      : alpha_(attrs.number("activation_alpha", 0)), beta_(attrs.number("activation_beta", 0)) {
    std::string_view name = attrs.text("activation", "");
    for (size_t i = 0; i < std::size(names); ++i)
      if (names[i] == name) kind_ = static_cast<Kind>(i);
    if (names[kind_] != name)
      throw sdk::Failure(REGIE_INVALID_MODEL,
                         std::string(op) + ": unknown activation '" + std::string(name) + "'");
  }

  template <class A>
  void apply(A* data, int64_t count) const {
    auto each = [&](auto f) {
      for (int64_t i = 0; i < count; ++i) data[i] = f(data[i]);
    };
    switch (kind_) {
      case kNone:
        return;
      case kRelu:
        return each(Relu(alpha_, beta_));
      case kLeakyRelu:
        return each(LeakyRelu(alpha_, beta_));
      case kSigmoid:
        return each(Sigmoid(alpha_, beta_));
      case kTanh:
        return each(Tanh(alpha_, beta_));
      case kHardSigmoid:
        return each(HardSigmoid(alpha_, beta_));
      case kHardSwish:
        return each(HardSwish(alpha_, beta_));
      case kClip:
        return each(ClipTo(alpha_, beta_));
      case kElu:
        return each(Elu(alpha_, beta_));
      case kSwish:
        return each(Swish(alpha_, beta_));
      case kGelu:
        return each(Gelu(alpha_, beta_));
      case kGeluTanh:
        return each(GeluTanh(alpha_, beta_));
    }
  }

 private:
  enum Kind {
    kNone,
    kRelu,
    kLeakyRelu,
    kSigmoid,
    kTanh,
    kHardSigmoid,
    kHardSwish,
    kClip,
    kElu,
    kSwish,
    kGelu,
    kGeluTanh
  };
  static constexpr std::string_view names[] = {"",     "Relu",        "LeakyRelu", "Sigmoid",
                                               "Tanh", "HardSigmoid", "HardSwish", "Clip",
                                               "Elu",  "Swish",       "Gelu",      "GeluTanh"};
  Kind kind_ = kNone;
  double alpha_, beta_;
};

}  // namespace regie::ops
