// A piece of a problem made ready for the exact search: its items that share time with each other, directly
// or through others, and nothing else. Pairs are listed here, so only what is small enough becomes a core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "problem.h"

namespace packed {

// If `other` lies above, it lies at least `up` bytes above; if it lies below, at least `down` bytes below.
struct Arc {
  uint32_t other;
  int64_t up, down;
};

struct Core {
  struct Item {
    int64_t extent = 0, alignment = 1;
    int64_t fixed = -1;  // or its offset
    double life = 0;
    uint32_t first_part = 0, part_count = 0;
    uint32_t twin = 0;  // the lowest of the items that nothing tells apart
  };
  std::vector<Item> items;
  std::vector<uint32_t> of_problem;  // item of the problem, by item
  std::vector<Part> parts;           // sections of the core, sizes in whole grains
  uint32_t sections = 0;
  std::vector<int64_t> load, slack;        // by section
  std::vector<uint32_t> item_begin, live;  // by section: live[item_begin[s] .. item_begin[s + 1])
  std::vector<uint32_t> arc_begin;         // by item
  std::vector<Arc> arcs;
  std::vector<std::vector<uint32_t>> twins;  // by lowest twin: all of them, where there are several
  int64_t lower_bound = 0;
  bool simple = true, has_fixed = false;

  std::span<const Part> parts_of(uint32_t i) const {
    return {parts.data() + items[i].first_part, items[i].part_count};
  }
  std::span<const uint32_t> live_in(uint32_t s) const {
    return {live.data() + item_begin[s], item_begin[s + 1] - item_begin[s]};
  }
  std::span<const Arc> arcs_of(uint32_t i) const {
    return {arcs.data() + arc_begin[i], arc_begin[i + 1] - arc_begin[i]};
  }
};

// The independent pieces of a problem, each a list of items that have bytes.
std::vector<std::vector<uint32_t>> pieces_of(const Problem& problem);

// Nothing, if there are more than `most_pairs` pairs that share time.
std::optional<Core> make_core(const Problem& problem, const std::vector<uint32_t>& piece,
                              uint64_t most_pairs);

}  // namespace packed
