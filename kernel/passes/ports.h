// The face of a model that is still a graph: its inputs and outputs, with dimensions as expressions of
// symbols that the inputs tell.
#pragma once

#include "ir/graph.h"
#include "model/model.h"

namespace regie {

// A Model of symbols, expressions, types and ports, with nothing to run. Symbols have the indices that they
// have in the graph.
Result<Model> ports_of(const Graph& graph);

}  // namespace regie
