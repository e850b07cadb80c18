// Text of dimension expressions. The grammar:
//   sum     = [-] product { (+ | -) product }
//   product = factor { * factor }
//   factor  = integer | name | "quoted name" | ( sum ) | function ( sum , sum {, sum} )
// Functions are floordiv, ceildiv, mod (of two), min and max (of two or more). A name that is no identifier,
// or is a word of the grammar, is quoted.
#include <cstdio>

#include "base/dim_impl.h"

namespace regie {

namespace {

constexpr int kMaxNesting = 400;

struct Word {
  std::string_view name;
  uint32_t op;
};
constexpr Word kFunctions[] = {{"floordiv", REGIE_DIM_FLOORDIV},
                               {"ceildiv", REGIE_DIM_CEILDIV},
                               {"mod", REGIE_DIM_MOD},
                               {"min", REGIE_DIM_MIN},
                               {"max", REGIE_DIM_MAX}};

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

bool plain(std::string_view name) {
  if (name.empty() || !letter(name[0])) return false;
  for (char c : name)
    if (!letter(c) && !digit(c)) return false;
  for (const Word& w : kFunctions)
    if (w.name == name) return false;
  return name != "in" && name != "where";
}

std::string quote(std::string_view name) {
  std::string text = "\"";
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      text += escape;
    } else {
      text += c;
    }
  }
  return text + '"';
}

class Printer {
 public:
  explicit Printer(const DimTable::Impl& table) : t_(table) {}

