// Which elements of an axis an interpolated one is made of, and by what weights, as ONNX defines Resize.
#pragma once

#include <vector>

#include "regie/plugin.hpp"

namespace aicore {

struct Interpolation {
  int64_t in = 1, out = 1;
  float scale = 1;   // as the operator has it, not always out / in
  float length = 1;  // of the resized axis: a fraction, where a scale gives none that is whole
};

// Row i is what element i of `out` is made of: `in` weights. Throws UNSUPPORTED for modes that are not known.
std::vector<float> interpolation_weights(const regie::sdk::Attrs& attrs, const Interpolation& axis);

}  // namespace aicore
