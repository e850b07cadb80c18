// Decides what is computed again so that fewer bytes are alive at the peak.
//
// An order is good only for what is computed, and what is worth being computed again depends on the order. So
// around the peak both are searched together (repeat_search.h), and what was found is a new problem, with
// the copies as tasks of their own, to go on from. In the end each copy that the peak does not need goes.
#pragma once

#include "region.h"

namespace order {

struct RecomputeGoal {
  int64_t bytes = 0;  // the peak to come down to
  double cost = 0;    // that all copies may take together
  double worth = 0;   // copies that take a share s of `total` lower the peak by at least the share s * worth
  double total = 0;   // what all tasks take
};

struct Recomputed {
  Order steps;  // of tasks of the region; those that are computed again occur again
  int64_t peak = 0;
  double cost = 0;
};

// From an order of the region. Never has a higher peak than that; gives that, if nothing is found.
Recomputed recompute(const Region& region, const Order& from, const RecomputeGoal& goal, uint64_t budget);

}  // namespace order
