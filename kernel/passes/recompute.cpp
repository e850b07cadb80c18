#include "passes/recompute.h"

#include <algorithm>
#include <map>

#include "ir/structural.h"
#include "passes/schedule_problem.h"
#include "regie/c/op_kernel.h"
#include "regie/c/recompute.h"

namespace regie {

namespace {

// Where copies go. Nodes get ids in the order in which they are recorded.
struct Copies {
  Edit& edit;
  uint32_t next_node;
};

uint32_t copy_region(const Graph& g, Copies& to, uint32_t region, Status* status);

// The node, its regions copied, with operands replaced by those of `inner`; the ids of its results.
Result<std::vector<uint32_t>> copy_node(const Graph& g, Copies& to, uint32_t node,
                                        const std::map<uint32_t, uint32_t>& inner,
                                        const std::string& suffix) {
  const regie_node& n = g.node(node);
  NodeSpec spec;
  spec.op = view(n.op);
  spec.name = std::string(view(n.name)) + suffix;
  for (uint32_t v : g.operands(node)) {
    const auto it = inner.find(v);
    spec.operands.push_back(it == inner.end() ? v : it->second);
  }
  for (uint32_t i = 0; i < n.attr_count; ++i) spec.attrs.push_back(AttrValue::of(n.attrs[i]));
  Status status;
  for (uint32_t i = 0; i < n.region_count; ++i) {
    spec.regions.push_back(copy_region(g, to, n.regions[i], &status));
    REGIE_TRY(status);
  }
  spec.result_count = n.result_count;
  for (uint32_t v : g.results(node)) {
    spec.omitted.push_back(v == REGIE_NONE);
    const bool named = v != REGIE_NONE && g.value(v).name.size != 0;
    spec.result_names.push_back(named ? std::string(view(g.value(v).name)) + suffix : std::string());
  }
  ++to.next_node;
  return to.edit.node(std::move(spec));
}

uint32_t copy_region(const Graph& g, Copies& to, uint32_t region, Status* status) {
  const regie_region& r = g.region(region);
  std::vector<regie_type> types;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < r.arg_count; ++i) {
    types.push_back(g.value(r.args[i]).type);
    names.emplace_back(view(g.value(r.args[i]).name));
  }
  std::vector<uint32_t> args;
  auto opened = to.edit.open_region(view(r.name), types, names, &args);
  if (!opened.ok()) {
    *status = std::move(opened).status();
    return REGIE_NONE;
  }
  std::map<uint32_t, uint32_t> inner;
  for (uint32_t i = 0; i < r.arg_count; ++i) inner[r.args[i]] = args[i];
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (g.live_value(v) && g.is_constant(v) && g.value(v).owner == region) {
      auto made = to.edit.constant(g.value(v).kind, g.tensor(v), view(g.value(v).name));
      if (made.ok())
        inner[v] = *made;
      else
        *status = std::move(made).status();
    }
  for (uint32_t n = r.first; n != REGIE_NONE && status->ok(); n = g.node(n).next) {
    auto results = copy_node(g, to, n, inner, "");
    if (!results.ok()) {
      *status = std::move(results).status();
      break;
    }
    for (uint32_t i = 0; i < g.node(n).result_count; ++i)
      if (g.node(n).results[i] != REGIE_NONE) inner[g.node(n).results[i]] = (*results)[i];
  }
  std::vector<uint32_t> results;
  for (uint32_t i = 0; i < r.result_count; ++i) {
    const auto it = inner.find(r.results[i]);
    results.push_back(it == inner.end() ? r.results[i] : it->second);
  }
  if (status->ok()) *status = to.edit.close_region(results);
  return *opened;
}

// In program order from the region's first node on.
void put_in_order(Graph& g, const std::vector<uint32_t>& nodes) {
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!g.live(nodes[i])) continue;
    const uint32_t first = g.region(g.node(nodes[i]).region).first;
    if (first != nodes[i]) g.move_before(nodes[i], first);
  }
}

}  // namespace

