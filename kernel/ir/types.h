// Types of values: when two can be the same value's, and what both know together.
#pragma once

#include <string>

#include "ir/graph.h"

namespace regie {

// Nothing known about one contradicts the other: element types, containers, ranks, constant dimensions, and
// formats.
bool types_agree(const regie_type& a, const regie_type& b);
// What both know, of types that agree: constants before expressions before unknown; `first` wins between
// expressions.
regie_type merge_types(Graph& graph, const regie_type& first, const regie_type& second);
bool same_type(const regie_type& a, const regie_type& b);
// Element type, rank and every dimension are known.
bool type_known(const regie_type& type);

}  // namespace regie
