// What is computed along rows that lie in UB as a whole: how it is cut, and its program.
#pragma once

#include <vector>

#include "chip.h"
#include "regie/c/view.h"

namespace aicore {

enum class RowsKind { kSoftmax, kLogSoftmax, kNormalise, kSum, kMean, kMax, kMin };

struct Rows {
  RowsKind kind = RowsKind::kSoftmax;
  int64_t rows = 1, width = 1;
  // In FRACTAL_NZ: `plane` rows of each matrix, filled up to whole fractals.
  bool in_matrix = false, out_matrix = false;
  int64_t plane = 1;
  regie_elem elem = REGIE_F32;                 // of the operand, and of what does not say otherwise
  regie_elem out_elem = REGIE_ELEM_UNKNOWN;    // of the result
  regie_elem scale_elem = REGIE_ELEM_UNKNOWN;  // of scale and bias
  float epsilon = 0;
  uint32_t scale = REGIE_NONE, bias = REGIE_NONE;  // operands of kNormalise
  int64_t bytes_of(regie_elem e) const { return size_of(e == REGIE_ELEM_UNKNOWN ? elem : e); }
  bool reduces() const { return kind >= RowsKind::kSum; }
  bool any_matrix() const { return in_matrix || out_matrix; }
  int64_t laid_plane() const { return round_up(plane, 16); }
};

struct RowsCut {
  int64_t rows = 1, pitch = 1, parts = 1, turns = 1;
  std::vector<Share> shares = {};  // of matrices, and of tiles of each
};

// Throws UNSUPPORTED where a row does not fit.
RowsCut cut_rows(const Rows& rows, const Chip& chip);
double rows_cycles(const Rows& rows, const RowsCut& cut, const Chip& chip);

// A part of a program, on the first `cut.parts` cores; begins and ends with all flags down.
struct RowsBuffers {
  uint32_t in = 0, scale = 0, bias = 0, out = 0;
};
void emit_rows(const Rows& rows, const RowsCut& cut, regie::tile::Builder& builder,
               const RowsBuffers& buffers);

}  // namespace aicore
