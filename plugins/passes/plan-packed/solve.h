// The whole planner: greedy plans first, each independent piece of the problem keeping its best; then exact
// search on the pieces that stand above the bound, the highest first.
#pragma once

#include <cstdint>

#include "greedy.h"
#include "problem.h"

namespace packed {

constexpr uint64_t kMany = 20'000;  // items; greedy plans of so many are tried sparingly

struct Limits {
  uint64_t capacity = UINT64_MAX;  // UINT64_MAX: the less the better
  uint64_t greedy_visits = 0;      // looks at items or pairs that greedy plans may take
  double near_enough = 1;          // times the bound: with many buffers, no more greedy plans
  uint64_t search_work = 0;        // what may be searched, in looks; 0: no search
  uint64_t search_nodes = 0;       // instead of search_work, if not 0
  uint64_t core_pairs = 0;         // larger pieces are not searched
  double seconds = 0;              // 0: none
};

struct Outcome {
  Offsets offsets;  // by item
  uint64_t peak = 0;
  uint64_t lower_bound = 0;
  uint64_t nodes = 0;
};

Outcome solve(const Problem& problem, const Limits& limits);

}  // namespace packed
