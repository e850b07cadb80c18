// Schedule driver: states the dependencies of each region's tasks, lets the scheduler choose streams, order
// and events, and lays all regions on one line of steps, in which buffers live.
#include <algorithm>

#include "passes/compile_state.h"
#include "ir/structural.h"
#include "passes/schedule_problem.h"

namespace regie {

namespace {

regie_status issue(const regie_schedule_problem* self, uint32_t task, uint32_t stream) {
  auto& p = *static_cast<ScheduleProblem*>(self->state);
  if (task >= p.nodes->size() || p.position[task] != REGIE_NONE)
    return fail_on_this_thread(bad_plugin("the scheduler issued a task that is not there, or one twice"));
  for (uint32_t before : (*p.after)[task])
    if (p.position[before] == REGIE_NONE)
      return fail_on_this_thread(bad_plugin("the scheduler issued a task before one that it depends on"));
  p.position[task] = static_cast<uint32_t>(p.issued.size());
  p.issued.push_back({(*p.nodes)[task], stream, {}, 0, self->tasks[task].cost_ns});
  return REGIE_OK;
}

regie_status event(const regie_schedule_problem* self, uint32_t from, uint32_t to, regie_str reason) {
  auto& p = *static_cast<ScheduleProblem*>(self->state);
  if (from >= p.nodes->size() || to >= p.nodes->size())
    return fail_on_this_thread(bad_plugin("the scheduler named a task that is not there"));
  p.events.emplace_back(from, to, std::string(view(reason)));
  return REGIE_OK;
}

// Tasks that must have ended before each task: producers of its operands, control edges, and, where its
// result lies on bytes that others read, those readers.
std::vector<std::vector<uint32_t>> dependencies(const CompileState& state,
                                                const std::vector<uint32_t>& nodes) {
  const Graph& g = *state.graph;
  std::vector<std::vector<uint32_t>> after(nodes.size());
  std::unordered_map<uint32_t, uint32_t> task_of;  // by node
  for (uint32_t i = 0; i < nodes.size(); ++i) task_of.emplace(nodes[i], i);
  // Bytes that more than one value lies on: the tasks that have touched them so far.
  std::unordered_map<uint32_t, std::vector<uint32_t>> touched;
  for (uint32_t n : nodes)
    for (uint32_t v : g.results(n))
      if (v != REGIE_NONE && g.value(v).alias_of != REGIE_NONE)
        touched.emplace(state.storage_of(v), std::vector<uint32_t>());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    auto depend = [&](uint32_t other) {
      if (other != i) after[i].push_back(other);
    };
    for (uint32_t v : g.operands(nodes[i]))
      if (v != REGIE_NONE && g.value(v).kind == REGIE_VALUE_RESULT)
        if (auto it = task_of.find(g.value(v).owner); it != task_of.end()) depend(it->second);
    for (uint32_t c = 0; c < g.node(nodes[i]).control_count; ++c)
      if (auto it = task_of.find(g.node(nodes[i]).control[c]); it != task_of.end()) depend(it->second);
    for (uint32_t v : g.results(nodes[i])) {
      if (v == REGIE_NONE || g.value(v).alias_of == REGIE_NONE) continue;
      // Afterwards this task stands for all of them: who comes after it comes after them.
      std::vector<uint32_t>& others = touched[state.storage_of(v)];
      for (uint32_t other : others) depend(other);
      others.clear();
    }
    if (!touched.empty())
      for (auto list : {g.operands(nodes[i]), g.results(nodes[i])})
        for (uint32_t v : list)
          if (v != REGIE_NONE)
            if (auto it = touched.find(state.storage_of(v)); it != touched.end()) it->second.push_back(i);
    std::sort(after[i].begin(), after[i].end());
    after[i].erase(std::unique(after[i].begin(), after[i].end()), after[i].end());
  }
  return after;
}

// Does it go on from the schedule that another one made of the graph as it is?
bool wants_schedule(const regie_pass_info& scheduler) {
  return std::any_of(scheduler.requires_, scheduler.requires_ + scheduler.require_count,
                     [](const regie_str& s) { return view(s) == "scheduled"; });
}

// In program order; after another scheduler, in the one that it gave.
std::vector<uint32_t> nodes_of(const CompileState& state, uint32_t region,
                               const std::vector<ScheduledTask>& before) {
  const Graph& g = *state.graph;
  std::vector<uint32_t> nodes, ordered;
  for (uint32_t n = g.region(region).first; n != REGIE_NONE; n = g.node(n).next) nodes.push_back(n);
  for (const ScheduledTask& t : before) ordered.push_back(t.node);
  std::vector<uint32_t> same = ordered, all = nodes;
  std::sort(same.begin(), same.end());
  std::sort(all.begin(), all.end());
  return same == all ? ordered : nodes;
}

// One line of steps over the region tree: a control-flow task, then the tasks of each of its regions followed
// by a step in which that region's results are handed over.
void number_steps(CompileState& state) {
  struct Frame {
    uint32_t region;
    size_t next = 0;
    uint32_t child = 0;  // next region of the control-flow task before `next`
  };
  const Graph& g = *state.graph;
  std::vector<Frame> stack{{0}};
  uint64_t step = 0;
  while (!stack.empty()) {
    Frame& f = stack.back();
    RegionSchedule& s = state.schedule[f.region];
    if (f.next > 0) {
      const regie_node& owner = g.node(s.tasks[f.next - 1].node);
      if (is_control_flow(owner) && f.child < owner.region_count) {
        uint32_t region = owner.regions[f.child++];
        stack.push_back({region});
        continue;
      }
    }
    if (f.next == s.tasks.size()) {
      s.end_step = step++;
      stack.pop_back();
      continue;
    }
    s.tasks[f.next].step = step++;
    ++f.next;
    f.child = 0;
  }
}

}  // namespace

