#include "runtime/input_defaults.h"

#include <algorithm>

#include "model/layout.h"

namespace regie {

InputDefaults::InputDefaults(const Model& model) {
  for (size_t i = 0; i < model.inputs.size(); ++i)
    if (model.inputs[i].default_weight != REGIE_NONE)
      defaults_.emplace_back(i, default_tensor(model, model.inputs[i]));
  if (!defaults_.empty()) given_.resize(model.inputs.size());
}

std::span<const regie_tensor> InputDefaults::with(std::span<const regie_tensor> inputs) {
  if (given_.size() != inputs.size())
    return inputs;  // none has a default, or somebody will say what is wrong
  std::copy(inputs.begin(), inputs.end(), given_.begin());
  for (const auto& [i, t] : defaults_)
    if (given_[i].elem == REGIE_ELEM_UNKNOWN) given_[i] = t;
  return given_;
}

}  // namespace regie
