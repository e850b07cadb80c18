#include "turns.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace streams {

namespace {

// By task: the one before it on its stream, or REGIE_NONE.
std::vector<uint32_t> predecessors(const Network& network, const Schedule& schedule) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> last;
  std::vector<uint32_t> made(network.tasks.size(), REGIE_NONE);
  for (uint32_t t : schedule.order) {
    const auto [at, fresh] = last.try_emplace({network.tasks[t].device, schedule.stream[t]}, t);
    if (!fresh) made[t] = std::exchange(at->second, t);
  }
  return made;
}

}  // namespace

Before::Before(const Network& network, const Schedule& schedule, const std::vector<Event>& events)
    : width_((network.tasks.size() + 63) / 64), rows_(network.tasks.size() * width_, 0) {
  const std::vector<uint32_t> previous = predecessors(network, schedule);
  std::vector<std::vector<uint32_t>> waits(network.tasks.size());
  for (const Event& e : events) waits[e.to].push_back(e.from);
  for (uint32_t t : schedule.order) {
    const auto add = [&](uint32_t a) {
      for (size_t w = 0; w < width_; ++w) rows_[t * width_ + w] |= rows_[a * width_ + w];
      rows_[t * width_ + a / 64] |= uint64_t{1} << (a % 64);
    };
    if (previous[t] != REGIE_NONE) add(previous[t]);
    for (uint32_t a : network.tasks[t].after) add(a);
    for (uint32_t a : waits[t]) add(a);
  }
}

Turns::Turns(const std::vector<Buffer>& buffers, const Before& before) : buffers_(buffers) {
  for (const Buffer& b : buffers) {
    std::vector<uint32_t>& first = first_.emplace_back();
    std::vector<uint32_t>& last = last_.emplace_back();
    for (uint32_t t : b.touching) {
      const auto any = [&](auto&& is) { return std::any_of(b.touching.begin(), b.touching.end(), is); };
      if (!any([&](uint32_t other) { return before(other, t); })) first.push_back(t);
      if (!any([&](uint32_t other) { return before(t, other); })) last.push_back(t);
    }
  }
}

bool Turns::ordered(const Before& before, uint32_t a, uint32_t b) const {
  if (buffers_[a].kept) return false;
  for (uint32_t x : last_[a])
    for (uint32_t y : first_[b])
      if (!before(x, y)) return false;
  return true;
}

bool Turns::possible(const Before& before, Turn turn) const {
  if (turn.first == turn.second || buffers_[turn.first].kept) return false;
  if (buffers_[turn.first].space != buffers_[turn.second].space) return false;
  bool all = true;
  for (uint32_t x : last_[turn.first])
    for (uint32_t y : first_[turn.second]) {
      if (x == y || before(y, x)) return false;
      all = all && before(x, y);
    }
  return !all;
}

void Turns::waits(Turn turn, std::vector<Event>* more) const {
  for (uint32_t x : last_[turn.first])
    for (uint32_t y : first_[turn.second]) more->push_back({x, y});
}

std::vector<uint32_t> Turns::stack(const Before& before, const Plan& plan) const {
  const auto count = static_cast<uint32_t>(buffers_.size());
  const auto end = [&](uint32_t b) { return plan.offsets[b] + buffers_[b].size; };
  std::map<uint32_t, uint64_t> top;  // by space
  for (uint32_t b = 0; b < count; ++b) {
    uint64_t& most = top[buffers_[b].space];
    most = std::max(most, end(b));
  }
  std::vector<uint8_t> in(count, 0);
  std::vector<uint32_t> found;
  const auto add = [&](uint32_t b) {
    if (!in[b]) found.push_back(b);
    in[b] = 1;
  };
  for (uint32_t b = 0; b < count; ++b)
    if (end(b) == top[buffers_[b].space]) add(b);
  for (size_t k = 0; k < found.size(); ++k) {
    const uint32_t b = found[k];
    uint64_t highest = 0;
    std::vector<uint32_t> beneath;
    for (uint32_t c = 0; c < count; ++c)
      if (c != b && buffers_[c].space == buffers_[b].space && end(c) <= plan.offsets[b] &&
          end(c) >= highest && !apart(before, b, c)) {
        if (end(c) > highest) beneath.clear();
        highest = end(c);
        beneath.push_back(c);
      }
    for (uint32_t c : beneath) add(c);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Schedule> with_waits(const Network& network, const Schedule& schedule,
                                   const std::vector<Event>& more) {
  const size_t count = network.tasks.size();
  const std::vector<uint32_t> previous = predecessors(network, schedule);
  std::vector<std::vector<uint32_t>> next(count);
  std::vector<uint32_t> missing(count, 0), place(count);
  const auto edge = [&](uint32_t from, uint32_t to) {
    next[from].push_back(to);
    ++missing[to];
  };
  for (uint32_t k = 0; k < count; ++k) place[schedule.order[k]] = k;
  for (uint32_t t = 0; t < count; ++t) {
    if (previous[t] != REGIE_NONE) edge(previous[t], t);
    for (uint32_t a : network.tasks[t].after) edge(a, t);
  }
  for (const Event& e : more) edge(e.from, e.to);
  std::set<uint32_t> ready;  // places
  for (uint32_t t = 0; t < count; ++t)
    if (missing[t] == 0) ready.insert(place[t]);
  Schedule made;
  made.stream = schedule.stream;
  while (!ready.empty()) {
    const uint32_t t = schedule.order[*ready.begin()];
    ready.erase(ready.begin());
    made.order.push_back(t);
    for (uint32_t s : next[t])
      if (--missing[s] == 0) ready.insert(place[s]);
  }
  if (made.order.size() != count) return std::nullopt;
  return made;
}

}  // namespace streams
