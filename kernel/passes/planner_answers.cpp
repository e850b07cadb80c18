#include "passes/planner_answers.h"

#include <utility>

namespace regie {

namespace {

constexpr size_t kMostBytes = 64 << 20;  // kept

std::string key_of(const Provider<regie_memory_table>& planner, const regie_config* options,
                   const regie_memory_problem& problem) {
  std::string key;
  const auto add = [&](uint64_t n) { key.append(reinterpret_cast<const char*>(&n), sizeof n); };
  key.reserve(64 + 56 * problem.buffer_count + 16 * problem.conflict_count);
  add(reinterpret_cast<uintptr_t>(planner.table));
  add(planner.index);
  add(reinterpret_cast<uintptr_t>(options));
  add(problem.capacity);
  add(problem.buffer_count);
  for (uint64_t i = 0; i < problem.buffer_count; ++i) {
    const regie_memory_buffer& b = problem.buffers[i];
    for (uint64_t n : {b.lower, b.upper, b.size, b.offset, b.alignment, uint64_t{b.group}}) add(n);
  }
  for (uint64_t i = 0; i < problem.conflict_count; ++i) {
    add(problem.conflicts[i].first);
    add(problem.conflicts[i].second);
  }
  return key;
}

}  // namespace

Status PlannerAnswers::plan(const Provider<regie_memory_table>& planner, const regie_config* options,
                            const regie_memory_problem& problem, std::vector<uint64_t>* offsets,
                            regie_memory_answer* answer) {
  const bool keep = problem.node_budget == 0;
  std::string key = keep ? key_of(planner, options, problem) : std::string();
  if (keep)
    if (const auto at = known_.find(key); at != known_.end()) {
      *offsets = at->second.offsets;
      *answer = at->second.answer;
      return {};
    }
  offsets->assign(problem.buffer_count, 0);
  REGIE_TRY(call_plugin("memory planner of plug-in " + planner.manifest->name, [&] {
    return planner.table->plan(planner.index, host_table(), options, &problem, offsets->data(), answer);
  }));
  const size_t bytes = key.size() + offsets->size() * sizeof(uint64_t);
  if (!keep || bytes_ + bytes > kMostBytes) return {};
  bytes_ += bytes;
  known_.emplace(std::move(key), Answer{*offsets, *answer});
  return {};
}

}  // namespace regie
