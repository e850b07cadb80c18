#include "memory_model.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "regie/formats.hpp"
#include "regie/graph_view.hpp"

namespace order {

namespace {

using namespace regie::sdk;

constexpr int64_t kAlignment = 64;  // as arenas are laid out
constexpr int64_t kMost = int64_t{1} << 40;

int64_t bytes_of(const Dims& dims, const regie_type& type) {
  const int64_t bits = laid_bits(type);
  if (bits == 0 || type.rank < 0) return 0;
  const int64_t count = std::clamp<int64_t>(dims.range(dims.product(dims_of(type))).first, 0, kMost);
  return (count * bits + 8 * kAlignment - 1) / (8 * kAlignment) * kAlignment;
}

bool in_callers_memory(const GraphView& g, const regie_value& v) {
  return v.alias_of == REGIE_NONE && v.space == 0 && g.node(v.owner).region == 0 && is_region_result(v);
}

class Model {
 public:
  Model(const regie_schedule_problem& problem, const regie_host* host, const regie_host_sharing* sharing,
        bool rooms)
      : problem_(problem),
        g_(problem.graph),
        dims_(host, problem.graph->dims),
        sharing_(sharing),
        rooms_(rooms && sharing) {}

  Region make() {
    for (uint32_t t = 0; t < problem_.task_count; ++t) {
      const regie_schedule_task& task = problem_.tasks[t];
      for (uint32_t a = 0; a < task.after_count; ++a)
        if (task.after[a] >= t)
          throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " is before a task that it needs");
      made_.after.emplace_back(task.after, task.after + task.after_count);
      made_.room.push_back(rooms_ ? room(t) : 0);
      for (uint32_t v : results_of(node(t))) own(v);
      // Where parts are made before their whole, that has its bytes from then on.
      for (uint32_t v : results_of(node(t)))
        if (v != REGIE_NONE) own(root_of(g_, v));
    }
    for (uint32_t t = 0; t < problem_.task_count; ++t) {
      for (uint32_t v : results_of(node(t))) touch(v, t);
      for (uint32_t v : operands_of(node(t))) touch(v, t);
    }
    made_.again = makers();
    if (sharing_)
      for (uint32_t t = 0; t < problem_.task_count; ++t) overwrites(t);
    return std::move(made_);
  }

 private:
  const regie_node& node(uint32_t task) const { return g_.node(problem_.tasks[task].node); }

  int64_t room(uint32_t task) const {
    uint64_t bytes = 0;
    check(sharing_->scratch_bytes(&problem_, task, &bytes));
    return static_cast<int64_t>((std::min<uint64_t>(bytes, kMost) + kAlignment - 1) / kAlignment *
                                kAlignment);
  }

  // What another region made is alive all the time.
  void own(uint32_t value) {
    if (value == REGIE_NONE) return;
    const regie_value& v = g_.value(value);
    if (v.alias_of != REGIE_NONE || v.kind != REGIE_VALUE_RESULT || in_callers_memory(g_, v)) return;
    if (g_.node(v.owner).region != node(0).region) return;
    if (index_.emplace(value, static_cast<uint32_t>(made_.bytes.size())).second)
      made_.bytes.push_back({bytes_of(dims_, v.type), {}, false, false});
  }

  void touch(uint32_t value, uint32_t task) {
    if (value == REGIE_NONE) return;
    const auto at = index_.find(root_of(g_, value));
    if (at == index_.end()) return;
    Bytes& b = made_.bytes[at->second];
    if (b.touched_by.empty() || b.touched_by.back() != task) b.touched_by.push_back(task);
    b.kept |= is_region_result(g_.value(value));
  }

  // By bytes: the task that makes all of them. None where several values lie on them, by views or in place,
  // or where the task reads what is written over, or has views, later on.
  std::vector<uint32_t> makers() const {
    std::vector<uint32_t> maker(made_.bytes.size(), Region::kNoTask), on(made_.bytes.size(), 0);
    std::vector<uint8_t> base(g_.value_count(), 0);
    for (uint32_t t = 0; t < problem_.task_count; ++t)
      for (uint32_t v : results_of(node(t))) {
        if (v == REGIE_NONE) continue;
        if (g_.value(v).alias_of != REGIE_NONE) base[g_.value(v).alias_of] = 1;
        const auto at = index_.find(root_of(g_, v));
        if (at == index_.end()) continue;
        ++on[at->second];
        maker[at->second] = t;
      }
    const auto steady = [&](uint32_t task) {
      const auto operands = operands_of(node(task));
      return std::none_of(operands.begin(), operands.end(),
                          [&](uint32_t v) { return v != REGIE_NONE && base[v]; });
    };
    for (uint32_t b = 0; b < maker.size(); ++b)
      if (maker[b] != Region::kNoTask && (on[b] != 1 || !steady(maker[b]))) maker[b] = Region::kNoTask;
    return maker;
  }

