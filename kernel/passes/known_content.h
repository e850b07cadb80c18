// Contents that a shape depends on and that constants alone decide, but that shape functions do not follow:
// pads turned over in a matrix, for example. Computed with the reference kernels, when inference has stopped
// for want of them.
#pragma once

#include "ir/graph.h"
#include "ir/op_set.h"

namespace regie {

// Sets the content of the integer operands of `node` that are not known and can be computed from constants.
// Bounded by small tensors and few nodes. Gives whether any was.
bool learn_contents(Graph& graph, uint32_t node, const OpSet& ops);

}  // namespace regie
