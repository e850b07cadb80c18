// What is computed along rows: soft-max, layer normalisation, reductions over the last axes, global pooling.
// A row lies in UB as a whole, and rows are shared out between the cores; what is better cut is
// long_rows.h's.
#include <algorithm>
#include <cmath>
#include <optional>

#include "channel.h"
#include "long_rows.h"
#include "lower.h"
#include "rows.h"
#include "shares.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using namespace regie::tile;

// UB of a tile of `rows` rows.
struct Places {
  int64_t load = 0, value = 0, square = 0, row = 0, row2 = 0, scale = 0, bias = 0, narrow = 0, wide = 0,
          out = 0, used = 0;
};
Places place(const Rows& p, int64_t rows, int64_t pitch) {
  const int64_t s = size_of(p.elem), out_s = p.bytes_of(p.out_elem), e = rows * pitch;
  Room r(0);
  Places x;
  x.load = r.take(2 * e * s);
  x.value = s == 2 || p.kind == RowsKind::kNormalise || !p.reduces() ? r.take(e * 4) : 0;
  if (p.kind == RowsKind::kNormalise) x.square = r.take(e * 4);
  x.row = r.take(rows * 4);
  x.row2 = r.take(rows * 4);
  if (p.scale != REGIE_NONE) x.scale = r.take(pitch * 4);
  if (p.bias != REGIE_NONE) x.bias = r.take(pitch * 4);
  if (p.bytes_of(p.scale_elem) == 2 && p.kind == RowsKind::kNormalise) x.narrow = r.take(2 * pitch * 2);
  x.wide = out_s == 2 ? r.take((p.reduces() ? rows : e) * 4) : 0;
  x.out = r.take(2 * round_up((p.reduces() ? rows : e) * out_s, 32));
  x.used = r.used();
  return x;
}

}  // namespace

RowsCut cut_rows(const Rows& p, const Chip& chip) {
  RowsCut c;
  c.pitch = round_up(p.width, 16);
  if (const int64_t used = place(p, 1, c.pitch).used; used > chip.sizes.ub)
    throw Overflow("a row of " + std::to_string(p.width) + " elements needs", used, chip);
  const int64_t share = up(p.rows, chip.cores);
  int64_t rows = std::clamp<int64_t>(up(share, 2), 1, std::max<int64_t>(1, 8192 / c.pitch));
  rows = std::min<int64_t>(
      std::max<int64_t>(rows, std::min<int64_t>(share, std::max<int64_t>(1, 2048 / c.pitch))), 1024);
  while (rows > 1 && place(p, rows, c.pitch).used > chip.sizes.ub) rows = rows / 2;
  c.rows = rows;
  if (p.any_matrix()) {  // tiles that no matrix ends in
    while (p.laid_plane() % c.rows) --c.rows;
    c.shares = spread({p.rows / p.plane, p.laid_plane() / c.rows}, chip.cores);
    c.parts = cores_of(c.shares);
    c.turns = static_cast<int64_t>(turns_of(c.shares));
    return c;
  }
  const int64_t tiles = up(p.rows, rows);
  c.turns = up(tiles, chip.cores);
  c.parts = up(tiles, c.turns);
  return c;
}

double rows_cycles(const Rows& p, const RowsCut& c, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency;
  const double e = static_cast<double>(c.rows * c.pitch), s = static_cast<double>(size_of(p.elem));
  const double out_s = static_cast<double>(p.bytes_of(p.out_elem));
  const double all = static_cast<double>(p.rows * p.width) * s +
                     static_cast<double>(p.reduces() ? p.rows : p.rows * p.width) * out_s;
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] = h.load_start + h.l2_latency + e * s / chip.read_rate(c.parts, all);
  double passes = 0;
  switch (p.kind) {
    case RowsKind::kSoftmax:
    case RowsKind::kLogSoftmax:
      passes = 2 + 1 + h.slow_passes + 2 + 1;
      break;
    case RowsKind::kNormalise:
      passes = 2 + 1 + 1 + 2 + 1 + (p.scale != REGIE_NONE) + (p.bias != REGIE_NONE);
      break;
    default:
      passes = 2;
  }
  if (p.elem == REGIE_F16) passes += 1;
  if (p.bytes_of(p.out_elem) == 2) passes += 1;
  turn[REGIE_TILE_VECTOR] = passes * e * 4 / lanes + 10 * h.vector_start;
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency +
      (p.reduces() ? static_cast<double>(c.rows) : e) * out_s / chip.write_rate(c.parts, all);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  return overlapped(turn, static_cast<double>(c.turns));
}

