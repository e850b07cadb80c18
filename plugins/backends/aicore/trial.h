// A run of the graph on this computer at compile time, to see how near results come when some values lie as
// halves (widths.h): how much of a rounding is left at the end depends on the weights, and nothing but the
// weights knows. Inputs are drawn from a fixed seed, so the same graph gives the same answer.
//
// What is exact is computed once and kept; a trial computes again only what comes behind a value that is
// rounded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regie/plugin.hpp"
#include "regie/reference_kernel.hpp"
#include "trial_batch.h"
#include "trial_inputs.h"
#include "trial_product.h"
#include "widths.h"

namespace aicore {

class Trial {
 public:
  // Throws UNSUPPORTED with the reason where the graph cannot be run here, or not within reasonable time. Of
  // a large batch only one is tried, where that is possible (trial_batch.h). `all_rounded`: whatever is
  // computed there lies as halves, not only what is rounded anyway.
  Trial(const regie_host* host, const regie_graph* graph, uint32_t engine, const Widths& widths,
        bool all_rounded);
  ~Trial();
  Trial(const Trial&) = delete;

  // Inputs of this kind from now on.
  void use(TrialInputs kind);
  // Relative errors in the Euclidean norm, of all results in program order, when every value that this engine
  // rounds, and that is not wide, lies as halves. Of a sigmoid or a soft-max a second one follows: that of
  // its small elements, each by itself.
  std::vector<double> errors(const Widths& widths);
  // Predicted time of all that was computed so far: a measure of work, the same on every computer.
  double spent_ns() const { return spent_ns_; }

 private:
  struct Step;
  struct Tensor {
    regie_tensor view{};
    std::vector<int64_t> dims;
    std::unique_ptr<char[]> bytes;
  };

  double work_of_all() const;
  void add_step(const regie_node& n);
  void compute(Step& step, bool exact);
  const regie_tensor* at(uint32_t value, bool exact) const;
  Tensor tensor_of(uint32_t value) const;

  regie::sdk::WordCatcher catcher_;
  const regie_graph* graph_;
  const Widths& classes_;
  uint32_t engine_;
  bool all_rounded_;
  OneOfBatch one_;             // empty: the graph is tried as it is
  std::vector<bool> rounded_;  // by class of values
  std::vector<Step> steps_;
  std::vector<Tensor> exact_, near_;  // by value; near_ only where it differs
  std::vector<bool> differs_;
  std::vector<char> scratch_;
  std::vector<std::vector<float>> copies_;  // of operands that a step rounds for itself
  double run_ns_ = 0, spent_ns_ = 0, bytes_ = 0;
};

}  // namespace aicore
