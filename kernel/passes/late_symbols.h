// Dimensions that only the run tells: a shape function leaves them open, and each gets a symbol of its own,
// named after the value and the axis ("boxes.0"), so that everything downstream can compute with it. Such a
// symbol is marked data-dependent; the task that makes the value makes it known.
#pragma once

#include "ir/graph.h"

namespace regie {

// Puts symbols in the place of the open dimensions among `dims`, about to become those of `value`. One that
// the value has already stays, so that inferring again changes nothing; one whose size the value's type says
// is held to that size, which the run then checks. Where the value had such a symbol and its size is known
// now, or is said to be a number, so is the symbol. False if the two contradict each other.
bool settle_late_dims(Graph& graph, uint32_t value, int32_t rank, regie_dim* dims);

// Does any dimension depend on a data-dependent symbol?
bool has_late_symbol(const DimTable& dims, const regie_type& type);
// The same, not counting symbols whose value is known by now.
bool is_late(const DimTable& dims, regie_dim dim);
bool is_late(const DimTable& dims, const regie_type& type);

}  // namespace regie