bool may_run_again(const CompileState& state, uint32_t node) {
  const Graph& g = *state.graph;
  const regie_node& n = g.node(node);
  if (is_control_flow(n) || is_copy(n) || n.control_count || n.result_count != 1) return false;
  if (n.results[0] == REGIE_NONE || state.is_late_node(node)) return false;
  if (state.ops->flags(view(n.op)) & (REGIE_OP_NONDETERMINISTIC | REGIE_OP_DYNAMIC_RESULT)) return false;
  for (uint32_t k = 0; k < n.region_count; ++k)
    for (uint32_t i = g.region(n.regions[k]).first; i != REGIE_NONE; i = g.node(i).next)
      if (g.node(i).region_count) return false;
  return true;
}

Result<uint32_t> record_copy(const CompileState& state, uint32_t value, uint32_t anchor,
                             const std::vector<std::pair<uint32_t, uint32_t>>& readers, Edit& edit,
                             uint32_t* next_node, const std::map<uint32_t, uint32_t>& instead) {
  const Graph& g = *state.graph;
  const uint32_t node = g.value(value).owner;
  REGIE_TRY(edit.begin("compute again", anchor));
  Copies to{edit, *next_node};
  REGIE_ASSIGN(const std::vector<uint32_t> made, copy_node(g, to, node, instead, "_again"));
  for (const auto& [reader, operand] : readers) REGIE_TRY(edit.set_operand(reader, operand, made[0]));
  const uint32_t id = to.next_node - 1;
  *next_node = to.next_node;
  REGIE_TRY(edit.commit());
  REGIE_TRY(edit.set_engine(id, g.node(node).engine, "as " + g.describe_node(node)));
  REGIE_TRY(edit.set_type(made[0], g.value(value).type));
  REGIE_TRY(edit.set_space(made[0], g.value(value).space));
  return made[0];
}

namespace {

// What became of a scheduler's wish.
struct RepeatedNodes {
  std::vector<uint32_t> order_before;                 // of the region's nodes
  std::vector<std::pair<uint32_t, uint32_t>> copies;  // node, the first value of what it makes
  std::vector<std::string> notes;                     // what is computed again where, by copy
};

// Brings the region's nodes into the order of `wish` and records the copies.
Result<RepeatedNodes> record_repeats(CompileState& state, const RepeatWish& wish, Edit& edit) {
  Graph& g = *state.graph;
  RepeatedNodes made;
  for (uint32_t n = g.region(wish.region).first; n != REGIE_NONE; n = g.node(n).next)
    made.order_before.push_back(n);
  // Who reads a node's result reads that of its last run so far.
  struct Copy {
    uint32_t node, before = REGIE_NONE;  // the next node that runs for the first time
    std::vector<std::pair<uint32_t, uint32_t>> readers;
    std::map<uint32_t, size_t> instead;  // operand value, place in `copies`
  };
  constexpr size_t kFirst = SIZE_MAX;
  std::vector<uint32_t> order;
  std::vector<Copy> copies;
  std::map<uint32_t, size_t> last;  // by node: kFirst, or the place in `copies`
  for (const uint32_t node : wish.steps) {
    const bool again = last.count(node) != 0;
    if (again) {
      copies.push_back({node, REGIE_NONE, {}, {}});
    } else {
      order.push_back(node);
      for (Copy& c : copies)
        if (c.before == REGIE_NONE) c.before = node;
    }
    for (uint32_t i = 0; i < g.node(node).operand_count; ++i) {
      const uint32_t v = g.node(node).operands[i];
      if (v == REGIE_NONE || g.value(v).kind != REGIE_VALUE_RESULT) continue;
      const auto maker = last.find(g.value(v).owner);
      if (maker == last.end() || maker->second == kFirst) continue;
      if (again)
        copies.back().instead.emplace(v, maker->second);
      else
        copies[maker->second].readers.push_back({node, i});
    }
    last[node] = again ? copies.size() - 1 : kFirst;
  }
  put_in_order(g, order);
  uint32_t next_node = g.next_node_id();
  std::vector<uint32_t> results;
  for (const Copy& c : copies) {
    if (c.before == REGIE_NONE)
      return bad_plugin("the scheduler computes again what nobody reads", g.describe_node(c.node));
    std::map<uint32_t, uint32_t> instead;
    for (const auto& [value, place] : c.instead) instead.emplace(value, results[place]);
    const uint32_t value = g.node(c.node).results[0];
    REGIE_ASSIGN(const uint32_t result,
                 record_copy(state, value, c.before, c.readers, edit, &next_node, instead));
    results.push_back(result);
    REGIE_ASSIGN(const double ns, task_cost(state, c.node));
    made.copies.push_back({next_node - 1, value});
    made.notes.push_back(g.describe_node(c.node) + " is computed again before " + g.describe_node(c.before) +
                         ", for " + microseconds(ns));
  }
  return made;
}

// The opposite: records that readers read the first values again and copies go.
Status record_no_repeats(CompileState& state, const RepeatedNodes& made, Edit& edit) {
  const Graph& g = *state.graph;
  const auto live = [&](const std::pair<uint32_t, uint32_t>& c) { return g.live(c.first); };
  if (std::none_of(made.copies.begin(), made.copies.end(), live)) return {};
  REGIE_TRY(edit.begin("keep what computing again does not pay for", REGIE_NONE));
  for (size_t k = made.copies.size(); k-- > 0;) {
    const auto& [copy, value] = made.copies[k];
    if (!g.live(copy)) continue;  // its patch was held back
    for (const regie_use& u : g.uses(g.node(copy).results[0]))
      if (!(u.node & REGIE_USE_REGION) && g.live(u.node))
        REGIE_TRY(edit.set_operand(u.node, u.operand, value));
    REGIE_TRY(edit.remove(copy));
  }
  return edit.commit();
}

// After that was applied; while there are copies, as bisection held it back, the order stays.
void restore_order(Graph& g, const RepeatedNodes& made) {
  const auto live = [&](const std::pair<uint32_t, uint32_t>& c) { return g.live(c.first); };
  if (std::none_of(made.copies.begin(), made.copies.end(), live)) put_in_order(g, made.order_before);
}

}  // namespace

