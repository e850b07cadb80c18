// What functions that make older forms canonical have in common.
#pragma once

#include "operators.h"

namespace regie::onnx {

inline std::vector<int64_t> required_integers(Translation& t, std::string_view name) {
  auto list = t.attributes.take_integers(name);
  if (!list) t.context.invalid("attribute " + quoted(name) + " is missing");
  return std::move(*list);
}

// A scalar constant of the type of `like`.
inline uint32_t scalar_like(Translation& t, uint32_t like, double value, std::string_view suffix) {
  TensorData data;
  const Translation::Type type = t.type(like);
  if (!scalar(type.elem, value, &data))
    t.context.invalid("the operator does not take " + std::string(element_name(type.elem)) +
                      " at operator set " + std::to_string(t.opset));
  return t.constant(data, suffix);
}

inline void drop_absent(std::vector<uint32_t>* operands) {
  while (!operands->empty() && operands->back() == REGIE_NONE) operands->pop_back();
}

}  // namespace regie::onnx
