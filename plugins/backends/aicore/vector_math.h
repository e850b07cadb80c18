// Element-wise operators as sequences of vector instructions on f32 in UB. The hardware has exp, ln, roots
// and reciprocals; tanh, erf, sigmoid and what is made of them are written with these. An operator writes a
// register of its own and leaves its sources as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regie/plugin.hpp"
#include "regie/tile/builder.h"

namespace aicore {

struct Source {
  regie::tile::Expr at = 0;       // in UB
  std::optional<float> constant;  // instead
};

// An operator of the table: ONNX's, or an activation of a fused operator by the same name.
struct VectorOp {
  std::string_view name;
  uint32_t temporaries;   // registers beside the result
  uint32_t instructions;  // about; slow ones count as `slow_passes` in the cost
  uint32_t slow;
};
const VectorOp* find_vector_op(std::string_view name);
// Of operators that are one instruction with two operands.
std::optional<uint8_t> binary_instruction(const VectorOp& op);

struct VectorStep {
  const VectorOp* op;
  float alpha = 0, beta = 0;  // of activations: LeakyRelu, Elu, HardSigmoid, Clip
  std::vector<Source> in;
};

// One operator as the node says it; throws UNSUPPORTED where it cannot. `in` are as many as operands; absent
// ones are dropped.
VectorStep vector_step(std::string_view op, const regie::sdk::Attrs& attrs, std::vector<Source> in);
// "Relu" and so on with its two parameters.
VectorStep activation_step(std::string_view name, float alpha, float beta, Source in);

// `count` elements from everywhere; `temporaries` are addresses of as many registers as the operator asks
// for.
void emit_vector(regie::tile::Builder& b, const VectorStep& step, const regie::tile::Expr& to,
                 const std::vector<regie::tile::Expr>& temporaries, const regie::tile::Expr& count);

}  // namespace aicore
