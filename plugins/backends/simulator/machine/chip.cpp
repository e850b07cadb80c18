#include "chip.h"

namespace regie::simulator {

Chip::Chip(const tile::OnChip& sizes, const std::vector<TileBuffer>& buffers) : buffers_(&buffers) {
  // Zeroed: a verified program does not read what nobody wrote, and if it did, the result would still be the
  // same each time.
  for (uint32_t place = 0; place <= REGIE_TILE_UB; ++place)
    memories_[place] = std::make_unique<uint8_t[]>(sizes.size(place) + REGIE_TILE_BLOCK_BYTES);
}

void Chip::execute(const tile::Concrete& i) {
  switch (i.op) {
    case REGIE_TILE_OP_COPY:
      return copy(i);
    case REGIE_TILE_OP_FILL:
      return fill(i);
    case REGIE_TILE_OP_FRACTAL:
      return fractal(i);
    case REGIE_TILE_OP_IM2COL:
      return im2col(i);
    case REGIE_TILE_OP_MMAD:
      return i.mode[0] == REGIE_TILE_F16 ? mmad_halves(i) : mmad_bytes(i);
    case REGIE_TILE_OP_DRAIN:
      return drain(i);
    case REGIE_TILE_OP_BINARY:
      return binary(i);
    case REGIE_TILE_OP_UNARY:
      return unary(i);
    case REGIE_TILE_OP_CAST:
      return cast(i);
    case REGIE_TILE_OP_COMPARE:
      return compare(i);
    case REGIE_TILE_OP_SELECT:
      return select(i);
    case REGIE_TILE_OP_REDUCE:
      return reduce(i);
    case REGIE_TILE_OP_TRANSPOSE:
      return transpose(i);
    case REGIE_TILE_OP_REQUANT:
      return requant(i);
    default:
      return;  // flags and barriers order; the stream is in order
  }
}

}  // namespace regie::simulator
