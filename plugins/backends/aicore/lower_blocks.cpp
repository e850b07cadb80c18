// Concat, Split, Slice and Gather along one axis: rectangles of contiguous rows from one tensor to another,
// through UB without a stop at the vector unit.
#include <algorithm>

#include "channel.h"
#include "lower.h"
#include "matrices.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using namespace regie::tile;

// Elements.
struct Rectangle {
  uint32_t operand = 0, result = 0;
  int64_t from = 0, from_pitch = 0, to = 0, to_pitch = 0, rows = 1, width = 1;
};

struct Cut {
  int64_t rows = 1, columns = 1;  // of a tile
  int64_t parts_r = 1, parts_c = 1, turns_r = 1, turns_c = 1;
};

Cut cut(const Rectangle& x, const Chip& chip) {
  constexpr int64_t kMost = 8192;  // elements of a tile
  const int64_t cores = chip.cores;
  Cut c;
  c.columns = std::min(x.width, kMost);
  if (x.rows < cores)
    c.columns = std::min(c.columns, std::max<int64_t>(512, round_up(up(x.width * x.rows, cores), 64)));
  const int64_t column_tiles = up(x.width, c.columns);
  c.parts_c = std::min(column_tiles, cores);
  c.turns_c = up(column_tiles, c.parts_c);
  c.parts_c = up(column_tiles, c.turns_c);
  c.rows = std::clamp<int64_t>(up(x.rows, std::max<int64_t>(1, cores / c.parts_c)), 1,
                               std::max<int64_t>(1, kMost / round_up(c.columns, 16)));
  const int64_t row_tiles = up(x.rows, c.rows);
  c.parts_r = std::clamp<int64_t>(cores / c.parts_c, 1, row_tiles);
  c.turns_r = up(row_tiles, c.parts_r);
  c.parts_r = up(row_tiles, c.turns_r);
  return c;
}

double cycles_of(const Rectangle& x, const Cut& c, const Chip& chip, int64_t es) {
  const auto& h = chip.hardware;
  const double bytes = static_cast<double>(std::min(c.rows, x.rows) * c.columns * es);
  const double all = 2 * static_cast<double>(x.rows * x.width * es);
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] =
      h.load_start + h.l2_latency + 2 * h.flag_cycles + bytes / chip.read_rate(c.parts_r * c.parts_c, all);
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency + 2 * h.flag_cycles + bytes / chip.write_rate(c.parts_r * c.parts_c, all);
  return overlapped(turn, static_cast<double>(c.turns_r * c.turns_c));
}

