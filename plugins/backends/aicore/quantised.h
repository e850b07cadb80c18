// Products of bytes as the graph has them: where each operator keeps its operands, the weights and what goes
// with them read out of constants, and the packed form that programs read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower.h"

namespace aicore {

// Operands by number; REGIE_NONE where the operator has none.
struct BytePlaces {
  uint32_t x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero;
};
// Nothing where the operator is none of these.
const BytePlaces* byte_places(std::string_view op);

// An element of a constant of bytes.
inline int32_t byte_at(const regie_tensor& t, int64_t i) {
  return t.elem == REGIE_U8 ? static_cast<const uint8_t*>(t.data)[i] : static_cast<const int8_t*>(t.data)[i];
}

// One number a column of the product.
struct ByteColumns {
  std::vector<int32_t> weight_zeros;         // one, or one a column
  std::vector<int32_t> biases;               // whole, in units of the sums; empty: none
  std::vector<float> factors, float_biases;  // empty: none
};

// Weights minus their zero points as sums of so many s8.
int64_t parts_of(const CubeProblem& problem, const regie_tensor& weights, const ByteColumns& columns);
// (group, block of 32 k, tile of columns, part, block of columns, 16 n, 32 k), then the tables.
std::string pack_bytes(const CubeProblem& problem, const CubePlan& plan, const regie_tensor& weights,
                       const ByteColumns& columns);

}  // namespace aicore
