// The search for an order below a limit in which values may be computed again.
//
// As in order_search.h, sets of finished tasks are grown one task at a time. Where a task does not fit below
// the limit, values that lie idle may be dropped: such a value takes no bytes until the task that makes it
// has run once more, which it does right before the next of its readers. Until then what that task reads
// stays alive, or is dropped, and made once more, as well. So which readers read which copy, chains of
// copies and the order are one question.
#pragma once

#include "order_search.h"
#include "region.h"

namespace order {

struct RepeatLimits {
  int64_t limit;     // fewer bytes than these are alive at any time
  double cost;       // that runs of tasks once more may take together
  size_t width = 4;  // of the beam
  // Keep for each part of the cost that may be spent sets of its own. What is best differs.
  bool parts = false;
};

// A sequence of all tasks of `region`, those that run again (`Region::again`) more than once. `live`: as of
// order_below. Nothing found proves nothing.
bool steps_below(const Region& region, int64_t live, const RepeatLimits& limits, uint64_t* budget,
                 Order* steps);

}  // namespace order