Program write(const std::vector<Rectangle>& all, const Chip& chip, int64_t es,
              const std::vector<uint64_t>& operand_bytes, const std::vector<uint64_t>& result_bytes) {
  std::vector<Cut> cuts;
  int64_t cores = 1;
  for (const Rectangle& x : all) {
    cuts.push_back(cut(x, chip));
    cores = std::max(cores, cuts.back().parts_r * cuts.back().parts_c);
  }
  Builder b(static_cast<uint32_t>(cores), chip.sizes);
  std::vector<uint32_t> in(operand_bytes.size()), out(result_bytes.size());
  for (uint32_t i = 0; i < in.size(); ++i)
    if (std::any_of(all.begin(), all.end(), [&](const Rectangle& x) { return x.operand == i; }))
      in[i] = b.operand(i, operand_bytes[i]);
  for (uint32_t i = 0; i < out.size(); ++i)
    if (result_bytes[i]) out[i] = b.result(i, result_bytes[i]);
  Flags flags;
  constexpr int64_t kHalf = 2 * 8192;  // elements of a slot: rows are padded to 16
  Channel tiles(b, flags, REGIE_TILE_LOAD, REGIE_TILE_STORE, 2);
  for (size_t k = 0; k < all.size(); ++k) {
    const Rectangle& x = all[k];
    const Cut& c = cuts[k];
    const int64_t pitch = round_up(c.columns, 16);
    auto body = [&] {
      const Expr part_c = c.parts_c == 1 ? Expr(0) : b.core() % c.parts_c,
                 part_r = c.parts_r == 1 ? Expr(0) : b.core() / c.parts_c;
      auto tile = [&](const Expr& r, const Expr& t, const Expr& slot) {
        const Expr row = (part_r * c.turns_r + r) * c.rows, column = (part_c * c.turns_c + t) * c.columns;
        const Expr rows = clamp(0, c.rows, Expr(x.rows) - row);
        const Expr bytes = clamp(0, c.columns * es, Expr(x.width * es) - column * es);
        const Place at = ub(slot * (kHalf * es));
        tiles.begin_write(slot);
        b.copy(at, gm(in[x.operand], (row * x.from_pitch + column + Expr(x.from)) * es), bytes,
               {rows, pitch * es, x.from_pitch * es});
        tiles.end_write(slot);
        tiles.begin_read(slot);
        b.copy(gm(out[x.result], (row * x.to_pitch + column + Expr(x.to)) * es), at, bytes,
               {rows, x.to_pitch * es, pitch * es});
        tiles.end_read(slot);
      };
      auto columns = [&](const Expr& r, const Expr& slot) {
        if (c.turns_c == 1) return tile(r, 0, slot);
        b.loop(c.turns_c, [&](const Expr& t) { tile(r, t, t % 2); });
      };
      if (c.turns_r == 1) return columns(0, static_cast<int64_t>(k % 2));
      b.loop(c.turns_r, [&](const Expr& r) { columns(r, r % 2); });
    };
    const int64_t parts = c.parts_r * c.parts_c;
    if (parts == cores)
      body();
    else
      b.loop(clamp(0, 1, Expr(parts) - b.core()), [&](const Expr&) { body(); });
  }
  tiles.close();
  return b.finish();
}

// Elements along axes, as they lie: channels of a tensor in blocks fill the last one up.
int64_t product(const regie_tensor& t, int32_t first, int32_t last, bool blocked) {
  int64_t n = 1;
  for (int32_t i = first; i < last; ++i) n *= blocked && i == 1 ? lanes_of(t.dims[i]) : t.dims[i];
  return n;
}

std::vector<int64_t> constant(const Request& r, uint32_t operand, const char* what) {
  const auto list = regie::sdk::constant_integers(&r.graph->values[r.node.operands[operand]]);
  if (!list) refuse(std::string("irregular moves of data: its ") + what + " are not constant");
  return *list;
}

// Where a Slice begins along each axis, and by how much it goes on.
struct Bounds {
  std::vector<int64_t> starts, steps;
  int32_t cut_axes = 0, cut_axis = -1;  // how many axes become shorter, and the last of them
  bool steps_by_one = true;
};
// `model_rank`: of the tensors as the operator sees them, where they are seen as blocks of channels instead
// (matrices.h): its last axis is that of channels then. Else 0.
Bounds bounds_of(const Request& r, const regie_tensor& x, const regie_tensor& y, int32_t model_rank) {
  if (r.node.operand_count < 3) refuse("a slice without its bounds");
  const std::vector<int64_t> starts = constant(r, 1, "starts");
  std::vector<int64_t> axes, steps;
  if (r.operand(3)) axes = constant(r, 3, "axes");
  if (r.operand(4)) steps = constant(r, 4, "steps");
  for (size_t i = axes.size(); i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  steps.resize(std::max(steps.size(), starts.size()), 1);
  Bounds b;
  b.starts.resize(static_cast<size_t>(x.rank), 0);
  b.steps.resize(static_cast<size_t>(x.rank), 1);
  for (int32_t d = 0; d < x.rank; ++d)
    if (x.dims[d] != y.dims[d]) {
      ++b.cut_axes;
      b.cut_axis = d;
    }
  const int32_t rank = model_rank ? model_rank : x.rank;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (model_rank) axis = axis == rank - 1 ? 1 : -1;
    if (axis < 0 || axis >= x.rank) continue;
    if (steps[i] < 1) refuse("irregular moves of data: a slice that goes backwards");
    const int64_t start = starts[i] < 0 ? starts[i] + x.dims[axis] : starts[i];
    const auto a = static_cast<size_t>(axis);
    b.starts[a] = std::clamp<int64_t>(start, 0, x.dims[axis]);
    if (y.dims[axis] > 1) b.steps[a] = steps[i];  // of one element the next is not asked for
    if (b.starts[a] + (y.dims[axis] - 1) * b.steps[a] >= x.dims[axis]) refuse("a slice beyond its operand");
    b.steps_by_one = b.steps_by_one && b.steps[a] == 1;
  }
  return b;
}

