// What a scheduling problem says about bytes: which task makes them, which tasks touch them, how many they
// are at the least values of the symbols. Values that lie on each other's bytes are one; graph outputs lie in
// the caller's memory and do not count.
#pragma once

#include "memory_order.h"
#include "regie/c/scheduler.h"

namespace order {

bool one_device(const regie_schedule_problem& problem);

// Throws Failure for tasks that are not in a valid order.
Region memory_model(const regie_schedule_problem& problem, const regie_host* host);

}  // namespace order
