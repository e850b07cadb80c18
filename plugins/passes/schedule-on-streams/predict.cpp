#include "predict.h"

#include <algorithm>
#include <limits>
#include <map>

namespace streams {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Prediction {
 public:
  Prediction(const Network& network, const Schedule& schedule, const std::vector<Event>& events)
      : n_(network),
        s_(schedule),
        waits_(network.tasks.size()),
        signals_(network.tasks.size(), false),
        issued_(network.tasks.size(), kNever),
        ended_(network.tasks.size(), kNever),
        launched_(network.devices.size(), false) {
    for (const Event& e : events) {
      waits_[e.to].push_back(e.from);
      signals_[e.from] = true;
    }
    for (const Unit& u : n_.units) free_.emplace_back(u.at_once, 0.0);
  }

  double run() {
    for (uint32_t k = 0; k < s_.order.size(); ++k) hand_over(k);
    while (step()) {
    }
    double end = host_;
    for (uint32_t t : s_.order) end = std::max(end, ended_[t] + n_.devices[n_.tasks[t].device].wait_ns);
    return end;
  }

 private:
  struct Line {
    std::vector<uint32_t> queue;
    size_t next = 0;
    double free = 0;
    bool used = false;
  };

  void hand_over(uint32_t place) {
    const uint32_t t = s_.order[place];
    const Task& task = n_.tasks[t];
    const Device& d = n_.devices[task.device];
    if (task.barrier) {
      // For those before the last barrier that one has waited.
      for (; waited_for_ < place; ++waited_for_) host_wait(s_.order[waited_for_]);
    } else {
      for (uint32_t w : waits_[t])
        if (d.host || n_.tasks[w].device != task.device) host_wait(w);
    }
    if (d.host || task.barrier) {
      host_ += task.busy_ns + task.tail_ns;
      ended_[t] = host_;
      return;
    }
    if (!launched_[task.device]) host_ += d.launch_ns;
    launched_[task.device] = true;
    host_ += d.issue_ns;
    for (uint32_t w : waits_[t]) host_ += n_.tasks[w].device == task.device ? d.event_issue_ns : 0;
    issued_[t] = host_;
    if (signals_[t]) host_ += d.event_issue_ns;
    lines_[{task.device, s_.stream[t]}].queue.push_back(t);
  }

  void host_wait(uint32_t t) {
    while (ended_[t] == kNever && step()) {
    }
    const Device& d = n_.devices[n_.tasks[t].device];
    if (!d.host && !n_.tasks[t].barrier && ended_[t] != kNever)
      host_ = std::max(host_, ended_[t] + d.wait_ns);
    std::fill(launched_.begin(), launched_.end(), 0);
  }

  // Starts the task that can start first, of those that have been handed over.
  bool step() {
    Line* best = nullptr;
    double best_start = kNever, best_ready = kNever;
    for (auto& [key, line] : lines_) {
      if (line.next == line.queue.size()) continue;
      const uint32_t t = line.queue[line.next];
      const Device& d = n_.devices[n_.tasks[t].device];
      double ready = std::max(issued_[t], line.used ? line.free + d.gap_ns : 0.0);
      for (uint32_t w : waits_[t])
        if (n_.tasks[w].device == n_.tasks[t].device) ready = std::max(ready, ended_[w] + d.event_ns);
      if (ready == kNever) continue;
      const std::vector<double>& units = free_[n_.tasks[t].unit];
      const double start = std::max(ready, *std::min_element(units.begin(), units.end()));
      if (start < best_start || (start == best_start && ready < best_ready)) {
        best = &line;
        best_start = start;
        best_ready = ready;
      }
    }
    if (!best) return false;
    const uint32_t t = best->queue[best->next++];
    std::vector<double>& units = free_[n_.tasks[t].unit];
    *std::min_element(units.begin(), units.end()) = best_start + n_.tasks[t].busy_ns;
    best->used = true;
    best->free = ended_[t] = best_start + n_.tasks[t].busy_ns + n_.tasks[t].tail_ns;
    return true;
  }

  const Network& n_;
  const Schedule& s_;
  std::vector<std::vector<uint32_t>> waits_;
  std::vector<uint8_t> signals_;
  std::vector<double> issued_, ended_;
  std::vector<uint8_t> launched_;
  std::vector<std::vector<double>> free_;  // by unit: when each of what it has is free
  std::map<std::pair<uint32_t, uint32_t>, Line> lines_;
  double host_ = 0;
  uint32_t waited_for_ = 0;  // so many tasks of the order, at a barrier
};

}  // namespace

double predict(const Network& network, const Schedule& schedule, const std::vector<Event>& events) {
  return Prediction(network, schedule, events).run();
}

}  // namespace streams
