#include "passes/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "ir/edit.h"
#include "ir/verify.h"
#include "passes/memory_limit.h"
#include "passes/recompute.h"
#include "passes/steps.h"
#include "ir/structural.h"
#include "regie/c/recompute.h"
#include "text/text.h"

namespace regie {

namespace {

class Manager {
 public:
  explicit Manager(CompileState& state) : state_(state) {}
  ~Manager() {
    for (auto& stage : steps_)
      for (PassStep& s : stage) destroy(s);
  }

  Status resolve(const Pipeline& pipeline) { return resolve_steps(state_, pipeline, &steps_); }
  Status check_properties(const Pipeline& pipeline, const GraphProperties& initial,
                          const std::vector<std::string>& needed) {
    return check_step_properties(steps_, pipeline, initial, needed);
  }
  Status run(const Pipeline& pipeline);

 private:
  Status run_stage(const Stage& stage, std::vector<PassStep>& steps);
  Status run_step(PassStep& step, StageRecord* record);
  Status timed_step(PassStep& step, StageRecord* record);
  Status run_pass_object(PassStep& step, const Provider<regie_pass_table>& p, StageRecord* record);
  Status run_rewrite_object(PassStep& step, const Provider<regie_rewrite_table>& p, StageRecord* record);
  Status run_stages(const Pipeline& pipeline, size_t first);
  bool may_repeat_by_default() const;
  Status dump(size_t index, const std::string& stage);
  void destroy(PassStep& s) {
    if (!s.object) return;
    if (auto* p = std::get_if<Provider<regie_pass_table>>(&s.provided)) p->table->destroy(s.object);
    if (auto* p = std::get_if<Provider<regie_rewrite_table>>(&s.provided)) p->table->destroy(s.object);
  }
  // Applies what `edit` recorded and keeps the ledger.
  Result<ApplyOutcome> apply(Edit& edit, const PassStep& step, StageRecord* record);
  // The first engine in the target's order that would take the node says whether it wants it fused like this.
  Status ask_veto(const Graph& graph, uint32_t node);
  // The nodes to show: all live ones the first time, later the live ones of the log since.
  std::vector<uint32_t> changed_for(PassStep& step);
  void collect_changes() {
    for (uint32_t n : state_.graph->take_changed()) log_.push_back(n);
  }

