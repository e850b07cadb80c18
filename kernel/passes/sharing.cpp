// The host's half of regie/c/sharing.h, regie/c/scheduling.h and regie/c/recompute.h.
#include <algorithm>

#include "ir/structural.h"
#include "passes/recompute.h"
#include "passes/schedule_problem.h"
#include "plugins/host_interfaces.h"
#include "regie/c/recompute.h"
#include "regie/c/scheduling.h"
#include "regie/c/sharing.h"

namespace regie {

namespace {

// A scheduler is called on the thread that compiles; it may not keep the problem for later, nor ask about one
// that somebody else made.
thread_local const regie_schedule_problem* current = nullptr;

ScheduleProblem* problem_of(const regie_schedule_problem* p, uint32_t task) {
  if (!p || p != current) return nullptr;
  auto* problem = static_cast<ScheduleProblem*>(p->state);
  return task < problem->nodes->size() ? problem : nullptr;
}

Status not_there() {
  return bad_plugin("the scheduler asked about bytes of a task or a problem that it has not been given");
}

uint32_t alias_kind(const regie_schedule_problem* self, uint32_t task, uint32_t result, uint32_t operand) {
  const ScheduleProblem* p = problem_of(self, task);
  if (!p) return REGIE_ALIAS_NONE;
  const Graph& g = *p->state->graph;
  const uint32_t id = (*p->nodes)[task];
  const regie_node& n = g.node(id);
  if (result >= n.result_count || operand >= n.operand_count || n.engine >= p->state->engines.size())
    return REGIE_ALIAS_NONE;
  EngineInstance& e = p->state->engines[n.engine];
  return e.table->alias(e.engine, &g.view(), id, result, operand);
}

regie_status scratch_bytes(const regie_schedule_problem* self, uint32_t task, uint64_t* bytes) {
  if (!bytes) return fail_on_this_thread(not_there());
  *bytes = 0;
  ScheduleProblem* p = problem_of(self, task);
  if (!p) return REGIE_OK;  // of a problem that another host has made nothing is known
  CompileState& state = *p->state;
  const uint32_t node = (*p->nodes)[task];
  if (!p->kernels_known) {
    if (Status s = compile_kernels(state); !s.ok()) return fail_on_this_thread(s);
    p->kernels_known = true;
  }
  const bool known = node < state.kernels.size() && state.kernels[node] && !state.is_late_node(node);
  *bytes = known ? state.kernels[node]->scratch_bytes : 0;
  return REGIE_OK;
}

Status check_write(const ScheduleProblem& p, uint32_t task, uint32_t result, uint32_t over) {
  const CompileState& state = *p.state;
  const Graph& g = *state.graph;
  const uint32_t node = (*p.nodes)[task];
  const regie_node& n = g.node(node);
  const auto wrong = [&](const std::string& why) {
    return bad_plugin("the scheduler writes a result over bytes of others: " + why, g.describe_node(node));
  };
  if (result >= n.result_count || n.results[result] == REGIE_NONE) return wrong("there is no such result");
  if (!g.live_value(over) || g.value(over).kind != REGIE_VALUE_RESULT || g.value(over).alias_of != REGIE_NONE)
    return wrong("the value owns none");
  const regie_value& v = g.value(n.results[result]);
  if (v.alias_of != REGIE_NONE) return wrong(g.describe_value(v.id) + " lies elsewhere already");
  if (v.space != g.value(over).space) return wrong("they are in another memory space");
  // Its other readers come before, as do those of what lies on its bytes already: that is checked with the
  // plan.
  if (p.position[task] + 1 != p.issued.size()) return wrong("the task is not the one that was issued last");
  return {};
}

regie_status write_over(const regie_schedule_problem* self, uint32_t task, uint32_t result, uint32_t over) {
  const ScheduleProblem* p = problem_of(self, task);
  if (!p) return fail_on_this_thread(not_there());
  if (Status s = check_write(*p, task, result, over); !s.ok()) return fail_on_this_thread(s);
  Graph& g = *p->state->graph;
  const uint32_t node = (*p->nodes)[task], value = g.node(node).results[result];
  const std::string why = g.describe_value(value) + " is written over " + g.describe_value(over);
  g.set_alias(value, over, 0);
  p->state->ledger.note("schedule", g.describe_node(node), "alias", why);
  return REGIE_OK;
}

uint32_t idle(const regie_schedule_problem* self, uint32_t task) {
  const ScheduleProblem* p = problem_of(self, task);
  return p && p->idle[task] ? 1 : 0;
}

regie_status note(const regie_schedule_problem* self, uint32_t task, regie_str kind, regie_str text) {
  if (!self || self != current) return REGIE_OK;
  const auto* p = static_cast<const ScheduleProblem*>(self->state);
  if (task != REGIE_NONE && task >= p->nodes->size()) return fail_on_this_thread(not_there());
  CompileState& state = *p->state;
  const std::string node = task == REGIE_NONE ? "" : state.graph->describe_node((*p->nodes)[task]);
  state.ledger.note("schedule", node, view(kind), view(text));
  return REGIE_OK;
}

regie_status predict(const regie_schedule_problem* self, double ns, double one_stream_ns,
                     uint32_t event_ids) {
  if (!self || self != current) return REGIE_OK;
  Ledger& ledger = static_cast<const ScheduleProblem*>(self->state)->state->ledger;
  // Of the regions one after the other: what a run of each of them once takes.
  ledger.predicted_ns += ns;
  ledger.one_stream_ns += one_stream_ns;
  ledger.event_ids = std::max(ledger.event_ids, event_ids);
  return REGIE_OK;
}

uint32_t recompute_wanted(const regie_schedule_problem* self, uint64_t* bytes) {
  if (bytes) *bytes = 0;
  if (!self || self != current) return REGIE_RECOMPUTE_NOT;
  const CompileState& state = *static_cast<const ScheduleProblem*>(self->state)->state;
  if (bytes && state.repeats_wanted == REGIE_RECOMPUTE_LIMIT) *bytes = state.repeats_limit;
  return state.repeats_wanted;
}

uint32_t may_repeat(const regie_schedule_problem* self, uint32_t task) {
  const ScheduleProblem* p = problem_of(self, task);
  return p && may_run_again(*p->state, (*p->nodes)[task]) ? 1 : 0;
}

regie_status repeat(const regie_schedule_problem* self, const uint32_t* steps, uint32_t count) {
  if (!self || self != current || (count && !steps)) return fail_on_this_thread(not_there());
  auto& p = *static_cast<ScheduleProblem*>(self->state);
  CompileState& state = *p.state;
  const auto wrong = [](const char* why) {
    return fail_on_this_thread(bad_plugin("the scheduler wants values computed again " + std::string(why)));
  };
  if (state.repeats_wanted == REGIE_RECOMPUTE_NOT) return wrong("when nobody asked for it");
  RepeatWish wish{p.region, {}};
  std::vector<uint8_t> done(p.nodes->size(), 0);
  size_t left = done.size();
  for (uint32_t k = 0; k < count; ++k) {
    if (steps[k] >= done.size()) return wrong("by a task that is not there");
    for (uint32_t before : (*p.after)[steps[k]])
      if (!done[before]) return wrong("before what they need");
    const uint32_t node = (*p.nodes)[steps[k]];
    if (done[steps[k]] && !may_run_again(state, node)) return wrong("that may not be");
    left -= !done[steps[k]];
    done[steps[k]] = 1;
    wish.steps.push_back(node);
  }
  if (left) return wrong("and leaves out tasks");
  state.repeats.push_back(std::move(wish));
  return REGIE_OK;
}

constexpr regie_host_recompute kRecompute = {sizeof(regie_host_recompute), 0, recompute_wanted, may_repeat,
                                             repeat};

constexpr regie_host_scheduling kScheduling = {sizeof(regie_host_scheduling), 0, idle, note, predict};

constexpr regie_host_sharing kSharing = {sizeof(regie_host_sharing), 0, alias_kind, scratch_bytes,
                                         write_over};

}  // namespace

ScheduleProblem* given_problem(const regie_schedule_problem* problem) {
  return problem && problem == current ? static_cast<ScheduleProblem*>(problem->state) : nullptr;
}

SharingCall::SharingCall(const regie_schedule_problem& problem) {
  static const bool offered = [] {
    offer_host_interface(REGIE_HOST_SHARING_ID, &kSharing);
    offer_host_interface(REGIE_HOST_SCHEDULING_ID, &kScheduling);
    offer_host_interface(REGIE_HOST_RECOMPUTE_ID, &kRecompute);
    offer_host_interface(REGIE_HOST_REUSE_ID, &kHostReuse);
    return true;
  }();
  (void)offered;
  current = &problem;
}

SharingCall::~SharingCall() { current = nullptr; }

}  // namespace regie
