// The objects behind the device's handles. One lock of the device guards all of them.
//
// Work is done when it is handed over, on the calling thread, in the order in which it comes; only what waits
// for a fence that another thread has yet to signal is kept back. What it would have taken is the clock's
// business (clock.h): so neither results nor times depend on how fast this computer is.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "accesses.h"
#include "kernels.h"
#include "regie/c/device_trace.h"
#include "regie/c/tile.h"

namespace regie::simulator {

struct Work {
  enum Kind { kLaunch, kCopy, kCall, kSignal, kWait } kind = kLaunch;
  regie_executable* executable = nullptr;
  LaunchArguments arguments;
  uint64_t scratch_bytes = 0;
  uint64_t *begin_ns = nullptr, *end_ns = nullptr;
  uint32_t task = 0;
  uint32_t direction = 0;
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
  void (*function)(void*) = nullptr;
  void* context = nullptr;
  regie_fence* fence = nullptr;
  uint64_t value = 0;
  // When it was handed over.
  Issue issue;
  Knowledge host;
  uint64_t tag = 0;
};

// What a profile is told of a stream.
struct Record {
  bool on = false;
  uint64_t next_tag = 0;  // 0: none
  std::vector<regie_trace_task> tasks;
  std::vector<regie_trace_slice> slices;
  std::vector<regie_trace_wait> waits;
};

}  // namespace regie::simulator

struct regie_device {
  regie_device(const regie_host* h, const regie_config* params);
  void pump();  // does what can be done
  uint32_t lane(uint32_t engine, uint32_t unit) const;
  uint32_t pipe_lane(uint32_t pipe) const {
    return static_cast<uint32_t>(lanes.size() - REGIE_TILE_PIPES + pipe);
  }

  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  const regie::simulator::Settings settings;
  regie_space_info space;
  regie_device_description description{};
  std::vector<std::string> lane_names;
  std::vector<regie_trace_lane> lanes;

  std::mutex mutex;  // of all that follows, and of streams, fences and executables
  std::condition_variable changed;
  regie::simulator::Clock clock;
  regie::simulator::Cache cache;
  regie::simulator::Accesses accesses;
  regie::simulator::Knowledge host_knows;
  std::vector<regie_trace_host> host_work;  // while a stream is recorded
  uint64_t used = 0;
  std::map<uint32_t, regie_stream*> streams;  // by the clock's number
  std::map<uint32_t, uint64_t> counts;        // of streams that are gone: who gets their number counts on
  std::set<regie_fence*> fences;
};

struct regie_fence {
  regie_device* device;
  uint32_t index;  // the clock's
  uint64_t value = 0;
  std::map<uint64_t, regie::simulator::Knowledge> signals;  // what who waits for a value then knows
  std::string failure;                                      // of the stream that was to signal
  regie_stream* signaller = nullptr;                        // the last one; NULL: it is gone
};

struct regie_loaded_kernel {
  regie_device* device;
  std::unique_ptr<regie::simulator::LoadedKernel> kernel;
};

struct regie_executable {
  regie_device* device;
  std::unique_ptr<regie::simulator::Executable> run;
  uint32_t operand_count, result_count;
};

struct regie_stream {
  explicit regie_stream(regie_device* d) : device(d), index(d->clock.add_stream()), count(d->counts[index]) {}
  // Hands it over: waits while the queue is full. Throws Failure(TIMEOUT).
  void enqueue(std::unique_lock<std::mutex>& lock, regie::simulator::Work work);
  bool do_next();  // false: the next piece of work has to wait, or there is none
  void fail(regie_status c, std::string w);

  regie_device* device;
  const uint32_t index;  // the clock's
  uint64_t count;        // of its launches and copies
  std::deque<regie::simulator::Work> pending;
  regie::simulator::Knowledge knows;
  regie_status code = REGIE_OK;  // the first failure; it stays
  std::string words;
  regie::simulator::Record record;

 private:
  regie_status launch(regie::simulator::Work& w, std::string* why);
  regie_status copy(regie::simulator::Work& w, std::string* why);
  bool check(const std::vector<regie::simulator::Bytes>& reads, const regie::simulator::Bytes& scratch,
             const std::vector<regie::simulator::Bytes>& writes, const regie::simulator::Access& by,
             std::string* why);
};
