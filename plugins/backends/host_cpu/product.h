// Matrix products inside kernels of our own, by oneDNN's primitive for one shape. Not by dnnl_sgemm: its
// first call generates code for every shape that may come, tens of milliseconds, which then is the start of a
// network that has one attention.
#pragma once

#include <cstdint>
#include <vector>

#include "dnnl_handles.h"

namespace host_cpu {

// c[m, n] = a[m, k] x b[k, n], or += it; float32. Rows of a and b follow each other without a gap.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool b_transposed = false;  // b is [n, k]
  bool add = false;
  int64_t c_step = 0;  // from a row of c to the next; 0: n
};

class Product {
 public:
  // For `callers` threads that call `run` at a time, each of which opens parallel regions of `width`.
  Product(const ProductShape& shape, uint32_t callers, uint32_t width);
  // Scratch of one caller.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Does not throw: callers may be in a parallel region.
  dnnl_status_t run(uint32_t caller, const float* a, const float* b, float* c, void* scratch) const;

 private:
  struct Caller {
    Stream stream;
    Memory a, b, c, scratch;
    std::vector<dnnl_exec_arg_t> args;
  };
  Engine engine_;
  uint64_t scratch_bytes_ = 0;
  Primitive primitive_;
  std::vector<Caller> callers_;  // addresses are set in them at every call
};

}  // namespace host_cpu
