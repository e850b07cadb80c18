#include "choice_network.h"

#include <algorithm>
#include <set>
#include <utility>

namespace placing {

uint32_t ChoiceNetwork::add(std::vector<double> costs) {
  costs_.push_back(std::move(costs));
  return static_cast<uint32_t>(costs_.size() - 1);
}

void ChoiceNetwork::add_cost(uint32_t choice, const std::vector<double>& costs) {
  for (size_t i = 0; i < costs.size(); ++i) costs_[choice][i] += costs[i];
}

void ChoiceNetwork::add_pair(uint32_t a, uint32_t b, std::vector<double> table) {
  pairs_.push_back({a, b, std::move(table)});
}

double ChoiceNetwork::cost(const std::vector<uint32_t>& assignment) const {
  double sum = 0;
  for (size_t i = 0; i < costs_.size(); ++i) sum += costs_[i][assignment[i]];
  for (const Pair& p : pairs_) sum += p.table[assignment[p.a] * possibilities(p.b) + assignment[p.b]];
  return sum;
}

// One round: variable elimination, with some choices fixed on the way.
class Elimination {
 public:
  Elimination(const ChoiceNetwork& network, const std::vector<uint32_t>& incumbent, size_t most_entries,
              std::vector<uint32_t>* fixed_before)
      : network_(network),
        incumbent_(incumbent),
        most_entries_(most_entries),
        fixed_before_(*fixed_before),
        touching_(network.size()),
        neighbours_(network.size()),
        gone_(network.size(), 0),
        value_(network.size()) {}

  std::vector<uint32_t> run() {
    for (uint32_t v = 0; v < network_.size(); ++v) add_factor({{v}, network_.costs_[v]});
    for (const ChoiceNetwork::Pair& p : network_.pairs_) add_factor({{p.a, p.b}, p.table});
    for (uint32_t v = 0; v < network_.size(); ++v) queue_.insert({entries_of(v), v});
    while (!queue_.empty()) {
      const auto [entries, v] = *queue_.begin();
      if (entries > most_entries_)
        fix(most_entangled());
      else
        eliminate(v);
    }
    std::vector<uint32_t> chosen(network_.size());
    for (size_t i = steps_.size(); i-- > 0;) chosen[steps_[i].choice] = best_of(steps_[i], chosen);
    return chosen;
  }
  bool fixed_any() const { return fixed_any_; }

 private:
  // A table over choices, the last one running fastest.
  struct Factor {
    std::vector<uint32_t> scope;
    std::vector<double> table;
  };
  struct Step {
    uint32_t choice;
    bool fixed;
    std::vector<uint32_t> factors;  // that had it in their scope
  };

  size_t count(uint32_t choice) const { return network_.possibilities(choice); }

  // Entries of the table that eliminating `choice` works through.
  size_t entries_of(uint32_t choice) const {
    size_t n = count(choice);
    for (uint32_t other : neighbours_[choice]) {
      n *= count(other);
      if (n > most_entries_) return most_entries_ + 1;
    }
    return n;
  }

  void add_factor(Factor f) {
    const auto id = static_cast<uint32_t>(factors_.size());
    for (uint32_t v : f.scope) {
      touching_[v].push_back(id);
      for (uint32_t w : f.scope)
        if (w != v) neighbours_[v].insert(w);
    }
    factors_.push_back(std::move(f));
  }

  // Where in the factor's table an assignment is.
  size_t place(const Factor& f, const std::vector<uint32_t>& value) const {
    size_t at = 0;
    for (uint32_t v : f.scope) at = at * count(v) + value[v];
    return at;
  }

  // Calls `f` for each assignment of `scope`, set in `value_`, in the order of a table over it.
  template <class F>
  void each_assignment(const std::vector<uint32_t>& scope, F&& f) {
    size_t entries = 1;
    for (uint32_t v : scope) entries *= count(v);
    for (size_t e = 0; e < entries; ++e) {
      size_t rest = e;
      for (size_t i = scope.size(); i-- > 0;) {
        value_[scope[i]] = static_cast<uint32_t>(rest % count(scope[i]));
        rest /= count(scope[i]);
      }
      f();
    }
  }

