#include "text/elements.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "regie/half.hpp"

namespace regie {

namespace {

template <class T>
T load(const void* data, uint64_t index) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return v;
}

template <class T>
void store(void* data, uint64_t index, T v) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &v, sizeof(T));
}

std::string hex(uint64_t v) {
  char buffer[20];
  return "0x" + std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, 16).ptr);
}

// A NaN other than the quiet one without payload keeps its bits: nan(0x7fc00001).
template <class Bits>
std::string spell_real(Bits bits, Bits quiet_nan, bool is_nan, const std::string& text) {
  Bits sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  if (is_nan && static_cast<Bits>(bits & static_cast<Bits>(~sign)) != quiet_nan)
    return "nan(" + hex(bits) + ")";
  return text;
}

// Elements of `bits` (2 or 4), low bits of a byte first.
uint32_t packed(const void* data, uint64_t index, uint32_t bits) {
  const uint64_t each = 8 / bits;
  return load<uint8_t>(data, index / each) >> (index % each * bits) & ((1u << bits) - 1);
}

void store_packed(void* data, uint64_t index, uint32_t bits, uint32_t v) {
  const uint64_t each = 8 / bits;
  const uint32_t shift = static_cast<uint32_t>(index % each) * bits, mask = ((1u << bits) - 1) << shift;
  store(data, index / each,
        static_cast<uint8_t>((load<uint8_t>(data, index / each) & ~mask) | (v << shift & mask)));
}

template <class T>
Status read_signed(const Lexer& lexer, const Token& t, void* data, uint64_t index) {
  REGIE_ASSIGN(int64_t v, read_int64(lexer, t));
  if (v < std::numeric_limits<T>::min() || v > std::numeric_limits<T>::max())
    return lexer.error(t, "'" + std::string(t.text) + "' does not fit the element type");
  store(data, index, static_cast<T>(v));
  return {};
}

Result<uint64_t> read_bits(const Lexer& lexer, const Token& t, uint64_t most) {
  REGIE_ASSIGN(uint64_t v, read_uint64(lexer, t));
  if (v > most) return lexer.error(t, "'" + std::string(t.text) + "' does not fit the element type");
  return v;
}

template <class T>
Status read_unsigned(const Lexer& lexer, const Token& t, void* data, uint64_t index) {
  REGIE_ASSIGN(uint64_t v, read_bits(lexer, t, std::numeric_limits<T>::max()));
  store(data, index, static_cast<T>(v));
  return {};
}

// The bits of nan(0x…), if that is what stands there; `t` has been taken.
Result<bool> read_nan(Lexer& lexer, const Token& t, uint64_t most, uint64_t* bits) {
  if (!t.is("nan") || !lexer.peek().is("(")) return false;
  lexer.next();
  REGIE_ASSIGN(Token number, lexer.expect(TokenKind::kInteger, "the bits of the number"));
  REGIE_ASSIGN(*bits, read_bits(lexer, number, most));
  REGIE_TRY(lexer.expect(")"));
  return true;
}

}  // namespace

uint64_t spelled_count(regie_elem elem, uint64_t count) {
  return elem == REGIE_C64 || elem == REGIE_C128 ? 2 * count : count;
}

std::string spell_element(regie_elem elem, const void* data, uint64_t i) {
  switch (elem) {
    case REGIE_F32:
    case REGIE_C64: {
      float v = load<float>(data, i);
      return spell_real<uint32_t>(std::bit_cast<uint32_t>(v), 0x7fc00000, std::isnan(v), spell_float32(v));
    }
    case REGIE_F64:
    case REGIE_C128: {
      double v = load<double>(data, i);
      return spell_real<uint64_t>(std::bit_cast<uint64_t>(v), 0x7ff8000000000000, std::isnan(v),
                                  spell_float64(v));
    }
    case REGIE_F16: {
      uint16_t bits = load<uint16_t>(data, i);
      float v = sdk::half_value(bits);
      return spell_real<uint16_t>(bits, 0x7e00, std::isnan(v), spell_float32(v));
    }
    case REGIE_BF16: {
      uint16_t bits = load<uint16_t>(data, i);
      float v = sdk::bfloat_value(bits);
      return spell_real<uint16_t>(bits, 0x7fc0, std::isnan(v), spell_float32(v));
    }
    case REGIE_I8:
      return std::to_string(load<int8_t>(data, i));
    case REGIE_I16:
      return std::to_string(load<int16_t>(data, i));
    case REGIE_I32:
      return std::to_string(load<int32_t>(data, i));
    case REGIE_I64:
      return std::to_string(load<int64_t>(data, i));
    case REGIE_U8:
      return std::to_string(load<uint8_t>(data, i));
    case REGIE_U16:
      return std::to_string(load<uint16_t>(data, i));
    case REGIE_U32:
      return std::to_string(load<uint32_t>(data, i));
    case REGIE_U64:
      return std::to_string(load<uint64_t>(data, i));
    case REGIE_BOOL: {
      uint8_t v = load<uint8_t>(data, i);
      return v == 0 ? "false" : v == 1 ? "true" : hex(v);
    }
    case REGIE_U2:
    case REGIE_U4:
      return std::to_string(packed(data, i, elem_bits(elem)));
    case REGIE_I2:
    case REGIE_I4: {
      const int v = static_cast<int>(packed(data, i, elem_bits(elem))), range = 1 << elem_bits(elem);
      return std::to_string(v < range / 2 ? v : v - range);
    }
    case REGIE_F4E2M1:
      return hex(packed(data, i, 4));
    case REGIE_STRING: {
      regie_str s = load<regie_str>(data, i);
      return quote(std::string_view(s.data, s.size));
    }
    default:
      return hex(load<uint8_t>(data, i));  // 8-bit floats
  }
}

