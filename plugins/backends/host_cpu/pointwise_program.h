// An element-wise kernel as data: what a regie.Pointwise's region says, or a single element-wise operator, in
// a form that a device can read back from a kernel blob.
//
// Format "host_cpu.pointwise/1": "RGPW", u32 version; u32 operands, each u16 element type (0: absent); u32
// constants, each u16 element type and u64 bytes; u32 steps, each the operator (regie/op_blob.hpp), u32 count
// and u32 values that it reads, u16 element type of what it gives; u32 results, each a u32 value;
// a u32 format of each operand, then of each result. Values count up: operands, constants, steps; REGIE_NONE
// is an absent one. A step reads what stands before it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats.h"
#include "regie/op_blob.hpp"

namespace host_cpu {

constexpr char kPointwiseFormat[] = "host_cpu.pointwise/1";

struct PointwiseProgram {
  struct Constant {
    regie_elem elem;
    uint64_t bytes;  // of the element, from the first one on
  };
  struct Step {
    regie::sdk::OpBlob op;
    std::vector<uint32_t> operands;
    regie_elem result;
  };
  std::vector<regie_elem> operands;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  std::vector<uint32_t> results;
  Formats formats;

  uint32_t first_constant() const { return static_cast<uint32_t>(operands.size()); }
  uint32_t first_step() const { return first_constant() + static_cast<uint32_t>(constants.size()); }
  uint32_t value_count() const { return first_step() + static_cast<uint32_t>(steps.size()); }
  regie_elem elem(uint32_t value) const {
    if (value < first_constant()) return operands[value];
    return value < first_step() ? constants[value - first_constant()].elem
                                : steps[value - first_step()].result;
  }
};

// Of a regie.Pointwise, or of a node of an element-wise operator; constants of one element become part of it.
// Throws UNSUPPORTED with the reason where it cannot be.
std::string write_pointwise(const regie_graph* graph, const regie_node& node, const Formats& formats);

PointwiseProgram read_pointwise(const void* blob, uint64_t size);

// "Mul, Sigmoid, Add": for names of kernels.
std::string describe(const PointwiseProgram& program);

}  // namespace host_cpu
