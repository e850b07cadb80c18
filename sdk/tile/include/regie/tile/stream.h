// The concrete instructions of one core, one after another: loops unrolled, expressions evaluated. Verifier
// and machine walk the same stream, so what was verified is what runs. A stream can be left at a barrier and
// taken up again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "regie/tile/program.h"

namespace regie::tile {

struct Concrete {
  uint32_t index = 0;  // of the instruction in the program
  uint16_t op = 0;
  std::array<uint8_t, 4> mode{};
  const int64_t* arg = nullptr;  // as instruction_info(op) names them; valid until the next step
};

// A program prepared for walking; immutable, shared by streams. The program must be of correct form
// (codec.h).
class Plan {
 public:
  explicit Plan(const Program& program);

  struct Part {
    int64_t factor, divisor, modulus;
    uint32_t variable;
  };
  struct Number {
    int64_t constant, low, high;
    uint32_t first, count;  // of parts
  };
  struct Step {
    uint16_t op;
    std::array<uint8_t, 4> mode;
    uint32_t first_value;  // the arguments, the fixed ones filled in
    uint8_t values;
    uint32_t first_varying, varying;  // (slot, number)
    uint32_t match;                   // LOOP: behind its END; END: its LOOP
  };
  std::vector<Step> steps;
  std::vector<int64_t> values;
  std::vector<std::pair<uint32_t, uint32_t>> varying;
  std::vector<Number> numbers;
  std::vector<Part> parts;

  // Equal for two cores only if their streams differ in nothing but addresses: in global buffers
  // (`Same::on_chip`), or anywhere as long as they are as far from a multiple of 32 (`Same::time`). Made
  // without walking the stream.
  enum class Same : uint8_t { on_chip, time };
  std::vector<int64_t> signature(uint32_t core, Same what) const;
  bool has_barrier() const { return has_barrier_; }

  int64_t evaluate(uint32_t number, const int64_t* variables) const {
    const Number& n = numbers[number];
    int64_t sum = n.constant;
    for (uint32_t k = n.first; k < n.first + n.count; ++k) {
      const Part& p = parts[k];
      int64_t v = variables[p.variable];
      if (p.divisor != 1) v /= p.divisor;
      if (p.modulus) v %= p.modulus;
      sum += p.factor * v;
    }
    return sum < n.low ? n.low : sum > n.high ? n.high : sum;
  }

 private:
  bool has_barrier_ = false;
};

class Stream {
 public:
  Stream(const Plan& plan, uint32_t core, uint64_t budget = UINT64_MAX);

  enum class Result : uint8_t { instruction, end, budget, bad_trips };
  // The next instruction (never LOOP or END; BARRIER is one). `budget` counts turns of loops too.
  Result next(Concrete& out);

  const std::array<int64_t, REGIE_TILE_MAX_VARIABLES>& variables() const { return variables_; }
  std::vector<uint32_t> open_loops() const;  // their variables, outermost first
  uint32_t position() const { return at_; }  // of the instruction given last
  uint64_t steps() const { return used_; }

 private:
  const Plan* plan_;
  uint64_t budget_, used_ = 0;
  uint32_t next_ = 0, at_ = 0;
  std::array<int64_t, REGIE_TILE_MAX_VARIABLES> variables_{};
  struct Open {
    uint32_t variable;
    int64_t trips;
  };
  std::vector<Open> open_;
  std::array<int64_t, REGIE_TILE_MAX_ARGS> args_{};
};

// What is wrong with the values of an instruction's arguments (negative counts, alignment, ranges), or an
// empty text; `alignment` tells which kind. Buffers' sizes are not looked at.
std::string operand_fault(const Concrete& instruction, bool& alignment);

// The memory that an instruction reads or writes: up to three nested repeats of runs of `bytes`. Contiguous
// repeats are merged. Valid only if operand_fault found nothing.
struct Region {
  uint8_t place = 0;
  bool write = false;
  int64_t at = 0, bytes = 0;
  int64_t n[3] = {1, 1, 1}, stride[3] = {0, 0, 0};
  int64_t end() const {  // behind the last byte
    return at + bytes + (n[0] - 1) * stride[0] + (n[1] - 1) * stride[1] + (n[2] - 1) * stride[2];
  }
};
// All of an instruction, reads first; im2col's reads of L1 are given row by row. Empty if a count is 0.
void regions_of(const Concrete& instruction, std::vector<Region>& out);

}  // namespace regie::tile
