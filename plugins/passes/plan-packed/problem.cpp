#include "problem.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "regie/plugin.hpp"
#include "sections.h"

namespace packed {

namespace {

using regie::sdk::Failure;

std::string name(uint64_t buffer) { return "buffer " + std::to_string(buffer); }

[[noreturn]] void refuse(uint64_t buffer, const std::string& why) {
  throw Failure(REGIE_INVALID_INPUT, name(buffer) + " " + why);
}

void check_one(uint64_t index, const regie_memory_buffer& b) {
  if (b.lower >= b.upper)
    refuse(index, "lives from " + std::to_string(b.lower) + " to " + std::to_string(b.upper) +
                      ", which is no time at all");
  if (b.alignment == 0 || (b.alignment & (b.alignment - 1)))
    refuse(index, "has the alignment " + std::to_string(b.alignment) + ", which is no power of two");
  if (b.size > kTooMuch || b.alignment > kTooMuch) refuse(index, "is larger than any arena can be");
  if (b.offset == kFree) return;
  if (b.offset % b.alignment)
    refuse(index, "is fixed at " + std::to_string(b.offset) + ", which its alignment " +
                      std::to_string(b.alignment) + " does not divide");
  if (b.offset > kTooMuch) refuse(index, "is fixed outside of any arena");
}

class Reader {
 public:
  explicit Reader(const regie_memory_problem& given)
      : given_(given), buffers_(given.buffers, given.buffer_count) {
    p_.item_of.assign(buffers_.size(), kNone);
  }

  Problem read() {
    check_all();
    make_items();
    make_parts();
    bound();
    check_fixed();
    return std::move(p_);
  }

 private:
  void check_all() {
    uint64_t sum = 0;
    if (buffers_.size() > UINT32_MAX / 4) throw Failure(REGIE_LIMIT, "more than a thousand million buffers");
    for (uint64_t i = 0; i < buffers_.size(); ++i) {
      check_one(i, buffers_[i]);
      if (buffers_[i].size) sum += align_up(buffers_[i].size, buffers_[i].alignment);
      if (sum > kTooMuch) throw Failure(REGIE_LIMIT, "the buffers together are larger than any arena can be");
    }
  }

  void make_items() {
    std::map<uint32_t, uint32_t> item_of_group;
    std::vector<Life> lives;
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      const regie_memory_buffer& b = buffers_[i];
      // An empty buffer of a group says where the group lies, if it is fixed or aligned, and takes no room.
      if (b.size == 0 && b.group == 0) continue;
      uint32_t item = static_cast<uint32_t>(p_.items.size());
      if (b.group) item = item_of_group.emplace(b.group, item).first->second;
      if (item == p_.items.size()) {
        p_.items.emplace_back();
        first_of_.push_back(i);
      }
      Item& it = p_.items[item];
      p_.item_of[i] = item;
      it.extent = std::max(it.extent, b.size);
      it.alignment = std::max(it.alignment, b.alignment);
      if (b.offset != kFree) {
        if (it.is_fixed() && it.fixed != b.offset)
          refuse(i, "is fixed at " + std::to_string(b.offset) + ", and another of its group at " +
                        std::to_string(it.fixed));
        it.fixed = b.offset;
      }
      if (b.size == 0) continue;
      it.life += static_cast<double>(b.upper - b.lower);
      members_.push_back(i);
      lives.push_back({b.lower, b.upper});
    }
    for (size_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].is_fixed() && p_.items[i].fixed % p_.items[i].alignment)
        refuse(first_of_[i], "is of a group fixed at " + std::to_string(p_.items[i].fixed) +
                                 ", which the alignment of one of them does not divide");
    sections_ = cut_sections(lives);
    p_.sections = sections_.count;
  }

