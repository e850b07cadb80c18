// What follows a product in one kernel of our own, on floats in place.
#pragma once

#include <optional>

#include "operation.h"
#include "simd.h"

namespace host_cpu {

struct After {
  bool affine = false;  // a x + b
  Unary op = Unary::kRelu;
  float a = 0, b = 0;
  void run(float* y, int64_t n) const {
    if (affine)
      simd().affine_one(y, y, a, b, n);
    else
      simd().unary(op, y, y, n, a, b);
  }
};

// Nothing where it has other operands, or there is no kernel for it.
std::optional<After> after(const PostOp& p);

}  // namespace host_cpu
