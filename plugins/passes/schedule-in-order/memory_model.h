// What a scheduling problem says about bytes: which tasks touch them, how many they are at the least values
// of the symbols, what a kernel needs to work in, which results may be written over what is read for the last
// time. Values that lie on each other's bytes are one; graph outputs lie in the caller's memory and do not
// count.
#pragma once

#include "region.h"
#include "regie/c/recompute.h"
#include "regie/c/scheduler.h"
#include "regie/c/sharing.h"
#include "regie/graph_view.hpp"

namespace order {

bool one_device(const regie_schedule_problem& problem);

uint32_t root_of(const regie::sdk::GraphView& graph, uint32_t value);

// `sharing`: NULL if the host has none; then nothing is written over anything. `rooms`: kernels' scratch
// counts. Throws Failure for tasks that are not in a valid order.
Region memory_model(const regie_schedule_problem& problem, const regie_host* host,
                    const regie_host_sharing* sharing, bool rooms);

// Fills `cost` of the model of `problem`, and leaves in `again` what the host lets run once more and the
// engine knows the time of.
void add_repeats(const regie_schedule_problem& problem, const regie_host_recompute& host, Region* region);

}  // namespace order
