#include "search.h"

#include <algorithm>
#include <numeric>

namespace packed {

namespace {

// A sequence that is the same everywhere (the library's distributions are not).
uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Search::Search(const Core& core) : core_(core) {}

void Search::reset() {
  const size_t n = core_.items.size();
  rest_.assign(n, 0);
  low_.assign(n, 0);
  offset_.assign(n, 0);
  state_.assign(n, State::kOpen);
  blocker_.assign(n, 0);
  for (uint32_t i = 0; i < n; ++i)
    if (core_.items[i].fixed >= 0) low_[i] = core_.items[i].fixed;
  left_ = core_.load;
  floor_.assign(core_.sections, kNever);
  lowest_.assign(core_.sections, 0);
  count_.assign(core_.sections, 0);
  crossing_.assign(core_.sections, 0);
  for (uint32_t s = 0; s < core_.sections; ++s)
    for (uint32_t i : core_.live_in(s)) {
      ++count_[s];
      if (low_[i] < floor_[s]) {
        floor_[s] = low_[i];
        lowest_[s] = i;
      }
    }
  for (const Part& p : core_.parts)
    for (uint32_t s = p.begin; s + 1 < p.end; ++s) ++crossing_[s];
  changes_.clear();
  lists_.clear();
  sides_.clear();
  frames_.clear();
  agenda_ = -1;
  nodes_ = 0;
}

Found Search::run(int64_t capacity, const Keys& keys, uint64_t limit, double noise, uint64_t seed,
                  std::optional<Clock::time_point> deadline) {
  capacity_ = capacity;
  keys_ = keys;
  limit_ = limit;
  deadline_ = deadline;
  reset();
  shake_.assign(core_.items.size(), 1);
  if (noise > 0)
    for (double& s : shake_)
      s = 1 + noise * (static_cast<double>(next_random(&seed) >> 40) / double{1 << 24} - 0.5);
  for (const Core::Item& item : core_.items)
    if (std::max<int64_t>(item.fixed, 0) + item.extent > capacity) return Found::kNoPlan;
  if (!check_sections(0, core_.sections)) return Found::kNoPlan;

  std::vector<uint32_t> all(core_.items.size());
  std::iota(all.begin(), all.end(), 0);
  parted_ = true;
  add_sides(all, -1);
  while (agenda_ >= 0) {
    const Side side = sides_[static_cast<size_t>(agenda_)];
    agenda_ = side.next;
    frames_.push_back({side, agenda_, changes_.size(), lists_.size(), sides_.size(), 0, 0});
    int32_t frame = static_cast<int32_t>(frames_.size()) - 1;
    for (Step step = advance(frame); step != Step::kPlaced; step = advance(frame)) {
      if (step == Step::kLimit) return Found::kLimit;
      do {
        frame = frames_[static_cast<size_t>(frame)].side.parent;
        if (frame < 0) return Found::kNoPlan;
      } while (!retry(frame));
    }
  }
  return Found::kPlan;
}

bool Search::out_of_budget() {
  if (nodes_ >= limit_) return true;
  return deadline_ && nodes_ % 256 == 0 && Clock::now() >= *deadline_;
}

// Places the next item of the frame's side and puts what remains of the side on the agenda. kDead: the side
// cannot be solved.
Search::Step Search::advance(int32_t index) {
  for (;;) {
    Frame& f = frames_[static_cast<size_t>(index)];
    int64_t offset = kNever;
    uint32_t item = kNone;
    for (uint32_t k = f.side.begin; k < f.side.end; ++k) {
      const uint32_t i = lists_[k];
      if (state_[i] != State::kOpen) continue;
      const int64_t fixed = core_.items[i].fixed;
      const int64_t at = fixed >= 0 ? fixed : rest_[i];
      if (at < offset || (at == offset && fixed >= 0)) {
        offset = at;
        item = i;
      }
    }
    if (item == kNone) return Step::kDead;  // all that are left wait to be lifted
    if (core_.has_fixed && core_.items[item].fixed < 0 && barred_by_fixed(item)) {
      if (!pass(f.side, item, offset)) return Step::kDead;
      continue;
    }
    if (out_of_budget()) return Step::kLimit;
    ++nodes_;
    f.changes = changes_.size();
    f.lists = lists_.size();
    f.sides = sides_.size();
    f.item = item;
    f.offset = offset;
    parted_ = false;
    if (place(item, offset) && settle(f.side, offset)) {
      open(index);
      return Step::kPlaced;
    }
    if (!retry(index)) return Step::kDead;
  }
}

// Takes the last placement of a frame back, with all that was built on it, and passes the item instead.
// False: the side is dead.
bool Search::retry(int32_t index) {
  frames_.resize(static_cast<size_t>(index) + 1);
  Frame& f = frames_.back();
  undo(f.changes);
  lists_.resize(f.lists);
  sides_.resize(f.sides);
  agenda_ = f.agenda;
  return core_.items[f.item].fixed < 0 && pass(f.side, f.item, f.offset);
}

void Search::open(int32_t index) {
  const Side& side = frames_[static_cast<size_t>(index)].side;
  std::vector<uint32_t> items;
  items.reserve(side.end - side.begin);
  for (uint32_t k = side.begin; k < side.end; ++k)
    if (state_[lists_[k]] != State::kPlaced) items.push_back(lists_[k]);
  if (items.empty()) return;
  if (parted_)
    add_sides(items, index);
  else
    add_side(items, index);
}

void Search::add_side(const std::vector<uint32_t>& items, int32_t parent) {
  Side side{static_cast<uint32_t>(lists_.size()), 0, UINT32_MAX, 0, parent, agenda_};
  lists_.insert(lists_.end(), items.begin(), items.end());
  side.end = static_cast<uint32_t>(lists_.size());
  for (uint32_t i : items)
    for (const Part& p : core_.parts_of(i)) {
      side.first_section = std::min(side.first_section, p.begin);
      side.end_section = std::max(side.end_section, p.end);
    }
  agenda_ = static_cast<int32_t>(sides_.size());
  sides_.push_back(side);
}

// The tightest side is solved first: it is the one that may fail.
void Search::add_sides(const std::vector<uint32_t>& items, int32_t parent) {
  std::vector<std::vector<uint32_t>> parts = split(items);
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t k = 0; k < parts.size(); ++k) order.emplace_back(tightness(parts[k]), parts.size() - k);
  std::sort(order.begin(), order.end());
  for (const auto& [tight, k] : order) {
    std::vector<uint32_t>& part = parts[parts.size() - k];
    rank(&part);
    add_side(part, parent);
  }
}

int64_t Search::tightness(const std::vector<uint32_t>& items) const {
  int64_t most = INT64_MIN;
  for (uint32_t i : items)
    for (const Part& p : core_.parts_of(i))
      for (uint32_t s = p.begin; s < p.end; ++s) most = std::max(most, floor_[s] + left_[s] - core_.slack[s]);
  return most;
}

// Which of the items hang together, through items that are not placed.
std::vector<std::vector<uint32_t>> Search::split(const std::vector<uint32_t>& items) {
  std::vector<std::vector<uint32_t>> parts;
  if (core_.simple) {
    std::vector<uint32_t> sorted = items;
    auto part = [&](uint32_t i) -> const Part& { return core_.parts[core_.items[i].first_part]; };
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](uint32_t a, uint32_t b) { return part(a).begin < part(b).begin; });
    uint32_t end = 0;
    for (uint32_t i : sorted) {
      if (parts.empty() || part(i).begin >= end) parts.emplace_back();
      end = std::max(end, part(i).end);
      parts.back().push_back(i);
    }
    return parts;
  }
  std::vector<uint8_t> seen(core_.items.size(), 0);
  std::vector<uint32_t> walk;
  for (uint32_t first : items) {
    if (seen[first]) continue;
    parts.emplace_back();
    seen[first] = 1;
    walk.push_back(first);
    while (!walk.empty()) {
      const uint32_t i = walk.back();
      walk.pop_back();
      parts.back().push_back(i);
      for (const Arc& a : core_.arcs_of(i))
        if (state_[a.other] != State::kPlaced && !seen[a.other]) {
          seen[a.other] = 1;
          walk.push_back(a.other);
        }
    }
    std::sort(parts.back().begin(), parts.back().end());
  }
  return parts;
}

double Search::key(Key key, uint32_t item) const {
  const Core::Item& i = core_.items[item];
  switch (key) {
    case Key::kLife:
      return i.life;
    case Key::kArea:
      return i.life * static_cast<double>(i.extent);
    case Key::kSize:
      return static_cast<double>(i.extent);
    case Key::kLoad:
      break;
  }
  int64_t most = 0;
  for (const Part& p : core_.parts_of(item))
    for (uint32_t s = p.begin; s < p.end; ++s) most = std::max(most, left_[s]);
  return static_cast<double>(most);
}

void Search::rank(std::vector<uint32_t>* items) const {
  struct Ranked {
    std::array<double, 3> keys;
    uint32_t item;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(items->size());
  for (uint32_t i : *items) {
    Ranked r{{}, i};
    for (size_t k = 0; k < keys_.size(); ++k) r.keys[k] = key(keys_[k], i) * shake_[i];
    ranked.push_back(r);
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.keys != b.keys ? a.keys > b.keys : a.item < b.item;
  });
  for (size_t k = 0; k < ranked.size(); ++k) (*items)[k] = ranked[k].item;
}

}  // namespace packed
