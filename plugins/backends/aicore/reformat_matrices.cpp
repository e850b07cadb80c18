#include "reformat_matrices.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "channel.h"
#include "reformat.h"
#include "shares.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Places {
  int64_t load = 0, result = 0, used = 0;
};
Places place(const MatrixReformat& r) {
  const int64_t e = r.rows * r.blocks * kC0;
  Room room(0);
  Places x;
  x.load = room.take(2 * e * size_of(r.from));
  x.result = room.take(2 * e * size_of(r.to));
  x.used = room.used();
  return x;
}

double cycles_of(const MatrixReformat& r, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency;
  const int64_t rows = std::min(r.rows, r.matrices.laid_rows()),
                wide = std::min(r.blocks * kC0, r.matrices.columns);
  const int64_t s = size_of(r.to_matrix ? r.from : r.to);
  const double e = static_cast<double>(rows * r.blocks * kC0), pieces = e * 2,
               plain = in_blocks(rows, wide * s, r.matrices.columns * s);
  const double all = static_cast<double>(r.matrices.count() * r.matrices.laid_rows() * r.matrices.blocks() *
                                         kC0 * (size_of(r.from) + size_of(r.to)));
  const int64_t cores = cores_of(r.shares);
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] =
      h.load_start + h.l2_latency + (r.to_matrix ? plain : pieces) / chip.read_rate(cores, all);
  turn[REGIE_TILE_VECTOR] = h.vector_start + e * static_cast<double>(r.from == r.to ? 2 : 4) / lanes;
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency + (r.to_matrix ? pieces : plain) / chip.write_rate(cores, all);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  return overlapped(turn, turns_of(r.shares));
}

Program program(const MatrixReformat& r, const Chip& chip) {
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  const Matrices& m = r.matrices;
  const int64_t s = size_of(r.from), out_s = size_of(r.to), pitch = r.blocks * kC0, e = r.rows * pitch,
                laid = m.laid_rows(), plane = laid * kC0, image = plane * m.blocks();
  const Places x = place(r);
  Builder b(static_cast<uint32_t>(cores_of(r.shares)), chip.sizes);
  const int64_t plain = m.count() * m.rows * m.columns, columns = m.count() * image;
  const uint32_t in = b.operand(0, static_cast<uint64_t>((r.to_matrix ? plain : columns) * s)),
                 out = b.result(0, static_cast<uint64_t>((r.to_matrix ? columns : plain) * out_s));
  Flags flags;
  // Whole tiles are computed with, of which ragged ones fill a part.
  b.fill(ub(x.load), f32, scalar(0), 2 * e * s / 4);
  hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  auto tile = [&](const std::vector<Expr>& at, const Expr& slot) {
    const Expr row = at[2] * r.rows, block = at[3] * r.blocks;
    const Expr matrix = at[0] * m.inner + at[1];
    // Row `row` of a matrix, row-major: (outer, row, inner, column).
    const Expr there = at[0] * (m.rows * m.inner * m.columns) + row * (m.inner * m.columns) +
                       at[1] * m.columns + block * kC0;
    const Expr here = matrix * image + block * plane + row * kC0;
    const Expr rows = clamp(0, r.rows, Expr(m.rows) - row), laid_rows = clamp(0, r.rows, Expr(laid) - row),
               blocks = clamp(0, r.blocks, Expr(m.blocks()) - block);
    const auto wide = [&](int64_t size) {
      return clamp(0, pitch * size, Expr(m.columns * size) - block * (kC0 * size));
    };
    const Place load = ub(slot * (e * s) + x.load);
    const Expr to = slot * (e * out_s) + x.result;
    loaded.begin_write(slot);
    if (r.to_matrix)
      b.copy(load, gm(in, there * s), wide(s), {rows, pitch * s, m.inner * m.columns * s});
    else
      b.copy(load, gm(in, here * s), kC0 * s, {laid_rows, pitch * s, kC0 * s}, {blocks, kC0 * s, plane * s});
    loaded.end_write(slot);
    loaded.begin_read(slot);
    results.begin_write(slot);
    if (r.from == r.to)
      b.unary(REGIE_TILE_COPY, s == 2 ? f16 : f32, ub(to), load, e);
    else
      b.cast(s == 2 ? f16 : f32, s == 2 ? f32 : f16, REGIE_TILE_RINT, ub(to), load, e);
    if (r.to_matrix) {  // what fills up rows and columns
      const auto in_tile = [&](const Expr& index, int64_t tile, const std::function<void()>& body) {
        b.loop(clamp(0, 1, index - Expr(tile - 1)), [&](const Expr&) {
          b.loop(clamp(0, 1, Expr(tile + 1) - index), [&](const Expr&) { body(); });
        });
      };
      if (m.columns % kC0)
        in_tile(at[3], (m.blocks() - 1) / r.blocks, [&] {
          const int64_t first = (m.blocks() - 1) % r.blocks * kC0 + m.columns % kC0;
          b.fill(ub(to + first * out_s), f16, 0, kC0 - m.columns % kC0, {r.rows, pitch * out_s});
        });
      if (m.rows % kC0)  // tiles have whole fractals of rows
        in_tile(at[2], m.rows / r.rows, [&] {
          b.fill(ub(to + m.rows % r.rows * (pitch * out_s)), f16, 0, pitch,
                 {std::min(laid - m.rows, r.rows - m.rows % r.rows), pitch * out_s});
        });
    }
    loaded.end_read(slot);
    results.end_write(slot);
    results.begin_read(slot);
    if (r.to_matrix)
      b.copy(gm(out, here * out_s), ub(to), kC0 * out_s, {laid_rows, kC0 * out_s, pitch * out_s},
             {blocks, plane * out_s, kC0 * out_s});
    else
      b.copy(gm(out, there * out_s), ub(to), wide(out_s), {rows, m.inner * m.columns * out_s, pitch * out_s});
    results.end_read(slot);
  };
  emit_shares(b, r.shares, r.loops(), 1, tile);
  loaded.close();
  results.close();
  return b.finish();
}

}  // namespace

