#include "refine.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace packed {

namespace {

constexpr Keys kOrders[] = {
    {Key::kLife, Key::kArea, Key::kLoad}, {Key::kLoad, Key::kArea, Key::kLife},
    {Key::kLife, Key::kLoad, Key::kArea}, {Key::kArea, Key::kLife, Key::kLoad},
    {Key::kLoad, Key::kLife, Key::kArea}, {Key::kSize, Key::kLife, Key::kLoad},
};
constexpr size_t kOrderCount = std::size(kOrders);
constexpr int kTargetsARound = 4;

// All sums that can be a peak are multiples of this.
int64_t quantum_of(const Core& core) {
  int64_t q = 0;
  for (uint32_t i = 0; i < core.items.size(); ++i)
    q = std::gcd(std::gcd(q, core.items[i].extent), std::max<int64_t>(core.items[i].fixed, 0));
  for (const Arc& a : core.arcs) q = std::gcd(q, a.up);
  for (const Core::Item& i : core.items)
    if (q % i.alignment) q = std::gcd(q, i.alignment);
  return std::max<int64_t>(q, 1);
}

class Refiner {
 public:
  Refiner(const Core& core, int64_t peak, int64_t goal, bool exact, const Effort& effort)
      : core_(core), search_(core), goal_(goal), exact_(exact), effort_(effort), quantum_(quantum_of(core)) {
    best_.peak = peak;
    base_ = 500 + 4 * core.items.size();
    for (const Keys& keys : kOrders) records_.push_back({keys});
    raise_bound(core.lower_bound);
  }

  Refined refine() {
    for (uint64_t slice = 2 * base_; open();) {
      const int64_t before = best_.peak;
      round(slice);
      if (best_.peak == before) slice *= 2;
    }
    return std::move(best_);
  }

 private:
  void raise_bound(int64_t bound) {
    best_.lower_bound = std::max(best_.lower_bound, (bound + quantum_ - 1) / quantum_ * quantum_);
  }
  int64_t least() const { return std::max(best_.lower_bound, goal_); }
  bool open() const {
    if (best_.peak <= least() || best_.nodes >= effort_.nodes) return false;
    if (exact_ && best_.lower_bound > goal_) return false;
    return !effort_.deadline || Search::Clock::now() < *effort_.deadline;
  }

  // The least first; then, as long as there is no plan, half of the way to the best.
  void round(uint64_t slice) {
    int64_t target = least();
    for (int k = 0; k < kTargetsARound && open(); ++k) {
      target = std::max(target, least());
      if (target >= best_.peak) return;
      if (attempt(target, slice) == Found::kPlan || exact_) return;
      const int64_t next = target + (best_.peak - target) / 2 / quantum_ * quantum_;
      if (next == target) return;
      target = next;
    }
  }

  Found attempt(int64_t capacity, uint64_t slice) {
    const uint64_t end = std::min(effort_.nodes, best_.nodes + slice);
    while (best_.nodes < end) {
      const uint64_t lap = runs_ / kOrderCount;
      const uint64_t limit = std::min(base_ << std::min(std::countr_zero(lap + 1), 20), end - best_.nodes);
      const double noise = lap == 0 ? 0 : lap % 3 == 0 ? 0.5 : 0.25;
      Record& record = records_[next_order(lap)];
      const Found found = search_.run(capacity, record.keys, limit, noise, runs_, effort_.deadline);
      ++runs_;
      ++record.runs;
      record.depth += search_.deepest();
      best_.nodes += search_.nodes();
      if (found == Found::kPlan) {
        best_.offsets = search_.offsets();
        best_.peak = 0;
        for (uint32_t i = 0; i < core_.items.size(); ++i)
          best_.peak = std::max(best_.peak, best_.offsets[i] + core_.items[i].extent);
      }
      if (found == Found::kNoPlan) raise_bound(capacity + 1);
      if (found != Found::kLimit) return found;
      if (effort_.deadline && Search::Clock::now() >= *effort_.deadline) return found;
    }
    return Found::kLimit;
  }

  struct Record {  // of an order: how far its runs came
    Keys keys;
    uint64_t runs = 0, depth = 0;
  };

  // In turn; but every second run after the first lap is given to the one that has come furthest on average.
  size_t next_order(uint64_t lap) const {
    const size_t turn = runs_ % kOrderCount;
    if (lap == 0 || turn % 2 == 0)
      return lap == 0 ? turn : (turn / 2 + lap * (kOrderCount / 2)) % kOrderCount;
    size_t best = 0;
    for (size_t k = 1; k < kOrderCount; ++k)
      if (records_[k].depth * records_[best].runs > records_[best].depth * records_[k].runs) best = k;
    return best;
  }

  const Core& core_;
  Search search_;
  const int64_t goal_;
  const bool exact_;
  const Effort effort_;
  const int64_t quantum_;
  Refined best_;
  std::vector<Record> records_;
  uint64_t base_ = 0, runs_ = 0;
};

}  // namespace

Refined refine(const Core& core, int64_t peak, int64_t goal, bool exact, const Effort& effort) {
  return Refiner(core, peak, goal, exact, effort).refine();
}

}  // namespace packed
