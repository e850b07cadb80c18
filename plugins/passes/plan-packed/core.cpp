#include "core.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace packed {

namespace {

class Sets {
 public:
  explicit Sets(uint32_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  uint32_t find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parent_;
};

struct Owned {
  uint32_t begin, end, item;
  uint64_t size;
};

// Parts by start; `item` as numbered by `of`.
template <class Items>
std::vector<Owned> parts_by_start(const Problem& problem, const Items& of) {
  std::vector<Owned> parts;
  for (uint32_t i = 0; i < of.size(); ++i)
    for (const Part& p : problem.parts_of(problem.items[of[i]])) parts.push_back({p.begin, p.end, i, p.size});
  std::sort(parts.begin(), parts.end(), [](const Owned& a, const Owned& b) {
    return std::pair(a.begin, a.item) < std::pair(b.begin, b.item);
  });
  return parts;
}

// Calls `meet(earlier, later)` for parts that share time, as long as it says true.
template <class Meet>
void sweep(const std::vector<Owned>& parts, Meet&& meet) {
  std::vector<Owned> live;
  for (const Owned& p : parts) {
    std::erase_if(live, [&](const Owned& l) { return l.end <= p.begin; });
    for (const Owned& l : live)
      if (!meet(l, p)) return;
    live.push_back(p);
  }
}

class Maker {
 public:
  Maker(const Problem& problem, const std::vector<uint32_t>& piece) : p_(problem) {
    core_.of_problem = piece;
    parts_ = parts_by_start(problem, piece);
  }

  std::optional<Core> make(uint64_t most_pairs) {
    if (!find_arcs(most_pairs)) return std::nullopt;
    make_sections();
    find_twins();
    return std::move(core_);
  }

