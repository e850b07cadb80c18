// How tensors lie between tasks: row-major, in blocks of 16 channels (NC1HWC0) or in columns of 16
// (FRACTAL_NZ), elements as their type says or as halves. Halves are a format as well (regie/formats.hpp):
// the value stays f32 for everyone who asks for its type, and only programs of this engine read and write it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "regie/c/view.h"
#include "regie/formats.hpp"

namespace aicore {

constexpr int64_t kC0 = 16;
constexpr regie_format kPlainFormat = REGIE_FORMAT_ND;
constexpr regie_format kBlockedFormat = regie::sdk::blocked_format(kC0);
// Of bytes: as many as a fractal has along k. Whole blocks only.
constexpr int64_t kByteC0 = 32;
constexpr regie_format kByteBlockedFormat = regie::sdk::blocked_format(kByteC0);
constexpr regie_format kHalfFormat = regie::sdk::kHalfElements;

inline bool is_half(regie_format f) { return regie::sdk::half_elements(f); }
inline bool is_blocked(regie_format f) { return (f & ~kHalfFormat) == kBlockedFormat; }
inline bool is_row_major(regie_format f) {
  return (f & ~kHalfFormat) == kPlainFormat || f == REGIE_FORMAT_NCHW;
}
// In columns of 16 elements, the order of the cube: halves only, with any axis for rows (regie/formats.hpp).
inline bool is_matrix(regie_format f) {
  return regie::sdk::is_matrix_format(f) && regie::sdk::columns_of(f) == kC0 && is_half(f);
}
constexpr regie_format matrix_format(int32_t rows_from_end) {
  return regie::sdk::matrix_format(kC0, rows_from_end) | kHalfFormat;
}
inline bool is_known_format(regie_format f) {
  const regie_format order = f & ~kHalfFormat;
  return order == REGIE_FORMAT_ND || order == kBlockedFormat || f == REGIE_FORMAT_NCHW || is_matrix(f) ||
         f == kByteBlockedFormat;
}
// May a tensor of bytes lie in blocks, of which none is filled up?
inline bool byte_blocks_fit(regie_elem elem, std::span<const int64_t> dims) {
  return (elem == REGIE_I8 || elem == REGIE_U8) && dims.size() >= 3 && dims.size() <= 5 && dims[1] > 0 &&
         dims[1] % kByteC0 == 0;
}
// Are there channels to lie in blocks, and positions?
inline bool blocks_fit(std::span<const int64_t> dims) {
  return dims.size() >= 3 && dims.size() <= 5 && dims[1] > 0;
}
// Channels of a tensor in blocks, those that fill up the last one included. They are zeros, whatever the real
// ones are: who writes a tensor makes them so, and who reads it may multiply them.
inline int64_t lanes_of(int64_t channels) { return (channels + kC0 - 1) / kC0 * kC0; }
inline bool has_padding(regie_format f, int64_t channels) { return is_blocked(f) && channels % kC0 != 0; }
// Elements of a tensor as it lies.
inline int64_t laid_count(std::span<const int64_t> dims, regie_format f) {
  const auto rank = static_cast<int32_t>(dims.size()), rows = regie::sdk::rows_axis_of(f, rank);
  int64_t n = 1;
  for (int32_t d = 0; d < rank; ++d) {
    const int64_t size = dims[static_cast<size_t>(d)];
    const bool filled = is_matrix(f) ? d == rows || d == rank - 1 : is_blocked(f) && d == 1;
    n *= filled ? lanes_of(size) : size;
  }
  return n;
}
// A tensor in FRACTAL_NZ: `outer` x `inner` matrices, the rows' axis between them.
struct Matrices {
  int64_t outer = 1, rows = 1, inner = 1, columns = 1;
  Matrices() = default;
  Matrices(std::span<const int64_t> dims, regie_format f);
  int64_t count() const { return outer * inner; }
  int64_t blocks() const { return lanes_of(columns) / kC0; }
  int64_t laid_rows() const { return lanes_of(rows); }
};
// Of the axes before the last the last one of more than one element: the rows that it is worth to lie so for.
// 0: there is none.
int32_t rows_from_end(std::span<const int64_t> dims);
// Families of programs that read or write blocks.
bool takes_blocks(std::string_view op);
// The same of FRACTAL_NZ.
bool takes_matrices(std::string_view op);
bool takes_byte_blocks(std::string_view op);

// What is rounded to halves between tasks.
enum class Rounding {
  kNothing,  // f32 as in the model
  kFree,     // what all readers round anyway: operands of the cube, of MaxPool and AveragePool
  kShared,   // what one reader at least rounds anyway
  kAll       // all that programs hand on to each other
};

}  // namespace aicore
