// Time-ordered planning: walks through time like an allocator, so that a buffer meets only what is alive when
// it starts. Best fit: it
// takes the smallest gap that is large enough. O(buffers x log buffers).
#pragma once

#include <cstdint>
#include <vector>

#include "items.h"

namespace plan {

enum class Tie { kLargest, kLongest };  // among buffers that start together, which comes first

// Offsets by item. `backwards`: from the last step to the first.
std::vector<uint64_t> plan_by_time(const Problem& problem, Tie tie, bool backwards);

}  // namespace plan
