#include "solve.h"

#include <algorithm>
#include <chrono>

#include "core.h"
#include "range_max.h"
#include "refine.h"

namespace packed {

namespace {

constexpr size_t kMostHeavy = 10'000;   // packed before the others, at first
constexpr uint64_t kLook = 4;           // visits that a look of plan_lowest_first counts for
constexpr uint64_t kMostItems = 5'000;  // of a piece that is searched

struct Piece {
  std::vector<uint32_t> items;
  uint64_t peak = UINT64_MAX;  // of its best plan
  bool searched = false;
};

class Solver {
 public:
  Solver(const Problem& problem, const Limits& limits) : p_(problem), limits_(limits) {
    if (limits.seconds > 0)
      deadline_ = Search::Clock::now() + std::chrono::duration_cast<Search::Clock::duration>(
                                             std::chrono::duration<double>(std::min(limits.seconds, 1e9)));
    best_.assign(p_.items.size(), 0);
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].is_fixed()) best_[i] = p_.items[i].fixed;
    for (auto& items : pieces_of(p_)) {
      pieces_.emplace_back();
      pieces_.back().items = std::move(items);
    }
    bound_ = p_.lower_bound;
  }

  Outcome run() {
    plan_greedily();
    if (limits_.search_work || limits_.search_nodes) search();
    return {std::move(best_), peak(), bound_, nodes_};
  }

 private:
  uint64_t peak() const {
    uint64_t most = 0;
    for (const Piece& piece : pieces_) most = std::max(most, piece.peak);
    return most;
  }
  // Less than this is of no use.
  uint64_t goal() const {
    return limits_.capacity == UINT64_MAX ? bound_ : std::max(bound_, limits_.capacity);
  }
  bool done() const {
    if (peak() <= goal()) return true;
    return deadline_ && Search::Clock::now() >= *deadline_;
  }

  void offer(const Offsets& offsets) {
    for (Piece& piece : pieces_) {
      uint64_t peak = 0;
      for (uint32_t i : piece.items) peak = std::max(peak, offsets[i] + p_.items[i].extent);
      if (peak >= piece.peak) continue;
      piece.peak = peak;
      for (uint32_t i : piece.items) best_[i] = offsets[i];
    }
  }

  bool spend(uint64_t visits) {
    if (visits > visits_) return false;
    visits_ -= visits;
    return true;
  }

  void plan_greedily() {
    if (pieces_.empty()) return;
    visits_ = limits_.greedy_visits;
    offer(plan_by_time(p_, Tie::kLargest, false));
    if (done()) return;
    make_orders();
    if (p_.items.size() < kMany)
      plan_few();
    else
      plan_many();
  }

  void plan_few() {
    const uint64_t n = p_.items.size();
    for (const Order& order : orders_) {
      uint64_t most = std::min<uint64_t>(visits_, 24 * n + 1000);
      if (done() || !spend(most)) break;
      if (auto offsets = plan_lowest_first(p_, order, &most)) offer(*offsets);
    }
    for (bool backwards : {true, false})
      for (Tie tie : {Tie::kLargest, Tie::kLongest})
        if (!done() && (backwards || tie == Tie::kLongest)) offer(plan_by_time(p_, tie, backwards));
    count_pairs();
    for (double share : {0.85, 0.95, 0.9})
      for (size_t by : {kLife, kArea, kSize})
        for (bool backwards : {false, true})
          if (!done() && spend(16 * n)) {
            if (auto settled = pack_heavy(share, by, kMostHeavy))
              offer(plan_by_time(p_, std::move(*settled), Tie::kLongest, backwards));
          }
    for (const Order& order : orders_)
      for (Fit fit : {Fit::kFirst, Fit::kBest}) {
        if (done() || !spend(pairs_ + 64 * n)) return;
        offer(plan_by_rank(p_, order, fit));
      }
  }

  // What is best for many buffers comes first, and mostly that comes close enough. If not, there is more to
  // try, the cheap before the dear.
  void plan_many() {
    const uint64_t n = p_.items.size();
    if (!spend(64 * n)) visits_ = 0;
    auto settled = pack_heavy(0.9, kLife, kMostHeavy);
    if (settled)
      offer(plan_by_time(p_, std::move(*settled), Tie::kLongest, true));
    else
      offer(plan_by_time(p_, Tie::kLongest, true));
    for (auto [tie, backwards] :
         {std::pair(Tie::kLargest, true), {Tie::kLongest, false}, {Tie::kLongest, true}}) {
      if (enough() || !spend(16 * n)) return;
      offer(plan_by_time(p_, tie, backwards));
    }
    for (auto [share, most] : {std::pair(0.95, kMostHeavy), {0.85, n}, {0.95, n}, {0.98, n}}) {
      if (enough() || !spend(16 * n)) return;
      settled = pack_heavy(share, kLife, most, visits_ / kLook);
      if (!settled) continue;
      for (bool backwards : {true, false})
        if (!enough()) offer(plan_by_time(p_, *settled, Tie::kLongest, backwards));
    }
    for (size_t by : {kLife, kArea}) {
      if (enough()) return;
      uint64_t looks = visits_ / kLook;
      auto offsets = plan_lowest_first(p_, orders_[by], &looks);
      visits_ = std::min(visits_, looks * kLook);
      if (offsets) offer(*offsets);
    }
  }

  bool enough() const {
    return done() || static_cast<double>(peak()) <= static_cast<double>(goal()) * limits_.near_enough;
  }