  CompileState& state_;
  std::vector<std::vector<PassStep>> steps_;  // by stage
  std::vector<uint32_t> log_;                 // node ids, in the order of their changes
  // Notes of patches that the ledger has: node, pass, kind, text.
  std::set<std::tuple<uint32_t, std::string, std::string, std::string>> told_;
};

std::vector<uint32_t> Manager::changed_for(PassStep& step) {
  std::vector<uint32_t> nodes;
  const Graph& g = *state_.graph;
  collect_changes();
  if (step.first) {
    g.for_each_node([&](uint32_t n) { nodes.push_back(n); });
  } else {
    nodes.assign(log_.begin() + static_cast<long>(step.seen), log_.end());
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::erase_if(nodes, [&](uint32_t n) { return !g.live(n); });
  }
  step.first = false;
  step.seen = log_.size();
  return nodes;
}

// "patch 12 of fold-constants, 'fold': node 'a' (Op) -> node 'b' (Op)"
std::string describe(uint32_t serial, const PatchRecord& p) {
  std::string text = "patch " + std::to_string(serial) + " of " + p.pass + ", '" + p.title + "':";
  for (const std::string& n : p.removed) text += " " + n;
  text += " ->";
  for (const std::string& n : p.added) text += " " + n;
  return text;
}

Result<ApplyOutcome> Manager::apply(Edit& edit, const PassStep& step, StageRecord* record) {
  EditOptions options;
  options.next_serial = &state_.next_patch;
  const CompileOptions& o = state_.options;
  if (!o.held_back_patches.empty() || o.stop_after_patches != UINT32_MAX)
    options.accept = [&o](uint32_t serial) {
      return serial < o.stop_after_patches && !o.held_back_patches.count(serial);
    };
  bool vetoes = std::any_of(state_.engines.begin(), state_.engines.end(),
                            [](const EngineInstance& e) { return e.table->accept_fusion; });
  if (vetoes) options.veto = [this](const Graph& graph, uint32_t node) { return ask_veto(graph, node); };
  auto outcome = edit.apply(*state_.ops, options);
  if (!outcome.ok())
    return std::move(outcome).status().while_doing("applying a patch of pass '" + step.use->name + "'");
  record->patches += static_cast<uint32_t>(outcome->applied.size());
  const bool tell = log_enabled(REGIE_LOG_DEBUG);
  for (const AppliedPatch& p : outcome->applied) {
    ++record->patches_by_title[p.title];
    if (!tell && !state_.ledger.keeps_patches()) {
      ++state_.ledger.patches_left_out;
      continue;
    }
    PatchRecord done{record->name, step.use->name, p.title, p.removed, {}};
    for (uint32_t n : p.added)
      if (state_.graph->live(n)) done.added.push_back(state_.graph->describe_node(n));
    if (tell) log(REGIE_LOG_DEBUG, "compile", describe(p.serial, done));
    state_.ledger.patch(std::move(done));
  }
  for (const EditNote& n : outcome->notes) {
    // What is refused is tried again in each round, and where the pipeline plans anew.
    if (n.node != REGIE_NONE && !told_.emplace(n.node, step.use->name, n.kind, n.text).second) continue;
    state_.ledger.note(
        step.use->name,
        n.node == REGIE_NONE || !state_.graph->live(n.node) ? "" : state_.graph->describe_node(n.node),
        n.kind, n.text);
  }
  return outcome;
}

Status Manager::ask_veto(const Graph& graph, uint32_t node) {
  // Whether they can take it costs more to ask than whether they like it.
  const bool disliked = std::any_of(state_.engines.begin(), state_.engines.end(), [&](EngineInstance& e) {
    regie_str reason{};
    return e.table->accept_fusion && !e.table->accept_fusion(e.engine, &graph.view(), node, &reason);
  });
  if (!disliked) return {};
  auto shapes = NodeShapes::make(state_, node);
  if (!shapes.ok()) return {};  // shapes are not known yet: nothing to judge by
  regie_engine_shapes s = shapes->get();
  std::string refusals;
  for (EngineInstance& e : state_.engines) {
    regie_answer answer{};
    REGIE_TRY(call_plugin("engine '" + e.name + "'",
                          [&] { return e.table->ask(e.engine, &graph.view(), node, &s, &answer); }));
    if (answer.can && !e.table->accept_fusion) return {};
    if (!answer.can)
      refusals += (refusals.empty() ? "" : "; ") + e.name + ": " + std::string(view(answer.reason));
    // Also of what it cannot take: that is why an engine whose buffers the parts fit, and the whole does not,
    // objects.
    regie_str reason{};
    if (e.table->accept_fusion && !e.table->accept_fusion(e.engine, &graph.view(), node, &reason))
      return unsupported("engine '" + e.name + "' vetoes it: " + std::string(view(reason)),
                         graph.describe_node(node));
    if (answer.can) return {};
  }
  // Control flow and copies are the host's own; a node with an inside that nobody can run is not to be made.
  if (graph.node(node).region_count == 0 || is_control_flow(graph.node(node))) return {};
  return unsupported("no engine can run it: " + refusals, graph.describe_node(node));
}

// What regie_pass_context.state points to.
struct PassCall {
  CompileState* state;
  std::vector<Tensor> evaluated;  // kept until the pass returns
};

regie_status context_infer(const regie_pass_context* self, uint32_t node) {
  auto& call = *static_cast<PassCall*>(self->state);
  if (!call.state->graph->live(node))
    return fail_on_this_thread(bad_plugin("infer: there is no node " + std::to_string(node)));
  return fail_on_this_thread(call.state->ops->infer(*call.state->graph, node));
}

regie_status context_evaluate(const regie_pass_context* self, uint32_t node, uint64_t budget,
                              regie_tensor* results) {
  auto& call = *static_cast<PassCall*>(self->state);
  const Graph& g = *call.state->graph;
  if (!g.live(node))
    return fail_on_this_thread(bad_plugin("evaluate: there is no node " + std::to_string(node)));
  std::vector<Tensor> operands;
  for (uint32_t v : g.operands(node)) {
    if (v == REGIE_NONE) {
      operands.emplace_back();
      continue;
    }
    if (!g.is_constant(v) || !g.tensor(v))
      return fail_on_this_thread(invalid_input(
          "operand " + g.describe_value(v) + " is not a constant with data", g.describe_node(node)));
    operands.push_back(g.tensor(v));
  }
  auto r = call.state->ops->evaluate(g, node, operands, budget);
  if (!r.ok()) return fail_on_this_thread(r.status());
  for (size_t i = 0; i < r->size(); ++i) results[i] = (*r)[i] ? (*r)[i].view() : regie_tensor{};
  for (Tensor& t : *r) call.evaluated.push_back(std::move(t));
  return REGIE_OK;
}

uint32_t context_alias_kind(const regie_pass_context* self, uint32_t node, uint32_t result,
                            uint32_t operand) {
  auto& state = *static_cast<PassCall*>(self->state)->state;
  const Graph& g = *state.graph;
  if (!g.live(node) || g.node(node).engine >= state.engines.size()) return REGIE_ALIAS_NONE;
  if (result >= g.node(node).result_count || operand >= g.node(node).operand_count) return REGIE_ALIAS_NONE;
  EngineInstance& e = state.engines[g.node(node).engine];
  return e.table->alias(e.engine, &g.view(), node, result, operand);
}

uint32_t context_op_flags(const regie_pass_context* self, regie_str op) {
  return static_cast<PassCall*>(self->state)->state->ops->flags(view(op));
}

uint32_t context_format_wishes(const regie_pass_context* self, uint32_t node, regie_format_wish* wishes,
                               uint32_t capacity) {
  auto& state = *static_cast<PassCall*>(self->state)->state;
  const Graph& g = *state.graph;
  if (!g.live(node) || g.node(node).engine >= state.engines.size()) return 0;
  EngineInstance& e = state.engines[g.node(node).engine];
  if (!e.table->formats || is_control_flow(g.node(node)) || is_copy(g.node(node))) return 0;
  auto shapes = NodeShapes::make(state, node);
  if (!shapes.ok()) return 0;  // the stage that needs the shapes says what is wrong with them
  regie_engine_shapes s = shapes->get();
  return e.table->formats(e.engine, &g.view(), node, &s, wishes, capacity);
}

double context_reformat_ns(const regie_pass_context* self, uint32_t engine, uint32_t value, regie_format from,
                           regie_format to) {
  auto& state = *static_cast<PassCall*>(self->state)->state;
  const Graph& g = *state.graph;
  if (engine >= state.engines.size() || !g.live_value(value) || !state.engines[engine].table->reformat_ns)
    return -1;
  std::vector<int64_t> dims;
  const regie_type& type = g.value(value).type;
  for (int32_t d = 0; d < type.rank; ++d) {
    auto size = state.reference_value(type.dims[d]);
    if (!size.ok()) return -1;
    dims.push_back(*size);
  }
  regie_tensor tensor{type.elem, 0, type.rank, dims.data(), nullptr, nullptr, 0};
  tensor.bytes = elem_bytes(type.elem, static_cast<uint64_t>(element_count(dims)));
  EngineInstance& e = state.engines[engine];
  return e.table->reformat_ns(e.engine, &tensor, from, to);
}

regie_pass_context make_context(PassCall* call, const regie_graph* graph, Edit& edit) {
  regie_pass_context c{};
  c.struct_size = sizeof(c);
  c.host = host_table();
  c.graph = graph;
  c.edit = edit.handle();
  c.edit_api = edit_api();
  c.infer = context_infer;
  c.evaluate = context_evaluate;
  c.alias_kind = context_alias_kind;
  c.op_flags = context_op_flags;
  c.state = call;
  c.format_wishes = context_format_wishes;
  c.reformat_ns = context_reformat_ns;
  return c;
}

Status Manager::run_pass_object(PassStep& step, const Provider<regie_pass_table>& p, StageRecord* record) {
  const std::string what = "pass '" + step.use->name + "' of plug-in " + p.manifest->name;
  if (!step.object)
    REGIE_TRY(call_plugin(
        what, [&] { return p.table->create(p.index, host_table(), step.config.get(), &step.object); }));
  // A pass that keeps changing its own mind would go on for ever: more runs than nodes is no honest fixpoint.
  const uint32_t limit = 16 + 2 * state_.graph->live_node_count();
  for (uint32_t run = 0; run < limit; ++run) {
    std::vector<uint32_t> changed = changed_for(step);
    if (run > 0 && changed.empty()) return {};
    PassCall call{&state_, {}};
    Edit edit(*state_.graph);
    regie_graph graph = state_.graph->view();
    graph.changed = changed.data();
    graph.changed_count = static_cast<uint32_t>(changed.size());
    regie_pass_context context = make_context(&call, &graph, edit);
    REGIE_TRY(call_plugin(what, [&] { return p.table->run(step.object, &context); }));
    REGIE_ASSIGN(ApplyOutcome outcome, apply(edit, step, record));
    if (outcome.applied.empty() && outcome.dropped == 0) return {};
  }
  return bad_plugin(what + " still commits patches after " + std::to_string(limit) + " runs");
}

Status Manager::run_rewrite_object(PassStep& step, const Provider<regie_rewrite_table>& p,
                                   StageRecord* record) {
  const std::string what = "rewrite '" + step.use->name + "' of plug-in " + p.manifest->name;
  if (!step.object)
    REGIE_TRY(call_plugin(
        what, [&] { return p.table->create(p.index, host_table(), step.config.get(), &step.object); }));
  std::set<NameId> wanted;
  for (uint32_t i = 0; i < step.rewrite->op_count; ++i) wanted.insert(intern(view(step.rewrite->ops[i])));
  Graph& g = *state_.graph;
  std::vector<uint32_t> work = changed_for(step);
  uint64_t budget = 16 + 16ull * g.live_node_count();
  for (size_t i = 0; i < work.size(); ++i) {
    uint32_t n = work[i];
    if (!g.live(n) || (!wanted.empty() && !wanted.count(g.node(n).op_id))) continue;
    PassCall call{&state_, {}};
    Edit edit(g);
    regie_graph graph = g.view();
    regie_pass_context context = make_context(&call, &graph, edit);
    REGIE_TRY(call_plugin(what, [&] { return p.table->apply(step.object, &context, n); }));
    REGIE_ASSIGN(ApplyOutcome outcome, apply(edit, step, record));
    if (outcome.applied.empty()) continue;
    for (uint32_t c : g.take_changed()) {
      log_.push_back(c);
      work.push_back(c);
    }
    if (work.size() > budget)
      return bad_plugin(what + " does not come to an end: each of its patches leads to another");
  }
  step.seen = log_.size();
  return {};
}

Status Manager::run_step(PassStep& step, StageRecord* record) {
  struct Run {
    Manager& m;
    PassStep& step;
    StageRecord* record;
    Status operator()(const Provider<regie_pass_table>& p) { return m.run_pass_object(step, p, record); }
    Status operator()(const Provider<regie_rewrite_table>& p) {
      return m.run_rewrite_object(step, p, record);
    }
    Status operator()(const Provider<regie_placer_table>& p) {
      return run_placer(m.state_, p, step.config.get());
    }
    Status operator()(const Provider<regie_scheduler_table>& p) {
      return run_scheduler(m.state_, p, step.config.get());
    }
    Status operator()(const Provider<regie_memory_table>& p) {
      return run_memory_planner(m.state_, p, step.config.get());
    }
    Status operator()(RulePass& p) {
      std::vector<uint32_t> changed = m.changed_for(step);
      return p.run(m.state_, changed, [this](Edit& edit) { return m.apply(edit, step, record); });
    }
  };
  return std::visit(Run{*this, step, record}, step.provided)
      .while_doing("running pass '" + step.use->name + "'");
}

Status Manager::timed_step(PassStep& step, StageRecord* record) {
  if (!log_enabled(REGIE_LOG_DEBUG)) return run_step(step, record);
  const uint32_t before = record->patches;
  const auto start = std::chrono::steady_clock::now();
  REGIE_TRY(run_step(step, record));
  char line[256];
  std::snprintf(line, sizeof line, "  %-24s %u patches, %.1f ms", step.use->name.c_str(),
                record->patches - before,
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  log(REGIE_LOG_DEBUG, "compile", line);
  return {};
}

Status Manager::run_stage(const Stage& stage, std::vector<PassStep>& steps) {
  StageRecord record;
  record.name = stage.name;
  record.operators_before = state_.graph->live_node_count();
  auto start = std::chrono::steady_clock::now();
  for (int64_t round = 0;; ++round) {
    if (round == stage.max_rounds) {
      record.notes.push_back("stopped after max-rounds = " + std::to_string(stage.max_rounds) +
                             " while patches were still being made");
      break;
    }
    uint32_t before = record.patches;
    for (PassStep& step : steps) REGIE_TRY(timed_step(step, &record));
    ++record.rounds;
    if (!stage.until_stable || record.patches == before) break;
  }
  record.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  record.operators_after = state_.graph->live_node_count();
  char line[256];
  std::snprintf(line, sizeof line, "%-10s %4u -> %4u operators, %u patches, %u rounds, %.1f ms",
                stage.name.c_str(), record.operators_before, record.operators_after, record.patches,
                record.rounds, record.milliseconds);
  log(REGIE_LOG_INFO, "compile", line);
  state_.ledger.stages.push_back(std::move(record));
  return {};
}

Status Manager::dump(size_t index, const std::string& stage) {
  char number[16];
  std::snprintf(number, sizeof number, "%02zu-", index);
  std::error_code error;
  std::filesystem::create_directories(state_.options.dump, error);
  if (error) return io_error("the folder for --dump cannot be made: " + error.message(), state_.options.dump);
  return write_file_atomically(state_.options.dump + "/" + number + stage + ".rg", print(*state_.graph));
}

Status Manager::run(const Pipeline& pipeline) {
  state_.forced = pipeline.forced;
  if (!state_.options.dump.empty()) REGIE_TRY(dump(0, "import"));
  size_t first = 0;
  const auto schedules = [](const PassStep& s) {
    return std::holds_alternative<Provider<regie_scheduler_table>>(s.provided);
  };
  while (first < steps_.size() && std::none_of(steps_[first].begin(), steps_[first].end(), schedules))
    ++first;
  for (size_t i = first; i < steps_.size() && !state_.planner; ++i)
    for (const PassStep& s : steps_[i])
      if (const auto* planner = std::get_if<Provider<regie_memory_table>>(&s.provided)) {
        state_.planner = planner;
        state_.planner_options = s.config.get();
        break;
      }
  PassUse use;
  use.name = "recompute";
  PassStep step;
  step.use = &use;
  StageRecord record;
  record.name = use.name;
  record.operators_before = state_.graph->live_node_count();
  const PlanActions actions{[&](Edit& edit) { return apply(edit, step, &record).status(); },
                            [&](uint32_t repeats_wanted) {
                              state_.ledger.memory.clear();
                              state_.schedule.clear();
                              state_.repeats.clear();
                              state_.repeats_wanted = repeats_wanted;
                              return run_stages(pipeline, first);
                            }};
  state_.repeats_wanted = may_repeat_by_default() ? REGIE_RECOMPUTE_PAYS : REGIE_RECOMPUTE_NOT;
  REGIE_TRY(run_stages(pipeline, 0));
  if (!state_.repeats.empty()) REGIE_TRY(compute_again(state_, actions));
  const Status fitted = fit_memory_limit(state_, actions);
  record.operators_after = state_.graph->live_node_count();
  if (record.patches) state_.ledger.stages.push_back(std::move(record));
  return fitted;
}

// With sizes that only the run tells, fewer bytes at the reference shapes may be more at others.
bool Manager::may_repeat_by_default() const {
  return !state_.aliases_given && state_.graph->dims().symbol_count() == 0;
}

Status Manager::run_stages(const Pipeline& pipeline, size_t first) {
  for (size_t i = first; i < pipeline.stages.size(); ++i) {
    const Stage& stage = pipeline.stages[i];
    report_progress(("compiling: " + stage.name).c_str(), i + 1, pipeline.stages.size());
    REGIE_TRY(run_stage(stage, steps_[i]).while_doing("in stage '" + stage.name + "'"));
    if (!state_.options.dump.empty()) REGIE_TRY(dump(i + 1, stage.name));
    if (state_.options.verify) {
      VerifyOptions verify_options;
      verify_options.ops = state_.ops.get();
      if (state_.aliases_given) verify_options.alias_code = REGIE_INVALID_MODEL;
      const std::string what = "verifying the graph after stage '" + stage.name + "'";
      REGIE_TRY(verify(*state_.graph, verify_options).while_doing(what));
      // Tests set this: every graph that they make must survive its text.
      if (std::getenv("REGIE_VERIFY_TEXT")) REGIE_TRY(check_round_trip(*state_.graph).while_doing(what));
    }
  }
  return {};
}

}  // namespace

Status check_pipeline(CompileState& state, const Pipeline& pipeline, const GraphProperties& initial,
                      const std::vector<std::string>& needed) {
  Manager manager(state);
  REGIE_TRY(manager.resolve(pipeline));
  return manager.check_properties(pipeline, initial, needed);
}

Status run_pipeline(CompileState& state, const Pipeline& pipeline, const GraphProperties& initial,
                    const std::vector<std::string>& needed) {
  Manager manager(state);
  REGIE_TRY(manager.resolve(pipeline));
  REGIE_TRY(manager.check_properties(pipeline, initial, needed));
  return manager.run(pipeline);
}

}  // namespace regie
