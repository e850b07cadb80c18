// What devices with a clock of their own tell of profiled runs (regie_context_device_times), and what it adds
// up to: how busy each engine was, and what each stream waited for between its tasks.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/task_times.h"

namespace regie::cli {

// Of one stream in one run; nanoseconds of the device's clock.
struct StreamTimes {
  struct Lane {
    std::string name;
    bool is_engine = false;
  };
  struct Task {
    size_t time = 0;  // index in the run's task times
    uint64_t issue = 0, issued = 0, free = 0, ready = 0, event = 0, begin = 0, run = 0, ran = 0, end = 0;
    uint64_t bytes = 0, far_bytes = 0;
    double flops = 0, least = 0;
    int64_t lane = -1;
  };
  struct Slice {
    size_t time = 0, lane = 0;
    uint64_t begin = 0, end = 0;
    std::string name;
  };
  struct Wait {
    uint64_t begin = 0, end = 0;
  };
  struct Host {  // what the host computed itself
    size_t time = 0;
    uint64_t begin = 0, end = 0;
  };
  uint32_t device = 0, stream = 0;
  std::vector<Lane> lanes;
  std::vector<Task> tasks;
  std::vector<Slice> slices;
  std::vector<Wait> waits;
  std::vector<Host> host;  // of the device: kept with the first of its streams
};

std::vector<StreamTimes> read_device_times(const char* json);

// First thing handed over, last thing known to have ended, of a device in a run.
struct Extent {
  uint64_t begin = UINT64_MAX, end = 0;
};
std::map<uint32_t, Extent> extents(const std::vector<StreamTimes>& streams);

// The time between two tasks of a stream, by what it was spent on.
struct Gap {
  double launch = 0;  // what the hardware needs between tasks
  double host = 0;    // nothing had been handed over
  double event = 0;   // another stream or a copy had not come so far
  double engine = 0;  // the engine worked for others
  double all() const { return launch + host + event + engine; }
  void add(const Gap& other) {
    launch += other.launch;
    host += other.host;
    event += other.event;
    engine += other.engine;
  }
};
Gap gap_before(const StreamTimes::Task& task, uint64_t run_begin);

class DeviceSummaries {
 public:
  void add(const Tasks& tasks, const std::vector<regie_task_time>& times,
           const std::vector<StreamTimes>& streams);
  bool empty() const { return devices_.empty(); }
  nlohmann::ordered_json json(double runs) const;
  std::string text(double runs) const;

 private:
  struct Stream {
    double tasks = 0, busy = 0;
    Gap gap;
  };
  struct Device {
    std::string name;
    double ns = 0, launches = 0, copies = 0, copied_bytes = 0, bytes = 0, far_bytes = 0, duration = 0,
           host_wait = 0, host_work = 0, least = 0, at_work = 0;
    std::map<uint32_t, Stream> streams;
    std::map<size_t, std::pair<std::string, double>> engines;  // by lane: busy ns
    std::map<std::string, TimeShares::Share> origins, kernels;
    Stream all() const;  // its streams together
  };
  std::map<uint32_t, Device> devices_;
};

}  // namespace regie::cli