  // Operands that results of the task may be written over, if nobody reads them later.
  void overwrites(uint32_t task) {
    const regie_node& n = node(task);
    if (n.region_count) return;
    for (uint32_t r = 0; r < n.result_count; ++r) {
      if (n.results[r] == REGIE_NONE) continue;
      const regie_value& result = g_.value(n.results[r]);
      const auto made = index_.find(result.id);
      if (made == index_.end() || is_region_result(result)) continue;
      for (uint32_t o = 0; o < n.operand_count; ++o) {
        if (n.operands[o] == REGIE_NONE) continue;
        const regie_value& operand = g_.value(n.operands[o]);
        const uint32_t root = root_of(g_, operand.id);
        const auto over = index_.find(root);
        if (over == index_.end() || over->second == made->second || !covers(operand, root)) continue;
        if (operand.space != result.space || !same_bytes(result.type, operand.type, dims_)) continue;
        if (!may_overwrite(task, r, operand.id) || !on_one_device(over->second)) continue;
        made_.overwrites.push_back({task, made->second, over->second, r, operand.id});
      }
    }
  }

  // The operand is all of the bytes that it lies on.
  bool covers(const regie_value& operand, uint32_t root) const {
    uint64_t offset = 0;
    for (uint32_t v = operand.id; v != root; v = g_.value(v).alias_of) offset += g_.value(v).alias_offset;
    return offset == 0 && same_bytes(operand.type, g_.value(root).type, dims_);
  }

  // Wherever the node reads these bytes it must be able to overwrite them.
  bool may_overwrite(uint32_t task, uint32_t result, uint32_t operand) const {
    const regie_node& n = node(task);
    const uint32_t root = root_of(g_, operand);
    for (uint32_t v : results_of(n))
      if (v != REGIE_NONE && root_of(g_, v) == root) return false;
    for (uint32_t o = 0; o < n.operand_count; ++o) {
      if (n.operands[o] == REGIE_NONE || root_of(g_, n.operands[o]) != root) continue;
      if (n.operands[o] != operand) return false;
      if (sharing_->alias_kind(&problem_, task, result, o) != REGIE_ALIAS_INPLACE) return false;
    }
    return true;
  }

  // A writer would have to wait for readers on other devices.
  bool on_one_device(uint32_t bytes) const {
    const std::vector<uint32_t>& all = made_.bytes[bytes].touched_by;
    return std::all_of(all.begin(), all.end(), [&](uint32_t t) {
      return problem_.tasks[t].device == problem_.tasks[all.front()].device;
    });
  }

  const regie_schedule_problem& problem_;
  GraphView g_;
  Dims dims_;
  const regie_host_sharing* sharing_;
  const bool rooms_;
  Region made_;
  std::unordered_map<uint32_t, uint32_t> index_;  // bytes by the value that owns them
};

}  // namespace

bool one_device(const regie_schedule_problem& problem) {
  for (uint32_t t = 1; t < problem.task_count; ++t)
    if (problem.tasks[t].device != problem.tasks[0].device) return false;
  return true;
}

uint32_t root_of(const GraphView& g, uint32_t value) {
  while (g.value(value).alias_of != REGIE_NONE) value = g.value(value).alias_of;
  return value;
}

Region memory_model(const regie_schedule_problem& problem, const regie_host* host,
                    const regie_host_sharing* sharing, bool rooms) {
  if (problem.task_count == 0) return {};
  return Model(problem, host, sharing, rooms).make();
}

void add_repeats(const regie_schedule_problem& problem, const regie_host_recompute& host, Region* region) {
  for (uint32_t t = 0; t < problem.task_count; ++t)
    region->cost.push_back(std::max(problem.tasks[t].cost_ns, 1.0));
  for (uint32_t& maker : region->again) {
    if (maker == Region::kNoTask) continue;
    const bool known = problem.tasks[maker].cost_ns > 0;
    if (!known || !host.may_repeat(&problem, maker)) maker = Region::kNoTask;
  }
}

}  // namespace order
