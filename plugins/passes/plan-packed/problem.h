// What the planners see of a problem: buffers checked, groups made one item each, and time cut down to the
// sections in which the set of live buffers is as large as it gets. Two buffers share time if and only if
// they share such a section, so nothing is lost, and a model of a million steps has no more sections than
// buffers. A forbidden overlap of two buffers is a section of its own, beyond the end of time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regie/c/memory.h"

namespace packed {

constexpr uint32_t kNone = UINT32_MAX;
constexpr uint64_t kFree = REGIE_OFFSET_FREE;
constexpr uint64_t kTooMuch = uint64_t{1} << 60;  // sums below this cannot overflow when they are aligned

// An item takes `size` bytes, from its offset on, in sections [begin, end).
struct Part {
  uint32_t begin, end;
  uint64_t size;
};

// What has one offset: a buffer, or all buffers of a group.
struct Item {
  uint32_t first_part = 0, part_count = 0;  // parts are disjoint in time, ascending
  uint64_t extent = 0;  // size of the largest part; 0 (and no part): empty buffers of a group
  uint64_t alignment = 1;
  uint64_t fixed = kFree;
  double life = 0;  // steps
  bool is_fixed() const { return fixed != kFree; }
};

struct Problem {
  std::vector<Item> items;  // in the order of their first buffers
  std::vector<Part> parts;
  std::vector<uint32_t> item_of;  // by buffer; kNone: it has no bytes
  uint32_t sections = 0;
  // Every offset is a multiple of `grain`, so all but the topmost buffer take whole grains.
  uint64_t grain = 1;
  std::vector<uint64_t> load;   // by section: sum of sizes, each in whole grains
  std::vector<uint64_t> slack;  // by section: the most that a topmost buffer leaves of its last grain
  uint64_t lower_bound = 0;     // no plan has a lower peak
  bool simple = true;           // one part an item

  std::span<const Part> parts_of(const Item& item) const {
    return {parts.data() + item.first_part, item.part_count};
  }
  uint64_t whole(uint64_t size) const { return (size + grain - 1) / grain * grain; }
};

inline uint64_t align_up(uint64_t x, uint64_t alignment) { return (x + alignment - 1) & ~(alignment - 1); }

// Throws Failure: a buffer that cannot be, a group that cannot be at one place, fixed buffers that meet,
// sizes that cannot be added up.
Problem read(const regie_memory_problem& problem);

}  // namespace packed
