// A kernel made ready for concrete shapes: primitives created, arguments laid out, so that a launch only sets
// addresses.
//
// A launch changes an executable, though the interface has it const: its memory objects carry the addresses
// of the call. It therefore belongs to one run at a time, and whoever has several runs at once, as the
// contexts of a session, prepares one for each; kernels are immutable and may be prepared many times at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel_blob.h"
#include "lowered_memo.h"
#include "native.h"
#include "primitive.h"
#include "repacked.h"
#include "regie/c/device.h"
#include "regie/reference_kernel.hpp"

namespace host_cpu {

struct FreeDelete {
  void operator()(void* p) const;
};
using Bytes = std::unique_ptr<void, FreeDelete>;
Bytes make_bytes(uint64_t bytes);  // aligned to 64

struct PrepareRequest {
  const regie_tensor* operands;
  uint32_t operand_count;
  const regie_tensor* results;
  uint32_t result_count;
};

inline bool is_empty(const regie_tensor& t) {
  return t.elem != REGIE_ELEM_UNKNOWN && regie::sdk::count_of(t) == 0;
}

struct ReferenceScratch {
  uint64_t residual_at = 0, residual_bytes = 0;
};
ReferenceScratch plan_reference_scratch(uint64_t kernel_bytes, const regie_tensor& residual);

// An operator by its reference kernel. A residual may lie on the result, as the engine allows for the
// operators that have one (residual_operand); reference kernels do not, so it is then copied into scratch
// first.
class ReferenceRun {
 public:
  // `unpacked`: plain bytes that take the place of operand `operand` at each launch, where the model holds
  // packed ones.
  // `formats`: what is not row-major is brought there and back in scratch.
  ReferenceRun(const regie::sdk::WordCatcher& catcher, const regie::sdk::OpBlob& op,
               const PrepareRequest& request, uint32_t operand = REGIE_NONE, Bytes unpacked = {},
               const Formats* formats = nullptr);
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  regie_status run(const regie_launch& launch, std::string* words);

 private:
  const regie::sdk::WordCatcher& catcher_;
  uint32_t operand_, residual_;
  // A tensor that is brought into row-major order in scratch.
  struct Plain {
    uint32_t index;
    bool is_result;
    uint64_t at;
    NativePtr reformat;
  };
  void add_plain(const regie_tensor& t, uint32_t index, bool is_result, regie_format format);
  uint64_t residual_at_ = 0, residual_bytes_ = 0;  // in scratch, after the kernel's own
  uint64_t scratch_bytes_ = 0;
  std::vector<Plain> plain_;
  Bytes unpacked_;
  std::vector<regie_tensor> operands_, results_;  // of the launch, with other addresses put in
  regie::sdk::ReferenceKernel kernel_;
  // Characters of the strings that the kernel made when it ran last.
  static void* give_characters(void* self, uint32_t, regie_elem elem, int32_t rank, const int64_t* dims);
  std::vector<Bytes> characters_;
};

// An operator by a kernel of our own. Throws UNSUPPORTED from the constructor where it is to be done
// otherwise.
class NativeRun {
 public:
  NativeRun(const NativeBlob& blob, const PrepareRequest& request, uint32_t threads);
  explicit NativeRun(NativePtr kernel) : kernel_(std::move(kernel)) {}
  uint64_t scratch_bytes() const { return kernel_->scratch_bytes; }
  regie_status run(const regie_launch& launch, std::string* words) const;

 private:
  NativePtr kernel_;
};
NativeRequest native_request(std::string_view op, const regie::sdk::Attrs& attrs,
                             const regie_tensor* operands, const regie_tensor* results,
                             const Formats& formats, uint32_t threads);

// What a kernel of oneDNN's format is asked for, in its formats. Throws UNSUPPORTED where oneDNN is not to do
// it.
Operation describe_request(const DnnlBlob& blob, const PrepareRequest& request);

// An operator by oneDNN. Throws UNSUPPORTED from the constructor where it is to be done otherwise.
class DnnlRun {
 public:
  // `op`: of the request (describe_request). Weights that have to be packed again are `shared`'s.
  DnnlRun(dnnl_engine_t engine, const DnnlBlob& blob, Operation op, const PrepareRequest& request,
          SharedPrimitives& primitives, RepackedWeights& shared);
  uint64_t scratch_bytes() const { return scratch_.bytes; }
  bool repacked() const { return packed_now_; }  // by this one
  regie_status run(const regie_launch& launch, dnnl_stream_t stream, std::string* words);

 private:
  // Arguments whose bytes come with the launch, or are the executable's own.
  void add(Memory& memory, int argument, uint32_t operand, uint64_t offset = 0);
  void add_own(Memory& memory, int argument, void* data);
  // Sets made_.
  void prepare_weights(dnnl_engine_t engine, const DnnlBlob& blob, const PrepareRequest& request,
                       SharedPrimitives& primitives, RepackedWeights& shared);
  void set_addresses(const regie_launch& launch);

  // A memory object whose address comes from the launch.
  struct Bound {
    dnnl_memory_t memory;
    uint32_t operand;
    uint64_t offset;
  };
  Operation op_;
  ScratchPlan scratch_;
  SharedBytes repacked_;
  bool packed_now_ = false;
  std::vector<Memory> memories_;
  std::vector<Bound> bound_;
  std::unique_ptr<int32_t> src_zero_;  // of the launch
  Memory scratchpad_, src_, dst_, plain_src_, plain_dst_, plain_residual_;
  std::shared_ptr<const SharedPrimitive> made_;
  dnnl_primitive_t primitive_ = nullptr;  // of made_
  Primitive reorder_src_, reorder_dst_, reorder_residual_;
  std::vector<dnnl_exec_arg_t> args_, src_args_, dst_args_, residual_args_;
  uint64_t dst_bytes_ = 0, weights_offset_ = 0;
};

// Plain bytes of a packed weight, for kernels that know no packing.
Bytes unpack(dnnl_engine_t engine, const DnnlBlob& blob, const PrepareRequest& request);

}  // namespace host_cpu
