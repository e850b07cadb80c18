// Sliding windows: the attributes and the geometry that convolution, its transpose and pooling share.
#pragma once

#include <array>
#include <vector>

#include "op.h"

namespace regie::ops {

inline constexpr size_t max_spatial_rank = 8;

// strides, dilations, pads, auto_pad, kernel_shape and ceil_mode; one number a spatial axis. Absent ones have
// their defaults; `kernel` is empty if kernel_shape is absent.
struct Window {
  enum AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

  // INVALID_MODEL if a list has the wrong length or a number is out of range.
  Window(std::string_view op, const sdk::Attrs& attrs, size_t spatial_rank);

  size_t rank() const { return strides.size(); }
  // Kernel size with the gaps that dilation makes.
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // Result size of one axis; `size` and `kernel_size` may be expressions.
  regie_dim result_dim(const Infer& infer, size_t axis, regie_dim size, regie_dim kernel_size) const;
  // The same for numbers. Call resolve first.
  int64_t result_size(size_t axis, int64_t size) const;
  // Resolves for an input of these sizes: [batch, channels, the result's sizes].
  std::vector<int64_t> resolved_result(int64_t batch, int64_t channels, Index input);
  // Makes auto_pad plain pads for these input sizes. `kernel` must be set.
  void resolve(Index input);

  std::vector<int64_t> kernel, strides, dilations, begin, end;  // begin, end: pads
  AutoPad auto_pad = kNotSet;
  bool ceil_mode = false;
};

// The window of an operator whose kernel is an attribute; of Infer or Prepare, whose `bad` says what is
// wrong.
template <class Request>
Window attribute_window(const Request& request) {
  const size_t rank = request.shape(0).size();
  if (rank < 3) request.bad("the input has rank " + std::to_string(rank) + "; it needs at least 3");
  Window window(request.op, request.attrs, rank - 2);
  if (window.kernel.empty()) request.bad("attribute 'kernel_shape' is missing");
  return window;
}

// Which positions p of the dense side meet positions q = p * stride - pad + k * dilation of the strided side,
// for each tap k of the kernel. Convolution and pooling read input at q and write result at p; transposed
// convolution reads input at p and writes result at q.
class Taps {
 public:
  Taps(const Window& window, Index dense, Index strided);

  int64_t count() const { return count_; }            // taps: the product of the kernel's sizes
  int64_t dense_size() const { return dense_size_; }  // elements of a plane
  int64_t strided_size() const { return strided_size_; }

  // For tap number `tap` calls f(p, q, n, step) for rows: dense elements p + i go with strided elements q + i
  // * step.
  template <class F>
  void rows(int64_t tap, F&& f) const {
    std::array<Span, max_spatial_rank> spans;
    std::array<int64_t, max_spatial_rank> index;
    for (size_t axis = rank_; axis-- > 0;) {
      spans[axis] = spans_[axis][static_cast<size_t>(tap % kernel_[axis])];
      tap /= kernel_[axis];
      if (spans[axis].first >= spans[axis].last) return;
      index[axis] = spans[axis].first;
    }
    size_t inner = rank_ - 1;
    int64_t n = spans[inner].last - spans[inner].first;
    for (;;) {
      int64_t p = 0, q = 0;
      for (size_t axis = 0; axis < rank_; ++axis) {
        p = p * dense_[axis] + index[axis];
        q = q * strided_[axis] + index[axis] * strides_[axis] + spans[axis].shift;
      }
      f(p, q, n, strides_[inner]);
      size_t axis = inner;
      for (;;) {
        if (axis-- == 0) return;
        if (++index[axis] < spans[axis].last) break;
        index[axis] = spans[axis].first;
      }
    }
  }

 private:
  struct Span {  // dense positions first..last-1 meet something; q = p * stride + shift
    int64_t first, last, shift;
  };
  size_t rank_;
  int64_t count_ = 1, dense_size_ = 1, strided_size_ = 1;
  std::vector<int64_t> kernel_, dense_, strided_, strides_;
  std::vector<std::vector<Span>> spans_;  // by axis and kernel index
};

}  // namespace regie::ops
