#include "events.h"

#include <algorithm>
#include <map>

namespace streams {

namespace {

// How many tasks of each stream have ended before a task starts, by what has been said so far.
class Clocks {
 public:
  Clocks(const Network& network, const Schedule& schedule)
      : n_(network), line_(network.tasks.size()), ordinal_(network.tasks.size(), 0) {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids;
    for (uint32_t t : schedule.order)
      line_[t] = ids.try_emplace({n_.tasks[t].device, schedule.stream[t]}, static_cast<uint32_t>(ids.size()))
                     .first->second;
    width_ = ids.size();
    of_line_.resize(width_ * width_);
    of_task_.resize(n_.tasks.size() * width_);
    host_.resize(width_);
    count_.resize(width_);
  }

  // Tasks are begun and ended in the order in which they are issued.
  void begin(uint32_t t) {
    join(&of_line_[line_[t] * width_], host_.data());
    if (n_.tasks[t].barrier) join(&of_line_[line_[t] * width_], count_.data());
  }
  bool knows(uint32_t t, uint32_t before) const {
    return of_line_[line_[t] * width_ + line_[before]] >= ordinal_[before];
  }
  void wait(uint32_t t, uint32_t before) { join(&of_line_[line_[t] * width_], &of_task_[before * width_]); }
  void end(uint32_t t) {
    uint32_t* clock = &of_line_[line_[t] * width_];
    ordinal_[t] = clock[line_[t]] = ++count_[line_[t]];
    std::copy(clock, clock + width_, &of_task_[t * width_]);
    if (n_.tasks[t].barrier) host_.assign(clock, clock + width_);
  }
  bool same_line(uint32_t a, uint32_t b) const { return line_[a] == line_[b]; }
  // `a` is `b`, or has ended before it starts; both have ended.
  bool before(uint32_t a, uint32_t b) const { return of_task_[b * width_ + line_[a]] >= ordinal_[a]; }

 private:
  void join(uint32_t* into, const uint32_t* from) const {
    for (size_t i = 0; i < width_; ++i) into[i] = std::max(into[i], from[i]);
  }
  const Network& n_;
  std::vector<uint32_t> line_, ordinal_;  // by task: its stream among all, its place there from 1
  size_t width_ = 0;
  std::vector<uint32_t> of_line_, of_task_, host_, count_;
};

std::vector<uint32_t> places(const Schedule& s) {
  std::vector<uint32_t> place(s.order.size());
  for (uint32_t k = 0; k < s.order.size(); ++k) place[s.order[k]] = k;
  return place;
}

}  // namespace

std::vector<Event> fewest_events(const Network& network, const Schedule& schedule) {
  Clocks clocks(network, schedule);
  const std::vector<uint32_t> place = places(schedule);
  std::vector<Event> events;
  for (uint32_t t : schedule.order) {
    clocks.begin(t);
    // The last issued first: a later one may have waited for an earlier one, never the other way round.
    std::vector<uint32_t> after = network.tasks[t].after;
    std::sort(after.begin(), after.end(), [&](uint32_t a, uint32_t b) { return place[a] > place[b]; });
    for (uint32_t a : after) {
      if (clocks.knows(t, a)) continue;
      events.push_back({a, t});
      clocks.wait(t, a);
    }
    clocks.end(t);
  }
  return events;
}

std::vector<Event> all_events(const Network& network, const Schedule& schedule) {
  std::vector<Event> events;
  for (uint32_t t : schedule.order) {
    if (network.tasks[t].barrier) continue;
    for (uint32_t a : network.tasks[t].after)
      if (!network.tasks[a].barrier &&
          (network.tasks[a].device != network.tasks[t].device || schedule.stream[a] != schedule.stream[t]))
        events.push_back({a, t});
  }
  return events;
}

std::vector<uint32_t> event_ids(const Network& network, const Schedule& schedule,
                                const std::vector<Event>& events) {
  Clocks clocks(network, schedule);
  std::vector<std::vector<uint32_t>> waits(network.tasks.size()), waited_by(network.tasks.size());
  for (const Event& e : events) {
    waits[e.to].push_back(e.from);
    waited_by[e.from].push_back(e.to);
  }
  for (uint32_t t : schedule.order) {
    clocks.begin(t);
    for (uint32_t a : waits[t]) clocks.wait(t, a);
    clocks.end(t);
  }
  std::vector<std::vector<uint32_t>> last(network.devices.size());  // by device and flag: who signals it last
  std::vector<uint32_t> flag(network.tasks.size(), 0);
  for (uint32_t t : schedule.order) {
    if (waited_by[t].empty()) continue;
    std::vector<uint32_t>& flags = last[network.tasks[t].device];
    const auto free = std::find_if(flags.begin(), flags.end(), [&](uint32_t before) {
      return std::all_of(waited_by[before].begin(), waited_by[before].end(),
                         [&](uint32_t w) { return clocks.before(w, t); });
    });
    flag[t] = static_cast<uint32_t>(free - flags.begin());
    if (free == flags.end())
      flags.push_back(t);
    else
      *free = t;
  }
  std::vector<uint32_t> ids;
  for (const Event& e : events) ids.push_back(flag[e.from]);
  return ids;
}

}  // namespace streams
