// Convolutions of few channels: a block of 16 channels would be zeros for the most part, and the cube
// multiplies them all. Rows of the input lie behind each other as channels instead. With a stride of s and R
// rows folded (a multiple of s), row j of the map holds input rows s·(j - above) … + R - 1; the kernel's
// rows, R at a time, are kernel rows of the map, R / s of its rows apart, and its stride is 1. A stem of 7 ×
// 7 over 3 channels is 14 steps of k then, not 49.
#include "cube_emitter.h"
#include "cube_variants.h"

namespace aicore {

using namespace regie::tile;

bool fold_rows(CubeProblem& p, const Chip& chip) {
  const int64_t most = chip.sizes.ub >= (220 << 10) ? 384 : 256;  // positions in UB, as plan_cube has them
  if (!p.convolution || p.left_blocked || p.of_bytes() || p.left_parts != 1 || p.model_groups != 1 ||
      p.kernel_h == 1 || p.dilation_h != 1 || p.channels > 8 || p.width % 16 || p.width > most)
    return false;
  const int64_t rows = std::min(16 / p.channels, round_up(p.kernel_h + p.fold_shift(), p.stride_h));
  for (int64_t fold = rows / p.stride_h * p.stride_h; fold >= 2; fold -= p.stride_h) {
    CubeProblem folded = p;
    folded.fold = fold;
    folded.in_group = p.channels * fold;
    if (folded.map_pad() < 0 || p.height < fold || folded.map_kernel() * 2 > p.kernel_h + 1) continue;
    p = folded;
    return true;
  }
  return false;
}

// Row `row` of the map to UB: channels of one position after the other, `width` of it each.
void Emitter::load_folded(const Turn& turn, const Expr& row, const Expr& to) {
  const int64_t map = p_.height * p_.width, es = left_es_, plane = t_.pixels * es, s = p_.stride_h,
                above = p_.fold_above();
  for (int64_t r = 0; r < p_.fold; ++r) {
    const int64_t first = above - r / s,
                  end = above + (p_.height - 1 - r) / s + 1;  // rows that the input has
    auto load = [&] {
      b_.copy(
          ub(to + r * plane),
          gm(left_, batch(turn) * (p_.channels * map * es) + row * (s * p_.width * es) +
                        (r - s * above) * p_.width * es),
          p_.width * es,
          {end < p_.map_height() ? clamp(0, p_.channels, (Expr(end) - row) * p_.channels) : Expr(p_.channels),
           p_.fold * plane, map * es});
    };
    first > 0 ? b_.loop(clamp(0, 1, row - Expr(first - 1)), [&](const Expr&) { load(); }) : load();
  }
}

void Emitter::clear_folded(const Expr& row, const Expr& half) {
  const int64_t plane = t_.pixels * 2, s = p_.stride_h, above = p_.fold_above();
  for (int64_t r = 0; r < p_.fold; ++r) {
    const int64_t first = above - r / s, end = above + (p_.height - 1 - r) / s + 1;
    auto clear = [&](const Expr&) {
      b_.fill(ub(half + r * plane), REGIE_TILE_F16, 0, t_.pixels, {p_.channels, p_.fold * plane});
    };
    if (first > 0) b_.loop(clamp(0, 1, Expr(first) - row), clear);
    if (end < p_.map_height()) b_.loop(clamp(0, 1, row - Expr(end - 1)), clear);
  }
}

}  // namespace aicore