 private:
  bool find_arcs(uint64_t most_pairs) {
    struct Pair {
      uint32_t a, b;
      int64_t a_size, b_size;
    };
    std::vector<Pair> pairs;
    bool few = true;
    sweep(parts_, [&](const Owned& x, const Owned& y) {
      pairs.push_back({x.item, y.item, static_cast<int64_t>(x.size), static_cast<int64_t>(y.size)});
      pairs.push_back({y.item, x.item, static_cast<int64_t>(y.size), static_cast<int64_t>(x.size)});
      return few = pairs.size() <= 2 * most_pairs;
    });
    if (!few) return false;
    // Only items with several parts can meet twice.
    if (!p_.simple)
      std::sort(pairs.begin(), pairs.end(),
                [](const Pair& x, const Pair& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
    size_t last = 0;
    for (size_t k = 1; !p_.simple && k < pairs.size(); ++k) {
      if (pairs[last].a == pairs[k].a && pairs[last].b == pairs[k].b) {
        pairs[last].a_size = std::max(pairs[last].a_size, pairs[k].a_size);
        pairs[last].b_size = std::max(pairs[last].b_size, pairs[k].b_size);
      } else {
        pairs[++last] = pairs[k];
      }
    }
    if (!p_.simple && !pairs.empty()) pairs.resize(last + 1);
    core_.arc_begin.assign(core_.of_problem.size() + 1, 0);
    for (const Pair& p : pairs) ++core_.arc_begin[p.a + 1];
    for (size_t i = 1; i < core_.arc_begin.size(); ++i) core_.arc_begin[i] += core_.arc_begin[i - 1];
    std::vector<uint32_t> next(core_.arc_begin.begin(), core_.arc_begin.end() - 1);
    core_.arcs.resize(pairs.size());
    for (const Pair& p : pairs) core_.arcs[next[p.a]++] = {p.b, p.a_size, p.b_size};
    return true;
  }

  void make_sections() {
    std::vector<uint32_t> used;
    for (const Owned& p : parts_)
      for (uint32_t s = used.empty() ? p.begin : std::max(p.begin, used.back() + 1); s < p.end; ++s)
        used.push_back(s);
    auto rank = [&](uint32_t s) {
      return static_cast<uint32_t>(std::lower_bound(used.begin(), used.end(), s) - used.begin());
    };
    core_.sections = static_cast<uint32_t>(used.size());
    for (uint32_t s : used) {
      core_.load.push_back(static_cast<int64_t>(p_.load[s]));
      core_.slack.push_back(static_cast<int64_t>(p_.slack[s]));
      core_.lower_bound = std::max(core_.lower_bound, core_.load.back() - core_.slack.back());
    }
    core_.item_begin.assign(core_.sections + 1, 0);
    for (uint32_t of : core_.of_problem) {
      const Item& from = p_.items[of];
      Core::Item item;
      item.extent = static_cast<int64_t>(from.extent);
      item.alignment = static_cast<int64_t>(from.alignment);
      item.life = from.life;
      if (from.is_fixed()) item.fixed = static_cast<int64_t>(from.fixed);
      item.first_part = static_cast<uint32_t>(core_.parts.size());
      item.part_count = from.part_count;
      for (const Part& p : p_.parts_of(from)) {
        core_.parts.push_back({rank(p.begin), rank(p.end - 1) + 1, p_.whole(p.size)});
        for (uint32_t s = core_.parts.back().begin; s < core_.parts.back().end; ++s)
          ++core_.item_begin[s + 1];
      }
      core_.lower_bound = std::max(core_.lower_bound, std::max<int64_t>(item.fixed, 0) + item.extent);
      core_.simple &= item.part_count == 1;
      core_.has_fixed |= item.fixed >= 0;
      core_.items.push_back(item);
    }
    for (uint32_t s = 0; s < core_.sections; ++s) core_.item_begin[s + 1] += core_.item_begin[s];
    core_.live.resize(core_.item_begin.back());
    std::vector<uint32_t> next(core_.item_begin.begin(), core_.item_begin.end() - 1);
    for (uint32_t i = 0; i < core_.items.size(); ++i)
      for (const Part& p : core_.parts_of(i))
        for (uint32_t s = p.begin; s < p.end; ++s) core_.live[next[s]++] = i;
  }

  void find_twins() {
    core_.twins.resize(core_.items.size());
    std::map<std::tuple<uint32_t, uint32_t, int64_t, int64_t>, uint32_t> seen;
    for (uint32_t i = 0; i < core_.items.size(); ++i) {
      Core::Item& item = core_.items[i];
      item.twin = i;
      if (item.fixed >= 0 || item.part_count != 1) continue;
      const Part& p = core_.parts[item.first_part];
      item.twin = seen.emplace(std::tuple(p.begin, p.end, item.extent, item.alignment), i).first->second;
      core_.twins[item.twin].push_back(i);
    }
    for (auto& t : core_.twins)
      if (t.size() == 1) t.clear();
  }

  const Problem& p_;
  Core core_;
  std::vector<Owned> parts_;
};

}  // namespace

std::vector<std::vector<uint32_t>> pieces_of(const Problem& problem) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < problem.items.size(); ++i)
    if (problem.items[i].extent) all.push_back(i);
  const std::vector<Owned> parts = parts_by_start(problem, all);
  Sets sets(static_cast<uint32_t>(all.size()));
  uint32_t end = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (k && parts[k].begin < end) sets.join(parts[k - 1].item, parts[k].item);
    end = k && parts[k].begin < end ? std::max(end, parts[k].end) : parts[k].end;
  }
  std::vector<std::vector<uint32_t>> pieces;
  std::vector<uint32_t> piece_of(all.size(), kNone);
  for (uint32_t i = 0; i < all.size(); ++i) {
    uint32_t& piece = piece_of[sets.find(i)];
    if (piece == kNone) {
      piece = static_cast<uint32_t>(pieces.size());
      pieces.emplace_back();
    }
    pieces[piece].push_back(all[i]);
  }
  return pieces;
}

std::optional<Core> make_core(const Problem& problem, const std::vector<uint32_t>& piece,
                              uint64_t most_pairs) {
  return Maker(problem, piece).make(most_pairs);
}

}  // namespace packed
