#include "model/plan_order.h"

#include <algorithm>

namespace regie {

Order::Order(const Model& model) : m_(model), runs_(1) {
  for (const ModelProgram& p : m_.programs)
    for (const ModelTask& t : p.tasks)
      stream_ids_.try_emplace({t.device, t.stream}, static_cast<uint32_t>(stream_ids_.size()));
  next_ordinal_.resize(stream_ids_.size());
}

EventId Order::add(uint32_t run, uint32_t task, uint32_t stream, const std::vector<uint32_t>& clock) {
  Event e;
  e.run = run;
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
    uint32_t run;
    bool again;                       // a loop inside is walked once: it, or one around it, has been before
    size_t next_task = 0, inner = 0;  // inner: how many branches or iterations of the task at next_task began
    EventId owner = 0;                // that task
    Clock host = {};                  // what the host knows to have ended
    std::vector<EventId> last = {};   // by stream: the last event, or REGIE_NONE
    std::vector<EventId> events = {};  // by task
  };
  std::vector<Frame> stack;
  stack.push_back({0, false});
  stack.back().host = Clock(width);
  stack.back().last.assign(width, REGIE_NONE);
  auto inner_runs = [](const Frame& frame, const ModelTask& task) {
    return task.kind == TaskKind::kIf ? task.programs.size() : frame.again ? size_t{1} : size_t{2};
  };
  Clock clock(width);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const std::vector<ModelTask>& tasks = m_.programs[runs_[frame.run].program].tasks;
    if (frame.next_task == tasks.size()) {
      if (stack.size() == 1) return {};
      const EventId done = add(frame.run, REGIE_NONE, REGIE_NONE, next_ordinal_);
      stack.pop_back();
      const Frame& outer = stack.back();
      const ModelTask& t = m_.programs[runs_[outer.run].program].tasks[outer.next_task];
      REGIE_TRY(f(t.kind == TaskKind::kIf ? Visit::kBranchEnd : Visit::kTurnEnd, done, t, outer.inner - 1));
      continue;
    }
    const ModelTask& task = tasks[frame.next_task];
    const bool nests = task.kind == TaskKind::kIf || task.kind == TaskKind::kLoop;
    if (nests && frame.inner == inner_runs(frame, task)) {
      if (task.kind == TaskKind::kIf) REGIE_TRY(f(Visit::kIfEnd, frame.owner, task, 0));
      frame.host = next_ordinal_;
      frame.inner = 0;
      ++frame.next_task;
      continue;
    }
    if (frame.inner == 0) {
      const uint32_t stream = stream_ids_.at({task.device, task.stream});
      clock = frame.host;
      if (frame.last[stream] != REGIE_NONE) join(&clock, frame.last[stream]);
      for (uint32_t w : task.waits) join(&clock, frame.events[w]);
      if (nests) clock = next_ordinal_;
      const EventId who = add(frame.run, static_cast<uint32_t>(frame.next_task), stream, clock);
      frame.last[stream] = who;
      frame.events.push_back(who);
      if (!nests) {
        REGIE_TRY(f(Visit::kTask, who, task, 0));
        ++frame.next_task;
        continue;
      }
      frame.owner = who;
      REGIE_TRY(f(task.kind == TaskKind::kIf ? Visit::kIfBegin : Visit::kLoopBegin, who, task, 0));
    }
    const bool loop = task.kind == TaskKind::kLoop;
    if (loop) REGIE_TRY(f(Visit::kTurnBegin, frame.owner, task, frame.inner));
    Frame inside{static_cast<uint32_t>(runs_.size()), frame.again || (loop && frame.inner > 0)};
    inside.host = next_ordinal_;
    inside.last.assign(width, REGIE_NONE);
    runs_.push_back(
        {task.programs[loop ? 0 : frame.inner], frame.run, frame.owner, runs_[frame.run].depth + 1, loop});
    ++frame.inner;
    stack.push_back(std::move(inside));
  }
  return {};
}

EventId Order::end() { return add(0, REGIE_NONE, REGIE_NONE, next_ordinal_); }

bool Order::is_ancestor(uint32_t ancestor, uint32_t run) const {
  while (runs_[run].depth > runs_[ancestor].depth) run = runs_[run].parent;
  return run == ancestor;
}

EventId Order::lift(EventId a, uint32_t run) const {
  while (!is_ancestor(events_[a].run, run)) a = runs_[events_[a].run].owner;
  return a;
}

bool Order::before(EventId a, EventId b) const {
  if (alternatives(a, b)) return true;  // never both
  if (in_turns(a, b)) return a < b;     // the host waits between two iterations
  const EventId lifted = lift(a, events_[b].run);
  if (lifted == b) return a != b;  // b is the If or loop that a is in: its end comes after
  const Event& e = events_[lifted];
  if (e.stream == REGIE_NONE) return lifted < b;  // the host's own steps are in order
  return clocks_[events_[b].clock + e.stream] > e.ordinal;
}

bool Order::visible(EventId a, EventId b) const { return is_ancestor(events_[a].run, events_[b].run); }

bool Order::fork(EventId a, EventId b, bool of_loop) const {
  uint32_t p = events_[a].run, q = events_[b].run;
  while (p != q) {
    const uint32_t up_p = runs_[p].parent, up_q = runs_[q].parent;
    if (runs_[p].depth == runs_[q].depth) {
      if (up_p == up_q && runs_[p].owner == runs_[q].owner) return runs_[p].of_loop == of_loop;
      p = up_p;
      q = up_q;
    } else if (runs_[p].depth > runs_[q].depth) {
      p = up_p;
    } else {
      q = up_q;
    }
  }
  return false;
}

bool Order::alternatives(EventId a, EventId b) const { return fork(a, b, false); }

bool Order::in_turns(EventId a, EventId b) const { return fork(a, b, true); }

bool Order::in_loop(EventId a, EventId b) const {
  uint32_t run = events_[a].run;
  while (runs_[run].depth > 0 && !is_ancestor(runs_[run].parent, events_[b].run)) run = runs_[run].parent;
  return runs_[run].of_loop;
}

bool Order::encloses(EventId a, EventId b) const {
  for (uint32_t p = events_[b].run; runs_[p].depth > 0; p = runs_[p].parent)
    if (runs_[p].owner == a) return true;
  return false;
}

bool Order::same_line(EventId a, EventId b) const {
  return events_[a].stream == events_[b].stream && events_[a].run == events_[b].run;
}

std::string Order::name(EventId e) const {
  const Event& event = events_[e];
  const uint32_t at = runs_[event.run].program;
  const std::string program = at ? " of program " + std::to_string(at) : "";
  if (event.task == REGIE_NONE) return at ? "the end" + program : "the end of the run";
  const ModelTask& t = m_.programs[at].tasks[event.task];
  return "task " + std::to_string(event.task) + program + (t.name.empty() ? "" : " (" + t.name + ")");
}

}  // namespace regie
