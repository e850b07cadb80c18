// Inputs of a run: from .npy files, or random numbers that are the same on every machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/elem.h"
#include "base/status.h"
#include "regie/api/regie.h"

namespace regie::cli {

// The input that "name=..." is about, none if the model has no such. The longest name that fits wins: a name
// may hold '=' itself.
std::optional<size_t> input_named_by(const regie_model* model, std::string_view text);

// `files`: "name=file.npy". `shapes`: "name=16,1,8,8", the sizes of random inputs; the others get those that
// the model was planned for. Errors name the input and what the model has.
Result<std::vector<Tensor>> gather_inputs(const regie_model* model, const std::vector<std::string>& files,
                                          const std::vector<std::string>& shapes,
                                          std::optional<uint64_t> seed);

// "name=16,1,8,8": the input's name and the sizes, as many as it has dimensions.
Result<std::pair<std::string, std::vector<int64_t>>> read_shape(const regie_model* model,
                                                                const std::string& text);

}  // namespace regie::cli