  void make_parts() {
    std::vector<std::pair<uint32_t, Part>> all;  // by item
    all.reserve(members_.size());
    for (size_t m = 0; m < members_.size(); ++m)
      all.push_back(
          {p_.item_of[members_[m]], {sections_.begin[m], sections_.end[m], buffers_[members_[m]].size}});
    add_conflicts(&all);
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Part> own;
    for (size_t at = 0; at < all.size();) {
      const uint32_t item = all[at].first;
      own.clear();
      for (; at < all.size() && all[at].first == item; ++at) own.push_back(all[at].second);
      Item& it = p_.items[item];
      it.first_part = static_cast<uint32_t>(p_.parts.size());
      if (own.size() == 1)
        p_.parts.push_back(own[0]);
      else
        add_disjoint(own);
      it.part_count = static_cast<uint32_t>(p_.parts.size()) - it.first_part;
      p_.simple &= it.part_count == 1;
    }
  }

  // Of parts that share sections, the largest counts.
  void add_disjoint(const std::vector<Part>& own) {
    std::vector<std::pair<uint32_t, int64_t>> events;
    for (const Part& part : own) {
      events.emplace_back(part.begin, static_cast<int64_t>(part.size));
      events.emplace_back(part.end, -static_cast<int64_t>(part.size));
    }
    std::sort(events.begin(), events.end());
    std::multiset<int64_t> live;
    const size_t first = p_.parts.size();
    for (size_t e = 0; e < events.size(); ++e) {
      if (events[e].second > 0)
        live.insert(events[e].second);
      else
        live.erase(live.find(-events[e].second));
      if (e + 1 == events.size() || events[e + 1].first == events[e].first || live.empty()) continue;
      const Part next{events[e].first, events[e + 1].first, static_cast<uint64_t>(*live.rbegin())};
      if (p_.parts.size() > first && p_.parts.back().end == next.begin && p_.parts.back().size == next.size)
        p_.parts.back().end = next.end;
      else
        p_.parts.push_back(next);
    }
  }

  void add_conflicts(std::vector<std::pair<uint32_t, Part>>* all) {
    std::vector<std::pair<uint64_t, uint64_t>> pairs;
    for (uint64_t i = 0; i < given_.conflict_count; ++i) {
      const auto [lo, hi] = std::minmax(given_.conflicts[i].first, given_.conflicts[i].second);
      if (hi >= buffers_.size())
        throw Failure(REGIE_INVALID_INPUT,
                      "conflict " + std::to_string(i) + " names " + name(hi) + ", which does not exist");
      const regie_memory_buffer &a = buffers_[lo], &b = buffers_[hi];
      if (a.size == 0 || b.size == 0) continue;
      if (lo == hi || p_.item_of[lo] == p_.item_of[hi])
        refuse(lo, "and " + name(hi) + " are to share no byte, but have one place");
      if (a.lower < b.upper && b.lower < a.upper) continue;  // time keeps them apart
      pairs.emplace_back(lo, hi);
    }
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (const auto& [lo, hi] : pairs) {
      for (uint64_t b : {lo, hi})
        all->push_back({p_.item_of[b], {p_.sections, p_.sections + 1, buffers_[b].size}});
      ++p_.sections;
    }
  }

  void bound() {
    // Groups of empty buffers only: they take no room, and each lies where it is fixed, or at 0.
    p_.grain = kTooMuch;
    for (const Item& item : p_.items)
      if (item.extent) p_.grain = std::min(p_.grain, item.alignment);
    if (p_.parts.empty()) p_.grain = 1;
    std::vector<uint32_t> parts(p_.parts.size());
    std::iota(parts.begin(), parts.end(), 0);
    p_.lower_bound = fullest(parts, p_.grain, &p_.load, &p_.slack);
    for (const Item& item : p_.items)
      if (item.extent)
        p_.lower_bound = std::max(p_.lower_bound, item.extent + (item.is_fixed() ? item.fixed : 0));
    bound_by_alignment();
  }

  // Items that are aligned alike leave each other whole multiples of that only, even if smaller ones may lie
  // in what is left of those.
  void bound_by_alignment() {
    std::map<uint64_t, std::vector<uint32_t>, std::greater<>> parts_by;
    for (const Item& item : p_.items)
      if (item.extent && item.alignment > p_.grain)
        for (uint32_t k = 0; k < item.part_count; ++k)
          parts_by[item.alignment].push_back(item.first_part + k);
    std::vector<uint32_t> parts;
    std::vector<uint64_t> load, slack;
    for (const auto& [alignment, own] : parts_by) {
      parts.insert(parts.end(), own.begin(), own.end());
      if (alignment > kTooMuch / parts.size()) continue;  // groups may be aligned to more than they add up to
      p_.lower_bound = std::max(p_.lower_bound, fullest(parts, alignment, &load, &slack));
    }
  }

