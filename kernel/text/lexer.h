// Tokens of the .rg text form and of the patterns of rules, which are the same language with holes. A token
// knows its place, so that every message of a parser names line and column. One token is looked at ahead;
// nothing is copied unless a string has escapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/status.h"

namespace regie {

enum class TokenKind : uint8_t {
  kEnd,         // of the text
  kError,       // `text` says what is wrong; reported by Lexer::unexpected
  kIdentifier,  // Op, regie.Op, com.vendor.Op, _: letters, digits, '_'; dots between them
  kValue,       // %name  %"a/b:0"  %12 (unnamed: `quoted` false, all digits)  %name#2 (`occurrence` 2)
  kVariable,    // $name: rules only
  kString,      // "..." with \n \t \r \0 \\ \" \xHH
  kInteger,     // 12  -3  0x1f
  kFloat,       // 1.0  -2e-05  inf  -inf  nan  0.1d (double precision); `inf` and `nan` without '-' are
                // identifiers
  kPunct        // -> .. ... == != <= >= or one other character
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool quoted = false;
  uint32_t occurrence = 0;
  uint32_t line = 1, column = 1;  // from 1; columns in bytes
  std::string_view text;          // decoded: without %, $, quotes, escapes and #n; numbers as written
  size_t begin = 0, end = 0;      // bytes of the source
  bool is(std::string_view punct_or_word) const {
    return (kind == TokenKind::kPunct || kind == TokenKind::kIdentifier) && text == punct_or_word;
  }
  bool is_unnamed_value() const {
    return kind == TokenKind::kValue && !quoted && !text.empty() && text[0] >= '0' && text[0] <= '9';
  }
};

class Lexer {
 public:
  // `text` must outlive the lexer and the tokens. Lines count from `first_line`, for text inside another
  // file.
  Lexer(std::string_view text, std::string file_name, uint32_t first_line = 1);
  Lexer(const Lexer&) = delete;
  Lexer& operator=(const Lexer&) = delete;

  const Token& peek() const { return current_; }
  const Token& peek_next() const { return ahead_; }
  Token next();  // gives the current token and steps on; stays at the end
  bool at_end() const { return current_.kind == TokenKind::kEnd; }
  // Steps over the current token if it is this punctuation or identifier.
  bool accept(std::string_view punct_or_word);
  // The same, or an error "expected ',' or ')' after ..., not '...'". `what` is the whole phrase after
  // "expected".
  Status expect(std::string_view punct_or_word, std::string_view what = {});
  Result<Token> expect(TokenKind kind, std::string_view what);

  // INVALID_INPUT, placed at `at`: "file:line:column: message".
  Status error(const Token& at, std::string message) const;
  // "expected <what>, not <current token>", or what the lexer itself has against the current token.
  Status unexpected(std::string_view what) const;
  std::string place(const Token& at) const;  // "file:line:column"
  const std::string& file_name() const { return file_name_; }
  // The source between two tokens, both included.
  std::string_view source(const Token& from, const Token& to) const {
    return text_.substr(from.begin, to.end - from.begin);
  }
  std::string_view source() const { return text_; }

  // Puts the lexer back to a token that it gave before.
  void rewind(const Token& to);

 private:
  Token scan();
  Token scan_number(Token t);
  Token scan_value(Token t);
  Token scan_string(Token t);
  void skip_space();
  Token fail(Token t, std::string message);
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  std::string file_name_;
  size_t pos_ = 0, line_begin_ = 0;
  uint32_t line_ = 1;
  std::deque<std::string> decoded_;  // strings with escapes, and messages
  Token current_, ahead_;
};

// Numbers. Errors carry the token's place and say what fits.
Result<int64_t> read_int64(const Lexer& lexer, const Token& t);
Result<uint64_t> read_uint64(const Lexer& lexer, const Token& t);
// An integer or float token, or the words inf and nan. Without the suffix 'd' the number is rounded to single
// precision, as frameworks keep float attributes so; what is not finite there is an error.
Result<double> read_float(const Lexer& lexer, const Token& t);
bool is_number(const Token& t);  // read_float would take it

// ---- The inverse: how things are spelled so that the lexer reads them back. ----
std::string quote(std::string_view text);       // "…" with escapes
std::string spell_name(std::string_view name);  // conv1 or "a/b"; for after '@', keys, operators
std::string spell_value(std::string_view name, uint32_t occurrence = 0);  // %x, %"a/b:0", %x#2
std::string spell_float(double v);                                        // 1.0, 1e-05, 0.1d, -inf, nan
std::string spell_float32(float v);   // shortest that reads back, always with '.', 'e' or a word
std::string spell_float64(double v);  // the same for double precision, without suffix

}  // namespace regie
