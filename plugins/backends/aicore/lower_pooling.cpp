// Pooling with windows: 16 channels of some rows become positions of 16 channels in L1, as for a convolution;
// the windows' elements are gathered to UB by im2col and folded there. Maxima are exact for values rounded to
// f16; sums are kept in f32. Where operands of the cube are not rounded, neither are these: elements are
// gathered as f32, a position of 64 bytes being two of 32 to im2col, which does not ask what they hold.
#include <algorithm>
#include <functional>
#include <optional>

#include "channel.h"
#include "lower.h"
#include "window.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Pool {
  bool average = false;
  regie_elem in_elem = REGIE_F32, out_elem = REGIE_F32;
  bool blocked = false;  // operand and result in blocks of 16 channels
  bool bytes = false;    // in blocks, of 32 channels then
  int64_t batch = 1, channels = 1, height = 1, width = 1, out_height = 1, out_width = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, pad_top = 0,
          pad_left = 0;
  int64_t in_bytes() const { return size_of(in_elem); }
  int64_t out_bytes() const { return size_of(out_elem); }
  bool exact = false;  // f32 all the way
  int64_t lane() const { return bytes ? 32 : 16; }
  // To L1 as it lies.
  bool direct() const { return blocked && (in_bytes() == 2 || exact || bytes); }
  // Of what comes in through UB: halved, unless f32 is turned there, which takes all the room.
  int64_t slots() const { return exact ? 1 : 2; }
  int64_t place_bytes() const { return exact ? 64 : 32; }  // of a block at a position, in L1 and gathered
  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t blocks() const { return up(channels, lane()); }
  // Channels as they lie. Those that fill up the last block are zeros, and so are their maxima and means.
  int64_t lanes() const { return blocked ? round_up(channels, 16) : channels; }
};

struct PoolPlan {
  int64_t out_rows = 1, rows = 16, padded = 16, window = 1, pixels = 16;
  int64_t parts_item = 1, parts_row = 1, turns_batch = 1, turns_item = 1, turns_row = 1;
  int64_t load = 0, cast = 0, panel = 0, taps = 0, folded = 0, wide = 0, tap = 0, turned = 0, result = 0,
          used = 0;
  int64_t halves = 0, wide_in = 0, halves_out = 0, sums = 0;  // to turn f32
  double cycles = 0;
};

bool place(const Pool& p, PoolPlan& t, const Chip& chip) {
  Room ub(chip.sizes.ub);
  const int64_t s = p.in_bytes();
  if (!p.direct()) {
    t.load = ub.take(p.slots() * 16 * t.pixels * s);
    t.cast = s != 2 && !p.blocked && !p.exact ? ub.take(32 * t.pixels) : t.load;
    t.panel = ub.take(p.slots() * p.place_bytes() * t.pixels);
  }
  if (p.exact && !p.blocked) {
    // The vector unit's alone: on the way in, and on the way out in its place.
    const int64_t in = 64 + 3 * 32, out = 64 + 3 * 32;
    t.halves = t.halves_out = ub.take(std::max(in * t.pixels, out * t.padded));
    t.wide_in = t.halves + 3 * 32 * t.pixels;
    t.sums = t.halves_out + 3 * 32 * t.padded;
  }
  t.taps = ub.take(2 * p.taps() * t.padded * p.place_bytes());
  t.folded = ub.take(t.padded * (p.bytes ? 64 : p.place_bytes()));
  if (p.bytes) {
    t.tap = ub.take(t.padded * 64);
  } else if (p.average && !p.exact) {
    t.wide = ub.take(t.padded * 64);
    t.tap = ub.take(t.padded * 64);
  }
  t.turned = p.out_bytes() != 2 && !p.blocked && !p.exact ? ub.take(t.padded * 32) : 0;
  t.result = ub.take(2 * p.lane() * t.padded * p.out_bytes());
  t.used = ub.used();
  return ub.fits() && 2 * t.pixels * p.place_bytes() <= chip.sizes.l1;
}

