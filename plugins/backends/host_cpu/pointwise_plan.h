// What an element-wise program does with one tile, ready to run: loops over registers (runs of elements that
// stay in the first-level cache), and where the registers come from. Independent of shapes.
#pragma once

#include <string>
#include <vector>

#include "pointwise_loops.h"
#include "pointwise_program.h"

namespace host_cpu {

Lane lane_of(regie_elem elem);         // what it is computed with; kOther: only by reference kernels
uint32_t lane_bytes(regie_elem elem);  // of an element in a register
uint32_t elem_bytes(regie_elem elem);  // in memory
bool is_half(regie_elem elem);         // f16, bf16: their registers hold f32

struct PointwiseInstruction {
  Loop loop = nullptr;  // null: the reference kernel of step `step`
  uint32_t step = 0;
  uint32_t operands[3] = {REGIE_NONE, REGIE_NONE, REGIE_NONE};  // values
  uint32_t result = 0;                                          // value
  double p = 0, q = 0;
};

struct PointwisePlan {
  std::vector<PointwiseInstruction> instructions;
  // By value: the value in whose place it lies (Cast to the type that it has), itself otherwise.
  std::vector<uint32_t> same_as;
  // Constants that steps lack (an absent bound of Clip): values from program.value_count() on.
  std::vector<PointwiseProgram::Constant> more_constants;
  double cost = 0;  // of an element, in those of an addition
  uint32_t value_count = 0;
};

PointwisePlan plan_pointwise(const PointwiseProgram& program);

}  // namespace host_cpu
