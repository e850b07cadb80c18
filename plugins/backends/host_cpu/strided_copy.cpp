#include "strided_copy.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"

namespace host_cpu {
namespace {

constexpr int64_t kTile = 16;

// rows x columns elements; `to` consecutive along columns, `from` along rows.
template <class T>
void transpose_tile(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  if (rows == kTile && columns == kTile) {
    T tile[kTile][kTile];
    for (int64_t c = 0; c < kTile; ++c) std::memcpy(tile[c], from + c * from_step, sizeof tile[c]);
    for (int64_t r = 0; r < kTile; ++r) {
      T line[kTile];
      for (int64_t c = 0; c < kTile; ++c) line[c] = tile[c][r];
      std::memcpy(to + r * to_step, line, sizeof line);
    }
    return;
  }
  // Three channels beside many pixels, say: a loop of known length inside.
  auto narrow = [&]<int64_t kColumns>() {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) to[r * to_step + c] = from[r + c * from_step];
  };
  if (columns == 3) return narrow.template operator()<3>();
  if (columns == 4) return narrow.template operator()<4>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * to_step + c] = from[r + c * from_step];
}

template <class T>
void copy_row(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t n) {
  if (from_step == 1 && to_step == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (from_step == 0 && to_step == 1) {
    std::fill(to, to + n, *from);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

}  // namespace

StridedCopy::StridedCopy(std::span<const int64_t> dims, std::span<const int64_t> from_strides,
                         std::span<const int64_t> to_strides, uint32_t elem_size)
    : elem_size_(elem_size) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    count_ *= dims[i];
    if (dims[i] != 1) axes.push_back({dims[i], from_strides[i], to_strides[i]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> merged;
  for (const Axis& a : axes) {
    if (!merged.empty() && merged.back().to == a.to * a.size && merged.back().from == a.from * a.size)
      merged.back() = {merged.back().size * a.size, a.from, a.to};
    else
      merged.push_back(a);
  }
  if (!merged.empty()) {
    row_ = merged.back();
    merged.pop_back();
  }
  if (row_.from != 1 && row_.to == 1) {
    auto along_source = std::find_if(merged.begin(), merged.end(), [](const Axis& a) { return a.from == 1; });
    if (along_source != merged.end()) {
      column_ = *along_source;
      merged.erase(along_source);
    }
  }
  outer_ = std::move(merged);
}

template <class T>
void StridedCopy::run_typed(const T* from, T* to, uint32_t threads) const {
  if (count_ == 0) return;
  // Steps: the outer axes, times stripes of the column axis.
  // A stripe is a tile high; more where rows are short, so that steps are worth their count.
  const int64_t height = row_.size < kTile ? 512 : kTile;
  const int64_t stripes = (column_.size + height - 1) / height;
  int64_t steps = stripes;
  for (const Axis& a : outer_) steps *= a.size;
  // A single long row is cut too.
  int64_t pieces = 1;
  if (steps < static_cast<int64_t>(threads) && column_.size == 1 && row_.size >= (1 << 14)) pieces = threads;
  parallel(threads, steps * pieces, count_ / (steps * pieces), [&](int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      int64_t rest = step / pieces;
      const int64_t piece = step % pieces;
      const int64_t stripe = rest % stripes;
      rest /= stripes;
      const T* f = from;
      T* t = to;
      for (size_t i = outer_.size(); i-- > 0;) {
        const int64_t at = rest % outer_[i].size;
        rest /= outer_[i].size;
        f += at * outer_[i].from;
        t += at * outer_[i].to;
      }
      if (column_.size == 1) {
        const int64_t first = row_.size * piece / pieces, last = row_.size * (piece + 1) / pieces;
        copy_row(f + first * row_.from, row_.from, t + first * row_.to, row_.to, last - first);
        continue;
      }
      const int64_t c0 = stripe * height, rows = std::min(height, column_.size - c0);
      f += c0;
      t += c0 * column_.to;
      for (int64_t r0 = 0; r0 < row_.size; r0 += kTile)
        transpose_tile(f + r0 * row_.from, row_.from, t + r0, column_.to, rows,
                       std::min(kTile, row_.size - r0));
    }
  });
}

void StridedCopy::run(const void* from, void* to, uint32_t threads) const {
  switch (elem_size_) {
    case 1:
      return run_typed(static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to), threads);
    case 2:
      return run_typed(static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to), threads);
    case 4:
      return run_typed(static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to), threads);
    default:
      return run_typed(static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to), threads);
  }
}

}  // namespace host_cpu
