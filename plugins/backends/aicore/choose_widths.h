// Which values lie as f32 and go into the cube as two halves (widths.h): as few as can be found, and the
// cheapest, such that no result of a trial of the graph (trial.h) is further off than is allowed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regie/c/host.h"
#include "widths.h"

namespace aicore {

// What was found.
struct WidthChoice {
  size_t products = 0, two_halves = 0;
  double all_halves = 0, chosen = 0;  // worst errors that were estimated
  std::string inputs, chosen_inputs;  // of which kind of inputs these are
  std::string why_not;                // the graph was not run: all are two halves
  // By reader: what its operand's rounding, with that of those that were decided together with it, does to
  // the result that it disturbs most; 0 where that was not looked at.
  std::vector<double> share;
};

// Widens values until no result is estimated to be further off than `bound`, but for those that are with all
// of them wide. `price`: what it costs that a reader's operand lies as f32. What `widths` has as wide already
// stays so. `all_rounded`: as in Trial.
WidthChoice choose_widths(const regie_host* host, const regie_graph* graph, uint32_t engine, double bound,
                          bool all_rounded, const std::function<double(const Widths::Reader&)>& price,
                          Widths& widths);

}  // namespace aicore
