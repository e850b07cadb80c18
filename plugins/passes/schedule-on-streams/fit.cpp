#include "fit.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace streams {

namespace {

using Pairs = std::vector<std::vector<uint32_t>>;  // by buffer: who may not share bytes with it
using Order = std::vector<uint32_t>;

Pairs beside(const std::vector<Buffer>& buffers, const Turns& turns, const Before& before) {
  Pairs made(buffers.size());
  for (uint32_t a = 0; a < buffers.size(); ++a)
    for (uint32_t b = a + 1; b < buffers.size(); ++b)
      if (buffers[a].space == buffers[b].space && !turns.apart(before, a, b)) {
        made[a].push_back(b);
        made[b].push_back(a);
      }
  return made;
}

Plan first_fit(const std::vector<Buffer>& buffers, const Pairs& beside, const Order& order) {
  Plan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<uint8_t> placed(buffers.size(), 0);
  std::map<uint32_t, uint64_t> top;                    // by space
  std::vector<std::pair<uint64_t, uint64_t>> blocked;  // from, to
  for (uint32_t b : order) {
    blocked.clear();
    for (uint32_t other : beside[b])
      if (placed[other]) blocked.emplace_back(plan.offsets[other], plan.offsets[other] + buffers[other].size);
    std::sort(blocked.begin(), blocked.end());
    const uint64_t alignment = std::max<uint64_t>(1, buffers[b].alignment);
    uint64_t at = 0;
    for (const auto& [from, to] : blocked) {
      if (at + buffers[b].size <= from) break;
      at = std::max(at, (to + alignment - 1) / alignment * alignment);
    }
    plan.offsets[b] = at;
    placed[b] = 1;
    uint64_t& most = top[buffers[b].space];
    most = std::max(most, at + buffers[b].size);
  }
  for (const auto& [space, bytes] : top) plan.bytes += bytes;
  return plan;
}

}  // namespace

Plan fit(const std::vector<Buffer>& buffers, const Turns& turns, const Before& before,
         const Schedule& schedule) {
  const Pairs pairs = beside(buffers, turns, before);
  std::vector<uint32_t> place(schedule.stream.size(), 0);
  for (uint32_t k = 0; k < schedule.order.size(); ++k) place[schedule.order[k]] = k;
  std::vector<uint64_t> first(buffers.size(), UINT64_MAX), room(buffers.size(), 0);
  for (uint32_t b = 0; b < buffers.size(); ++b) {
    for (uint32_t t : buffers[b].touching) first[b] = std::min<uint64_t>(first[b], place[t]);
    room[b] = buffers[b].size;
    for (uint32_t other : pairs[b]) room[b] += buffers[other].size;
  }
  Plan best;
  const auto offer = [&](auto&& key) {
    Order order(buffers.size());
    for (uint32_t b = 0; b < order.size(); ++b) order[b] = b;
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    Plan plan = first_fit(buffers, pairs, order);
    if (best.offsets.empty() || plan.bytes < best.bytes) best = std::move(plan);
  };
  offer([&](uint32_t b) { return std::tuple(UINT64_MAX - buffers[b].size, first[b]); });
  offer([&](uint32_t b) { return std::tuple(UINT64_MAX - room[b], UINT64_MAX - buffers[b].size); });
  offer([&](uint32_t b) { return std::tuple(first[b], UINT64_MAX - buffers[b].size); });
  return best;
}

}  // namespace streams
