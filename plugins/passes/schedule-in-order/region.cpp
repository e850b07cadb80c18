#include "region.h"

#include <algorithm>

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

}  // namespace order
