// Which values lie as f32: the search of trial.h.
//
// Candidates in program order are parted into a few groups. What the roundings of one group do to each result
// is tried with everything else exact; shares add up as squares, as roundings do not know of each other.
// Groups whose roundings cost least to keep away are wide, as few as the bound asks for; of these each is
// parted in two and tried again, down to single values. What comes out is tried once as it is.
#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <utility>

#include "trial.h"

namespace aicore {

namespace {

constexpr double kMostSearchNs = 5e9;  // of all trials, by their predicted time
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
  Search(Trial& trial, double bound, Widths& widths, std::vector<Candidate> candidates)
      : trial_(trial), bound_(bound), widths_(widths), candidates_(std::move(candidates)) {}

  // The estimated error of what it leaves in the widths.
  double run() {
    set_all(true);
    floor_ = trial_.errors(widths_);
    if (candidates_.empty() || worst(floor_) > bound_) return worst(floor_);
    const size_t n = candidates_.size(), count = std::min(n, kFirstGroups);
    for (size_t g = 0; g < count; ++g) add(n * g / count, n * (g + 1) / count);
    for (bool parted = true; parted;) {
      decide();
      parted = part();
    }
    return held();
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
      for (size_t t = 0; t < all.size() && !g->wide; ++t)
        g->wide = !(all[t] + g->squares[t] <= bound_ * bound_);
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
      if (!g.wide || g.end - g.begin < 2 || trial_.spent_ns() > kMostSearchNs) {
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
      const auto t = static_cast<size_t>(std::max_element(errors.begin(), errors.end()) - errors.begin());
      std::vector<Group*> narrow;
      for (Group& g : groups_)
        if (!g.wide) narrow.push_back(&g);
      if (narrow.empty()) return errors[t];
      if (errors[t] <= bound_) return filled(errors);
      auto blame = [&](const Group* g) { return g->squares[t] / (g->price + 1000); };
      std::stable_sort(narrow.begin(), narrow.end(),
                       [&](const Group* a, const Group* b) { return blame(a) > blame(b); });
      double excess = errors[t] * errors[t] - bound_ * bound_;
      const size_t least = trial_.spent_ns() > 2 * kMostSearchNs ? (narrow.size() + 1) / 2 : 1;
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
      for (size_t t = 0; t < all.size() && fits; ++t) fits = all[t] + g->squares[t] <= bound_ * bound_;
      if (!fits) continue;
      for (size_t t = 0; t < all.size(); ++t) all[t] += g->squares[t];
      again.push_back(g);
    }
    while (!again.empty() && trial_.spent_ns() < 2 * kMostSearchNs) {
      for (Group* g : again)
        for (size_t i = g->begin; i < g->end; ++i) set(i, false);
      const double e = worst(trial_.errors(widths_));
      if (e <= bound_) return e;
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
  std::vector<double> floor_;  // errors with all of them wide
  std::vector<Group> groups_;
};

}  // namespace

WidthChoice choose_widths(const regie_host* host, const regie_graph* graph, uint32_t engine, double bound,
                          const std::function<double(const Widths::Reader&)>& price, Widths& widths) {
  WidthChoice choice;
  for (const Widths::Reader& r : widths.readers()) choice.products += r.product;
  if (!choice.products) return choice;
  std::vector<Candidate> candidates;
  std::map<uint32_t, size_t> place;
  for (const Widths::Reader& r : widths.readers()) {
    if (widths.wide(r.value)) continue;
    const auto [at, fresh] = place.emplace(widths.class_of(r.value), candidates.size());
    if (fresh) candidates.push_back({r.value});
    candidates[at->second].price += price(r);
  }
  try {
    Trial trial(host, graph, engine, widths);
    choice.all_halves = choice.chosen = worst(trial.errors(widths));
    if (choice.chosen > bound) choice.chosen = Search(trial, bound, widths, candidates).run();
  } catch (const std::exception& e) {  // oneDNN's as well
    choice.why_not = e.what();
    for (const Candidate& c : candidates) widths.widen(c.value);
  }
  for (const Widths::Reader& r : widths.readers()) choice.two_halves += r.product && widths.wide(r.value);
  return choice;
}

}  // namespace aicore
