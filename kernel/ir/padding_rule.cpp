#include "ir/padding_rule.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace regie {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), rest_(text) {}

  Result<PaddingRule> read() {
    rule_.text = std::string(text_);
    REGIE_TRY(head());
    if (accept("zeros")) rule_.zeros = true;
    if (accept("if")) REGIE_TRY(guards());
    if (!rest_.empty()) return wrong("'" + std::string(rest_) + "' is too much");
    return std::move(rule_);
  }

 private:
  static bool letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }
  void skip() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view peek() const {
    size_t n = 0;
    while (n < rest_.size() && letter(rest_[n])) ++n;
    return rest_.substr(0, n);
  }
  bool accept(std::string_view what) {
    skip();
    if (!rest_.starts_with(what)) return false;
    if (letter(what.back()) && rest_.size() > what.size() && letter(rest_[what.size()])) return false;
    rest_.remove_prefix(what.size());
    skip();
    return true;
  }
  Status wrong(const std::string& why) const {
    return invalid_input(
        "padding = \"" + std::string(text_) + "\": " + why +
        "; write e.g. \"[... m *], [... * n] -> [... m n]\", \"[...] -> [...] except axis\"");
  }
  Status name(std::string* to) {
    skip();
    const std::string_view word = peek();
    if (word.empty()) return wrong("a name is missing");
    *to = std::string(word);
    rest_.remove_prefix(word.size());
    skip();
    return {};
  }

  Status head() {
    using Kind = PaddingRule::Kind;
    if (accept("linear")) return rule_.kind = Kind::kLinear, Status();
    if (accept("sliced")) return rule_.kind = Kind::kSliced, Status();
    for (auto [word, kind] : {std::pair{"permuted", Kind::kPermuted}, std::pair{"lookup", Kind::kLookup},
                              std::pair{"bordered", Kind::kBordered}, std::pair{"equation", Kind::kEquation},
                              std::pair{"reduced", Kind::kReduced}})
      if (accept(word)) {
        rule_.kind = kind;
        REGIE_TRY(name(&rule_.name));
        return kind == Kind::kReduced && accept("keep") ? name(&rule_.keep) : Status();
      }
    REGIE_TRY(patterns(&rule_.operands));
    if (!accept("->")) return wrong("'->' is missing");
    REGIE_TRY(patterns(&rule_.results));
    if (accept("except")) return name(&rule_.except);
    if (accept("from")) return name(&rule_.from);
    return {};
  }

  Status patterns(std::vector<PaddingPattern>* to) {
    do {
      PaddingPattern p;
      if (accept("[")) {
        p.kind = PaddingPattern::kAxes;
        REGIE_TRY(axes(&p.axes));
      } else if (accept("size")) {
        p.kind = PaddingPattern::kSize;
      } else if (!accept("_")) {
        return wrong("an operand or result is '_', 'size' or [axes]");
      }
      to->push_back(std::move(p));
    } while (accept(","));
    return {};
  }

  Status axes(std::vector<std::string>* to) {
    size_t open = 0;
    while (!accept("]")) {
      std::string axis;
      if (accept("...")) {
        axis = "...";
      } else if (accept("**")) {
        axis = "**";
      } else if (accept("*")) {
        axis = "*";
      } else {
        REGIE_TRY(name(&axis));
        if (std::find(to->begin(), to->end(), axis) != to->end())
          return wrong("axis '" + axis + "' is there twice");
      }
      open += axis == "..." || axis == "**";
      to->push_back(std::move(axis));
    }
    return open > 1 ? wrong("'...' or '**' may be there once in a list of axes") : Status();
  }

  Status guards() {
    do {
      std::string key;
      REGIE_TRY(name(&key));
      if (!accept("=")) return wrong("'" + key + "' needs '=' and a value");
      std::vector<std::string> values;
      do {
        REGIE_TRY(name(&values.emplace_back()));
      } while (accept("|"));
      rule_.guards.emplace_back(std::move(key), std::move(values));
    } while (accept(","));
    return {};
  }

  std::string_view text_, rest_;
  PaddingRule rule_;
};

}  // namespace

Result<PaddingRule> read_padding_rule(std::string_view text) { return Reader(text).read(); }

}  // namespace regie
