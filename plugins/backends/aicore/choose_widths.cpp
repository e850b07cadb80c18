// Candidates in program order are parted into a few groups. What the roundings of one group do to each result
// is tried with everything else exact; shares add up as squares, as roundings do not know of each other.
// Groups whose roundings cost least to keep away are wide, as few as the bound asks for; of these each is
// parted in two and tried again, down to single values. What comes out is tried once as it is.
#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <utility>

#include "choose_widths.h"
#include "trial.h"

namespace aicore {

namespace {

// Of all trials, by their predicted time: of looking at kinds of inputs, and of a search with one of them.
constexpr double kMostLookNs = 8e9, kMostSearchNs = 2.5e9;
constexpr size_t kFirstGroups = 8;

double worst(const std::vector<double>& errors) {
  double most = 0;
  for (double e : errors) most = std::max(most, e);
  return most;
}

// Values that are decided together.
struct Candidate {
  uint32_t value;
  double price = 0;
};

class Search {
 public:
  // Leaves in `shares`, by class of values, squares of what roundings do to the result that they disturb
  // most.
  Search(Trial& trial, double bound, Widths& widths, std::vector<Candidate> candidates,
         std::vector<double>& shares)
      : trial_(trial),
        bound_(bound),
        widths_(widths),
        candidates_(std::move(candidates)),
        shares_(shares),
        began_ns_(trial.spent_ns()) {}

  // The estimated error of what it leaves in the widths.
  double run() {
    set_all(true);
    floor_ = trial_.errors(widths_);
    if (candidates_.empty()) return worst(floor_);
    // Roundings that nothing keeps away are left some room beside them.
    for (double e : floor_) squares_.push_back(std::max(bound_ * bound_, 1.5 * e * e));
    const size_t n = candidates_.size(), count = std::min(n, kFirstGroups);
    for (size_t g = 0; g < count; ++g) add(n * g / count, n * (g + 1) / count);
    for (bool parted = true; parted;) {
      decide();
      parted = part();
    }
    const double error = held();
    for (const Group& g : groups_)
      for (size_t i = g.begin; i < g.end; ++i) {
        double& share = shares_[widths_.class_of(candidates_[i].value)];
        share = std::max(share, g.most);
      }
    return error;
  }

 private:
  struct Group {
    size_t begin, end;
    std::vector<double> squares;  // its share of each result's error
    double price = 0, most = 0;
    bool wide = false;
  };

  void set_all(bool wide) {
    for (size_t i = 0; i < candidates_.size(); ++i) set(i, wide);
  }
  void set(size_t i, bool wide) {
    wide ? widths_.widen(candidates_[i].value) : widths_.narrow(candidates_[i].value);
  }

  // The result that is most too far off.
  size_t furthest(const std::vector<double>& errors) const {
    const auto excess = [&](size_t t) {
      return std::isfinite(squares_[t]) ? errors[t] * errors[t] / squares_[t] : 0;
    };
    size_t most = 0;
    for (size_t t = 0; t < errors.size(); ++t)
      if (excess(t) > excess(most)) most = t;
    return most;
  }
  double spent_ns() const { return trial_.spent_ns() - began_ns_; }

  void add(size_t begin, size_t end) {
    Group g{begin, end, {}};
    set_all(true);
    for (size_t i = begin; i < end; ++i) {
      set(i, false);
      g.price += candidates_[i].price;
    }
    g.squares = trial_.errors(widths_);
    for (size_t t = 0; t < g.squares.size(); ++t) {
      g.squares[t] = std::max(0.0, g.squares[t] * g.squares[t] - floor_[t] * floor_[t]);
      g.most = std::max(g.most, g.squares[t]);
    }
    groups_.push_back(std::move(g));
  }

  // Narrow as far as they fit, those first that save most for what they disturb. How much a disturbance
  // weighs is tried: what leaves least to pay is taken.
  void decide() {
    std::vector<bool> best;
    double least = INFINITY;
    for (double weight : {0.25, 0.5, 1.0, 2.0, 8.0}) {
      const double paid = narrow_by(weight);
      if (paid >= least) continue;
      least = paid;
      best.clear();
      for (const Group& g : groups_) best.push_back(g.wide);
    }
    for (size_t i = 0; i < best.size(); ++i) groups_[i].wide = best[i];
  }

  double narrow_by(double weight) {
    std::vector<Group*> order;
    for (Group& g : groups_) order.push_back(&g);
    auto merit = [&](const Group* g) {
      return std::log(g->price + 1) - weight * std::log(std::max(1e-30, g->most));
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const Group* a, const Group* b) { return merit(a) > merit(b); });
    std::vector<double> all(floor_.size());
    for (size_t t = 0; t < all.size(); ++t) all[t] = floor_[t] * floor_[t];
    double paid = 0;
    for (Group* g : order) {
      g->wide = false;
      for (size_t t = 0; t < all.size() && !g->wide; ++t) g->wide = !(all[t] + g->squares[t] <= squares_[t]);
      if (g->wide)
        paid += g->price + 1;
      else
        for (size_t t = 0; t < all.size(); ++t) all[t] += g->squares[t];
    }
    return paid;
  }

  // Wide groups in two; false if there is none to part, or no time for it.
  bool part() {
    std::vector<Group> old;
    std::swap(old, groups_);
    bool parted = false;
    for (Group& g : old) {
      if (!g.wide || g.end - g.begin < 2 || spent_ns() > kMostSearchNs) {
        groups_.push_back(std::move(g));
        continue;
      }
      const size_t middle = (g.begin + g.end) / 2;
      add(g.begin, middle);
      add(middle, g.end);
      parted = true;
    }
    return parted;
  }