uint64_t arena_bytes(const std::vector<MemoryRecord>& spaces) {
  uint64_t bytes = 0;
  for (const MemoryRecord& m : spaces) bytes += m.peak;
  return bytes;
}

void take_aliases_away(CompileState& state) {
  Graph& g = *state.graph;
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (g.live_value(v) && g.value(v).alias_of != REGIE_NONE) g.set_alias(v, REGIE_NONE, 0);
}

Status compute_again(CompileState& state, const PlanActions& actions) {
  const std::vector<RepeatWish> wishes = std::move(state.repeats);
  const uint64_t before = arena_bytes(state.ledger.memory);
  take_aliases_away(state);
  std::vector<RepeatedNodes> made;
  for (const RepeatWish& wish : wishes) {
    Edit edit(*state.graph);
    REGIE_ASSIGN(RepeatedNodes nodes, record_repeats(state, wish, edit));
    REGIE_TRY(actions.apply(edit));
    made.push_back(std::move(nodes));
  }
  REGIE_TRY(actions.plan_again(REGIE_RECOMPUTE_NOT));
  const uint64_t after = arena_bytes(state.ledger.memory);
  if (after < before) {
    const std::string saved = "; together the plan takes " + std::to_string(after) + " instead of " +
                              std::to_string(before) + " bytes";
    for (const RepeatedNodes& nodes : made)
      for (size_t k = 0; k < nodes.copies.size(); ++k)
        if (state.graph->live(nodes.copies[k].first))
          state.ledger.note("recompute", state.graph->describe_node(nodes.copies[k].first), "recomputed",
                            nodes.notes[k] + saved);
    return {};
  }
  take_aliases_away(state);
  for (size_t k = made.size(); k-- > 0;) {
    Edit edit(*state.graph);
    REGIE_TRY(record_no_repeats(state, made[k], edit));
    REGIE_TRY(actions.apply(edit));
    restore_order(*state.graph, made[k]);
  }
  state.ledger.note("recompute", "", "kept",
                    "nothing is computed again: the plan would take " + std::to_string(after) +
                        " bytes, and takes " + std::to_string(before) + " without");
  return actions.plan_again(REGIE_RECOMPUTE_NOT);
}

}  // namespace regie
