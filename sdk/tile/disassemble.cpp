#include <bit>
#include <cmath>
#include <cstdio>

#include "regie/tile/codec.h"
#include "text.h"

namespace regie::tile {

int scalar_arg(uint16_t op, const std::array<uint8_t, 4>& mode) {
  switch (op) {
    case REGIE_TILE_OP_FILL:
      return 1;
    case REGIE_TILE_OP_BINARY:
    case REGIE_TILE_OP_COMPARE:
      return mode[2] == REGIE_TILE_BY_SCALAR ? 2 : -1;
    case REGIE_TILE_OP_SELECT:
      return mode[1] == REGIE_TILE_BY_SCALAR ? 3 : -1;
    default:
      return -1;
  }
}

bool scalar_is_float(uint16_t op, const std::array<uint8_t, 4>& mode) {
  uint8_t type = op == REGIE_TILE_OP_SELECT ? mode[0] : mode[1];
  return type == REGIE_TILE_F16 || type == REGIE_TILE_F32;
}

namespace {

std::string variable_name(uint32_t v) { return v ? "v" + std::to_string(v) : "core"; }

std::string term_text(const Term& t, int64_t factor) {
  std::string s = variable_name(t.variable);
  if (t.divisor != 1) s += "/" + std::to_string(t.divisor);
  if (t.modulus) s += "%" + std::to_string(t.modulus);
  if (factor == 1) return s;
  if (t.divisor != 1 || t.modulus) s = "(" + s + ")";
  return std::to_string(factor) + "*" + s;
}

std::string scalar_text(int64_t bits, bool is_float) {
  if (!is_float) return std::to_string(bits);
  char text[40];
  float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (bits < 0 || !std::isfinite(value)) {
    std::snprintf(text, sizeof text, bits < 0 ? "-0x%llx" : "0x%llx",
                  static_cast<unsigned long long>(bits < 0 ? -bits : bits));
  } else {
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  }
  return text;
}

}  // namespace

std::string expr_text(const Expr& e) {
  std::string sum;
  if (e.constant || e.terms.empty()) sum = std::to_string(e.constant);
  for (const Term& t : e.terms) {
    if (sum.empty())
      sum = term_text(t, t.factor);
    else
      sum += (t.factor < 0 ? " - " : " + ") + term_text(t, t.factor < 0 ? -t.factor : t.factor);
  }
  if (e.low != kNoLow && e.high != kNoHigh)
    return "clamp(" + std::to_string(e.low) + ", " + std::to_string(e.high) + ", " + sum + ")";
  if (e.low != kNoLow) return "max(" + std::to_string(e.low) + ", " + sum + ")";
  if (e.high != kNoHigh) return "min(" + std::to_string(e.high) + ", " + sum + ")";
  return sum;
}

std::string instruction_text(const Instruction& i) {
  const InstructionInfo* info = instruction_info(i.op);
  if (!info || i.args.size() != info->args.size()) return "?";
  std::string s = info->name;
  if (i.op == REGIE_TILE_OP_LOOP) return s + " " + variable_name(i.mode[0]) + " = " + expr_text(i.args[0]);
  for (size_t k = 0; k < 4 && info->modes[k].kind != ModeKind::none; ++k) {
    auto words = mode_words(info->modes[k].kind);
    if (info->modes[k].kind == ModeKind::width && i.mode[k] == 0) continue;
    s += " ";
    if (info->modes[k].kind == ModeKind::place)
      s += place_name(i.mode[k]);
    else
      s += i.mode[k] < words.size() ? words[i.mode[k]] : "?";
  }
  int scalar = scalar_arg(i.op, i.mode);
  for (size_t k = 0; k < i.args.size(); ++k) {
    const ArgInfo& a = info->args[k];
    if (!a.required && i.args[k] == Expr(a.fallback)) continue;
    s += std::string(" ") + a.name + "=";
    s += static_cast<int>(k) == scalar && i.args[k].fixed()
             ? scalar_text(i.args[k].constant, scalar_is_float(i.op, i.mode))
             : expr_text(i.args[k]);
  }
  return s;
}

std::string disassemble(const Program& p) {
  constexpr const char* kinds[] = {"operand", "result", "scratch"};
  constexpr const char* accesses[] = {"", "read", "write", "read write"};
  std::string s = "tile 1\ncores " + std::to_string(p.cores) + "\nchip";
  for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place)
    s += " " + place_name(place) + " " + std::to_string(p.chip.size(place));
  s += "\n";
  for (size_t i = 0; i < p.gm.size(); ++i) {
    const GlobalBuffer& g = p.gm[i];
    s += "gm " + std::to_string(i) + " " + kinds[g.kind] + " " + std::to_string(g.index) + " " +
         std::to_string(g.bytes) + " " + accesses[g.access] + "\n";
  }
  size_t depth = 0;
  for (const Instruction& i : p.code) {
    if (i.op == REGIE_TILE_OP_END && depth) --depth;
    s += std::string(2 * depth, ' ') + instruction_text(i) + "\n";
    if (i.op == REGIE_TILE_OP_LOOP) ++depth;
  }
  return s;
}

}  // namespace regie::tile
