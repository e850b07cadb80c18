// Which plan a request runs on, and what has to be done to its tensors: found once for each shape.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/layout.h"
#include "model/plan_set.h"

namespace regie {

struct PlanChoice {
  size_t plan = 0;      // the number of plans: the dynamic one
  bool padded = false;  // inputs are padded, outputs are cropped
  std::string request;  // "x.0=3"
  struct Resize {
    size_t input = 0;
    int64_t height = 0, width = 0;  // to these
  };
  std::optional<Resize> resize;
  std::vector<std::vector<int64_t>> input_dims;  // of the plan; where padded
  // Where padded: by output and axis, the size to crop to; -1: as it is.
  std::vector<std::vector<int64_t>> output_dims;
};

// INVALID_INPUT with input, dimension, what it is and what there is. Rank and element types must be right.
Result<PlanChoice> choose_plan(const PlanSet& set, std::span<const regie_tensor> inputs);

// INVALID_INPUT unless number, ranks and element types are the model's.
Status check_kinds(const Model& ports, std::span<const regie_tensor> inputs);

}  // namespace regie
