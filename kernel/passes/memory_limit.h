// What a user's memory limit asks for: a plan whose arenas, of all memory spaces together, take no more.
//
// Where the plan takes more, values that lie idle while most bytes are alive are computed a second time,
// right before they are read again, so that they need not be kept: those first that cost the least time for
// the bytes that they free, by the prediction of their engines. The graph is changed by patches and scheduled
// and planned anew. It is the same nodes on the same engines in the same formats, so no result differs by a
// bit.
#pragma once

#include <functional>

#include "ir/edit.h"
#include "passes/compile_state.h"

namespace regie {

struct LimitActions {
  // Applies what was recorded, as the patches of a pass.
  std::function<Status(Edit&)> apply;
  // Aliases, schedule and plan anew.
  std::function<Status()> plan_again;
};

uint64_t arena_bytes(const std::vector<MemoryRecord>& spaces);  // of all together

// After the plan was made. LIMIT, with the best that was found and who is alive at its peak, if the limit is
// not met.
Status fit_memory_limit(CompileState& state, const LimitActions& actions);

}  // namespace regie
