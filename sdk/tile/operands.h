// Shared by what looks at concrete instructions. Not installed.
#pragma once

#include "regie/tile/stream.h"

namespace regie::tile {

inline constexpr int64_t kFractal = REGIE_TILE_FRACTAL_BYTES, kBlock = REGIE_TILE_BLOCK_BYTES;

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }  // how many of b

// It does nothing: a count is 0. Its other arguments mean nothing then.
bool is_idle(const Concrete& instruction);

}  // namespace regie::tile
