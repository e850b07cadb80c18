#include <algorithm>
#include <queue>
#include <tuple>

#include "greedy.h"
#include "range_max.h"

namespace packed {

namespace {

constexpr size_t kFewFixed = 64;

class Water {
 public:
  Water(const Problem& problem, const Order& order)
      : p_(problem), heights_(problem.sections), offsets_(problem.items.size(), 0) {
    for (uint32_t i = 0; i < p_.items.size(); ++i) {
      const Item& item = p_.items[i];
      if (!item.is_fixed()) continue;
      offsets_[i] = item.fixed;
      if (item.extent == 0) continue;
      fixed_.push_back(i);
      queue_.push({item.fixed, 0, i});
    }
    for (uint32_t rank = 0; rank < order.size(); ++rank) queue_.push({0, rank + 1, order[rank]});
  }

  std::optional<Offsets> rise(uint64_t* visits) {
    if (fixed_.size() > kFewFixed) return std::nullopt;
    for (; !queue_.empty(); --*visits) {
      if (*visits == 0) return std::nullopt;
      const auto [offset, rank, i] = queue_.top();
      queue_.pop();
      const Item& item = p_.items[i];
      if (!item.is_fixed()) {
        const uint64_t rest = rest_of(item);
        if (rest > offset) {
          queue_.push({rest, rank, i});
          continue;
        }
        offsets_[i] = offset;
      } else {
        fixed_.erase(std::find(fixed_.begin(), fixed_.end(), i));
      }
      for (const Part& part : p_.parts_of(item)) heights_.raise(part.begin, part.end, offset + part.size);
    }
    return std::move(offsets_);
  }

 private:
  // The lowest place above all that is there, and clear of fixed items that are still above the water.
  uint64_t rest_of(const Item& item) const {
    uint64_t rest = 0;
    for (const Part& part : p_.parts_of(item)) rest = std::max(rest, heights_.max(part.begin, part.end));
    rest = align_up(rest, item.alignment);
    for (bool moved = !fixed_.empty(); moved;) {
      moved = false;
      for (uint32_t f : fixed_)
        for (const Part& b : p_.parts_of(p_.items[f]))
          for (const Part& a : p_.parts_of(item))
            if (a.begin < b.end && b.begin < a.end && rest < p_.items[f].fixed + b.size &&
                p_.items[f].fixed < rest + a.size) {
              rest = align_up(p_.items[f].fixed + b.size, item.alignment);
              moved = true;
            }
    }
    return rest;
  }

  using Entry = std::tuple<uint64_t, uint32_t, uint32_t>;  // lowest place known, rank, item
  const Problem& p_;
  RangeMax heights_;
  Offsets offsets_;
  std::vector<uint32_t> fixed_;  // not reached yet
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

std::optional<Offsets> plan_lowest_first(const Problem& problem, const Order& order, uint64_t* visits) {
  return Water(problem, order).rise(visits);
}

}  // namespace packed
