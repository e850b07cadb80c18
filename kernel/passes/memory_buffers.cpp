// Which buffers there are, their sizes and the steps in which they live.
//
// A buffer lives from the first step that touches it to the first step from which on every stream that could
// touch its memory space is known to come after its last use. On one stream that is the next step; across
// streams it follows from the waits. So two streams share bytes only where the schedule orders them.
//
// That is more than is needed: two buffers may share bytes if each task that touches the one has ended before
// any that touches the other starts. So with several streams, where all tasks are in one region and all sizes
// are numbers, a buffer lives from the first to the last step that touches it, and those that time would let
// share bytes and the schedule does not are named to the planner (apart.h).
//
// What an iteration of a Loop reads of outside is read again by the next one: it lives to the Loop's end,
// whatever its last reader in the order of steps. What is carried and what is collected lives from before the
// first iteration on.
#include "passes/memory_buffers.h"

#include <algorithm>
#include <map>

#include "ir/structural.h"
#include "passes/late_symbols.h"
#include "passes/schedule_problem.h"
#include "regie/formats.hpp"

namespace regie {

namespace {

// The tasks of all regions on the line of steps, with what each stream knows of the others.
class Timeline {
 public:
  explicit Timeline(const CompileState& state) : state_(state), g_(*state.graph) {
    collect();
    propagate();
  }
  uint64_t steps() const { return steps_; }
  const StreamClocks& clocks() const { return clocks_; }
  // First step from which on all streams that touch `space` come after what happened at `step`.
  uint64_t released(uint64_t step, uint32_t space) const {
    uint32_t task = task_at_[step];
    if (task == REGIE_NONE)
      return step + 1;  // the host has waited for the region and copies before it goes on
    uint64_t upper = step + 1;
    for (size_t s = 0; s < streams_; ++s)
      if (touches_[s][space]) upper = std::max(upper, known_[task * streams_ + s]);
    return upper;
  }

 private:
  struct Task {
    uint64_t step;
    uint32_t stream;  // dense index
    uint32_t index;   // 1-based position on its stream
    bool control_flow;
    std::vector<uint32_t> waits;  // tasks
  };
  void collect();
  void propagate();
  uint32_t stream_of(const ScheduledTask& t) {
    uint32_t device = state_.target.engines[g_.node(t.node).engine].device;
    return stream_ids_.emplace(std::pair{device, t.stream}, static_cast<uint32_t>(stream_ids_.size()))
        .first->second;
  }

