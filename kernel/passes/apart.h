// With several streams, time alone does not say who may share bytes: two tasks may run at once though one is
// issued after the other. This finds the pairs of buffers that time would let share and the schedule does
// not.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "passes/compile_state.h"

namespace regie {

// What a schedule orders: of tasks in the order of their steps, their streams, among those of all devices,
// and how many tasks of each stream have ended once they have.
struct StreamClocks {
  size_t width = 0;  // streams
  std::vector<uint32_t> stream, ended;
  uint32_t* of(size_t task) { return &ended[task * width]; }
  const uint32_t* of(size_t task) const { return &ended[task * width]; }
};

// `touched`: by buffer, the steps that touch it. Where there are several streams, all tasks are in one
// region, all sizes are numbers and the pairs are not too many, gives buffers the lives from their first to
// their last step, and returns those pairs, each with the one that lives earlier first; else leaves
// everything as it is and returns none.
std::vector<std::pair<uint32_t, uint32_t>> tighten_lives(CompileState& state,
                                                         const std::vector<std::vector<uint64_t>>& touched,
                                                         const StreamClocks& clocks);

}  // namespace regie
