// What is computed along rows that UB does not hold, or that are too few for all cores: rows are cut into
// pieces, each core has some pieces of some rows. A first pass finds what a row is to be computed with, a sum
// or a maximum, piece by piece; a second one, where there is a result for each element, reads the pieces
// again.
#pragma once

#include <optional>

#include "rows.h"

namespace aicore {

struct LongRowsCut {
  int64_t chunk = 16, pieces = 1;   // elements of a piece, the last of a row may be shorter; pieces of a row
  int64_t segments = 1, turns = 1;  // cores that share a row, and pieces that one of them has
  int64_t row_parts = 1, row_turns = 1;  // groups of such cores, and rows of one group
  double cycles = 0;
  int64_t cores() const { return row_parts * segments; }
  bool shared() const { return segments > 1; }
};

// The quickest; none where what is known of the pieces of a row does not fit UB either. Row-major only.
std::optional<LongRowsCut> cut_long_rows(const Rows& rows, const Chip& chip);

// What pieces have told, for cores that share rows.
uint64_t long_rows_scratch(const Rows& rows, const LongRowsCut& cut);
struct LongRowsBuffers {
  uint32_t in = 0, scale = 0, bias = 0, out = 0, scratch = 0;
};
void emit_long_rows(const Rows& rows, const LongRowsCut& cut, regie::tile::Builder& builder,
                    const LongRowsBuffers& buffers);

}  // namespace aicore
