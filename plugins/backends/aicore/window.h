// The rows of a feature map under a tile of rows of a convolution's or a pooling's result: windows at the
// upper and the lower border differ from the others, and loops of no or one turn choose the case, as a sum of
// clamps is no expression.
#pragma once

#include "chip.h"

namespace aicore {

struct Window {
  regie::tile::Expr first = 0;  // row of the map that lies first in L1
  regie::tile::Expr top =
      0;  // row, of the window's, under the first kernel row of the tile: negative in the padding
};

// `step` rows of the map from tile to tile, of which there are `tiles`; `last` is where the window of the
// last one begins.
template <class Body>
void at_window(regie::tile::Builder& b, const regie::tile::Expr& tile, int64_t step, int64_t pad_top,
               int64_t last, int64_t tiles, Body&& body) {
  using regie::tile::clamp;
  using regie::tile::Expr;
  const Expr y = tile * step - Expr(pad_top);
  if (last == 0 || tile.fixed()) {
    Window w;
    w.first = last == 0 ? Expr(0) : clamp(0, last, y);
    w.top = y - w.first;
    return body(w);
  }
  const int64_t above = up(pad_top, step);            // tiles that begin in the padding
  const int64_t below = (last + pad_top) / step + 1;  // the first that would end beyond the map
  if (above > 0) b.loop(clamp(0, 1, Expr(above) - tile), [&](const Expr&) { body(Window{0, y}); });
  auto middle = [&] {
    if (below >= tiles) return body(Window{y, 0});
    b.loop(clamp(0, 1, Expr(below) - tile), [&](const Expr&) { body(Window{y, 0}); });
  };
  if (below > above) {
    if (above == 0)
      middle();
    else
      b.loop(clamp(0, 1, tile - Expr(above - 1)), [&](const Expr&) { middle(); });
  }
  if (below < tiles)
    b.loop(clamp(0, 1, tile - Expr(below - 1)), [&](const Expr&) { body(Window{last, y - Expr(last)}); });
}

}  // namespace aicore
