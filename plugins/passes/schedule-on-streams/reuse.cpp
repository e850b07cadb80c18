#include "reuse.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "events.h"
#include "fit.h"
#include "predict.h"
#include "turns.h"

namespace streams {

namespace {

// The planner is asked about every set where there is so little to plan; else sets are ranked by fit().
constexpr size_t kSmall = 48;           // tasks and buffers
constexpr double kFitted = 10'000'000;  // divided by pairs of buffers, that a fit looks at
constexpr double kPredicted = 250'000;  // divided by tasks and buffers
constexpr size_t kFewestPlanned = 10, kMostPlanned = 256, kPruning = 24, kTold = 16;
constexpr size_t kFewestPredicted = 100, kMostPredicted = 4000;
constexpr int kRounds = 8, kDeepest = 4;
constexpr size_t kSingles = 24, kCandidates = 256, kRefused = 16;
constexpr double kSame = 1e-9;  // of the objective: rounding

using Set = std::vector<uint32_t>;  // of turns, ascending

class Weigher {
 public:
  Weigher(const Network& network, const Schedule& schedule, const std::vector<Buffer>& buffers,
          const Planner& planner, const ReuseGoal& goal)
      : n_(network),
        base_(schedule),
        buffers_(buffers),
        planner_(planner),
        goal_(goal),
        always_(network, schedule, {}),
        needs_(network),
        turns_(buffers, always_),
        small_(network.tasks.size() + buffers.size() <= kSmall) {
    const double size = static_cast<double>(n_.tasks.size() + buffers_.size() + 1);
    const double pairs = static_cast<double>(buffers_.size() * buffers_.size() + 1);
    planned_left_ = std::clamp(static_cast<size_t>(kFitted / pairs), kFewestPlanned, kMostPlanned);
    predicted_left_ = std::clamp(static_cast<size_t>(kPredicted / size), kFewestPredicted, kMostPredicted);
  }

  Reuse run() {
    const Outcome* none = planned({});
    const Outcome* best = none;
    made_.ns_before = none->ns;
    made_.bytes_before = none->plan->bytes;
    if (!met(*none)) best = try_every(*none) ? best_ : search(none);
    refuse(*none, *best);
    if (best != none) best = confirmed(none, best);
    if (best != none)
      for (uint32_t t : best->set) tell(t, *best);
    made_.schedule = best->schedule;
    made_.events = best->events;
    made_.ns = best->ns;
    made_.bytes = best->plan->bytes;
    return std::move(made_);
  }

 private:
  struct Outcome {
    Set set;
    Schedule schedule;
    std::vector<Event> events;
    double ns = 0;
    std::shared_ptr<const Plan> plan;   // null: not yet
    std::shared_ptr<const Plan> first;  // as sets were compared, where `plan` was made with more effort
  };

  Reuse::Weighed compared(uint32_t turn, const Outcome& without, const Outcome& with) const {
    const auto bytes = [](const Outcome& o) {
      return static_cast<int64_t>(o.first ? o.first->bytes : o.plan->bytes);
    };
    return {list_[turn], bytes(without) - bytes(with), with.ns - without.ns, true};
  }

  uint32_t number(Turn t) {
    const auto [at, fresh] = numbers_.try_emplace({t.first, t.second}, static_cast<uint32_t>(list_.size()));
    if (fresh) list_.push_back(t);
    return at->second;
  }

  static Set joined(Set set, uint32_t turn) {
    set.insert(std::lower_bound(set.begin(), set.end(), turn), turn);
    return set;
  }

  // Null: a cycle, too slow, too many events at once, or there is no time left to find out.
  Outcome* timed(const Set& set) {
    const auto [at, fresh] = outcomes_.try_emplace(set);
    if (!fresh) return at->second.get();
    if (!set.empty() && predicted_left_ == 0) {
      outcomes_.erase(at);
      return nullptr;
    }
    predicted_left_ -= !set.empty();
    std::vector<Event> more;
    for (uint32_t t : set) turns_.waits(list_[t], &more);
    std::optional<Schedule> schedule = with_waits(n_, base_, more);
    if (!schedule) return nullptr;
    for (const Event& e : more) needs_.tasks[e.to].after.push_back(e.from);
    auto made = std::make_unique<Outcome>();
    made->set = set;
    made->schedule = std::move(*schedule);
    made->events = fewest_events(needs_, made->schedule);
    for (const Event& e : more) needs_.tasks[e.to].after.pop_back();
    made->ns = predict(n_, made->schedule, made->events);
    if (!set.empty() &&
        (made->ns > goal_.most_ns || (goal_.allowed && !goal_.allowed(made->schedule, made->events))))
      return nullptr;
    at->second = std::move(made);
    return at->second.get();
  }

