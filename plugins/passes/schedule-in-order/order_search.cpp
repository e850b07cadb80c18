#include "order_search.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace order {

namespace {

class Search {
 public:
  Search(const Region& region, int64_t live, int64_t limit, const Beam& beam, uint64_t* budget)
      : region_(region),
        count_(region.count()),
        live_(live),
        limit_(limit),
        beam_(beam),
        budget_(*budget),
        tasks_(count_) {
    const Replay replay(region);
    for (const Bytes& b : region.bytes)
      first_.left.push_back(static_cast<uint32_t>(b.touched_by.size() + b.kept) << 1 | b.begun);
    for (uint32_t t = 0; t < count_; ++t) {
      Task& task = tasks_[t];
      task.next = replay.next()[t];
      task.touches = replay.touches()[t];
      for (const Overwrite& o : replay.overwrites()[t]) {
        const auto made = std::find(task.touches.begin(), task.touches.end(), o.made) - task.touches.begin();
        const auto over = std::find(task.touches.begin(), task.touches.end(), o.over) - task.touches.begin();
        if (made < 64 && over < 64)
          task.overwrites.push_back({uint64_t{1} << made, uint64_t{1} << over, region.bytes[o.made].size});
      }
    }
  }

  Found run(Order* found) {
    layers_.resize(count_ + 1);
    first_.bits.assign((count_ + 63) / 64, 0);
    first_.live = live_;
    for (uint32_t t = 0; t < count_; ++t)
      if (region_.after[t].empty()) first_.ready.push_back(t);
    settle(&first_);
    keep(std::move(first_));
    for (size_t done = 0; done < count_; ++done) {
      std::vector<Set> sets = std::move(layers_[done].sets);
      layers_[done] = {};
      cut(&sets, beam_.width);
      for (const Set& s : sets)
        for (const uint32_t t : s.ready) {
          if (budget_ == 0) return Found::kNothing;
          const Step step = look(s, t);
          if (step.during >= limit_) continue;
          Set grown = s;
          apply(&grown, t, step);
          settle(&grown);
          keep(std::move(grown));
        }
    }
    if (layers_[count_].sets.empty()) return exact_ ? Found::kNoSuchOrder : Found::kNothing;
    for (uint32_t t = layers_[count_].sets[0].trace; t != UINT32_MAX; t = traces_[t].before)
      found->push_back(traces_[t].task);
    std::reverse(found->begin(), found->end());
    return Found::kOrder;
  }

 private:
  struct Task {
    std::vector<uint32_t> next, touches;
    struct Over {
      uint64_t made, over;  // bits by place in `touches`
      int64_t size;
    };
    std::vector<Over> overwrites;
  };
  struct Set {  // of finished tasks
    std::vector<uint64_t> bits;
    std::vector<uint32_t> ready;
    std::vector<uint32_t>
        left;  // by bytes: how many tasks are still to touch them, twice; odd: they are alive
    int64_t live = 0, rank = 0;
    uint64_t hash = 0;
    size_t done = 0;
    uint32_t trace = UINT32_MAX;
  };
  struct Layer {
    std::vector<Set> sets;
    std::unordered_set<uint64_t> seen;
  };
  struct Trace {
    uint32_t before, task;
  };
  struct Step {
    int64_t during, after;
  };

  static bool has(const Set& s, uint32_t t) { return s.bits[t / 64] >> (t % 64) & 1; }

  Step look(const Set& s, uint32_t t) {
    if (budget_ > 0) --budget_;
    const Task& task = tasks_[t];
    Step step{s.live + region_.room[t], s.live};
    uint64_t born = 0, dies = 0;
    for (size_t k = 0; k < task.touches.size(); ++k) {
      const uint32_t left = s.left[task.touches[k]];
      const int64_t size = region_.bytes[task.touches[k]].size;
      const bool alive = left & 1, last = left >> 1 == 1;
      if (!alive) step.during += size;
      if (alive == last) step.after += alive ? -size : size;
      if (k < 64 && alive == last) (alive ? dies : born) |= uint64_t{1} << k;
    }
    for (const Task::Over& o : task.overwrites) {
      if (!(born & o.made) || !(dies & o.over)) continue;
      born &= ~o.made;
      dies &= ~o.over;
      step.during -= o.size;
    }
    return step;
  }

  void apply(Set* s, uint32_t t, const Step& step) {
    s->bits[t / 64] |= uint64_t{1} << (t % 64);
    s->ready.erase(std::find(s->ready.begin(), s->ready.end(), t));
    for (uint32_t b : tasks_[t].touches) s->left[b] = (s->left[b] - 2) | 1;
    for (uint32_t n : tasks_[t].next)
      if (std::all_of(region_.after[n].begin(), region_.after[n].end(),
                      [&](uint32_t a) { return has(*s, a); }))
        s->ready.push_back(n);
    s->live = step.after;
    s->hash ^= mixed(t);
    ++s->done;
    traces_.push_back({s->trace, t});
    s->trace = static_cast<uint32_t>(traces_.size()) - 1;
  }

  // Runs what can only be of use, and ranks what is left.
  void settle(Set* s) {
    for (bool again = true; again && budget_ > 0;) {
      again = false;
      s->rank = INT64_MAX;
      for (const uint32_t t : s->ready) {
        const Step step = look(*s, t);
        if (step.during >= limit_) continue;
        if (step.after <= s->live) {
          apply(s, t, step);
          again = true;
          break;
        }
        s->rank = std::min(s->rank, step.after);
      }
    }
    if (s->done == count_) s->rank = 0;
  }

  void keep(Set s) {
    if (s.rank == INT64_MAX) return;  // leads nowhere
    Layer& layer = layers_[s.done];
    if (!layer.seen.insert(s.hash).second) return;
    layer.sets.push_back(std::move(s));
    if (layer.sets.size() > 8 * beam_.width) cut(&layer.sets, 4 * beam_.width);
  }

  void cut(std::vector<Set>* sets, size_t width) {
    if (sets->size() <= width) return;
    exact_ = false;
    std::nth_element(sets->begin(), sets->begin() + static_cast<long>(width), sets->end(),
                     [](const Set& a, const Set& b) {
                       return std::tie(a.rank, a.live, a.hash) < std::tie(b.rank, b.live, b.hash);
                     });
    sets->resize(width);
  }

  const Region& region_;
  const size_t count_;
  const int64_t live_, limit_;
  const Beam beam_;
  uint64_t& budget_;
  bool exact_ = true;
  std::vector<Task> tasks_;
  Set first_;
  std::vector<Layer> layers_;  // by number of finished tasks
  std::vector<Trace> traces_;
};

}  // namespace

Found order_below(const Region& region, int64_t live, int64_t limit, const Beam& beam, uint64_t* budget,
                  Order* found) {
  found->clear();
  return Search(region, live, limit, beam, budget).run(found);
}

}  // namespace order
