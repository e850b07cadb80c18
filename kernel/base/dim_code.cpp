// Bytecode of dimension expressions and its evaluation, which needs no table.
#include "base/dim_impl.h"

namespace regie {

namespace {

// Operands of an evaluation; on the stack for all but absurdly nested programs, so that a run allocates
// nothing.
class Operands {
 public:
  void push(int64_t v) {
    if (size_ < kInline)
      inline_[size_] = v;
    else
      more_.push_back(v);
    ++size_;
  }
  int64_t pop() {
    --size_;
    if (size_ < kInline) return inline_[size_];
    const int64_t v = more_.back();
    more_.pop_back();
    return v;
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kInline = 48;
  int64_t inline_[kInline];
  std::vector<int64_t> more_;
  size_t size_ = 0;
};

Status overflow() {
  return invalid_input(
      "a dimension computed from the sizes of the inputs does not fit in 64 bits; use smaller inputs");
}

Status divide_by_zero() {
  return invalid_input(
      "a dimension computed from the sizes of the inputs divides by zero; check the inputs' shapes");
}

}  // namespace

Result<int64_t> evaluate(const DimCode& code, std::span<const int64_t> symbols) {
  Operands stack;
  if (code.words.size() % 2 != 0) return corrupt("the bytecode of a dimension has half an instruction");
  for (size_t at = 0; at < code.words.size(); at += 2) {
    const int64_t instruction = code.words[at], argument = code.words[at + 1];
    if (instruction == DimCode::kPush) {
      stack.push(argument);
      continue;
    }
    if (instruction == DimCode::kLoad) {
      if (argument < 0 || static_cast<size_t>(argument) >= symbols.size())
        return corrupt("the bytecode of a dimension reads symbol " + std::to_string(argument) + " of " +
                       std::to_string(symbols.size()));
      stack.push(symbols[static_cast<size_t>(argument)]);
      continue;
    }
    if (instruction < REGIE_DIM_ADD || instruction > REGIE_DIM_MAX)
      return corrupt("the bytecode of a dimension has the unknown instruction " +
                     std::to_string(instruction));
    if (stack.size() < 2) return corrupt("the bytecode of a dimension lacks an operand");
    const int64_t b = stack.pop(), a = stack.pop();
    int64_t r = 0;
    bool fits = true;
    if (instruction >= REGIE_DIM_FLOORDIV && instruction <= REGIE_DIM_MOD) {
      if (b == 0) return divide_by_zero();
      if (a == INT64_MIN && b == -1 && instruction != REGIE_DIM_MOD) return overflow();
    }
    switch (instruction) {
      case REGIE_DIM_ADD:
        fits = !__builtin_add_overflow(a, b, &r);
        break;
      case REGIE_DIM_SUB:
        fits = !__builtin_sub_overflow(a, b, &r);
        break;
      case REGIE_DIM_MUL:
        fits = !__builtin_mul_overflow(a, b, &r);
        break;
      case REGIE_DIM_FLOORDIV:
        r = floor_div(a, b);
        break;
      case REGIE_DIM_CEILDIV:
        r = floor_div(a, b) + (floor_mod(a, b) != 0 ? 1 : 0);
        break;
      case REGIE_DIM_MOD:
        r = floor_mod(a, b);
        break;
      case REGIE_DIM_MIN:
        r = a < b ? a : b;
        break;
      default:
        r = a > b ? a : b;
        break;
    }
    if (!fits) return overflow();
    stack.push(r);
  }
  if (stack.size() != 1)
    return corrupt("the bytecode of a dimension leaves " + std::to_string(stack.size()) +
                   " values instead of one");
  return stack.pop();
}

namespace {

// Recursion is bounded by Impl::kMaxDepth.
class Emitter {
 public:
  Emitter(const DimTable::Impl& table, std::vector<int64_t>& words) : t_(table), words_(words) {}

  void dim(regie_dim d) {
    const std::vector<DimTable::Impl::Term> terms = t_.dim_terms(d);
    if (terms.empty()) push(0);
    for (size_t i = 0; i < terms.size(); ++i) {
      const bool negative = i > 0 && terms[i].coef < 0 && terms[i].coef != INT64_MIN;
      term(terms[i].mono, negative ? -terms[i].coef : terms[i].coef);
      if (i > 0) operation(negative ? REGIE_DIM_SUB : REGIE_DIM_ADD);
    }
  }

 private:
  void push(int64_t v) { emit(DimCode::kPush, v); }
  void operation(int64_t op) { emit(op, 0); }
  void emit(int64_t instruction, int64_t argument) {
    words_.push_back(instruction);
    words_.push_back(argument);
  }
  void term(DimTable::Impl::Mono mono, int64_t coef) {
    bool first = true;
    if (coef != 1 || mono == 0) {
      push(coef);
      first = false;
    }
    for (const DimTable::Impl::Factor& f : t_.monos[mono].factors)
      for (uint32_t i = 0; i < f.exponent; ++i) {
        atom(f.atom);
        if (!first) operation(REGIE_DIM_MUL);
        first = false;
      }
  }
  void atom(DimTable::Impl::Atom id) {
    const DimTable::Impl::AtomRep& a = t_.atoms[id];
    if (a.op == 0) {
      emit(DimCode::kLoad, a.symbol);
      return;
    }
    for (size_t i = 0; i < a.operands.size(); ++i) {
      dim(a.operands[i]);
      if (i > 0) operation(a.op);
    }
  }
  const DimTable::Impl& t_;
  std::vector<int64_t>& words_;
};

}  // namespace

DimCode DimTable::code(regie_dim dim) const {
  DimCode code;
  if (impl_->valid(dim)) Emitter(*impl_, code.words).dim(dim);
  return code;
}

Result<int64_t> DimTable::evaluate(regie_dim dim, std::span<const std::optional<int64_t>> values) const {
  if (dim >= 0) return dim;
  if (!impl_->valid(dim)) return invalid_input("a dimension is not known yet");
  std::vector<int64_t> numbers(symbol_count(), 0);
  for (size_t i = 0; i < numbers.size() && i < values.size(); ++i) numbers[i] = values[i].value_or(0);
  std::string missing;
  visit_symbols(dim, [&](size_t symbol) {
    if ((symbol >= values.size() || !values[symbol]) && missing.empty()) missing = symbol_at(symbol).name;
  });
  if (!missing.empty())
    return invalid_input("the dimension " + print(dim) + " needs the size of '" + missing +
                         "'; give it a value");
  return regie::evaluate(code(dim), numbers);
}

}  // namespace regie