Rectangle slice(const Request& r, const regie_tensor& x, const regie_tensor& y, const Bounds& b,
                bool seen_as_blocks) {
  const int32_t cut_axis = b.cut_axis;
  const bool blocked = is_blocked(r.operand_format(0));
  if (cut_axis > 1 && blocked) refuse("an axis inside of blocks of channels");
  Rectangle out;
  if (cut_axis < 0 && seen_as_blocks) refuse("it cuts nothing");
  if (cut_axis < 0) {
    out.width = out.from_pitch = out.to_pitch = product(x, 0, x.rank, blocked);
    return out;
  }
  const int64_t start = b.starts[static_cast<size_t>(cut_axis)];
  // A part that ends inside of a block would take the channels behind it for zeros.
  if (cut_axis == 1 && blocked && (start % kC0 || (y.dims[1] % kC0 && start + y.dims[1] != x.dims[1])))
    refuse("it begins or ends inside of a block of channels");
  out.from = start * product(x, cut_axis + 1, x.rank, blocked);
  out.rows = product(x, 0, cut_axis, blocked);
  out.width = out.to_pitch = product(y, cut_axis, y.rank, blocked);
  out.from_pitch = product(x, cut_axis, x.rank, blocked);
  if (out.from + (out.rows - 1) * out.from_pitch + out.width > product(x, 0, x.rank, blocked))
    refuse("a slice beyond its operand");
  return out;
}

Lowered copied(const Request& r, std::vector<Rectangle> all) {
  const bool blocked = is_blocked(r.operand_format(0));
  const int64_t es = size_of(r.need(0).elem);
  if (r.chip.sizes.ub < 4 * 8192 * es) throw Overflow("its tiles need", 4 * 8192 * es, r.chip);
  std::vector<uint64_t> operand_bytes, result_bytes;
  for (const regie_tensor& t : r.operands)
    operand_bytes.push_back(
        t.elem == REGIE_ELEM_UNKNOWN ? 0 : static_cast<uint64_t>(product(t, 0, t.rank, blocked) * es));
  for (const regie_tensor& t : r.results)
    result_bytes.push_back(static_cast<uint64_t>(product(t, 0, t.rank, blocked) * es));
  Lowered out;
  out.name = "copy " + std::string(r.op);
  for (const Rectangle& x : all) out.cycles += cycles_of(x, cut(x, r.chip), r.chip, es);
  out.write = [all = std::move(all), es, operand_bytes, result_bytes, chip = r.chip] {
    Written w;
    w.program = write(all, chip, es, operand_bytes, result_bytes);
    return w;
  };
  return out;
}

