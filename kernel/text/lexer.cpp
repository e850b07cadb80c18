#include "text/lexer.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace regie {

namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
std::string printable(char c) {
  static const char* hex = "0123456789abcdef";
  unsigned char u = static_cast<unsigned char>(c);
  if (u >= 0x20 && u < 0x7f) return std::string("'") + c + "'";
  return std::string("byte 0x") + hex[u >> 4] + hex[u & 15];
}
std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  return std::string(text.substr(0, kMost)) + (text.size() > kMost ? "…" : "");
}
}  // namespace

Lexer::Lexer(std::string_view text, std::string file_name, uint32_t first_line)
    : text_(text), file_name_(std::move(file_name)), line_(first_line) {
  current_ = scan();
  ahead_ = scan();
}

Token Lexer::next() {
  Token t = current_;
  current_ = ahead_;
  ahead_ = scan();
  return t;
}

void Lexer::rewind(const Token& to) {
  pos_ = to.begin;
  line_ = to.line;
  line_begin_ = to.begin - (to.column - 1);
  current_ = scan();
  ahead_ = scan();
}

bool Lexer::accept(std::string_view punct_or_word) {
  if (!current_.is(punct_or_word)) return false;
  next();
  return true;
}

Status Lexer::expect(std::string_view punct_or_word, std::string_view what) {
  if (accept(punct_or_word)) return {};
  if (!what.empty()) return unexpected(what);
  return unexpected("'" + std::string(punct_or_word) + "'");
}

Result<Token> Lexer::expect(TokenKind kind, std::string_view what) {
  if (current_.kind != kind) return unexpected(what);
  return next();
}

std::string Lexer::place(const Token& at) const {
  return file_name_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

Status Lexer::error(const Token& at, std::string message) const {
  return invalid_input(std::move(message), place(at));
}

Status Lexer::unexpected(std::string_view what) const {
  if (current_.kind == TokenKind::kError) return error(current_, std::string(current_.text));
  std::string found = current_.kind == TokenKind::kEnd
                          ? std::string("the end of the text")
                          : "'" + shown(text_.substr(current_.begin, current_.end - current_.begin)) + "'";
  return error(current_, "expected " + std::string(what) + ", not " + found);
}

void Lexer::skip_space() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == '\n') {
      ++pos_;
      ++line_;
      line_begin_ = pos_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (c == '/' && at(pos_ + 1) == '/') {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      return;
    }
  }
}

Token Lexer::fail(Token t, std::string message) {
  decoded_.push_back(std::move(message));
  t.kind = TokenKind::kError;
  t.text = decoded_.back();
  t.end = pos_;
  return t;
}

Token Lexer::scan() {
  skip_space();
  Token t;
  t.line = line_;
  t.column = static_cast<uint32_t>(pos_ - line_begin_ + 1);
  t.begin = t.end = pos_;
  if (pos_ >= text_.size()) return t;
  char c = text_[pos_];
  if (c == '%') return scan_value(t);
  if (c == '"') return scan_string(t);
  if (is_digit(c) || (c == '-' && is_digit(at(pos_ + 1)))) return scan_number(t);
  if (c == '-' && (text_.substr(pos_ + 1, 3) == "inf" || text_.substr(pos_ + 1, 3) == "nan") &&
      !is_word(at(pos_ + 4))) {
    pos_ += 4;
    t.kind = TokenKind::kFloat;
  } else if (is_letter(c)) {
    while (is_word(at(pos_)) || (at(pos_) == '.' && is_letter(at(pos_ + 1)))) ++pos_;
    t.kind = TokenKind::kIdentifier;
  } else if (c == '$') {
    ++pos_;
    if (!is_letter(at(pos_))) return fail(t, "expected a name after '$'");
    while (is_word(at(pos_))) ++pos_;
    t.kind = TokenKind::kVariable;
    t.end = pos_;
    t.text = text_.substr(t.begin + 1, t.end - t.begin - 1);
    return t;
  } else if (static_cast<unsigned char>(c) < 0x21 || static_cast<unsigned char>(c) > 0x7e) {
    ++pos_;
    return fail(t, printable(c) + " may only stand inside a string; write such names as \"…\"");
  } else {
    t.kind = TokenKind::kPunct;
    std::string_view rest = text_.substr(pos_);
    size_t length = 1;
    if (rest.starts_with("...")) {
      length = 3;
    } else {
      for (std::string_view two : {"->", "..", "==", "!=", "<=", ">="})
        if (rest.starts_with(two)) length = 2;
    }
    pos_ += length;
  }
  t.end = pos_;
  t.text = text_.substr(t.begin, t.end - t.begin);
  return t;
}

