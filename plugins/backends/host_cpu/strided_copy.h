// Copies between two strided views of one shape: transpositions, slices, parts of a concatenation,
// broadcasts, conversions of format. The plan merges axes, writes in the order of the destination, and copies
// tile by tile where source and destination run along different axes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace host_cpu {

class StridedCopy {
 public:
  // Strides in elements; of the source they may be 0 (broadcast) or negative. Element sizes 1, 2, 4, 8.
  StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> from_strides,
              std::span<const int64_t> to_strides, uint32_t elem_size);
  // Starts at the given addresses; on up to `threads` threads.
  void run(const void* from, void* to, uint32_t threads) const;
  int64_t count() const { return count_; }

 private:
  struct Axis {
    int64_t size, from, to;
  };
  template <class T>
  void run_typed(const T* from, T* to, uint32_t threads) const;
  std::vector<Axis> outer_;  // all but the inner ones, slowest first
  Axis row_{1, 0, 0};        // consecutive in the destination, if it has any such axis
  Axis column_{1, 0, 0};     // consecutive in the source, where that is another axis
  int64_t count_ = 1;
  uint32_t elem_size_;
};

}  // namespace host_cpu
