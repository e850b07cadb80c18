// The rule language's view of the text form's tokens (text/lexer.h): lines end statements outside of
// brackets, words may have hyphens (`single-use`), and a '-' between two terms is a sign of its own.
// Internal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regie {

enum class RuleToken : uint8_t {
  kEnd,    // of the text
  kLine,   // end of a statement; never two in a row, never first
  kValue,  // %name
  kAttr,   // $name
  kWord,   // operator, attribute, predicate or function
  kInteger,
  kFloat,
  kString,
  kSpread,  // ...
  kSign     // ( ) { } [ ] , = : ? | ~ + - * / == != < <= > >= +-
};

struct RuleLexeme {
  RuleToken kind = RuleToken::kEnd;
  std::string text;  // name without % or $; the sign; the string's content
  int64_t integer = 0;
  double number = 0;
  int line = 0;
};

// `line`: of the text's first line in `file`, for messages.
Result<std::vector<RuleLexeme>> lex_rule(std::string_view text, const std::string& file, int line);

// A cursor over lexemes with the usual questions.
class RuleCursor {
 public:
  RuleCursor(std::vector<RuleLexeme> lexemes, std::string file)
      : lexemes_(std::move(lexemes)), file_(std::move(file)) {}
  const RuleLexeme& peek(size_t ahead = 0) const;
  const RuleLexeme& next();
  bool at(RuleToken kind) const { return peek().kind == kind; }
  bool at_sign(std::string_view sign, size_t ahead = 0) const {
    return peek(ahead).kind == RuleToken::kSign && peek(ahead).text == sign;
  }
  bool at_word(std::string_view word) const { return peek().kind == RuleToken::kWord && peek().text == word; }
  bool take_sign(std::string_view sign);
  Status expect_sign(std::string_view sign);
  Result<std::string> expect(RuleToken kind, std::string_view what);
  // INVALID_INPUT at the present token: "expected WHAT, found 'x'".
  Status expected(std::string_view what) const;
  Status error(std::string message) const;  // at the present line
  std::string where() const;
  const std::string& file() const { return file_; }

 private:
  std::vector<RuleLexeme> lexemes_;
  std::string file_;
  size_t at_ = 0;
};

}  // namespace regie
