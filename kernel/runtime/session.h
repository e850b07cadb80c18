// Session: a model made ready on its devices. Context: the mutable half of one run (arena, bound addresses,
// prepared kernels per shape); pooled by the session. After the first run with a shape, a run allocates
// nothing of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/elem.h"
#include "base/status.h"
#include "model/model.h"
#include "plugins/host.h"
#include "regie/c/device_trace.h"

namespace regie {

// A parameter of a device, in the place of what the model's target said: how it runs may change with each
// session, what kernels were compiled for may not.
struct DeviceSetting {
  std::string device, key, value;
};

struct SessionOptions {
  uint32_t threads = 1;  // for parallel regions of host_cpu kernels, in all; 0: as the model was compiled for
  uint64_t timeout_ns = 0;  // of waits; 0: the device's own
  size_t shapes_kept = 16;  // prepared shapes a context keeps, least recently used dropped
  bool check_plans = true;  // off: tasks that meet in their bytes show in the results, or worse
  // Threads that make kernels ready while the first run with a shape is on its way; nullopt: the processors
  // that its launches leave idle, and where there is none, all kernels are ready before it begins.
  std::optional<uint32_t> preparing_threads;
  // The arenas of the first context are made with the session, where their sizes are known then, and the
  // host's is touched meanwhile (first_touch.h): for who runs it next.
  bool arenas_ahead = false;
  std::vector<DeviceSetting> device_settings;
};

struct RunStatistics {
  uint64_t runs = 0, shapes_prepared = 0;
  uint64_t late_prepared = 0;     // kernels made ready during runs, for sizes that depend on data
  std::string last_shape_change;  // "x.0: 1 -> 7": why the last preparation was needed
};

// Of all contexts of a session.
struct SessionStatistics {
  uint64_t shapes_prepared = 0, late_prepared = 0;
};

// One a task of the last profiled run, all on the host's clock (steady_clock): a device's own clock is set
// beside it at the start of the run.
struct TaskTime {
  uint32_t program, task;
  uint64_t wait_ns;  // the host began to wait for what had to end before; issue_ns: it did not wait
  uint64_t issue_ns, issued_ns;  // the host handed it to the device
  uint64_t begin_ns, end_ns;     // it ran; 0: nobody tells
  uint64_t tag = 0;              // which work of a device's record it was; 0: of none
};

// What a device with a record of its own (regie/c/device_trace.h) tells of one stream in the last profiled
// run, on its own clock.
struct DeviceRecord {
  uint32_t device = 0, stream = 0;
  struct Lane {
    std::string name;
    uint32_t parent = REGIE_NONE;
    bool is_engine = false;
  };
  std::vector<Lane> lanes;
  std::vector<regie_trace_task> tasks;
  struct Slice {
    uint64_t tag = 0, begin_ns = 0, end_ns = 0;
    uint32_t lane = 0;
    std::string name;
  };
  std::vector<Slice> slices;
  std::vector<regie_trace_wait> waits;
  std::vector<regie_trace_host> host;  // of the device, told with its first stream
};

class Context;

class Session {
 public:
  // Opens the devices through `plugins`, refuses kernels whose format or capabilities they lack, uploads
  // weights to devices with memory of their own, loads kernels.
  static Result<std::shared_ptr<Session>> create(std::shared_ptr<const Model> model,
                                                 std::shared_ptr<PluginHost> plugins,
                                                 const SessionOptions& options = {});
  ~Session();
  const Model& model() const;
  SessionStatistics statistics() const;

  // Takes a context from the pool, or makes one. It goes back when the pointer is let go.
  Result<std::shared_ptr<Context>> acquire();

 private:
  friend class Context;
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Context {
 public:
  ~Context();
  // `inputs` in the order of the model's. Types and dimensions are checked against the model: INVALID_INPUT
  // names the input, what it should be and what it is. `outputs[i].data` NULL: the context keeps the bytes
  // until its next run and sets data, dims and bytes; otherwise the caller's memory of at least `bytes` is
  // written. Dims that it sets live until the context's next run. After TIMEOUT the device may still use
  // inputs and outputs until the context's next run or end.
  Status run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs);
  // Is this what a run without memory for that output has given, or would give?
  bool owns_output(size_t output, const void* data) const;
  void set_profiling(bool on);
  std::span<const TaskTime> times() const;
  std::span<const DeviceRecord> records() const;
  const RunStatistics& statistics() const;

 private:
  friend class Session;
  Context();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regie
