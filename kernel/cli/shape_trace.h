// Logs of shapes: a JSON object a line, the dimensions of each input by name, as a session writes them
// (shape-log, REGIE_SHAPE_LOG). `bench` measures what is in one, `shapes advise` proposes sizes for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace regie::cli {

using RequestShape = std::map<std::string, std::vector<int64_t>>;  // by input

// In the order of the file; empty lines are left out. INVALID_INPUT with file and line.
Result<std::vector<RequestShape>> read_shape_trace(const std::string& path);

std::string to_text(const RequestShape& shape);  // "x=1,3,320,320 y=4"

}  // namespace regie::cli