void emit_rows(const Rows& p, const RowsCut& c, Builder& b, const RowsBuffers& g) {
  const int64_t s = size_of(p.elem), out_s = p.bytes_of(p.out_elem), e = c.rows * c.pitch, w = p.width;
  const int64_t scale_s = p.bytes_of(p.scale_elem);
  const Places x = place(p, c.rows, c.pitch);
  const uint32_t in = g.in, scale = g.scale, bias = g.bias, out = g.out;
  Flags flags;
  if (p.scale != REGIE_NONE || p.bias != REGIE_NONE) {
    if (p.scale != REGIE_NONE) b.copy(ub(scale_s == 2 ? x.narrow : x.scale), gm(scale, 0), w * scale_s);
    if (p.bias != REGIE_NONE)
      b.copy(ub(scale_s == 2 ? x.narrow + c.pitch * 2 : x.bias), gm(bias, 0), w * scale_s);
    hand_over(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR);
    if (scale_s == 2 && p.scale != REGIE_NONE)
      b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(x.scale), ub(x.narrow), w);
    if (scale_s == 2 && p.bias != REGIE_NONE)
      b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(x.bias), ub(x.narrow + c.pitch * 2), w);
  }
  if (p.out_matrix && !p.in_matrix && p.plane % 16) {  // rows that are not there are computed all the same
    b.fill(ub(x.load), REGIE_TILE_F32, scalar(0), 2 * e * s / 4);
    hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  }
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr part = c.parts == 1 ? Expr(0) : b.core();
  // Of tensors in FRACTAL_NZ `row` is one of its matrix, and all rows of a tile are computed.
  const int64_t laid = p.laid_plane(), image = laid * c.pitch;
  auto tile = [&](const Expr& matrix, const Expr& index, const Expr& slot) {
    const Expr row = index * c.rows, valid = clamp(0, c.rows, Expr(p.any_matrix() ? p.plane : p.rows) - row);
    const Expr n = p.any_matrix() ? Expr(c.rows) : valid, all = matrix * p.plane + row;
    const int64_t pitch = c.pitch * 4;
    loaded.begin_write(slot);
    if (p.in_matrix)
      b.copy(ub(slot * (e * s) + x.load), gm(in, matrix * (image * s) + row * (16 * s)), 16 * s,
             {c.rows, c.pitch * s, 16 * s}, {c.pitch / 16, 16 * s, laid * 16 * s});
    else
      b.copy(ub(slot * (e * s) + x.load), gm(in, all * (w * s)), w * s, {valid, c.pitch * s, w * s});
    loaded.end_write(slot);
    loaded.begin_read(slot);
    Expr v = slot * (e * s) + x.load;
    if (s == 2) {
      b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(x.value), ub(v), w, {n, pitch, c.pitch * 2});
      v = x.value;
    }
    const Repeat from_to{n, pitch, pitch}, to_row{n, 4, pitch}, by_row{n, pitch, pitch, 4},
        by_column{n, pitch, pitch, 0};
    const int64_t out_bytes = round_up((p.reduces() ? c.rows : e) * out_s, 32);
    results.begin_write(slot);
    const Expr narrow = slot * out_bytes + x.out, result = out_s == 2 ? Expr(x.wide) : narrow;
    constexpr uint8_t f32 = REGIE_TILE_F32;
    const float one_of = 1.0f / static_cast<float>(w);
    switch (p.kind) {
      case RowsKind::kSoftmax:
      case RowsKind::kLogSoftmax: {
        const bool log = p.kind == RowsKind::kLogSoftmax;
        b.reduce(REGIE_TILE_ROW_MAX, f32, ub(x.row), ub(v), w, to_row);
        b.binary_row(REGIE_TILE_SUB, f32, ub(x.value), ub(v), ub(x.row), w, by_row);
        b.unary(REGIE_TILE_EXP, f32, ub(result), ub(x.value), w, from_to);
        b.reduce(REGIE_TILE_SUM, f32, ub(x.row2), ub(result), w, to_row);
        b.unary(log ? REGIE_TILE_LN : REGIE_TILE_REC, f32, ub(x.row2), ub(x.row2), n);
        b.binary_row(log ? REGIE_TILE_SUB : REGIE_TILE_MUL, f32, ub(result), ub(log ? Expr(x.value) : result),
                     ub(x.row2), w, by_row);
        break;
      }
      case RowsKind::kNormalise:
        b.reduce(REGIE_TILE_SUM, f32, ub(x.row), ub(v), w, to_row);
        b.binary_scalar(REGIE_TILE_MUL, f32, ub(x.row), ub(x.row), scalar(one_of), n);
        b.binary_row(REGIE_TILE_SUB, f32, ub(x.value), ub(v), ub(x.row), w, by_row);
        b.binary(REGIE_TILE_MUL, f32, ub(x.square), ub(x.value), ub(x.value), w, {n, pitch, pitch, pitch});
        b.reduce(REGIE_TILE_SUM, f32, ub(x.row2), ub(x.square), w, to_row);
        b.binary_scalar(REGIE_TILE_MUL, f32, ub(x.row2), ub(x.row2), scalar(one_of), n);
        b.binary_scalar(REGIE_TILE_ADD, f32, ub(x.row2), ub(x.row2), scalar(p.epsilon), n);
        b.unary(REGIE_TILE_RSQRT, f32, ub(x.row2), ub(x.row2), n);
        b.binary_row(REGIE_TILE_MUL, f32, ub(result), ub(x.value), ub(x.row2), w, by_row);
        if (p.scale != REGIE_NONE)
          b.binary(REGIE_TILE_MUL, f32, ub(result), ub(result), ub(x.scale), w, by_column);
        if (p.bias != REGIE_NONE)
          b.binary(REGIE_TILE_ADD, f32, ub(result), ub(result), ub(x.bias), w, by_column);
        break;
      case RowsKind::kSum:
      case RowsKind::kMean:
        b.reduce(REGIE_TILE_SUM, f32, ub(result), ub(v), w, to_row);
        if (p.kind == RowsKind::kMean)
          b.binary_scalar(REGIE_TILE_MUL, f32, ub(result), ub(result), scalar(one_of), n);
        break;
      case RowsKind::kMax:
      case RowsKind::kMin:
        b.reduce(p.kind == RowsKind::kMax ? REGIE_TILE_ROW_MAX : REGIE_TILE_ROW_MIN, f32, ub(result), ub(v),
                 w, to_row);
        break;
    }
    if (out_s == 2) {
      if (p.reduces())
        b.cast(f32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(narrow), ub(result), n);
      else
        b.cast(f32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(narrow), ub(result), w, {n, c.pitch * 2, pitch});
    }
    if (p.out_matrix) {  // what fills up columns and rows is zero
      const auto zero = [&](int64_t at, int64_t elements, int64_t count) {
        b.fill(ub(narrow + at * out_s), REGIE_TILE_F16, 0, elements, {count, c.pitch * out_s});
      };
      if (w % 16) zero(w, 16 - w % 16, c.rows);
      const int64_t last = p.plane / c.rows, there = p.plane % c.rows;  // tile that the matrix ends in
      if (there)
        b.loop(clamp(0, 1, index - Expr(last - 1)), [&](const Expr&) {
          b.loop(clamp(0, 1, Expr(last + 1) - index),
                 [&](const Expr&) { zero(there * c.pitch, c.pitch, c.rows - there); });
        });
      const int64_t first = last + (there != 0);  // of the tiles beyond it
      if (first * c.rows < laid)
        b.loop(clamp(0, 1, index - Expr(first - 1)), [&](const Expr&) { zero(0, c.pitch, c.rows); });
    }
    loaded.end_read(slot);
    results.end_write(slot);
    results.begin_read(slot);
    if (p.reduces())
      b.copy(gm(out, row * out_s), ub(narrow), n * out_s);
    else if (p.out_matrix)
      b.copy(gm(out, matrix * (image * out_s) + row * (16 * out_s)), ub(narrow), 16 * out_s,
             {c.rows, 16 * out_s, c.pitch * out_s}, {c.pitch / 16, laid * 16 * out_s, 16 * out_s});
    else
      b.copy(gm(out, all * (w * out_s)), ub(narrow), w * out_s, {valid, w * out_s, c.pitch * out_s});
    results.end_read(slot);
  };
  if (p.any_matrix())
    emit_shares(b, c.shares, {p.rows / p.plane, laid / c.rows}, 1,
                [&](const std::vector<Expr>& at, const Expr& slot) { tile(at[0], at[1], slot); });
  else if (c.turns == 1)
    tile(0, part * c.turns, 0);
  else
    b.loop(c.turns, [&](const Expr& i) { tile(0, part * c.turns + i, i % 2); });
  loaded.close();
  results.close();
}

