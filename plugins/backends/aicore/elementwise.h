// Element-wise code on its way from a node to a program: the steps and registers that it was compiled to, and
// the merged walk over the result.
#pragma once

#include <utility>
#include <vector>

#include "lower.h"

namespace aicore {

// What a value of the program is.
struct Location {
  enum Kind { kConstant, kOperand, kRegister, kResult } kind = kRegister;
  float constant = 0;
  uint32_t number = 0;  // of the operand, register or result
};
struct Step {
  VectorStep vector;  // its sources' places are filled in when it is written
  std::vector<Location> in;
  Location out;
  std::vector<uint32_t> temporaries;
  // A quantisation whose bytes nobody in the code reads again: they are made without a stay in a register.
  bool to_bytes = false;
};
struct Code {
  std::vector<Step> steps;
  uint32_t registers = 0;
  std::vector<uint32_t> operands;  // that are read from memory
  // Of operands of bytes: a zero point that is taken off before anything reads them.
  std::vector<std::pair<uint32_t, float>> zeros = {};
  float zero_of(uint32_t operand) const {
    for (const auto& [o, zero] : zeros)
      if (o == operand) return zero;
    return 0;
  }
  double slow = 0, quick = 0;
};

struct Shape {
  std::vector<int64_t> dims;  // merged; the last are columns, those before it rows
  // Of an operand: elements from one index to the next of each dimension; 0 where it broadcasts.
  std::vector<std::vector<int64_t>> strides;
  // Of an operand: its first element; empty where all begin at 0.
  std::vector<int64_t> first = {};
  // Of a result in blocks of which channels do not fill the last: which dimension counts the blocks, one of
  // those before rows and columns, and how many channels there are. 0: they do.
  size_t blocks_at = 0;
  int64_t channels = 0;
  // Is operand `o` one element a channel, row-major, so that it ends with the last channel?
  std::vector<bool> ends = {};
};

// The steps of a node, or of its region.
Code compile_elementwise(const Request& r);

// Cut to tiles, to be written as a program when it is asked for.
Lowered lowered(const Request& r, Code code, Shape shape);

}  // namespace aicore