  const Outcome* planned(const Set& set) {
    Outcome* o = timed(set);
    if (!o || o->plan) return o;
    // Of what orders the same the plan is the same.
    std::vector<std::pair<uint32_t, uint32_t>> key;
    for (const Event& e : o->events) key.emplace_back(e.from, e.to);
    std::shared_ptr<const Plan>& plan = plans_[key];
    if (!plan) {
      if (!set.empty() && planned_left_ == 0) return nullptr;
      planned_left_ -= !set.empty();
      plan = std::make_shared<const Plan>(
          small_ ? planner_(o->schedule, o->events, false)
                 : fit(buffers_, turns_, Before(n_, o->schedule, o->events), o->schedule));
      ++made_.weighed;
    }
    o->plan = plan;
    return o;
  }

  // That waiting makes something sooner, as engines then do things in a luckier order, is nothing to count
  // on.
  double objective(const Outcome& o) const {
    const double bytes =
        made_.bytes_before ? static_cast<double>(o.plan->bytes) / static_cast<double>(made_.bytes_before) : 1;
    return (goal_.worth > 0 ? bytes / goal_.worth : bytes) +
           (made_.ns_before > 0 ? std::max(o.ns, made_.ns_before) / made_.ns_before : 1);
  }

  bool better(const Outcome& a, const Outcome& b) const {
    if (goal_.limit) {
      const auto key = [&](const Outcome& o) {
        return std::tuple(o.plan->bytes - std::min(o.plan->bytes, goal_.limit), o.ns, o.plan->bytes,
                          o.set.size(), o.events.size());
      };
      return key(a) < key(b);
    }
    const double x = objective(a), y = objective(b);
    if (std::abs(x - y) > kSame) return x < y;
    return std::tuple(a.set.size(), a.events.size(), a.ns) < std::tuple(b.set.size(), b.events.size(), b.ns);
  }

  bool met(const Outcome& o) const { return goal_.limit && o.plan->bytes <= goal_.limit; }

  // Where there are so few turns that every set of them can be planned.
  bool try_every(const Outcome& none) {
    size_t most = 0;
    while ((size_t{2} << most) <= planned_left_) ++most;
    std::vector<Turn> all;
    for (uint32_t a = 0; a < buffers_.size(); ++a)
      for (uint32_t b = 0; b < buffers_.size(); ++b)
        if (turns_.possible(always_, {a, b})) {
          if (all.size() == most) return false;
          all.push_back({a, b});
        }
    for (Turn t : all) number(t);
    best_ = &none;
    for (uint32_t bits = 1; bits < uint32_t{1} << all.size(); ++bits) {
      Set set;
      for (uint32_t t = 0; t < all.size(); ++t)
        if (bits >> t & 1) set.push_back(t);
      if (const Outcome* o = planned(set); o && better(*o, *best_)) best_ = o;
    }
    made_.every = small_;
    return true;
  }

  // Turns between those who hold the peak, the largest first.
  std::vector<uint32_t> candidates(const Outcome& o) {
    const Before before(n_, o.schedule, o.events);
    const std::vector<uint32_t> stack = turns_.stack(before, *o.plan);
    std::vector<std::pair<uint64_t, Turn>> found;
    for (uint32_t a : stack)
      for (uint32_t b : stack)
        if (turns_.possible(before, {a, b}) && !turns_.apart(before, a, b))
          found.push_back({std::min(buffers_[a].size, buffers_[b].size), {a, b}});
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
    if (found.size() > kCandidates) found.resize(kCandidates);
    std::vector<uint32_t> numbers;
    for (const auto& [size, turn] : found) numbers.push_back(number(turn));
    return numbers;
  }

  // Those that can be added, the ones that take the least time first.
  std::vector<std::pair<double, uint32_t>> cheapest(const Outcome& o) {
    std::vector<std::pair<double, uint32_t>> found;
    for (uint32_t t : candidates(o))
      if (const Outcome* with = timed(joined(o.set, t))) found.emplace_back(with->ns, t);
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    return found;
  }

