// What a placement means for everything else, and how it is taken back.
#include <algorithm>

#include "search.h"

namespace packed {

namespace {

int64_t align(int64_t x, int64_t alignment) { return (x + alignment - 1) & ~(alignment - 1); }

}  // namespace

void Search::set_state(uint32_t item, State state) {
  changes_.push_back({Kind::kState, item, static_cast<int64_t>(state_[item]), 0});
  state_[item] = state;
}

void Search::set_place(uint32_t item, int64_t rest, int64_t low) {
  changes_.push_back({Kind::kPlace, item, rest_[item], low_[item]});
  rest_[item] = rest;
  low_[item] = low;
}

void Search::undo(size_t length) {
  for (; changes_.size() > length; changes_.pop_back()) {
    const Change& c = changes_.back();
    switch (c.kind) {
      case Kind::kState:
        state_[c.index] = static_cast<State>(c.first);
        break;
      case Kind::kPlace:
        rest_[c.index] = c.first;
        low_[c.index] = c.second;
        break;
      case Kind::kSection:
        floor_[c.index] = c.first;
        lowest_[c.index] = static_cast<uint32_t>(c.second);
        break;
      case Kind::kLoad:
        for (const Part& p : core_.parts_of(c.index))
          for (uint32_t s = p.begin; s < p.end; ++s) {
            left_[s] += static_cast<int64_t>(p.size);
            ++count_[s];
            if (s + 1 < p.end) ++crossing_[s];
          }
        break;
    }
  }
}

bool Search::place(uint32_t item, int64_t offset) {
  if (offset + core_.items[item].extent > capacity_) return false;
  set_state(item, State::kPlaced);
  offset_[item] = offset;
  changes_.push_back({Kind::kLoad, item, 0, 0});
  parted_ = core_.items[item].part_count > 1;
  for (const Part& p : core_.parts_of(item))
    for (uint32_t s = p.begin; s < p.end; ++s) {
      left_[s] -= static_cast<int64_t>(p.size);
      --count_[s];
      if (s + 1 < p.end && --crossing_[s] == 0) parted_ = true;
    }
  for (const Arc& a : core_.arcs_of(item)) {
    const uint32_t other = a.other;
    if (state_[other] == State::kPlaced) continue;
    const Core::Item& o = core_.items[other];
    if (o.fixed >= 0) {
      if (offset + a.up > o.fixed) return false;
      continue;
    }
    const int64_t rest = align(offset + a.up, o.alignment);
    if (rest <= rest_[other]) continue;
    set_place(other, rest, std::max(low_[other], rest));
    if (state_[other] == State::kPassed) set_state(other, State::kOpen);
  }
  return true;
}

// Twins change places freely: where one has been tried and passed, the others need not be.
bool Search::pass(const Side& side, uint32_t item, int64_t offset) {
  set_state(item, State::kPassed);
  for (uint32_t twin : core_.twins[core_.items[item].twin])
    if (twin != item && state_[twin] == State::kOpen && rest_[twin] == rest_[item])
      set_state(twin, State::kPassed);
  return settle(side, offset);
}

// `offset`: of the last item placed or passed; nothing of the side will lie lower.
bool Search::settle(const Side& side, int64_t offset) {
  for (uint32_t k = side.begin; k < side.end; ++k) {
    const uint32_t i = lists_[k];
    if (state_[i] == State::kPassed && !(has_blocker(i) && lift(i, offset))) return false;
  }
  return check_sections(side.first_section, side.end_section);
}

// The arc that was good enough before is looked at first: a hint, so it need not be taken back.
bool Search::has_blocker(uint32_t item) {
  const auto arcs = core_.arcs_of(item);
  auto good = [&](const Arc& a) {
    return state_[a.other] != State::kPlaced && low_[a.other] < rest_[item] + a.up;
  };
  if (blocker_[item] < arcs.size() && good(arcs[blocker_[item]])) return true;
  for (uint32_t k = 0; k < arcs.size(); ++k)
    if (good(arcs[k])) {
      blocker_[item] = k;
      return true;
    }
  return false;
}

// A passed item will lie on one that is not placed yet.
bool Search::lift(uint32_t item, int64_t offset) {
  int64_t low = kNever;
  for (const Arc& a : core_.arcs_of(item))
    if (state_[a.other] != State::kPlaced) low = std::min(low, std::max(low_[a.other], offset) + a.down);
  if (low == kNever) return false;
  low = align(low, core_.items[item].alignment);
  if (low > low_[item]) set_place(item, rest_[item], low);
  return true;
}

bool Search::barred_by_fixed(uint32_t item) const {
  for (const Arc& a : core_.arcs_of(item)) {
    const int64_t fixed = core_.items[a.other].fixed;
    if (fixed >= 0 && state_[a.other] != State::kPlaced && fixed < rest_[item] + a.up) return true;
  }
  return false;
}

bool Search::check_sections(uint32_t begin, uint32_t end) {
  for (uint32_t s = begin; s < end; ++s) {
    if (count_[s] == 0) continue;
    const uint32_t before = lowest_[s];
    if (state_[before] == State::kPlaced || low_[before] != floor_[s]) {
      int64_t floor = kNever;
      uint32_t lowest = before;
      for (uint32_t i : core_.live_in(s))
        if (state_[i] != State::kPlaced && low_[i] < floor) {
          floor = low_[i];
          lowest = i;
        }
      changes_.push_back({Kind::kSection, s, floor_[s], static_cast<int64_t>(before)});
      floor_[s] = floor;
      lowest_[s] = lowest;
    }
    if (floor_[s] + left_[s] > capacity_ + core_.slack[s]) return false;
  }
  return true;
}

}  // namespace packed
