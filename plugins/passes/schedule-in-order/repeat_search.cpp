#include "repeat_search.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace order {

namespace {

constexpr size_t kParts = 5;    // of the cost that may be spent, for the beam
constexpr size_t kDropped = 3;  // values at once, to make room for one task

class Search {
 public:
  Search(const Region& region, int64_t live, const RepeatLimits& limits, uint64_t* budget)
      : region_(region),
        replay_(region),
        count_(region.count()),
        live_(live),
        limits_(limits),
        budget_(*budget) {}

  bool run(Order* steps) {
    layers_.resize(count_ + 1);
    Set first;
    first.done.assign(count_, 0);
    first.live = live_;
    for (const Bytes& b : region_.bytes)
      first.left.push_back(static_cast<uint32_t>(b.touched_by.size() + b.kept) << 1 | b.begun);
    for (uint32_t t = 0; t < count_; ++t)
      if (region_.after[t].empty()) first.ready.push_back(t);
    settle(&first);
    keep(std::move(first));
    for (size_t done = 0; done < count_; ++done) {
      std::vector<Set> sets = std::move(layers_[done].sets);
      layers_[done] = {};
      cut(&sets, limits_.width);
      for (const Set& s : sets) {
        if (budget_ == 0) return false;
        grow(s);
      }
    }
    const std::vector<Set>& ends = layers_[count_].sets;
    if (ends.empty()) return false;
    const Set& best = *std::min_element(ends.begin(), ends.end(),
                                        [](const Set& a, const Set& b) { return a.spent < b.spent; });
    steps->clear();
    for (uint32_t t = best.trace; t != UINT32_MAX; t = traces_[t].before) steps->push_back(traces_[t].task);
    std::reverse(steps->begin(), steps->end());
    return true;
  }

 private:
  struct Set {                  // of finished tasks
    std::vector<uint8_t> done;  // by task
    std::vector<uint32_t> ready;
    // By bytes: how many runs are still to touch them, twice; odd: they have begun. 1: they are gone.
    std::vector<uint32_t> left;
    std::vector<uint32_t> dropped;  // bytes, to be made once more
    int64_t live = 0, rank = 0;
    double spent = 0;
    uint64_t hash = 0;
    size_t finished = 0;
    uint32_t trace = UINT32_MAX;
  };
  struct Layer {
    std::vector<Set> sets;
    std::unordered_map<uint64_t, size_t> at;  // by hash
  };
  struct Trace {
    uint32_t before, task;
  };
  struct Step {
    int64_t during, after;
  };

  static bool alive(const Set& s, uint32_t b) { return (s.left[b] & 1) && s.left[b] > 1; }
  static bool is_dropped(const Set& s, uint32_t b) {
    return std::find(s.dropped.begin(), s.dropped.end(), b) != s.dropped.end();
  }
  bool lacks(const Set& s, uint32_t t) const {
    if (s.dropped.empty()) return false;
    const std::vector<uint32_t>& touches = replay_.touches()[t];
    return std::any_of(touches.begin(), touches.end(), [&](uint32_t b) { return is_dropped(s, b); });
  }

  Step look(const Set& s, uint32_t t) {
    if (budget_ > 0) --budget_;
    Step step{s.live + region_.room[t], s.live};
    for (uint32_t b : replay_.touches()[t]) {
      const int64_t size = region_.bytes[b].size;
      const bool begun = s.left[b] & 1, last = s.left[b] >> 1 == 1;
      if (!begun) step.during += size;
      if (begun == last) step.after += begun ? -size : size;
    }
    uint32_t made = UINT32_MAX;
    over_.clear();
    for (const Overwrite& o : replay_.overwrites()[t]) {
      const uint32_t left_made = s.left[o.made], left_over = s.left[o.over];
      if (o.made == made || (left_made & 1) || left_made >> 1 == 1) continue;
      if (!(left_over & 1) || left_over >> 1 != 1) continue;
      if (std::find(over_.begin(), over_.end(), o.over) != over_.end()) continue;
      over_.push_back(o.over);
      made = o.made;
      step.during -= region_.bytes[o.made].size;
    }
    return step;
  }

