// Maps that become larger by whole factors: every position repeated (Resize to the nearest), or woven from
// one plane for each place within the factor (the way out of a transposed convolution whose windows do not
// overlap). Rows are spread in UB, so that runs in memory stay long.
#pragma once

#include <algorithm>
#include <vector>

#include "chip.h"

namespace aicore {

struct Upscale {
  regie_elem elem = REGIE_F32;
  bool woven = false;  // plane, factor_h, factor_w, height, width; else each position is repeated
  int64_t lanes = 1;   // elements of a position that lie together: 16 in blocks of channels
  int64_t planes = 1, height = 1, width = 1, factor_h = 1, factor_w = 1;
  // The plan: a tile of input rows and positions, and what of the loops (planes, rows of a factor, tiles of
  // rows, tiles of positions) cores share.
  int64_t tile_rows = 1, tile_width = 1;
  std::vector<Share> shares = {};
  double cycles = 0;
  int64_t in_count() const { return planes * height * width * lanes * (woven ? factor_h * factor_w : 1); }
  int64_t out_count() const { return planes * height * width * lanes * factor_h * factor_w; }
  int64_t cores() const { return cores_of(shares); }
};

// Gives tiles and shares. Throws Overflow where not a position of a row fits.
void plan_upscale(Upscale& u, const Chip& chip);
// On the first `cores()` cores of the builder's, between its buffers. Begins and ends with all flags down.
void emit_upscale(const Upscale& u, regie::tile::Builder& b, uint32_t in, uint32_t out);

}  // namespace aicore
