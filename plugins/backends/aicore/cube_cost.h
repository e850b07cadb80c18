// The model of time by which plans of a product or convolution are compared: cycles that each pipe of a core
// is busy with a tile, how tiles overlap, and what all cores take from and to the memory together. The search
// (cube_plan.cpp) asks for nothing else of a plan that fits the buffers.
#pragma once

#include <cstdint>
#include <utility>

#include "cube.h"

namespace aicore {

class CubeCost {
 public:
  // Both must outlive it.
  CubeCost(const CubeProblem& problem, const Chip& chip);
  // Gives a plan that is complete but for them its `cycles` and `pipes`.
  void weigh(CubePlan& plan) const;

 private:
  // What is done to the sums of a product of bytes: passes of four bytes an element, and instructions.
  std::pair<double, double> bytes_out() const;
  double load_bytes(const CubePlan& t) const;
  double store_bytes(const CubePlan& t) const;
  // The way of a part of a row-major matrix through UB to L1.
  void add_panel(PipeCycles& to, double rows, double columns, double unit, int64_t es, double read,
                 double lanes, double parts = 1) const;

  const CubeProblem& p_;
  const Chip& chip_;
  int64_t es_, left_es_, right_es_, residual_es_;
  double activation_ = 0, activation_instructions_ = 0;
};

}  // namespace aicore
