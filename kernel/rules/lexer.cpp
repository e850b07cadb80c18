#include "rules/lexer.h"

#include <cctype>
#include <charconv>

namespace regie {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file, int line) : text_(text), file_(file), line_(line) {}

  Result<std::vector<RuleLexeme>> run() {
    while (at_ < text_.size()) REGIE_TRY(one());
    end_statement();
    push(RuleToken::kEnd, "");
    return std::move(out_);
  }

 private:
  char ahead(size_t n) const { return at_ + n < text_.size() ? text_[at_ + n] : '\0'; }
  void push(RuleToken kind, std::string text) {
    RuleLexeme l;
    l.kind = kind;
    l.text = std::move(text);
    l.line = line_;
    out_.push_back(std::move(l));
  }
  void end_statement() {
    if (!out_.empty() && out_.back().kind != RuleToken::kLine) push(RuleToken::kLine, "");
  }
  Status bad(std::string message) const {
    return invalid_input(std::move(message), file_ + ":" + std::to_string(line_));
  }
  std::string take_name() {
    size_t from = at_;
    while (is_name(ahead(0))) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  Status one() {
    char c = ahead(0);
    if (c == '\n') {
      if (depth_ == 0) end_statement();
      ++line_, ++at_;
      return {};
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
      return {};
    }
    if (c == '#') {
      while (at_ < text_.size() && ahead(0) != '\n') ++at_;
      return {};
    }
    if (c == '%' || c == '$') {
      ++at_;
      std::string name = take_name();
      if (name.empty()) return bad(std::string("a name must follow '") + c + "'");
      push(c == '%' ? RuleToken::kValue : RuleToken::kAttr, std::move(name));
      return {};
    }
    if (is_name_start(c)) return word();
    if (is_digit(c) || (c == '.' && is_digit(ahead(1)))) return number();
    if (c == '"') return string();
    if (c == '.' && ahead(1) == '.' && ahead(2) == '.') {
      at_ += 3;
      push(RuleToken::kSpread, "...");
      return {};
    }
    return sign();
  }

  Status word() {
    size_t from = at_;
    while (is_name(ahead(0)) || (ahead(0) == '-' && is_name_start(ahead(1))) ||
           (ahead(0) == '.' && is_name_start(ahead(1))))
      ++at_;
    push(RuleToken::kWord, std::string(text_.substr(from, at_ - from)));
    return {};
  }

  Status number() {
    const char* from = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    int64_t i = 0;
    double f = 0;
    auto [int_end, int_error] = std::from_chars(from, end, i);
    auto [float_end, float_error] = std::from_chars(from, end, f);
    bool whole = int_error == std::errc() && int_end == float_end;
    if (!whole && float_error != std::errc()) return bad("number out of range");
    const char* stop = whole ? int_end : float_end;
    push(whole ? RuleToken::kInteger : RuleToken::kFloat, std::string(from, stop));
    out_.back().integer = i;
    out_.back().number = whole ? static_cast<double>(i) : f;
    at_ += static_cast<size_t>(stop - from);
    return {};
  }

  Status string() {
    std::string s;
    for (++at_; ahead(0) != '"'; ++at_) {
      if (at_ >= text_.size() || ahead(0) == '\n') return bad("a string is not closed");
      if (ahead(0) != '\\') {
        s += ahead(0);
        continue;
      }
      ++at_;
      switch (ahead(0)) {
        case 'n':
          s += '\n';
          break;
        case 't':
          s += '\t';
          break;
        case '"':
        case '\\':
          s += ahead(0);
          break;
        default:
          return bad("unknown escape in a string; \\\" \\\\ \\n \\t are known");
      }
    }
    ++at_;
    push(RuleToken::kString, std::move(s));
    return {};
  }

  Status sign() {
    static constexpr std::string_view kTwo[] = {"==", "!=", "<=", ">=", "+-"};
    for (std::string_view two : kTwo) {
      if (text_.substr(at_, 2) != two) continue;
      push(RuleToken::kSign, std::string(two));
      at_ += 2;
      return {};
    }
    char c = ahead(0);
    if (std::string_view("(){}[],=:?|~+-*/<>").find(c) == std::string_view::npos)
      return bad(std::string("unexpected character '") + c + "'");
    if (c == '(' || c == '{' || c == '[') ++depth_;
    if ((c == ')' || c == '}' || c == ']') && depth_ > 0) --depth_;
    push(RuleToken::kSign, std::string(1, c));
    ++at_;
    return {};
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<RuleLexeme> out_;
};

}  // namespace

Result<std::vector<RuleLexeme>> lex_rule(std::string_view text, const std::string& file, int line) {
  return Lexer(text, file, line).run();
}

const RuleLexeme& RuleCursor::peek(size_t ahead) const {
  return at_ + ahead < lexemes_.size() ? lexemes_[at_ + ahead] : lexemes_.back();
}

const RuleLexeme& RuleCursor::next() {
  const RuleLexeme& l = peek();
  if (at_ + 1 < lexemes_.size()) ++at_;
  return l;
}

bool RuleCursor::take_sign(std::string_view sign) {
  if (!at_sign(sign)) return false;
  next();
  return true;
}

Status RuleCursor::expect_sign(std::string_view sign) {
  if (take_sign(sign)) return {};
  return expected("'" + std::string(sign) + "'");
}

Result<std::string> RuleCursor::expect(RuleToken kind, std::string_view what) {
  if (!at(kind)) return expected(what);
  return next().text;
}

Status RuleCursor::expected(std::string_view what) const {
  const RuleLexeme& l = peek();
  std::string found;
  switch (l.kind) {
    case RuleToken::kEnd:
      found = "the end of the text";
      break;
    case RuleToken::kLine:
      found = "the end of the line";
      break;
    case RuleToken::kValue:
      found = "'%" + l.text + "'";
      break;
    case RuleToken::kAttr:
      found = "'$" + l.text + "'";
      break;
    case RuleToken::kString:
      found = "\"" + l.text + "\"";
      break;
    default:
      found = "'" + l.text + "'";
  }
  return error("expected " + std::string(what) + ", found " + found);
}

Status RuleCursor::error(std::string message) const { return invalid_input(std::move(message), where()); }

std::string RuleCursor::where() const { return file_ + ":" + std::to_string(peek().line); }

}  // namespace regie
