#include "stack.h"

#include <algorithm>

namespace plan {

Stack::Stack(const Problem& problem) : problem_(problem) {
  const auto& items = problem.items;
  by_lower_.resize(items.size());
  for (uint32_t i = 0; i < by_lower_.size(); ++i) by_lower_[i] = i;
  std::sort(by_lower_.begin(), by_lower_.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(items[a].lower, a) < std::pair(items[b].lower, b);
  });
  position_.resize(items.size());
  for (uint32_t p = 0; p < by_lower_.size(); ++p) position_[by_lower_[p]] = p;
  while (leaves_ < items.size()) leaves_ *= 2;
}

void Stack::add(uint32_t item) {
  if (problem_.items[item].size == 0) return;  // takes no room from anybody
  size_t n = leaves_ + position_[item];
  const uint64_t upper = problem_.items[item].upper;
  for (; n >= 1 && latest_[n] < upper; n /= 2) latest_[n] = upper;
}

// Placed items that start before `item` ends and end after it starts.
void Stack::collect(const Item& item) {
  near_.clear();
  const auto& items = problem_.items;
  const size_t limit =
      static_cast<size_t>(std::partition_point(by_lower_.begin(), by_lower_.end(),
                                               [&](uint32_t i) { return items[i].lower < item.upper; }) -
                          by_lower_.begin());
  walk_.assign({1, 0, leaves_});
  while (!walk_.empty()) {
    const size_t count = walk_.back();
    const size_t first = walk_[walk_.size() - 2];
    const size_t node = walk_[walk_.size() - 3];
    walk_.resize(walk_.size() - 3);
    if (first >= limit || latest_[node] <= item.lower) continue;
    if (count == 1) {
      const uint32_t i = by_lower_[first];
      near_.push_back({offsets_[i], offsets_[i] + items[i].size});
      continue;
    }
    const size_t half = count / 2;
    walk_.insert(walk_.end(), {2 * node, first, half, 2 * node + 1, first + half, half});
  }
  std::sort(near_.begin(), near_.end(), [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
}

std::vector<uint64_t> Stack::plan(std::span<const uint32_t> order, Fit fit) {
  latest_.assign(2 * leaves_, 0);
  offsets_.assign(problem_.items.size(), 0);
  for (uint32_t i : problem_.fixed) {
    offsets_[i] = problem_.items[i].fixed;
    add(i);
  }
  for (uint32_t i : order) {
    const Item& item = problem_.items[i];
    collect(item);
    uint64_t cursor = 0;  // lowest aligned place above everything seen so far
    uint64_t best = UINT64_MAX, best_length = UINT64_MAX;
    for (const Placed& q : near_) {
      if (q.begin >= cursor && q.begin - cursor >= item.size && q.begin - cursor < best_length) {
        best = cursor;
        best_length = q.begin - cursor;
        if (fit == Fit::kFirst) break;
      }
      if (q.end > cursor) cursor = align_up(q.end, item.alignment);
    }
    offsets_[i] = best != UINT64_MAX ? best : cursor;
    add(i);
  }
  return offsets_;
}

}  // namespace plan
