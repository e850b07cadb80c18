#include "recompute.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "repeat_search.h"

namespace order {

namespace {

constexpr size_t kWindow = 128;    // tasks around the peak, at first
constexpr size_t kLongest = 1024;  // that are searched at once

// The region in which each of `steps` is a task, in this order, and each reads what was made last.
Region unrolled(const Region& region, const Replay& replay, const Order& steps) {
  Region made;
  std::vector<uint32_t> run_of(region.count(), Region::kNoTask);  // the last, by task
  std::vector<uint32_t> last(region.bytes.size(), UINT32_MAX);    // the bytes that stand for them
  const auto fresh = [&](uint32_t b) {
    last[b] = static_cast<uint32_t>(made.bytes.size());
    made.bytes.push_back({region.bytes[b].size, {}, false, region.bytes[b].kept});
    made.again.push_back(Region::kNoTask);
  };
  for (uint32_t b = 0; b < region.bytes.size(); ++b) {
    fresh(b);
    made.bytes.back().begun = region.bytes[b].begun;
  }
  for (uint32_t t : steps) {
    const auto run = static_cast<uint32_t>(made.after.size());
    const bool once_more = run_of[t] != Region::kNoTask;
    made.room.push_back(region.room[t]);
    if (!region.cost.empty()) made.cost.push_back(region.cost[t]);
    made.after.emplace_back();
    for (uint32_t a : region.after[t]) made.after.back().push_back(run_of[a]);
    run_of[t] = run;
    for (uint32_t b : replay.touches()[t]) {
      const bool makes = !region.again.empty() && region.again[b] == t;
      if (makes && once_more) fresh(b);
      if (makes) made.again[last[b]] = run;
      made.bytes[last[b]].touched_by.push_back(run);
    }
    for (const Overwrite& o : replay.overwrites()[t])
      made.overwrites.push_back({run, last[o.made], last[o.over], o.result, o.value});
  }
  return made;
}

int64_t peak_of(const Region& region, const Replay& replay, int64_t live, const Order& steps) {
  const Region made = unrolled(region, replay, steps);
  Order order(made.count());
  std::iota(order.begin(), order.end(), 0);
  return Replay(made).peak(order, live);
}

class Recomputer {
 public:
  Recomputer(const Region& region, const RecomputeGoal& goal, uint64_t budget)
      : region_(region), replay_(region), goal_(goal), budget_(budget) {}

  Recomputed run(const Order& from) {
    take(from);
    goal_.bytes = std::max(goal_.bytes, least_peak(region_, replay_));
    const int64_t peak = peak_;
    const uint64_t share = budget_ / 2;
    for (size_t window = kWindow; peak_ > goal_.bytes && spent_ < goal_.cost && budget_ > 0;) {
      if (lower(window, share)) continue;
      if (window >= kLongest || window >= now_.count()) break;
      window *= 2;
    }
    if (spent_ > 0) remove_idle_copies();
    Recomputed result{steps_, peak_, spent_};
    if (spent_ > 0 && peak_ > goal_.bytes && !worth_it(peak)) {
      take(from);
      result = {steps_, peak_, 0};
    }
    return result;
  }

 private:
  // By the share of the peak for the share of the time.
  bool worth_it(int64_t before) const {
    const double saved = static_cast<double>(before - peak_) / static_cast<double>(before);
    return goal_.total <= 0 || saved >= goal_.worth * spent_ / goal_.total;
  }

  void take(const Order& steps) {
    steps_ = steps;
    now_ = unrolled(region_, replay_, steps);
    now_replay_.emplace(now_);
    spent_ = 0;
    std::vector<uint8_t> seen(region_.count(), 0);
    for (uint32_t t : steps) {
      if (seen[t]) spent_ += region_.cost[t];
      seen[t] = 1;
    }
    order_.resize(now_.count());
    std::iota(order_.begin(), order_.end(), 0);
    moments_ = now_replay_->run(order_, 0);
    peak_ = 0;
    peak_at_ = 0;
    for (size_t k = 0; k < moments_.size(); ++k)
      if (moments_[k].during > peak_) {
        peak_ = moments_[k].during;
        peak_at_ = k;
      }
  }

