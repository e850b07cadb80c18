// A timeline fence for devices that run on the CPU: a 64-bit value that only grows, which any thread may wait
// for, and which carries the failure of the stream that was to signal it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "regie/c/device.h"
#include "regie/plugin.hpp"

namespace regie::sdk {

// Waits on `cv` until `done` or the time is over; UINT64_MAX waits for ever. True: done.
template <class Done>
bool wait_for_ns(std::condition_variable& cv, std::unique_lock<std::mutex>& lock, uint64_t timeout_ns,
                 Done done) {
  constexpr uint64_t longest =
      1'000'000'000ull * 3600 * 24 * 365;  // beyond it the clock's arithmetic could overflow
  if (timeout_ns > longest) {
    cv.wait(lock, done);
    return true;
  }
  return cv.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done);
}

class Timeline {
 public:
  void signal(uint64_t value) {
    std::lock_guard lock(mutex_);
    if (value > value_) value_ = value;
    changed_.notify_all();
  }
  // The stream that was to signal has failed: all waits for what is not reached yet give DEVICE and these
  // words.
  void fail(const std::string& words) {
    std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = words;
    changed_.notify_all();
  }
  // OK, DEVICE or TIMEOUT, with words where it is not OK.
  regie_status wait(uint64_t value, uint64_t timeout_ns, std::string* words) {
    std::unique_lock lock(mutex_);
    bool done = wait_for_ns(changed_, lock, timeout_ns, [&] { return value_ >= value || !failure_.empty(); });
    if (value_ >= value) return REGIE_OK;
    if (done) {
      *words = failure_;
      return REGIE_DEVICE;
    }
    *words = "fence did not reach " + std::to_string(value) + " in " +
             std::to_string(timeout_ns / 1'000'000) + " ms; it stands at " + std::to_string(value_);
    return REGIE_TIMEOUT;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
  std::string failure_;
};

}  // namespace regie::sdk
