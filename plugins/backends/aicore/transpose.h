// Transpositions that move single elements: the last axis does not stay the last. What is left of the axes
// when neighbours that stay together are merged is a matrix turned over, and loops around it. The unit turns
// blocks of halves and of bytes over; elements of f32 are moved one by one within UB, so that runs in memory
// stay long.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "chip.h"

namespace aicore {

// Elements. Of the matrix, `rows` x `columns` of the operand, a row's elements follow each other there, a
// column's in the result.
struct Transposition {
  regie_elem elem = REGIE_F32;
  std::vector<int64_t> outer, outer_from, outer_to;  // loops around, and their strides
  int64_t rows = 1, columns = 1, row_from = 1, column_to = 1;
  // The plan: a tile, and what of the loops (those around, tiles of rows, tiles of columns) cores share.
  int64_t tile_rows = 16, tile_columns = 16;
  std::vector<Share> shares = {};
  double cycles = 0;
  int64_t count() const {
    int64_t n = rows * columns;
    for (int64_t d : outer) n *= d;
    return n;
  }
  int64_t cores() const { return cores_of(shares); }
};

// Is it one? Of a tensor's dimensions and a permutation of them.
bool turns_over(std::span<const int64_t> dims, std::span<const int64_t> order);
// Of one that is. Throws Overflow where not the smallest tile fits.
Transposition plan_transposition(regie_elem elem, std::span<const int64_t> dims,
                                 std::span<const int64_t> order, const Chip& chip);
// On the first `cores()` cores of the builder's, between its buffers. Begins and ends with all flags down.
void emit_transposition(const Transposition& t, regie::tile::Builder& b, uint32_t in, uint32_t out);

}  // namespace aicore
