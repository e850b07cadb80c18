#include "memory_model.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "regie/graph_view.hpp"

namespace order {

namespace {

using namespace regie::sdk;

constexpr int64_t kAlignment = 64;  // as arenas are laid out
constexpr int64_t kMost = int64_t{1} << 40;

uint32_t root_of(const GraphView& g, uint32_t value) {
  while (g.value(value).alias_of != REGIE_NONE) value = g.value(value).alias_of;
  return value;
}

int64_t bytes_of(const Dims& dims, const regie_type& type) {
  const int64_t bits = elem_bits(type.elem);
  if (bits == 0 || type.rank < 0) return 0;
  const int64_t count = std::clamp<int64_t>(dims.range(dims.product(dims_of(type))).first, 0, kMost);
  return (count * bits + 8 * kAlignment - 1) / (8 * kAlignment) * kAlignment;
}

bool in_callers_memory(const GraphView& g, const regie_value& v) {
  return v.alias_of == REGIE_NONE && v.space == 0 && g.node(v.owner).region == 0 && is_region_result(v);
}

class Model {
 public:
  Model(const regie_schedule_problem& problem, const regie_host* host)
      : problem_(problem), g_(problem.graph), dims_(host, problem.graph->dims) {}

  Region make() {
    for (uint32_t t = 0; t < problem_.task_count; ++t) {
      const regie_schedule_task& task = problem_.tasks[t];
      for (uint32_t a = 0; a < task.after_count; ++a)
        if (task.after[a] >= t)
          throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " is before a task that it needs");
      region_.after.emplace_back(task.after, task.after + task.after_count);
      const regie_node& n = g_.node(task.node);
      for (uint32_t v : results_of(n)) touch(v, t, true);
      for (uint32_t v : operands_of(n)) touch(v, t, false);
    }
    return std::move(region_);
  }

 private:
  void touch(uint32_t value, uint32_t task, bool made) {
    if (value == REGIE_NONE) return;
    const uint32_t root = root_of(g_, value);
    auto at = index_.find(root);
    if (at == index_.end()) {
      const regie_value& v = g_.value(root);
      // What another region made is alive all the time.
      if (!made || root != value || v.kind != REGIE_VALUE_RESULT || in_callers_memory(g_, v)) return;
      at = index_.emplace(root, static_cast<uint32_t>(region_.bytes.size())).first;
      region_.bytes.push_back({bytes_of(dims_, v.type), task, {}, false});
    }
    Bytes& b = region_.bytes[at->second];
    if (b.touched_by.empty() || b.touched_by.back() != task) b.touched_by.push_back(task);
    b.kept |= is_region_result(g_.value(value));
  }

  const regie_schedule_problem& problem_;
  GraphView g_;
  Dims dims_;
  Region region_;
  std::unordered_map<uint32_t, uint32_t> index_;  // bytes by the value that owns them
};

}  // namespace

bool one_device(const regie_schedule_problem& problem) {
  for (uint32_t t = 1; t < problem.task_count; ++t)
    if (problem.tasks[t].device != problem.tasks[0].device) return false;
  return true;
}

Region memory_model(const regie_schedule_problem& problem, const regie_host* host) {
  return Model(problem, host).make();
}

}  // namespace order
