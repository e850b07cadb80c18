#include "clock.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regie::simulator {

namespace {

constexpr Ns kNever = std::numeric_limits<Ns>::max();
constexpr size_t kKeptSignals = 1 << 16;  // of a fence; who waits for an older one sees a later time
constexpr double kRest = 1e-6;            // of a nanosecond: what arithmetic may leave over

Ns round_up(double ns) { return ns <= kRest ? 0 : static_cast<Ns>(std::ceil(ns - kRest)); }

}  // namespace

Clock::Clock(const regie::sdk::Accelerator& p, bool sink)
    : issue_ns_(whole(p.issue_ns)),
      event_issue_ns_(whole(p.event_issue_ns)),
      sink_launch_ns_(whole(p.sink_launch_ns)),
      wait_ns_(whole(p.wait_ns)),
      gap_ns_(whole(p.gap_ns)),
      event_ns_(whole(p.event_ns)),
      depth_(static_cast<uint64_t>(p.queue_depth)),
      memory_rate_(p.memory_bytes_per_ns),
      sink_(sink),
      busy_(kEngineKinds) {
  for (auto& units : busy_) units.assign(1, false);
  busy_[kAicpus].assign(static_cast<size_t>(p.aicpu_count), false);
}

namespace {

template <class Things>
uint32_t take_slot(Things& things) {
  for (size_t i = 0; i < things.size(); ++i)
    if (things[i].gone) {
      things[i] = {};
      return static_cast<uint32_t>(i);
    }
  things.emplace_back();
  return static_cast<uint32_t>(things.size() - 1);
}

}  // namespace

uint32_t Clock::add_stream() { return take_slot(streams_); }

void Clock::remove_stream(uint32_t stream) {
  Stream& s = streams_[stream];
  while (!s.queue.empty() && step(kNever)) {
  }
  s.queue.clear();
  s.gone = true;
}

uint32_t Clock::add_fence() { return take_slot(fences_); }

void Clock::remove_fence(uint32_t fence) { fences_[fence].gone = true; }

Issue Clock::issue(uint32_t stream, Ns cost) {
  if (sink_) cost = first_ ? sink_launch_ns_ : 0;
  first_ = false;
  Issue made{host_, 0};
  host_ += cost;
  advance(host_);
  // A graph that lies on the device as a whole is no longer than its queue.
  while (!sink_ && streams_[stream].queue.size() >= depth_ && step(kNever)) host_ = std::max(host_, clock_);
  made.end = host_;
  return made;
}

void Clock::push(uint32_t stream, std::shared_ptr<Task> task, const Issue& issue) {
  streams_[stream].queue.push_back({Item::kTask, std::move(task), 0, 0, issue});
}
void Clock::push_signal(uint32_t stream, uint32_t fence, uint64_t value, const Issue& issue) {
  streams_[stream].queue.push_back({Item::kSignal, nullptr, fence, value, issue});
}
void Clock::push_wait(uint32_t stream, uint32_t fence, uint64_t value, const Issue& issue) {
  streams_[stream].queue.push_back({Item::kWait, nullptr, fence, value, issue});
}

Issue Clock::waited(Ns since, Ns until) {
  host_ = std::max(since, until + wait_ns_);
  advance(host_);
  first_ = true;
  return {since, host_};
}

Issue Clock::spend(Ns ns) {
  const Ns since = host_;
  host_ += ns;
  advance(host_);
  return {since, host_};
}

Issue Clock::wait_stream(uint32_t stream) {
  const Ns since = host_;
  settle();
  while (!streams_[stream].queue.empty() && step(kNever)) {
  }
  const Ns ended = streams_[stream].ended;
  return ended ? waited(since, ended) : Issue{since, since};
}

Issue Clock::wait_fence(uint32_t fence, uint64_t value) {
  const Ns since = host_;
  settle();
  while (!reached(fences_[fence], value) && step(kNever)) {
  }
  const Ns* at = reached(fences_[fence], value);
  return at ? waited(since, *at) : Issue{since, since};
}

const Ns* Clock::reached(const Fence& f, uint64_t value) {
  const auto at = f.reached.lower_bound(value);
  return at == f.reached.end() ? nullptr : &at->second;
}

void Clock::advance(Ns to) {
  while (step(to)) {
  }
  if (to > clock_) run_for(to - clock_);
}

Ns Clock::ready_at(const Stream& s) const {
  const Item& head = s.queue.front();
  const Ns ready = s.free ? s.free + gap_ns_ : 0;
  return std::max({ready, head.issue.end, s.event});
}

bool Clock::step(Ns limit) {
  settle();
  Ns next = kNever;
  for (const Stream& s : streams_)
    if (!s.running && !s.queue.empty()) {
      const Item& head = s.queue.front();
      // What is ready waits for its engine, and a wait for its fence: others' ends bring them on.
      const Ns at = head.kind == Item::kTask ? ready_at(s) : head.issue.end;
      if (at > clock_) next = std::min(next, at);
    }
  for (const Running& r : running_)
    next = std::min(next, r.phase == Running::kAtWork ? clock_ + round_up(r.left / r.speed) : r.until);
  if (next == kNever || next > limit) return false;
  run_for(next - clock_);
  settle();
  return true;
}

