// What is computed along rows that lie in UB as a whole: how it is cut, and its program.
#pragma once

#include "chip.h"
#include "regie/c/view.h"

namespace aicore {

enum class RowsKind { kSoftmax, kLogSoftmax, kNormalise, kSum, kMean, kMax, kMin };

struct Rows {
  RowsKind kind = RowsKind::kSoftmax;
  int64_t rows = 1, width = 1;
  regie_elem elem = REGIE_F32;                 // of the operand, and of what does not say otherwise
  regie_elem out_elem = REGIE_ELEM_UNKNOWN;    // of the result
  regie_elem scale_elem = REGIE_ELEM_UNKNOWN;  // of scale and bias
  float epsilon = 0;
  uint32_t scale = REGIE_NONE, bias = REGIE_NONE;  // operands of kNormalise
  int64_t bytes_of(regie_elem e) const { return size_of(e == REGIE_ELEM_UNKNOWN ? elem : e); }
  bool reduces() const { return kind >= RowsKind::kSum; }
};

struct RowsCut {
  int64_t rows = 1, pitch = 1, parts = 1, turns = 1;
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
