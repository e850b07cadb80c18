// plan-greedy: a portfolio of greedy memory plans, of which the best is taken.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "items.h"
#include "regie/c/memory.h"
#include "regie/pass.hpp"
#include "regie_digests.h"
#include "stack.h"
#include "sweep.h"

namespace {

using namespace regie::sdk;
using plan::Fit;
using plan::Item;
using plan::Tie;

constexpr uint64_t kBudget = 8'000'000;  // visits of pairs: a fraction of a second

constexpr regie_str kRequires[] = {lit("scheduled")};
constexpr regie_str kEstablishes[] = {lit("planned")};
constexpr regie_pass_info kInfo = pass_info({
    .name = "plan-greedy",
    .doc = "Packs buffers by several greedy orders and takes the best plan",
    .requires_ = kRequires,
    .establishes = kEstablishes,
});

class Portfolio {
 public:
  Portfolio(const plan::Problem& problem, uint64_t budget)
      : problem_(problem), stack_(problem), budget_(budget), whole_budget_(budget) {}

  // Every variant is a function of the problem alone; so is which of them are within the budget.
  void run() {
    for (bool backwards : {false, true})
      for (Tie tie : {Tie::kLargest, Tie::kLongest})
        if (!optimal()) offer(plan_by_time(problem_, tie, backwards));

    const std::vector<Item>& items = problem_.items;
    auto life = [](const Item& i) { return i.upper - i.lower; };
    auto area = [&](const Item& i) { return static_cast<double>(i.size) * static_cast<double>(life(i)); };
    try_order([&](const Item& a, const Item& b) {
      return std::pair(a.size, life(a)) > std::pair(b.size, life(b));
    });
    try_order([&](const Item& a, const Item& b) { return area(a) > area(b); });
    try_order([&](const Item& a, const Item& b) {
      return std::pair(life(a), a.size) > std::pair(life(b), b.size);
    });
    try_order([&](const Item& a, const Item& b) { return a.lower < b.lower; });
    budget_ = std::min(budget_, whole_budget_ / 4);
    if (!items.empty()) improve();
  }

  const std::vector<uint64_t>& offsets() const { return best_; }
  uint64_t peak() const { return best_peak_; }
  bool optimal() const {
    if (best_.empty() && !problem_.items.empty()) return false;
    // Of one alignment, whole units are what an arena is made of; of several, only the sizes themselves bound
    // the peak.
    return problem_.uniform ? align_up(best_peak_, problem_.alignment) <= problem_.lower_bound
                            : best_peak_ <= problem_.exact_bound;
  }

 private:
  uint64_t peak_of(const std::vector<uint64_t>& offsets) const {
    uint64_t peak = 0;
    for (size_t i = 0; i < offsets.size(); ++i)
      if (problem_.items[i].exact) peak = std::max(peak, offsets[i] + problem_.items[i].exact);
    return peak;
  }

  bool offer(std::vector<uint64_t> offsets) {
    const uint64_t peak = peak_of(offsets);
    if (!best_.empty() && peak >= best_peak_) return false;
    best_ = std::move(offsets);
    best_peak_ = peak;
    return true;
  }

  // One more plan costs a visit of every pair, and a search for every buffer. Deducts it, if it can be had.
  bool afford() {
    const uint64_t cost = problem_.pairs + 64 * problem_.items.size();
    if (cost > budget_) return false;
    budget_ -= cost;
    return true;
  }

  template <class Before>
  void try_order(Before&& before) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < problem_.items.size(); ++i)
      if (!problem_.items[i].is_fixed()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return before(problem_.items[a], problem_.items[b]); });
    for (Fit fit : {Fit::kFirst, Fit::kBest}) {
      if (optimal() || !afford()) return;
      std::vector<uint64_t> offsets = stack_.plan(order, fit);
      const uint64_t peak = peak_of(offsets);
      if (order_.empty() || peak < order_peak_) {
        order_ = order;
        order_fit_ = fit;
        order_peak_ = peak;
        order_offsets_ = offsets;
      }
      offer(std::move(offsets));
    }
  }

  // Whoever makes the peak should have chosen earlier: it moves forward in the best order, half of its way to
  // the front, as long as that helps or the budget lasts.
  void improve() {
    std::vector<uint32_t> order = order_;
    std::vector<uint64_t> offsets = order_offsets_;
    uint64_t peak = order_peak_;
    uint32_t stuck = 0;
    while (!order.empty() && !optimal() && stuck < kPatience && afford()) {
      size_t top = order.size();
      for (size_t p = 0; p < order.size() && top == order.size(); ++p) {
        const Item& item = problem_.items[order[p]];
        if (item.exact && offsets[order[p]] + item.exact == peak) top = p;
      }
      if (top == order.size() || top == 0) return;  // a fixed buffer makes the peak, or the first one does
      std::rotate(order.begin() + static_cast<long>(top / 2), order.begin() + static_cast<long>(top),
                  order.begin() + static_cast<long>(top) + 1);
      offsets = stack_.plan(order, order_fit_);
      const uint64_t now = peak_of(offsets);
      stuck = now < peak ? 0 : stuck + 1;
      peak = now;
      offer(offsets);
    }
  }

  static uint64_t align_up(uint64_t x, uint64_t a) { return plan::align_up(x, a); }
  static constexpr uint32_t kPatience = 200;

  const plan::Problem& problem_;
  plan::Stack stack_;
  uint64_t budget_, whole_budget_;
  std::vector<uint64_t> best_;
  uint64_t best_peak_ = 0;
  std::vector<uint32_t> order_;  // the best one for the stack
  Fit order_fit_ = Fit::kFirst;
  uint64_t order_peak_ = 0;
  std::vector<uint64_t> order_offsets_;
};

regie_status plan_memory(uint32_t, const regie_host* host, const regie_config*,
                         const regie_memory_problem* problem, uint64_t* offsets,
                         regie_memory_answer* answer) {
  return guard(host, [&] {
    const plan::Problem p = plan::read(*problem);
    Portfolio portfolio(p, problem->node_budget ? problem->node_budget : kBudget);
    portfolio.run();
    std::copy(portfolio.offsets().begin(), portfolio.offsets().end(), offsets);
    answer->peak = portfolio.peak();
    answer->lower_bound = p.lower_bound;
    answer->proven_optimal = portfolio.optimal();
    answer->proven_infeasible = 0;
    answer->nodes = 0;
    if (portfolio.peak() > problem->capacity)
      throw Failure(
          REGIE_LIMIT,
          "the best plan needs " + std::to_string(portfolio.peak()) + " bytes, the memory space has " +
              std::to_string(problem->capacity) + "; " +
              (p.exact_bound > problem->capacity
                   ? "no plan can do with less than " + std::to_string(p.exact_bound) +
                         ": use smaller shapes, or a device with more memory"
                   : "a better plan may exist: the lower bound is " + std::to_string(p.exact_bound)));
  });
}

constexpr regie_memory_table kTable = {head(sizeof(regie_memory_table), REGIE_DIGEST_MEMORY), 1, 0, &kInfo,
                                       plan_memory};

const void* find(const char* id) { return find_one(id, REGIE_MEMORY_ID, &kTable); }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