  void dim(regie_dim d) {
    if (d >= 0) {
      out_ += std::to_string(d);
      return;
    }
    bool first = true;
    for (const DimTable::Impl::Term& term : t_.dim_terms(d)) {
      const bool negative = term.coef < 0;
      if (negative)
        out_ += '-';
      else if (!first)
        out_ += '+';
      first = false;
      product(term.mono, negative ? 0 - static_cast<uint64_t>(term.coef) : static_cast<uint64_t>(term.coef));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void product(DimTable::Impl::Mono mono, uint64_t coef) {
    bool first = true;
    if (coef != 1 || mono == 0) {
      out_ += std::to_string(coef);
      first = false;
    }
    for (const DimTable::Impl::Factor& f : t_.monos[mono].factors)
      for (uint32_t i = 0; i < f.exponent; ++i) {
        if (!first) out_ += '*';
        first = false;
        atom(f.atom);
      }
  }
  void atom(DimTable::Impl::Atom id) {
    const DimTable::Impl::AtomRep& a = t_.atoms[id];
    if (a.op == 0) {
      const std::string& name = t_.symbols[a.symbol].name;
      out_ += plain(name) ? name : quote(name);
    } else if (a.op == REGIE_DIM_MUL) {
      out_ += "((";
      dim(a.operands[0]);
      out_ += ")*(";
      dim(a.operands[1]);
      out_ += "))";
    } else {
      for (const Word& w : kFunctions)
        if (w.op == a.op) out_ += w.name;
      for (size_t i = 0; i < a.operands.size(); ++i) {
        out_ += i == 0 ? "(" : ", ";
        dim(a.operands[i]);
      }
      out_ += ')';
    }
  }
  const DimTable::Impl& t_;
  std::string out_;
};

class Parser {
 public:
  Parser(DimTable& table, std::string_view text, std::string_view where)
      : t_(table), text_(text), where_(where) {}

  Result<regie_dim> all() {
    skip();
    if (text_.substr(at_) == "?") return regie_dim{REGIE_DIM_UNKNOWN};
    REGIE_ASSIGN(const regie_dim d, sum());
    if (at_ != text_.size()) return failure("expected an operator or the end");
    return d;
  }

 private:
  Status failure(const std::string& what) const {
    constexpr size_t kShown = 80;
    std::string shown(text_.substr(0, kShown));
    if (text_.size() > kShown) shown += "...";
    return invalid_input("dimension '" + shown + "', character " + std::to_string(at_ + 1) + ": " + what,
                         std::string(where_));
  }
  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  // A known symbol keeps its range, whatever that is.
  regie_dim symbol(std::string_view name) {
    const std::optional<regie_dim> known = t_.find_symbol(name);
    return known ? *known : t_.symbol(name);
  }
  Result<regie_dim> operation(uint32_t op, regie_dim a, regie_dim b) {
    const regie_dim d = t_.op(op, a, b);
    if (d == REGIE_DIM_UNKNOWN) return failure("the expression divides by zero, overflows, or is too large");
    return d;
  }

  Result<regie_dim> sum() {
    if (++depth_ > kMaxNesting) return failure("nested too deeply");
    const bool negative = accept('-');
    REGIE_ASSIGN(regie_dim total, product(negative));
    for (;;) {
      const bool plus = accept('+');
      if (!plus && !accept('-')) break;
      REGIE_ASSIGN(const regie_dim next, product(!plus));
      REGIE_ASSIGN(total, operation(REGIE_DIM_ADD, total, next));
    }
    --depth_;
    return total;
  }

  Result<regie_dim> product(bool negative) {
    skip();
    regie_dim total;
    if (at_ < text_.size() && digit(text_[at_])) {
      REGIE_ASSIGN(total, integer(negative));
    } else {
      REGIE_ASSIGN(total, factor());
      if (negative) {
        REGIE_ASSIGN(total, operation(REGIE_DIM_SUB, 0, total));
      }
    }
    while (accept('*')) {
      REGIE_ASSIGN(const regie_dim next, factor());
      REGIE_ASSIGN(total, operation(REGIE_DIM_MUL, total, next));
    }
    return total;
  }

  Result<regie_dim> integer(bool negative) {
    uint64_t n = 0;
    while (at_ < text_.size() && digit(text_[at_])) {
      const auto d = static_cast<uint64_t>(text_[at_] - '0');
      if (n > (uint64_t{1} << 63) / 10 || n * 10 + d > (uint64_t{1} << 63))
        return failure("the number does not fit in 64 bits");
      n = n * 10 + d;
      ++at_;
    }
    skip();
    if (!negative && n > INT64_MAX) return failure("the number does not fit in 64 bits");
    if (!negative || n == 0) return static_cast<regie_dim>(n);
    if (n <= INT64_MAX) return operation(REGIE_DIM_SUB, 0, static_cast<regie_dim>(n));
    REGIE_ASSIGN(const regie_dim most, operation(REGIE_DIM_SUB, 0, INT64_MAX));
    return operation(REGIE_DIM_SUB, most, 1);
  }

  Result<regie_dim> factor() {
    skip();
    if (at_ >= text_.size()) return failure("expected a number, a name, a function or '('");
    const char c = text_[at_];
    if (digit(c)) return integer(false);
    if (accept('(')) {
      REGIE_ASSIGN(const regie_dim inner, sum());
      if (!accept(')')) return failure("expected ')'");
      return inner;
    }
    if (c == '"') return quoted_name();
    if (!letter(c)) return failure("expected a number, a name, a function or '('");
    const size_t begin = at_;
    while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    skip();
    for (const Word& w : kFunctions)
      if (w.name == name) return function(w);
    return symbol(name);
  }

  Result<regie_dim> function(const Word& word) {
    const std::string name(word.name);
    if (!accept('(')) return failure("expected '(' after " + name);
    REGIE_ASSIGN(regie_dim total, sum());
    if (!accept(',')) return failure("expected ',': " + name + " has two operands");
    do {
      REGIE_ASSIGN(const regie_dim next, sum());
      REGIE_ASSIGN(total, operation(word.op, total, next));
    } while ((word.op == REGIE_DIM_MIN || word.op == REGIE_DIM_MAX) && accept(','));
    if (!accept(')')) return failure("expected ')'");
    return total;
  }

  Result<regie_dim> quoted_name() {
    std::string name;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        name += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      if (text_[at_] != 'x') {
        if (text_[at_] != '"' && text_[at_] != '\\') return failure("unknown escape in a quoted name");
        name += text_[at_];
        continue;
      }
      int byte = 0;
      for (int i = 0; i < 2; ++i) {
        const char h = ++at_ < text_.size() ? text_[at_] : '\0';
        if (digit(h))
          byte = byte * 16 + (h - '0');
        else if (h >= 'a' && h <= 'f')
          byte = byte * 16 + (h - 'a' + 10);
        else
          return failure("expected two hexadecimal digits after \\x");
      }
      name += static_cast<char>(byte);
    }
    if (at_ >= text_.size()) return failure("the quoted name has no end");
    ++at_;
    skip();
    return symbol(name);
  }

  DimTable& t_;
  std::string_view text_, where_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string DimTable::print(regie_dim dim) const {
  if (!impl_->valid(dim)) return "?";
  Printer printer(*impl_);
  printer.dim(dim);
  return printer.take();
}

Result<regie_dim> DimTable::parse(std::string_view text, std::string_view where) {
  return Parser(*this, text, where).all();
}

}  // namespace regie
