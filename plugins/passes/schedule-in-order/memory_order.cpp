#include "memory_order.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace order {

namespace {

uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Orderer {
 public:
  Orderer(const Region& region, uint64_t budget)
      : region_(region),
        budget_(budget),
        count_(region.after.size()),
        next_(count_),
        makes_(count_, 0),
        touches_(count_) {
    for (uint32_t t = 0; t < count_; ++t)
      for (uint32_t a : region.after[t]) next_[a].push_back(t);
    for (uint32_t b = 0; b < region.bytes.size(); ++b) {
      makes_[region.bytes[b].maker] += region.bytes[b].size;
      for (uint32_t t : region.bytes[b].touched_by) touches_[t].push_back(b);
    }
  }

  Order run() {
    best_.resize(count_);
    std::iota(best_.begin(), best_.end(), 0);
    const Order deep = deepest_first();
    if (peak_of(deep) < peak_of(best_)) best_ = deep;
    std::vector<Stretch> stretches = cut();
    while (!stretches.empty()) {
      measure(&stretches);
      auto top = std::max_element(stretches.begin(), stretches.end(),
                                  [](const Stretch& a, const Stretch& b) { return a.peak < b.peak; });
      if (top->searched || top->peak <= forced_peak_) break;
      top->searched = true;
      improve(*top);
    }
    return best_;
  }

 private:
  // Places [begin, end) of every order, always with the same tasks.
  struct Stretch {
    size_t begin, end;
    int64_t peak = 0, live = 0;  // live: before it begins
    bool searched = false;
  };

  // What became ready last runs first: one branch is finished before the next is begun.
  Order deepest_first() const {
    std::vector<size_t> missing(count_);
    Order stack, order;
    for (uint32_t t = count_; t-- > 0;)
      if ((missing[t] = region_.after[t].size()) == 0) stack.push_back(t);
    while (!stack.empty()) {
      const uint32_t t = stack.back();
      stack.pop_back();
      order.push_back(t);
      for (size_t k = next_[t].size(); k-- > 0;)
        if (--missing[next_[t][k]] == 0) stack.push_back(next_[t][k]);
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
    for (uint32_t t = count_; t-- > 0;) {
      ++starts;
      is_source[t] = 1;
      for (uint32_t n : next_[t])
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

  // Runs tasks of `order` one after the other; calls `at(place, bytes while it runs, bytes after it)`.
  template <class At>
  void simulate(const Order& order, At&& at) const {
    std::vector<uint32_t> left(region_.bytes.size());
    for (size_t b = 0; b < left.size(); ++b)
      left[b] = static_cast<uint32_t>(region_.bytes[b].touched_by.size()) + region_.bytes[b].kept;
    int64_t live = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const int64_t during = live += makes_[order[k]];
      for (uint32_t b : touches_[order[k]])
        if (--left[b] == 0) live -= region_.bytes[b].size;
      at(k, during, live);
    }
  }

  int64_t peak_of(const Order& order) const {
    int64_t peak = 0;
    simulate(order, [&](size_t, int64_t during, int64_t) { peak = std::max(peak, during); });
    return peak;
  }

  void measure(std::vector<Stretch>* stretches) {
    size_t s = 0;
    int64_t before = 0;
    forced_peak_ = 0;
    for (Stretch& x : *stretches) x.peak = 0;
    simulate(best_, [&](size_t place, int64_t during, int64_t after) {
      while (s < stretches->size() && place >= (*stretches)[s].end) ++s;
      if (s < stretches->size() && place >= (*stretches)[s].begin) {
        Stretch& x = (*stretches)[s];
        if (place == x.begin) x.live = before;
        x.peak = std::max(x.peak, during);
      } else {
        forced_peak_ = std::max(forced_peak_, during);
      }
      before = after;
    });
  }

  // --- one stretch -----------------------------------------------------------------------------------------
  struct Set {  // of finished tasks of the stretch
    std::vector<uint64_t> bits;
    std::vector<uint32_t> ready;
    int64_t live, peak;
    uint64_t hash;
    uint32_t trace;
  };
  struct Candidate {
    uint32_t set, task;
    int64_t live, peak;
    uint64_t hash;
  };
  struct Trace {
    uint32_t before, task;
  };

  void improve(const Stretch& s) {
    first_ = s.begin;
    bool exact = false;
    int64_t peak = s.peak;
    for (size_t width = 8; !exact && budget_ > 0 && width <= kWidest; width *= 4)
      for (bool thrifty : {false, true}) {
        // A hopeless one would eat what others could use.
        if ((s.end - s.begin) * width * start(s).ready.size() > 4 * budget_) return;
        Order found;
        exact = layers(s, peak, width, thrifty, &found);
        if (!found.empty()) {
          std::copy(found.begin(), found.end(), best_.begin() + static_cast<long>(s.begin));
          std::vector<Stretch> one{s};
          measure(&one);
          peak = one[0].peak;
        }
        if (exact) break;
      }
  }

  // Whether the answer is final: a plan below `limit`, or none because there is none. `thrifty`: sets with
  // few bytes alive are kept, rather than those with a low peak so far.
  bool layers(const Stretch& s, int64_t limit, size_t width, bool thrifty, Order* found) {
    const size_t count = s.end - s.begin;
    std::vector<Trace> traces;
    std::vector<Set> sets{start(s)}, next;
    std::vector<Candidate> candidates;
    std::unordered_map<uint64_t, size_t> seen;
    bool exact = true;
    for (size_t layer = 0; layer < count; ++layer) {
      candidates.clear();
      seen.clear();
      for (uint32_t k = 0; k < sets.size(); ++k)
        for (uint32_t task : sets[k].ready) {
          if (budget_ == 0) return false;
          --budget_;
          const Candidate c = step(sets[k], k, task);
          if (c.peak >= limit) continue;
          const auto [at, fresh] = seen.emplace(c.hash, candidates.size());
          if (fresh)
            candidates.push_back(c);
          else if (c.peak < candidates[at->second].peak)
            candidates[at->second] = c;
        }
      if (candidates.empty()) return exact;
      auto better = [&](const Candidate& a, const Candidate& b) {
        const auto ka = thrifty ? std::pair(a.live, a.peak) : std::pair(a.peak, a.live);
        const auto kb = thrifty ? std::pair(b.live, b.peak) : std::pair(b.peak, b.live);
        if (ka != kb) return ka < kb;
        return std::pair(a.set, a.task) < std::pair(b.set, b.task);
      };
      if (candidates.size() > width) {
        exact = false;
        std::nth_element(candidates.begin(), candidates.begin() + static_cast<long>(width), candidates.end(),
                         better);
        candidates.resize(width);
      }
      std::sort(candidates.begin(), candidates.end(), better);
      next.clear();
      for (const Candidate& c : candidates) {
        traces.push_back({sets[c.set].trace, c.task});
        next.push_back(grown(sets[c.set], c, static_cast<uint32_t>(traces.size()) - 1));
      }
      sets.swap(next);
    }
    const auto best = std::min_element(sets.begin(), sets.end(),
                                       [](const Set& a, const Set& b) { return a.peak < b.peak; });
    for (uint32_t t = best->trace; t != UINT32_MAX; t = traces[t].before) found->push_back(traces[t].task);
    std::reverse(found->begin(), found->end());
    return exact;
  }

  bool has(const Set& set, uint32_t task) const {
    if (task < first_) return true;
    const size_t i = task - first_;
    return i < set.bits.size() * 64 && (set.bits[i / 64] >> (i % 64) & 1);
  }

  Set start(const Stretch& s) const {
    Set set{std::vector<uint64_t>((s.end - s.begin + 63) / 64, 0), {}, s.live, 0, 0, UINT32_MAX};
    for (uint32_t t = static_cast<uint32_t>(s.begin); t < s.end; ++t)
      if (std::all_of(region_.after[t].begin(), region_.after[t].end(),
                      [&](uint32_t a) { return a < first_; }))
        set.ready.push_back(t);
    return set;
  }

  Candidate step(const Set& set, uint32_t index, uint32_t task) const {
    const int64_t during = set.live + makes_[task];
    int64_t live = during;
    for (uint32_t b : touches_[task]) {
      const Bytes& bytes = region_.bytes[b];
      if (!bytes.kept && std::all_of(bytes.touched_by.begin(), bytes.touched_by.end(),
                                     [&](uint32_t t) { return t == task || has(set, t); }))
        live -= bytes.size;
    }
    return {index, task, live, std::max(set.peak, during), set.hash ^ mixed(task)};
  }

  Set grown(const Set& from, const Candidate& c, uint32_t trace) const {
    Set set{from.bits, {}, c.live, c.peak, c.hash, trace};
    const size_t i = c.task - first_;
    set.bits[i / 64] |= uint64_t{1} << (i % 64);
    set.ready.reserve(from.ready.size() + next_[c.task].size());
    for (uint32_t t : from.ready)
      if (t != c.task) set.ready.push_back(t);
    for (uint32_t t : next_[c.task])
      if ((t - first_) / 64 < set.bits.size() && std::all_of(region_.after[t].begin(), region_.after[t].end(),
                                                             [&](uint32_t a) { return has(set, a); }))
        set.ready.push_back(t);
    return set;
  }

  static constexpr size_t kWidest = 1 << 15;

  const Region& region_;
  uint64_t budget_;
  const size_t count_;
  std::vector<std::vector<uint32_t>> next_;
  std::vector<int64_t> makes_;                  // by task: bytes
  std::vector<std::vector<uint32_t>> touches_;  // by task: indices of bytes
  Order best_;
  int64_t forced_peak_ = 0;
  size_t first_ = 0;  // task with which the stretch at hand begins
};

}  // namespace

Order for_memory(const Region& region, uint64_t budget) { return Orderer(region, budget).run(); }

}  // namespace order
