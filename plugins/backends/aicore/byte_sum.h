// A sum of two quantised numbers, quantised again, as DequantizeLinear, Add, Relu and QuantizeLinear are one
// by one. There are 65,536 pairs of bytes: that a shorter way gives the same bytes is tried out on all of
// them.
#pragma once

#include <optional>
#include <string>
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

// The same on the cube: each of the two is multiplied by a number of two halves, sums are of f32, and
// `factor` brings them to units of the result.
struct CubeSum {
  float inner_high = 0, inner_low = 0, residual_high = 0, residual_low = 0;  // halves
  float factor = 0;
};
// Nothing where none was found that gives the operators' bytes for all pairs.
std::optional<CubeSum> cube_sum_of(const ByteSum& sum);
// The right matrix of it: fractals of 16 x 16 halves, the numbers on their diagonals, in the order of CubeSum
// but that the high ones come first.
std::string pack_cube_sum(const CubeSum& sum);

}  // namespace aicore