  // `t` runs; what it touches has not been dropped, but for what it makes.
  void apply(Set* s, uint32_t t, const Step& step) {
    for (uint32_t b : replay_.touches()[t]) s->left[b] = (s->left[b] - 2) | 1;
    s->live = step.after;
    traces_.push_back({s->trace, t});
    s->trace = static_cast<uint32_t>(traces_.size()) - 1;
    if (s->done[t]) return;
    s->done[t] = 1;
    s->ready.erase(std::find(s->ready.begin(), s->ready.end(), t));
    for (uint32_t n : replay_.next()[t])
      if (!s->done[n] && std::all_of(region_.after[n].begin(), region_.after[n].end(),
                                     [&](uint32_t a) { return s->done[a] != 0; }))
        s->ready.push_back(n);
    s->hash ^= mixed(t);
    ++s->finished;
  }

  // Makes once more what `t` touches, and what that needs; false: that is not below the limit.
  bool make_again(Set* s, uint32_t t) {
    for (uint32_t b : replay_.touches()[t])
      if (is_dropped(*s, b) && !make(s, b)) return false;
    return true;
  }
  bool make(Set* s, uint32_t b) {
    const uint32_t maker = region_.again[b];
    for (uint32_t o : replay_.touches()[maker])
      if (o != b && is_dropped(*s, o) && !make(s, o)) return false;
    const Step step = look(*s, maker);
    if (step.during >= limits_.limit) return false;
    s->dropped.erase(std::find(s->dropped.begin(), s->dropped.end(), b));
    s->hash ^= mixed(count_ + b);
    apply(s, maker, step);
    return true;
  }

  // The bytes are gone until they are made again; false: they cannot be, or that costs too much.
  bool drop(Set* s, uint32_t b) {
    const uint32_t maker = region_.again[b];
    const bool was_alive = alive(*s, b);
    s->spent += region_.cost[maker];
    if (s->spent > limits_.cost) return false;
    s->left[b] = was_alive ? ((s->left[b] >> 1) + 1) << 1 : 4;
    if (was_alive) s->live -= region_.bytes[b].size;
    s->dropped.push_back(b);
    s->hash ^= mixed(count_ + b);
    for (uint32_t o : replay_.touches()[maker]) {
      if (o == b) continue;
      if (alive(*s, o) || is_dropped(*s, o)) {
        s->left[o] += 2;
      } else if (s->left[o] != 1 || !may_drop(o) || !drop(s, o)) {
        return false;
      }
    }
    return true;
  }
  bool may_drop(uint32_t b) const {
    return region_.again[b] != Region::kNoTask && !region_.bytes[b].begun && !region_.bytes[b].kept &&
           region_.bytes[b].size > 0;
  }

  // Large sets take longer to copy than a task takes to look at.
  Set copy(const Set& s) {
    budget_ -= std::min<uint64_t>(budget_, (count_ + region_.bytes.size()) / 64);
    return s;
  }

  // `t` after `s` with what it lacks, if that is below the limit.
  bool extend(const Set& s, uint32_t t) {
    std::optional<Set> grown;
    if (lacks(s, t)) {
      grown = copy(s);
      if (!make_again(&*grown, t)) return false;
    }
    const Step step = look(grown ? *grown : s, t);
    if (step.during >= limits_.limit) return false;
    if (!grown) grown = copy(s);
    apply(&*grown, t, step);
    settle(&*grown);
    keep(std::move(*grown));
    return true;
  }

  void grow(const Set& s) {
    std::vector<uint32_t> tight;
    for (uint32_t t : s.ready)
      if (!extend(s, t)) tight.push_back(t);
    if (!tight.empty() && s.spent < limits_.cost) make_room(s, tight, 0, 1, tight.size() == s.ready.size());
  }

  // What does not fit is tried with idle values dropped: one, or more if otherwise nothing goes on.
  void make_room(const Set& s, const std::vector<uint32_t>& tight, uint32_t from, size_t dropped,
                 bool stuck) {
    std::vector<std::pair<uint32_t, Set>> tried;
    bool fits = false;
    for (uint32_t b = from; b < region_.bytes.size() && budget_ > 0; ++b) {
      if (!alive(s, b) || !may_drop(b) || is_dropped(s, b)) continue;
      Set less = copy(s);
      if (!drop(&less, b)) continue;
      for (uint32_t t : tight) {
        const std::vector<uint32_t>& touches = replay_.touches()[t];
        if (std::find(touches.begin(), touches.end(), b) == touches.end()) fits |= extend(less, t);
      }
      if (stuck && dropped < kDropped) tried.emplace_back(b, std::move(less));
    }
    if (fits) return;
    for (const auto& [b, less] : tried)
      if (budget_ > 0) make_room(less, tight, b + 1, dropped + 1, true);
  }

