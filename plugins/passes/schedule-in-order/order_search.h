// Search for an order below a limit, by layers of sets of finished tasks.
//
// A task that is ready, stays below the limit and leaves no more bytes alive than there were is run at once:
// no order below the limit gets worse by that, as what is alive after a set of tasks is a submodular function
// of the set. Elsewhere the search branches; sets that are reached twice are kept once. As long as no layer
// has to be cut down to the width of the beam, that is exact dynamic programming.
#pragma once

#include "region.h"

namespace order {

enum class Found { kOrder, kNothing, kNoSuchOrder };  // kNoSuchOrder: that is proven

struct Beam {
  size_t width;  // sets of one number of tasks that are looked at
};

// An order of all tasks of `region` in which never `limit` bytes or more are alive. `live`: bytes alive
// before it, those that have begun included. Every step, a look at one task in one set, is taken off
// `budget`; nothing is found when it is used up.
Found order_below(const Region& region, int64_t live, int64_t limit, const Beam& beam, uint64_t* budget,
                  Order* found);

}  // namespace order
