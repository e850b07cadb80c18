// What a schedule takes of memory, told quickly: the best of a few first-fit packings. It never is less than
// the best plan, and is made in a small part of the time that the memory planner takes; so sets of events are
// ranked by it where there are too many buffers to ask the planner about each.
#pragma once

#include <vector>

#include "reuse.h"
#include "turns.h"

namespace streams {

// `turns` and `before`: which of the buffers may share bytes. Offsets are valid by these.
Plan fit(const std::vector<Buffer>& buffers, const Turns& turns, const Before& before,
         const Schedule& schedule);

}  // namespace streams
