// How long a run of a schedule takes: the host hands over one task after the other, streams run theirs in
// order, units take who was ready first, events take their time.
#pragma once

#include <vector>

#include "network.h"

namespace streams {

// Nanoseconds from the first task that is handed over to the moment when the host knows that all have ended.
double predict(const Network& network, const Schedule& schedule, const std::vector<Event>& events);

}  // namespace streams
