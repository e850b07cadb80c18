// Loops that cores share (chip.h), written down.
#pragma once

#include <vector>

#include "chip.h"

namespace aicore {

// Loops of `sizes`, of which this core does its shares, around body(indices, slot): the slots are 0 and 1 in
// turn, as the innermost loop of several turns goes. `cores` neighbours do the same, and share what is
// inside.
template <class Body>
void emit_shares(regie::tile::Builder& b, const std::vector<Share>& shares, const std::vector<int64_t>& sizes,
                 int64_t cores, Body&& body) {
  using regie::tile::clamp;
  using regie::tile::Expr;
  const Expr core = b.core();
  std::vector<Expr> at;
  auto nest = [&](auto&& self, size_t d, int64_t inside, const Expr& slot) -> void {
    if (d == shares.size()) return body(at, slot);
    const Share& share = shares[d];
    const Expr first = share.parts == 1 ? Expr(0) : core / inside % share.parts * share.turns;
    auto one = [&](const Expr& i, const Expr& next) {
      at.push_back(first + i);
      self(self, d + 1, inside * share.parts, next);
      at.pop_back();
    };
    if (share.turns == 1 && share.parts == sizes[d]) return one(0, slot);
    b.loop(clamp(0, share.turns, Expr(sizes[d]) - first), [&](const Expr& i) { one(i, i % 2); });
  };
  nest(nest, 0, cores, 0);
}

}  // namespace aicore
