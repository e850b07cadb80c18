// The host's half of regie/c/reuse.h: what a schedule that was not chosen yet would take of memory. A
// question puts that schedule in place of the state's own, takes the steps of the memory driver, and puts
// back what was there.
#include <utility>

#include "ir/structural.h"
#include "passes/memory_buffers.h"
#include "passes/schedule_problem.h"

namespace regie {

namespace {

constexpr uint64_t kLittleEffort = 200;  // nodes of the planner's search

Status wrong(const std::string& why) {
  return bad_plugin("the scheduler asked for the memory plan of a schedule that " + why);
}

// Lives are told by pairs of buffers (apart.h), and somebody plans them.
bool can_tell(const CompileState& state) {
  return state.planner && task_regions(*state.graph).size() == 1 && state.graph->dims().symbol_count() == 0;
}

// The state's schedule and buffers, while it has others.
class Meanwhile {
 public:
  Meanwhile(CompileState& state, RegionSchedule schedule) : state_(state) {
    std::swap(schedule_, state.schedule);
    std::swap(buffers_, state.buffers);
    std::swap(buffer_of_value_, state.buffer_of_value);
    state.schedule.assign(state.graph->region_count(), {});
    schedule.end_step = schedule.tasks.size();
    for (uint64_t k = 0; k < schedule.tasks.size(); ++k) schedule.tasks[k].step = k;
    state.schedule[0] = std::move(schedule);
  }
  ~Meanwhile() {
    std::swap(schedule_, state_.schedule);
    std::swap(buffers_, state_.buffers);
    std::swap(buffer_of_value_, state_.buffer_of_value);
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  CompileState& state_;
  std::vector<RegionSchedule> schedule_;
  std::vector<PlannedBuffer> buffers_;
  std::vector<uint32_t> buffer_of_value_;
};

std::pair<uint32_t, uint32_t> key_of(const PlannedBuffer& b) { return {b.value, b.scratch_of}; }

Status find_reuse_buffers(const regie_schedule_problem& problem, ScheduleProblem& p) {
  CompileState& state = *p.state;
  p.reuse.known = true;
  if (!can_tell(state)) return {};
  REGIE_TRY(compile_kernels(state));
  RegionSchedule all;
  for (uint32_t node : *p.nodes) all.tasks.push_back({node, 0, {}, 0, 0});
  const Meanwhile meanwhile(state, std::move(all));
  REGIE_ASSIGN(const BufferLives lives, find_buffers(state));
  for (uint32_t b = 0; b < state.buffers.size(); ++b) {
    const PlannedBuffer& buffer = state.buffers[b];
    if (buffer.size == 0) continue;
    regie_reuse_buffer told{};
    told.value = buffer.value;
    told.space = buffer.space;
    told.alignment =
        std::max(buffer.alignment, state.target.devices[state.target.device_of(buffer.space)].alignment);
    told.size = (buffer.size + told.alignment - 1) / told.alignment * told.alignment;
    std::vector<uint32_t> touching;
    for (uint64_t step : lives.touched[b])
      if (step < problem.task_count)
        touching.push_back(static_cast<uint32_t>(step));
      else
        told.kept = 1;
    std::sort(touching.begin(), touching.end());
    touching.erase(std::unique(touching.begin(), touching.end()), touching.end());
    if (touching.empty()) continue;
    p.reuse.index_of.emplace(key_of(buffer), static_cast<uint32_t>(p.reuse.list.size()));
    p.reuse.list.push_back(told);
    p.reuse.touching.push_back(std::move(touching));
  }
  for (size_t b = 0; b < p.reuse.list.size(); ++b) {
    p.reuse.list[b].touch_count = static_cast<uint32_t>(p.reuse.touching[b].size());
    p.reuse.list[b].touching = p.reuse.touching[b].data();
  }
  return {};
}

Result<RegionSchedule> schedule_of(const regie_schedule_problem& problem, const ScheduleProblem& p,
                                   const regie_reuse_schedule& s) {
  const uint32_t count = problem.task_count;
  RegionSchedule made;
  std::vector<uint32_t> position(count, REGIE_NONE);
  for (uint32_t k = 0; k < count; ++k) {
    const regie_reuse_step& step = s.steps[k];
    if (step.task >= count || position[step.task] != REGIE_NONE)
      return wrong("issues a task that is not there, or one twice");
    for (uint32_t before : (*p.after)[step.task])
      if (position[before] == REGIE_NONE) return wrong("issues a task before one that it depends on");
    position[step.task] = k;
    made.tasks.push_back({(*p.nodes)[step.task], step.stream, {}, k, problem.tasks[step.task].cost_ns});
  }
  for (uint32_t e = 0; e < s.event_count; ++e) {
    const auto [from, to] = s.events[e];
    if (from >= count || to >= count || position[from] >= position[to])
      return wrong("lets a task wait for one that is not there, or is issued later");
    made.tasks[position[to]].waits.push_back(position[from]);
  }
  return made;
}

Status plan_of(const regie_schedule_problem& problem, ScheduleProblem& p, const regie_reuse_schedule& s,
               uint64_t* bytes, uint64_t* offsets) {
  CompileState& state = *p.state;
  if (!can_tell(state)) return wrong("nobody plans by pairs of buffers");
  if (!p.reuse.known) REGIE_TRY(find_reuse_buffers(problem, p));
  REGIE_ASSIGN(RegionSchedule schedule, schedule_of(problem, p, s));
  const Meanwhile meanwhile(state, std::move(schedule));
  REGIE_ASSIGN(const BufferLives lives, find_buffers(state));
  const auto apart = tighten_lives(state, lives.touched, lives.clocks);
  REGIE_ASSIGN(
      const std::vector<MemoryRecord> records,
      plan_spaces(state, *state.planner, state.planner_options, apart, s.thorough ? 0 : kLittleEffort));
  *bytes = 0;
  for (const MemoryRecord& r : records) *bytes += r.peak;
  if (!offsets) return {};
  for (const PlannedBuffer& b : state.buffers)
    if (const auto at = p.reuse.index_of.find(key_of(b)); at != p.reuse.index_of.end())
      offsets[at->second] = b.offset;
  return {};
}

uint64_t limit(const regie_schedule_problem* self) {
  const ScheduleProblem* p = given_problem(self);
  return p ? p->state->options.memory_limit : 0;
}

regie_status buffers(const regie_schedule_problem* self, const regie_reuse_buffer** list, uint32_t* count) {
  if (!list || !count) return fail_on_this_thread(wrong("has nowhere to put the answer"));
  *list = nullptr;
  *count = 0;
  ScheduleProblem* p = given_problem(self);
  if (!p) return REGIE_OK;  // of a problem that another host has made nothing is known
  if (!p->reuse.known)
    if (Status s = find_reuse_buffers(*self, *p); !s.ok()) return fail_on_this_thread(s);
  *list = p->reuse.list.data();
  *count = static_cast<uint32_t>(p->reuse.list.size());
  return REGIE_OK;
}

regie_status plan(const regie_schedule_problem* self, const regie_reuse_schedule* schedule, uint64_t* bytes,
                  uint64_t* offsets) {
  ScheduleProblem* p = given_problem(self);
  if (!p || !schedule || !bytes || schedule->struct_size < sizeof(regie_reuse_schedule) || !schedule->steps ||
      (schedule->event_count && !schedule->events))
    return fail_on_this_thread(wrong("is not one of the problem that it has been given"));
  return fail_on_this_thread(plan_of(*self, *p, *schedule, bytes, offsets));
}

regie_status chosen(const regie_schedule_problem* self, uint32_t events, uint64_t bytes, double ns) {
  const ScheduleProblem* p = given_problem(self);
  if (!p) return REGIE_OK;
  Ledger& ledger = p->state->ledger;
  ledger.reuse_events += events;
  ledger.reuse_bytes += bytes;
  ledger.reuse_ns += ns;
  return REGIE_OK;
}

}  // namespace

const regie_host_reuse kHostReuse = {sizeof(regie_host_reuse), 0, limit, buffers, plan, chosen};

}  // namespace regie
