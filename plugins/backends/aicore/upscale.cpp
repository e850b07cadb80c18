#include "upscale.h"

#include <optional>

#include "channel.h"
#include "shares.h"

namespace aicore {

namespace {

using namespace regie::tile;

// Rows of all planes follow each other where positions are only repeated.
int64_t outer_planes(const Upscale& u) { return u.woven ? u.planes : 1; }
int64_t all_rows(const Upscale& u) { return u.woven ? u.height : u.planes * u.height; }
// Planes of which a row of the result is made.
int64_t sources(const Upscale& u) { return u.woven ? u.factor_w : 1; }

struct Places {
  int64_t load = 0, result = 0, load_bytes = 0, result_bytes = 0, used = 0;
};
Places place(const Upscale& u) {
  const int64_t one = u.tile_rows * u.tile_width * u.lanes * size_of(u.elem);
  Room room(0);
  Places x;
  x.load_bytes = round_up(sources(u) * one, kBlock);
  x.result_bytes = round_up(u.factor_w * one, kBlock);
  x.load = room.take(2 * x.load_bytes);
  x.result = room.take(2 * x.result_bytes);
  x.used = room.used();
  return x;
}

std::vector<int64_t> loops(const Upscale& u) {
  return {outer_planes(u), u.woven ? u.factor_h : 1, up(all_rows(u), u.tile_rows), up(u.width, u.tile_width)};
}

double cycles_of(const Upscale& u, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency;
  const int64_t s = size_of(u.elem);
  const double all = static_cast<double>((u.in_count() + u.out_count()) * s);
  const int64_t row = u.tile_width * u.lanes * s, rows = std::min(u.tile_rows, all_rows(u));
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] =
      h.load_start + h.l2_latency + in_blocks(sources(u) * rows, row) / chip.read_rate(u.cores(), all);
  turn[REGIE_TILE_VECTOR] = static_cast<double>(u.factor_w) *
                            (h.vector_start + in_blocks(rows * u.tile_width, u.lanes * s) / lanes);
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency +
      in_blocks(rows * (u.woven ? 1 : u.factor_h), row * u.factor_w) / chip.write_rate(u.cores(), all);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  return overlapped(turn, turns_of(u.shares));
}

}  // namespace

void plan_upscale(Upscale& u, const Chip& chip) {
  std::optional<Upscale> best;
  int64_t least = 0;
  for (int64_t parts = 1; parts <= u.width; parts *= 2) {
    u.tile_width = up(u.width, parts);
    for (int64_t rows = 1; rows <= 256; rows *= 2) {
      if (rows > 1 && rows >= 2 * all_rows(u)) break;
      u.tile_rows = rows;
      const int64_t used = place(u).used;
      if (!least || used < least) least = used;
      if (used > chip.sizes.ub) break;
      u.shares = spread(loops(u), chip.cores);
      u.cycles = cycles_of(u, chip);
      if (!best || u.cycles < best->cycles) best = u;
    }
  }
  if (!best) throw Overflow("a position of it needs", least, chip);
  u = *best;
}

void emit_upscale(const Upscale& u, Builder& b, uint32_t in, uint32_t out) {
  const int64_t s = size_of(u.elem), one = u.lanes * s, fh = u.factor_h, fw = u.factor_w, W = u.width;
  const int64_t R = u.tile_rows, T = u.tile_width, map = u.height * W, out_row = W * fw * one;
  const uint8_t type = s == 2 ? REGIE_TILE_F16 : REGIE_TILE_F32;
  const Places x = place(u);
  const std::vector<int64_t> sizes = loops(u);
  Flags flags;
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  auto tile = [&](const std::vector<Expr>& at, const Expr& slot) {
    const Expr row = at[2] * R, column = at[3] * T;
    const Expr rows = clamp(0, R, Expr(all_rows(u)) - row), width = clamp(0, T, Expr(W) - column);
    const Expr bytes = clamp(0, T * one, Expr(W * one) - column * one);
    const Expr load = slot * x.load_bytes + x.load, result = slot * x.result_bytes + x.result;
    loaded.begin_write(slot);
    b.copy(ub(load), gm(in, (at[0] * (fh * fw * map) + at[1] * (fw * map) + row * W + column) * one), bytes,
           {rows, T * one, W * one}, {sources(u), R * T * one, map * one});
    loaded.end_write(slot);
    loaded.begin_read(slot);
    results.begin_write(slot);
    for (int64_t w = 0; w < fw; ++w)
      b.unary(REGIE_TILE_COPY, type, ub(result + w * one), ub(load + (u.woven ? w : 0) * (R * T * one)),
              u.lanes, {width, fw * one, one}, {rows, T * fw * one, T * one});
    loaded.end_read(slot);
    results.end_write(slot);
    results.begin_read(slot);
    const Expr to =
        at[0] * (u.height * fh * out_row) + at[1] * out_row + row * (fh * out_row) + column * (fw * one);
    const Expr run = clamp(0, T * fw * one, Expr(W * fw * one) - column * (fw * one));
    b.copy(gm(out, to), ub(result), run, {rows, fh * out_row, T * fw * one}, {u.woven ? 1 : fh, out_row, 0});
    results.end_read(slot);
  };
  emit_shares(b, u.shares, sizes, 1, tile);
  loaded.close();
  results.close();
}

}  // namespace aicore