double cycles_of(const Pool& p, const PoolPlan& t, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency,
               s = static_cast<double>(p.in_bytes());
  const auto lane = static_cast<double>(p.lane());
  const double in = lane * static_cast<double>(t.pixels), out = lane * static_cast<double>(t.padded),
               taps = static_cast<double>(p.taps());
  const int64_t running = t.parts_item * t.parts_row;
  const double all = static_cast<double>(p.batch * p.lanes()) *
                     (static_cast<double>(p.height * p.width) * s +
                      static_cast<double>(p.out_height * p.out_width * p.out_bytes()));
  PipeCycles c;
  c[REGIE_TILE_LOAD] = h.load_start + h.l2_latency + in * s / chip.read_rate(running, all);
  const double way_in = p.direct() ? 0 : p.exact ? 32 : p.blocked || s == 2 ? 4 : s == 1 ? 6 : 8;
  const double a_tap = p.exact || p.bytes ? 4 : p.average ? 8 : 2, way_out = p.blocked ? 4 : p.exact ? 36 : 8;
  c[REGIE_TILE_VECTOR] = 4 * h.vector_start + in * way_in / lanes +
                         taps * (h.vector_start + out * a_tap / lanes) + out * way_out / lanes;
  const double moves = p.exact ? 2 : 1;
  if (p.bytes) c[REGIE_TILE_VECTOR] += taps * h.vector_start;
  if (p.exact) c[REGIE_TILE_VECTOR] += ((p.blocked ? 3 : 21) + taps) * h.vector_start;
  c[REGIE_TILE_MOVE] = moves * (h.move_start + taps * out * (p.bytes ? 1 : 2) / h.l1_to_ub);
  c[REGIE_TILE_STORE] = h.store_start * 2 + h.l2_latency +
                        (p.direct() ? 0 : in * (p.exact ? 4 : 2) / h.ub_to_l1) +
                        out * static_cast<double>(p.out_bytes()) / chip.write_rate(running, all);
  for (double& b : c.busy) b += 6 * h.flag_cycles;
  return overlapped(c, static_cast<double>(t.turns_batch * t.turns_item * t.turns_row));
}

