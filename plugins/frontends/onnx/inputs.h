// The model's inputs as types, and the option "shape" that fixes their dimensions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "body.h"
#include "context.h"

namespace regie::onnx {

struct Input {
  std::string_view name;
  regie_elem elem;
  std::vector<regie_dim> dims;
};

// Whether the option "defaults" says that inputs with an initializer are constants.
bool constant_defaults(const Context& context);

// The inputs that may be given at run time, in the model's order, with all of their dimensions: numbers, or
// symbols of the import's table (named as in the file, or "<input>_<axis>").
std::vector<Input> read_inputs(Context& context, const Body& body);

}  // namespace regie::onnx
