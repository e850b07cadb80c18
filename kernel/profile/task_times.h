// The times of a profiled run with what is known of each task: where profiles get their lanes from and
// `bench` the share of reference kernels.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "regie/api/regie.h"

namespace regie {

struct TaskInfo {
  std::string name;                  // "node 'conv1' (Op)"
  std::string op, kind, kernel;      // kernel: empty for copies and control flow
  std::string engine;                // of the target; empty where none has a say, as for copies
  std::vector<std::string> origins;  // framework operators
  bool reference = false;
  uint32_t device = 0, stream = 0;
  std::vector<uint32_t> waits;  // tasks of the same program
};

struct Tasks {
  uint32_t threads = 1;                         // that the model was compiled for
  std::vector<std::string> devices;             // "cpu (host_cpu)"
  std::vector<std::vector<TaskInfo>> programs;  // by program and task
  const TaskInfo& of(const regie_task_time& t) const { return programs[t.program][t.task]; }
};

Tasks read_tasks(const regie_model* model);

// Time in kernels and copies; a task that runs others is not counted beside them.
struct TimeShares {
  struct Share {
    double ns = 0;
    uint64_t calls = 0;
  };
  Share all, reference;
  std::map<std::string, Share> by_op, by_kernel, reference_by_op;
  // `simulated`: devices with clocks of their own, whose times are of another kind and left out.
  void add(const Tasks& tasks, const regie_task_time* times, size_t count,
           const std::set<uint32_t>& simulated);
  double reference_share() const { return all.ns > 0 ? reference.ns / all.ns : 0; }
};

// Greatest first, of equal ones by name.
std::vector<std::pair<std::string, TimeShares::Share>> ranked(
    const std::map<std::string, TimeShares::Share>& shares);

}  // namespace regie