Token Lexer::scan_number(Token t) {
  t.kind = TokenKind::kInteger;
  if (at(pos_) == '-') ++pos_;
  if (at(pos_) == '0' && at(pos_ + 1) == 'x') {
    pos_ += 2;
    if (hex_digit(at(pos_)) < 0) return fail(t, "expected hexadecimal digits after 0x");
    while (hex_digit(at(pos_)) >= 0) ++pos_;
  } else {
    while (is_digit(at(pos_))) ++pos_;
    if (at(pos_) == '.' && at(pos_ + 1) != '.') {
      t.kind = TokenKind::kFloat;
      ++pos_;
      while (is_digit(at(pos_))) ++pos_;
    }
    if (at(pos_) == 'e' || at(pos_) == 'E') {
      size_t p = pos_ + 1;
      if (at(p) == '+' || at(p) == '-') ++p;
      if (is_digit(at(p))) {
        t.kind = TokenKind::kFloat;
        while (is_digit(at(p))) ++p;
        pos_ = p;
      }
    }
    if (at(pos_) == 'd' && !is_word(at(pos_ + 1))) {
      t.kind = TokenKind::kFloat;
      ++pos_;
    }
  }
  if (is_word(at(pos_))) {
    while (is_word(at(pos_))) ++pos_;
    return fail(t, "'" + shown(text_.substr(t.begin, pos_ - t.begin)) + "' is not a number");
  }
  t.end = pos_;
  t.text = text_.substr(t.begin, t.end - t.begin);
  return t;
}

Token Lexer::scan_value(Token t) {
  ++pos_;
  if (at(pos_) == '"') {
    t = scan_string(t);
    if (t.kind == TokenKind::kError) return t;
    t.quoted = true;
    if (t.text.empty()) return fail(t, "a value's name must not be empty; leave it unnamed with %0, %1 …");
  } else if (is_digit(at(pos_))) {
    while (is_digit(at(pos_))) ++pos_;
    if (is_word(at(pos_))) {
      while (is_word(at(pos_))) ++pos_;
      return fail(t, "names that begin with a digit are written with quotes: %\"" +
                         shown(text_.substr(t.begin + 1, pos_ - t.begin - 1)) + "\"");
    }
    t.text = text_.substr(t.begin + 1, pos_ - t.begin - 1);
  } else {
    while (is_word(at(pos_)) || (at(pos_) == '.' && is_word(at(pos_ + 1)))) ++pos_;
    t.text = text_.substr(t.begin + 1, pos_ - t.begin - 1);
    if (t.text.empty())
      return fail(t,
                  "expected a name after '%'; other than letters, digits, '_' and '.' need quotes: %\"a/b\"");
  }
  t.kind = TokenKind::kValue;
  if (at(pos_) == '#' && is_digit(at(pos_ + 1))) {
    size_t begin = ++pos_;
    while (is_digit(at(pos_))) ++pos_;
    auto r = std::from_chars(text_.data() + begin, text_.data() + pos_, t.occurrence);
    if (r.ec != std::errc()) return fail(t, "the number after '#' is too large");
  }
  t.end = pos_;
  return t;
}

Token Lexer::scan_string(Token t) {
  size_t begin = ++pos_;
  bool escapes = false;
  while (pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\n') {
    if (text_[pos_] == '\\') {
      escapes = true;
      ++pos_;
    }
    ++pos_;
  }
  if (pos_ >= text_.size() || text_[pos_] != '"') {
    pos_ = pos_ > text_.size() ? text_.size() : pos_;
    return fail(t, "this string has no closing '\"' on its line");
  }
  std::string_view raw = text_.substr(begin, pos_ - begin);
  ++pos_;
  t.kind = TokenKind::kString;
  t.quoted = true;
  t.end = pos_;
  if (!escapes) {
    t.text = raw;
    return t;
  }
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    char c = raw[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '0':
        out += '\0';
        break;
      case '\\':
      case '"':
        out += c;
        break;
      case 'x': {
        int high = i + 1 < raw.size() ? hex_digit(raw[i + 1]) : -1,
            low = i + 2 < raw.size() ? hex_digit(raw[i + 2]) : -1;
        if (high < 0 || low < 0) return fail(t, "\\x needs two hexadecimal digits");
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default:
        return fail(t,
                    "unknown escape \\ before " + printable(c) + "; known: \\n \\t \\r \\0 \\\\ \\\" \\xHH");
    }
  }
  decoded_.push_back(std::move(out));
  t.text = decoded_.back();
  return t;
}

}  // namespace regie
