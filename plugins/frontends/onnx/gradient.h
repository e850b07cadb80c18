// ai.onnx.preview.training.Gradient: derivatives of one value of a graph by others, written out as operators
// while the graph is made. Reverse accumulation over the nodes between them, for the operators of a table.
#pragma once

#include "builder.h"

namespace regie::onnx {

constexpr std::string_view kGradient = "ai.onnx.preview.training.Gradient";

// Node `index` of the body, which is such an operator; `t` is its translation.
void gradient(Translation& t, const Scope& scope, const Body& body, uint32_t index);

}  // namespace regie::onnx
