// An operator by its reference kernel (op_kernel.h), for engines and devices that have nothing better for it:
// looked up through the host, prepared for concrete shapes, run on any thread.
//
// The words of a failure belong to the thread on which it happened. A device that runs kernels on a thread of
// its own must carry them to the thread that waits: `WordCatcher` gives the kernel a host table that keeps
// them instead.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regie/c/op_kernel.h"
#include "regie/plugin.hpp"
#include "regie/type_view.hpp"

namespace regie::sdk {

// A host table whose `fail` keeps the message on the calling thread until `take`. One an object, as long as
// its users.
class WordCatcher {
 public:
  explicit WordCatcher(const regie_host* host) : table_(*host) {
    table_.struct_size = sizeof table_;
    table_.fail = [](regie_status code, regie_str message, regie_str where) {
      words() = sv(message);
      if (where.size) words() = std::string(sv(where)) + ": " + words();
      return code;
    };
  }
  WordCatcher(const WordCatcher&) = delete;
  const regie_host* host() const { return &table_; }
  static std::string take() { return std::exchange(words(), {}); }

 private:
  static std::string& words() {
    static thread_local std::string kept;
    return kept;
  }
  regie_host table_;
};

struct ReferenceOp {
  const regie_op_kernel_table* table = nullptr;
  uint32_t index = 0;
  uint32_t flags() const { return table->ops[index].flags; }
};

// Nothing if no loaded plug-in has a kernel for it. Leaves no failure behind.
inline std::optional<ReferenceOp> find_reference(const WordCatcher& catcher, std::string_view op) {
  auto* ops = static_cast<const regie_host_ops*>(catcher.host()->find(REGIE_HOST_OPS_ID));
  ReferenceOp found;
  if (!ops || ops->find_kernel(str(op), &found.table, &found.index) != REGIE_OK || !found.table)
    return std::nullopt;
  return found;
}

// May result 0 of this operator lie on operand `operand`? Types and shapes are the caller's to compare.
inline bool reference_is_view(const ReferenceOp& op, uint32_t result, uint32_t operand) {
  return (op.flags() & REGIE_OP_VIEW) && result == 0 && operand == 0;
}

// A device's side of the bargain over memory: what a launch reads and writes by its shape is there. A model
// file may name any packed weight for any operand; only `packed`, whose layout is the kernel's own and whose
// size the device compares itself, may have other bytes than its dimensions say.
inline void check_bytes(const regie_tensor* tensors, uint32_t count, const char* what, uint32_t packed = REGIE_NONE) {
  for (uint32_t i = 0; i < count; ++i) {
    const regie_tensor& t = tensors[i];
    if (i == packed || t.elem == REGIE_ELEM_UNKNOWN || t.elem == REGIE_STRING) continue;
    const std::optional<uint64_t> need = bytes_of(t);
    if (!need || *need > t.bytes)
      throw Failure(REGIE_CORRUPT,
                    std::string(what) + " " + std::to_string(i) + " has " + std::to_string(t.bytes) +
                        " bytes; its shape takes " + (need ? std::to_string(*need) : "an impossible number"));
  }
}

// A prepared kernel. `operands` and `results` are read during the construction only.
class ReferenceKernel {
 public:
  // Throws the kernel's failure with its words. `graph` and `region`: of an operator that has one.
  ReferenceKernel(const WordCatcher& catcher, const ReferenceOp& op, std::string_view name,
                  const std::vector<regie_attr>& attrs, const regie_tensor* operands, uint32_t operand_count,
                  const regie_tensor* results, uint32_t result_count, const regie_graph* graph = nullptr,
                  uint32_t region = REGIE_NONE)
      : op_(op) {
    check_bytes(operands, operand_count, "operand");
    check_bytes(results, result_count, "result");
    regie_op_request request{};
    request.struct_size = sizeof request;
    request.attr_count = static_cast<uint32_t>(attrs.size());
    request.operand_count = operand_count;
    request.result_count = result_count;
    request.op = str(name);
    request.attrs = attrs.data();
    request.operands = operands;
    request.results = results;
    if (region != REGIE_NONE) {
      request.graph = graph;
      request.regions = &region;
      request.region_count = 1;
    }
    regie_status code = op.table->prepare(op.index, catcher.host(), &request, &state_, &scratch_bytes_);
    if (code != REGIE_OK) throw Failure(code, std::string(name) + ": " + catcher.take());
  }
  ReferenceKernel(ReferenceKernel&& o) noexcept
      : op_(o.op_), state_(std::exchange(o.state_, nullptr)), scratch_bytes_(o.scratch_bytes_) {}
  ReferenceKernel& operator=(ReferenceKernel&&) = delete;
  ~ReferenceKernel() {
    if (state_) op_.table->release(state_);
  }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Gives a kernel memory for a result (op_kernel.h). Asked for elements of u8 where the result is of strings, it
  // gives room for their characters, which must stay as long as the result is read.
  struct Room {
    void* (*allocate)(void* context, uint32_t result, regie_elem elem, int32_t rank, const int64_t* dims) = nullptr;
    void* context = nullptr;
  };
  // Allocates nothing itself. `words`: of a failure.
  regie_status run(const WordCatcher& catcher, const regie_tensor* operands, regie_tensor* results,
                   void* scratch, std::string* words, const Room& room) const {
    regie_op_call call{};
    call.allocate = room.allocate;
    call.context = room.context;
    call.struct_size = sizeof call;
    call.operands = operands;
    call.results = results;
    call.scratch = scratch;
    regie_status code = op_.table->run(state_, catcher.host(), &call);
    if (code != REGIE_OK) *words = catcher.take();
    return code;
  }
  regie_status run(const WordCatcher& catcher, const regie_tensor* operands, regie_tensor* results,
                   void* scratch, std::string* words) const {
    return run(catcher, operands, results, scratch, words, Room());
  }

 private:
  ReferenceOp op_;
  regie_op_state* state_ = nullptr;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace regie::sdk
