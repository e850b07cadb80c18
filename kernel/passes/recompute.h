// Computing values again, so that they need not be kept: which nodes may run once more, and how the graph is
// changed and changed back.
//
// A copy is the same node on the same engine in the same formats, so no result differs by a bit. Who decides
// what is computed again is a scheduler (regie/c/recompute.h), as it depends on the order; or, where tasks of
// one region are on several devices, memory_limit.h.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/edit.h"
#include "passes/compile_state.h"

namespace regie {

// One result, no control flow or copy, nothing random, nothing that only the run tells, and inside of it only
// what computes scalars.
bool may_run_again(const CompileState& state, uint32_t node);

// Records a patch: the node that makes `value`, once more before `anchor`; `readers` (node, operand) read
// that. Gives the copy's result. `next_node`: the id that the next node recorded gets. `instead`: values that
// it reads instead of the node's operands.
Result<uint32_t> record_copy(const CompileState& state, uint32_t value, uint32_t anchor,
                             const std::vector<std::pair<uint32_t, uint32_t>>& readers, Edit& edit,
                             uint32_t* next_node, const std::map<uint32_t, uint32_t>& instead = {});

struct PlanActions {
  std::function<Status(Edit&)> apply;  // what was recorded, as the patches of a pass
  // Aliases, schedule and plan anew. REGIE_RECOMPUTE_*: what schedulers may wish for.
  std::function<Status(uint32_t repeats_wanted)> plan_again;
};

uint64_t arena_bytes(const std::vector<MemoryRecord>& spaces);  // of all together

// Values lie on bytes of their own again: those that stages of the schedule chose are chosen anew.
void take_aliases_away(CompileState& state);

// Computes again what schedulers wished for, and plans that. Where the plan is not smaller, all is as it was.
Status compute_again(CompileState& state, const PlanActions& actions);

}  // namespace regie
