// Builds a tile program: the interface for engines. One method an instruction; docs/tile.md says what each
// does. Loops are opened and closed, expressions are made of `core()` and the loops' variables:
//
//   Builder b(cores, chip);
//   uint32_t x = b.operand(0, bytes), y = b.result(0, bytes);
//   b.loop(trips, [&](const Expr& i) {
//     b.wait(REGIE_TILE_VECTOR, REGIE_TILE_LOAD, i % 2);
//     b.copy(ub((i % 2) * 8192), gm(x, i * 8192 + b.core() * chunk), min(chunk - i * 8192, 8192));
//     ...
//   });
//   Program p = b.finish();
//
// `finish` checks the form (loops closed, arguments in range) and throws sdk::Failure(INVALID_INPUT); what a
// program does is the verifier's matter (verify.h). Not shared between threads.
#pragma once

#include <optional>
#include <utility>

#include "regie/tile/program.h"

namespace regie::tile {

struct Place {
  uint8_t place;
  Expr offset;  // bytes
};
inline Place l1(Expr offset) { return {REGIE_TILE_L1, std::move(offset)}; }
inline Place l0a(Expr offset) { return {REGIE_TILE_L0A, std::move(offset)}; }
inline Place l0b(Expr offset) { return {REGIE_TILE_L0B, std::move(offset)}; }
inline Place l0c(Expr offset) { return {REGIE_TILE_L0C, std::move(offset)}; }
inline Place ub(Expr offset) { return {REGIE_TILE_UB, std::move(offset)}; }
inline Place gm(uint32_t buffer, Expr offset) {
  return {static_cast<uint8_t>(REGIE_TILE_GM + buffer), std::move(offset)};
}

struct Repeat {  // `count` times, each operand further by its stride in bytes
  Expr count = 1, to = 0, a = 0, b = 0, c = 0;
};

struct Im2col {
  Expr height, width;      // of the feature map in L1, elements
  Expr top = 0, left = 0;  // input row and column under the first kernel position of output (0, 0): -padding
  Expr stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, kernel_h = 1, kernel_w = 1;
  Expr out_width;              // output positions in a row
  Expr first_row = 0, rows;    // output positions, row-major
  Expr first_k = 0, k_blocks;  // blocks of 32 bytes along k = (c1, kh, kw)
  Expr plane;                  // bytes from one c1 to the next in L1
  Expr row_stride;             // bytes between fractals of 16 rows in the destination
  Expr pad = 0;                // bits of an element outside the map
};

struct Requant {  // tables in ub: one f32 a column to multiply by, and one s32 that is added before
  Place factor;
  std::optional<Place> addend;
  bool relu = false;
  Expr offset = 0;  // of bytes: added to the rounded number
  Expr row;         // bytes from row to row of the result
};

class Builder {
 public:
  Builder(uint32_t cores, OnChip chip);

  // Declared in order; each gives the number for `gm`. A buffer is declared once.
  uint32_t operand(uint64_t index, uint64_t bytes);
  uint32_t result(uint64_t index, uint64_t bytes, bool also_read = false);
  uint32_t scratch(uint64_t offset, uint64_t bytes);

  Expr core() const { return variable(0); }
  Expr open_loop(Expr trips);  // gives the variable
  void close_loop();
  template <class Body>
  void loop(Expr trips, Body&& body) {
    Expr i = open_loop(std::move(trips));
    body(i);
    close_loop();
  }

  void set(uint8_t from_pipe, uint8_t to_pipe, Expr id);
  void wait(uint8_t from_pipe, uint8_t to_pipe, Expr id);
  void barrier();

  // In a Repeat of a copy: to, a (the source).
  void copy(Place to, Place from, Expr bytes, Repeat r1 = {}, Repeat r2 = {}, Repeat r3 = {});
  void fill(Place to, uint8_t type, Expr value, Expr count, Repeat r1 = {});
  void fractal(Place to, Place from, Repeat r1, Repeat r2 = {}, bool transpose = false);
  void im2col(Place to, Place from, uint8_t type, const Im2col& window);
  // Strides in bytes: of C between blocks of 16 columns, of A between blocks of 16 rows, of B between blocks
  // of k.
  void mmad(uint8_t type, Place c, Place a, Place b, Expr m, Expr n, Expr k, Expr accumulate, Expr c_stride,
            Expr a_stride, Expr b_stride);
  void drain(uint8_t from_type, uint8_t to_type, Place to, Place from, Expr rows, Expr column_blocks,
             Expr to_stride, Expr from_stride);
  // Blocks of 16 columns of s32 or f32 as f32 times a factor a column; of s8 and u8 rounded, moved and held
  // within. In a Repeat: to, a (the sums), b (factors and addends).
  void requant(uint8_t from_type, uint8_t to_type, Place to, Place from, const Requant& numbers, Expr rows,
               Repeat r1 = {}, Repeat r2 = {});

  // UB to UB, `count` elements a repeat.
  void binary(uint8_t op, uint8_t type, Place to, Place a, Place b, Expr count, Repeat r1 = {},
              Repeat r2 = {});
  void binary_row(uint8_t op, uint8_t type, Place to, Place a, Place b, Expr count, Repeat r1 = {},
                  Repeat r2 = {});
  void binary_scalar(uint8_t op, uint8_t type, Place to, Place a, Expr value, Expr count, Repeat r1 = {},
                     Repeat r2 = {});
  void unary(uint8_t op, uint8_t type, Place to, Place a, Expr count, Repeat r1 = {}, Repeat r2 = {});
  void cast(uint8_t from_type, uint8_t to_type, uint8_t round, Place to, Place a, Expr count, Repeat r1 = {},
            Repeat r2 = {});
  void compare(uint8_t op, uint8_t type, Place mask, Place a, Place b, Expr count, Repeat r1 = {},
               Repeat r2 = {});
  void compare_scalar(uint8_t op, uint8_t type, Place mask, Place a, Expr value, Expr count, Repeat r1 = {},
                      Repeat r2 = {});
  // to = mask ? a : b. In a Repeat: to, a, b, c (the mask).
  void select(uint8_t type, Place to, Place mask, Place a, Place b, Expr count, Repeat r1 = {},
              Repeat r2 = {});
  void select_scalar(uint8_t type, Place to, Place mask, Place a, Expr b, Expr count, Repeat r1 = {},
                     Repeat r2 = {});
  void reduce(uint8_t op, uint8_t type, Place to, Place a, Expr count, Repeat r1 = {}, Repeat r2 = {});
  // Blocks of 16 x 16 elements of two bytes (32 x 32 of one, 8 x 8 of four); strides between the rows of a
  // block, then repeats.
  void transpose(Place to, Place from, Expr to_row, Expr from_row, Repeat r1 = {}, Repeat r2 = {},
                 uint8_t width = REGIE_TILE_B16);

  Program finish();

 private:
  void emit(uint16_t op, std::array<uint8_t, 4> mode, std::vector<Expr> args);
  Program program_;
  std::vector<uint32_t> open_;
};

}  // namespace regie::tile