void Clock::run_for(Ns ns) {
  for (Running& r : running_)
    if (r.phase == Running::kAtWork) r.left -= static_cast<double>(ns) * r.speed;
  clock_ += ns;
}

void Clock::settle() {
  bool changed = true;
  while (changed) {
    changed = end_phases();
    for (uint32_t s = 0; s < streams_.size(); ++s) changed |= pop_events(s);
    if (!changed) changed = start_ready();
  }
}

// Signals and waits at the head of a stream take no time of its own.
bool Clock::pop_events(uint32_t index) {
  Stream& s = streams_[index];
  bool popped = false;
  while (!s.running && !s.queue.empty() && s.queue.front().kind != Item::kTask) {
    const Item& head = s.queue.front();
    if (head.issue.end > clock_) break;
    if (head.kind == Item::kSignal) {
      auto& values = fences_[head.fence].reached;
      if (values.empty() || values.rbegin()->first < head.value) values[head.value] = clock_;
      if (values.size() > kKeptSignals) values.erase(values.begin());
    } else {
      const Ns* at = reached(fences_[head.fence], head.value);
      if (!at) break;
      s.event = std::max(s.event, *at + event_ns_);
    }
    s.ended = std::max(s.ended, clock_);
    s.queue.pop_front();
    popped = true;
  }
  return popped;
}

// Of several that want one engine the one that was ready first gets it; of those, the one of the lower
// stream.
bool Clock::start_ready() {
  uint32_t best = 0;
  Ns best_ready = kNever;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const Stream& s = streams_[i];
    if (s.running || s.queue.empty() || s.queue.front().kind != Item::kTask) continue;
    const Ns ready = ready_at(s);
    if (ready > clock_ || ready >= best_ready) continue;
    const uint32_t engine = s.queue.front().task->engine;
    if (engine != kNoEngine &&
        std::find(busy_[engine].begin(), busy_[engine].end(), false) == busy_[engine].end())
      continue;
    best = i;
    best_ready = ready;
  }
  if (best_ready == kNever) return false;
  start(best);
  return true;
}

void Clock::start(uint32_t index) {
  Stream& s = streams_[index];
  Item& head = s.queue.front();
  Running r;
  r.stream = index;
  r.task = head.task;
  r.times.issue = head.issue.begin;
  r.times.issued = head.issue.end;
  r.times.free = s.free;
  r.times.ready = s.free ? s.free + gap_ns_ : 0;
  r.times.event = s.event;
  r.times.begin = clock_;
  if (r.task->engine != kNoEngine) {
    auto& units = busy_[r.task->engine];
    const auto unit = std::find(units.begin(), units.end(), false);
    r.times.unit = static_cast<uint32_t>(unit - units.begin());
    *unit = true;
  }
  r.need = r.task->begin();
  r.until = clock_ + r.need.before;
  r.left = std::max(0.0, r.need.run_ns);
  s.running = true;
  s.event = 0;
  running_.push_back(std::move(r));
}

bool Clock::end_phases() {
  bool changed = false, shares = false;
  for (size_t i = 0; i < running_.size();) {
    Running& r = running_[i];
    if (r.phase == Running::kBefore && r.until <= clock_) {
      r.phase = Running::kAtWork;
      r.times.run = clock_;
      changed = shares = true;
    }
    if (r.phase == Running::kAtWork && r.left <= kRest) {
      r.phase = Running::kAfter;
      r.times.ran = clock_;
      r.until = clock_ + r.need.after;
      if (r.task->engine != kNoEngine) busy_[r.task->engine][r.times.unit] = false;
      changed = shares = true;
    }
    if (r.phase == Running::kAfter && r.until <= clock_) {
      r.times.end = clock_;
      Stream& s = streams_[r.stream];
      s.running = false;
      s.free = s.ended = clock_;
      s.queue.pop_front();
      const std::shared_ptr<Task> task = std::move(r.task);
      const TaskTimes times = r.times;
      running_.erase(running_.begin() + static_cast<long>(i));
      task->ended(times);
      changed = true;
      continue;
    }
    ++i;
  }
  if (shares) share_memory();
  return changed;
}

// Max-min fair: who wants less than an equal share gets what it wants, the others share the rest. A task that
// gets a part of what it wants runs slower by that part.
void Clock::share_memory() {
  std::vector<std::pair<double, Running*>> wants;
  for (Running& r : running_) {
    r.speed = 1;
    if (r.phase == Running::kAtWork && r.need.far_bytes > 0 && r.need.run_ns > 0)
      wants.emplace_back(r.need.far_bytes / r.need.run_ns, &r);
  }
  std::stable_sort(wants.begin(), wants.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  double rate = memory_rate_;
  size_t others = wants.size();
  for (auto& [want, r] : wants) {
    const double given = std::min(want, rate / static_cast<double>(others--));
    r->speed = given / want;
    rate -= given;
  }
}

}  // namespace regie::simulator
