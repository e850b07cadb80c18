// What a user's memory limit asks for: a plan whose arenas, of all memory spaces together, take no more.
//
// Where the plan takes more, several streams become one, and the scheduler is asked what to compute again
// (recompute.h). What it does not see, as where tasks are on several devices, is looked for in the plan:
// values that lie idle while most bytes are alive are computed a second time, right before they are read
// again, those first that cost the least time for the bytes that they free, by the prediction of their
// engines.
#pragma once

#include "passes/recompute.h"

namespace regie {

// After the plan was made. LIMIT, with the best that was found and who is alive at its peak, if the limit is
// not met.
Status fit_memory_limit(CompileState& state, const PlanActions& actions);

}  // namespace regie
