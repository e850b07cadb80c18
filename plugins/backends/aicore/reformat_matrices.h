// The TransData between row-major tensors and FRACTAL_NZ: copies put rows of columns in order on the way from
// memory, or there, so that the vector unit only rounds or widens.
#pragma once

#include <span>

#include "formats.h"
#include "lower.h"

namespace aicore {

struct MatrixReformat {
  bool to_matrix = false;
  Matrices matrices;
  regie_elem from = REGIE_F32, to = REGIE_F32;  // elements as they lie
  int64_t rows = 16, blocks = 1;                // of a tile: rows, columns of 16
  std::vector<Share> shares = {};               // of outer, inner, tiles of rows, tiles of columns
  double cycles = 0;
  std::vector<int64_t> loops() const {
    return {matrices.outer, matrices.inner, up(matrices.laid_rows(), rows), up(matrices.blocks(), blocks)};
  }
};

// Throws UNSUPPORTED where there is no program for it.
MatrixReformat plan_matrix_reformat(const Chip& chip, std::span<const int64_t> dims, regie_elem from_elem,
                                    regie_format from, regie_elem to_elem, regie_format to);
Lowered lower_matrix_reformat(const Request& r);

}  // namespace aicore
