// Chooses an order that keeps few bytes alive.
//
// Tasks that come after or before all others cut the region into stretches that can be ordered by themselves.
// The stretch that holds the peak is searched for an order below it (order_search.h), again and again, until
// there is none or the budget is used up; of one that is very long, a window around the peak is.
#pragma once

#include "region.h"

namespace order {

// Never has a higher peak than the order in which the tasks are given, and is that order if none is lower.
// `budget`: steps of the search.
Order for_memory(const Region& region, uint64_t budget);

}  // namespace order
