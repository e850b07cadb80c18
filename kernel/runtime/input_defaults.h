// What the inputs of a model are that a run leaves out.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "model/model.h"

namespace regie {

class InputDefaults {
 public:
  InputDefaults() = default;
  explicit InputDefaults(const Model& model);  // outlives this, as do its weights
  // `inputs`, as many as the model has, with the defaults in the place of those that are not given. Allocates
  // nothing; holds until the next call.
  std::span<const regie_tensor> with(std::span<const regie_tensor> inputs);

 private:
  std::vector<std::pair<size_t, regie_tensor>> defaults_;  // by input that has one
  std::vector<regie_tensor> given_;  // room for all inputs, if one of them has a default
};

}  // namespace regie