PoolPlan plan(const Pool& p, const Chip& chip) {
  PoolPlan best;
  int64_t least = 0;
  // Where channels fill blocks, all blocks of all batches follow each other.
  const bool whole = p.lanes() % 16 == 0;
  const int64_t items = whole ? p.batch * p.blocks() : p.blocks(), cores = chip.cores;
  for (int64_t r = 1; r <= p.out_height; ++r) {
    if (r > 4 && up(p.out_height, r) == up(p.out_height, r - 1)) continue;
    PoolPlan t;
    t.out_rows = r;
    t.rows = r * p.out_width;
    t.padded = round_up(t.rows, 16);
    t.window = std::min((r - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h + 1, p.height);
    t.pixels = round_up(t.window * p.width, 16);
    const bool fits = place(p, t, chip);
    if (!least || t.used < least) least = t.used;
    if (!fits) break;
    t.turns_batch = whole ? 1 : p.batch;
    for (int64_t parts = 1; parts <= std::min(items, cores); ++parts) {
      if (items % parts) continue;
      const int64_t tiles = up(p.out_height, r);
      t.parts_item = parts;
      t.turns_item = items / parts;
      t.turns_row = up(tiles, std::min(tiles, cores / parts));
      t.parts_row = up(tiles, t.turns_row);
      t.cycles = cycles_of(p, t, chip);
      if (best.cycles == 0 || t.cycles < best.cycles) best = t;
    }
  }
  if (best.cycles == 0) throw Overflow("a row of its result needs", least, chip);
  return best;
}

// `count` f32 elements from `from` to `to`, turned by `turn`, which moves halves: as their rounded values and
// what those lose, so 22 bits arrive. `halves` has room for three times as many, `wide` is of f32.
void turn_f32(Builder& b, const Expr& to, const Expr& from, int64_t count, int64_t halves, int64_t wide,
              const std::function<void(int64_t to, int64_t from)>& turn) {
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  const int64_t values = halves + count * 2, rest = values + count * 2;
  b.cast(f32, f16, REGIE_TILE_RINT, ub(halves), ub(from), count);
  turn(values, halves);
  b.cast(f16, f32, REGIE_TILE_RINT, ub(wide), ub(halves), count);
  b.binary(REGIE_TILE_SUB, f32, ub(wide), ub(from), ub(wide), count);
  b.cast(f32, f16, REGIE_TILE_RINT, ub(halves), ub(wide), count);
  turn(rest, halves);
  b.cast(f16, f32, REGIE_TILE_RINT, ub(to), ub(values), count);
  b.cast(f16, f32, REGIE_TILE_RINT, ub(wide), ub(rest), count);
  b.binary(REGIE_TILE_ADD, f32, ub(to), ub(to), ub(wide), count);
}

Program write(const Pool& p, const PoolPlan& t, const Chip& chip) {
  const int64_t s = p.in_bytes(), out_s = p.out_bytes(), P = t.pixels, m = t.padded, map = p.height * p.width,
                out_map = p.out_height * p.out_width;
  const int64_t taps = p.taps(), unit = p.place_bytes();
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  Builder b(static_cast<uint32_t>(t.parts_item * t.parts_row), chip.sizes);
  const uint32_t in = b.operand(0, static_cast<uint64_t>(p.batch * p.lanes() * map * s));
  const uint32_t out = b.result(0, static_cast<uint64_t>(p.batch * p.lanes() * out_map * out_s));
  Flags flags;
  if (!p.direct() && (p.lanes() % 16 || (t.window * p.width) % 16)) {
    b.fill(ub(t.load), f32, scalar(0), p.slots() * 16 * P * s / 4);
    hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  }
  std::optional<Channel> loaded, panel;
  if (!p.direct()) {
    loaded.emplace(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, p.slots());
    panel.emplace(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, p.slots());
  }
  Channel ready(b, flags, p.direct() ? REGIE_TILE_LOAD : REGIE_TILE_STORE, REGIE_TILE_MOVE, 2),
      gathered(b, flags, REGIE_TILE_MOVE, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr core = b.core();
  const Expr part_r = t.parts_row == 1 ? Expr(0) : core % t.parts_row,
             part_i = t.parts_item == 1 ? Expr(0) : core / t.parts_row;

  auto tile = [&](const Expr& batch, const Expr& item, const Expr& row, const Expr& k) {
    const Expr channel = item * p.lane(),
               valid = p.lanes() % 16 ? clamp(0, 16, Expr(p.channels) - channel) : Expr(16);
    auto window = [&](const std::function<void(const Expr& first, const Expr& top)>& body) {
      at_window(b, row, t.out_rows * p.stride_h, p.pad_top, p.height - t.window, t.parts_row * t.turns_row,
                [&](const Window& w) { body(w.first, w.top); });
    };
    const Expr plane = (batch * p.lanes() + channel) * (map * s);
    if (p.direct()) {
      ready.begin_write(k);
      window([&](const Expr& first, const Expr&) {
        b.copy(l1(k * (unit * P)), gm(in, plane + first * (p.width * unit)), t.window * p.width * unit);
      });
      ready.end_write(k);
    } else {
      const Expr in_slot = p.slots() == 1 ? Expr(0) : k;
      loaded->begin_write(in_slot);
      window([&](const Expr& first, const Expr&) {
        const Place to = ub(in_slot * (16 * P * s) + t.load);
        if (p.blocked)
          b.copy(to, gm(in, plane + first * (p.width * 16 * s)), t.window * p.width * 16 * s);
        else
          b.copy(to, gm(in, plane + first * (p.width * s)), t.window * p.width * s, {valid, P * s, map * s});
      });
      loaded->end_write(in_slot);
      loaded->begin_read(in_slot);
      panel->begin_write(in_slot);
      Expr half = in_slot * (16 * P * s) + t.load;
      const Expr turned = in_slot * (unit * P) + t.panel;
      if (s == 4 && !p.exact) {
        b.cast(f32, f16, REGIE_TILE_RINT, ub(p.blocked ? turned : Expr(t.cast)), ub(half), 16 * P);
        half = t.cast;
      } else if (s == 1) {
        b.cast(byte_type(p.in_elem), f16, REGIE_TILE_RINT, ub(t.cast), ub(half), 16 * P);
        half = t.cast;
      }
      if (p.exact)
        turn_f32(b, turned, half, 16 * P, t.halves, t.wide_in, [&](int64_t to, int64_t from) {
          b.transpose(ub(to), ub(from), 32, P * 2, {P / 16, 512, 32});
        });
      else if (!p.blocked)
        b.transpose(ub(turned), ub(half), 32, P * 2, {P / 16, 512, 32});
      loaded->end_read(in_slot);
      panel->end_write(in_slot);
      panel->begin_read(in_slot);
      ready.begin_write(k);
      b.copy(l1(k * (unit * P)), ub(turned), unit * P);
      panel->end_read(in_slot);
      ready.end_write(k);
    }
    ready.begin_read(k);
    gathered.begin_write(k);
    const Expr at = k * (taps * m * unit) + t.taps;
    window([&](const Expr&, const Expr& top) {
      Im2col i;
      i.height = t.window;
      i.width = p.width;
      i.top = top;
      i.left = -p.pad_left;
      i.stride_h = p.stride_h;
      i.stride_w = p.stride_w;
      i.dilation_h = p.dilation_h;
      i.dilation_w = p.dilation_w;
      i.kernel_h = p.kernel_h;
      i.kernel_w = p.kernel_w;
      i.out_width = p.out_width;
      i.rows = t.rows;
      i.k_blocks = taps;
      i.plane = 32 * P;
      i.row_stride = taps * kFractal;
      i.pad = p.average ? 0 : 0xfc00;  // minus infinity
      if (p.bytes) i.pad = least_byte(p.in_elem);
      if (p.exact) {  // places of 8 channels, twice as many in a row
        i.width = 2 * p.width;
        i.stride_w = 2 * p.stride_w;
        i.dilation_w = 2 * p.dilation_w;
        i.left = -2 * p.pad_left;
        i.plane = 64 * P;
        i.pad = p.average ? 0 : 0xff7f;  // twice: nearly the least number of f32
      }
      b.im2col(ub(at), l1(k * (unit * P)), p.bytes ? byte_type(p.in_elem) : f16, i);
      if (!p.exact) return;
      i.left = -2 * p.pad_left + 1;
      b.im2col(ub(at + taps * m * 32), l1(k * (unit * P)), f16, i);
    });
    ready.end_read(k);
    gathered.end_write(k);
    gathered.begin_read(k);
    const int64_t m1 = m / 16;
    auto one = [&](int64_t tap) { return at + tap * kFractal; };
    if (p.bytes) {  // halves hold them
      const Repeat spread{m1, 1024, taps * kFractal};
      b.cast(byte_type(p.in_elem), f16, REGIE_TILE_RINT, ub(t.folded), ub(one(0)), 512, spread);
      for (int64_t tap = 1; tap < taps; ++tap) {
        b.cast(byte_type(p.in_elem), f16, REGIE_TILE_RINT, ub(t.tap), ub(one(tap)), 512, spread);
        b.binary(REGIE_TILE_MAX, f16, ub(t.folded), ub(t.folded), ub(t.tap), m * 32);
      }
    } else if (p.exact) {
      const int64_t op = p.average ? REGIE_TILE_ADD : REGIE_TILE_MAX;
      for (int64_t half = 0; half < 2; ++half) {
        const Expr from = at + half * (taps * m * 32);
        const Place to = ub(t.folded + half * (m * 32));
        b.unary(REGIE_TILE_COPY, f32, to, ub(from), 128, {m1, 512, taps * kFractal});
        for (int64_t tap = 1; tap < taps; ++tap)
          b.binary(static_cast<uint8_t>(op), f32, to, to, ub(from + tap * kFractal), 128,
                   {m1, 512, 512, taps * kFractal});
      }
      if (p.average)
        b.binary_scalar(REGIE_TILE_MUL, f32, ub(t.folded), ub(t.folded),
                        scalar(1.0f / static_cast<float>(taps)), m * 16);
    } else if (p.average) {
      const Repeat spread{m1, 1024, taps * kFractal};
      b.cast(f16, f32, REGIE_TILE_RINT, ub(t.wide), ub(one(0)), 256, spread);
      for (int64_t tap = 1; tap < taps; ++tap) {
        b.cast(f16, f32, REGIE_TILE_RINT, ub(t.tap), ub(one(tap)), 256, spread);
        b.binary(REGIE_TILE_ADD, f32, ub(t.wide), ub(t.wide), ub(t.tap), m * 16);
      }
      b.binary_scalar(REGIE_TILE_MUL, f32, ub(t.wide), ub(t.wide), scalar(1.0f / static_cast<float>(taps)),
                      m * 16);
      b.cast(f32, f16, REGIE_TILE_RINT, ub(t.folded), ub(t.wide), m * 16);
    } else {
      b.unary(REGIE_TILE_COPY, f16, ub(t.folded), ub(one(0)), 256, {m1, 512, taps * kFractal});
      for (int64_t tap = 1; tap < taps; ++tap)
        b.binary(REGIE_TILE_MAX, f16, ub(t.folded), ub(t.folded), ub(one(tap)), 256,
                 {m1, 512, 512, taps * kFractal});
    }
    gathered.end_read(k);
    results.begin_write(k);
    const Expr result = k * (p.lane() * m * out_s) + t.result, position = row * t.rows;
    const Expr out_plane = (batch * p.lanes() + channel) * (out_map * out_s);
    if (p.bytes) {
      b.cast(f16, byte_type(p.out_elem), REGIE_TILE_RINT, ub(result), ub(t.folded), m * 32);
    } else if (p.exact) {
      const Expr whole = p.blocked ? result : Expr(t.sums);
      for (int64_t half = 0; half < 2; ++half)
        b.unary(REGIE_TILE_COPY, f32, ub(whole + half * 32), ub(t.folded + half * (m * 32)), 8, {m, 64, 32});
      if (!p.blocked)
        turn_f32(b, result, whole, 16 * m, t.halves_out, t.folded, [&](int64_t to, int64_t from) {
          b.transpose(ub(to), ub(from), m * 2, 32, {m1, 32, 512});
        });
    } else if (p.blocked) {
      if (out_s == 4)
        b.cast(f16, f32, REGIE_TILE_RINT, ub(result), ub(t.folded), 16 * m);
      else
        b.unary(REGIE_TILE_COPY, f16, ub(result), ub(t.folded), 16 * m);
    } else {
      b.transpose(ub(out_s != 2 ? Expr(t.turned) : result), ub(t.folded), m * 2, 32, {m1, 32, 512});
      if (out_s == 4) b.cast(f16, f32, REGIE_TILE_RINT, ub(result), ub(t.turned), 16 * m);
      if (out_s == 1) b.cast(f16, byte_type(p.out_elem), REGIE_TILE_RINT, ub(result), ub(t.turned), 16 * m);
    }
    results.end_write(k);
    results.begin_read(k);
    const int64_t step_bytes = p.blocked ? p.lane() * out_s : out_s;
    const Expr bytes = clamp(0, t.rows * step_bytes, Expr(out_map * step_bytes) - position * step_bytes);
    if (p.blocked)
      b.copy(gm(out, out_plane + position * step_bytes), ub(result), bytes);
    else
      b.copy(gm(out, out_plane + position * step_bytes), ub(result), bytes,
             {valid, out_map * step_bytes, m * step_bytes});
    results.end_read(k);
  };
  auto rows = [&](const Expr& batch, const Expr& item, const Expr& k) {
    const Expr first = part_r * t.turns_row;
    if (t.turns_row == 1) return tile(batch, item, first, k);
    b.loop(t.turns_row, [&](const Expr& r) { tile(batch, item, first + r, r % 2); });
  };
  auto items = [&](const Expr& batch, const Expr& k) {
    const Expr first = part_i * t.turns_item;
    if (t.turns_item == 1) return rows(batch, first, k);
    b.loop(t.turns_item, [&](const Expr& i) { rows(batch, first + i, i % 2); });
  };
  if (t.turns_batch == 1)
    items(0, 0);
  else
    b.loop(t.turns_batch, [&](const Expr& n) { items(n, n % 2); });
  if (loaded) loaded->close();
  if (panel) panel->close();
  for (Channel* c : {&ready, &gathered, &results}) c->close();
  return b.finish();
}

}  // namespace

Lowered lower_pooling(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  // Bytes are halves without rounding, and the greatest of them is one of them.
  const bool bytes = is_byte(x.elem) && x.elem == y.elem && r.op == "MaxPool";
  if (!bytes && (!is_float(x.elem) || !is_float(y.elem))) refuse("elements other than f32 and f16");
  if (x.rank != 4) refuse("pooling of two spatial axes only");
  for (size_t i = 1; i < r.results.size(); ++i)
    if (r.results[i].elem != REGIE_ELEM_UNKNOWN) refuse("indices are asked for");
  Pool p;
  p.average = r.op == "AveragePool";
  p.in_elem = x.elem;
  p.out_elem = y.elem;
  p.bytes = r.operand_format(0) == kByteBlockedFormat;
  p.blocked = p.bytes || is_blocked(r.operand_format(0));
  if ((p.bytes ? r.result_format(0) == kByteBlockedFormat : is_blocked(r.result_format(0))) != p.blocked)
    refuse("operand and result in different formats");
  p.exact = r.chip.two_halves && p.in_bytes() == 4 && p.out_bytes() == 4;
  p.batch = x.dims[0];
  p.channels = x.dims[1];
  p.height = x.dims[2];
  p.width = x.dims[3];
  p.out_height = y.dims[2];
  p.out_width = y.dims[3];
  p.kernel_h = integer_at(r.attrs, "kernel_shape", 0, 0);
  p.kernel_w = integer_at(r.attrs, "kernel_shape", 1, 0);
  p.stride_h = integer_at(r.attrs, "strides", 0, 1);
  p.stride_w = integer_at(r.attrs, "strides", 1, 1);
  p.dilation_h = integer_at(r.attrs, "dilations", 0, 1);
  p.dilation_w = integer_at(r.attrs, "dilations", 1, 1);
  for (int64_t n : {p.kernel_h, p.kernel_w, p.stride_h, p.stride_w, p.dilation_h, p.dilation_w})
    if (n < 1 || n > 4096) refuse("a window, stride or dilation out of range");
  p.pad_top = padding_before(r.attrs, 0, p.height, p.out_height, p.kernel_h, p.stride_h, p.dilation_h);
  p.pad_left = padding_before(r.attrs, 1, p.width, p.out_width, p.kernel_w, p.stride_w, p.dilation_w);
  if (p.pad_top < 0 || p.pad_left < 0) refuse("negative padding");
  if (p.average) {
    const bool inside = p.pad_top == 0 && p.pad_left == 0 &&
                        (p.out_height - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h < p.height &&
                        (p.out_width - 1) * p.stride_w + (p.kernel_w - 1) * p.dilation_w < p.width;
    const bool counts = r.attrs.integer("count_include_pad", 0) && !r.attrs.integer("ceil_mode", 0);
    if (!inside && !counts) refuse("windows that count different numbers of elements");
    if (p.taps() > 1024) refuse("a window of more than 1024 elements");
  }
  const PoolPlan t = plan(p, r.chip);
  Lowered out;
  out.name = "vector " + std::string(r.op);
  out.cycles = t.cycles;
  out.write = [p, t, chip = r.chip] {
    Written w;
    w.program = write(p, t, chip);
    return w;
  };
  return out;
}

}  // namespace aicore
