// The memories of a core, and what each instruction does to them. Instructions come verified
// (regie/tile/verify.h): nothing is checked again here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "regie/tile/stream.h"
#include "tile_machine.h"

namespace regie::simulator {

class Chip {
 public:
  Chip(const tile::OnChip& sizes, const std::vector<TileBuffer>& buffers);

  void execute(const tile::Concrete& instruction);

 private:
  uint8_t* at(uint8_t place, int64_t offset) {
    if (place >= REGIE_TILE_GM)
      return static_cast<uint8_t*>((*buffers_)[place - REGIE_TILE_GM].data) + offset;
    return memories_[place].get() + offset;
  }
  uint8_t* ub(int64_t offset) { return memories_[REGIE_TILE_UB].get() + offset; }

  void copy(const tile::Concrete& i);
  void fill(const tile::Concrete& i);
  void fractal(const tile::Concrete& i);
  void im2col(const tile::Concrete& i);
  void mmad_halves(const tile::Concrete& i);
  void mmad_bytes(const tile::Concrete& i);
  void drain(const tile::Concrete& i);
  void requant(const tile::Concrete& i);
  void transpose(const tile::Concrete& i);
  void binary(const tile::Concrete& i);
  void unary(const tile::Concrete& i);
  void cast(const tile::Concrete& i);
  void compare(const tile::Concrete& i);
  void select(const tile::Concrete& i);
  void reduce(const tile::Concrete& i);

  std::unique_ptr<uint8_t[]> memories_[REGIE_TILE_UB + 1];
  const std::vector<TileBuffer>* buffers_;
  std::vector<float> left_, right_;  // of mmad, as floats
  std::vector<int16_t> words_;       // of mmad of bytes: left, right
};

}  // namespace regie::simulator
