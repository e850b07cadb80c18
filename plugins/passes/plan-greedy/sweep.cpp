#include "sweep.h"

#include <algorithm>
#include <iterator>

namespace plan {

namespace {

struct Range {
  uint64_t begin, end;
};

constexpr uint64_t kInfinite = UINT64_MAX;

// What is free now: sorted, disjoint, not adjacent; the last one is endless.
class Arena {
 public:
  template <class Next>
  uint64_t place(uint64_t size, uint64_t alignment, Fit fit, Next&& next_free) const {
    uint64_t best = kInfinite, best_length = kInfinite;
    for (const Range& gap : gaps_) {
      const uint64_t length = gap.end - gap.begin;
      if (length < size || (best != kInfinite && length >= best_length)) continue;
      const uint64_t at = next_free(align_up(gap.begin, alignment), gap.end);
      if (at > gap.end || gap.end - at < size) continue;
      if (fit == Fit::kFirst) return at;
      best = at;
      best_length = length;
    }
    return best;
  }

  void take(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    auto gap = std::prev(std::upper_bound(gaps_.begin(), gaps_.end(), begin,
                                          [](uint64_t x, const Range& g) { return x < g.begin; }));
    const Range rest{end, gap->end};
    if (gap->begin == begin)
      *gap = rest;  // the usual case: at the bottom of its gap
    else {
      gap->end = begin;
      gap = gaps_.insert(std::next(gap), rest);
    }
    if (gap->begin == gap->end) gaps_.erase(gap);
  }

  void give(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    auto after = std::upper_bound(gaps_.begin(), gaps_.end(), begin,
                                  [](uint64_t x, const Range& g) { return x < g.begin; });
    const bool joins_after = after != gaps_.end() && after->begin == end;
    const bool joins_before = after != gaps_.begin() && std::prev(after)->end == begin;
    if (joins_before && joins_after) {
      std::prev(after)->end = after->end;
      gaps_.erase(after);
    } else if (joins_before) {
      std::prev(after)->end = end;
    } else if (joins_after) {
      after->begin = begin;
    } else {
      gaps_.insert(after, {begin, end});
    }
  }

 private:
  std::vector<Range> gaps_{{0, kInfinite}};
};

}  // namespace

std::vector<uint64_t> plan_by_time(const Problem& problem, Fit fit, Tie tie, bool backwards) {
  const std::vector<Item>& items = problem.items;
  auto start = [&](uint32_t i) { return backwards ? problem.end - items[i].upper : items[i].lower; };
  auto end = [&](uint32_t i) { return backwards ? problem.end - items[i].lower : items[i].upper; };

  std::vector<uint32_t> order(items.size()), ends(items.size()), fixed = problem.fixed;
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = ends[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (start(a) != start(b)) return start(a) < start(b);
    if (items[a].is_fixed() != items[b].is_fixed()) return items[a].is_fixed();
    const uint64_t la = end(a) - start(a), lb = end(b) - start(b);
    if (tie == Tie::kLargest && items[a].size != items[b].size) return items[a].size > items[b].size;
    if (la != lb) return la > lb;
    if (items[a].size != items[b].size) return items[a].size > items[b].size;
    return a < b;
  });
  std::sort(ends.begin(), ends.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(end(a), a) < std::pair(end(b), b); });
  std::sort(fixed.begin(), fixed.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(start(a), a) < std::pair(start(b), b); });

  std::vector<uint64_t> offsets(items.size(), 0);
  Arena arena;
  std::vector<Range>
      ahead;  // fixed places that will be taken during the life of the buffer at hand, by offset
  size_t next_end = 0, next_fixed = 0;
  for (uint32_t i : order) {
    for (; end(ends[next_end]) <= start(i); ++next_end)
      arena.give(offsets[ends[next_end]], offsets[ends[next_end]] + items[ends[next_end]].size);
    if (items[i].is_fixed()) {
      offsets[i] = items[i].fixed;
      ++next_fixed;
    } else {
      ahead.clear();
      for (size_t f = next_fixed; f < fixed.size() && start(fixed[f]) < end(i); ++f)
        if (items[fixed[f]].size)
          ahead.push_back({items[fixed[f]].fixed, items[fixed[f]].fixed + items[fixed[f]].size});
      std::sort(ahead.begin(), ahead.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
      const uint64_t size = items[i].size, alignment = items[i].alignment;
      offsets[i] = arena.place(size, alignment, fit, [&](uint64_t at, uint64_t limit) {
        for (const Range& r : ahead) {
          if (r.begin >= at && r.begin - at >= size) break;
          if (r.end > at) at = align_up(r.end, alignment);
          if (at > limit) break;
        }
        return at;
      });
    }
    arena.take(offsets[i], offsets[i] + items[i].size);
  }
  return offsets;
}

}  // namespace plan
