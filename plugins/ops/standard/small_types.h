// Element types of 8 bits and fewer that no C++ type stands for: 8-bit and 4-bit floats, and packed integers
// of 4 and 2 bits. Each is a row of a table; reading and writing one element go by the row. Cast, and the
// conversions between quantised and other numbers, are what they are for.
#pragma once

#include <cstdint>

#include "regie/c/view.h"

namespace regie::ops {

struct SmallType {
  enum Kind : uint8_t {
    kInteger,   // two's complement if is_signed
    kInfinity,  // a float whose greatest exponent holds infinity and NaN (e5m2)
    kNan,       // a float whose pattern of ones is NaN, without infinity (e4m3fn)
    kOneNan,    // a float without -0, whose pattern is the only NaN (e4m3fnuz, e5m2fnuz)
    kFinite,    // a float without infinity and NaN (e2m1)
    kPower,     // an exponent alone; ones are NaN (e8m0)
  };
  regie_elem elem;
  uint8_t bits;
  Kind kind;
  bool is_signed;
  uint8_t mantissa;  // bits of it
  int16_t bias;
  double greatest;  // finite value

  bool is_float() const { return kind != kInteger; }
};

// NULL if the type is not one of these.
const SmallType* small_type(regie_elem elem);

// How a number becomes a float of 8 bits.
struct SmallCast {
  enum Round : uint8_t { kUp, kDown, kNearest };  // of e8m0; the others round to nearest, halves to even
  bool saturate = true;
  Round round = kUp;
};

double decode(const SmallType& type, uint8_t bits);
// Floats beyond the range become the greatest (saturating, or where there is nothing else), or infinity or
// NaN. Integers are cut towards zero and wrap around; NaN and infinity become 0.
uint8_t encode(const SmallType& type, double value, const SmallCast& how);

// Element `at` of packed data, low bits of a byte first.
inline uint8_t read_bits(const SmallType& type, const void* from, int64_t at) {
  const auto* bytes = static_cast<const uint8_t*>(from);
  if (type.bits == 8) return bytes[at];
  const int64_t each = 8 / type.bits;
  return static_cast<uint8_t>((bytes[at / each] >> (at % each * type.bits)) & ((1 << type.bits) - 1));
}
// What is left of the last byte becomes 0 where elements are written in order.
inline void write_bits(const SmallType& type, void* to, int64_t at, uint8_t bits) {
  auto* bytes = static_cast<uint8_t*>(to);
  if (type.bits == 8) {
    bytes[at] = bits;
    return;
  }
  const int64_t each = 8 / type.bits, place = at % each;
  uint8_t& byte = bytes[at / each];
  byte = static_cast<uint8_t>((place == 0 ? 0 : byte) | bits << (place * type.bits));
}

}  // namespace regie::ops
