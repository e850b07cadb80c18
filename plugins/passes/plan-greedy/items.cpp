#include "items.h"

#include <algorithm>
#include <map>
#include <string>

#include "regie/plugin.hpp"

namespace plan {

namespace {

using regie::sdk::Failure;

constexpr uint64_t kTooMuch = uint64_t{1} << 62;  // sums below this cannot overflow when they are aligned

[[noreturn]] void refuse(size_t index, const std::string& why) {
  throw Failure(REGIE_INVALID_INPUT, "buffer " + std::to_string(index) + " " + why);
}

Item read_one(size_t index, const regie_memory_buffer& b) {
  if (b.lower >= b.upper)
    refuse(index, "lives from " + std::to_string(b.lower) + " to " + std::to_string(b.upper) +
                      ", which is no time at all");
  if (b.alignment == 0 || (b.alignment & (b.alignment - 1)))
    refuse(index, "has the alignment " + std::to_string(b.alignment) + ", which is no power of two");
  if (b.size > kTooMuch || b.alignment > kTooMuch) refuse(index, "is larger than any arena can be");
  const bool fixed = b.offset != REGIE_OFFSET_FREE;
  if (fixed && b.offset % b.alignment)
    refuse(index, "is fixed at " + std::to_string(b.offset) + ", which its alignment " +
                      std::to_string(b.alignment) + " does not divide");
  if (fixed && b.offset > kTooMuch) refuse(index, "is fixed outside of any arena");
  return {b.lower, b.upper, fixed ? b.size : align_up(b.size, b.alignment), b.size, b.alignment, b.offset};
}

// Live sizes step by step. Ends come before starts, as a life is [lower, upper).
void sweep(Problem* p) {
  std::vector<uint32_t> starts(p->items.size()), ends(p->items.size());
  for (uint32_t i = 0; i < starts.size(); ++i) starts[i] = ends[i] = i;
  const auto& items = p->items;
  std::sort(starts.begin(), starts.end(),
            [&](uint32_t a, uint32_t b) { return items[a].lower < items[b].lower; });
  std::sort(ends.begin(), ends.end(),
            [&](uint32_t a, uint32_t b) { return items[a].upper < items[b].upper; });
  uint64_t live = 0, live_exact = 0, count = 0;
  size_t e = 0;
  for (uint32_t s : starts) {
    for (; items[ends[e]].upper <= items[s].lower; ++e) {
      live -= align_up(items[ends[e]].exact, items[ends[e]].alignment);
      live_exact -= items[ends[e]].exact;
      --count;
    }
    live += align_up(items[s].exact, items[s].alignment);
    live_exact += items[s].exact;
    p->lower_bound = std::max(p->lower_bound, live);
    p->exact_bound = std::max(p->exact_bound, live_exact);
    p->pairs += count++;
  }
}

void check_fixed(const Problem& p) {
  std::map<uint64_t, uint32_t> live;  // by offset
  std::multimap<uint64_t, uint32_t> by_end;
  for (uint32_t i : p.fixed) {
    const Item& f = p.items[i];
    if (f.size == 0) continue;
    while (!by_end.empty() && by_end.begin()->first <= f.lower) {
      live.erase(p.items[by_end.begin()->second].fixed);
      by_end.erase(by_end.begin());
    }
    auto clash = [&](uint32_t other) {
      refuse(std::min(i, other),
             "and buffer " + std::to_string(std::max(i, other)) + " are fixed in one place at one time");
    };
    auto after = live.lower_bound(f.fixed);
    if (after != live.end() && after->first < f.fixed + f.size) clash(after->second);
    if (after != live.begin()) {
      auto before = std::prev(after);
      if (before->first + p.items[before->second].size > f.fixed) clash(before->second);
    }
    live.emplace(f.fixed, i);
    by_end.emplace(f.upper, i);
  }
}

}  // namespace

Problem read(const regie_memory_problem& problem) {
  Problem p;
  p.items.reserve(problem.buffer_count);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < problem.buffer_count; ++i) {
    p.items.push_back(read_one(i, problem.buffers[i]));
    const Item& item = p.items.back();
    sum += align_up(item.exact, item.alignment);
    if (sum > kTooMuch) throw Failure(REGIE_LIMIT, "the buffers together are larger than any arena can be");
    p.end = std::max(p.end, item.upper);
    if (i == 0) p.alignment = item.alignment;
    p.uniform &= item.alignment == p.alignment;
    if (item.is_fixed()) p.fixed.push_back(static_cast<uint32_t>(i));
  }
  std::sort(p.fixed.begin(), p.fixed.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(p.items[a].lower, a) < std::pair(p.items[b].lower, b);
  });
  if (!p.items.empty()) sweep(&p);
  check_fixed(p);
  return p;
}

}  // namespace plan
