// Placement driver: asks every engine about every node, lets the placer choose, writes engines and memory
// spaces into the graph and the reasons into the ledger.
#include <algorithm>

#include "base/log.h"
#include "base/toml.h"
#include "ir/structural.h"
#include "passes/compile_state.h"

namespace regie {

namespace {

struct Placement {
  CompileState* state;
  std::vector<regie_placement_node> nodes;
  std::vector<std::vector<regie_answer>> answers;
  std::vector<std::string> reasons;  // of answers: node-major
  std::vector<uint32_t> engine;
  std::vector<std::string> why;
};

regie_status assign(const regie_placement_problem* self, uint32_t index, uint32_t engine, regie_str reason) {
  auto& p = *static_cast<Placement*>(self->state);
  if (index >= p.nodes.size() || engine >= p.state->engines.size())
    return fail_on_this_thread(bad_plugin("the placer named a node or an engine that is not there"));
  if (p.engine[index] != REGIE_NONE) return fail_on_this_thread(bad_plugin("the placer placed a node twice"));
  if (p.nodes[index].forced_engine == REGIE_NONE && !p.answers[index][engine].can)
    return fail_on_this_thread(bad_plugin("the placer chose an engine that said no"));
  p.engine[index] = engine;
  p.why[index] = view(reason);
  return REGIE_OK;
}

// "conv1 (Op)" of the node 'conv1' says nothing new.
bool is_own_origin(const regie_node& n, std::string_view origin) {
  const std::string_view name = view(n.name), op = view(n.op);
  return origin.size() == name.size() + op.size() + 3 && origin.starts_with(name) && origin.ends_with(")") &&
         origin.substr(name.size() + 2, op.size()) == op;
}

double transfer_ns(const regie_placement_problem* self, uint32_t from, uint32_t to, uint64_t bytes) {
  const Target& t = static_cast<Placement*>(self->state)->state->target;
  return from == to ? 0.0 : t.latency_ns + static_cast<double>(bytes) / t.bytes_per_ns;
}

double sync_ns(const regie_placement_problem* self, uint32_t from, uint32_t to) {
  const Target& t = static_cast<Placement*>(self->state)->state->target;
  return from == to || t.engines[from].device != t.engines[to].device ? 0.0 : t.sync_ns;
}

Status ask_engines(CompileState& state, uint32_t node, std::vector<regie_answer>& answers,
                   std::string* reasons) {
  REGIE_ASSIGN(const NodeShapes shapes, NodeShapes::make(state, node));
  const regie_engine_shapes s = shapes.get();
  for (size_t e = 0; e < answers.size(); ++e) {
    regie_answer& a = answers[e];
    EngineInstance& engine = state.engines[e];
    Status status = call_plugin("engine '" + engine.name + "'", [&] {
      return engine.table->ask(engine.engine, &state.graph->view(), node, &s, &a);
    });
    // Sizes that are guesses may not go together, which says nothing about the model.
    const bool guessed = status.code() == REGIE_INVALID_INPUT && state.has_open_types(node);
    if (!status.ok() && !guessed) return status;
    reasons[e] = guessed ? status.message() : std::string(view(a.reason));
    if (guessed) a = {};
    a.reason = str(reasons[e]);
  }
  return {};
}

// "conv1 (Conv)": from the framework's operator `name`?
bool came_from(const Graph& g, const regie_node& n, std::string_view name) {
  if (view(n.name) == name) return true;
  for (uint32_t o = 0; o < n.origin_count; ++o) {
    const std::string_view origin = g.origin(n.origins[o]);
    if (origin == name || (origin.size() > name.size() + 1 && origin.starts_with(name) &&
                           origin.substr(name.size(), 2) == " ("))
      return true;
  }
  return false;
}

// An origin says its operator: "/features/Conv (Conv)". A node with a body, as regie.Pointwise, has the
// operators in it.
bool came_from_operator(const Graph& g, const regie_node& n, std::string_view op) {
  if (view(n.op) == op) return true;
  const std::string ending = " (" + std::string(op) + ")";
  for (uint32_t o = 0; o < n.origin_count; ++o)
    if (g.origin(n.origins[o]).ends_with(ending)) return true;
  for (uint32_t r = 0; r < n.region_count && !is_control_flow(n); ++r)
    for (uint32_t inner = g.region(n.regions[r]).first; inner != REGIE_NONE; inner = g.node(inner).next)
      if (view(g.node(inner).op) == op) return true;
  return false;
}

// What the pipeline's [[force]] say; of several for one node, the last.
Status force_engines(const CompileState& state, std::vector<regie_placement_node>* nodes) {
  const Graph& g = *state.graph;
  std::vector<std::string> engines;
  for (const EngineInstance& e : state.engines) engines.push_back(e.name);
  for (const ForcedEngine& f : state.forced) {
    const auto engine = std::find(engines.begin(), engines.end(), f.engine);
    if (engine == engines.end()) {
      auto near = nearest_name(f.engine, engines);
      return invalid_input("target '" + state.target.name + "' has no engine '" + f.engine + "'" +
                               (near ? "; did you mean '" + *near + "'?" : ""),
                           f.where);
    }
    bool found = false;
    for (regie_placement_node& p : *nodes) {
      const regie_node& n = g.node(p.node);
      if (f.node.empty() ? !came_from_operator(g, n, f.op) : !came_from(g, n, f.node)) continue;
      found = true;
      if (is_control_flow(n))
        return invalid_input(g.describe_node(p.node) + " is control flow, which runs on the host", f.where);
      p.forced_engine = static_cast<uint32_t>(engine - engines.begin());
    }
    // A pipeline may serve many models, of which not all have the operator; a node is one model's.
    if (!found && !f.op.empty() && !state.ops->schemas().find(intern(f.op))) {
      auto near = nearest_name(f.op, state.ops->schemas().names());
      return invalid_input(
          "there is no operator '" + f.op + "'" + (near ? "; did you mean '" + *near + "'?" : ""), f.where);
    }
    if (!found && f.op.empty()) {
      std::vector<std::string> names;
      for (const regie_placement_node& p : *nodes)
        if (const std::string_view name = view(g.node(p.node).name); !name.empty()) names.emplace_back(name);
      auto near = nearest_name(f.node, names);
      return invalid_input(
          "no node '" + f.node + "' is left to be placed" + (near ? "; did you mean '" + *near + "'?" : ""),
          f.where);
    }
  }
  return {};
}

// An accelerator that nothing runs on, as its engines want sizes that are numbers, would be a silent
// fallback.
void warn_of_open_sizes(const CompileState& state, const Placement& p) {
  const Target& t = state.target;
  size_t open = 0;
  std::string devices;
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    if (is_control_flow(state.graph->node(p.nodes[i].node))) continue;
    if (t.engines[p.engine[i]].device != t.host_device) return;
    open += state.has_open_types(p.nodes[i].node);
  }
  for (size_t d = 0; d < t.devices.size(); ++d)
    if (d != t.host_device) devices += (devices.empty() ? "'" : ", '") + t.devices[d].name + "'";
  if (open == 0 || devices.empty()) return;
  log(REGIE_LOG_WARNING, "place",
      "nothing runs on " + devices + " of target '" + t.name + "': " + std::to_string(open) + " of " +
          std::to_string(p.nodes.size()) +
          " operators have symbolic sizes; fix the inputs' with --shape, such as --shape NAME=1,3,224,224");
}

// Why the node is not there: the engine's refusal, or what it would have cost, of which the placer may say
// more in a line of its reason.
OtherEngine other_engine(const Placement& p, size_t index, size_t engine) {
  const regie_answer& a = p.answers[index][engine];
  OtherEngine out{p.state->engines[engine].name, std::string(view(a.reason)), false, 0};
  const bool control = is_control_flow(p.state->graph->node(p.nodes[index].node));
  if (p.nodes[index].forced_engine != REGIE_NONE && !control) {
    out.text = "it was asked for on " + p.state->engines[p.engine[index]].name;
    return out;
  }
  if (!a.can) {
    if (out.text.empty()) out.text = "it says no, without a reason";
    return out;
  }
  out.can = true;
  out.cost_ns = a.cost_ns;
  const std::string_view why = p.why[index];
  const std::string begin = "\n" + out.engine + ": ";
  if (const size_t at = why.find(begin); at != std::string_view::npos) {
    const size_t text = at + begin.size();
    out.text = why.substr(text, why.find('\n', text) - text);
  } else {
    out.text = (a.reference ? "reference kernel only, " : "could, ") + microseconds(a.cost_ns);
  }
  return out;
}

// Values live where they are produced; arguments and results of the graph, and everything that control flow
// hands over, in the host's space. Constants have none: they are uploaded when a model is loaded.
void set_spaces(CompileState& state) {
  Graph& g = *state.graph;
  for (uint32_t i = 0; i < g.region(0).arg_count; ++i) g.set_space(g.region(0).args[i], 0);
  for_each_task_node(g, [&](uint32_t n) {
    const regie_node& node = g.node(n);
    uint32_t space = is_control_flow(node) ? 0 : g.view().engines[node.engine].space;
    for (uint32_t v : g.results(n))
      if (v != REGIE_NONE) g.set_space(v, space);
    if (!is_control_flow(node)) return;
    for (uint32_t r = 0; r < node.region_count; ++r) {
      const regie_region& region = g.region(node.regions[r]);
      for (uint32_t i = 0; i < region.arg_count; ++i) {
        uint32_t outer = state.storage_of(region.args[i]);
        if (outer == region.args[i])
          g.set_space(outer, 0);  // what a loop's body begins with
        else if (!g.is_constant(outer))
          g.set_space(region.args[i], g.value(outer).space);
      }
    }
  });
}

}  // namespace

