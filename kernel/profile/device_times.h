// What devices with a clock of their own tell of profiled runs (regie_context_device_times), and what it adds
// up to: how busy each engine was, and what each stream waited for between its tasks.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "profile/task_times.h"

namespace regie {

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

// Those that have a clock of their own, for TimeShares::add.
std::set<uint32_t> simulated_devices(const std::vector<StreamTimes>& streams);

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

// Where a stream's time between the beginning and the end of a run went, each nanosecond in one place: what
// binds the run is the greatest part of the stream that works longest.
struct StreamParts {
  double host_work = 0;  // it waited while the host computed something itself
  double hand_over = 0;  // for other reasons nothing had been handed over
  double start = 0;  // between tasks, and from their dispatch to their beginning and from their end to where
                     // it is known
  double event = 0, end = 0;              // other streams or copies; after its last task: the host's wait
  std::map<size_t, double> engine, held;  // by lane: it computed, or others had it
};

class DeviceSummaries {
 public:
  void add(const Tasks& tasks, const std::vector<regie_task_time>& times,
           const std::vector<StreamTimes>& streams);
  // Of a device that has a clock, whether or not something ran on it.
  bool empty() const { return devices_.empty(); }
  nlohmann::ordered_json json(double runs) const;
  std::string text(double runs) const;
  // "npu (simulator)" and the mean time of a run, ns; for `bench`.
  std::vector<std::pair<std::string, double>> run_ns(double runs) const;

 private:
  struct Stream {
    double tasks = 0, busy = 0;
    Gap gap;
    StreamParts parts;
  };
  // A launch, for telling which of the device's limits holds it up.
  struct Launch {
    uint32_t stream = 0;
    int64_t lane = -1;
    double flops = 0, far_bytes = 0, least = 0, ns = 0;
  };
  // The greatest parts of the run, greatest first: in words, and nanoseconds of all runs.
  struct Bound {
    std::vector<std::pair<std::string, double>> parts;
    uint32_t stream = 0;
    std::string memory;  // a sentence, where it is the memory that engines wait for
  };
  struct Device {
    std::string name;
    double ns = 0, launches = 0, copies = 0, copied_bytes = 0, bytes = 0, far_bytes = 0, duration = 0,
           host_wait = 0, host_work = 0, least = 0, at_work = 0;
    std::map<uint32_t, Stream> streams;
    std::map<size_t, std::pair<std::string, double>> engines;  // by lane: busy ns
    std::map<std::string, TimeShares::Share> origins, kernels, host_origins;
    std::vector<Launch> launched;
    Stream all() const;  // its streams together
    Bound bound() const;
  };
  std::map<uint32_t, Device> devices_;
};

}  // namespace regie
