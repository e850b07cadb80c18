// Operators by kernels of our own, for what oneDNN does not do, or does worse (docs/kernels.md). A kernel is
// made for concrete shapes and formats, is immutable then, and runs on the width that it was made for.
//
// A row of a table is an operator: how to make its kernel, in which formats it can be computed, and whether
// its result may lie on an operand. Makers throw Failure(UNSUPPORTED) with the reason where the reference
// kernel is to do it; they see dimensions and attributes as the model has them and rename axes by the
// formats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats.h"
#include "regie/c/device.h"
#include "regie/plugin.hpp"

namespace host_cpu {

struct NativeTensor {
  regie_elem elem = REGIE_ELEM_UNKNOWN;  // unknown: absent
  regie_format format = kPlainFormat;
  std::vector<int64_t> dims;   // as the model has them
  const void* data = nullptr;  // of constants

  bool present() const { return elem != REGIE_ELEM_UNKNOWN; }
  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const;
  std::vector<int64_t> physical() const { return physical_dims(dims, format); }
};

struct NativeRequest {
  std::string_view op;
  regie::sdk::Attrs attrs;
  std::vector<NativeTensor> operands, results;
  uint32_t threads = 1;

  bool has(size_t i) const { return i < operands.size() && operands[i].present(); }
  bool wants(size_t i) const { return i < results.size() && results[i].present(); }
  const NativeTensor& in(size_t i) const;  // UNSUPPORTED if it is absent
  const NativeTensor& out(size_t i) const;
  void need_float(size_t operand) const;  // float32, or UNSUPPORTED
  // The same of all results. What a model file calls them need not be what its operator gives.
  void need_float_results() const;
  // The integers of a constant operand; UNSUPPORTED if it is none.
  std::vector<int64_t> constant_integers(size_t operand) const;
};

// Axis -rank..rank-1 as 0..rank-1; UNSUPPORTED if it is outside.
int64_t normal_axis(int64_t axis, int64_t rank);
uint32_t elem_size(regie_elem elem);  // bytes; UNSUPPORTED for strings and less than a byte
std::vector<int64_t> row_major_strides(std::span<const int64_t> dims);

class NativeKernel {
 public:
  virtual ~NativeKernel() = default;
  // Throws Failure for what only the data shows (an index out of range).
  virtual void run(const regie_launch& launch) const = 0;
  uint64_t scratch_bytes = 0;
};
using NativePtr = std::unique_ptr<NativeKernel>;

template <class F>
NativePtr native_kernel(F f, uint64_t scratch_bytes = 0) {
  struct Made final : NativeKernel {
    explicit Made(F g) : body(std::move(g)) {}
    void run(const regie_launch& launch) const override { body(launch); }
    F body;
  };
  auto made = std::make_unique<Made>(std::move(f));
  made->scratch_bytes = scratch_bytes;
  return made;
}
template <class T>
const T* in_data(const regie_launch& l, size_t i) {
  return static_cast<const T*>(l.operands[i].data);
}
template <class T>
T* out_data(const regie_launch& l, size_t i) {
  return static_cast<T*>(l.results[i].data);
}

// Which formats other than row-major a kernel takes.
enum class Takes {
  kPlain,        // none
  kElementwise,  // any one for results and operands of the result's shape; others as they broadcast
  kPooled,       // operand 0 and all results in one format
  kJoined,       // all operands and the result in one format, channels in whole blocks
  kMoved         // operand in any format, result in any other: the kernel moves bytes anyway
};

struct NativeOp {
  std::string_view name;
  NativePtr (*make)(const NativeRequest&);
  Takes takes = Takes::kPlain;
  bool in_place = false;  // result 0 may be written over an operand of its type
  double flops = 1;       // about how many an element costs; 0: what regie/operator_work.hpp counts
};

const NativeOp* find_native(std::string_view op);
// Throws UNSUPPORTED.
NativePtr make_native(const NativeRequest& request);

std::span<const NativeOp> native_moves();
std::span<const NativeOp> native_elementwise();
std::span<const NativeOp> native_reductions();
std::span<const NativeOp> native_norms();
std::span<const NativeOp> native_quantize();
std::span<const NativeOp> native_resize();
std::span<const NativeOp> native_recurrent();
std::span<const NativeOp> native_attention();

}  // namespace host_cpu
