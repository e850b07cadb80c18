// Inputs of a run: from .npy files, or random numbers that are the same on every machine.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/elem.h"
#include "base/status.h"
#include "regie/api/regie.h"

namespace regie::cli {

// `files`: "name=file.npy". `shapes`: "name=16,1,8,8", the sizes of random inputs; the others get those that
// the model was planned for. Errors name the input and what the model has.
Result<std::vector<Tensor>> gather_inputs(const regie_model* model, const std::vector<std::string>& files,
                                          const std::vector<std::string>& shapes,
                                          std::optional<uint64_t> seed);

// "name=16,1,8,8": the input's name and the sizes, as many as it has dimensions.
Result<std::pair<std::string, std::vector<int64_t>>> read_shape(const regie_model* model,
                                                                const std::string& text);

}  // namespace regie::cli
