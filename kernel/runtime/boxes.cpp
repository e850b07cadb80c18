#include "runtime/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace regie {

namespace {

// Axes from the right whose sizes are the same lie together; then the runs that can be copied at once.
struct Runs {
  std::vector<int64_t> counts, from_strides, to_strides;  // of the outer axes, in bytes
  size_t bytes = 0;
};

Runs runs_of(std::span<const int64_t> from, std::span<const int64_t> to, size_t elem_bytes) {
  Runs r;
  size_t rank = from.size();
  size_t inner = elem_bytes;
  while (rank > 0 && from[rank - 1] == to[rank - 1]) inner *= static_cast<size_t>(from[--rank]);
  if (rank == 0) {
    r.bytes = inner;
    return r;
  }
  --rank;
  r.bytes = inner * static_cast<size_t>(std::min(from[rank], to[rank]));
  auto from_stride = static_cast<int64_t>(inner) * from[rank];
  auto to_stride = static_cast<int64_t>(inner) * to[rank];
  for (size_t i = rank; i-- > 0;) {
    r.counts.push_back(std::min(from[i], to[i]));
    r.from_strides.push_back(from_stride);
    r.to_strides.push_back(to_stride);
    from_stride *= from[i];
    to_stride *= to[i];
  }
  return r;
}

}  // namespace

void copy_box(const std::byte* from, std::span<const int64_t> from_dims, std::byte* to,
              std::span<const int64_t> to_dims, size_t elem_bytes) {
  const Runs r = runs_of(from_dims, to_dims, elem_bytes);
  if (r.bytes == 0) return;
  if (std::find(r.counts.begin(), r.counts.end(), 0) != r.counts.end()) return;
  std::vector<int64_t> at(r.counts.size());
  for (;;) {
    std::memcpy(to, from, r.bytes);
    size_t axis = 0;
    for (; axis < at.size(); ++axis) {
      from += r.from_strides[axis];
      to += r.to_strides[axis];
      if (++at[axis] < r.counts[axis]) break;
      from -= r.from_strides[axis] * r.counts[axis];
      to -= r.to_strides[axis] * r.counts[axis];
      at[axis] = 0;
    }
    if (axis == at.size()) return;
  }
}

void pad_box(const std::byte* from, std::span<const int64_t> from_dims, std::byte* to,
             std::span<const int64_t> to_dims, size_t elem_bytes) {
  size_t total = elem_bytes, own = elem_bytes, first = 0;
  for (int64_t d : to_dims) total *= static_cast<size_t>(d);
  for (int64_t d : from_dims) own *= static_cast<size_t>(d);
  while (first < to_dims.size() && to_dims[first] == 1 && from_dims[first] == 1) ++first;
  bool outermost = true;  // only that axis differs: what is there, then zeros
  for (size_t i = first + 1; i < to_dims.size(); ++i) outermost = outermost && to_dims[i] == from_dims[i];
  if (outermost) {
    if (own) std::memcpy(to, from, own);
    std::memset(to + own, 0, total - own);
    return;
  }
  std::memset(to, 0, total);
  copy_box(from, from_dims, to, to_dims, elem_bytes);
}

void resize_planes(const float* from, int64_t planes, int64_t height, int64_t width, float* to,
                   int64_t to_height, int64_t to_width) {
  struct Place {
    int64_t low, high;
    float part;  // of `high`
  };
  auto places = [](int64_t size, int64_t to_size) {
    std::vector<Place> out;
    const double scale = static_cast<double>(size) / static_cast<double>(to_size);
    for (int64_t i = 0; i < to_size; ++i) {
      const double x =
          std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(size - 1));
      const auto low = static_cast<int64_t>(x);
      out.push_back({low, std::min(low + 1, size - 1), static_cast<float>(x - static_cast<double>(low))});
    }
    return out;
  };
  const std::vector<Place> rows = places(height, to_height), columns = places(width, to_width);
  for (int64_t p = 0; p < planes; ++p, from += height * width)
    for (const Place& r : rows) {
      const float *a = from + r.low * width, *b = from + r.high * width;
      for (const Place& c : columns) {
        const float top = a[c.low] + (a[c.high] - a[c.low]) * c.part;
        const float bottom = b[c.low] + (b[c.high] - b[c.low]) * c.part;
        *to++ = top + (bottom - top) * r.part;
      }
    }
}

}  // namespace regie
