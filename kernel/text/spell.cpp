#include <charconv>
#include <cmath>
#include <limits>

#include "text/lexer.h"

namespace regie {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Length of the valid UTF-8 sequence at the beginning of `s`, 0 if there is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  auto tail = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b >= 0xe0 && b <= 0xef) {
    bool overlong = b == 0xe0 && byte(1) < 0xa0, surrogate = b == 0xed && byte(1) > 0x9f;
    return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (b >= 0xf0 && b <= 0xf4) {
    bool overlong = b == 0xf0 && byte(1) < 0x90, beyond = b == 0xf4 && byte(1) > 0x8f;
    return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

template <class T>
std::string shortest(T v) {
  if (std::isnan(v)) return std::signbit(v) ? "-nan" : "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T>
std::string_view digits(std::string_view text, T* base) {
  *base = 10;
  if (text.starts_with("0x")) {
    *base = 16;
    text.remove_prefix(2);
  }
  return text;
}

template <class T>
bool read_real(std::string_view text, T* v) {
  if (text.ends_with("d")) text.remove_suffix(1);
  auto r = std::from_chars(text.data(), text.data() + text.size(), *v);
  // Out of range means overflow or underflow; the latter is zero, which is what rounding gives.
  if (r.ec == std::errc::result_out_of_range) {
    double wide = 0;
    auto w = std::from_chars(text.data(), text.data() + text.size(), wide);
    bool tiny = w.ec == std::errc() ? std::fabs(wide) < 1 : text.find("e-") != std::string_view::npos;
    if (!tiny) return false;
    *v = text.starts_with('-') ? T(-0.0) : T(0);
    return true;
  }
  return r.ec == std::errc();
}
}  // namespace

Result<int64_t> read_int64(const Lexer& lexer, const Token& t) {
  if (t.kind != TokenKind::kInteger)
    return lexer.error(t, "expected an integer, not '" + std::string(t.text) + "'");
  int base = 10;
  bool negative = t.text.starts_with('-');
  std::string_view text = digits(negative ? t.text.substr(1) : t.text, &base);
  uint64_t magnitude = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (r.ec != std::errc() || magnitude > limit)
    return lexer.error(t, "'" + std::string(t.text) + "' does not fit a signed 64-bit integer");
  return static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
}

Result<uint64_t> read_uint64(const Lexer& lexer, const Token& t) {
  if (t.kind != TokenKind::kInteger || t.text.starts_with('-'))
    return lexer.error(t, "expected an integer of at least 0, not '" + std::string(t.text) + "'");
  int base = 10;
  std::string_view text = digits(t.text, &base);
  uint64_t v = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), v, base);
  if (r.ec != std::errc())
    return lexer.error(t, "'" + std::string(t.text) + "' does not fit an unsigned 64-bit integer");
  return v;
}

bool is_number(const Token& t) {
  return t.kind == TokenKind::kInteger || t.kind == TokenKind::kFloat ||
         (t.kind == TokenKind::kIdentifier && (t.text == "inf" || t.text == "nan"));
}

Result<double> read_float(const Lexer& lexer, const Token& t) {
  if (!is_number(t)) return lexer.error(t, "expected a number");
  std::string_view text = t.text;
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "-nan") return -std::numeric_limits<double>::quiet_NaN();
  if (text.starts_with("0x") || text.starts_with("-0x"))
    return lexer.error(t, "expected a decimal number, not '" + std::string(text) + "'");
  if (text.ends_with("d")) {
    double v = 0;
    if (!read_real(text, &v)) return lexer.error(t, "'" + std::string(text) + "' is beyond double precision");
    return v;
  }
  float v = 0;
  if (!read_real(text, &v))
    return lexer.error(t, "'" + std::string(text) + "' is beyond single precision; for a double write '" +
                              std::string(text) + "d'");
  return static_cast<double>(v);
}

std::string quote(std::string_view text) {
  static const char* hex = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    size_t length = utf8_length(text.substr(i));
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (length == 0 || c < 0x20 || c == 0x7f) {
      out += {'\\', 'x', hex[c >> 4], hex[c & 15]};
      length = 1;
    } else {
      out += text.substr(i, length);
    }
    i += length;
  }
  return out + '"';
}

namespace {
// One identifier of the lexer, dots included only where a letter follows (or, in values' names, a digit).
bool plain(std::string_view name, bool digits_after_dot) {
  if (name.empty() || !is_letter(name[0]) || name == "_") return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (is_letter(c) || is_digit(c)) continue;
    if (c != '.' || i + 1 == name.size()) return false;
    if (!is_letter(name[i + 1]) && !(digits_after_dot && is_digit(name[i + 1]))) return false;
  }
  return true;
}
}  // namespace

std::string spell_name(std::string_view name) { return plain(name, false) ? std::string(name) : quote(name); }

std::string spell_value(std::string_view name, uint32_t occurrence) {
  std::string text = "%" + (plain(name, true) ? std::string(name) : quote(name));
  if (occurrence) text += "#" + std::to_string(occurrence);
  return text;
}

std::string spell_float32(float v) { return shortest(v); }
std::string spell_float64(double v) { return shortest(v); }

std::string spell_float(double v) {
  if (!std::isfinite(v)) return shortest(v);
  // The range test keeps the conversion defined.
  bool single = std::fabs(v) <= static_cast<double>(std::numeric_limits<float>::max());
  if (single && static_cast<double>(static_cast<float>(v)) == v) return shortest(static_cast<float>(v));
  return shortest(v) + "d";
}

}  // namespace regie
