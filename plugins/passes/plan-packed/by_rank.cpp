#include <algorithm>

#include "greedy.h"

namespace packed {

namespace {

class Stack {
 public:
  explicit Stack(const Problem& problem)
      : p_(problem), offsets_(problem.items.size(), 0), by_begin_(problem.parts.size()) {
    const auto& parts = p_.parts;
    for (uint32_t i = 0; i < by_begin_.size(); ++i) by_begin_[i] = i;
    std::sort(by_begin_.begin(), by_begin_.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(parts[a].begin, a) < std::pair(parts[b].begin, b);
    });
    position_.resize(parts.size());
    owner_.resize(parts.size());
    for (uint32_t k = 0; k < by_begin_.size(); ++k) position_[by_begin_[k]] = k;
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      for (uint32_t k = 0; k < p_.items[i].part_count; ++k) owner_[p_.items[i].first_part + k] = i;
    while (leaves_ < parts.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, 0);
  }

  Offsets plan(const Order& order, Fit fit) {
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].is_fixed()) put(i, p_.items[i].fixed);
    for (uint32_t i : order) put(i, find(p_.items[i], fit));
    return std::move(offsets_);
  }

 private:
  // Offsets x with low < x < high are not to be had.
  struct Barred {
    int64_t low, high;
  };

  void put(uint32_t i, uint64_t offset) {
    offsets_[i] = offset;
    const Item& item = p_.items[i];
    for (uint32_t k = item.first_part; k < item.first_part + item.part_count; ++k) {
      const uint32_t end = p_.parts[k].end;
      for (size_t n = leaves_ + position_[k]; n >= 1 && latest_[n] < end; n /= 2) latest_[n] = end;
    }
  }

  uint64_t find(const Item& item, Fit fit) {
    barred_.clear();
    for (const Part& part : p_.parts_of(item)) collect(part);
    std::sort(barred_.begin(), barred_.end(), [](const Barred& a, const Barred& b) { return a.low < b.low; });
    int64_t cursor = 0, best = INT64_MAX, best_left = INT64_MAX;
    for (const Barred& b : barred_) {
      if (b.low >= cursor && b.low - cursor < best_left) {
        best = cursor;
        best_left = b.low - cursor;
        if (fit == Fit::kFirst) break;
      }
      if (b.high > cursor)
        cursor = static_cast<int64_t>(align_up(static_cast<uint64_t>(b.high), item.alignment));
    }
    return static_cast<uint64_t>(best != INT64_MAX ? best : cursor);
  }

  // What is there already and shares time with `part`, by a tree over starts that knows the latest end below.
  void collect(const Part& part) {
    const size_t limit =
        static_cast<size_t>(std::partition_point(by_begin_.begin(), by_begin_.end(),
                                                 [&](uint32_t k) { return p_.parts[k].begin < part.end; }) -
                            by_begin_.begin());
    walk_.assign({{1, 0, leaves_}});
    while (!walk_.empty()) {
      const Walk w = walk_.back();
      walk_.pop_back();
      if (w.first >= limit || latest_[w.node] <= part.begin) continue;
      if (w.count > 1) {
        const size_t half = w.count / 2;
        walk_.push_back({2 * w.node, w.first, half});
        walk_.push_back({2 * w.node + 1, w.first + half, half});
        continue;
      }
      const uint32_t k = by_begin_[w.first];
      const int64_t at = static_cast<int64_t>(offsets_[owner_[k]]);
      barred_.push_back({at - static_cast<int64_t>(part.size), at + static_cast<int64_t>(p_.parts[k].size)});
    }
  }

  struct Walk {
    size_t node, first, count;
  };
  const Problem& p_;
  Offsets offsets_;
  std::vector<uint32_t> by_begin_, position_, owner_;  // parts by start, and back; item of a part
  std::vector<uint32_t> latest_;  // latest end of the parts there below a node of the tree
  size_t leaves_ = 1;
  std::vector<Barred> barred_;
  std::vector<Walk> walk_;
};

}  // namespace

Offsets plan_by_rank(const Problem& problem, const Order& order, Fit fit) {
  return Stack(problem).plan(order, fit);
}

}  // namespace packed