  // The most that these parts take in a section, in multiples of `grain`, on which all of them begin: what
  // `load` says less what the topmost leaves of its last one.
  uint64_t fullest(const std::vector<uint32_t>& parts, uint64_t grain, std::vector<uint64_t>* load,
                   std::vector<uint64_t>* slack) const {
    std::vector<uint64_t> change(p_.sections + 1, 0);
    load->assign(p_.sections, 0);
    slack->assign(p_.sections, 0);
    for (uint32_t k : parts) {
      change[p_.parts[k].begin] += align_up(p_.parts[k].size, grain);
      change[p_.parts[k].end] -= align_up(p_.parts[k].size, grain);
    }
    uint64_t live = 0, most = 0;
    for (uint32_t s = 0; s < p_.sections; ++s) (*load)[s] = live += change[s];
    if (grain > 1) find_slack(parts, grain, slack);
    for (uint32_t s = 0; s < p_.sections; ++s) most = std::max(most, (*load)[s] - (*slack)[s]);
    return most;
  }

  // Paints sections with the slack of these parts, the most first, each section once.
  void find_slack(std::vector<uint32_t> order, uint64_t grain, std::vector<uint64_t>* slack) const {
    std::vector<uint32_t> next(p_.sections + 1);
    std::iota(next.begin(), next.end(), 0);
    auto of = [&](uint32_t i) { return align_up(p_.parts[i].size, grain) - p_.parts[i].size; };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return of(a) > of(b); });
    auto unpainted = [&](uint32_t s) {
      while (next[s] != s) s = next[s] = next[next[s]];
      return s;
    };
    for (uint32_t i : order)
      for (uint32_t s = unpainted(p_.parts[i].begin); s < p_.parts[i].end; s = unpainted(s)) {
        (*slack)[s] = of(i);
        next[s] = s + 1;
      }
  }

  void check_fixed() {
    struct Fixed {
      uint32_t begin, end, item;
      uint64_t low, high;
    };
    std::vector<Fixed> fixed;
    for (uint32_t i = 0; i < p_.items.size(); ++i)
      if (p_.items[i].is_fixed() && p_.items[i].extent)
        for (const Part& part : p_.parts_of(p_.items[i]))
          fixed.push_back({part.begin, part.end, i, p_.items[i].fixed, p_.items[i].fixed + part.size});
    std::sort(fixed.begin(), fixed.end(), [](const Fixed& a, const Fixed& b) {
      return std::pair(a.begin, a.item) < std::pair(b.begin, b.item);
    });
    std::map<uint64_t, const Fixed*> live;  // by offset
    std::multimap<uint32_t, const Fixed*> ends;
    for (const Fixed& f : fixed) {
      for (; !ends.empty() && ends.begin()->first <= f.begin; ends.erase(ends.begin()))
        live.erase(ends.begin()->second->low);
      auto after = live.lower_bound(f.low);
      const Fixed* other = nullptr;
      if (after != live.end() && after->first < f.high) other = after->second;
      if (after != live.begin() && std::prev(after)->second->high > f.low) other = std::prev(after)->second;
      if (other) {
        const auto [a, b] = std::minmax(first_of_[f.item], first_of_[other->item]);
        refuse(a, "and " + name(b) + " are fixed in one place at one time");
      }
      live.emplace(f.low, &f);
      ends.emplace(f.end, &f);
    }
  }

  const regie_memory_problem& given_;
  std::span<const regie_memory_buffer> buffers_;
  Problem p_;
  std::vector<uint32_t> first_of_;  // by item: its first buffer
  std::vector<uint32_t> members_;   // buffers with bytes
  Sections sections_;               // of them
};

}  // namespace

Problem read(const regie_memory_problem& problem) { return Reader(problem).read(); }

}  // namespace packed
