#include "rules/lexer.h"

#include <algorithm>

#include "text/lexer.h"

namespace regie {
namespace {

// Whether `t` follows the token before it without a space.
bool joined(const std::vector<Token>& tokens, size_t i) {
  return i > 0 && tokens[i].begin == tokens[i - 1].end;
}
bool ends_term(const RuleLexeme& l) {
  switch (l.kind) {
    case RuleToken::kEnd:
    case RuleToken::kLine:
    case RuleToken::kSpread:
      return false;
    case RuleToken::kSign:
      return l.text == ")" || l.text == "]";
    default:
      return true;
  }
}

class Converter {
 public:
  Converter(const Lexer& lexer, const std::vector<Token>& tokens) : lexer_(lexer), tokens_(tokens) {}

  Result<std::vector<RuleLexeme>> run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (depth_ == 0 && !out_.empty() && static_cast<int>(t.line) > out_.back().line) end_statement();
      switch (t.kind) {
        case TokenKind::kValue:
          if (t.occurrence > 0) return lexer_.error(t, "names of rules have no '#'");
          push(RuleToken::kValue, t);
          break;
        case TokenKind::kVariable:
          push(RuleToken::kAttr, t);
          break;
        case TokenKind::kString:
          push(RuleToken::kString, t);
          break;
        case TokenKind::kInteger:
        case TokenKind::kFloat:
          REGIE_TRY(number(t));
          break;
        case TokenKind::kIdentifier:
          i = word(i);
          break;
        default:
          REGIE_TRY(sign(&i));
      }
    }
    end_statement();
    push(RuleToken::kEnd, tokens_.empty() ? Token() : tokens_.back());
    out_.back().text.clear();
    return std::move(out_);
  }

 private:
  void push(RuleToken kind, const Token& t) {
    RuleLexeme l;
    l.kind = kind;
    l.text = std::string(t.text);
    l.line = static_cast<int>(t.line);
    out_.push_back(std::move(l));
  }

  void end_statement() {
    if (out_.empty() || out_.back().kind == RuleToken::kLine) return;
    RuleLexeme l;
    l.kind = RuleToken::kLine;
    l.line = out_.back().line;
    out_.push_back(std::move(l));
  }

  // A number's '-' right behind a term is a subtraction: "rank(%x)-1".
  Status number(Token t) {
    if (t.text[0] == '-' && !out_.empty() && ends_term(out_.back())) {
      Token minus = t;
      minus.text = t.text.substr(0, 1);
      push(RuleToken::kSign, minus);
      t.text.remove_prefix(1);
    }
    if (t.kind == TokenKind::kInteger) {
      REGIE_ASSIGN(int64_t i, read_int64(lexer_, t));
      push(RuleToken::kInteger, t);
      out_.back().integer = i;
      out_.back().number = static_cast<double>(i);
      return {};
    }
    REGIE_ASSIGN(double f, read_float(lexer_, t));
    push(RuleToken::kFloat, t);
    out_.back().number = f;
    return {};
  }

  // Takes "single-use" together; gives the index of its last token.
  size_t word(size_t i) {
    push(RuleToken::kWord, tokens_[i]);
    while (i + 2 < tokens_.size() && joined(tokens_, i + 1) && joined(tokens_, i + 2) &&
           tokens_[i + 1].is("-") && tokens_[i + 2].kind == TokenKind::kIdentifier) {
      out_.back().text += "-" + std::string(tokens_[i + 2].text);
      i += 2;
    }
    return i;
  }

  Status sign(size_t* i) {
    static constexpr std::string_view kSigns[] = {"(", ")", "{", "}", "[", "]", ",", "=",  ":",  "?",  "|",
                                                  "~", "+", "-", "*", "/", "<", ">", "==", "!=", "<=", ">="};
    const Token& t = tokens_[*i];
    if (t.is("...")) {
      push(RuleToken::kSpread, t);
      return {};
    }
    if (std::find(std::begin(kSigns), std::end(kSigns), t.text) == std::end(kSigns))
      return lexer_.error(t, "'" + std::string(t.text) + "' has no meaning in a rule");
    push(RuleToken::kSign, t);
    if (t.is("+") && *i + 1 < tokens_.size() && joined(tokens_, *i + 1) && tokens_[*i + 1].is("-")) {
      out_.back().text = "+-";
      ++*i;
    }
    if (t.is("(") || t.is("{") || t.is("[")) ++depth_;
    if ((t.is(")") || t.is("}") || t.is("]")) && depth_ > 0) --depth_;
    return {};
  }

  const Lexer& lexer_;
  const std::vector<Token>& tokens_;
  std::vector<RuleLexeme> out_;
  int depth_ = 0;
};

}  // namespace

Result<std::vector<RuleLexeme>> lex_rule(std::string_view text, const std::string& file, int line) {
  Lexer lexer(text, file, static_cast<uint32_t>(line));
  std::vector<Token> tokens;
  while (!lexer.at_end()) {
    if (lexer.peek().kind == TokenKind::kError) return lexer.unexpected("a rule");
    tokens.push_back(lexer.next());
  }
  return Converter(lexer, tokens).run();
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