  const CompileState& state_;
  const Graph& g_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> stream_ids_;
  std::vector<Task> tasks_;        // by step
  std::vector<uint32_t> task_at_;  // by step; REGIE_NONE: a region's results are handed over
  std::map<uint64_t, std::vector<uint32_t>> handed_over_;  // by step: the tasks of that region
  std::vector<uint64_t> known_;  // task x stream: first step of that stream that comes after the task
  std::vector<std::vector<uint8_t>> touches_;  // stream x space
  StreamClocks clocks_;
  size_t streams_ = 0;
  uint64_t steps_ = 0;
};

void Timeline::collect() {
  std::vector<std::pair<uint64_t, std::pair<uint32_t, uint32_t>>> at;  // step, {region, position}
  for (uint32_t r : task_regions(g_)) {
    const RegionSchedule& s = state_.schedule[r];
    for (uint32_t i = 0; i < s.tasks.size(); ++i) at.push_back({s.tasks[i].step, {r, i}});
    steps_ = std::max(steps_, s.end_step + 1);
    for (const ScheduledTask& t : s.tasks) stream_of(t);
  }
  std::sort(at.begin(), at.end());
  task_at_.assign(steps_, REGIE_NONE);
  for (auto& [step, place] : at) {
    task_at_[step] = static_cast<uint32_t>(tasks_.size());
    const ScheduledTask& t = state_.schedule[place.first].tasks[place.second];
    Task task{step, stream_of(t), 0, is_control_flow(g_.node(t.node)), {}};
    for (uint32_t w : t.waits) task.waits.push_back(task_at_[state_.schedule[place.first].tasks[w].step]);
    handed_over_[state_.schedule[place.first].end_step].push_back(task_at_[step]);
    tasks_.push_back(std::move(task));
  }
  streams_ = stream_ids_.size();
  size_t spaces = state_.target.devices.size();
  touches_.assign(streams_, std::vector<uint8_t>(spaces, 0));
  std::vector<uint32_t> count(streams_, 0);
  for (auto& [step, place] : at) {
    Task& t = tasks_[task_at_[step]];
    t.index = ++count[t.stream];
    uint32_t node = state_.schedule[place.first].tasks[place.second].node;
    for (auto list : {g_.operands(node), g_.results(node)})
      for (uint32_t v : list)
        if (v != REGIE_NONE && g_.value(v).space < spaces) touches_[t.stream][g_.value(v).space] = 1;
    uint32_t own = g_.view().engines[g_.node(node).engine].space;
    touches_[t.stream][own] = 1;
  }
}

void Timeline::propagate() {
  // clock[s][r]: how many tasks of stream r stream s is known to come after; `host`: the same for what the
  // host issues from now on. The host waits for what an If waits for before its branches, and for a branch's
  // tasks at its end.
  using Clock = std::vector<uint32_t>;
  std::vector<Clock> clock(streams_, Clock(streams_, 0));
  Clock host(streams_, 0);
  std::vector<std::vector<uint32_t>> on_stream(streams_);  // tasks, in order
  known_.assign(tasks_.size() * streams_, steps_);
  clocks_.width = streams_;
  clocks_.ended.resize(tasks_.size() * streams_);
  for (const Task& t : tasks_) clocks_.stream.push_back(t.stream);
  auto join = [&](Clock& into, const uint32_t* from) {
    for (size_t r = 0; r < streams_; ++r) into[r] = std::max(into[r], from[r]);
  };
  auto learn = [&](size_t s, const uint32_t* from, uint64_t step) {
    for (size_t r = 0; r < streams_; ++r)
      for (; clock[s][r] < from[r]; ++clock[s][r]) known_[on_stream[r][clock[s][r]] * streams_ + s] = step;
  };
  for (uint64_t step = 0; step < steps_; ++step) {
    uint32_t index = task_at_[step];
    if (index == REGIE_NONE) {
      for (uint32_t t : handed_over_[step]) join(host, clocks_.of(t));
      continue;
    }
    Task& t = tasks_[index];
    learn(t.stream, host.data(), step);
    for (uint32_t w : t.waits) learn(t.stream, clocks_.of(w), step);
    if (t.control_flow) join(host, clock[t.stream].data());
    on_stream[t.stream].push_back(index);
    // Its own stream comes after it from the next step on.
    known_[index * streams_ + t.stream] = step + 1;
    clock[t.stream][t.stream] = t.index;
    std::copy(clock[t.stream].begin(), clock[t.stream].end(), clocks_.of(index));
  }
}

}  // namespace

bool value_is_output_storage(const Graph& g, uint32_t value) {
  const regie_value& v = g.value(value);
  if (v.kind != REGIE_VALUE_RESULT || v.alias_of != REGIE_NONE || v.space != 0) return false;
  if (g.node(v.owner).region != 0) return false;
  // It is made anew and larger while the Loop runs: the receiver gets a copy.
  if (is_loop(g.node(v.owner)) && is_late(g.dims(), v.type)) return false;
  return std::any_of(v.uses, v.uses + v.use_count,
                     [](const regie_use& u) { return u.node == REGIE_USE_REGION; });
}

namespace {

class Builder {
 public:
  explicit Builder(CompileState& state) : state_(state), g_(*state.graph), time_(state) {}

  const StreamClocks& clocks() const { return time_.clocks(); }
  // By buffer: the steps that touch it.
  std::vector<std::vector<uint64_t>> touched() && { return std::move(touched_); }

  Status build() {
    state_.buffers.clear();
    state_.buffer_of_value.assign(g_.value_count(), REGIE_NONE);
    for (uint32_t region : task_regions(g_)) {
      const RegionSchedule& s = state_.schedule[region];
      for (const ScheduledTask& t : s.tasks) REGIE_TRY(visit(t));
      for (uint32_t i = 0; i < g_.region(region).result_count; ++i)
        REGIE_TRY(touch(g_.region(region).results[i], s.end_step, region));
    }
    return {};
  }