  // Brings the window around the peak below it, as far as is easily had.
  bool lower(size_t window, uint64_t share) {
    const size_t count = now_.count();
    const bool whole = count <= 2 * window;
    const size_t begin = whole || peak_at_ < window / 2 ? 0 : peak_at_ - window / 2;
    const size_t end = whole ? count : std::min(count, begin + window);
    const Region part = part_of(now_, *now_replay_, order_, begin, end);
    const Replay replay(part);
    const int64_t live = begin == 0 ? 0 : moments_[begin - 1].after;
    uint64_t budget = std::min(share, budget_);
    const uint64_t given = budget;
    const int64_t first = peak_;
    Order best;
    int64_t limit = peak_;
    const auto try_below = [&](int64_t below, size_t width, bool parts) {
      Order found;
      if (limit <= goal_.bytes ||
          !steps_below(part, live, {below, goal_.cost - spent_, width, parts}, &budget, &found))
        return false;
      best = std::move(found);
      limit = std::min(limit - 1, peak_of(part, replay, live, best));
      return true;
    };
    for (size_t width = 4; budget > 0 && width <= 256; width *= 4)
      for (bool parts : {false, true}) {
        // A great step down, then as great a one as the last; or any.
        for (int64_t step = std::max<int64_t>(0, limit - goal_.bytes) / 8; budget > 0;) {
          const int64_t before = limit;
          if (!try_below(std::max(goal_.bytes, limit - step) + (step > 0), width, parts) &&
              (step == 0 || !try_below(limit, width, parts)))
            break;
          step = before - limit;
        }
      }
    budget_ -= given - budget;
    if (best.empty()) return false;
    Order steps(steps_.begin(), steps_.begin() + static_cast<long>(begin));
    for (uint32_t t : best) steps.push_back(steps_[begin + t]);
    steps.insert(steps.end(), steps_.begin() + static_cast<long>(end), steps_.end());
    const Order before = steps_;
    take(steps);
    if (peak_ < first && spent_ <= goal_.cost) return true;
    take(before);
    return false;
  }

  // The dearest first: what the peak is no higher without.
  void remove_idle_copies() {
    std::vector<size_t> copies;
    std::vector<uint8_t> seen(region_.count(), 0);
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (seen[steps_[k]]) copies.push_back(k);
      seen[steps_[k]] = 1;
    }
    std::stable_sort(copies.begin(), copies.end(),
                     [&](size_t a, size_t b) { return region_.cost[steps_[a]] > region_.cost[steps_[b]]; });
    const int64_t limit = peak_;
    std::vector<uint8_t> gone(steps_.size(), 0);
    for (size_t c : copies) {
      const auto at = static_cast<long>(c) - std::count(gone.begin(), gone.begin() + static_cast<long>(c), 1);
      if (!perhaps_idle(static_cast<size_t>(at), limit)) continue;
      Order fewer = steps_;
      fewer.erase(fewer.begin() + at);
      if (peak_of(region_, replay_, 0, fewer) > limit) continue;
      gone[c] = 1;
      take(fewer);
    }
  }

  // False: without the copy at place `k` the value is alive until there, and that is above the limit even if
  // what only the copy keeps is not. Spares most copies a look at the whole.
  bool perhaps_idle(size_t k, int64_t limit) const {
    size_t made_at = k;
    while (made_at > 0 && steps_[--made_at] != steps_[k]) {
    }
    int64_t more = 0;
    size_t idle = k;  // from here on
    for (uint32_t b : now_replay_->touches()[made_at])
      if (now_.again[b] == made_at) {
        more += now_.bytes[b].size;
        idle = now_.bytes[b].touched_by.back() + 1;
      }
    for (uint32_t b : now_replay_->touches()[k])
      if (now_.again[b] != k && now_.bytes[b].touched_by.back() == k && !now_.bytes[b].kept)
        more -= now_.bytes[b].size;
    if (more <= 0) return true;
    return std::none_of(moments_.begin() + static_cast<long>(std::min(idle, k)),
                        moments_.begin() + static_cast<long>(k),
                        [&](const Replay::Moment& m) { return m.during + more > limit; });
  }

  const Region& region_;
  const Replay replay_;
  RecomputeGoal goal_;
  uint64_t budget_;
  Order steps_, order_;
  Region now_;  // with the copies of `steps_`
  std::optional<Replay> now_replay_;
  std::vector<Replay::Moment> moments_;
  int64_t peak_ = 0;
  size_t peak_at_ = 0;
  double spent_ = 0;
};

}  // namespace

Recomputed recompute(const Region& region, const Order& from, const RecomputeGoal& goal, uint64_t budget) {
  return Recomputer(region, goal, budget).run(from);
}

}  // namespace order
