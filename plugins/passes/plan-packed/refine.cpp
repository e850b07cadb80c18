#include "refine.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace packed {

namespace {

// Longest life first finds most plans, so it gets every second run once all have been tried as they are.
constexpr Keys kOrders[] = {
    {Key::kLife, Key::kArea, Key::kLoad}, {Key::kLoad, Key::kLife, Key::kArea},
    {Key::kLife, Key::kLoad, Key::kArea}, {Key::kLoad, Key::kArea, Key::kLife},
    {Key::kArea, Key::kLife, Key::kLoad}, {Key::kSize, Key::kLife, Key::kLoad},
};
constexpr uint64_t kOrderCount = std::size(kOrders);
constexpr size_t kOthers[] = {1, 4, 1, 5};

struct Run {
  Keys keys;
  double noise;
  uint64_t limit;
};

// The n-th attempt at one capacity.
Run nth_run(uint64_t n, uint64_t base) {
  if (n < kOrderCount) return {kOrders[n], 0, base};
  const uint64_t lap = (n - kOrderCount) / 2;
  const size_t order = n % 2 == 0 ? 0 : kOthers[lap % std::size(kOthers)];
  return {kOrders[order], lap % 3 == 2 ? 0.5 : 0.25, base << std::min(std::countr_zero(lap + 1), 20)};
}

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
    raise_bound(core.lower_bound);
  }

  Refined refine() {
    for (uint64_t slice = kOrderCount * base_; open();) {
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
      if (attempt(target, slice, k == 0 ? &least_runs_ : &other_runs_) == Found::kPlan || exact_) return;
      const int64_t next = target + (best_.peak - target) / 2 / quantum_ * quantum_;
      if (next == target) return;
      target = next;
    }
  }

  // `runs`: how many there have been at this kind of capacity.
  Found attempt(int64_t capacity, uint64_t slice, uint64_t* runs) {
    const uint64_t end = std::min(effort_.nodes, best_.nodes + slice);
    while (best_.nodes < end) {
      const Run run = nth_run(*runs, base_);
      const Found found = search_.run(capacity, run.keys, std::min(run.limit, end - best_.nodes), run.noise,
                                      (*runs)++, effort_.deadline);
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

  const Core& core_;
  Search search_;
  const int64_t goal_;
  const bool exact_;
  const Effort effort_;
  const int64_t quantum_;
  Refined best_;
  uint64_t base_ = 0, least_runs_ = 0, other_runs_ = 0;
};

}  // namespace

Refined refine(const Core& core, int64_t peak, int64_t goal, bool exact, const Effort& effort) {
  return Refiner(core, peak, goal, exact, effort).refine();
}

}  // namespace packed