 private:
  Status visit(const ScheduledTask& t) {
    const regie_node& n = g_.node(t.node);
    // What runs nothing touches nothing.
    REGIE_ASSIGN(const bool idle, runs_nothing(state_, t.node));
    if (idle) return {};
    for (uint32_t v : g_.operands(t.node))
      if (v != REGIE_NONE) REGIE_TRY(touch(v, t.step, n.region));
    for (uint32_t v : g_.results(t.node)) {
      if (v == REGIE_NONE) continue;
      if (!is_control_flow(n) || is_loop(n)) REGIE_TRY(touch(v, t.step, n.region));
      if (!is_control_flow(n)) continue;
      // Written where the first branch hands over, or any later one.
      for (uint32_t r = 0; r < n.region_count; ++r)
        REGIE_TRY(touch(v, state_.schedule[n.regions[r]].end_step, n.region));
    }
    // What a body begins with and nobody reads afterwards.
    if (is_loop(n)) {
      const regie_region& body = g_.region(n.regions[0]);
      for (uint32_t i = 0; i < first_capture(n) && i < body.arg_count; ++i) {
        const uint32_t argument = body.args[i];
        if (g_.value(argument).use_count == 0 || behind_argument(g_, argument) != argument) continue;
        REGIE_TRY(touch(argument, t.step, body.id));
        REGIE_TRY(touch(argument, state_.schedule[body.id].end_step, body.id));
      }
    }
    if (!is_control_flow(n) && !is_copy(n) && state_.kernels[t.node] &&
        state_.kernels[t.node]->scratch_bytes && !state_.is_late_node(t.node)) {
      PlannedBuffer b;
      b.scratch_of = t.node;
      b.space = g_.view().engines[n.engine].space;
      b.size = state_.kernels[t.node]->scratch_bytes;
      b.size_dim = static_cast<regie_dim>(b.size);
      b.lower = t.step;
      b.upper = time_.released(t.step, b.space);
      state_.buffers.push_back(b);
      touched_.push_back({t.step});
    }
    return {};
  }

  // `region`: of who touches it.
  Status touch(uint32_t value, uint64_t step, uint32_t region) {
    uint32_t root = state_.storage_of(value);
    const regie_value& v = g_.value(root);
    const bool placed = v.kind == REGIE_VALUE_RESULT || (v.kind == REGIE_VALUE_ARGUMENT && v.owner != 0);
    if (!placed || value_is_output_storage(g_, root)) return {};
    const uint64_t first = step;
    for (const uint32_t home = home_region(g_, root); region != home && region != 0;) {
      const regie_node& owner = g_.node(g_.region(region).parent);
      if (is_loop(owner)) step = std::max(step, state_.schedule[region].end_step);
      region = owner.region;
    }
    uint32_t& index = state_.buffer_of_value[root];
    if (index == REGIE_NONE) {
      index = static_cast<uint32_t>(state_.buffers.size());
      PlannedBuffer b;
      b.value = root;
      b.space = v.space;
      b.lower = first;
      REGIE_TRY(set_size(root, &b));
      state_.buffers.push_back(b);
      touched_.emplace_back();
    }
    touched_[index].push_back(step);
    PlannedBuffer& b = state_.buffers[index];
    b.lower = std::min(b.lower, first);
    b.upper = std::max(b.upper, time_.released(step, b.space));
    return {};
  }

  Status set_size(uint32_t value, PlannedBuffer* b) {
    const regie_type& t = g_.value(value).type;
    DimTable& dims = g_.dims();
    std::vector<regie_dim> laid;
    for (int32_t i = 0; i < t.rank; ++i) laid.push_back(sdk::laid_dim(t, i));
    regie_dim count = dims.product(laid);
    // Of strings, where each one's characters lie.
    const auto bits = t.elem == REGIE_STRING ? uint32_t{8 * sizeof(regie_str)} : sdk::laid_bits(t);
    if (bits == 0)
      return unsupported("values of type " + std::string(elem_name(t.elem)) + " cannot be planned",
                         g_.describe_value(value));
    b->size_dim = bits >= 8 ? dims.mul(count, bits / 8) : dims.op(REGIE_DIM_CEILDIV, count, 8 / bits);
    if (b->size_dim == REGIE_DIM_UNKNOWN)
      return unsupported("its size in bytes is more than 64 bits can hold", g_.describe_value(value));
    // No elements however often something is repeated: its dimensions are the run's all the same.
    for (int32_t i = 0; i < t.rank && !is_late(dims, b->size_dim); ++i)
      if (is_late(dims, t.dims[i])) b->size_dim = t.dims[i];
    b->late = is_late(dims, b->size_dim);
    if (b->late) return {};  // takes no room in the plan
    REGIE_ASSIGN(int64_t bytes, state_.reference_value(b->size_dim));
    b->size = static_cast<uint64_t>(bytes);
    return {};
  }

  CompileState& state_;
  const Graph& g_;
  Timeline time_;
  std::vector<std::vector<uint64_t>> touched_;
};

}  // namespace

Result<BufferLives> find_buffers(CompileState& state) {
  Builder builder(state);
  REGIE_TRY(builder.build());
  StreamClocks clocks = builder.clocks();
  return BufferLives{std::move(builder).touched(), std::move(clocks)};
}

}  // namespace regie
