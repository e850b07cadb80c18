// The planner's view of a problem: buffers checked, sizes rounded up to their alignment, and what can be said
// without planning: the lower bound and how many pairs of buffers share time.
#pragma once

#include <cstdint>
#include <vector>

#include "regie/c/memory.h"

namespace plan {

struct Item {
  uint64_t lower, upper;
  uint64_t size;   // of a free buffer: rounded up to its alignment
  uint64_t exact;  // as asked for
  uint64_t alignment;
  uint64_t fixed;  // offset, or REGIE_OFFSET_FREE
  bool is_fixed() const { return fixed != REGIE_OFFSET_FREE; }
};

struct Problem {
  std::vector<Item> items;
  std::vector<uint32_t> fixed;  // indices, by lower
  uint64_t end = 0;             // greatest upper
  uint64_t lower_bound = 0;     // greatest sum of sizes live at one step, rounded up to alignment
  uint64_t exact_bound = 0;     // the same of the sizes as asked for: holds whatever the alignments are
  uint64_t alignment = 1;       // of all buffers, if uniform
  bool uniform = true;
  uint64_t pairs = 0;  // of buffers that share time
};

// Throws Failure: a buffer that cannot be, sizes that cannot be added up, two fixed buffers in one place.
Problem read(const regie_memory_problem& problem);

inline uint64_t align_up(uint64_t x, uint64_t alignment) { return (x + alignment - 1) & ~(alignment - 1); }

}  // namespace plan
