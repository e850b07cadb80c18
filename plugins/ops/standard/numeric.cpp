#include "numeric.h"

#include <array>

namespace regie::ops {

Half::Half(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  u &= 0x7fffffffu;
  if (u >= 0x7f800000u) {  // infinity and NaN
    bits = static_cast<uint16_t>(sign | 0x7c00u | (u > 0x7f800000u ? 0x200u | ((u >> 13) & 0x3ffu) : 0u));
  } else if (u >= 0x477ff000u) {  // rounds to beyond 65504
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (u >= 0x38800000u) {  // normal
    uint32_t rounded = u + 0xfffu + ((u >> 13) & 1u) - 0x38000000u;
    bits = static_cast<uint16_t>(sign | (rounded >> 13));
  } else if (u < 0x33000000u) {  // less than half of the least subnormal
    bits = sign;
  } else {
    uint32_t exponent = u >> 23, mantissa = (u & 0x7fffffu) | 0x800000u, shift = 126u - exponent;
    uint32_t result = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (result & 1u))) ++result;
    bits = static_cast<uint16_t>(sign | result);
  }
}

Half::operator float() const {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu,
           mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

namespace {
struct ElemFacts {
  std::string_view name;
  uint8_t size;
};
constexpr std::array<ElemFacts, 27> facts{
    {{"?", 0},          {"f32", 4},    {"u8", 1},         {"i8", 1},    {"u16", 2},  {"i16", 2},
     {"i32", 4},        {"i64", 8},    {"string", 0},     {"bool", 1},  {"f16", 2},  {"f64", 8},
     {"u32", 4},        {"u64", 8},    {"c64", 8},        {"c128", 16}, {"bf16", 2}, {"f8e4m3fn", 1},
     {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1}, {"u4", 0},    {"i4", 0},   {"f4e2m1", 0},
     {"f8e8m0", 1},     {"u2", 0},     {"i2", 0}}};
}  // namespace

std::string_view elem_name(regie_elem elem) { return facts[elem < facts.size() ? elem : 0].name; }
uint32_t elem_size(regie_elem elem) { return facts[elem < facts.size() ? elem : 0].size; }

}  // namespace regie::ops
