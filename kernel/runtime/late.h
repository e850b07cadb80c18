// The part of a bound shape that only a run fills in: symbols that tasks make known, sizes that depend on
// them, and where the tensors lie that the plan has no place for.
//
// When a run reaches a task that is late in this way, it measures the task's operands; asks the operator's
// shape function where the task defines symbols, and binds them; finds memory for what the task writes first;
// and prepares the kernel, unless it has one for these sizes. `LateRun` is the state of that, `RunState` does
// it (late_run.cpp). Control flow that repeats may use the same calls: bind, measure, place, release.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/core.h"
#include "runtime/late_pool.h"

namespace regie {

// A tensor of a step, and the argument that says where it lies.
struct LateSlot {
  regie_tensor* tensor = nullptr;
  const Arg* arg = nullptr;
};

// A kernel made ready for some sizes, and for the contents of small operands where it was given them.
struct LateKernel {
  std::vector<int64_t> key;  // dims of all late operands and results, then those contents
  Executable executable;
  uint64_t scratch = 0, last_used = 0;
};

struct LateStep {
  uint8_t kind = 0;  // Step::Kind when there is something to do
  std::vector<LateSlot> operands, results;
  std::vector<LateSlot> from[2], to[2];  // If: by branch, results of it and where they go
  std::vector<LateKernel> kernels;       // a few, least recently used dropped
  // Of a defining task, by operand: whose data told the shape, on the host; NULL: not needed. `by_large`:
  // some of them are large, so that a kernel is made for this launch alone.
  std::vector<const void*> told;
  bool by_large = false;
};

class LateRun {
 public:
  LateRun(const SessionCore& core, const ShapePlan& plan, LatePool& pool);
  ~LateRun();
  LateRun(const LateRun&) = delete;
  LateRun& operator=(const LateRun&) = delete;

  // Nothing is known, nothing allocated.
  void begin();
  // Gives all memory back; nothing may touch it any more.
  void end();

  // INVALID_INPUT if it is outside of the symbol's range.
  Status bind(uint32_t symbol, int64_t value);
  // Dimensions and bytes of a type as the symbols are now; CORRUPT if one is not known yet.
  Status measure(uint32_t type);
  const std::vector<int64_t>& dims(uint32_t type) const {
    return core_.late.type(type) ? dims_[type] : plan_.dims[type];
  }
  uint64_t bytes(uint32_t type) const { return core_.late.type(type) ? bytes_[type] : plan_.bytes[type]; }
  // Measures the argument's type and puts size and address into `tensor`. `written`: memory is found for it
  // if it has none yet.
  Status place(const Arg& arg, regie_tensor* tensor, bool written);
  Status place(const LateSlot& slot, bool written) { return place(*slot.arg, slot.tensor, written); }
  // Gives back the buffers whose life ends at `step` or before: who comes from there on comes after their
  // last use.
  void release_until(uint64_t step);
  void release(uint32_t buffer);
  // Gives back what was first written after `step`: by an iteration that is over.
  void release_since(uint64_t step);
  // The place of what is written once more, with another size: memory of its own is found anew where it has
  // become too small.
  Status place_again(const LateSlot& slot);
  // At least `need` bytes for a buffer on the host, of which the first `used` stay what they are.
  Status grow(uint32_t buffer, uint64_t used, uint64_t need, regie_tensor* tensor);

  // Where a caller wants an output, asked for once its size is known.
  std::function<Result<void*>(uint32_t output, uint64_t bytes)> find_output;
  // Address of an output that was placed; NULL if none was.
  void* output(uint32_t o) const { return outputs_[o].address; }
  // The dims of a late type, at an address that stays.
  const int64_t* dims_address(uint32_t type) const { return dims_[type].data(); }

  std::vector<std::unique_ptr<LateStep>> steps;
  // Outputs that no task writes: from and to, for each of the bound shape's transfers.
  std::vector<std::pair<LateSlot, LateSlot>> outputs;
  std::vector<std::unique_ptr<const Arg>> own_args;  // that no task of the model has
  uint64_t counter = 0;                              // orders the use of kernels

  // Scratch of late tasks: those of a stream run one after the other and share it.
  struct Scratch {
    uint32_t space = REGIE_NONE;
    DeviceMemory memory;
  };
  std::vector<Scratch> scratch;  // by the context's streams
  LatePool& pool() { return pool_; }

 private:
  struct Buffer {
    DeviceMemory memory;
    uint64_t bytes = 0;
    bool live = false;
  };
  struct Output {
    void* address = nullptr;
    uint64_t bytes = 0;
  };
  Result<int64_t> value(ModelDim dim) const;
  Status allocate(uint32_t buffer);

  const SessionCore& core_;
  const Model& model_;
  const ShapePlan& plan_;
  LatePool& pool_;
  std::vector<int64_t> symbols_;
  std::vector<uint8_t> known_;              // by symbol
  std::vector<std::vector<int64_t>> dims_;  // by type; late ones only
  std::vector<uint64_t> bytes_;
  std::vector<Buffer> buffers_;
  std::vector<uint32_t> live_;
  std::vector<Output> outputs_;
};

// The shapes of an operator's results, told by its shape function. Operands whose `data` is set count as
// known. -1 stands for a dimension that it cannot tell from these.
Result<std::vector<std::vector<int64_t>>> ask_shapes(const LateOp& op, std::span<const regie_tensor> operands,
                                                     std::span<const regie_tensor> results);

}  // namespace regie
