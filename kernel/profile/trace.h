// Profiled runs as a trace in Chrome's event format, which Perfetto and chrome://tracing load: a lane for the
// host, one for each stream of each device, arrows where a task was handed over or waited for another. A
// device with a clock of its own has its own lanes of all that, and of its engines, in its own time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/device_times.h"

namespace regie {

struct ProfiledRun {
  uint64_t begin_ns = 0, end_ns = 0;  // of the call, on the clock of the task times
  std::vector<regie_task_time> times;
  std::vector<StreamTimes> streams;  // of devices with a clock of their own
};

// JSON. Times begin at 0 with the first run.
std::string chrome_trace(const std::string& title, const Tasks& tasks, const std::vector<ProfiledRun>& runs);

}  // namespace regie
