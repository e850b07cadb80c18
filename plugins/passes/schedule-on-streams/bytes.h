// The host's word on memory: which buffers there are, and what they take with a schedule (regie/c/reuse.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "regie/c/reuse.h"
#include "regie/graph_view.hpp"
#include "reuse.h"

namespace streams {

// All tasks of the problem as they are issued. What runs nothing comes as soon as what it is after has, on
// the stream of the last of those that shares its device.
std::vector<regie_reuse_step> steps_of(const regie_schedule_problem& problem, const Problem& read,
                                       const Schedule& schedule);

class Bytes {
 public:
  // `host`: null if it knows of no memory.
  Bytes(const regie_schedule_problem& problem, const Problem& read, const regie_host_reuse* host)
      : p_(problem), q_(read), host_(host), g_(problem.graph) {}
  // Asks the host.
  void read();
  // Empty where a schedule cannot be judged by them, and before they are read.
  const std::vector<Buffer>& buffers() const { return buffers_; }
  uint64_t limit() const;
  Planner planner() const;
  std::string name(uint32_t buffer) const;

 private:
  const regie_schedule_problem& p_;
  const Problem& q_;
  const regie_host_reuse* host_;
  regie::sdk::GraphView g_;
  std::vector<Buffer> buffers_;
  // Plans that took effort, by steps and events.
  using Key = std::vector<std::pair<uint32_t, uint32_t>>;
  mutable std::map<std::pair<Key, Key>, Plan> known_;
  const regie_reuse_buffer* told_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace streams
