// The static verifier: walks every concrete instruction of every core, as the machine does, without data.
// Nothing in a tile program depends on data, so what it accepts cannot fault on chip whatever the operands
// hold: no access outside a buffer, no read of on-chip bytes that nobody wrote, no two accesses in a race
// (vector clocks over pipes and cores), flags used as the machine demands, budgets kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regie/tile/program.h"

namespace regie::tile {

enum class Fault : uint8_t {
  none,
  form,     // check_form
  budget,   // too many concrete instructions
  operand,  // a count or stride that the instruction does not allow
  alignment,
  out_of_buffer,  // on chip
  out_of_gm,
  uninitialised,
  race,
  gm_race,    // between cores, or the pipes of a core
  gm_access,  // writes a buffer that is declared for reading, or the reverse
  set_twice,
  dead_lock,     // a wait without an earlier set
  left_set,      // a flag is set at the end, or at a barrier
  barrier,       // cores disagree on how many
  unused_write,  // only asked for by `report_unused`
};
const char* fault_name(Fault fault);  // "out-of-buffer", ...

struct VerifyOptions {
  uint64_t instruction_budget = 20'000'000;  // concrete instructions of all cores
  bool report_unused = false;  // bytes written on chip that nothing reads before they are overwritten
};

struct ByteRange {
  uint64_t begin, end;
  bool operator==(const ByteRange&) const = default;
};

struct VerifyResult {
  Fault fault = Fault::none;
  std::string message;  // "core 1, instruction 12 'copy …' at v1 = 3: writes bytes 0..64 of …"
  uint32_t core = 0, instruction = 0;
  uint64_t instructions = 0;  // concrete
  uint64_t unused_bytes = 0;  // on chip, written and never read
  // Merged ranges of each global buffer: read before the program itself wrote them, and written.
  std::vector<std::vector<ByteRange>> reads, writes;
  bool ok() const { return fault == Fault::none; }
};

// The first fault in the order of core and program.
VerifyResult verify(const Program& program, const VerifyOptions& options = {});

}  // namespace regie::tile
