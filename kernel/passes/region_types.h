// Types across the borders of control-flow regions. A shape function sees operands and the types that regions
// give, and never the graph; but what a region gives follows from what is handed in, and in a Loop also from
// what it gives itself. So the host brings the operands' types to the arguments, infers the nodes inside
// again where that tells more, and infers a Loop, of which it knows the meaning, on its own.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/op_set.h"

namespace regie {

// Arguments that stand for captured values get the types and contents of those; nodes inside are inferred
// again where one has changed. For control flow.
Status infer_captures(Graph& graph, uint32_t node, const OpSet& ops);

// Types of a Loop's results. Carried values have the type that they begin with; a dimension that the body
// gives back changed becomes a data-dependent symbol, bound anew at each iteration, and the result has it
// too. Collected ones have the length of the trip count, where that is known and the condition stays true,
// else a symbol.
Status infer_loop(Graph& graph, uint32_t node, const OpSet& ops);

// A dimension that the Loop makes known while it runs: `axis` of its result or, of a carried value, of what
// the body begins with.
struct LoopDim {
  uint32_t result, axis;
  regie_dim dim;
};
std::vector<LoopDim> loop_dims(const Graph& graph, uint32_t node);

}  // namespace regie
