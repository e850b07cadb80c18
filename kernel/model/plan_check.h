// An independent check of a finished model's memory plan and order: shares no code with the planner or the
// scheduler. From the tasks alone it derives which bytes each task reads and writes and which tasks are
// ordered by stream or event, and proves that no two tasks that touch the same bytes are unordered, that what
// is read was written by the right task and not overwritten since, and that `lower_bound` and `arena_bytes`
// are what the buffers say.
#pragma once

#include <vector>

#include "base/status.h"
#include "model/layout.h"
#include "model/model.h"

namespace regie {

// At the given values of the symbols (empty: the reference). INTERNAL with task, buffer and bytes if the plan
// is wrong.
Status check_plan(const Model& model, const std::vector<int64_t>& symbol_values = {});

// The same for the places that a run has chosen; `bytes` by type. CORRUPT if it is wrong: two tasks that meet
// in their scratch are not just wrong, as devices keep addresses there.
Status check_placement(const Model& model, const Placement& placement, const std::vector<uint64_t>& bytes);

}  // namespace regie
