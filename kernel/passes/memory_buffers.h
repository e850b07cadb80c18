// Between a schedule and a memory plan: the buffers that the schedule's tasks need and how long each lives;
// and the planner's answer to them. The memory driver takes these steps for the schedule that was chosen, the
// host's half of regie/c/reuse.h for those that a scheduler weighs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "passes/apart.h"
#include "passes/compile_state.h"

namespace regie {

struct BufferLives {
  std::vector<std::vector<uint64_t>> touched;  // by buffer: the steps that touch it
  StreamClocks clocks;
};

// Fills `buffers` and `buffer_of_value` of the state from its schedule. Kernels have been compiled.
Result<BufferLives> find_buffers(CompileState& state);

// Has the planner of plug-in `planner` lay the state's buffers out, each memory space by itself; a record a
// space. `apart`: pairs of buffers that may not share bytes although their lives are apart. `node_budget`: of
// its search; 0: what its options say.
Result<std::vector<MemoryRecord>> plan_spaces(CompileState& state,
                                              const Provider<regie_memory_table>& planner,
                                              const regie_config* options,
                                              const std::vector<std::pair<uint32_t, uint32_t>>& apart,
                                              uint64_t node_budget);

}  // namespace regie
