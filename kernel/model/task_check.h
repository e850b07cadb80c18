// The tasks of a model whose tables are right: what they read and write is there and large enough, each kind
// of task has what it needs, control flow hands over what its programs take and give, and what depends on
// data is told by somebody. A part of check.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/late.h"
#include "model/layout.h"
#include "model/model.h"

namespace regie {

struct ReferenceFacts {
  explicit ReferenceFacts(const Model& model) : late(model) {}
  const LateFacts late;
  ShapeValues shapes;
  std::vector<uint64_t> bytes;  // by type; of late ones 0
};

Status check_tasks(const Model& model, const ReferenceFacts& reference, regie_status code);

}  // namespace regie
