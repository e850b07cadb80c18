// Random tasks on devices with several streams, and what a schedule of them orders, as reachability: what the
// scheduler for streams is compared with.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule-on-streams/network.h"

namespace regie::test {

using streams::Event;
using streams::Network;
using streams::Schedule;
using Matrix = std::vector<std::vector<bool>>;

// A random network of one or two devices; each task needs some of those before it.
inline Network random_network(std::mt19937_64& random, uint32_t count, uint32_t devices, uint32_t odds) {
  Network n;
  for (uint32_t d = 0; d < devices; ++d) {
    streams::Device device;
    device.name = "dev" + std::to_string(d);
    device.streams = 4;
    device.gap_ns = 100;
    device.event_ns = 500;
    device.issue_ns = static_cast<double>(random() % 2) * 300;
    device.event_issue_ns = device.issue_ns / 2;
    n.devices.push_back(device);
    n.units.push_back({1});
    n.units.push_back({2});
  }
  for (uint32_t t = 0; t < count; ++t) {
    streams::Task task;
    task.device = static_cast<uint32_t>(random() % devices);
    task.unit = 2 * task.device + static_cast<uint32_t>(random() % 2);
    task.busy_ns = 500 + static_cast<double>(random() % 8000);
    task.tail_ns = 500;
    for (uint32_t a = 0; a < t; ++a)
      if (random() % odds == 0) task.after.push_back(a);
    n.tasks.push_back(task);
  }
  return n;
}

// Some valid order, each task on some stream.
inline Schedule random_schedule(std::mt19937_64& random, const Network& n, uint32_t most) {
  Schedule s;
  s.stream.resize(n.tasks.size());
  std::set<uint32_t> left, done;
  for (uint32_t t = 0; t < n.tasks.size(); ++t) left.insert(t);
  while (!left.empty()) {
    std::vector<uint32_t> ready;
    for (uint32_t t : left)
      if (std::all_of(n.tasks[t].after.begin(), n.tasks[t].after.end(),
                      [&](uint32_t a) { return done.count(a); }))
        ready.push_back(t);
    const uint32_t t = ready[random() % ready.size()];
    s.order.push_back(t);
    s.stream[t] = static_cast<uint32_t>(random() % most);
    left.erase(t);
    done.insert(t);
  }
  return s;
}

inline bool one_line(const Network& n, const Schedule& s, uint32_t a, uint32_t b) {
  return n.tasks[a].device == n.tasks[b].device && s.stream[a] == s.stream[b];
}

// before[a][b]: a has ended before b starts, by the streams' orders and these pairs.
inline Matrix reach(const Network& n, const Schedule& s,
                    const std::vector<std::pair<uint32_t, uint32_t>>& pairs) {
  const size_t count = n.tasks.size();
  Matrix before(count, std::vector<bool>(count, false));
  for (size_t j = 0; j < count; ++j) {
    const uint32_t b = s.order[j];
    auto add = [&](uint32_t a) {
      before[a][b] = true;
      for (size_t k = 0; k < count; ++k)
        if (before[k][a]) before[k][b] = true;
    };
    for (size_t i = 0; i < j; ++i)
      if (one_line(n, s, s.order[i], b)) add(s.order[i]);
    for (const auto& [from, to] : pairs)
      if (to == b) add(from);
  }
  return before;
}

inline std::vector<std::pair<uint32_t, uint32_t>> needs(const Network& n) {
  std::vector<std::pair<uint32_t, uint32_t>> all;
  for (uint32_t t = 0; t < n.tasks.size(); ++t)
    for (uint32_t a : n.tasks[t].after) all.emplace_back(a, t);
  return all;
}

inline std::vector<std::pair<uint32_t, uint32_t>> pairs_of(const std::vector<Event>& events) {
  std::vector<std::pair<uint32_t, uint32_t>> all;
  for (const Event& e : events) all.emplace_back(e.from, e.to);
  return all;
}

}  // namespace regie::test
