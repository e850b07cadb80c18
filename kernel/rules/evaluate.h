// An interpreter for whole graphs over the reference kernels: what a graph means, for rule tests and
// validators. Slow and simple; it knows the structural operators only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/elem.h"
#include "base/status.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace regie {

// Values by id: arguments of region 0, and constants whose bytes are not known.
using ValueBindings = std::unordered_map<uint32_t, Tensor>;

// Computes the results of region 0, in order. `budget` limits the bytes of one node's results. INVALID_INPUT
// names an argument or constant that is not bound, a failing node is named in the message.
Result<std::vector<Tensor>> evaluate_graph(const Graph& graph, const OpSet& ops,
                                           const ValueBindings& bindings,
                                           uint64_t budget = uint64_t{1} << 30);

}  // namespace regie