Status run_placer(CompileState& state, const Provider<regie_placer_table>& placer,
                  const regie_config* options) {
  Graph& g = *state.graph;
  if (state.engines.empty())
    return invalid_input("placement needs a target with engines; `regie opt` takes --target");
  REGIE_TRY(state.bind_symbols());  // now that shapes are known
  Placement p;
  p.state = &state;
  std::vector<uint32_t> ids;
  for_each_task_node(g, [&](uint32_t n) { ids.push_back(n); });
  // Engines and what they compile to know no schemas.
  auto write_out = [&](uint32_t n) { g.set_attrs(n, state.ops->schemas().with_defaults(g, n)); };
  for (uint32_t n : ids) {
    write_out(n);
    if (!is_control_flow(g.node(n))) for_each_inner_node(g, n, write_out);
  }
  const size_t engines = state.engines.size();
  uint32_t host_engine = 0;
  while (state.target.engines[host_engine].device != state.target.host_device) ++host_engine;
  p.reasons.resize(ids.size() * engines);
  p.answers.assign(ids.size(), std::vector<regie_answer>(engines));
  p.nodes.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    regie_placement_node node{ids[i], REGIE_NONE, p.answers[i].data()};
    if (is_control_flow(g.node(ids[i]))) {
      node.forced_engine = host_engine;
      for (regie_answer& a : p.answers[i]) a.reason = interned("control flow runs on the host");
    } else {
      REGIE_TRY(ask_engines(state, ids[i], p.answers[i], &p.reasons[i * engines]));
      const bool some =
          std::any_of(p.answers[i].begin(), p.answers[i].end(), [](const regie_answer& a) { return a.can; });
      if (!some && state.has_open_types(ids[i])) {
        state.untried.insert(ids[i]);
        REGIE_TRY(ask_engines(state, ids[i], p.answers[i], &p.reasons[i * engines]));
      }
    }
    p.nodes.push_back(node);
  }
  REGIE_TRY(force_engines(state, &p.nodes));
  state.ledger.engines.clear();
  for (const TargetEngine& e : state.target.engines)
    state.ledger.engines.push_back({e.name, e.device == state.target.host_device});
  p.engine.assign(ids.size(), REGIE_NONE);
  p.why.resize(ids.size());
  regie_placement_problem problem{};
  problem.struct_size = sizeof(problem);
  problem.node_count = static_cast<uint32_t>(p.nodes.size());
  problem.graph = &g.view();
  problem.nodes = p.nodes.data();
  problem.transfer_ns = transfer_ns;
  problem.assign = assign;
  problem.state = &p;
  problem.sync_ns = sync_ns;
  REGIE_TRY(call_plugin("placer of plug-in " + placer.manifest->name,
                        [&] { return placer.table->place(placer.index, host_table(), options, &problem); }));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (p.engine[i] == REGIE_NONE)
      return bad_plugin("the placer of plug-in " + placer.manifest->name + " left a node without engine",
                        g.describe_node(ids[i]));
    g.set_engine(ids[i], p.engine[i]);
    const regie_node& n = g.node(ids[i]);
    PlacementRecord record{g.describe_node(ids[i]),
                           std::string(view(n.op)),
                           state.engines[p.engine[i]].name,
                           p.why[i].substr(0, p.why[i].find('\n')),
                           ids[i],
                           {},
                           false,
                           false,
                           {},
                           p.answers[i][p.engine[i]].cost_ns};
    if (n.origin_count > 1 || (n.origin_count == 1 && !is_own_origin(n, g.origin(n.origins[0]))))
      for (uint32_t o = 0; o < n.origin_count; ++o) record.origins.emplace_back(g.origin(n.origins[o]));
    record.reference = p.answers[i][p.engine[i]].reference != 0;
    for (size_t e = 0; e < engines; ++e)
      if (e != p.engine[i]) record.others.push_back(other_engine(p, i, e));
    state.ledger.placements.push_back(std::move(record));
  }
  warn_of_open_sizes(state, p);
  set_spaces(state);
  return {};
}

}  // namespace regie