  uint32_t best_of(const Step& s, std::vector<uint32_t>& chosen) const {
    if (s.fixed) return incumbent_[s.choice];
    uint32_t best = 0;
    double least = kNever;
    for (uint32_t i = 0; i < count(s.choice); ++i) {
      chosen[s.choice] = i;
      double sum = 0;
      for (uint32_t f : s.factors) sum += factors_[f].table[place(factors_[f], chosen)];
      if (sum < least) {
        least = sum;
        best = i;
      }
    }
    return best;
  }

  // Takes `choice` out; the keys of its neighbours are renewed by the caller's `change`.
  template <class Change>
  void take_out(uint32_t choice, bool fixed, Change&& change) {
    const std::vector<uint32_t> around(neighbours_[choice].begin(), neighbours_[choice].end());
    queue_.erase({entries_of(choice), choice});
    for (uint32_t n : around) queue_.erase({entries_of(n), n});
    gone_[choice] = 1;
    for (uint32_t n : around) neighbours_[n].erase(choice);
    steps_.push_back({choice, fixed, live_factors(choice)});
    change(steps_.back().factors, around);
    for (uint32_t n : around) queue_.insert({entries_of(n), n});
  }

  std::vector<uint32_t> live_factors(uint32_t choice) {
    std::vector<uint32_t> live;
    for (uint32_t f : touching_[choice])
      if (std::none_of(factors_[f].scope.begin(), factors_[f].scope.end(),
                       [&](uint32_t v) { return v != choice && gone_[v]; }))
        live.push_back(f);
    return live;
  }

  void eliminate(uint32_t choice) {
    take_out(choice, false, [&](const std::vector<uint32_t>& factors, const std::vector<uint32_t>& around) {
      if (around.empty()) return;
      Factor made{around, {}};
      each_assignment(around, [&] {
        double least = kNever;
        for (uint32_t i = 0; i < count(choice); ++i) {
          value_[choice] = i;
          double sum = 0;
          for (uint32_t f : factors) sum += factors_[f].table[place(factors_[f], value_)];
          least = std::min(least, sum);
        }
        made.table.push_back(least);
      });
      add_factor(std::move(made));
    });
  }

  void fix(uint32_t choice) {
    fixed_any_ = true;
    ++fixed_before_[choice];
    take_out(choice, true, [&](const std::vector<uint32_t>& factors, const std::vector<uint32_t>&) {
      for (uint32_t f : factors) {
        Factor rest;
        for (uint32_t v : factors_[f].scope)
          if (v != choice) rest.scope.push_back(v);
        if (rest.scope.empty()) continue;
        value_[choice] = incumbent_[choice];
        each_assignment(rest.scope,
                        [&] { rest.table.push_back(factors_[f].table[place(factors_[f], value_)]); });
        add_factor(std::move(rest));
      }
    });
  }

  // Of those that were fixed least often: the one with the most neighbours.
  uint32_t most_entangled() const {
    uint32_t best = queue_.begin()->second;
    for (const auto& [entries, v] : queue_)
      if (std::pair(fixed_before_[best], neighbours_[v].size()) >
          std::pair(fixed_before_[v], neighbours_[best].size()))
        best = v;
    return best;
  }

  const ChoiceNetwork& network_;
  const std::vector<uint32_t>& incumbent_;
  const size_t most_entries_;
  std::vector<uint32_t>& fixed_before_;  // by choice: how often
  std::vector<Factor> factors_;
  std::vector<std::vector<uint32_t>> touching_;  // by choice: factors
  std::vector<std::set<uint32_t>> neighbours_;
  std::vector<uint8_t> gone_;
  std::set<std::pair<size_t, uint32_t>> queue_;
  std::vector<Step> steps_;
  std::vector<uint32_t> value_;
  bool fixed_any_ = false;
};

ChoiceNetwork::Answer ChoiceNetwork::solve(const std::vector<uint32_t>& start, size_t most_entries,
                                           int rounds) const {
  Answer answer{start, false};
  double least = cost(start);
  std::vector<uint32_t> fixed_before(size(), 0);
  for (int round = 0; round < rounds && !answer.exact; ++round) {
    Elimination elimination(*this, answer.assignment, most_entries, &fixed_before);
    std::vector<uint32_t> found = elimination.run();
    answer.exact = !elimination.fixed_any();
    if (const double c = cost(found); c < least) {
      least = c;
      answer.assignment = std::move(found);
    }
  }
  return answer;
}

}  // namespace placing
