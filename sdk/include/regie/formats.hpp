// Formats beyond their kind: the parameter of regie_format (c/view.h) holds C0 in its low 14 bits; its highest
// says that elements of f32 lie as f16. A value keeps its type then: what the graph says of it, shapes and
// operators' rules included, is as before, and who asks for another format gets a regie.Reformat, which
// rounds or widens. So an engine decides which of its operands may be halves as it decides how they lie, and
// both are one choice for the whole graph.
#pragma once

#include <string>

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

// Of a tensor in blocks of channels the size of dimension `axis` as it lies: a last block that channels do not fill is
// filled up. Dimensions that are expressions are given as they are: such a tensor lies in whole blocks.
constexpr regie_dim laid_dim(const regie_type& t, int32_t axis) {
  const regie_dim d = t.dims[axis], block = block_of(t.format);
  return axis == 1 && block > 0 && d >= 0 ? (d + block - 1) / block * block : d;
}

// For messages: "NC1HWC0_16 of f16".
inline std::string spell_layout(regie_format f) {
  constexpr const char* kNames[] = {"ND", "NCHW", "NHWC", "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"};
  if (f & REGIE_FORMAT_OPAQUE_BIT) return "opaque" + std::to_string(f & ~REGIE_FORMAT_OPAQUE_BIT);
  const uint32_t kind = f & 0xffff, parameter = f >> 16 & 0x3fff;
  std::string text = kind < sizeof kNames / sizeof *kNames ? kNames[kind] : "kind" + std::to_string(kind);
  if (parameter) text += "_" + std::to_string(parameter);
  return half_elements(f) ? text + " of f16" : text;
}

}  // namespace regie::sdk