MatrixReformat plan_matrix_reformat(const Chip& chip, std::span<const int64_t> dims, regie_elem from_elem,
                                    regie_format from, regie_elem to_elem, regie_format to) {
  if (!is_float(from_elem) || !is_float(to_elem)) refuse("elements other than f32 and f16");
  if (is_matrix(from) == is_matrix(to) || is_blocked(from) || is_blocked(to) || !is_known_format(from) ||
      !is_known_format(to))
    refuse("between these formats only by way of row-major");
  const regie_format f = is_matrix(to) ? to : from;
  if (dims.size() < 2 || regie::sdk::rows_axis_of(f, static_cast<int32_t>(dims.size())) < 0)
    refuse("a tensor without rows and columns");
  MatrixReformat r;
  r.to_matrix = is_matrix(to);
  r.matrices = Matrices(dims, f);
  r.from = is_half(from) ? regie_elem{REGIE_F16} : from_elem;
  r.to = is_half(to) ? regie_elem{REGIE_F16} : to_elem;
  std::optional<MatrixReformat> best;
  for (int64_t rows : {16, 32, 64, 128})
    for (int64_t blocks : {1, 2, 4, 8, 16, 32, 64}) {
      if (rows * blocks * kC0 > 16384) break;
      if ((rows > 16 && rows >= 2 * r.matrices.laid_rows()) ||
          (blocks > 1 && blocks >= 2 * r.matrices.blocks()))
        break;
      r.rows = rows;
      r.blocks = blocks;
      if (place(r).used > chip.sizes.ub) break;
      r.shares = spread(r.loops(), chip.cores);
      r.cycles = cycles_of(r, chip);
      if (!best || r.cycles < best->cycles) best = r;
    }
  if (!best) throw Overflow("its tiles need", place(r).used, chip);
  return *best;
}

Lowered lower_matrix_reformat(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  const MatrixReformat plan = plan_matrix_reformat(r.chip, {x.dims, static_cast<size_t>(x.rank)}, x.elem,
                                                   r.operand_format(0), y.elem, r.result_format(0));
  return trans_data(r, plan.cycles, [plan, chip = r.chip] { return program(plan, chip); });
}

}  // namespace aicore
