// What is to be laid on streams: tasks that run something, in a valid order, with what each takes and what
// must have ended before it; and the devices that they run on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regie/c/host.h"
#include "regie/c/scheduler.h"
#include "regie/c/scheduling.h"

namespace streams {

struct Device {
  std::string name;
  uint32_t streams = 1;  // that there may be
  uint32_t events = 0;   // 0: any number
  // Its one stream is the host's own thread: a task there is waited for as it is issued.
  bool host = false;
  double issue_ns = 0, event_issue_ns = 0;  // of the host, to hand over a task or an event
  double launch_ns = 0;                     // once, for all of them
  double event_ns = 0;                      // from a task's end to who waits for it on another stream
  double gap_ns = 0;                        // between two tasks of a stream
  double wait_ns = 0;                       // until the host knows of an end
};

// What runs so many tasks at once: the engines of a device, and what copies in each direction.
struct Unit {
  uint32_t at_once = 1;
};

struct Task {
  uint32_t device = 0, unit = 0;
  double busy_ns = 0;           // the unit is taken
  double tail_ns = 0;           // and then, until its stream knows
  bool barrier = false;         // the host waits for all before it, and it is before all after it
  std::vector<uint32_t> after;  // ascending
};

struct Network {
  std::vector<Device> devices;
  std::vector<Unit> units;
  std::vector<Task> tasks;
};

// As it is to be issued.
struct Schedule {
  std::vector<uint32_t> order;   // tasks
  std::vector<uint32_t> stream;  // by task; of its device
};

struct Event {
  uint32_t from, to;  // tasks
};

// A problem without the tasks that run nothing: who needs one of those needs what it is after.
struct Problem {
  Network network;
  std::vector<uint32_t> task_of;                  // by task of the network: that of the problem
  std::vector<uint32_t> network_of;               // by task of the problem; REGIE_NONE: it runs nothing
  std::vector<std::vector<uint32_t>> real_after;  // by task of the problem, in those of the network
};

// `wanted`: streams that the user asks for, 0: as many as the target has. Throws Failure for what is not
// valid.
Problem read(const regie_schedule_problem& problem, const regie_config* options,
             const regie_host_scheduling* host, uint32_t wanted);

}  // namespace streams
