#include "memory_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "order_search.h"

namespace order {

namespace {

constexpr size_t kLongest = 1024;  // tasks that are searched at once
constexpr size_t kWindow = 128;    // of a longer stretch, at first

class Orderer {
 public:
  Orderer(const Region& region, uint64_t budget)
      : region_(region), replay_(region), count_(region.count()), budget_(budget) {}

  Order run() {
    best_.resize(count_);
    std::iota(best_.begin(), best_.end(), 0);
    const int64_t least = least_peak(region_, replay_);
    measure();
    if (peak_ > least) {
      const Order deep = deepest_first();
      if (replay_.peak(deep, 0) < peak_) best_ = deep;
    }
    const std::vector<Stretch> stretches = cut();
    size_t window = kWindow;
    measure();
    while (peak_ > least && budget_ > count_) {
      budget_ -= count_;
      const auto in = std::find_if(stretches.begin(), stretches.end(),
                                   [&](const Stretch& s) { return s.begin <= peak_at_ && peak_at_ < s.end; });
      if (in == stretches.end()) break;
      const bool whole = in->end - in->begin <= kLongest;
      const Stretch part = whole ? *in : around(*in, window);
      const int64_t peak = peak_;
      const size_t peaks = peaks_;
      improve(part, least);
      measure();
      if (peak_ < peak || (peak_ == peak && peaks_ < peaks)) continue;
      if (whole || (window *= 2) > kLongest) break;
    }
    return best_;
  }

 private:
  // Places [begin, end) of every order, always with the same tasks.
  struct Stretch {
    size_t begin, end;
  };

  // What became ready last runs first: one branch is finished before the next is begun.
  Order deepest_first() const {
    std::vector<size_t> missing(count_);
    Order stack, order;
    for (uint32_t t = static_cast<uint32_t>(count_); t-- > 0;)
      if ((missing[t] = region_.after[t].size()) == 0) stack.push_back(t);
    while (!stack.empty()) {
      const uint32_t t = stack.back();
      stack.pop_back();
      order.push_back(t);
      const std::vector<uint32_t>& next = replay_.next()[t];
      for (size_t k = next.size(); k-- > 0;)
        if (--missing[next[k]] == 0) stack.push_back(next[k]);
    }
    return order;
  }

  // A task that all before it lead to and that leads to all after it has one place in every order.
  std::vector<Stretch> cut() const {
    std::vector<uint8_t> has_next(count_, 0), forced(count_, 0), is_source(count_, 0);
    size_t ends = 0, starts = 0;
    for (uint32_t t = 0; t < count_; ++t) {
      ++ends;
      for (uint32_t a : region_.after[t])
        if (!has_next[a]) {
          has_next[a] = 1;
          --ends;
        }
      forced[t] = ends == 1;
    }
    for (uint32_t t = static_cast<uint32_t>(count_); t-- > 0;) {
      ++starts;
      is_source[t] = 1;
      for (uint32_t n : replay_.next()[t])
        if (is_source[n]) {
          is_source[n] = 0;
          --starts;
        }
      forced[t] &= starts == 1;
    }
    std::vector<Stretch> stretches;
    for (size_t t = 0; t < count_;) {
      size_t end = t;
      while (end < count_ && !forced[end]) ++end;
      if (end > t + 1) stretches.push_back({t, end});
      t = std::max(end, t + 1);
    }
    return stretches;
  }

  Stretch around(const Stretch& s, size_t length) const {
    const size_t begin = std::max(s.begin, peak_at_ > length / 2 ? peak_at_ - length / 2 : 0);
    return {begin, std::min(s.end, begin + length)};
  }

  void measure() {
    moments_ = replay_.run(best_, 0);
    peak_ = peak_at_ = peaks_ = 0;
    for (size_t k = 0; k < moments_.size(); ++k) {
      if (moments_[k].during > peak_) {
        peak_ = moments_[k].during;
        peak_at_ = k;
        peaks_ = 0;
      }
      peaks_ += moments_[k].during == peak_;
    }
  }

  // Brings the stretch below the peak of the whole, and further down if that is easily had.
  void improve(const Stretch& s, int64_t least) {
    const Region part = part_of(region_, replay_, best_, s.begin, s.end);
    const int64_t live = s.begin == 0 ? 0 : moments_[s.begin - 1].after;
    int64_t limit = 0;
    for (size_t k = s.begin; k < s.end; ++k) limit = std::max(limit, moments_[k].during);
    Order order(best_.begin() + static_cast<long>(s.begin), best_.begin() + static_cast<long>(s.end));
    const Order tasks = order;
    const Replay replay(part);
    uint64_t budget = budget_ / 2;
    const uint64_t given = budget;
    for (size_t width = 4; budget > 0; width *= 4) {
      // Great steps down first: how far a beam of this width comes.
      int64_t step = (limit - least) / 8;
      Found found = Found::kOrder;
      while (budget > 0 && limit > least) {
        Order better;
        found = order_below(part, live, limit - step, {width}, &budget, &better);
        if (found == Found::kOrder) {
          for (size_t k = 0; k < better.size(); ++k) order[k] = tasks[better[k]];
          limit = replay.peak(better, live);
          step = std::min(step, (limit - least) / 8);
        } else if (step == 0) {
          break;
        } else {
          if (found == Found::kNoSuchOrder) least = limit - step;
          step /= 4;
        }
      }
      if (found == Found::kNoSuchOrder || limit <= least) break;
    }
    budget_ -= given - budget;
    std::copy(order.begin(), order.end(), best_.begin() + static_cast<long>(s.begin));
  }

  const Region& region_;
  const Replay replay_;
  const size_t count_;
  uint64_t budget_;
  Order best_;
  std::vector<Replay::Moment> moments_;  // of `best_`
  int64_t peak_ = 0;
  size_t peak_at_ = 0, peaks_ = 0;  // the first place of the peak; how many there are
};

}  // namespace

Order for_memory(const Region& region, uint64_t budget) { return Orderer(region, budget).run(); }

}  // namespace order
