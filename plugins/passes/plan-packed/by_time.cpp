#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "greedy.h"

namespace packed {

namespace {

constexpr uint64_t kInfinite = UINT64_MAX;

struct Range {
  uint64_t begin, end;
};

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
    const auto gap = std::prev(by_begin_.upper_bound(begin));
    const Range whole{gap->first, gap->second};
    erase(gap);
    if (whole.begin < begin) insert(whole.begin, begin);
    if (end < whole.end) insert(end, whole.end);
  }

  void give(uint64_t begin, uint64_t end) {
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

// A part of an item on the line of time that is walked.
struct Step {
  uint32_t start, end, item;
  uint64_t size;
};

// Items with several parts have to be somewhere before the walk begins: largest first, lowest place.
Offsets settle_in_advance(const Problem& problem) {
  if (problem.simple) {
    Offsets offsets(problem.items.size(), kFree);
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = problem.items[i].fixed;
    return offsets;
  }
  Order many;
  for (uint32_t i = 0; i < problem.items.size(); ++i)
    if (problem.items[i].part_count > 1 && !problem.items[i].is_fixed()) many.push_back(i);
  std::stable_sort(many.begin(), many.end(),
                   [&](uint32_t a, uint32_t b) { return problem.items[a].extent > problem.items[b].extent; });
  Offsets offsets = plan_by_rank(problem, many, Fit::kFirst);
  for (size_t i = 0; i < offsets.size(); ++i)
    if (!problem.items[i].is_fixed() && problem.items[i].part_count <= 1) offsets[i] = kFree;
  return offsets;
}

}  // namespace

Offsets plan_by_time(const Problem& problem, Tie tie, bool backwards) {
  return plan_by_time(problem, settle_in_advance(problem), tie, backwards);
}

Offsets plan_by_time(const Problem& problem, Offsets offsets, Tie tie, bool backwards) {
  std::vector<Step> steps;
  steps.reserve(problem.parts.size());
  for (uint32_t i = 0; i < problem.items.size(); ++i)
    for (const Part& p : problem.parts_of(problem.items[i])) {
      if (backwards)
        steps.push_back({problem.sections - p.end, problem.sections - p.begin, i, p.size});
      else
        steps.push_back({p.begin, p.end, i, p.size});
    }
  std::vector<uint8_t> settled(problem.items.size());
  for (size_t i = 0; i < settled.size(); ++i) settled[i] = offsets[i] != kFree;

  std::sort(steps.begin(), steps.end(), [&](const Step& a, const Step& b) {
    if (a.start != b.start) return a.start < b.start;
    if (settled[a.item] != settled[b.item]) return settled[a.item] > settled[b.item];
    const uint32_t la = a.end - a.start, lb = b.end - b.start;
    if (tie == Tie::kLargest && a.size != b.size) return a.size > b.size;
    if (la != lb) return la > lb;
    if (a.size != b.size) return a.size > b.size;
    return a.item < b.item;
  });
  std::vector<uint32_t> ends(steps.size()), ahead;  // steps by end; settled ones that are still to come
  for (uint32_t s = 0; s < steps.size(); ++s) {
    ends[s] = s;
    if (settled[steps[s].item]) ahead.push_back(s);
  }
  std::sort(ends.begin(), ends.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(steps[a].end, a) < std::pair(steps[b].end, b); });

  Arena arena;
  // In whole grains: what is left of the last one can begin nothing. As gaps of their own, thousands of them
  // would be looked at in vain for each item to come.
  auto end_of = [&](const Step& s) { return offsets[s.item] + problem.whole(s.size); };
  std::vector<Range> later;  // places that will be taken during the life of the item at hand, by offset
  size_t next_end = 0, next_ahead = 0;
  for (const Step& s : steps) {
    for (; steps[ends[next_end]].end <= s.start; ++next_end) {
      const Step& e = steps[ends[next_end]];
      arena.give(offsets[e.item], end_of(e));
    }
    if (settled[s.item]) {
      ++next_ahead;
    } else {
      later.clear();
      for (size_t f = next_ahead; f < ahead.size() && steps[ahead[f]].start < s.end; ++f) {
        const Step& fixed = steps[ahead[f]];
        later.push_back({offsets[fixed.item], offsets[fixed.item] + fixed.size});
      }
      std::sort(later.begin(), later.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
      const uint64_t alignment = problem.items[s.item].alignment;
      offsets[s.item] = arena.find(s.size, [&](const Range& gap) {
        uint64_t at = align_up(gap.begin, alignment);
        for (const Range& r : later) {
          if (r.begin >= at && r.begin - at >= s.size) break;
          if (r.end > at) at = align_up(r.end, alignment);
        }
        return at <= gap.end && gap.end - at >= s.size ? at : kInfinite;
      });
    }
    arena.take(offsets[s.item], end_of(s));
  }
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] == kFree) offsets[i] = 0;  // no bytes
  return offsets;
}

}  // namespace packed
