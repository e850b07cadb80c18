// Walk<N>: visits N tensors in step, each by its own strides (0 repeats, negative goes backwards).
//
// It is what broadcasting, transposing, slicing, joining and reducing have in common. Axes that are
// contiguous in all N tensors are merged, so that the inner loop is as long as it can be. Nothing is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "op.h"

namespace regie::ops {

inline constexpr size_t max_rank = 16;
using Dims = std::array<int64_t, max_rank>;

// Row-major strides of `shape`, in elements.
Dims dense_strides(Index shape);
// Strides that read a tensor of shape `from` as if it were broadcast to `to`; INVALID_INPUT if it cannot be.
Dims broadcast_strides(std::string_view op, Index from, Index to);
void check_rank(std::string_view op, size_t rank);  // UNSUPPORTED beyond max_rank

template <size_t N>
class Walk {
 public:
  using Offsets = std::array<int64_t, N>;

  Walk() = default;
  // `strides[k]` in elements of tensor k, for each axis of `shape`.
  Walk(Index shape, const std::array<Dims, N>& strides) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 0) empty_ = true;
      if (shape[axis] == 1) continue;
      Offsets s;
      for (size_t k = 0; k < N; ++k) s[k] = strides[k][axis];
      bool merge = rank_ > 0;
      for (size_t k = 0; k < N; ++k) merge = merge && strides_[rank_ - 1][k] == s[k] * shape[axis];
      if (merge) {
        dims_[rank_ - 1] *= shape[axis];
        strides_[rank_ - 1] = s;
      } else {
        dims_[rank_] = shape[axis];
        strides_[rank_++] = s;
      }
    }
  }

  // Calls f(offsets, count, steps) for each inner row: element i of tensor k is at offsets[k] + i * steps[k].
  template <class F>
  void rows(F&& f) const {
    if (empty_) return;
    Offsets at{};
    if (rank_ == 0) {
      f(at, int64_t{1}, Offsets{});
      return;
    }
    size_t inner = rank_ - 1;
    std::array<int64_t, max_rank> index{};
    for (;;) {
      f(std::as_const(at), dims_[inner], strides_[inner]);
      size_t axis = inner;
      for (;;) {
        if (axis-- == 0) return;
        for (size_t k = 0; k < N; ++k) at[k] += strides_[axis][k];
        if (++index[axis] < dims_[axis]) break;
        for (size_t k = 0; k < N; ++k) at[k] -= strides_[axis][k] * dims_[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  size_t rank_ = 0;
  bool empty_ = false;
  std::array<int64_t, max_rank> dims_{};
  std::array<Offsets, max_rank> strides_{};
};

// A tensor cut along an axis into lines of `size` elements that are `inner` apart.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(Index shape, size_t axis) {
    for (size_t i = 0; i < shape.size(); ++i) (i < axis ? outer : i > axis ? inner : size) *= shape[i];
  }
  // f(first element) for each line, in the order of the other axes.
  template <class F>
  void each(F&& f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t k = 0; k < inner; ++k) f(o * size * inner + k);
  }
};

// memcpy that takes null pointers with no bytes, and a copy onto itself.
inline void copy_bytes(void* to, const void* from, uint64_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

// Elements of `size` bytes (1, 2, 4, 8 or 16) from tensor 0 of the walk to tensor 1.
void copy_strided(const Walk<2>& walk, uint32_t size, const void* from, void* to);

}  // namespace regie::ops
