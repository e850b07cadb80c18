#include "reformat.h"

#include <algorithm>

#include "channel.h"
#include "lower.h"
#include "matrices.h"
#include "reformat_matrices.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Places {
  int64_t load = 0, half = 0, turned = 0, result = 0, used = 0;
};
// A piece: 16 channels (32 of bytes) of `pixels` positions, or as many elements in the order in which they
// lie.
Places place(const Reformat& r) {
  Room room(0);
  const int64_t e = r.channels * r.pixels;
  Places x;
  x.load = room.take(2 * e * size_of(r.from));
  if (r.turns_over() && r.from != r.to) x.half = room.take(e * 2);
  x.result = room.take(2 * e * size_of(r.to));
  x.used = room.used();
  return x;
}

// f32 to f32 in another order: the unit transposes elements of two bytes, so single elements are gathered.
bool gathers(const Reformat& r) { return r.turns_over() && r.from == REGIE_F32 && r.to == REGIE_F32; }

double cycles_of(const Reformat& r, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency;
  const double e = static_cast<double>(r.channels * r.pixels);
  const double all =
      static_cast<double>(r.batch * r.planes * r.channels * r.positions * (size_of(r.from) + size_of(r.to)));
  PipeCycles turn;
  const double in = gathers(r) ? e * static_cast<double>(kBlock) : e * static_cast<double>(size_of(r.from));
  turn[REGIE_TILE_LOAD] = h.load_start + h.l2_latency + in / chip.read_rate(r.cores(), all);
  double passes = r.turns_over() && !gathers(r) ? 1 : 0;
  if (r.from != r.to || passes == 0) passes += 1;
  turn[REGIE_TILE_VECTOR] = passes * (h.vector_start + e * (is_byte(r.from) ? 2 : 4) / lanes);
  turn[REGIE_TILE_STORE] =
      h.store_start + h.l2_latency + e * static_cast<double>(size_of(r.to)) / chip.write_rate(r.cores(), all);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  return overlapped(turn, static_cast<double>(r.batch * r.plane_turns * r.piece_turns));
}

}  // namespace

Reformat plan_reformat(const Chip& chip, std::span<const int64_t> dims, regie_elem from_elem,
                       regie_format from, regie_elem to_elem, regie_format to) {
  if (!is_known_format(from) || !is_known_format(to) || is_matrix(from) || is_matrix(to))
    refuse("a format of another engine");
  const bool bytes = is_byte(from_elem) && from_elem == to_elem;
  if (!bytes && (!is_float(from_elem) || !is_float(to_elem))) refuse("elements other than f32 and f16");
  const auto in_byte_blocks = [&](regie_format f) { return f == kByteBlockedFormat; };
  if ((in_byte_blocks(from) || in_byte_blocks(to)) && !byte_blocks_fit(from_elem, dims))
    refuse("a tensor that is not of whole blocks of 32 bytes");
  if (bytes && in_byte_blocks(from) == in_byte_blocks(to)) refuse("bytes that only change their place");
  if ((is_blocked(from) || is_blocked(to)) && !blocks_fit(dims))
    refuse("a tensor that has no blocks of channels");
  Reformat r;
  r.from = is_half(from) ? regie_elem{REGIE_F16} : from_elem;
  r.to = is_half(to) ? regie_elem{REGIE_F16} : to_elem;
  const bool padded =
      has_padding(from, dims.size() > 1 ? dims[1] : 0) || has_padding(to, dims.size() > 1 ? dims[1] : 0);
  int64_t count = 1, positions = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 1) refuse("a tensor has no element");
    count *= dims[d];
    if (d >= 2) positions *= dims[d];
  }
  r.from_blocked = in_byte_blocks(from) || (is_blocked(from) && (positions > 1 || padded));
  r.to_blocked = in_byte_blocks(to) || (is_blocked(to) && (positions > 1 || padded));
  const int64_t lane = bytes ? kByteC0 : kC0;
  if (r.turns_over() && padded) {
    r.batch = dims[0];
    r.planes = up(dims[1], kC0);
    r.positions = positions;
    r.all_channels = dims[1];
  } else if (r.turns_over()) {
    r.channels = lane;
    r.planes = count / positions / lane;
    r.positions = positions;
  } else {
    r.channels = 1;
    r.positions = laid_count(dims, from);
  }
  const int64_t most = r.turns_over() ? 512 : 8192, cores = chip.cores;
  // Pieces of a plane: few where planes keep the cores busy, more where they do not.
  const int64_t wanted =
      std::max<int64_t>(up(r.positions, most), r.planes >= cores ? 1 : up(cores, r.planes));
  r.pixels = std::min(round_up(up(r.positions, wanted), r.turns_over() ? lane : 64), most);
  while (place(r).used > chip.sizes.ub && r.pixels > 64) r.pixels = r.pixels / 2 / lane * lane;
  if (const int64_t used = place(r).used; used > chip.sizes.ub) throw Overflow("its tiles need", used, chip);
  r.pieces = up(r.positions, r.pixels);
  r.plane_turns = up(r.planes, cores);
  r.plane_parts = up(r.planes, r.plane_turns);
  r.piece_turns = up(r.pieces, std::max<int64_t>(1, cores / r.plane_parts));
  r.piece_parts = up(r.pieces, r.piece_turns);
  r.cycles = cycles_of(r, chip);
  return r;
}