Lowered lower_laid(const Request& r, int32_t model_rank) {
  const regie_tensor& y = r.results[0];
  const regie_elem elem = r.need(0).elem;
  if (!is_float(elem) && !is_byte(elem)) refuse("elements other than f32, f16 and bytes");
  // Along batch or channels, blocks of channels follow each other as rows do.
  const bool blocked = is_blocked(r.operand_format(0));
  for (size_t i = 0; i < r.operands.size(); ++i)
    if (is_float(r.operands[i].elem) && is_blocked(r.operand_format(i)) != blocked)
      refuse("operands in different formats");
  for (size_t i = 0; i < r.results.size(); ++i) {
    if (is_blocked(r.result_format(i)) != blocked) refuse("operands and results in different formats");
    if (r.results[i].elem != elem && r.results[i].elem != REGIE_ELEM_UNKNOWN)
      refuse("elements of operands and results differ");
  }
  if (r.operands.size() > 48 || r.results.size() > 12) refuse("it has too many operands and results");
  std::vector<Rectangle> all;
  if (r.op == "Slice") {
    if (r.need(0).rank != y.rank || y.rank == 0) refuse("operand and result have different ranks");
    const Bounds b = bounds_of(r, r.need(0), y, model_rank);
    if (b.cut_axes > 1 || !b.steps_by_one) {
      if (blocked || model_rank) refuse("a slice with steps, or along several axes, of blocks of channels");
      return lower_steps(r, b.starts, b.steps);
    }
    all.push_back(slice(r, r.need(0), y, b, model_rank != 0));
  } else {
    const bool joins = r.op == "Concat";
    const regie_tensor& whole = joins ? y : r.need(0);
    if (whole.rank == 0) refuse("a scalar has no axis");
    int32_t axis = axis_of(r, model_rank ? model_rank : whole.rank, 0);
    if (model_rank && axis != model_rank - 1) refuse("an axis that is not the last, of columns of 16");
    if (model_rank) axis = 1;
    if (blocked && axis > 1) refuse("an axis inside of blocks of channels");
    const int64_t rows = product(whole, 0, axis, blocked), pitch = product(whole, axis, whole.rank, blocked);
    int64_t at = 0;
    for (uint32_t i = 0; i < (joins ? r.operands.size() : r.results.size()); ++i) {
      const regie_tensor& part = joins ? r.need(i) : r.results[i];
      if (part.elem == REGIE_ELEM_UNKNOWN) refuse("a part is not asked for");
      if (part.elem != elem || part.rank != whole.rank || product(part, 0, axis, blocked) != rows)
        refuse("its parts do not fit");
      Rectangle x;
      (joins ? x.operand : x.result) = i;
      x.rows = rows;
      x.width = product(part, axis, part.rank, blocked);
      const bool last = i + 1 == (joins ? r.operands.size() : r.results.size());
      if (blocked && axis == 1 && part.dims[1] % kC0 && !last)
        refuse("a part ends inside of a block of channels");
      (joins ? x.to : x.from) = at;
      (joins ? x.to_pitch : x.from_pitch) = pitch;
      (joins ? x.from_pitch : x.to_pitch) = x.width;
      at += x.width;
      all.push_back(x);
    }
    if (at != pitch) refuse("its parts do not fit");
  }
  return copied(r, std::move(all));
}

}  // namespace

Lowered lower_blocks(const Request& r) {
  if (!any_matrix(r)) return lower_laid(r, 0);
  const std::shared_ptr<Seen> seen = seen_as_blocks(r, true);
  Lowered out = lower_laid(*seen->request, r.need(0).rank);
  out.write = [seen, write = std::move(out.write)] { return write(); };
  return out;
}

// By constant indices: each run of neighbours is a rectangle.
Lowered lower_gather(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if ((!is_float(x.elem) && !is_byte(x.elem)) || x.elem != y.elem)
    refuse("elements other than f32, f16 and bytes");
  if (is_blocked(r.operand_format(0)) || is_blocked(r.result_format(0)))
    refuse("its programs are for row-major tensors");
  if (x.rank == 0 || r.node.operand_count < 2) refuse("it has no axis to gather along");
  const int32_t axis = axis_of(r, x.rank, 0);
  const std::vector<int64_t> indices = constant(r, 1, "indices");
  const int64_t size = x.dims[axis], outer = product(x, 0, axis, false),
                inner = product(x, axis + 1, x.rank, false), count = std::ssize(indices);
  if (product(y, 0, y.rank, false) != outer * count * inner) refuse("its result has another shape");
  std::vector<Rectangle> all;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = indices[static_cast<size_t>(i)], from = at < 0 ? at + size : at;
    if (from < 0 || from >= size) refuse("an index beyond its operand");
    if (!all.empty() && all.back().from + all.back().width == from * inner) {
      all.back().width += inner;
      continue;
    }
    if (all.size() == 64) refuse("irregular moves of data: more than 64 runs of neighbours");
    all.push_back({0, 0, from * inner, size * inner, i * inner, count * inner, outer, inner});
  }
  return copied(r, std::move(all));
}

}  // namespace aicore