Status run_scheduler(CompileState& state, const Provider<regie_scheduler_table>& scheduler,
                     const regie_config* options) {
  Graph& g = *state.graph;
  std::vector<RegionSchedule> before = std::move(state.schedule);
  before.resize(g.region_count());
  state.schedule.assign(g.region_count(), {});
  state.ledger.events.clear();
  state.ledger.predicted_ns = state.ledger.one_stream_ns = 0;
  state.ledger.event_ids = state.ledger.reuse_events = 0;
  state.ledger.reuse_bytes = 0;
  state.ledger.reuse_ns = 0;
  const ConfigText all_options = scheduling_options(state, options);
  const std::string who = "scheduler of plug-in " + scheduler.manifest->name;
  std::set<std::pair<uint32_t, uint32_t>> streams;
  const bool costs_known = wants_schedule(scheduler.table->schedulers[scheduler.index]);
  bool whole = true;  // there was a schedule of these very tasks
  for (uint32_t region : task_regions(g)) {
    const std::vector<uint32_t> nodes = nodes_of(state, region, before[region].tasks);
    const std::vector<ScheduledTask>& last = before[region].tasks;
    const bool same = std::equal(nodes.begin(), nodes.end(), last.begin(), last.end(),
                                 [](uint32_t node, const ScheduledTask& t) { return node == t.node; });
    whole = whole && same;
    std::vector<std::vector<uint32_t>> after = dependencies(state, nodes);
    std::vector<regie_schedule_task> tasks;
    // Where the run has to look at what tasks have made, the host waits for streams as it goes.
    const bool late =
        std::any_of(nodes.begin(), nodes.end(), [&](uint32_t n) { return state.is_late_node(n); });
    std::vector<regie_schedule_device> devices;
    for (const TargetDevice& d : state.target.devices)
      devices.push_back({str(d.name), late || state.one_stream ? 1 : device_limit(d, "streams"),
                         device_limit(d, "events")});
    for (size_t i = 0; i < nodes.size(); ++i) {
      regie_schedule_task t{};
      t.node = nodes[i];
      t.device = state.target.engines[g.node(nodes[i]).engine].device;
      t.after_count = static_cast<uint32_t>(after[i].size());
      t.after = after[i].data();
      if (same && costs_known) {
        t.cost_ns = last[i].cost_ns;
      } else {
        REGIE_ASSIGN(t.cost_ns, task_cost(state, nodes[i]));
      }
      tasks.push_back(t);
    }
    ScheduleProblem p{&state, region, &nodes, &after, std::vector<uint32_t>(nodes.size(), REGIE_NONE),
                      {},     {},     false,  {},     {}};
    for (uint32_t n : nodes) {
      REGIE_ASSIGN(const bool idle, runs_nothing(state, n));
      p.idle.push_back(idle);
    }
    regie_schedule_problem problem{};
    problem.struct_size = sizeof(problem);
    problem.task_count = static_cast<uint32_t>(tasks.size());
    problem.device_count = static_cast<uint32_t>(devices.size());
    problem.graph = &g.view();
    problem.tasks = tasks.data();
    problem.devices = devices.data();
    problem.issue = issue;
    problem.event = event;
    problem.state = &p;
    const SharingCall sharing(problem);
    REGIE_TRY(call_plugin(who, [&] {
      return scheduler.table->schedule(scheduler.index, host_table(), all_options.get(), &problem);
    }));
    if (p.issued.size() != nodes.size())
      return bad_plugin("the " + who + " issued " + std::to_string(p.issued.size()) + " of " +
                        std::to_string(nodes.size()) + " tasks");
    for (auto& [from, to, reason] : p.events) {
      if (p.position[from] >= p.position[to])
        return bad_plugin("the scheduler lets a task wait for one that is issued later");
      p.issued[p.position[to]].waits.push_back(p.position[from]);
      state.ledger.events.push_back(g.describe_node(nodes[from]) + " -> " + g.describe_node(nodes[to]) +
                                    ": " + reason);
    }
    for (ScheduledTask& t : p.issued) std::sort(t.waits.begin(), t.waits.end());
    REGIE_TRY(check_schedule(p, who));
    for (const ScheduledTask& t : p.issued) {
      g.set_stream(t.node, t.stream);
      streams.emplace(state.target.engines[g.node(t.node).engine].device, t.stream);
    }
    state.schedule[region].tasks = std::move(p.issued);
  }
  state.ledger.streams = static_cast<uint32_t>(streams.size());
  number_steps(state);
  state.schedule_before.clear();
  if (whole && state.several_streams()) state.schedule_before = std::move(before);
  return {};
}

}  // namespace regie