Program reformat_program(const Reformat& r, const Chip& chip) {
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  const int64_t s = size_of(r.from), out_s = size_of(r.to), P = r.pixels, e = r.channels * P;
  const int64_t plane = r.channels * r.positions;
  const Places x = place(r);
  Builder b(static_cast<uint32_t>(r.cores()), chip.sizes);
  // Of one image as it lies, either way.
  const int64_t rows = r.all_channels ? r.all_channels : r.planes * r.channels, image = r.planes * plane;
  const int64_t image_in = r.from_blocked || !r.turns_over() ? image : rows * r.positions,
                image_out = r.to_blocked || !r.turns_over() ? image : rows * r.positions;
  const uint32_t in = b.operand(0, static_cast<uint64_t>(r.batch * image_in * s));
  const uint32_t out = b.result(0, static_cast<uint64_t>(r.batch * image_out * out_s));
  Flags flags;
  // Whole tiles are computed with, of which ragged ones fill a part.
  if (r.piece_parts * r.piece_turns * P != r.positions || r.all_channels) {
    b.fill(ub(x.load), f32, scalar(0), 2 * e * s / 4);
    hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  }
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr part = r.plane_parts == 1 ? Expr(0) : b.core() / r.piece_parts,
             share = r.piece_parts == 1 ? Expr(0) : b.core() % r.piece_parts;
  auto planes = [&](const Expr& n) {
    b.loop(clamp(0, r.plane_turns, Expr(r.planes) - part * r.plane_turns), [&](const Expr& turn) {
      const Expr at_plane = part * r.plane_turns + turn;
      const Expr from_at = n * (image_in * s) + at_plane * (plane * s),
                 to_at = n * (image_out * out_s) + at_plane * (plane * out_s);
      const Expr channels =
          r.all_channels ? clamp(0, kC0, Expr(r.all_channels) - at_plane * kC0) : Expr(r.channels);
      auto piece = [&](const Expr& position, const Expr& slot) {
        const Expr valid = clamp(0, P, Expr(r.positions) - position);
        const Place load = ub(slot * (e * s) + x.load), result = ub(slot * (e * out_s) + x.result);
        // Elements of an order that stays, or of blocks, are one run; rows of channels are 16.
        const int64_t one = r.channels * s, one_out = r.channels * out_s;
        loaded.begin_write(slot);
        if (!r.turns_over() || (r.from_blocked && !gathers(r)))
          b.copy(load, gm(in, from_at + position * one),
                 clamp(0, P * one, Expr(r.positions * one) - position * one));
        else if (!gathers(r))
          b.copy(load, gm(in, from_at + position * s), clamp(0, P * s, Expr(r.positions * s) - position * s),
                 {channels, P * s, r.positions * s});
        else if (r.to_blocked)
          b.copy(load, gm(in, from_at + position * s), s, {valid, kC0 * s, s},
                 {channels, s, r.positions * s});
        else
          b.copy(load, gm(in, from_at + position * one), s, {valid, s, kC0 * s}, {channels, P * s, s});
        loaded.end_write(slot);
        loaded.begin_read(slot);
        results.begin_write(slot);
        if (!r.turns_over() || gathers(r)) {
          if (r.from == r.to)
            b.unary(REGIE_TILE_COPY, s == 2 ? f16 : f32, result, load, e);
          else
            b.cast(s == 2 ? f16 : f32, s == 2 ? f32 : f16, REGIE_TILE_RINT, result, load, e);
        } else if (is_byte(r.from)) {
          if (r.to_blocked)
            b.transpose(result, load, 32, P, {P / 32, 1024, 32}, {}, REGIE_TILE_B8);
          else
            b.transpose(result, load, P, 32, {P / 32, 32, 1024}, {}, REGIE_TILE_B8);
        } else {
          const Expr half = r.from == REGIE_F32 ? Expr(x.half) : slot * (e * s) + x.load;
          const Place turned = r.to == REGIE_F32 ? ub(x.half) : result;
          if (r.from == REGIE_F32) b.cast(f32, f16, REGIE_TILE_RINT, ub(half), load, e);
          if (r.to_blocked)
            b.transpose(turned, ub(half), 32, P * 2, {P / 16, 512, 32});
          else
            b.transpose(turned, ub(half), P * 2, 32, {P / 16, 32, 512});
          if (r.to == REGIE_F32) b.cast(f16, f32, REGIE_TILE_RINT, result, ub(x.half), e);
        }
        if (r.all_channels && r.to_blocked)  // lanes of the last block beyond the channels
          b.loop(clamp(0, 1, at_plane - Expr(r.planes - 2)), [&](const Expr&) {
            const int64_t there = r.all_channels % kC0;
            b.fill(ub(slot * (e * out_s) + x.result + there * out_s), out_s == 2 ? f16 : f32, scalar(0),
                   kC0 - there, {P, kC0 * out_s});
          });
        loaded.end_read(slot);
        results.end_write(slot);
        results.begin_read(slot);
        if (!r.turns_over() || r.to_blocked)
          b.copy(gm(out, to_at + position * one_out), result,
                 clamp(0, P * one_out, Expr(r.positions * one_out) - position * one_out));
        else
          b.copy(gm(out, to_at + position * out_s), result,
                 clamp(0, P * out_s, Expr(r.positions * out_s) - position * out_s),
                 {channels, r.positions * out_s, P * out_s});
        results.end_read(slot);
      };
      const Expr from = share * (r.piece_turns * P);
      if (r.piece_turns == 1)
        piece(from, turn % 2);
      else
        b.loop(r.piece_turns, [&](const Expr& i) { piece(from + i * P, i % 2); });
    });
  };
  if (r.batch == 1)
    planes(0);
  else
    b.loop(r.batch, planes);
  loaded.close();
  results.close();
  return b.finish();
}

Lowered trans_data(const Request& r, double cycles, std::function<Program()> program) {
  Lowered out;
  out.name = "TransData " + regie::sdk::spell_layout(r.operand_format(0)) + " to " +
             regie::sdk::spell_layout(r.result_format(0));
  out.cycles = cycles;
  out.write = [program = std::move(program)] {
    Written w;
    w.program = program();
    return w;
  };
  return out;
}

Lowered lower_reformat(const Request& r) {
  if (any_matrix(r)) return lower_matrix_reformat(r);
  const regie_tensor &x = r.need(0), &y = r.results[0];
  const Reformat plan = plan_reformat(r.chip, {x.dims, static_cast<size_t>(x.rank)}, x.elem,
                                      r.operand_format(0), y.elem, r.result_format(0));
  return trans_data(r, plan.cycles, [plan, chip = r.chip] { return reformat_program(plan, chip); });
}

}  // namespace aicore
