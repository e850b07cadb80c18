#include "lay.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace streams {

namespace {

constexpr size_t kLooks = 48;  // tasks that are compared at once

class Layer {
 public:
  Layer(const Network& network, uint32_t most, Order order)
      : n_(network), order_(order), level_(network.tasks.size()), ended_(network.tasks.size(), 0) {
    made_.stream.resize(n_.tasks.size());
    for (const Device& d : n_.devices) lines_.emplace_back(std::max(1u, std::min(most, d.streams)));
    for (const Unit& u : n_.units) free_.emplace_back(u.at_once, 0.0);
    next_.resize(n_.tasks.size());
    missing_.resize(n_.tasks.size());
    for (uint32_t t = 0; t < n_.tasks.size(); ++t) {
      missing_[t] = n_.tasks[t].after.size();
      for (uint32_t a : n_.tasks[t].after) next_[a].push_back(t);
    }
    for (uint32_t t = static_cast<uint32_t>(n_.tasks.size()); t-- > 0;) {
      for (uint32_t s : next_[t]) level_[t] = std::max(level_[t], level_[s]);
      level_[t] += n_.tasks[t].busy_ns + n_.tasks[t].tail_ns;
    }
  }

  Schedule run() {
    // A barrier stays where it is.
    for (uint32_t t = 0; t < n_.tasks.size(); ++t) {
      if (n_.tasks[t].barrier || order_ == Order::kGiven) {
        lay_ready();
        take(t, best(t));
        continue;
      }
      if (missing_[t] == 0) ready_.insert(rank(t));
      end_ = t + 1;
    }
    lay_ready();
    renumber();
    return std::move(made_);
  }

 private:
  struct Line {
    double free = 0;
    uint32_t last = REGIE_NONE;
  };
  struct Choice {
    double start = std::numeric_limits<double>::infinity();
    uint32_t events = 0;
    bool goes_on = false;  // behind one that it needs
    uint32_t stream = 0;
  };
  using Rank = std::pair<double, uint32_t>;  // the longest way to the end first

  Rank rank(uint32_t t) const { return {-level_[t], t}; }

  // Issues all that are ready, and what becomes ready before `end_`.
  void lay_ready() {
    while (!ready_.empty()) {
      Choice chosen;
      uint32_t task = REGIE_NONE;
      bool waits = false;
      size_t looks = 0;
      for (const auto& [level, t] : ready_) {
        if (++looks > kLooks) break;
        const Choice c = best(t);
        const bool host = order_ == Order::kHostLast && n_.devices[n_.tasks[t].device].host;
        if (task == REGIE_NONE || std::tie(host, c.start) < std::tie(waits, chosen.start)) {
          chosen = c;
          task = t;
          waits = host;
        }
      }
      ready_.erase(rank(task));
      take(task, chosen);
    }
  }

  Choice best(uint32_t t) const {
    const Task& task = n_.tasks[t];
    const Device& d = n_.devices[task.device];
    const std::vector<double>& units = free_[task.unit];
    const double unit = *std::min_element(units.begin(), units.end());
    Choice found;
    bool any = false;
    for (uint32_t s = 0; s < lines_[task.device].size(); ++s) {
      const Line& line = lines_[task.device][s];
      Choice c;
      c.stream = s;
      double ready = line.last == REGIE_NONE ? 0 : line.free + d.gap_ns;
      double host = host_;
      for (uint32_t a : task.after) {
        const bool here = n_.tasks[a].device == task.device;
        if (here && made_.stream[a] == s) {
          c.goes_on |= a == line.last;
          continue;
        }
        ++c.events;
        if (!here || d.host)
          host = std::max(host, ended_[a] + n_.devices[n_.tasks[a].device].wait_ns);
        else
          ready = std::max(ready, ended_[a] + d.event_ns);
      }
      host += d.issue_ns + 2 * d.event_issue_ns * c.events;
      c.start = std::max({ready, host, unit});
      if (task.barrier) c.start = std::max(c.start, latest_);
      const auto key = [](const Choice& x) { return std::tuple(x.start, !x.goes_on, x.events, x.stream); };
      if (!any || key(c) < key(found)) found = c;
      any = true;
      if (line.last == REGIE_NONE) break;  // of streams that nobody has used yet one is as good as another
    }
    return found;
  }

  void take(uint32_t t, const Choice& c) {
    const Task& task = n_.tasks[t];
    const Device& d = n_.devices[task.device];
    std::vector<double>& units = free_[task.unit];
    *std::min_element(units.begin(), units.end()) = c.start + task.busy_ns;
    ended_[t] = c.start + task.busy_ns + task.tail_ns;
    latest_ = std::max(latest_, ended_[t]);
    if (d.host || task.barrier)
      host_ = ended_[t];
    else
      host_ += d.issue_ns + 2 * d.event_issue_ns * c.events;
    lines_[task.device][c.stream] = {ended_[t], t};
    made_.stream[t] = c.stream;
    made_.order.push_back(t);
    for (uint32_t s : next_[t])
      if (--missing_[s] == 0 && s < end_) ready_.insert(rank(s));
  }

  void renumber() {
    std::vector<std::vector<uint32_t>> number(n_.devices.size());
    for (uint32_t t : made_.order) {
      std::vector<uint32_t>& of = number[n_.tasks[t].device];
      const auto at = std::find(of.begin(), of.end(), made_.stream[t]);
      const auto index = static_cast<uint32_t>(at - of.begin());
      if (at == of.end()) of.push_back(made_.stream[t]);
      made_.stream[t] = index;
    }
  }

  const Network& n_;
  const Order order_;
  std::vector<std::vector<uint32_t>> next_;
  std::vector<size_t> missing_;
  std::vector<double> level_, ended_;
  std::vector<std::vector<Line>> lines_;   // by device
  std::vector<std::vector<double>> free_;  // by unit
  std::set<Rank> ready_;
  uint32_t end_ = 0;  // behind those that may be chosen from, up to the next barrier
  double host_ = 0, latest_ = 0;
  Schedule made_;
};

}  // namespace

Schedule one_stream(const Network& network) {
  Schedule s;
  s.stream.assign(network.tasks.size(), 0);
  for (uint32_t t = 0; t < network.tasks.size(); ++t) s.order.push_back(t);
  return s;
}

Schedule lay(const Network& network, uint32_t most, Order order) { return Layer(network, most, order).run(); }

}  // namespace streams
