// A stream's own thread: work in the order in which it was handed over. Used where a model lays tasks on
// several streams of this computer; a model on one stream runs on the calling thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "regie/c/device.h"

namespace host_cpu {

class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker();  // after all that was handed over
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void enqueue(std::function<void()> job);
  // Until nothing is left to do; false: the time was over before.
  bool wait(uint64_t timeout_ns);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // the first is being done
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

// A launch that outlives the call that it came with.
class LaunchCopy {
 public:
  explicit LaunchCopy(const regie_launch& launch);
  LaunchCopy(const LaunchCopy&) = delete;
  LaunchCopy& operator=(const LaunchCopy&) = delete;
  const regie_launch& launch() const { return launch_; }

 private:
  regie_launch launch_;
  std::vector<regie_tensor> tensors_;  // operands, then results
  std::vector<int64_t> dims_;
};

}  // namespace host_cpu
