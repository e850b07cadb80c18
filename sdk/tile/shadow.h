// What the verifier knows about the memories of one core: which bytes were written, and who touched each
// block last. Not installed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "regie/tile/stream.h"
#include "regie/tile/verify.h"

namespace regie::tile {

using Clock = std::array<uint32_t, REGIE_TILE_PIPES>;  // by pipe: the last of its accesses known to be done

class Shadow {
 public:
  Shadow(const OnChip& chip, bool report_unused);

  // Starts another core: nothing is written, and nothing done before `now` can be in a race.
  void reset();

  // One run of bytes on chip, by `pipe` at its time `at`, which knows of the other pipes' accesses up to
  // `clock`. Gives the fault, with `detail` saying which bytes and which other instruction.
  Fault read(uint32_t place, int64_t begin, int64_t end, uint32_t pipe, uint32_t at, const Clock& clock,
             std::string& detail);
  Fault write(uint32_t place, int64_t begin, int64_t end, uint32_t pipe, uint32_t at, const Clock& clock,
              uint32_t instruction, std::string& detail);
  uint64_t unused_bytes() const;  // so far and at the end

 private:
  struct Block {
    uint32_t write_at = 0, writer = 0, instruction = 0;
    Clock read_at{};
  };
  struct Memory {
    std::vector<uint8_t> bytes;  // 0 never written, 1 written, 2 read since
    std::vector<Block> blocks;
    int64_t touched = 0;  // no byte from here on is written
  };
  std::array<Memory, REGIE_TILE_UB + 1> memories_;
  bool report_unused_;
  uint64_t unused_ = 0;
};

// The accesses to global buffers: merged ranges, and races between cores and between the pipes of a core.
class GlobalShadow {
 public:
  explicit GlobalShadow(const Program& program);

  // `phase`: how many barriers the core has passed. `known`: the time of the core's other pipe (load, store)
  // up to which accesses are known to be done.
  void access(uint32_t buffer, uint64_t begin, uint64_t end, bool write, uint32_t core, uint32_t phase,
              uint32_t pipe, uint32_t at, uint32_t known, uint32_t instruction);
  struct Race {
    bool found = false;
    uint32_t buffer = 0, core = 0, instruction = 0, other_core = 0, other_instruction = 0;
    bool write = false, other_write = false;
    uint64_t begin = 0, end = 0;
  };
  Race finish(std::vector<std::vector<ByteRange>>& reads, std::vector<std::vector<ByteRange>>& writes);

 private:
  struct Run {
    uint64_t begin, end;
    uint32_t core, phase, pipe, at, known, instruction;
    uint64_t order;
    bool write;
  };
  struct Buffer {
    bool only_read;
    std::vector<ByteRange> merged;  // of a buffer that is only read
    size_t merge_at = 4096;
    std::vector<Run> runs;
  };
  std::vector<Buffer> buffers_;
  uint64_t order_ = 0;
};

void merge_ranges(std::vector<ByteRange>& ranges);

}  // namespace regie::tile
