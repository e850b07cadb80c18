#include "passes/apart.h"

#include <algorithm>

#include "ir/structural.h"

namespace regie {

namespace {

constexpr size_t kMostPairs = 20000;  // the planner looks at each
constexpr size_t kMostLooks = 30'000'000;

}  // namespace

std::vector<std::pair<uint32_t, uint32_t>> tighten_lives(CompileState& state,
                                                         const std::vector<std::vector<uint64_t>>& touched,
                                                         const StreamClocks& clocks) {
  const std::vector<PlannedBuffer>& buffers = state.buffers;
  if (clocks.width < 2 || task_regions(*state.graph).size() > 1 || state.graph->dims().symbol_count())
    return {};
  const size_t width = clocks.width, count = buffers.size();
  const uint64_t end = state.schedule[0].end_step;
  // Of all that touch a buffer: the last on each stream, and what all of them come after.
  std::vector<uint32_t> last(count * width), known(count * width, UINT32_MAX);
  std::vector<std::pair<uint64_t, uint64_t>> life(count);
  for (size_t b = 0; b < count; ++b) {
    const auto [first, final] = std::minmax_element(touched[b].begin(), touched[b].end());
    life[b] = {*first, *final + 1};
    for (uint64_t step : touched[b]) {
      if (step >= end) continue;  // the host, which has waited for everything
      const uint32_t own = clocks.stream[step];
      const uint32_t* ended = clocks.of(step);  // with one region, tasks are at the steps from 0 on
      last[b * width + own] = std::max(last[b * width + own], ended[own]);
      for (size_t s = 0; s < width; ++s)
        known[b * width + s] = std::min(known[b * width + s], ended[s] - (s == own));
    }
  }
  std::vector<uint32_t> order(count);
  for (uint32_t b = 0; b < count; ++b) order[b] = b;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(life[a].first, a) < std::pair(life[b].first, b);
  });
  std::vector<std::pair<uint32_t, uint32_t>> apart;
  size_t looks = 0;
  for (uint32_t a = 0; a < count; ++a) {
    if (buffers[a].size == 0) continue;
    auto next = std::lower_bound(order.begin(), order.end(), life[a].second,
                                 [&](uint32_t b, uint64_t step) { return life[b].first < step; });
    // From the step on that all streams know of, nobody has to be looked at.
    for (; next != order.end() && life[*next].first < buffers[a].upper; ++next) {
      const uint32_t b = *next;
      if (++looks > kMostLooks) return {};
      if (buffers[b].size == 0 || buffers[b].space != buffers[a].space) continue;
      for (size_t s = 0; s < width; ++s)
        if (last[a * width + s] > known[b * width + s]) {
          apart.emplace_back(a, b);
          break;
        }
    }
    if (apart.size() > kMostPairs) return {};
  }
  for (size_t b = 0; b < count; ++b) {
    state.buffers[b].lower = life[b].first;
    state.buffers[b].upper = life[b].second;
  }
  return apart;
}

}  // namespace regie
