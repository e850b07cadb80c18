// regie.Reformat, the TransData of this engine: a tensor from one format to another, rounded to halves or
// widened on the way.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "chip.h"
#include "formats.h"
#include "lower.h"

namespace aicore {

struct Reformat {
  bool from_blocked = false, to_blocked = false;
  regie_elem from = REGIE_F32, to = REGIE_F32;  // elements as they lie
  // Blocks of 16 channels (32 of bytes) of all images, or of each of `batch` where the last one is padded,
  // and positions of one; where the order stays, one plane of elements.
  int64_t batch = 1, planes = 1, positions = 1, channels = kC0;
  int64_t all_channels =
      0;  // of one image, where channels do not fill the last block: `planes` are its blocks
  int64_t pixels = 16, pieces = 1;                                             // in UB at a time, of a plane
  int64_t plane_parts = 1, plane_turns = 1, piece_parts = 1, piece_turns = 1;  // of cores, of one
  double cycles = 0;
  int64_t cores() const { return plane_parts * piece_parts; }
  bool turns_over() const { return from_blocked != to_blocked; }
};

// Throws UNSUPPORTED where there is no program for it.
Reformat plan_reformat(const Chip& chip, std::span<const int64_t> dims, regie_elem from_elem,
                       regie_format from, regie_elem to_elem, regie_format to);
regie::tile::Program reformat_program(const Reformat& reformat, const Chip& chip);
// The kernel of a conversion between the request's formats, as all orders name it.
Lowered trans_data(const Request& r, double cycles, std::function<regie::tile::Program()> program);

}  // namespace aicore
