#include "region.h"

#include <algorithm>
#include <utility>

namespace order {

Replay::Replay(const Region& region)
    : region_(region), next_(region.count()), touches_(region.count()), overwrites_(region.count()) {
  for (uint32_t t = 0; t < region.count(); ++t)
    for (uint32_t a : region.after[t]) next_[a].push_back(t);
  for (uint32_t b = 0; b < region.bytes.size(); ++b)
    for (uint32_t t : region.bytes[b].touched_by) touches_[t].push_back(b);
  for (const Overwrite& o : region.overwrites) overwrites_[o.task].push_back(o);
}

std::vector<Replay::Moment> Replay::run(const Order& order, int64_t live,
                                        std::vector<Overwrite>* written_over) const {
  enum State : uint8_t { kUnborn, kAlive, kBornNow, kDiesNow, kGone };
  const size_t count = region_.bytes.size();
  std::vector<uint32_t> left(count);
  std::vector<uint8_t> state(count);
  for (size_t b = 0; b < count; ++b) {
    left[b] = static_cast<uint32_t>(region_.bytes[b].touched_by.size()) + region_.bytes[b].kept;
    state[b] = region_.bytes[b].begun ? kAlive : kUnborn;
  }
  std::vector<Moment> moments;
  moments.reserve(order.size());
  for (uint32_t t : order) {
    int64_t during = live + region_.room[t], after = live;
    for (uint32_t b : touches_[t]) {
      const int64_t size = region_.bytes[b].size;
      const bool fresh = state[b] == kUnborn;
      const bool last = --left[b] == 0;
      if (fresh) during += size;
      if (fresh && !last) after += size;
      if (!fresh && last) after -= size;
      state[b] = fresh && last ? kGone : fresh ? kBornNow : last ? kDiesNow : kAlive;
    }
    for (const Overwrite& o : overwrites_[t]) {
      if (state[o.made] != kBornNow || state[o.over] != kDiesNow) continue;
      during -= region_.bytes[o.made].size;
      state[o.made] = kAlive;
      state[o.over] = kGone;
      if (written_over) written_over->push_back(o);
    }
    for (uint32_t b : touches_[t]) {
      if (state[b] == kBornNow) state[b] = kAlive;
      if (state[b] == kDiesNow) state[b] = kGone;
    }
    live = after;
    moments.push_back({during, after});
  }
  return moments;
}

int64_t Replay::peak(const Order& order, int64_t live) const {
  int64_t peak = live;
  for (const Moment& m : run(order, live)) peak = std::max(peak, m.during);
  return peak;
}

int64_t least_peak(const Region& region, const Replay& replay) {
  int64_t least = 0;
  for (uint32_t t = 0; t < region.count(); ++t) {
    int64_t bytes = region.room[t], saved = 0;
    for (uint32_t b : replay.touches()[t]) bytes += region.bytes[b].size;
    uint32_t made = UINT32_MAX;
    for (const Overwrite& o : replay.overwrites()[t])
      if (std::exchange(made, o.made) != o.made) saved += region.bytes[o.made].size;
    least = std::max(least, bytes - saved);
  }
  return least;
}

Region part_of(const Region& region, const Replay& replay, const Order& order, size_t begin, size_t end) {
  std::vector<uint32_t> local(region.count(), Region::kNoTask);
  for (size_t k = begin; k < end; ++k) local[order[k]] = static_cast<uint32_t>(k - begin);
  std::vector<size_t> place(region.count());
  for (size_t k = 0; k < region.count(); ++k) place[order[k]] = k;
  Region part;
  std::vector<uint32_t> of_bytes(region.bytes.size(), UINT32_MAX);
  for (size_t k = begin; k < end; ++k) {
    const uint32_t t = order[k];
    part.room.push_back(region.room[t]);
    if (!region.cost.empty()) part.cost.push_back(region.cost[t]);
    part.after.emplace_back();
    for (uint32_t a : region.after[t])
      if (local[a] != Region::kNoTask) part.after.back().push_back(local[a]);
    for (uint32_t b : replay.touches()[t]) {
      if (of_bytes[b] != UINT32_MAX) continue;
      of_bytes[b] = static_cast<uint32_t>(part.bytes.size());
      const Bytes& whole = region.bytes[b];
      Bytes bytes{whole.size, {}, whole.begun, whole.kept};
      for (uint32_t other : whole.touched_by)
        if (local[other] != Region::kNoTask)
          bytes.touched_by.push_back(local[other]);
        else
          (place[other] < begin ? bytes.begun : bytes.kept) = true;
      part.bytes.push_back(std::move(bytes));
      if (region.again.empty()) continue;
      const uint32_t maker = region.again[b];
      part.again.push_back(maker == Region::kNoTask ? Region::kNoTask : local[maker]);
    }
    for (const Overwrite& o : replay.overwrites()[t])
      part.overwrites.push_back({local[t], of_bytes[o.made], of_bytes[o.over]});
  }
  return part;
}

}  // namespace order
