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
#include "trial_product.h"
#include "widths.h"

namespace aicore {

class Trial {
 public:
  // Throws UNSUPPORTED with the reason where the graph cannot be run here, or not within reasonable time.
  Trial(const regie_host* host, const regie_graph* graph, uint32_t engine, const Widths& widths);
  ~Trial();
  Trial(const Trial&) = delete;

  // Relative errors in the Euclidean norm, of all results in program order, when every value that this engine
  // rounds, and that is not wide, lies as halves.
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

  void draw_inputs();
  void add_step(const regie_node& n);
  void compute(Step& step, bool exact);
  const regie_tensor* at(uint32_t value, bool exact) const;
  Tensor tensor_of(uint32_t value) const;

  regie::sdk::WordCatcher catcher_;
  const regie_graph* graph_;
  const Widths& classes_;
  uint32_t engine_;
  std::vector<bool> rounded_;  // by class of values
  std::vector<Step> steps_;
  std::vector<Tensor> exact_, near_;  // by value; near_ only where it differs
  std::vector<bool> differs_;
  std::vector<char> scratch_;
  std::vector<std::vector<float>> copies_;  // of operands that a step rounds for itself
  double run_ns_ = 0, spent_ns_ = 0, bytes_ = 0;
};

// What was found.
struct WidthChoice {
  size_t products = 0, two_halves = 0;
  double all_halves = 0, chosen = 0;  // worst errors that were estimated
  std::string why_not;                // the graph was not run: all are two halves
};

// Widens as few values as it can find, and the cheapest, such that no result is estimated to be further off
// than `bound`. `price`: what it costs that a reader's operand lies as f32. What `widths` has as
// wide already stays so.
WidthChoice choose_widths(const regie_host* host, const regie_graph* graph, uint32_t engine, double bound,
                          const std::function<double(const Widths::Reader&)>& price, Widths& widths);

}  // namespace aicore