namespace {

// Operands and results, as both ways to cut rows have them.
template <class Buffers>
void declare(const Rows& p, Builder& b, Buffers& g) {
  const int64_t s = size_of(p.elem), w = p.width;
  const auto laid = [&](bool matrix) {
    return matrix ? p.rows / p.plane * p.laid_plane() * round_up(w, 16) : p.rows * w;
  };
  g.in = b.operand(0, static_cast<uint64_t>(laid(p.in_matrix) * s));
  const auto scale_bytes = static_cast<uint64_t>(w * p.bytes_of(p.scale_elem));
  if (p.scale != REGIE_NONE) g.scale = b.operand(p.scale, scale_bytes);
  if (p.bias != REGIE_NONE) g.bias = b.operand(p.bias, scale_bytes);
  g.out = b.result(
      0, static_cast<uint64_t>((p.reduces() ? p.rows : laid(p.out_matrix)) * p.bytes_of(p.out_elem)));
}

Written write(const Rows& p, const RowsCut& c, const Chip& chip) {
  Builder b(static_cast<uint32_t>(c.parts), chip.sizes);
  RowsBuffers g;
  declare(p, b, g);
  emit_rows(p, c, b, g);
  Written w;
  w.program = b.finish();
  return w;
}

Written write_long(const Rows& p, const LongRowsCut& c, const Chip& chip) {
  Builder b(static_cast<uint32_t>(c.cores()), chip.sizes);
  LongRowsBuffers g;
  declare(p, b, g);
  Written w;
  w.scratch_bytes = long_rows_scratch(p, c);
  if (w.scratch_bytes) g.scratch = b.scratch(0, w.scratch_bytes);
  emit_long_rows(p, c, b, g);
  w.program = b.finish();
  return w;
}

// The last `rank - first` axes of x, as rows.
void split(Rows& p, const regie_tensor& x, int64_t first) {
  for (int64_t i = 0; i < x.rank; ++i) (i < first ? p.rows : p.width) *= x.dims[i];
}

// Axes that are reduced: all from one on, or the reason why not.
int64_t first_axis(const Request& r, const regie_tensor& x) {
  const std::vector<int64_t> axes = reduced_axes(r, x.rank);
  if (axes.empty()) {
    if (r.attrs.integer("noop_with_empty_axes", 0)) refuse("it reduces nothing");
    return 0;
  }
  std::vector<bool> reduced(static_cast<size_t>(x.rank), false);
  for (int64_t a : axes) reduced[static_cast<size_t>(a)] = true;
  int64_t first = x.rank;
  for (int64_t i = x.rank; i-- > 0;) {
    if (reduced[static_cast<size_t>(i)] && first == i + 1) first = i;
    if (reduced[static_cast<size_t>(i)] && first > i && x.dims[i] != 1)
      refuse("it reduces axes that are not the last");
  }
  return first;
}

// Soft-max and layer normalisation of tensors in FRACTAL_NZ, along their columns.
void take_matrices(const Request& r, Rows& p) {
  p.in_matrix = is_matrix(r.operand_format(0));
  p.out_matrix = is_matrix(r.result_format(0));
  if (!p.any_matrix()) return;
  const regie_tensor& x = r.need(0);
  const regie_format f = p.in_matrix ? r.operand_format(0) : r.result_format(0);
  if (p.in_matrix && p.out_matrix && r.result_format(0) != f)
    refuse("operand and result in different formats");
  const Matrices m(regie::sdk::dims_of(x), f);
  if (p.width != m.columns) refuse("other axes than that of the columns");
  if (m.inner != 1) refuse("rows along an axis with others within it");
  p.plane = m.rows;
}

}  // namespace

