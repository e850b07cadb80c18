// A convolution in other ways than as it is: with bias and residual added by the cube (cube_addends.cpp),
// with rows of an input of few channels folded to channels (cube_fold.cpp). Who lowers it plans both and
// takes the quicker.
#pragma once

#include <string>

#include "cube.h"

namespace aicore {

// What the cube adds: fractals of the bias, a block of columns each, and the unit matrix behind them; of
// these a core's own in L1; and a tile's part of the residual there.
inline int64_t packed_addend_bytes(const CubeProblem& p, const CubePlan& t) {
  return p.cube_bias ? (p.groups * t.n_tiles * t.columns + int64_t{p.cube_residual}) * kFractal : 0;
}
inline int64_t addend_bytes(const CubeProblem& p, const CubePlan& t) {
  return p.cube_bias ? (t.turns_group * t.turns_n * t.columns + int64_t{p.cube_residual}) * kFractal : 0;
}
inline int64_t residual_bytes(const CubeProblem& p, const CubePlan& t) {
  return p.cube_residual ? t.columns * t.padded_rows * kBlock : 0;
}
// Are there rows or columns of tiles that no part of a residual fills?
inline bool residual_is_cut(const CubeProblem& p, const CubePlan& t) {
  return t.padded_rows != t.rows || t.parts_m * t.turns_m * t.out_rows != p.out_height ||
         p.groups * t.n_tiles * t.columns * 16 != p.lanes_out();
}
// Blocks of columns of a residual that L0A takes at a time.
inline int64_t residual_blocks(const CubePlan& t) {
  int64_t n = t.columns;
  while (n > t.step) n /= 2;
  return n;
}
// Lets the cube add the bias, and a residual of halves. False where it cannot: the problem is as it was.
bool let_cube_add(CubeProblem& problem, const regie_tensor* bias);
std::string pack_addends(const CubeProblem& problem, const CubePlan& plan, const regie_tensor& bias);

// Folds rows of the input where its channels leave room for it. False where they do not.
bool fold_rows(CubeProblem& problem, const Chip& chip);

}  // namespace aicore
