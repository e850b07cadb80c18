// The sizes that open axes of the inputs usually have (`typical`): what a plan with symbols is made for.
// Formats, kinds of kernels, placement and the places of buffers are chosen where these are the sizes; others
// run as well.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace regie {

// By symbol index, from texts such as "x=16,3,224,224" or "x=16,?,?,?"; nothing where nobody said a size.
// INVALID_INPUT for a text of another form, an input that there is not, a size that an axis cannot have, or
// two sizes of one symbol.
Result<std::vector<std::optional<int64_t>>> typical_sizes(const Graph& g, std::span<const std::string> texts);

}  // namespace regie
