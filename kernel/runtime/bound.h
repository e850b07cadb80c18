// A shape plan bound to one context's memory and streams: every launch and copy with its arrays filled in, so
// that a run only patches the addresses of inputs and outputs and calls the devices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/late.h"

namespace regie {

// A stream of a context, with the timeline that its tasks advance. Inline streams need no fence.
struct RunStream {
  uint32_t device = 0, number = 0;
  bool is_inline = false;
  Stream stream;
  Fence fence;
  uint64_t issued = 0;  // last value that was enqueued on the fence
  uint64_t known = 0;   // greatest value that the host has seen
  bool dirty = false;   // something was enqueued since the host last waited for it
};

// A copy that the host asks for and waits for: results of control flow, outputs that no task writes,
// conditions.
struct Transfer {
  const regie_tensor* from = nullptr;
  regie_tensor* to = nullptr;
  RunStream* from_stream = nullptr;  // NULL: the host can read it
  RunStream* to_stream = nullptr;    // NULL: the host can write it
  std::vector<std::byte> staging;    // between two devices; as large as was ever needed
};

struct Step;

// What the host does around the iterations of a loop.
struct LoopPlan {
  Transfer trips;                  // to `count`; no source: as many as the condition says
  regie_tensor* number = nullptr;  // what the body reads; NULL: it does not
  regie_tensor* condition = nullptr;
  Transfer goes_on;  // the body's condition, to the bound's `flag`
  int64_t count = 0;

  struct Carried {
    Transfer begin;  // the initial value to where it is carried
    Transfer end;    // what the body gives to there; no source: it is there already
    // Another copy would overwrite what the body gives: it goes to the side first.
    bool aside = false;
    std::vector<std::byte> side;
    regie_tensor beside{};
    LateSlot initial, home, given;  // given: also of what is there already
  };
  std::vector<Carried> carried;
  struct Collected {
    Transfer copy;  // what the body gives to the place of this iteration
    regie_tensor place{};
    LateSlot whole, given;
    bool late = false;          // grows as it is needed
    uint64_t room = 0;          // places there are, if not late
    std::vector<int64_t> dims;  // of what was given first
    uint64_t bytes = 0;         // collected so far
  };
  std::vector<Collected> collected;
};

struct Step {
  enum Kind : uint8_t { kNothing, kLaunch, kCopy, kIf, kLoop, kImpossible };
  Kind kind = kNothing;
  bool signals = false;   // somebody waits for it on another stream
  uint8_t direction = 0;  // kCopy: REGIE_COPY_*
  uint32_t program = 0, task = 0;
  const Device* device = nullptr;
  RunStream* stream = nullptr;
  const regie_executable* executable = nullptr;
  const Status* failure = nullptr;  // kImpossible
  regie_launch launch{};            // kCopy: operands[0] to results[0]
  std::span<Step*const> host_waits, fence_waits;
  std::unique_ptr<LoopPlan> loop;
  // kIf, kLoop
  Transfer condition;  // to `flag`; kLoop: perhaps none
  uint32_t programs[2] = {0, 0};
  std::vector<Transfer> results[2];
  uint32_t pending = REGIE_NONE;  // of the plan's preparation; REGIE_NONE: what it launches is ready
  LateStep* late = nullptr;       // what the run has to find out when it gets here; NULL: nothing
  uint64_t predicted_ns = 0;      // of a launch on the host, for the clocks of other devices
  // Written by a run.
  uint64_t fence_value = 0, wait_ns = 0, issue_ns = 0, issued_ns = 0, begin_ns = 0, end_ns = 0;
  bool host_stamps = false;  // begin and end are of the host's clock already
  uint64_t tag = 0;          // of a device's record
};

// Where the addresses of a caller's tensor are to be put.
struct AddressPatch {
  regie_tensor* tensor;
  uint64_t offset;
};

class Bound {
 public:
  // `arenas` by space; `streams` outlive it.
  static Result<std::unique_ptr<Bound>> make(const SessionCore& core, std::unique_ptr<const ShapePlan> plan,
                                             std::vector<std::unique_ptr<RunStream>>& streams,
                                             LatePool& pool);
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  // Puts the arenas' addresses in; again when an arena has moved. Allocates nothing.
  void bind_arenas(std::span<const DeviceMemory> arenas, uint64_t generation);
  // Makes a pending step ready to be issued, or gives the failure of making its kernel so.
  Status finish(const SessionCore& core, Step& step, std::span<const DeviceMemory> arenas);
  void bind_input(size_t i, const void* data) { patch(input_patches[i], data); }
  void bind_output(size_t i, void* data) { patch(output_patches[i], data); }

  std::unique_ptr<const ShapePlan> plan;
  std::unique_ptr<LateRun> late;  // NULL: nothing is late
  std::vector<std::vector<Step>> programs;
  std::vector<Transfer> outputs;  // in order, of the outputs that no task writes
  std::vector<std::vector<AddressPatch>> input_patches, output_patches;
  uint64_t generation = 0;  // of the arenas that it is bound to
  uint64_t last_used = 0;
  uint8_t flag = 0;      // the condition that was read last
  bool useless = false;  // a kernel cannot be made ready: to be made anew, and to fail again

 private:
  friend class Binder;
  Bound() = default;
  static void patch(const std::vector<AddressPatch>& patches, const void* data) {
    for (const AddressPatch& p : patches)
      p.tensor->data = static_cast<std::byte*>(const_cast<void*>(data)) + p.offset;
  }
  struct ArenaPatch {
    regie_tensor* tensor;  // or
    regie_launch* launch;  // its scratch
    uint32_t space;
    uint64_t offset;
  };
  std::vector<regie_tensor> tensors_;
  std::vector<ArenaPatch> arena_patches_;
  std::vector<Step*> waits_;
  // Scratch beyond what the model planned, of kernels that were made ready during a run: by space, as the
  // launches of inline streams follow each other.
  struct MoreScratch {
    DeviceMemory memory;
    std::vector<regie_launch*> users;
  };
  std::vector<MoreScratch> more_scratch_;
};

}  // namespace regie
