// A graph at a batch of one: errors are relative, so pictures and sentences beside each other add time to a
// trial (trial.h) and nothing to know.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regie/c/view.h"

namespace aicore {

struct OneOfBatch {
  std::vector<std::vector<int64_t>> dims;  // by value, of those that are computed or given
  std::vector<bool> copied;  // by node: only the shape changes, and its operand for it says the old one
};

// Where all that the graph computes of its inputs is one part after the other along the first axis, as many
// as their first axis is long, and each operator treats them alike: the sizes for the first part alone.
// Nothing where that does not hold, or there is one part.
std::optional<OneOfBatch> one_of_batch(const regie_graph& graph);

}  // namespace aicore
