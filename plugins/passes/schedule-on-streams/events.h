// Which events a schedule needs: the fewest that, with the order of each stream, order all that must be
// ordered and nothing else.
#pragma once

#include <vector>

#include "network.h"

namespace streams {

// An event stands for a need that neither the order of a stream nor other events imply: with them, what is
// ordered is exactly what the needs and the streams' orders say, and of all sets of events of which that
// holds this one is the smallest (the transitive reduction of an order without cycles is unique). Ascending
// by the task that waits; of one task, those issued last first.
std::vector<Event> fewest_events(const Network& network, const Schedule& schedule);

// One for each need between streams.
std::vector<Event> all_events(const Network& network, const Schedule& schedule);

// By event, the number of a flag on the device that signals it. A task that several wait for has one flag. A
// flag is used again where whoever waited for it has started before the next task that signals it ends.
std::vector<uint32_t> event_ids(const Network& network, const Schedule& schedule,
                                const std::vector<Event>& events);

}  // namespace streams
