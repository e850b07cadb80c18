// Lays tasks on streams by list scheduling: again and again, of the tasks that may be issued the one that can
// start first, on the stream where it can.
#pragma once

#include <vector>

#include "network.h"

namespace streams {

enum class Order {
  kGiven,     // as the tasks stand: only their streams are chosen
  kFirst,     // by the time at which they can start, then by how long it takes from there to the end
  kHostLast,  // the same, but what makes the host wait comes when nothing else is left
};

// Everything on stream 0 of its device, in the order in which the tasks stand.
Schedule one_stream(const Network& network);

// At most `most` streams a device, and never more than it has. Streams count from 0 in the order in which
// they are first used.
Schedule lay(const Network& network, uint32_t most, Order order);

}  // namespace streams
