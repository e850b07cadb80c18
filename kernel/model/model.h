// The Model: what compile time hands to run time, in memory. Tasks in issue order, buffers with offsets,
// kernels, weights; no operator semantics. Written to and read from .rgm by file.h. Immutable once made;
// sessions share it.
//
// Sizes and offsets of models with symbolic dimensions: a buffer's size is an expression; its offset is the
// greatest end of the buffers in `below` (its neighbours beneath it, while it lives, in the reference
// plan). So one evaluation in the order of `placement_order` gives offsets that are valid for every shape,
// and equal the plan at the reference shape.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dim.h"
#include "base/elem.h"
#include "base/status.h"

namespace regie {

class WeightCheck;

// Text that a run does not look at, such as the ledger: its own, or where a mapped file has it.
class ModelText {
 public:
  ModelText() = default;
  ModelText(const char* own) : ModelText(std::string(own)) {}
  ModelText(std::string own) {
    auto kept = std::make_shared<const std::string>(std::move(own));
    view_ = *kept;
    owner_ = std::move(kept);
  }
  // `owner` keeps the bytes alive.
  ModelText(std::string_view text, std::shared_ptr<const void> owner)
      : view_(text), owner_(std::move(owner)) {}
  operator std::string_view() const { return view_; }
  const char* begin() const { return view_.data(); }
  const char* end() const { return view_.data() + view_.size(); }
  size_t size() const { return view_.size(); }
  const char* data() const { return view_.data(); }
  bool operator==(const ModelText& o) const { return view_ == o.view_; }

 private:
  std::string_view view_;
  std::shared_ptr<const void> owner_;
};

// A size or dimension: >= 0 constant, < 0: -(index + 1) into Model::expressions.
using ModelDim = int64_t;

struct ModelType {
  regie_elem elem = REGIE_ELEM_UNKNOWN;
  std::vector<ModelDim> dims;
  bool operator==(const ModelType&) const = default;
};

struct ModelSymbol {
  std::string name;
  int64_t lower = 0, upper = INT64_MAX;  // inclusive; checked at each run
  // Read from dimension `axis` of this input. NONE: made known by the task that defines it (late), or used by
  // no expression.
  uint32_t input = REGIE_NONE;
  uint32_t axis = 0;
  int64_t reference = 1;  // value that the plan and the kernels were made for
};

struct ModelDevice {
  std::string name;    // in the target, e.g. "cpu"
  std::string plugin;  // provider name, e.g. "host_cpu"
  std::vector<std::pair<std::string, std::string>> params;
};

// Memory space. Space 0 is the host's own memory.
struct ModelSpace {
  std::string name;
  uint32_t device = 0;        // index into devices
  uint32_t device_space = 0;  // index into that device's spaces
  uint64_t arena_bytes = 0;   // peak at the reference shapes
  uint64_t lower_bound =
      0;  // greatest sum of live bytes at one step, scratch included, at the reference shapes
};

enum class BufferKind : uint8_t { kTensor = 0, kScratch = 1 };

struct ModelBuffer {
  std::string name;  // of the value; for messages and the exported plan
  BufferKind kind = BufferKind::kTensor;
  uint32_t space = 0;
  uint32_t alignment = 64;
  ModelDim size = 0;    // bytes; scratch: at the reference shapes, the executable's own figure otherwise
  uint64_t offset = 0;  // at the reference shapes
  uint64_t lower = 0, upper = 0;  // live in steps [lower, upper) of the linearised program
  std::vector<uint32_t> below;    // only in models with symbols
};

// The layout of a weight that is a tensor's own bytes. Any other is read by the kernels alone that name it in
// `kernel_weights`.
inline constexpr std::string_view kPortable = "portable";

struct ModelWeight {
  uint64_t offset = 0, size = 0;  // in `weights`, aligned to 64 (the section to a page)
  std::string layout{kPortable};
  std::string digest;  // of the bytes; equal weights are stored once
};

struct KernelWeight {
  uint32_t operand = 0, weight = 0;
};

struct ModelKernel {
  std::string format, name;
  std::string blob;
  uint32_t device = 0;
  uint32_t flags = 0;  // REGIE_KERNEL_*
  std::vector<std::string> requires_;
  bool operator==(const ModelKernel&) const = default;
};

struct Arg {
  enum Kind : uint8_t { kNone = 0, kBuffer = 1, kWeight = 2, kInput = 3, kOutput = 4 };
  Kind kind = kNone;
  uint32_t index = 0;     // of the buffer, weight, input or output
  uint64_t offset = 0;    // bytes into the buffer
  uint32_t type = 0;      // index into types
  bool constant = false;  // kWeight that is the value of a constant operand, or a packed form of it
  // Which value of the graph is read or written here: equal for a value and its views, REGIE_NONE: not known.
  // For check_plan, straight after a compile; a model file does not hold it.
  uint32_t value = REGIE_NONE;
};

enum class TaskKind : uint8_t {
  kLaunch = 1,  // kernel on device/stream
  kCopy = 2,    // operands[0] to results[0], between spaces (direction from the args' spaces)
  // Host: programs[0] if the bool operands[0] is true, else programs[1]. Everything issued before it has
  // ended when it begins, and everything that it ran when it ends.
  kIf = 3,
  // Host: programs[0] again and again. Before: everything issued has ended; operands[2 ...] are copied to
  // program_arguments[2 ...]. It goes on while fewer iterations than the i64 operands[0] (if there) were made
  // and the bool operands[1] (if there), later program_results[0][0], is true. Before each iteration the
  // number of iterations made and `true` are written to program_arguments[0] and [1]; after each, when
  // everything has ended, program_results[0][1 ...] are handed over: what is carried all at once to
  // program_arguments[2 ...], the others each to the place of that iteration in results[carried ...].
  // results[i] of what is carried is program_arguments[2 + i].
  kLoop = 4,
  // Nothing is computed: results[i] are the bytes of operands[0] under a shape that the run tells.
  kDefine = 8
};

// A symbol that becomes known when the task has run or is about to: dimension `axis` of its result.
struct ModelDefine {
  uint32_t symbol = 0, result = 0, axis = 0;
};

struct ModelTask {
  TaskKind kind = TaskKind::kLaunch;
  uint32_t device = 0, stream = 0;
  uint32_t kernel = REGIE_NONE;
  uint32_t threads = 1;
  std::vector<Arg> operands, results;
  std::vector<uint32_t>
      kernel_weights;  // per operand: weight index that takes its place at the launch, or REGIE_NONE
  uint32_t scratch = REGIE_NONE;  // buffer
  std::vector<uint32_t>
      waits;  // tasks of the same program, on other streams or devices, that must have ended
  std::vector<uint32_t> programs;  // control flow
  // Launches and kDefine whose results' shapes depend on the data of their operands: the operator with its
  // attributes (regie/op_blob.hpp), for its shape function to be asked when they are known. Empty: not so.
  std::string shape_op;
  std::vector<ModelDefine> defines;  // of such a task, or of control flow whose branches give other shapes
  // Control flow: per program, where its results lie; they are copied to `results` unless they are there
  // already.
  std::vector<std::vector<Arg>> program_results;
  std::vector<Arg>
      program_arguments;  // kLoop: iteration number, condition, carried values; absent: nobody reads it
  std::string name;       // node, for messages: "node 'conv1' (Op)"
  std::string op;         // its operator, for profiles
  std::string engine;     // of the target, that made the kernel; empty: a copy, control flow
  std::vector<std::string> origins;  // framework operators
  // Of a launch on the host beside devices that may have a clock of their own: what its engine predicts. 0:
  // not so.
  uint64_t predicted_ns = 0;
  uint64_t step = 0;  // in the linearised program: the unit of buffer lifetimes
};

// The weight that the task reads as operand `i`, or REGIE_NONE.
inline uint32_t weight_read(const ModelTask& task, size_t i) {
  if (!task.kernel_weights.empty() && task.kernel_weights[i] != REGIE_NONE) return task.kernel_weights[i];
  return task.operands[i].kind == Arg::kWeight ? task.operands[i].index : REGIE_NONE;
}

struct ModelProgram {
  std::vector<ModelTask> tasks;  // in issue order
};

struct ModelPort {
  std::string name;
  uint32_t type = 0;  // index into types
  // Of an input that a run may leave out: the weight, in the portable layout, that it then has, and its type,
  // which has no symbols. REGIE_NONE, both: a run must give it.
  uint32_t default_weight = REGIE_NONE, default_type = REGIE_NONE;
  // Of an output that is a list of elements: the output that is its dimensions, an i64 list of any length.
  // Such outputs stand behind those that a caller sees. REGIE_NONE: its dimensions are those of the type.
  uint32_t shape = REGIE_NONE;
};

// True of what it is said of, never of a copy, which may be changed.
class OfThisAlone {
 public:
  OfThisAlone() = default;
  OfThisAlone(const OfThisAlone&) {}
  OfThisAlone& operator=(const OfThisAlone&) {
    value_ = false;
    return *this;
  }
  OfThisAlone& operator=(bool value) {
    value_ = value;
    return *this;
  }
  operator bool() const { return value_; }

