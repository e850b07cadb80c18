// An order of tasks that keeps few bytes alive. Tasks that come after or before all others cut the region
// into stretches that can be ordered by themselves; each stretch that holds the peak is searched by layers of
// sets of finished tasks. As long as no layer has to be cut down to the width of the beam, that is exact
// dynamic programming; the width grows as long as the budget lasts.
#pragma once

#include <cstdint>
#include <vector>

namespace order {

using Order = std::vector<uint32_t>;

// Bytes that one task makes and several touch.
struct Bytes {
  int64_t size = 0;
  uint32_t maker = 0;
  std::vector<uint32_t> touched_by;  // the maker, too; each once
  bool kept = false;                 // handed out at the end of the region
};

struct Region {
  std::vector<std::vector<uint32_t>> after;  // by task: what must have ended; a valid order is 0, 1, 2, ...
  std::vector<Bytes> bytes;
};

// Never has a higher peak than the order in which the tasks are given, and is that order if none is lower.
// `budget`: steps of the search.
Order for_memory(const Region& region, uint64_t budget);

}  // namespace order