  const Outcome* search(const Outcome* current) {
    for (int round = 0; round < kRounds && !met(*current); ++round) {
      const Outcome* best = current;
      const auto consider = [&](const Outcome* o) {
        if (o && better(*o, *best)) best = o;
      };
      const auto found = cheapest(*current);
      // The peak may be held in several places, so that one turn alone saves nothing.
      for (const double share : {0.0, 0.25, 1.0}) {
        const double most = current->ns + share * std::max(0.0, goal_.most_ns - current->ns);
        const Outcome* bundle = current;
        for (int depth = 0; depth < kDeepest; ++depth) {
          const Outcome* wider = bundle;
          for (const auto& [ns, t] : depth ? cheapest(*bundle) : found) {
            const Outcome* with = timed(joined(wider->set, t));
            if (with && with->ns <= most) wider = with;
          }
          if (wider == bundle) break;
          bundle = planned(wider->set);
          if (!bundle) break;
          consider(bundle);
          if (met(*bundle)) break;
        }
      }
      for (size_t k = 0; k < found.size() && k < kSingles; ++k)
        consider(planned(joined(current->set, found[k].second)));
      if (best == current) break;
      current = pruned(best);
    }
    return current;
  }

  // Without those that the rest does as well without: many at once, then fewer.
  const Outcome* pruned(const Outcome* o) {
    // However much the search took.
    planned_left_ += std::min(o->set.size(), kPruning);
    predicted_left_ += std::min(o->set.size(), kPruning);
    for (size_t many = std::max<size_t>(1, o->set.size() / 2);; many = many / 2) {
      for (size_t at = 0; at < o->set.size() && o->set.size() > 1;) {
        Set fewer = o->set;
        const auto from = fewer.begin() + static_cast<long>(at);
        fewer.erase(from, from + static_cast<long>(std::min(many, fewer.size() - at)));
        const Outcome* without = planned(fewer);
        if (without && better(*without, *o))
          o = without;
        else
          at += many;
      }
      if (many <= 1) return o;
    }
  }

  // With the effort of the plan that counts, the choice must hold as well.
  const Outcome* confirmed(const Outcome* none, const Outcome* best) {
    const auto plan = [&](const Outcome* o) {
      outcomes_[o->set]->first = o->plan;
      outcomes_[o->set]->plan = std::make_shared<const Plan>(planner_(o->schedule, o->events, true));
    };
    plan(best);
    if (goal_.limit) return best;  // who asked for that looks at what became of it
    plan(none);
    made_.bytes_before = none->plan->bytes;
    return better(*best, *none) ? best : none;
  }

  void tell(uint32_t turn, const Outcome& taken) {
    if (made_.taken.size() >= kTold) {
      made_.taken.push_back({list_[turn], 0, 0, false});
      return;
    }
    Set without = taken.set;
    without.erase(std::find(without.begin(), without.end(), turn));
    ++planned_left_;
    ++predicted_left_;
    const Outcome* o = planned(without);  // null: it is another that allows this one's order
    made_.taken.push_back(o ? compared(turn, *o, taken) : Reuse::Weighed{list_[turn], 0, 0, false});
  }

  void refuse(const Outcome& none, const Outcome& best) {
    for (const auto& [set, o] : outcomes_)
      if (o && o->plan && set.size() == 1 && !std::count(best.set.begin(), best.set.end(), set[0]))
        made_.refused.push_back(compared(set[0], none, *o));
    std::stable_sort(made_.refused.begin(), made_.refused.end(), [](const auto& a, const auto& b) {
      return std::tuple(-a.bytes, a.ns) < std::tuple(-b.bytes, b.ns);
    });
    if (made_.refused.size() > kRefused) made_.refused.resize(kRefused);
  }

  const Network& n_;
  const Schedule& base_;
  const std::vector<Buffer>& buffers_;
  const Planner& planner_;
  const ReuseGoal& goal_;
  const Before always_;
  Network needs_;  // with what the turns at hand wait for
  const Turns turns_;
  const bool small_;
  std::vector<Turn> list_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers_;
  std::map<Set, std::unique_ptr<Outcome>> outcomes_;
  std::map<std::vector<std::pair<uint32_t, uint32_t>>, std::shared_ptr<const Plan>> plans_;
  size_t planned_left_ = 0, predicted_left_ = 0;
  const Outcome* best_ = nullptr;
  Reuse made_;
};

}  // namespace

Reuse weigh_reuse(const Network& network, const Schedule& schedule, const std::vector<Buffer>& buffers,
                  const Planner& planner, const ReuseGoal& goal) {
  return Weigher(network, schedule, buffers, planner, goal).run();
}

}  // namespace streams
