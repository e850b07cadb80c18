// Formats beyond their kind: the parameter of regie_format (c/view.h) holds C0 in its low 14 bits; its highest
// says that elements of f32 lie as f16. Of FRACTAL_NZ the low 8 bits are W0, the 6 above them say which axis is
// that of the rows. A value keeps its type then: what the graph says of it, shapes and
// operators' rules included, is as before, and who asks for another format gets a regie.Reformat, which
// rounds or widens. So an engine decides which of its operands may be halves as it decides how they lie, and
// both are one choice for the whole graph.
#pragma once

#include <iterator>
#include <string>
#include <string_view>

#include "regie/c/view.h"
#include "regie/type_view.hpp"

namespace regie::sdk {

constexpr regie_format kHalfElements = 0x4000u << 16;

constexpr regie_format blocked_format(int64_t c0) {
  return REGIE_FORMAT_NC1HWC0 | static_cast<regie_format>(c0) << 16;
}
// C0 of a tensor in blocks of channels; 0: it lies otherwise.
constexpr int64_t block_of(regie_format f) {
  const bool blocked = (f & 0xffff) == REGIE_FORMAT_NC1HWC0 && !(f & REGIE_FORMAT_OPAQUE_BIT);
  return blocked ? f >> 16 & 0x3fff : 0;
}
// Matrices in columns of `w0` elements (FRACTAL_NZ): columns run along the last axis, rows along another one, which
// is counted from the end, 2 being the one before the last. All other axes lie around that, in their order. So what
// splits the last axis into heads of whole columns, or carries the axis of the rows past them, leaves every byte
// where it is.
constexpr regie_format matrix_format(int64_t w0, int32_t rows_from_end = 2) {
  return REGIE_FORMAT_FRACTAL_NZ | static_cast<regie_format>(w0 | (rows_from_end - 2) << 8) << 16;
}
constexpr bool is_matrix_format(regie_format f) {
  return (f & 0xffff) == REGIE_FORMAT_FRACTAL_NZ && !(f & REGIE_FORMAT_OPAQUE_BIT);
}
// W0 of a tensor in FRACTAL_NZ; 0: it lies otherwise.
constexpr int64_t columns_of(regie_format f) { return is_matrix_format(f) ? f >> 16 & 0xff : 0; }
// Its axis of rows, of a tensor of this rank; negative: it has none.
constexpr int32_t rows_axis_of(regie_format f, int32_t rank) {
  return rank - 2 - static_cast<int32_t>(f >> 24 & 0x3f);
}
constexpr int64_t kMatrixRows = 16;  // of a fractal: rows are filled up to whole ones

// Do elements lie as f16 whatever the type says?
constexpr bool half_elements(regie_format f) {
  return !(f & REGIE_FORMAT_OPAQUE_BIT) && (f & kHalfElements) != 0;
}
// What lies where a value of the type does.
constexpr regie_elem laid_elem(const regie_type& t) {
  return half_elements(t.format) ? static_cast<regie_elem>(REGIE_F16) : t.elem;
}
// Of one element in memory, in bits: what everything that counts a value's bytes goes by. 0: not known.
constexpr uint32_t laid_bits(const regie_type& t) { return elem_bits(laid_elem(t)); }

// The size of dimension `axis` as it lies: of a tensor in blocks of channels a last block that channels do not fill is
// filled up, of one in FRACTAL_NZ rows and columns are. Dimensions that are expressions are given as they are: such a tensor lies in whole blocks.
constexpr regie_dim laid_dim(const regie_type& t, int32_t axis) {
  const regie_dim d = t.dims[axis];
  regie_dim block = axis == 1 ? block_of(t.format) : 0;
  if (is_matrix_format(t.format) && axis == t.rank - 1)
    block = columns_of(t.format);
  else if (is_matrix_format(t.format) && axis == rows_axis_of(t.format, t.rank))
    block = kMatrixRows;
  return block > 0 && d >= 0 ? (d + block - 1) / block * block : d;
}

// For messages: "NC1HWC0_16 of f16".
constexpr std::string_view kFormatKinds[] = {"ND", "NCHW", "NHWC", "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"};
inline std::string spell_layout(regie_format f) {
  if (f & REGIE_FORMAT_OPAQUE_BIT) return "opaque" + std::to_string(f & ~REGIE_FORMAT_OPAQUE_BIT);
  const uint32_t kind = f & 0xffff, parameter = f >> 16 & 0x3fff;
  std::string text =
      kind < std::size(kFormatKinds) ? std::string(kFormatKinds[kind]) : "kind" + std::to_string(kind);
  if (is_matrix_format(f)) {
    text += "_" + std::to_string(columns_of(f));
    if (parameter >> 8) text += " along axis -" + std::to_string((parameter >> 8) + 2);
  } else if (parameter) {
    text += "_" + std::to_string(parameter);
  }
  return half_elements(f) ? text + " of f16" : text;
}

}  // namespace regie::sdk
