// In which formats a node can be computed, and what that saves: every combination of what operands and
// results may lie in is lowered and priced as `ask` prices the row-major one.
#pragma once

#include <optional>
#include <vector>

#include "lower.h"
#include "widths.h"

namespace aicore {

// `base` is the node with all row-major; its tensors are those of the graph.
// Of values that `widths` says are wide, no halves.
// `quickest` is what it takes row-major, by whatever program; without it the engine's own is asked for.
std::vector<regie_format_wish> wishes_of(const Request& base, Rounding rounding,
                                         const Widths* widths = nullptr,
                                         std::optional<double> quickest = std::nullopt);

// The tensors as they lie in these formats: elements of f16 where they are halves.
std::vector<regie_tensor> stored(std::span<const regie_tensor> tensors,
                                 std::span<const regie_format> formats);

}  // namespace aicore
