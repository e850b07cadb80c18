#include "model/plan_order.h"

#include <algorithm>

namespace regie {

Order::Order(const Model& model) : m_(model), programs_(model.programs.size()) {
  for (const ModelProgram& p : m_.programs)
    for (const ModelTask& t : p.tasks)
      stream_ids_.try_emplace({t.device, t.stream}, static_cast<uint32_t>(stream_ids_.size()));
  next_ordinal_.resize(stream_ids_.size());
}

EventId Order::add(uint32_t program, uint32_t task, uint32_t stream, const std::vector<uint32_t>& clock) {
  Event e;
  e.program = program;
  e.task = task;
  e.stream = stream;
  e.ordinal = stream == REGIE_NONE ? 0 : next_ordinal_[stream]++;
  e.clock = clocks_.size();
  clocks_.insert(clocks_.end(), clock.begin(), clock.end());
  events_.push_back(e);
  return static_cast<EventId>(events_.size() - 1);
}

// What is known once `event` has ended.
void Order::join(std::vector<uint32_t>* into, EventId event) const {
  const Event& e = events_[event];
  for (size_t s = 0; s < into->size(); ++s) (*into)[s] = std::max((*into)[s], clocks_[e.clock + s]);
  if (e.stream != REGIE_NONE) (*into)[e.stream] = std::max((*into)[e.stream], e.ordinal + 1);
}

Status Order::walk(const Visitor& f) {
  const size_t width = stream_ids_.size();
  using Clock = std::vector<uint32_t>;
  struct Frame {
    uint32_t program;
    size_t next_task = 0, branch = 0;  // branch: of the If at next_task, 0 before the first
    EventId the_if = 0;
    Clock host;                   // what the host knows to have ended
    std::vector<EventId> last;    // by stream: the last event, or REGIE_NONE
    std::vector<EventId> events;  // by task
  };
  std::vector<Frame> stack;
  stack.push_back({0, 0, 0, 0, Clock(width), std::vector<EventId>(width, REGIE_NONE), {}});
  Clock clock(width);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const std::vector<ModelTask>& tasks = m_.programs[frame.program].tasks;
    if (frame.next_task == tasks.size()) {
      if (stack.size() == 1) return {};
      const EventId done = add(frame.program, REGIE_NONE, REGIE_NONE, next_ordinal_);
      stack.pop_back();
      Frame& outer = stack.back();
      const ModelTask& t = m_.programs[outer.program].tasks[outer.next_task];
      REGIE_TRY(f(Visit::kBranchEnd, done, t, outer.branch));
      ++outer.branch;
      continue;
    }
    const ModelTask& task = tasks[frame.next_task];
    if (task.kind == TaskKind::kIf && frame.branch > 0 && frame.branch == task.programs.size()) {
      REGIE_TRY(f(Visit::kIfEnd, frame.the_if, task, 0));
      frame.host = next_ordinal_;
      frame.branch = 0;
      ++frame.next_task;
      continue;
    }
    const uint32_t stream = stream_ids_.at({task.device, task.stream});
    if (task.kind != TaskKind::kIf || frame.branch == 0) {
      clock = frame.host;
      if (frame.last[stream] != REGIE_NONE) join(&clock, frame.last[stream]);
      for (uint32_t w : task.waits) join(&clock, frame.events[w]);
      if (task.kind == TaskKind::kIf) clock = next_ordinal_;
      const EventId who = add(frame.program, static_cast<uint32_t>(frame.next_task), stream, clock);
      frame.last[stream] = who;
      frame.events.push_back(who);
      if (task.kind != TaskKind::kIf) {
        REGIE_TRY(f(Visit::kTask, who, task, 0));
        ++frame.next_task;
        continue;
      }
      frame.the_if = who;
      REGIE_TRY(f(Visit::kIfBegin, who, task, 0));
    }
    Frame inner{
        task.programs[frame.branch], 0, 0, 0, next_ordinal_, std::vector<EventId>(width, REGIE_NONE), {}};
    programs_[inner.program] = {frame.program, frame.the_if, programs_[frame.program].depth + 1};
    stack.push_back(std::move(inner));
  }
  return {};
}

EventId Order::end() { return add(0, REGIE_NONE, REGIE_NONE, next_ordinal_); }

bool Order::is_ancestor(uint32_t ancestor, uint32_t program) const {
  while (programs_[program].depth > programs_[ancestor].depth) program = programs_[program].parent;
  return program == ancestor;
}

EventId Order::lift(EventId a, uint32_t program) const {
  while (!is_ancestor(events_[a].program, program)) a = programs_[events_[a].program].owner;
  return a;
}

bool Order::before(EventId a, EventId b) const {
  if (alternatives(a, b)) return true;  // never both
  const EventId lifted = lift(a, events_[b].program);
  if (lifted == b) return a != b;  // b is the If that a is in: its end comes after
  const Event& e = events_[lifted];
  if (e.stream == REGIE_NONE) return lifted < b;  // the host's own steps are in order
  return clocks_[events_[b].clock + e.stream] > e.ordinal;
}

bool Order::visible(EventId a, EventId b) const {
  return is_ancestor(events_[a].program, events_[b].program);
}

bool Order::alternatives(EventId a, EventId b) const {
  uint32_t p = events_[a].program, q = events_[b].program;
  while (p != q) {
    const uint32_t up_p = programs_[p].parent, up_q = programs_[q].parent;
    if (programs_[p].depth == programs_[q].depth) {
      if (up_p == up_q && programs_[p].owner == programs_[q].owner) return true;
      p = up_p;
      q = up_q;
    } else if (programs_[p].depth > programs_[q].depth) {
      p = up_p;
    } else {
      q = up_q;
    }
  }
  return false;
}

bool Order::encloses(EventId a, EventId b) const {
  for (uint32_t p = events_[b].program; programs_[p].depth > 0; p = programs_[p].parent)
    if (programs_[p].owner == a) return true;
  return false;
}

bool Order::same_line(EventId a, EventId b) const {
  return events_[a].stream == events_[b].stream && events_[a].program == events_[b].program;
}

std::string Order::name(EventId e) const {
  const Event& event = events_[e];
  const std::string program = event.program ? " of program " + std::to_string(event.program) : "";
  if (event.task == REGIE_NONE) return event.program ? "the end" + program : "the end of the run";
  const ModelTask& t = m_.programs[event.program].tasks[event.task];
  return "task " + std::to_string(event.task) + program + (t.name.empty() ? "" : " (" + t.name + ")");
}

}  // namespace regie
