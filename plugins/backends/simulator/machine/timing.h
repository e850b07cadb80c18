// Time of one core: what an instruction costs on its pipe, and the pipes and flags as they run. Touches no
// data.
#pragma once

#include <array>
#include <vector>

#include "regie/tile/stream.h"
#include "tile_machine.h"

namespace regie::simulator {

class Cost {
 public:
  Cost(const TileMachine& machine, const std::vector<TileBuffer>& buffers);
  double cycles(const tile::Concrete& instruction, uint32_t pipe) const;
  // Of a copy from or to a global buffer: bytes that move, in blocks.
  static uint64_t moved(const tile::Concrete& copy);
  // Of these cycles, what the next instruction of the pipe need not wait for.
  double latency(const tile::Concrete& instruction) const;

 private:
  double work(const tile::Concrete& instruction) const;
  const TileMachine& m_;
  const std::vector<TileBuffer>& buffers_;
  double vector_rate_;
};

// The timeline of a core between two barriers; all pipes start together at 0.
class Timeline {
 public:
  Timeline(const Cost& cost, bool keep_spans) : cost_(cost), keep_(keep_spans) {}

  void begin_segment();
  void step(const tile::Concrete& instruction);
  double end_segment();  // when its last pipe ends

  TileCore core;
  std::array<std::vector<TileSpan>, REGIE_TILE_PIPES> spans;  // of this segment
  std::array<double, REGIE_TILE_PIPES> first{}, last{};       // of this segment; last 0: none
  std::vector<uint64_t> read, written;                        // bytes by buffer, all segments

 private:
  const Cost& cost_;
  bool keep_;
  // When it takes the next instruction; when all that it was given is done.
  std::array<double, REGIE_TILE_PIPES> pipe_{}, done_{};
  std::array<double, REGIE_TILE_PIPES * REGIE_TILE_PIPES * REGIE_TILE_FLAGS> flag_{};
};

}  // namespace regie::simulator