  // The few items that make up most of all bytes times steps, packed by themselves, densely; all others can
  // be walked around them. Nothing if those few, at most `most`, take more looks than they are given. Those
  // that are given are taken off what may be spent; without, few are taken and none off.
  std::optional<Offsets> pack_heavy(double share, size_t by, size_t most,
                                    std::optional<uint64_t> looks = std::nullopt) {
    double all = 0, heavy = 0;
    size_t count = 0;
    for (uint32_t i : orders_[kArea]) all += area(i);
    std::vector<uint8_t> chosen(p_.items.size(), 0);
    for (uint32_t i : orders_[kArea]) {
      if (heavy >= share * all || count == most) break;
      heavy += area(i);
      chosen[i] = 1;
      ++count;
    }
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].part_count > 1) chosen[i] = 1;
    Order order;
    for (uint32_t i : orders_[by])
      if (chosen[i]) order.push_back(i);
    const uint64_t enough = 2000 * order.size() + 1000;
    const uint64_t given = std::min<uint64_t>(looks.value_or(enough), enough);
    uint64_t left = given;
    auto settled = plan_lowest_first(p_, order, &left);
    if (looks) visits_ -= std::min(visits_, (given - left) * kLook);
    if (!settled) return std::nullopt;
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (!chosen[i]) (*settled)[i] = p_.items[i].fixed;
    return settled;
  }

  double area(uint32_t i) const { return p_.items[i].life * static_cast<double>(p_.items[i].extent); }

  enum OrderName : size_t { kLife, kArea, kSize };  // the first of orders_
  void make_orders() {
    Order order;
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].extent && !p_.items[i].is_fixed()) order.push_back(i);
    const auto& items = p_.items;
    auto add = [&](auto&& key) {
      std::vector<std::pair<double, uint32_t>> keyed;
      keyed.reserve(order.size());
      for (uint32_t i : order) keyed.emplace_back(-key(i), i);
      std::sort(keyed.begin(), keyed.end());
      Order sorted;
      sorted.reserve(order.size());
      for (const auto& [k, i] : keyed) sorted.push_back(i);
      orders_.push_back(std::move(sorted));
    };
    add([&](uint32_t i) { return items[i].life; });
    add([&](uint32_t i) { return area(i); });
    if (items.size() >= kMany) return;
    add([&](uint32_t i) { return static_cast<double>(items[i].extent); });
    RangeMax load(p_.sections);
    for (uint32_t s = 0; s < p_.sections; ++s) load.raise(s, s + 1, p_.load[s]);
    add([&](uint32_t i) {
      uint64_t most = 0;
      for (const Part& part : p_.parts_of(items[i])) most = std::max(most, load.max(part.begin, part.end));
      return static_cast<double>(most);
    });
    add([&](uint32_t i) { return -static_cast<double>(p_.parts[items[i].first_part].begin); });
    if (std::any_of(order.begin(), order.end(), [&](uint32_t i) { return items[i].alignment > p_.grain; }))
      add([&](uint32_t i) { return static_cast<double>(items[i].alignment); });
  }

  void count_pairs() {
    std::vector<int64_t> change(p_.sections + 1, 0);
    for (const Part& part : p_.parts) {
      ++change[part.begin];
      --change[part.end];
    }
    int64_t now = 0;
    for (int64_t& c : change) c = now += c;
    for (const Part& part : p_.parts) pairs_ += static_cast<uint64_t>(change[part.begin]);
  }

  void search() {
    uint64_t work = limits_.search_work, nodes = limits_.search_nodes;
    while (!done() && bound_ <= limits_.capacity) {
      Piece* top = nullptr;
      size_t more = 0;
      for (Piece& piece : pieces_) {
        if (piece.peak <= goal()) continue;
        ++more;
        if (!top || piece.peak > top->peak) top = &piece;
      }
      if (top->searched) return;  // the highest has been given what there was
      top->searched = true;
      const auto core = make_core(p_, top->items, limits_.core_pairs);
      if (!core || core->items.size() > kMostItems) return;
      // A node looks at the items that are left, at the neighbours of one, and at the sections.
      const uint64_t cost = core->items.size() + core->arcs.size() / core->items.size() + core->sections;
      Effort effort;
      effort.nodes = limits_.search_nodes ? nodes : work / cost;
      if (more > 1) effort.nodes -= effort.nodes / 3;
      effort.deadline = deadline_;
      const uint64_t taken = refine_piece(*top, *core, effort);
      nodes -= std::min(nodes, taken);
      work -= std::min(work, taken * cost);
    }
  }

  // Gives the nodes that it took.
  uint64_t refine_piece(Piece& piece, const Core& core, const Effort& effort) {
    const bool exact = limits_.capacity != UINT64_MAX && limits_.capacity >= bound_;
    const Refined r =
        refine(core, static_cast<int64_t>(piece.peak), static_cast<int64_t>(goal()), exact, effort);
    nodes_ += r.nodes;
    bound_ = std::max(bound_, static_cast<uint64_t>(r.lower_bound));
    if (r.offsets.empty()) return r.nodes;
    piece.peak = static_cast<uint64_t>(r.peak);
    for (size_t i = 0; i < core.of_problem.size(); ++i)
      best_[core.of_problem[i]] = static_cast<uint64_t>(r.offsets[i]);
    return r.nodes;
  }

  const Problem& p_;
  const Limits& limits_;
  std::optional<Search::Clock::time_point> deadline_;
  std::vector<Piece> pieces_;
  std::vector<Order> orders_;
  Offsets best_;
  uint64_t bound_ = 0, visits_ = 0, pairs_ = 0, nodes_ = 0;
};

}  // namespace

Outcome solve(const Problem& problem, const Limits& limits) { return Solver(problem, limits).run(); }

}  // namespace packed
