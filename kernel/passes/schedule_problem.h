// What stands behind a regie_schedule_problem while a scheduler works on it, and what the scheduler may ask
// and decide beyond order and streams (regie/c/sharing.h, regie/c/scheduling.h, regie/c/reuse.h).
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/compile_state.h"
#include "regie/c/reuse.h"

namespace regie {

// Buffers as regie/c/reuse.h tells of them; filled when a scheduler first asks.
struct ReuseBuffers {
  bool known = false;
  std::vector<regie_reuse_buffer> list;
  std::vector<std::vector<uint32_t>> touching;                 // what `list` points to
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> index_of;  // by value and node with room to work in
};

struct ScheduleProblem {
  CompileState* state;
  uint32_t region;
  const std::vector<uint32_t>* nodes;
  const std::vector<std::vector<uint32_t>>* after;
  std::vector<uint32_t> position;  // by task: place in issue order
  std::vector<ScheduledTask> issued;
  std::vector<std::tuple<uint32_t, uint32_t, std::string>> events;
  bool kernels_known = false;  // those of the graph were asked for, and are compiled
  std::vector<uint8_t> idle;   // by task: nothing runs (runs_nothing)
  ReuseBuffers reuse = {};
};

// How the scheduler's problem is stated: what a run of a task is predicted to take; the limits of the
// target's devices; and what it may be told besides its own options: the parameters of the target, as
// "device.<name>.<parameter>", "engine.<name>.plugin", "transfer.latency_ns" and "host.device".
Result<double> task_cost(const CompileState& state, uint32_t node);
uint32_t device_limit(const TargetDevice& device, std::string_view parameter);  // 0: not said
ConfigText scheduling_options(const CompileState& state, const regie_config* options);

// Its results lie on the bytes of its operands, by its engine's word.
bool is_view_node(const CompileState& state, uint32_t node);
// No task comes of the node: it is a view, and no run has to tell its shape.
Result<bool> runs_nothing(const CompileState& state, uint32_t node);

// Every dependency of the problem is ordered by streams and events. BAD_PLUGIN with both tasks if one is not.
// Knows nothing of how the schedule was made.
Status check_schedule(const ScheduleProblem& problem, const std::string& who);

// The problem that the calling thread's scheduler has been given; null: it is another one.
ScheduleProblem* given_problem(const regie_schedule_problem* problem);

extern const regie_host_reuse kHostReuse;  // regie/c/reuse.h

// For as long as it lives, the host's sharing interface answers the calling thread about `problem`.
class SharingCall {
 public:
  explicit SharingCall(const regie_schedule_problem& problem);
  ~SharingCall();
  SharingCall(const SharingCall&) = delete;
  SharingCall& operator=(const SharingCall&) = delete;
};

}  // namespace regie
