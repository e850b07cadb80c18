#include "transpose.h"

#include <algorithm>

#include "channel.h"
#include "shares.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Places {
  int64_t load = 0, result = 0, used = 0;
};
Places place(const Transposition& t) {
  const int64_t e = t.tile_rows * t.tile_columns;
  Room room(0);
  Places x;
  x.load = room.take(2 * e * size_of(t.elem));
  x.result = room.take(2 * e * size_of(t.elem));
  x.used = room.used();
  return x;
}

std::vector<int64_t> loops(const Transposition& t) {
  std::vector<int64_t> sizes = t.outer;
  sizes.push_back(up(t.rows, t.tile_rows));
  sizes.push_back(up(t.columns, t.tile_columns));
  return sizes;
}

double cycles_of(const Transposition& t, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency;
  const int64_t s = size_of(t.elem), rows = std::min(t.tile_rows, t.rows),
                columns = std::min(t.tile_columns, t.columns);
  const double all = 2.0 * static_cast<double>(t.count() * s);
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] =
      h.load_start + h.l2_latency + in_blocks(rows, columns * s) / chip.read_rate(t.cores(), all);
  // The unit turns blocks of halves or bytes over, in two passes; single elements of four bytes take two
  // blocks each.
  turn[REGIE_TILE_VECTOR] =
      h.vector_start + (s < 4 ? 2 * static_cast<double>(t.tile_rows * t.tile_columns * s)
                              : 64 * static_cast<double>(rows * columns)) /
                           lanes;
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency + in_blocks(columns, rows * s) / chip.write_rate(t.cores(), all);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  return overlapped(turn, turns_of(t.shares));
}

// Axes of the result that are one axis of the operand as well.
struct Axis {
  int64_t size, from;
};
std::vector<Axis> merged(std::span<const int64_t> dims, std::span<const int64_t> order) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  std::vector<Axis> axes;
  for (int64_t d : order) {
    const Axis a{dims[static_cast<size_t>(d)], strides[static_cast<size_t>(d)]};
    if (a.size == 1) continue;
    if (!axes.empty() && axes.back().from == a.from * a.size)
      axes.back() = {axes.back().size * a.size, a.from};
    else
      axes.push_back(a);
  }
  return axes;
}

}  // namespace

bool turns_over(std::span<const int64_t> dims, std::span<const int64_t> order) {
  const std::vector<Axis> axes = merged(dims, order);
  return !axes.empty() && axes.back().from != 1;
}

Transposition plan_transposition(regie_elem elem, std::span<const int64_t> dims,
                                 std::span<const int64_t> order, const Chip& chip) {
  Transposition t;
  t.elem = elem;
  const std::vector<Axis> axes = merged(dims, order);
  t.rows = axes.back().size;
  t.row_from = axes.back().from;
  int64_t to = t.rows;
  for (size_t a = axes.size() - 1; a-- > 0; to *= axes[a].size) {
    if (axes[a].from == 1) {
      t.columns = axes[a].size;
      t.column_to = to;
      continue;
    }
    t.outer.insert(t.outer.begin(), axes[a].size);
    t.outer_from.insert(t.outer_from.begin(), axes[a].from);
    t.outer_to.insert(t.outer_to.begin(), to);
  }
  std::optional<Transposition> best;
  for (int64_t rows : {16, 32, 64, 128, 256, 512})
    for (int64_t columns : {16, 32, 64, 128, 256, 512}) {
      if (rows * columns > 16384) break;
      if (is_byte(elem) && (rows < 32 || columns < 32)) continue;  // a block of the unit
      const int64_t least = is_byte(elem) ? 32 : 16;
      if ((rows > least && rows >= 2 * t.rows) || (columns > least && columns >= 2 * t.columns)) break;
      t.tile_rows = rows;
      t.tile_columns = columns;
      if (place(t).used > chip.sizes.ub) break;
      t.shares = spread(loops(t), chip.cores);
      t.cycles = cycles_of(t, chip);
      if (!best || t.cycles < best->cycles) best = t;
    }
  if (!best) throw Overflow("its tiles need", place(t).used, chip);
  return *best;
}

void emit_transposition(const Transposition& t, Builder& b, uint32_t in, uint32_t out) {
  const int64_t s = size_of(t.elem), R = t.tile_rows, C = t.tile_columns, e = R * C;
  const Places x = place(t);
  Flags flags;
  const std::vector<int64_t> sizes = loops(t);
  if (s < 4 &&
      (t.rows % R || t.columns % C)) {  // whole blocks are turned over, of which ragged ones fill a part
    b.fill(ub(x.load), REGIE_TILE_F16, scalar(0), e * s);
    hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  }
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  auto tile = [&](const std::vector<Expr>& at, const Expr& slot) {
    const Expr row = at[sizes.size() - 2] * R, column = at[sizes.size() - 1] * C;
    const Expr rows = clamp(0, R, Expr(t.rows) - row), columns = clamp(0, C, Expr(t.columns) - column);
    Expr from = row * t.row_from + column, to = column * t.column_to + row;
    for (size_t i = 0; i < t.outer.size(); ++i) {
      from = from + at[i] * t.outer_from[i];
      to = to + at[i] * t.outer_to[i];
    }
    const Expr load = slot * (e * s) + x.load, result = slot * (e * s) + x.result;
    loaded.begin_write(slot);
    b.copy(ub(load), gm(in, from * s), clamp(0, C * s, Expr(t.columns * s) - column * s),
           {rows, C * s, t.row_from * s});
    loaded.end_write(slot);
    loaded.begin_read(slot);
    results.begin_write(slot);
    const int64_t side = kBlock / s;  // of a block of the unit
    if (s < 4)
      b.transpose(ub(result), ub(load), R * s, C * s, {C / side, R * 32, 32}, {R / side, 32, C * 32},
                  s == 1 ? REGIE_TILE_B8 : REGIE_TILE_B16);
    else
      b.unary(REGIE_TILE_COPY, REGIE_TILE_F32, ub(result), ub(load), 1, {rows, 4, C * 4},
              {columns, R * 4, 4});
    loaded.end_read(slot);
    results.end_write(slot);
    results.begin_read(slot);
    b.copy(gm(out, to * s), ub(result), clamp(0, R * s, Expr(t.rows * s) - row * s),
           {columns, t.column_to * s, R * s});
    results.end_read(slot);
  };
  emit_shares(b, t.shares, sizes, 1, tile);
  loaded.close();
  results.close();
}

}  // namespace aicore