  // A sum of squares that does not hold: of what disturbs the worst result most for its price, as much is
  // widened as there is too much of it.
  double held() {
    for (;;) {
      for (const Group& g : groups_)
        for (size_t i = g.begin; i < g.end; ++i) set(i, g.wide);
      const std::vector<double> errors = trial_.errors(widths_);
      const size_t t = furthest(errors);
      std::vector<Group*> narrow;
      for (Group& g : groups_)
        if (!g.wide) narrow.push_back(&g);
      if (narrow.empty()) return worst(errors);
      if (errors[t] * errors[t] <= squares_[t]) return filled(errors);
      auto blame = [&](const Group* g) { return g->squares[t] / (g->price + 1000); };
      std::stable_sort(narrow.begin(), narrow.end(),
                       [&](const Group* a, const Group* b) { return blame(a) > blame(b); });
      double excess = errors[t] * errors[t] - squares_[t];
      const size_t least = spent_ns() > 2 * kMostSearchNs ? (narrow.size() + 1) / 2 : 1;
      for (size_t i = 0; i < narrow.size() && (i < least || excess > 0); ++i) {
        narrow[i]->wide = true;
        excess -= narrow[i]->squares[t];
      }
    }
  }

  // What was widened for nothing, dearest first, as far as there is room.
  double filled(const std::vector<double>& errors) {
    std::vector<Group*> wide, again;
    for (Group& g : groups_)
      if (g.wide) wide.push_back(&g);
    std::stable_sort(wide.begin(), wide.end(),
                     [](const Group* a, const Group* b) { return a->price > b->price; });
    std::vector<double> all(errors.size());
    for (size_t t = 0; t < all.size(); ++t) all[t] = errors[t] * errors[t];
    for (Group* g : wide) {
      bool fits = true;
      for (size_t t = 0; t < all.size() && fits; ++t) fits = all[t] + g->squares[t] <= squares_[t];
      if (!fits) continue;
      for (size_t t = 0; t < all.size(); ++t) all[t] += g->squares[t];
      again.push_back(g);
    }
    while (!again.empty() && spent_ns() < 2 * kMostSearchNs) {
      for (Group* g : again)
        for (size_t i = g->begin; i < g->end; ++i) set(i, false);
      const std::vector<double> e = trial_.errors(widths_);
      const size_t t = furthest(e);
      if (e[t] * e[t] <= squares_[t]) return worst(e);
      for (Group* g : again)
        for (size_t i = g->begin; i < g->end; ++i) set(i, true);
      again.resize(again.size() / 2);
    }
    return worst(errors);
  }

  Trial& trial_;
  double bound_;
  Widths& widths_;
  std::vector<Candidate> candidates_;
  std::vector<double> floor_;    // errors with all of them wide
  std::vector<double> squares_;  // of the most that is allowed, by result
  std::vector<double>& shares_;
  double began_ns_;
  std::vector<Group> groups_;
};

}  // namespace

WidthChoice choose_widths(const regie_host* host, const regie_graph* graph, uint32_t engine, double bound,
                          bool all_rounded, const std::function<double(const Widths::Reader&)>& price,
                          Widths& widths) {
  WidthChoice choice;
  for (const Widths::Reader& r : widths.readers()) choice.products += r.product;
  if (!choice.products) {
    choice.share.resize(widths.readers().size());
    return choice;
  }
  std::vector<Candidate> candidates;
  std::map<uint32_t, size_t> place;
  for (const Widths::Reader& r : widths.readers()) {
    if (widths.wide(r.value)) continue;
    const auto [at, fresh] = place.emplace(widths.class_of(r.value), candidates.size());
    if (fresh) candidates.push_back({r.value});
    candidates[at->second].price += price(r);
  }
  std::vector<double> shares(graph->value_count);
  try {
    Trial trial(host, graph, engine, widths, all_rounded);
    std::vector<std::pair<double, TrialInputs>> kinds;
    for (TrialInputs kind : kTrialInputs) {
      // Of a graph that takes seconds a run, those that tell most.
      if (!kinds.empty() && trial.spent_ns() > kMostLookNs) break;
      trial.use(kind);
      kinds.emplace_back(worst(trial.errors(widths)), kind);
    }
    TrialInputs in_use = kinds.back().second;
    // What the worst kind asks for is there for the others already.
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    choice.all_halves = kinds.front().first;
    choice.inputs = name_of(kinds.front().second);
    for (auto [error, kind] : kinds) {
      if (error > bound) {
        if (in_use != kind) trial.use(kind);
        in_use = kind;
        std::erase_if(candidates, [&](const Candidate& c) { return widths.wide(c.value); });
        error = worst(trial.errors(widths));
        if (error > bound) error = Search(trial, bound, widths, candidates, shares).run();
      }
      if (choice.chosen_inputs.empty() || error > choice.chosen) {
        choice.chosen = error;
        choice.chosen_inputs = name_of(kind);
      }
    }
  } catch (const std::exception& e) {  // oneDNN's as well
    choice.why_not = e.what();
    for (const Candidate& c : candidates) widths.widen(c.value);
  }
  for (const Widths::Reader& r : widths.readers()) {
    choice.two_halves += r.product && widths.wide(r.value);
    choice.share.push_back(std::sqrt(shares[widths.class_of(r.value)]));
  }
  return choice;
}

}  // namespace aicore
