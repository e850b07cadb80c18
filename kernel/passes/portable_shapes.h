// --shape for an offline model that is compiled again: which symbols of its portable graph become numbers. A
// frontend reads the same words before there is a graph; here the graph is made, and only what it left open
// can still be said.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace regie {

// `shapes`: "x=16,1,8,8", where ? leaves an axis as it is. INVALID_INPUT where a size is not one that the
// input may have, or where two say different things of one symbol.
Result<SymbolSizes> sizes_of_shapes(const Graph& graph, const std::vector<std::string>& shapes);

}  // namespace regie
