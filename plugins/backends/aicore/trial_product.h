// Products and convolutions in f32 on this computer, by oneDNN, for trials of a graph at compile time
// (trial.h).
#pragma once

#include <memory>
#include <span>

#include "regie/c/view.h"
#include "regie/plugin.hpp"

namespace aicore {

class TrialProduct {
 public:
  virtual ~TrialProduct() = default;
  // Operands and result as in the node, row-major f32.
  virtual void run(std::span<const regie_tensor* const> operands, float* result) = 0;
};

// Nothing where it has no way of its own for the node.
std::unique_ptr<TrialProduct> trial_product(const regie_node& n, std::span<const regie_tensor> operands,
                                            const regie_tensor& result);

}  // namespace aicore
