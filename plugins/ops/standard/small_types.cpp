#include "small_types.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace regie::ops {

namespace {

constexpr SmallType kTypes[] = {
    {REGIE_F8E4M3FN, 8, SmallType::kNan, true, 3, 7, 448},
    {REGIE_F8E4M3FNUZ, 8, SmallType::kOneNan, true, 3, 8, 240},
    {REGIE_F8E5M2, 8, SmallType::kInfinity, true, 2, 15, 57344},
    {REGIE_F8E5M2FNUZ, 8, SmallType::kOneNan, true, 2, 16, 57344},
    {REGIE_F8E8M0, 8, SmallType::kPower, false, 0, 127, 0x1p127},
    {REGIE_F4E2M1, 4, SmallType::kFinite, true, 1, 1, 6},
    {REGIE_U4, 4, SmallType::kInteger, false, 0, 0, 15},
    {REGIE_I4, 4, SmallType::kInteger, true, 0, 0, 7},
    {REGIE_U2, 2, SmallType::kInteger, false, 0, 0, 3},
    {REGIE_I2, 2, SmallType::kInteger, true, 0, 0, 1},
};

constexpr double kNanValue = std::numeric_limits<double>::quiet_NaN();

uint8_t encode_power(const SmallType& type, double value, const SmallCast& how) {
  constexpr uint8_t kNan = 0xff;
  const double least = std::ldexp(1.0, -type.bias);
  if (std::isnan(value) || value < 0) return kNan;
  if (value < least) return how.saturate ? 0 : kNan;
  if (std::isinf(value)) return how.saturate ? 0xfe : kNan;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 <= fraction < 1
  --exponent;
  const bool up = how.round == SmallCast::kUp        ? fraction > 0.5
                  : how.round == SmallCast::kNearest ? fraction >= 0.75
                                                     : false;
  const int power = exponent + (up ? 1 : 0) + type.bias;
  if (power > 0xfe) return how.saturate ? 0xfe : kNan;
  return static_cast<uint8_t>(power);
}

uint8_t encode_integer(const SmallType& type, double value) {
  if (!std::isfinite(value)) return 0;
  // Modulo 2^bits, of any size.
  const double wrapped = std::fmod(std::trunc(value), static_cast<double>(1 << type.bits));
  return static_cast<uint8_t>(static_cast<int>(wrapped) & ((1 << type.bits) - 1));
}

}  // namespace

const SmallType* small_type(regie_elem elem) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [elem](const SmallType& t) { return t.elem == elem; });
  return found == std::end(kTypes) ? nullptr : found;
}

double decode(const SmallType& type, uint8_t bits) {
  if (type.kind == SmallType::kInteger) {
    const int range = 1 << type.bits;
    return type.is_signed && bits >= range / 2 ? bits - range : bits;
  }
  if (type.kind == SmallType::kPower) return bits == 0xff ? kNanValue : std::ldexp(1.0, bits - type.bias);
  const unsigned sign = 1u << (type.bits - 1), magnitude = bits & (sign - 1);
  const double side = bits & sign ? -1 : 1;
  const unsigned exponent = magnitude >> type.mantissa, fraction = magnitude & ((1u << type.mantissa) - 1);
  const unsigned last = (sign - 1) >> type.mantissa;
  if (type.kind == SmallType::kOneNan && bits == sign) return kNanValue;
  if (type.kind == SmallType::kNan && magnitude == sign - 1) return side * kNanValue;
  if (type.kind == SmallType::kInfinity && exponent == last)
    return side * (fraction ? kNanValue : std::numeric_limits<double>::infinity());
  const int one = exponent ? 1 << type.mantissa : 0, shift = std::max(static_cast<int>(exponent), 1);
  return side * std::ldexp(one + static_cast<int>(fraction), shift - type.bias - type.mantissa);
}

uint8_t encode(const SmallType& type, double value, const SmallCast& how) {
  if (type.kind == SmallType::kInteger) return encode_integer(type, value);
  if (type.kind == SmallType::kPower) return encode_power(type, value, how);
  const unsigned sign = 1u << (type.bits - 1), minus = std::signbit(value) ? sign : 0;
  const unsigned infinity = ((sign - 1) >> type.mantissa) << type.mantissa;
  const unsigned nan = type.kind == SmallType::kOneNan     ? sign
                       : type.kind == SmallType::kNan      ? (minus | (sign - 1))
                       : type.kind == SmallType::kInfinity ? (minus | infinity | 1u << (type.mantissa - 1))
                                                           : sign;  // without NaN: -0
  if (std::isnan(value)) return static_cast<uint8_t>(nan);

  // In units of the spacing at this size, halves to even.
  int exponent = 0;
  std::frexp(value, &exponent);
  const int lowest = 1 - type.bias;
  const int power = value == 0 || std::isinf(value) ? lowest : std::max(exponent - 1, lowest);
  const double units = std::nearbyint(std::ldexp(std::fabs(value), type.mantissa - power));
  const double rounded = std::ldexp(units, power - type.mantissa);
  if (rounded > type.greatest) {
    if (!how.saturate && type.kind != SmallType::kFinite)
      return static_cast<uint8_t>(type.kind == SmallType::kInfinity ? (minus | infinity) : nan);
    return encode(type, std::copysign(type.greatest, value), how);
  }
  // `units` carries into the exponent by itself: below 2^mantissa the number is subnormal.
  const auto bits = static_cast<unsigned>(units) + (static_cast<unsigned>(power - lowest) << type.mantissa);
  if (bits == 0 && type.kind == SmallType::kOneNan) return 0;
  return static_cast<uint8_t>(minus | bits);
}

}  // namespace regie::ops
