// Arithmetic of two numbers as the operators define it: integers wrap around, NaN stays.
#pragma once

#include <cstdint>
#include <type_traits>

namespace regie::ops {

// Integers wrap around: computed without sign, wide enough that no promotion to int gets in the way.
template <class A>
using Wrap = std::conditional_t<std::is_integral_v<A>, uint64_t, A>;

struct Plus {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(Wrap<A>(a) + Wrap<A>(b));
  }
};
struct Times {
  template <class A>
  A operator()(A a, A b) const {
    return static_cast<A>(Wrap<A>(a) * Wrap<A>(b));
  }
};
// A NaN on either side gives NaN.
struct Least {
  template <class A>
  A operator()(A a, A b) const {
    return b < a || b != b ? b : a;
  }
};
struct Greatest {
  template <class A>
  A operator()(A a, A b) const {
    return a < b || b != b ? b : a;
  }
};

}  // namespace regie::ops
