// check_form: what makes a list of instructions a program, before anything runs. Codec and builder share it.

#include <string>

#include "regie/tile/codec.h"

namespace regie::tile {

namespace {

bool within(int64_t value, int64_t limit) { return value > -limit && value < limit; }

std::string expr_fault(const Expr& e, uint32_t known) {
  if (!within(e.constant, REGIE_TILE_NUMBER_LIMIT)) return "a constant is too large";
  if (e.low != kNoLow && !within(e.low, REGIE_TILE_NUMBER_LIMIT)) return "a bound is too large";
  if (e.high != kNoHigh && !within(e.high, REGIE_TILE_NUMBER_LIMIT)) return "a bound is too large";
  if (e.fixed() && e.clamped()) return "a constant is clamped";
  if (e.low == kNoHigh || e.high == kNoLow || e.low >= e.high) return "the bounds of a clamp leave no range";
  if (e.terms.size() > REGIE_TILE_MAX_TERMS) return "an expression has too many terms";
  for (size_t i = 0; i < e.terms.size(); ++i) {
    const Term& t = e.terms[i];
    if (t.factor == 0 || !within(t.factor, REGIE_TILE_FACTOR_LIMIT)) return "a factor is 0 or too large";
    if (t.divisor < 1 || !within(t.divisor, REGIE_TILE_NUMBER_LIMIT))
      return "a divisor is below 1 or too large";
    if (t.modulus < 0 || t.modulus == 1 || !within(t.modulus, REGIE_TILE_NUMBER_LIMIT))
      return "a modulus is 1, negative or too large";
    if (t.variable >= REGIE_TILE_MAX_VARIABLES || !(known >> t.variable & 1))
      return "variable v" + std::to_string(t.variable) + " is not of a loop around it";
    for (size_t j = 0; j < i; ++j)
      if (e.terms[j].variable == t.variable && e.terms[j].divisor == t.divisor &&
          e.terms[j].modulus == t.modulus)
        return "two terms of an expression differ in their factor only";
  }
  return {};
}

bool one_of(uint8_t value, std::initializer_list<int> list) {
  for (int v : list)
    if (value == v) return true;
  return false;
}

// What an instruction's modes may be together.
std::string mode_fault(const Instruction& i, const InstructionInfo& info, size_t gm_count) {
  const auto& m = i.mode;
  for (size_t k = 0; k < m.size(); ++k) {
    ModeKind kind = info.modes[k].kind;
    if (kind == ModeKind::none && m[k]) return "a mode that it does not have";
    if (kind == ModeKind::place && m[k] > REGIE_TILE_UB &&
        (m[k] < REGIE_TILE_GM || m[k] - REGIE_TILE_GM >= int(gm_count)))
      return "a place that is not declared";
    if (auto words = mode_words(kind); !words.empty() && m[k] >= words.size())
      return std::string("an unknown ") + info.modes[k].name;
  }
  constexpr int f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32, s32 = REGIE_TILE_S32, s8 = REGIE_TILE_S8,
                u8 = REGIE_TILE_U8;
  bool number = one_of(m[1], {f16, f32, s32});
  switch (i.op) {
    case REGIE_TILE_OP_SET:
    case REGIE_TILE_OP_WAIT:
      return m[0] == m[1] ? "a flag from a pipe to itself" : "";
    case REGIE_TILE_OP_COPY: {
      bool to_gm = m[0] >= REGIE_TILE_GM, from_gm = m[1] >= REGIE_TILE_GM;
      bool ok = (from_gm && one_of(m[0], {REGIE_TILE_L1, REGIE_TILE_UB})) ||
                (to_gm && m[1] == REGIE_TILE_UB) || (m[0] == REGIE_TILE_UB && m[1] == REGIE_TILE_L1) ||
                (m[0] == REGIE_TILE_L1 && m[1] == REGIE_TILE_UB);
      return ok ? "" : "no pipe copies between these places";
    }
    case REGIE_TILE_OP_FILL:
      return m[0] >= REGIE_TILE_GM ? "fill works on chip" : "";
    case REGIE_TILE_OP_FRACTAL:
      return one_of(m[0], {REGIE_TILE_L0A, REGIE_TILE_L0B}) ? "" : "fractals go to l0a or l0b";
    case REGIE_TILE_OP_IM2COL:
      if (!one_of(m[0], {REGIE_TILE_L0A, REGIE_TILE_UB})) return "im2col goes to l0a or ub";
      return one_of(m[1], {f16, s8, u8}) ? "" : "im2col is of f16, s8 or u8";
    case REGIE_TILE_OP_MMAD:
      return one_of(m[0], {f16, s8, u8}) ? "" : "mmad is of f16, s8 or u8";
    case REGIE_TILE_OP_DRAIN: {
      bool ok = (m[0] == f32 && one_of(m[1], {f16, f32})) || (m[0] == s32 && m[1] == s32);
      return ok ? "" : "drain gives f16 or f32 from f32, s32 from s32";
    }
    case REGIE_TILE_OP_REQUANT:
      if (!one_of(m[0], {f32, s32})) return "requant takes f32 or s32";
      return one_of(m[1], {f32, s8, u8}) ? "" : "requant gives f32, s8 or u8";
    case REGIE_TILE_OP_BINARY:
      if (!number) return "binary is of f16, f32 or s32";
      return m[0] == REGIE_TILE_DIV && m[1] == s32 ? "there is no div of s32" : "";
    case REGIE_TILE_OP_UNARY: {
      bool any = one_of(m[0], {REGIE_TILE_COPY, REGIE_TILE_ABS, REGIE_TILE_RELU, REGIE_TILE_NEG});
      return one_of(m[1], {f16, f32}) || (any && m[1] == s32) ? ""
                                                              : "a type that the operation does not have";
    }
    case REGIE_TILE_OP_CAST: {
      bool ok = (m[0] == f32 && one_of(m[1], {f16, s32})) ||
                (m[0] == f16 && one_of(m[1], {f32, s32, s8, u8})) ||
                (m[0] == s32 && one_of(m[1], {f16, f32})) || (one_of(m[0], {s8, u8}) && m[1] == f16);
      if (!ok) return "there is no such cast";
      return one_of(m[1], {f16, f32}) && m[2] != REGIE_TILE_RINT ? "floats are rounded by rint" : "";
    }
    case REGIE_TILE_OP_COMPARE:
      return number && m[2] != REGIE_TILE_BY_ROW ? "" : "compare is of f16, f32 or s32, by vector or scalar";
    case REGIE_TILE_OP_SELECT:
      return one_of(m[0], {f16, f32, s32}) && m[1] != REGIE_TILE_BY_ROW
                 ? ""
                 : "select is of f16, f32 or s32, by vector or scalar";
    case REGIE_TILE_OP_REDUCE:
      return number ? "" : "reduce is of f16, f32 or s32";
    default:
      return {};
  }
}

// A constant where an address would be: the second operand by scalar.
std::string scalar_fault(const Instruction& i) {
  auto fits = [](const Expr& e) {
    return e.fixed() && e.constant >= INT32_MIN && e.constant <= int64_t(UINT32_MAX);
  };
  auto none = [](const Expr& e) { return e.fixed() && e.constant == 0; };
  const char* wrong = "a scalar is a constant of 32 bits, without strides";
  switch (i.op) {
    case REGIE_TILE_OP_FILL:
      return fits(i.args[1]) ? "" : wrong;
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE:
      if (i.mode[2] != REGIE_TILE_BY_SCALAR) return {};
      return fits(i.args[2]) && none(i.args[7]) && none(i.args[11]) ? "" : wrong;
    case REGIE_TILE_OP_SELECT:
      if (i.mode[1] != REGIE_TILE_BY_SCALAR) return {};
      return fits(i.args[3]) && none(i.args[9]) && none(i.args[14]) ? "" : wrong;
    default:
      return {};
  }
}

std::string head_fault(const Program& p) {
  if (p.cores < 1 || p.cores > REGIE_TILE_MAX_CORES) return "the number of cores is out of range";
  if (p.gm.size() > REGIE_TILE_MAX_GM) return "too many global buffers";
  for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place)
    if (p.chip.size(place) > (1u << 24)) return "a memory on chip is impossibly large";
  for (size_t i = 0; i < p.gm.size(); ++i) {
    const GlobalBuffer& g = p.gm[i];
    std::string name = "gm" + std::to_string(i);
    if (g.kind > REGIE_TILE_SCRATCH || g.access < 1 || g.access > 3)
      return name + " has an unknown kind or access";
    if (g.kind == REGIE_TILE_OPERAND && g.access != REGIE_TILE_READ) return name + " writes an operand";
    if (g.bytes >= uint64_t(REGIE_TILE_NUMBER_LIMIT) || g.index >= uint64_t(REGIE_TILE_NUMBER_LIMIT))
      return name + " is impossibly large";
    if (g.kind == REGIE_TILE_SCRATCH && g.index % REGIE_TILE_BLOCK_BYTES)
      return name + " begins at an offset that is no multiple of 32";
  }
  return {};
}

}  // namespace

