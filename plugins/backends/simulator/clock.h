// The simulated time of a device: a discrete-event model of the host that hands work over, of streams with
// queues of limited depth, of engines that take one task at a time, of events, and of the memory that all
// tasks share. It computes nothing and knows no memory contents: a task tells what it needs when it begins.
//
// The host is one thread of execution with a time of its own. Whatever it does moves the model up to that
// time and no further, so what it hands over later can never come too late: times are a function of the calls
// alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "regie/accelerator.hpp"

namespace regie::simulator {

using Ns = uint64_t;
inline Ns whole(double ns) { return static_cast<Ns>(std::llround(ns)); }

enum EngineKind : uint32_t {
  kCores,
  kAicpus,
  kCopyIn,
  kCopyOut,
  kCopyInside,
  kEngineKinds,
  kNoEngine = kEngineKinds
};

// What a task needs, found out when it begins: what it costs may depend on what others left in the caches.
struct Need {
  Ns before = 0;         // on the engine, but not yet at work: dispatch, starts
  double run_ns = 0;     // at work, alone on the device
  double far_bytes = 0;  // that it moves from and to the memory in that time
  Ns after = 0;          // until its stream knows; the engine is free
};

struct TaskTimes {
  Ns issue = 0, issued = 0;  // handed over by the host
  Ns free = 0;               // what was before it on its stream had ended; 0: nothing
  Ns ready = 0, event = 0;   // the stream could start it; the last event had come (0: none)
  Ns begin = 0, run = 0, ran = 0, end = 0;
  uint32_t unit = 0;  // of the engine
};

class Task {
 public:
  virtual ~Task() = default;
  virtual Need begin() = 0;
  virtual void ended(const TaskTimes& times) = 0;
  uint32_t engine = kNoEngine;
};

struct Issue {
  Ns begin = 0, end = 0;
};

class Clock {
 public:
  // `sink`: the whole queue is handed over at once, by the first call after a wait.
  Clock(const regie::sdk::Accelerator& parameters, bool sink);

  uint32_t add_stream();
  // What is on it ends first, unless it waits for what nobody hands over. The number may be given again.
  void remove_stream(uint32_t stream);
  uint32_t add_fence();
  void remove_fence(uint32_t fence);

  // The host hands something over: its own cost, and the time that it is blocked by a full queue.
  Issue issue_task(uint32_t stream) { return issue(stream, issue_ns_); }
  Issue issue_event(uint32_t stream) { return issue(stream, event_issue_ns_); }
  // Puts it on the stream. Separate, as work may have to wait for what another thread has yet to hand over.
  void push(uint32_t stream, std::shared_ptr<Task> task, const Issue& issue);
  void push_signal(uint32_t stream, uint32_t fence, uint64_t value, const Issue& issue);
  void push_wait(uint32_t stream, uint32_t fence, uint64_t value, const Issue& issue);

  // The host waits; how long. The stream's work, or the signal, must have been pushed.
  Issue wait_stream(uint32_t stream);
  Issue wait_fence(uint32_t fence, uint64_t value);
  // The host is busy with things of its own.
  Issue spend(Ns ns);
  Ns now() const { return host_; }

 private:
  struct Item {
    enum Kind { kTask, kSignal, kWait } kind;
    std::shared_ptr<Task> task;
    uint32_t fence = 0;
    uint64_t value = 0;
    Issue issue;
  };
  struct Stream {
    std::deque<Item> queue;
    bool running = false, gone = false;
    Ns free = 0, event = 0, ended = 0;
  };
  struct Fence {
    std::map<uint64_t, Ns> reached;  // values in ascending order, with their times
    bool gone = false;
  };
  struct Running {
    uint32_t stream = 0;
    std::shared_ptr<Task> task;
    TaskTimes times;
    Need need;
    enum Phase { kBefore, kAtWork, kAfter } phase = kBefore;
    Ns until = 0;     // of the phase, but for kAtWork
    double left = 0;  // ns at full speed
    double speed = 1;
  };

  Issue issue(uint32_t stream, Ns cost);
  Issue waited(Ns since, Ns until);
  void advance(Ns to);
  bool step(Ns limit);  // the next event not after the limit; false: there is none
  void settle();        // everything that happens at this very time
  bool pop_events(uint32_t stream);
  bool start_ready();
  bool end_phases();
  void start(uint32_t stream);
  void share_memory();
  void run_for(Ns ns);
  Ns ready_at(const Stream& s) const;
  static const Ns* reached(const Fence& f, uint64_t value);

  const Ns issue_ns_, event_issue_ns_, sink_launch_ns_, wait_ns_, gap_ns_, event_ns_;
  const uint64_t depth_;
  const double memory_rate_;
  const bool sink_;
  bool first_ = true;  // nothing was handed over since the last wait
  Ns host_ = 0, clock_ = 0;
  std::vector<Stream> streams_;
  std::vector<Fence> fences_;
  std::vector<std::vector<bool>> busy_;  // by engine and unit
  std::vector<Running> running_;         // in the order in which they began
};

}  // namespace regie::simulator
