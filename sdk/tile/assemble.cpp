#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "regie/plugin.hpp"
#include "regie/tile/codec.h"
#include "text.h"

namespace regie::tile {

namespace {

// One line at a time: words, numbers, and signs of one character.
class Line {
 public:
  Line(std::string_view text, std::string where) : text_(text), where_(std::move(where)) { skip(); }

  [[noreturn]] void fail(const std::string& why) const {
    throw sdk::Failure(REGIE_INVALID_INPUT, why, where_);
  }
  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool sign(char c) {
    if (peek() != c) return false;
    ++at_;
    skip();
    return true;
  }
  void expect(char c) {
    if (!sign(c)) fail(std::string("expected '") + c + "'" + here());
  }
  bool at_one_of(std::span<const std::string_view> words) const {
    for (std::string_view w : words)
      if (text_.substr(at_).starts_with(w) &&
          (at_ + w.size() == text_.size() ||
           !std::isalnum(static_cast<unsigned char>(text_[at_ + w.size()]))))
        return true;
    return false;
  }
  bool at_word() const { return std::isalpha(static_cast<unsigned char>(peek())) || peek() == '_'; }
  std::string_view word(const char* what) {
    if (!at_word()) fail(std::string("expected ") + what + here());
    size_t begin = at_;
    while (!done() && (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_')) ++at_;
    std::string_view w = text_.substr(begin, at_ - begin);
    skip();
    return w;
  }
  int64_t integer(const char* what) {
    bool negative = sign('-');
    std::string_view t = token();
    int base = t.size() > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') ? 16 : 10;
    int64_t value = 0;
    const char* begin = t.data() + (base == 16 ? 2 : 0);
    auto [end, error] = std::from_chars(begin, t.data() + t.size(), value, base);
    if (error != std::errc() || end != t.data() + t.size() || t.empty() || value < 0)
      fail(std::string("expected ") + what + ", found '" + std::string(t) + "'");
    return negative ? -value : value;
  }
  // A float, or bits as 0x....
  int64_t float_bits() {
    size_t begin = at_;
    bool negative = sign('-');
    std::string t(token(true));
    if (t.size() > 1 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X')) {
      at_ = begin;
      return integer("bits of a float");
    }
    char* end = nullptr;
    float value = std::strtof(t.c_str(), &end);
    if (t.empty() || *end || end == t.c_str()) fail("expected a float, found '" + t + "'");
    return std::bit_cast<uint32_t>(negative ? -value : value);
  }
  std::string here() const {
    return done() ? " at the end of the line" : ", found '" + std::string(text_.substr(at_, 12)) + "'";
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') at_ = text_.size();
  }
  std::string_view token(bool fraction = false) {
    size_t begin = at_;
    while (!done()) {
      char c = peek();
      bool exponent_sign = fraction && (c == '+' || c == '-') && at_ > begin &&
                           (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!std::isalnum(static_cast<unsigned char>(c)) && !(fraction && c == '.') && !exponent_sign) break;
      ++at_;
    }
    std::string_view t = text_.substr(begin, at_ - begin);
    skip();
    return t;
  }
  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

class Assembler {
 public:
  Assembler(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Program run() {
    size_t number = 0, at = 0;
    while (at < text_.size()) {
      size_t end = std::min(text_.find('\n', at), text_.size());
      ++number;
      Line line(text_.substr(at, end - at), file_ + ":" + std::to_string(number));
      at = end + 1;
      if (line.done()) continue;
      statement(line);
      if (!line.done()) line.fail("more follows than the instruction has" + line.here());
    }
    if (!begun_) throw sdk::Failure(REGIE_INVALID_INPUT, "the first line must be 'tile 1'", file_);
    if (std::string wrong = check_form(program_); !wrong.empty())
      throw sdk::Failure(REGIE_INVALID_INPUT, wrong, file_);
    return std::move(program_);
  }

 private:
  void statement(Line& line) {
    std::string_view name = line.word("an instruction");
    if (!begun_) {
      if (name != "tile" || line.integer("a version") != 1) line.fail("the first line must be 'tile 1'");
      begun_ = true;
    } else if (name == "cores") {
      program_.cores = small(line, "a number of cores");
    } else if (name == "chip") {
      chip(line);
    } else if (name == "gm") {
      buffer(line);
    } else if (const InstructionInfo* info = instruction_info(name)) {
      instruction(line, *info);
    } else {
      line.fail("unknown instruction '" + std::string(name) + "'");
    }
  }

  static uint32_t small(Line& line, const char* what) {
    int64_t value = line.integer(what);
    if (value < 0 || value > UINT32_MAX) line.fail(std::string(what) + " is out of range");
    return static_cast<uint32_t>(value);
  }

  void chip(Line& line) {
    while (!line.done()) {
      std::string name(line.word("a memory"));
      uint32_t bytes = small(line, "a size");
      if (name == "l1")
        program_.chip.l1 = bytes;
      else if (name == "l0a")
        program_.chip.l0a = bytes;
      else if (name == "l0b")
        program_.chip.l0b = bytes;
      else if (name == "l0c")
        program_.chip.l0c = bytes;
      else if (name == "ub")
        program_.chip.ub = bytes;
      else
        line.fail("unknown memory '" + name + "'");
    }
  }

  void buffer(Line& line) {
    if (line.integer("the number of a buffer") != static_cast<int64_t>(program_.gm.size()))
      line.fail("buffers are numbered from 0 in order");
    GlobalBuffer g;
    g.access = 0;
    std::string_view kind = line.word("operand, result or scratch");
    if (kind == "operand")
      g.kind = REGIE_TILE_OPERAND;
    else if (kind == "result")
      g.kind = REGIE_TILE_RESULT;
    else if (kind == "scratch")
      g.kind = REGIE_TILE_SCRATCH;
    else
      line.fail("unknown kind of buffer '" + std::string(kind) + "'");
    g.index = static_cast<uint64_t>(line.integer("an index"));
    g.bytes = static_cast<uint64_t>(line.integer("a size"));
    while (!line.done()) {
      std::string_view access = line.word("read or write");
      if (access != "read" && access != "write") line.fail("unknown access '" + std::string(access) + "'");
      g.access |= access == "read" ? REGIE_TILE_READ : REGIE_TILE_WRITE;
    }
    program_.gm.push_back(g);
  }

  void instruction(Line& line, const InstructionInfo& info) {
    Instruction i;
    i.op = info.op;
    if (info.op == REGIE_TILE_OP_LOOP) {
      std::string name(line.word("a variable"));
      line.expect('=');
      i.args.push_back(sum(line));
      i.mode[0] = static_cast<uint8_t>(declare(line, name));
    } else if (info.op == REGIE_TILE_OP_END) {
      if (variables_.empty()) line.fail("no loop is open");
      variables_.pop_back();
    } else {
      for (size_t k = 0; k < 4 && info.modes[k].kind != ModeKind::none; ++k)
        i.mode[k] = mode(line, info.modes[k]);
      arguments(line, info, i);
    }
    program_.code.push_back(std::move(i));
  }

  uint8_t mode(Line& line, const ModeInfo& info) {
    if (info.kind == ModeKind::width && !line.at_one_of(mode_words(info.kind))) return 0;
    std::string w(line.word(info.name));
    if (info.kind == ModeKind::place) {
      for (uint32_t p = 0; p <= REGIE_TILE_UB; ++p)
        if (w == place_name(p)) return static_cast<uint8_t>(p);
      for (uint32_t g = 0; g < program_.gm.size() && g < REGIE_TILE_MAX_GM; ++g)
        if (w == place_name(REGIE_TILE_GM + g)) return static_cast<uint8_t>(REGIE_TILE_GM + g);
      line.fail("unknown place '" + w + "'");
    }
    auto words = mode_words(info.kind);
    for (size_t v = 0; v < words.size(); ++v)
      if (w == words[v]) return static_cast<uint8_t>(v);
    line.fail("unknown " + std::string(info.name) + " '" + w + "'");
  }

  void arguments(Line& line, const InstructionInfo& info, Instruction& i) {
    std::vector<bool> given(info.args.size());
    for (const ArgInfo& a : info.args) i.args.emplace_back(a.fallback);
    int scalar = scalar_arg(i.op, i.mode);
    while (!line.done()) {
      std::string name(line.word("an argument"));
      size_t k = 0;
      while (k < info.args.size() && name != info.args[k].name) ++k;
      if (k == info.args.size()) line.fail(std::string(info.name) + " has no argument '" + name + "'");
      if (given[k]) line.fail("argument '" + name + "' is given twice");
      given[k] = true;
      line.expect('=');
      if (static_cast<int>(k) == scalar && scalar_is_float(i.op, i.mode))
        i.args[k] = line.float_bits();
      else
        i.args[k] = sum(line);
    }
    for (size_t k = 0; k < info.args.size(); ++k)
      if (info.args[k].required && !given[k])
        line.fail("argument '" + std::string(info.args[k].name) + "' is missing");
  }

  // vN is variable N; any other name gets the lowest free number.
  uint32_t declare(Line& line, const std::string& name) {
    auto used = [&](uint32_t v) {
      return std::any_of(variables_.begin(), variables_.end(), [&](auto& x) { return x.second == v; });
    };
    uint32_t v = 0;
    if (name.size() > 1 && name.size() < 4 && name[0] == 'v' &&
        std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      v = static_cast<uint32_t>(std::atoi(name.c_str() + 1));
    else
      for (v = 1; used(v);) ++v;
    bool known = name == "core" ||
                 std::any_of(variables_.begin(), variables_.end(), [&](auto& x) { return x.first == name; });
    if (known || v < 1 || v >= REGIE_TILE_MAX_VARIABLES || used(v))
      line.fail("'" + name + "' is taken, or cannot name a loop");
    variables_.emplace_back(name, v);
    return v;
  }

  Expr sum(Line& line) {
    Expr e = product(line);
    for (;;) {
      if (line.sign('+'))
        e = guarded(line, [&] { return e + product(line); });
      else if (line.sign('-'))
        e = guarded(line, [&] { return e - product(line); });
      else
        return e;
    }
  }

  Expr product(Line& line) {
    Expr e = primary(line);
    for (;;) {
      char c = line.peek();
      if (c != '*' && c != '/' && c != '%') return e;
      line.sign(c);
      Expr f = primary(line);
      e = guarded(line, [&]() -> Expr {
        if (c == '*' && e.fixed()) std::swap(e, f);
        if (!f.fixed()) line.fail("a product of two variables, or a division by one");
        if (c != '*' && f.constant < 1) line.fail("a division by less than 1");
        if (largest(e) * std::abs(static_cast<double>(f.constant)) > 0x1p62)
          line.fail("a number of the expression is too large");
        return c == '*' ? e * f.constant : c == '/' ? e / f.constant : e % f.constant;
      });
    }
  }

  Expr primary(Line& line) {
    if (++depth_ > 64) line.fail("an expression is nested too deep");
    Expr e = primary_inside(line);
    --depth_;
    return e;
  }

  Expr primary_inside(Line& line) {
    if (line.sign('-')) return guarded(line, [&] { return primary(line) * -1; });
    if (line.sign('(')) {
      Expr e = sum(line);
      line.expect(')');
      return e;
    }
    if (!line.at_word()) return checked(line, line.integer("a number or a variable"));
    std::string name(line.word("a variable"));
    if (name == "min" || name == "max" || name == "clamp") return bounded(line, name);
    if (name == "core") return variable(0);
    for (auto& [n, v] : variables_)
      if (n == name) return variable(v);
    line.fail("'" + name + "' is not a loop around here");
  }

  Expr bounded(Line& line, const std::string& name) {
    line.expect('(');
    std::vector<Expr> parts{sum(line)};
    while (line.sign(',')) parts.push_back(sum(line));
    line.expect(')');
    size_t want = name == "clamp" ? 3 : 2;
    if (parts.size() != want) line.fail(name + " takes " + std::to_string(want) + " values");
    if (want == 2 && !parts[0].fixed()) std::swap(parts[0], parts[1]);
    if (!parts[0].fixed() || (want == 3 && !parts[1].fixed())) line.fail("a bound is a constant");
    return guarded(line, [&] {
      if (name == "min") return min(parts[1], parts[0].constant);
      if (name == "max") return max(parts[1], parts[0].constant);
      return clamp(parts[0].constant, parts[1].constant, parts[2]);
    });
  }

  static double largest(const Expr& e) {
    double most = std::abs(static_cast<double>(e.constant));
    if (e.low != kNoLow) most = std::max(most, std::abs(static_cast<double>(e.low)));
    if (e.high != kNoHigh) most = std::max(most, std::abs(static_cast<double>(e.high)));
    for (const Term& t : e.terms)
      most = std::max({most, std::abs(static_cast<double>(t.factor)), static_cast<double>(t.divisor)});
    return most;
  }

  // Numbers small enough that no step of an expression leaves 64 bits.
  static Expr checked(Line& line, Expr e) {
    auto small = [](int64_t v, int64_t limit) { return v > -limit && v < limit; };
    bool ok = small(e.constant, REGIE_TILE_NUMBER_LIMIT) &&
              (e.low == kNoLow || small(e.low, REGIE_TILE_NUMBER_LIMIT)) &&
              (e.high == kNoHigh || small(e.high, REGIE_TILE_NUMBER_LIMIT)) &&
              e.terms.size() <= REGIE_TILE_MAX_TERMS;
    for (const Term& t : e.terms)
      ok = ok && small(t.factor, REGIE_TILE_FACTOR_LIMIT) && t.divisor < REGIE_TILE_NUMBER_LIMIT;
    if (!ok) line.fail("a number of the expression is too large, or it has too many terms");
    return e;
  }

  template <class F>
  Expr guarded(Line& line, F&& make) {
    try {
      return checked(line, make());
    } catch (const sdk::Failure& f) {
      if (!f.where.empty()) throw;
      line.fail(f.message);
    }
  }

  std::string_view text_;
  std::string file_;
  Program program_;
  std::vector<std::pair<std::string, uint32_t>> variables_;
  bool begun_ = false;
  int depth_ = 0;
};

}  // namespace

Program assemble(std::string_view text, std::string_view file) { return Assembler(text, file).run(); }

}  // namespace regie::tile