  // Runs what can only be of use, and ranks what is left.
  void settle(Set* s) {
    for (bool again = true; again && budget_ > 0;) {
      again = false;
      s->rank = INT64_MAX;
      for (const uint32_t t : s->ready) {
        if (lacks(*s, t)) {
          s->rank = std::min(s->rank, s->live);
          continue;
        }
        const Step step = look(*s, t);
        const int64_t over = std::max<int64_t>(0, step.during - limits_.limit + 1);
        if (over == 0 && step.after <= s->live) {
          apply(s, t, step);
          again = true;
          break;
        }
        s->rank = std::min(s->rank, step.after + over);
      }
      for (size_t k = 0; !again && k < s->dropped.size(); ++k) {
        const uint32_t maker = region_.again[s->dropped[k]];
        const uint32_t bytes = s->dropped[k];
        const std::vector<uint32_t>& reads = replay_.touches()[maker];
        if (std::any_of(reads.begin(), reads.end(),
                        [&](uint32_t o) { return o != bytes && is_dropped(*s, o); }))
          continue;
        const Step step = look(*s, maker);
        if (step.during >= limits_.limit || step.after > s->live) continue;
        again = make(s, bytes);
      }
    }
    if (s->finished == count_) s->rank = 0;
  }

  void keep(Set s) {
    if (s.rank == INT64_MAX) return;  // leads nowhere
    Layer& layer = layers_[s.finished];
    const auto [at, fresh] = layer.at.emplace(s.hash, layer.sets.size());
    if (!fresh) {
      Set& other = layer.sets[at->second];
      if (s.spent < other.spent) other = std::move(s);
      return;
    }
    layer.sets.push_back(std::move(s));
    if (layer.sets.size() <= 8 * limits_.width) return;
    cut(&layer.sets, 4 * limits_.width);
    layer.at.clear();
    for (size_t k = 0; k < layer.sets.size(); ++k) layer.at.emplace(layer.sets[k].hash, k);
  }

  // With `parts`, each part of the cost that may be spent has its own best sets: those that have spent more
  // mostly have fewer bytes alive, and push out what has still something to spend.
  void cut(std::vector<Set>* sets, size_t width) const {
    if (sets->size() <= width) return;
    const auto part = [&](const Set& s) {
      return limits_.parts ? static_cast<size_t>(s.spent / limits_.cost * (kParts - 1)) : 0;
    };
    std::sort(sets->begin(), sets->end(), [&](const Set& a, const Set& b) {
      return std::tuple(part(a), a.rank, a.spent, a.live, a.hash) <
             std::tuple(part(b), b.rank, b.spent, b.live, b.hash);
    });
    const size_t most = limits_.parts ? std::max<size_t>(1, width / (kParts - 1)) : width;
    size_t kept = 0, of_part = 0;
    for (size_t k = 0, last = kParts; k < sets->size(); ++k) {
      const size_t now = part((*sets)[k]);
      of_part = now == last ? of_part + 1 : 0;
      last = now;
      if (of_part >= most) continue;
      if (kept != k) (*sets)[kept] = std::move((*sets)[k]);
      ++kept;
    }
    sets->resize(kept);
  }

  const Region& region_;
  const Replay replay_;
  const size_t count_;
  const int64_t live_;
  const RepeatLimits limits_;
  uint64_t& budget_;
  std::vector<uint32_t> over_;
  std::vector<Layer> layers_;  // by number of finished tasks
  std::vector<Trace> traces_;
};

}  // namespace

bool steps_below(const Region& region, int64_t live, const RepeatLimits& limits, uint64_t* budget,
                 Order* steps) {
  if (region.again.empty()) return false;
  return Search(region, live, limits, budget).run(steps);
}

}  // namespace order
