// What a scheduler is told: predicted times, limits, the target's parameters, and which nodes run nothing.
#include <algorithm>
#include <charconv>

#include "ir/structural.h"
#include "passes/schedule_problem.h"
#include "regie/formats.hpp"
#include "regie/c/pass.h"

namespace regie {

namespace {

bool lies_in(const Graph& g, uint32_t value, uint32_t whole) {
  while (value != whole && g.value(value).alias_of != REGIE_NONE) value = g.value(value).alias_of;
  return value == whole;
}

}  // namespace

bool CompileState::several_streams() const {
  return std::any_of(schedule.begin(), schedule.end(), [](const RegionSchedule& s) {
    return std::any_of(s.tasks.begin(), s.tasks.end(), [](const ScheduledTask& t) { return t.stream > 0; });
  });
}

// A copy takes the transfer's latency and its bytes; control flow, what is inside.
Result<double> task_cost(const CompileState& state, uint32_t node) {
  const Graph& g = *state.graph;
  const regie_node& n = g.node(node);
  if (is_control_flow(n)) return 0.0;
  REGIE_ASSIGN(const NodeShapes shapes, NodeShapes::make(state, node));
  if (is_copy(n)) {
    double bytes = 0;
    if (!shapes.results().empty() && shapes.results()[0].dims) {
      const regie_tensor& made = shapes.results()[0];
      bytes = static_cast<double>(made.bytes);
      const uint32_t bits = elem_bits(made.elem);  // of the type; what lies there may be narrower
      if (bits) bytes = bytes * sdk::laid_bits(g.value(n.results[0]).type) / bits;
    }
    return state.target.latency_ns + bytes / state.target.bytes_per_ns;
  }
  const regie_engine_shapes s = shapes.get();
  const EngineInstance& engine = state.engines[n.engine];
  regie_answer answer{};
  // Sizes that are guesses may not go together, and a node may have been forced where the engine says no.
  const Status asked = call_plugin("engine '" + engine.name + "'", [&] {
    return engine.table->ask(engine.engine, &g.view(), node, &s, &answer);
  });
  return asked.ok() && answer.can && answer.cost_ns > 0 ? answer.cost_ns : 0.0;
}

uint32_t device_limit(const TargetDevice& device, std::string_view parameter) {
  for (const auto& [key, text] : device.params) {
    if (key != parameter) continue;
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    // What is no number its device refuses, in its own words.
    return error == std::errc() && end == text.data() + text.size() ? number : 0;
  }
  return 0;
}

ConfigText scheduling_options(const CompileState& state, const regie_config* options) {
  std::vector<std::pair<std::string, std::string>> all;
  for (uint32_t i = 0; options && i < options->count; ++i)
    all.emplace_back(view(options->settings[i].key), view(options->settings[i].value));
  const Target& target = state.target;
  for (const TargetDevice& d : target.devices)
    for (const auto& [key, value] : d.params) all.emplace_back("device." + d.name + "." + key, value);
  for (const TargetEngine& e : target.engines) all.emplace_back("engine." + e.name + ".plugin", e.plugin);
  all.emplace_back("transfer.latency_ns", std::to_string(target.latency_ns));
  all.emplace_back("host.device", target.devices.empty() ? "" : target.devices[target.host_device].name);
  return ConfigText(std::move(all));
}

bool is_view_node(const CompileState& state, uint32_t node) {
  const Graph& g = *state.graph;
  const regie_node& n = g.node(node);
  if (is_control_flow(n) || is_copy(n) || n.result_count == 0) return false;
  const EngineInstance& e = state.engines[n.engine];
  auto may_view = [&](uint32_t r, uint32_t o) {
    return e.table->alias(e.engine, &g.view(), node, r, o) == REGIE_ALIAS_VIEW;
  };
  for (uint32_t r = 0; r < n.result_count; ++r) {
    if (n.results[r] == REGIE_NONE) continue;
    const regie_value& v = g.value(n.results[r]);
    bool viewed = false, joined = n.operand_count > 0;
    for (uint32_t o = 0; o < n.operand_count && !viewed; ++o)
      viewed = v.alias_of != REGIE_NONE && n.operands[o] == v.alias_of && may_view(r, o);
    // All operands were made in the result's bytes.
    for (uint32_t o = 0; o < n.operand_count && joined && !viewed; ++o)
      joined = n.operands[o] != REGIE_NONE && lies_in(g, n.operands[o], v.id) && may_view(r, o);
    if (!viewed && !joined) return false;
  }
  return true;
}

Result<bool> runs_nothing(const CompileState& state, uint32_t node) {
  if (!is_view_node(state, node)) return false;
  REGIE_ASSIGN(const std::vector<PluginOpSet::LateDim> late, state.ops->late_dims(*state.graph, node));
  return late.empty();
}

}  // namespace regie
