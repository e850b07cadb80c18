// A tile program in memory: what the byte format of regie/c/tile.h holds, with expressions in place. The
// table of instructions (`instruction_info`) is the one description of their arguments: codec, assembler,
// disassembler, walker and tests are written over it, so that an instruction is added in one place and
// understood everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regie/c/tile.h"

namespace regie::tile {

constexpr int64_t kNoLow = INT64_MIN, kNoHigh = INT64_MAX;

struct Term {  // factor * ((variable / divisor) mod modulus)
  int64_t factor = 1, divisor = 1, modulus = 0;
  uint32_t variable = 0;
  bool operator==(const Term&) const = default;
};

// clamp(low, high, constant + sum of terms). Arithmetic keeps that shape and throws sdk::Failure(UNSUPPORTED)
// where it cannot: sums and products of clamped expressions, quotients of anything but one variable.
struct Expr {
  Expr(int64_t value = 0) : constant(value) {}  // NOLINT: numbers are expressions
  int64_t constant;
  int64_t low = kNoLow, high = kNoHigh;
  std::vector<Term> terms;

  bool fixed() const { return terms.empty(); }
  bool clamped() const { return low != kNoLow || high != kNoHigh; }
  bool operator==(const Expr&) const = default;
  // `variables` has a value for each variable that occurs. Wraps nowhere: bounds are checked by the verifier.
  int64_t evaluate(const int64_t* variables) const;
};

Expr variable(uint32_t number);
Expr operator+(Expr a, const Expr& b);
Expr operator-(Expr a, const Expr& b);
Expr operator*(Expr a, int64_t factor);
inline Expr operator*(int64_t factor, Expr a) { return std::move(a) * factor; }
Expr operator/(Expr a, int64_t divisor);  // floor; of factor 1 times one variable, before a modulus
Expr operator%(Expr a, int64_t modulus);
Expr min(Expr a, int64_t high);
Expr max(Expr a, int64_t low);
Expr clamp(int64_t low, int64_t high, Expr a);
// A constant as BY_SCALAR operands and FILL take it: the bits of the float for F16 and F32, else the integer.
Expr scalar(float value);

struct Instruction {
  uint16_t op = 0;
  std::array<uint8_t, 4> mode{};
  std::vector<Expr> args;  // as many as instruction_info(op) names
  bool operator==(const Instruction&) const = default;
};

struct GlobalBuffer {
  uint16_t kind = REGIE_TILE_OPERAND, access = REGIE_TILE_READ;
  uint64_t index = 0, bytes = 0;
  bool operator==(const GlobalBuffer&) const = default;
};

struct OnChip {  // bytes
  uint32_t l1 = 0, l0a = 0, l0b = 0, l0c = 0, ub = 0;
  bool operator==(const OnChip&) const = default;
  uint32_t size(uint32_t place) const;  // REGIE_TILE_L1 ... REGIE_TILE_UB
};

struct Program {
  uint32_t cores = 1;
  OnChip chip;
  std::vector<GlobalBuffer> gm;
  std::vector<Instruction> code;
  bool operator==(const Program&) const = default;
};

// --- the table of instructions
// ---------------------------------------------------------------------------------------

enum class ArgKind : uint8_t { address, count, stride, number, scalar, flag };
struct ArgInfo {
  const char* name;
  ArgKind kind;
  bool required;  // else `fallback` when the text does not name it
  int64_t fallback;
};
enum class ModeKind : uint8_t {
  none,
  place,
  pipe,
  type,
  binary,
  unary,
  compare,
  reduce,
  by,
  round,
  yes_no,
  variable,
  width  // the first word may be left out
};
struct ModeInfo {
  ModeKind kind;
  const char* name;
};
struct InstructionInfo {
  uint16_t op;
  const char* name;
  std::array<ModeInfo, 4> modes;
  std::span<const ArgInfo> args;
};
const InstructionInfo* instruction_info(uint16_t op);  // nullptr: no such instruction
const InstructionInfo* instruction_info(std::string_view name);
std::span<const InstructionInfo> instruction_table();
std::span<const std::string_view> mode_words(ModeKind kind);  // by value; empty for place and variable

// The pipe that runs it; REGIE_TILE_PIPES for loops, ends and barriers. SET runs on mode[0], WAIT on mode[1].
uint32_t pipe_of(const Instruction& instruction);
uint32_t pipe_of(uint16_t op, const std::array<uint8_t, 4>& mode);
uint32_t bytes_of(uint32_t type);        // of an element
uint32_t width_bytes(uint32_t width);    // of REGIE_TILE_B16 ...
std::string place_name(uint32_t place);  // "l1", "gm3"

}  // namespace regie::tile