std::string check_form(const Program& p) {
  if (std::string wrong = head_fault(p); !wrong.empty()) return wrong;
  if (p.code.size() > REGIE_TILE_MAX_INSTRUCTIONS) return "too many instructions";
  uint32_t known = 1;
  std::vector<uint32_t> open;
  for (size_t n = 0; n < p.code.size(); ++n) {
    const Instruction& i = p.code[n];
    const InstructionInfo* info = instruction_info(i.op);
    std::string where = "instruction " + std::to_string(n) + ": ";
    if (!info) return where + "unknown operation " + std::to_string(i.op);
    where = "instruction " + std::to_string(n) + " (" + info->name + "): ";
    if (i.args.size() != info->args.size()) return where + "wrong number of arguments";
    if (std::string wrong = mode_fault(i, *info, p.gm.size()); !wrong.empty()) return where + wrong;
    for (size_t k = 0; k < i.args.size(); ++k)
      if (std::string wrong = expr_fault(i.args[k], known); !wrong.empty())
        return where + info->args[k].name + ": " + wrong;
    if (std::string wrong = scalar_fault(i); !wrong.empty()) return where + wrong;
    if (i.op == REGIE_TILE_OP_LOOP) {
      uint32_t v = i.mode[0];
      if (v < 1 || v >= REGIE_TILE_MAX_VARIABLES) return where + "its variable is out of range";
      if (known >> v & 1) return where + "variable v" + std::to_string(v) + " belongs to a loop around it";
      known |= 1u << v;
      open.push_back(v);
    } else if (i.op == REGIE_TILE_OP_END) {
      if (open.empty()) return where + "no loop is open";
      known &= ~(1u << open.back());
      open.pop_back();
    }
  }
  if (!open.empty()) return "the loop of v" + std::to_string(open.back()) + " is not closed";
  return {};
}

}  // namespace regie::tile
