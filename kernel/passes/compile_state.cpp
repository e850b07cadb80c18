#include "passes/compile_state.h"

#include <algorithm>

#include "ir/structural.h"
#include "passes/late_symbols.h"
#include "text/text.h"

namespace regie {

Status CompileState::open_engines() {
  std::vector<std::pair<std::string, regie_engine_ref>> refs;
  for (const TargetEngine& e : target.engines) {
    auto provider = plugins->engine(e.plugin);
    if (!provider.ok())
      return std::move(provider).status().while_doing("opening engine '" + e.name + "' of " + target.path);
    uses(provider->manifest);
    EngineInstance instance;
    instance.table = provider->table;
    instance.name = e.name;
    ConfigText config(e.params);
    Status s = call_plugin("engine '" + e.plugin + "'", [&] {
      return provider->table->create(provider->index, host_table(), config.get(), &instance.engine);
    });
    if (!s.ok()) return std::move(s.set_where(target.path)).while_doing("creating engine '" + e.name + "'");
    engines.push_back(std::move(instance));
    regie_engine_ref ref{};
    ref.device = interned(target.devices[e.device].name);
    ref.device_index = e.device;
    ref.space = target.space_of(e.device);
    refs.emplace_back(e.name, ref);
  }
  REGIE_TRY(keep_placements(refs));
  graph->set_engines(std::move(refs));
  return {};
}

Status CompileState::keep_placements(const std::vector<std::pair<std::string, regie_engine_ref>>& to) {
  for (uint32_t n = 0; n < graph->node_count(); ++n) {
    if (!graph->live(n) || graph->node(n).engine == REGIE_NONE) continue;
    const std::string name(view(graph->view().engines[graph->node(n).engine].name));
    auto same = std::find_if(to.begin(), to.end(), [&](const auto& e) { return e.first == name; });
    if (same == to.end())
      return invalid_model("is placed on engine '" + name + "', which target '" + target.name +
                               "' does not have; take @engine out, or give the target that it was placed for",
                           graph->describe_node(n));
    graph->set_engine(n, static_cast<uint32_t>(same - to.begin()));
  }
  return {};
}

Status CompileState::check_size(uint32_t value) const {
  const regie_value& v = graph->value(value);
  std::vector<int64_t> dims;
  for (int32_t d = 0; d < v.type.rank; ++d) {
    REGIE_ASSIGN(int64_t n, reference_value(v.type.dims[d]));
    dims.push_back(std::max<int64_t>(0, n));
  }
  const int64_t count = element_count(dims);
  if (is_late(graph->dims(), v.type)) return {};
  if (count != INT64_MAX && elem_bytes(v.type.elem, static_cast<uint64_t>(count)) <= INT64_MAX) return {};
  return invalid_model(
      graph->describe_value(value) + ", " + print_type(*graph, v.type) + ", is larger than an address",
      v.kind == REGIE_VALUE_RESULT ? graph->describe_node(v.owner) : "");
}

Result<int64_t> CompileState::reference_value(regie_dim dim) const {
  if (dim >= 0) return dim;
  return graph->dims().evaluate(dim, symbol_values);
}

std::vector<std::optional<int64_t>> CompileState::typical_values() const {
  constexpr int64_t kSmall = 16, kTypical = 256;
  const DimTable& dims = graph->dims();
  std::vector<std::optional<int64_t>> values = symbol_values;
  for (size_t i = 0; i < values.size(); ++i) {
    const DimSymbol& symbol = dims.symbol_at(i);
    if (i < symbol_said.size() && symbol_said[i]) continue;
    if (!symbol.data_dependent && values[i].value_or(kTypical) <= kSmall)
      values[i] = std::clamp(kTypical, symbol.lower, symbol.upper);
  }
  return values;
}

bool CompileState::has_late_types(uint32_t node) const {
  for (auto list : {graph->operands(node), graph->results(node)})
    for (uint32_t v : list)
      if (v != REGIE_NONE && is_late(graph->dims(), graph->value(v).type)) return true;
  return false;
}

bool CompileState::has_open_types(uint32_t node) const {
  for (auto list : {graph->operands(node), graph->results(node)})
    for (uint32_t v : list) {
      if (v == REGIE_NONE) continue;
      const regie_type& type = graph->value(v).type;
      if (type.rank > 0 && std::any_of(type.dims, type.dims + type.rank, [](regie_dim d) { return d < 0; }))
        return true;
    }
  return false;
}

bool CompileState::is_late_node(uint32_t node) const {
  const Graph& g = *graph;
  if (has_late_types(node)) return true;
  for (auto list : {g.operands(node), g.results(node)})
    for (uint32_t v : list)
      if (v != REGIE_NONE && is_late(g.dims(), g.value(storage_of(v)).type)) return true;
  auto late = ops->late_dims(g, node);
  return !late.ok() || !late->empty();
}

uint32_t CompileState::storage_of(uint32_t value) const {
  const Graph& g = *graph;
  for (;;) {
    const regie_value& v = g.value(value);
    if (v.alias_of != REGIE_NONE) {
      value = v.alias_of;
    } else if (v.kind == REGIE_VALUE_ARGUMENT && v.owner != 0) {
      const uint32_t behind = behind_argument(g, value);
      if (behind == value) return value;
      value = behind;
    } else {
      return value;
    }
  }
}

Result<NodeShapes> NodeShapes::make(const CompileState& state, uint32_t node) {
  NodeShapes shapes;
  const Graph& g = *state.graph;
  const bool untried = state.untried.count(node) != 0;
  // Of a node whose sizes are guesses, those are; of one that the reference does not fit, all that are not
  // fixed.
  const bool any_guess = untried && !state.has_late_types(node);
  auto add = [&](uint32_t value, std::vector<regie_tensor>* list) -> Status {
    list->emplace_back();
    if (value == REGIE_NONE) return {};
    const regie_value& v = g.value(value);
    std::vector<int64_t> dims;
    for (int32_t d = 0; d < v.type.rank; ++d) {
      if (untried && (any_guess ? v.type.dims[d] < 0 : is_late(g.dims(), v.type.dims[d]))) {
        dims.push_back(-1);
        continue;
      }
      REGIE_ASSIGN(int64_t n, state.reference_value(v.type.dims[d]));
      if (n < 0 && is_late(g.dims(), v.type.dims[d])) n = 0;
      if (n < 0)
        return invalid_model("dimension " + std::to_string(d) + " of " + g.describe_value(value) +
                                 " would be " + std::to_string(n) + " (" + g.dims().print(v.type.dims[d]) +
                                 " at the reference shapes)",
                             g.describe_node(node));
      dims.push_back(n);
    }
    REGIE_TRY(state.check_size(value));
    shapes.dims_.push_back(std::move(dims));
    regie_tensor& t = list->back();
    t.elem = v.type.elem;
    t.rank = v.type.rank;
    t.dims = shapes.dims_.back().data();
    t.bytes = untried ? 0 : elem_bytes(t.elem, static_cast<uint64_t>(element_count(shapes.dims_.back())));
    if (g.is_constant(value) && v.data) t.data = v.data->data;
    return {};
  };
  for (uint32_t v : g.operands(node)) REGIE_TRY(add(v, &shapes.operands_));
  for (uint32_t v : g.results(node)) REGIE_TRY(add(v, &shapes.results_));
  REGIE_ASSIGN(const std::vector<PluginOpSet::LateDim> late, state.ops->late_dims(g, node));
  for (const PluginOpSet::LateDim& l : late)
    if (l.result < shapes.results_.size() && shapes.results_[l.result].elem != REGIE_ELEM_UNKNOWN)
      const_cast<int64_t*>(shapes.results_[l.result].dims)[l.axis] = -1;
  return shapes;
}

}  // namespace regie