Lowered lower_rows(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || !is_float(y.elem)) refuse("elements other than f32 and f16");
  Rows p;
  p.elem = x.elem;
  p.out_elem = y.elem;
  const std::string_view op = r.op;
  if (op == "Softmax" || op == "LogSoftmax") {
    p.kind = op == "Softmax" ? RowsKind::kSoftmax : RowsKind::kLogSoftmax;
    const int32_t axis = axis_of(r, x.rank, -1);
    for (int32_t i = axis + 1; i < x.rank; ++i)
      if (x.dims[i] != 1) refuse("its axis is not the last");
    split(p, x, axis);
  } else if (op == "LayerNormalization") {
    p.kind = RowsKind::kNormalise;
    const int32_t axis = axis_of(r, x.rank, -1);
    for (size_t i = 1; i < r.results.size(); ++i)
      if (r.results[i].elem != REGIE_ELEM_UNKNOWN) refuse("mean or deviation are asked for");
    split(p, x, axis);
    p.epsilon = static_cast<float>(r.attrs.number("epsilon", 1e-5));
    for (uint32_t i : {1u, 2u})
      if (const regie_tensor* t = r.operand(i)) {
        if (regie::sdk::count_of(*t) != p.width || !is_float(t->elem) ||
            (p.scale_elem != REGIE_ELEM_UNKNOWN && t->elem != p.scale_elem))
          refuse("its scale or bias broadcasts, or has another type");
        p.scale_elem = t->elem;
        (i == 1 ? p.scale : p.bias) = i;
      }
  } else if (op == "GlobalAveragePool" || op == "GlobalMaxPool") {
    if (x.rank < 3) refuse("it has no spatial axis");
    p.kind = op == "GlobalMaxPool" ? RowsKind::kMax : RowsKind::kMean;
    split(p, x, 2);
  } else {
    p.kind = op == "ReduceSum"    ? RowsKind::kSum
             : op == "ReduceMean" ? RowsKind::kMean
             : op == "ReduceMax"  ? RowsKind::kMax
                                  : RowsKind::kMin;
    split(p, x, first_axis(r, x));
  }
  take_matrices(r, p);
  Lowered out;
  out.name = "vector " + std::string(op);
  const std::optional<LongRowsCut> pieces = cut_long_rows(p, r.chip);
  try {
    const RowsCut c = cut_rows(p, r.chip);
    out.cycles = rows_cycles(p, c, r.chip);
    out.write = [p, c, chip = r.chip] { return write(p, c, chip); };
  } catch (const Overflow&) {
    if (!pieces) throw;
  }
  if (pieces && (!out.write || pieces->cycles < out.cycles)) {
    out.name += " of rows in pieces";
    out.cycles = pieces->cycles;
    out.write = [p, c = *pieces, chip = r.chip] { return write_long(p, c, chip); };
  }
  return out;
}

}  // namespace aicore