 private:
  bool value_ = false;
};

struct Model {
  // Identity: what it was made from and by what.
  std::string name, producer, target, pipeline, source_digest;
  std::vector<std::string> plugins;  // "name version"
  std::vector<std::pair<std::string, std::string>> options;

  std::vector<ModelSymbol> symbols;
  std::vector<DimCode> expressions;
  std::vector<ModelType> types;
  std::vector<ModelDevice> devices;
  std::vector<ModelSpace> spaces;
  std::vector<ModelBuffer> buffers;
  std::vector<uint32_t>
      placement_order;  // of buffers, ascending by reference offset; empty if all sizes are constants
  std::vector<ModelWeight> weights;
  std::vector<ModelKernel> kernels;
  std::vector<ModelProgram> programs;  // 0 is the main one
  std::vector<ModelPort> inputs, outputs;
  size_t seen_outputs() const;  // by a caller: the first ones

  // Where an output comes from when no task writes it (a constant, an input, or a buffer shared with another
  // output).
  std::vector<Arg>
      output_sources;  // per output: kOutput itself if tasks write it in place, else what to copy

  std::span<const std::byte> weight_bytes;
  std::shared_ptr<const void> weight_owner;
  std::shared_ptr<const WeightCheck> weight_check;  // NULL: the bytes are known to be right
  uint64_t read_checksum = 0;  // that the file has of what tasks read (weight_check.h); 0: none

  ModelText portable_graph;                            // .rg text after import; constants as digests
  std::map<std::string, uint32_t> portable_constants;  // digest -> weight
  ModelText ledger_json;
  OfThisAlone checked;  // by check_model; nobody changes it from then on
};

inline size_t Model::seen_outputs() const {
  size_t count = outputs.size();
  for (const ModelPort& port : outputs) count -= port.shape != REGIE_NONE;
  return count;
}

}  // namespace regie
