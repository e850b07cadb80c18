#include "sweep.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace plan {

namespace {

struct Range {
  uint64_t begin, end;
};

constexpr uint64_t kInfinite = UINT64_MAX;

// What is free now, by place and by length: disjoint, not adjacent; the last gap is endless.
class Arena {
 public:
  // The place in the smallest gap in which `place(gap)` finds one (kInfinite: none).
  template <class Place>
  uint64_t find(uint64_t size, Place&& place) const {
    for (auto gap = by_length_.lower_bound({size, 0}); gap != by_length_.end(); ++gap) {
      const uint64_t at = place(Range{gap->second, gap->second + gap->first});
      if (at != kInfinite) return at;
    }
    return kInfinite;
  }

  void take(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    const auto gap = std::prev(by_begin_.upper_bound(begin));
    const Range whole{gap->first, gap->second};
    erase(gap);
    if (whole.begin < begin) insert(whole.begin, begin);
    if (end < whole.end) insert(end, whole.end);
  }

  void give(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    auto after = by_begin_.lower_bound(end);
    if (after != by_begin_.begin()) {
      const auto before = std::prev(after);
      if (before->second == begin) {
        begin = before->first;
        erase(before);
      }
    }
    if (after != by_begin_.end() && after->first == end) {
      end = after->second;
      erase(after);
    }
    insert(begin, end);
  }

 private:
  using Begins = std::map<uint64_t, uint64_t>;
  void insert(uint64_t begin, uint64_t end) {
    by_begin_.emplace(begin, end);
    by_length_.emplace(end - begin, begin);
  }
  void erase(Begins::const_iterator gap) {
    by_length_.erase({gap->second - gap->first, gap->first});
    by_begin_.erase(gap);
  }

  Begins by_begin_{{0, kInfinite}};
  std::set<std::pair<uint64_t, uint64_t>> by_length_{{kInfinite, 0}};
};

}  // namespace

std::vector<uint64_t> plan_by_time(const Problem& problem, Tie tie, bool backwards) {
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
      offsets[i] = arena.find(size, [&](const Range& gap) {
        uint64_t at = align_up(gap.begin, alignment);
        for (const Range& r : ahead) {
          if (r.begin >= at && r.begin - at >= size) break;
          if (r.end > at) at = align_up(r.end, alignment);
        }
        return at <= gap.end && gap.end - at >= size ? at : kInfinite;
      });
    }
    arena.take(offsets[i], offsets[i] + items[i].size);
  }
  return offsets;
}

}  // namespace plan
