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
bool same_shape(const regie_type& a, const regie_type& b);  // all but the layout
// `type`, but lying as `old` does if they have one rank: inference knows shapes, how the bytes lie is a
// decision.
regie_type with_layout_of(regie_type type, const regie_type& old);
// Element type, rank and every dimension are known.
bool type_known(const regie_type& type);
// Not even the rank of some result is known.
bool lacks_types(const Graph& graph, uint32_t node);

}  // namespace regie
