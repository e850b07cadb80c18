// A sum of two quantised numbers, quantised again, as DequantizeLinear, Add, Relu and QuantizeLinear are one
// by one. There are 65,536 pairs of bytes: that a shorter way gives the same bytes is tried out on all of
// them.
#pragma once

#include <tuple>

#include "regie/c/view.h"

namespace aicore {

struct ByteSum {
  regie_elem elem = REGIE_U8,
             residual_elem = REGIE_U8;  // of the inner number and of the sum; of the residual
  float inner_scale = 0, residual_scale = 0, scale = 0;
  int32_t inner_zero = 0, residual_zero = 0, zero = 0, low = 0;
};

// What an inner number and a residual, less their zero points, are multiplied by in f32, and what their sum
// is divided by then, or 0: scales that hold the division already and give the operators' bytes for all
// pairs.
std::tuple<float, float, float> scales_of(const ByteSum& sum);

}  // namespace aicore
