// The mutable half of runs: one context's streams, arenas, output memory and bound shapes, and the run
// itself. Used from one thread at a time.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <vector>

#include "runtime/bound.h"
#include "runtime/input_defaults.h"

namespace regie {

// Memory that the context owns: of outputs, for callers who give none, and of inputs that it changes.
struct OutputMemory {
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data;
  uint64_t bytes = 0;
  // Grows, never shrinks. `kind` and `name` say whose it is: "output", "y".
  Status fit(uint64_t need, const char* kind, const std::string& name);
};

bool is_dense(const regie_tensor& t);  // row-major
uint64_t host_ns();                    // steady_clock, as all times of a profile are

class RunState {
 public:
  static Result<std::unique_ptr<RunState>> make(SessionCore* core);
  ~RunState();
  Status run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs);
  bool owns_output(size_t output, const void* data) const {
    return data && output_memory_[output].data.get() == data;
  }
  void set_profiling(bool on);
  std::span<const TaskTime> times() const { return times_; }
  std::span<const DeviceRecord> records() const { return records_; }
  const RunStatistics& statistics() const { return statistics_; }

 private:
  RunState() = default;

  // inputs.cpp: what a run is called with.
  bool matches(const ShapePlan& plan, std::span<const regie_tensor> inputs) const;
  Status check_inputs(std::span<const regie_tensor> inputs, std::vector<int64_t>* symbols) const;
  Status check_dims(std::span<const regie_tensor> inputs, size_t index,
                    const std::vector<int64_t>& symbols) const;
  Status check_outputs(const ShapePlan& plan, std::span<const regie_tensor> outputs);
  Status grow_output(size_t output, uint64_t bytes);
  std::string shape_change(std::span<const regie_tensor> inputs) const;
  // Runs with room for the outputs that tell dimensions of others, and gives those the dimensions that were
  // told.
  Status run_unranked(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs);

  // run_state.cpp
  Status run_trusting(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs);
  Status find_bound(std::span<const regie_tensor> inputs, Bound** bound);
  Status fit_arenas(const ShapePlan& plan);
  Status renew_streams();
  void free_streams();

  // late_run.cpp
  Status late_failed(Status status, const Step& step) const;
  Status make_ready(Bound& bound, Step& step);
  Status make_ready_now(Bound& bound, Step& step);
  Status tell_shapes(Bound& bound, Step& step);
  Status bind_results(Bound& bound, const ModelTask& task, const std::vector<std::vector<int64_t>>& shapes);
  void set_late_key(const LateStep& step, bool by_data);
  Status prepare_late(Bound& bound, Step& step);
  Status late_scratch(Bound& bound, Step& step, uint64_t bytes);
  Status hand_over(Bound& bound, Step& step, size_t branch);
  Status ready_output(Bound& bound, size_t index);
  Result<void*> find_output(uint32_t output, uint64_t bytes);

  // loop_run.cpp
  Status run_loop(Bound& bound, Step& step);
  Status run_iterations(Bound& bound, Step& step, bool goes_on, int64_t* made);
  Status carry(Bound& bound, Step& step);
  Status collect(Bound& bound, Step& step, int64_t iteration);
  Status bind_carried(Bound& bound, const Step& step, bool initial);
  Status begin_late(Bound& bound, Step& step);
  Status place_given(Bound& bound, Step& step);
  Status renew_homes(Bound& bound, Step& step);
  Status end_late(Bound& bound, Step& step, int64_t made);
  Status wrong_trips(const Step& step, int64_t made, uint64_t room) const;

  // executor.cpp
  Status execute(Bound& bound);
  Status run_program(Bound& bound, uint32_t program);
  Status issue(Step& step);
  Status run_branch(Bound& bound, Step& step);
  Status transfer(Transfer& t);
  Status wait_stream(RunStream& stream);
  Status wait_all();
  Status wait_fence(const Step& producer);
  Status failed(regie_status code, const Step& step);
  Status stream_failed(regie_status code, RunStream& stream, const Step* waited_for);
  const Step* unfinished() const;
  void drain();
  void read_clocks();
  void keep_times(size_t from);

  // device_record.cpp
  void record(bool on);
  Status collect_records();

  SessionCore* core_ = nullptr;  // outlives this
  InputDefaults defaults_;
  size_t seen_outputs_ = 0;
  std::vector<regie_tensor> all_outputs_;  // where callers see less than the model has
  std::vector<DeviceMemory> arenas_;       // by space
  std::unique_ptr<FirstTouch> touching_;   // of new ones
  uint64_t generation_ = 1;
  std::unique_ptr<LatePool> pool_;
  std::vector<int64_t> late_key_;
  std::vector<std::vector<int64_t>> loop_dims_;      // of what a loop carries, while it is handed over
  std::vector<std::vector<std::byte>> late_copies_;  // of operands that the host cannot read
  // What the caller of this run gave for outputs whose size the run tells; data NULL: nothing.
  std::vector<regie_tensor> wanted_outputs_;
  std::vector<std::unique_ptr<Bound>> bounds_;
  Bound* last_ = nullptr;
  uint64_t use_counter_ = 0;
  std::vector<OutputMemory> output_memory_;
  std::vector<void*> output_addresses_;
  std::vector<Step*> issued_;  // of this run, in order
  std::vector<TaskTime> times_;
  std::vector<DeviceRecord> records_;
  uint64_t tags_ = 0;                   // given in this run
  std::vector<int64_t> clock_offsets_;  // by device: host's clock less its own, of this run
  bool weights_sound_ = false;          // the model's check of them has been waited for
  bool profiling_ = false;
  bool failed_ = false;     // errors stick to streams: new ones are needed
  bool timed_out_ = false;  // work may still be going on
  RunStatistics statistics_;
  std::vector<std::vector<int64_t>> last_dims_;  // of the inputs, when a shape was last prepared
  // Freed before all else: destroying a stream waits for what it still runs.
  std::vector<std::unique_ptr<RunStream>> streams_;
};

}  // namespace regie
