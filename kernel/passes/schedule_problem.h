// What stands behind a regie_schedule_problem while a scheduler works on it, and what the scheduler may ask
// and decide beyond order and streams (regie/c/sharing.h).
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "passes/compile_state.h"

namespace regie {

struct ScheduleProblem {
  CompileState* state;
  uint32_t region;
  const std::vector<uint32_t>* nodes;
  const std::vector<std::vector<uint32_t>>* after;
  std::vector<uint32_t> position;  // by task: place in issue order
  std::vector<ScheduledTask> issued;
  std::vector<std::tuple<uint32_t, uint32_t, std::string>> events;
  bool kernels_known = false;  // those of the graph were asked for, and are compiled
};

// For as long as it lives, the host's sharing interface answers the calling thread about `problem`.
class SharingCall {
 public:
  explicit SharingCall(const regie_schedule_problem& problem);
  ~SharingCall();
  SharingCall(const SharingCall&) = delete;
  SharingCall& operator=(const SharingCall&) = delete;
};

}  // namespace regie
