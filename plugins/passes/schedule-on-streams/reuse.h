// Weighs events that are there so that buffers may share bytes: what each takes of the time, by the same
// prediction that chose the streams, against what the memory planner saves with it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "network.h"

namespace streams {

struct Buffer {
  std::vector<uint32_t> touching;  // tasks of the network, ascending; not empty
  uint64_t size = 0, alignment = 1;
  uint32_t space = 0;
  bool kept = false;  // read after all tasks: nobody takes its bytes
};

// All that touches buffer `first` has ended before anything touches buffer `second`.
struct Turn {
  uint32_t first, second;
};

struct Plan {
  uint64_t bytes = 0;             // of all arenas
  std::vector<uint64_t> offsets;  // by buffer
};

// What the memory planner makes of a schedule; thorough: with the effort of the plan that counts.
using Planner =
    std::function<Plan(const Schedule& schedule, const std::vector<Event>& events, bool thorough)>;

struct ReuseGoal {
  double most_ns = 0;  // that a run may take
  // A share of the time is given for a share of the bytes that is so many times as large.
  double worth = 2;
  // Not 0: as few bytes as this, at the least time; bytes_before is with little effort then.
  uint64_t limit = 0;
  std::function<bool(const Schedule&, const std::vector<Event>&)> allowed;  // enough flags for the events
};

struct Reuse {
  struct Weighed {
    Turn turn;
    int64_t bytes;  // fewer with it than without, beside the others that were taken
    double ns;      // more
    bool known;     // of many taken, only the first are told apart
  };
  Schedule schedule;
  std::vector<Event> events;
  double ns = 0, ns_before = 0;
  uint64_t bytes = 0, bytes_before = 0;
  std::vector<Weighed> taken;
  std::vector<Weighed> refused;  // by itself, the most bytes first; at most 16
  size_t weighed = 0;            // schedules that were planned
  bool every = false;            // every set of turns was weighed: none is better
};

// Turns that no cycle comes of, each with the events that it needs beyond those there are; of these the
// fewest. Never worse than without any: a set is taken if it makes (share of the bytes) / worth + (share of
// the time, which counts as no less than without any) less, within most_ns; or, with a limit, comes closer to
// it. The answer is a function of the arguments.
Reuse weigh_reuse(const Network& network, const Schedule& schedule, const std::vector<Buffer>& buffers,
                  const Planner& planner, const ReuseGoal& goal);

}  // namespace streams
