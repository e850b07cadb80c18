// Anytime minimisation of one core by exact search: restarts with several orders in turn, shaken a little
// more each round, at the lower bound and at capacities between it and the best plan known; the limits of
// single runs follow the ruler sequence (1 2 1 4 1 2 1 8 ...), so that long runs, which can also prove, get
// their share. Counted in placements, so the outcome is a function of the problem alone, unless a deadline is
// given.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search.h"

namespace packed {

struct Refined {
  int64_t peak = 0;              // of the best plan known
  std::vector<int64_t> offsets;  // by item of the core; empty: none better than the one given
  int64_t lower_bound = 0;       // proven
  uint64_t nodes = 0;
};

struct Effort {
  uint64_t nodes = 0;
  std::optional<Search::Clock::time_point> deadline;
};

// `peak`: of a plan that is known. Stops at `goal` or at a proof. `exact`: only a plan within `goal` is worth
// anything.
Refined refine(const Core& core, int64_t peak, int64_t goal, bool exact, const Effort& effort);

}  // namespace packed