Status read_element(Lexer& lexer, regie_elem elem, void* data, uint64_t i) {
  if (lexer.peek().kind == TokenKind::kError || lexer.at_end()) return lexer.unexpected("an element");
  Token t = lexer.next();
  auto real = [&]() -> Result<float> {
    REGIE_ASSIGN(double v, read_float(lexer, t));
    return static_cast<float>(v);
  };
  uint64_t bits = 0;
  switch (elem) {
    case REGIE_F32:
    case REGIE_C64: {
      REGIE_ASSIGN(bool raw, read_nan(lexer, t, UINT32_MAX, &bits));
      if (raw) return store(data, i, static_cast<uint32_t>(bits)), Status();
      REGIE_ASSIGN(float v, real());
      return store(data, i, v), Status();
    }
    case REGIE_F64:
    case REGIE_C128: {
      REGIE_ASSIGN(bool raw, read_nan(lexer, t, UINT64_MAX, &bits));
      if (raw) return store(data, i, bits), Status();
      if (t.kind == TokenKind::kFloat || t.kind == TokenKind::kInteger) {
        std::string digits(t.text);
        if (!digits.ends_with("d") && !digits.ends_with("f") && !digits.ends_with("n")) digits += 'd';
        Token wide = t;
        wide.text = digits;
        REGIE_ASSIGN(double v, read_float(lexer, wide));
        return store(data, i, v), Status();
      }
      REGIE_ASSIGN(double v, read_float(lexer, t));
      return store(data, i, v), Status();
    }
    case REGIE_F16:
    case REGIE_BF16: {
      REGIE_ASSIGN(bool raw, read_nan(lexer, t, UINT16_MAX, &bits));
      if (raw) return store(data, i, static_cast<uint16_t>(bits)), Status();
      REGIE_ASSIGN(float v, real());
      return store(data, i, elem == REGIE_F16 ? sdk::half_bits(v) : sdk::bfloat_bits(v)), Status();
    }
    case REGIE_I8:
      return read_signed<int8_t>(lexer, t, data, i);
    case REGIE_I16:
      return read_signed<int16_t>(lexer, t, data, i);
    case REGIE_I32:
      return read_signed<int32_t>(lexer, t, data, i);
    case REGIE_I64:
      return read_signed<int64_t>(lexer, t, data, i);
    case REGIE_U16:
      return read_unsigned<uint16_t>(lexer, t, data, i);
    case REGIE_U32:
      return read_unsigned<uint32_t>(lexer, t, data, i);
    case REGIE_U64:
      return read_unsigned<uint64_t>(lexer, t, data, i);
    case REGIE_BOOL:
      if (t.is("true") || t.is("false")) return store(data, i, static_cast<uint8_t>(t.is("true"))), Status();
      if (t.kind != TokenKind::kInteger) return lexer.error(t, "expected true or false");
      return read_unsigned<uint8_t>(lexer, t, data, i);
    case REGIE_I2:
    case REGIE_I4: {
      const int64_t half = int64_t{1} << (elem_bits(elem) - 1);
      REGIE_ASSIGN(int64_t v, read_int64(lexer, t));
      if (v < -half || v >= half)
        return lexer.error(t, "'" + std::string(t.text) + "' does not fit " + std::string(elem_name(elem)));
      return store_packed(data, i, elem_bits(elem), static_cast<uint32_t>(v)), Status();
    }
    case REGIE_U2:
    case REGIE_U4:
    case REGIE_F4E2M1: {
      REGIE_ASSIGN(uint64_t v, read_bits(lexer, t, (1u << elem_bits(elem)) - 1));
      return store_packed(data, i, elem_bits(elem), static_cast<uint32_t>(v)), Status();
    }
    default:
      return read_unsigned<uint8_t>(lexer, t, data, i);  // u8, and 8-bit floats as their bits
  }
}

}  // namespace regie
