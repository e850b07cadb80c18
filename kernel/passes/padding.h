// Whether a graph may be run at sizes larger than a request's: with the inputs padded at the end of some
// axes, and the outputs cropped. That is so if for every value between them "the crop of what is computed at
// the larger size is what is computed at the smaller one" follows from the same of its operands, by what the
// operators declare (ir/padding_rule.h). Values made of sizes alone are known to the shape functions and need
// no declaration; neither does anything that no padding reaches. What is refused names the operator in which
// the padding would first be mixed with what is real.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "passes/plugin_op_set.h"

namespace regie {

// Symbol (by index) whose axes are padded -> what a user calls it, "x.0".
using PaddedSymbols = std::map<size_t, std::string>;

// UNSUPPORTED with the node, the axis and what to do; for a graph right after its import.
Status check_padding(const Graph& graph, const PluginOpSet& ops, const PaddedSymbols& symbols);

// Does the dimension depend on one of the symbols?
bool depends_on(const DimTable& dims, regie_dim dim, const PaddedSymbols& symbols);

}  // namespace regie
