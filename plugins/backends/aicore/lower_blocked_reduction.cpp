// Pooling over all positions of a tensor in blocks of 16 channels: blocks are shared out between the cores,
// positions of one are added up, or compared, half onto half.
#include <algorithm>

#include "channel.h"
#include "lower.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Reduction {
  uint8_t op = REGIE_TILE_ADD;
  float factor = 1;
  int64_t channels = 0;  // of one image, where they do not fill the last of its `blocks`; `batch` are images
  int64_t batch = 1, blocks = 1, positions = 1, chunk = 1, parts = 1, turns = 1;
  regie_elem in = REGIE_F32, out = REGIE_F32;
};

struct Places {
  int64_t load = 0, wide = 0, sum = 0, result = 0, used = 0;
};
Places place(const Reduction& p) {
  Room room(0);
  Places x;
  x.load = room.take(2 * p.chunk * kC0 * size_of(p.in));
  x.wide = room.take(p.chunk * kC0 * 4);
  x.sum = room.take(kC0 * 4);
  x.result = room.take(2 * kC0 * 4);
  x.used = room.used();
  return x;
}

double cycles_of(const Reduction& p, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency,
               e = static_cast<double>(p.chunk * kC0);
  double folds = 1;
  for (int64_t n = p.chunk; n > 1; n = up(n, 2)) ++folds;
  const double all = static_cast<double>(p.batch * p.blocks * p.positions * kC0 * size_of(p.in));
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] =
      h.load_start + h.l2_latency + e * static_cast<double>(size_of(p.in)) / chip.read_rate(p.parts, all);
  turn[REGIE_TILE_VECTOR] = (folds + 3) * h.vector_start + 2 * e * 4 / lanes;
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  const double chunks = static_cast<double>(up(p.positions, p.chunk));
  const double turns = static_cast<double>(p.batch * p.turns);
  return overlapped(turn, turns * chunks) + turns * (h.store_start + h.l2_latency);
}

Program write(const Reduction& p, const Chip& chip) {
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  const int64_t s = size_of(p.in), out_s = size_of(p.out), all = p.chunk * kC0;
  const int64_t chunks = up(p.positions, p.chunk);
  const Places x = place(p);
  Builder b(static_cast<uint32_t>(p.parts), chip.sizes);
  const uint32_t in = b.operand(0, static_cast<uint64_t>(p.batch * p.blocks * p.positions * kC0 * s));
  const int64_t channels = p.channels ? p.channels : p.blocks * kC0;  // of the result, for each image
  const uint32_t out = b.result(0, static_cast<uint64_t>(p.batch * channels * out_s));
  Flags flags;
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr first = p.parts == 1 ? Expr(0) : b.core() * p.turns;
  // Folds `count` positions at `at` (all of them of one chunk) to the first.
  auto fold = [&](const Expr& at, int64_t count) {
    for (int64_t n = count; n > 1;) {
      const int64_t half = up(n, 2);
      b.binary(p.op, f32, ub(at), ub(at), ub(at + half * 64), (n - half) * kC0);
      n = half;
    }
  };
  // A ragged share: the last cores have fewer blocks, or none.
  auto image = [&](const Expr& n) {
    b.loop(clamp(0, p.turns, Expr(p.blocks) - first), [&](const Expr& turn) {
      const Expr block = first + turn, slot = turn % 2;
      auto chunk = [&](const Expr& c, int64_t count, const Expr& from, bool begins) {
        loaded.begin_write(from);
        b.copy(ub(from * (all * s) + x.load),
               gm(in, (n * p.blocks + block) * (p.positions * kC0 * s) + c * (all * s)), count * kC0 * s);
        loaded.end_write(from);
        loaded.begin_read(from);
        const Expr at = from * (all * s) + x.load;
        if (s == 2)
          b.cast(f16, f32, REGIE_TILE_RINT, ub(x.wide), ub(at), count * kC0);
        else
          b.unary(REGIE_TILE_COPY, f32, ub(x.wide), ub(at), count * kC0);
        loaded.end_read(from);
        fold(x.wide, count);
        if (begins)
          b.unary(REGIE_TILE_COPY, f32, ub(x.sum), ub(x.wide), kC0);
        else
          b.binary(p.op, f32, ub(x.sum), ub(x.sum), ub(x.wide), kC0);
      };
      const int64_t last = p.positions - (chunks - 1) * p.chunk;
      if (chunks == 1) {
        chunk(0, last, slot, true);
      } else {
        chunk(0, p.chunk, 0, true);
        if (chunks > 2) b.loop(chunks - 2, [&](const Expr& c) { chunk(c + 1, p.chunk, 1 - (c % 2), false); });
        chunk(chunks - 1, last, (chunks - 1) % 2, false);
      }
      if (p.factor != 1) b.binary_scalar(REGIE_TILE_MUL, f32, ub(x.sum), ub(x.sum), scalar(p.factor), kC0);
      results.begin_write(slot);
      const Place result = ub(slot * (kC0 * 4) + x.result);
      if (out_s == 2)
        b.cast(f32, f16, REGIE_TILE_RINT, result, ub(x.sum), kC0);
      else
        b.unary(REGIE_TILE_COPY, f32, result, ub(x.sum), kC0);
      results.end_write(slot);
      results.begin_read(slot);
      b.copy(gm(out, n * (channels * out_s) + block * (kC0 * out_s)), result,
             p.channels ? clamp(0, kC0 * out_s, Expr(channels * out_s) - block * (kC0 * out_s))
                        : Expr(kC0 * out_s));
      results.end_read(slot);
    });
  };
  if (p.batch == 1)
    image(0);
  else
    b.loop(p.batch, image);
  loaded.close();
  results.close();
  return b.finish();
}

// Are exactly the positions reduced, and do their axes stay? (Else the result's channels are elsewhere.)
void check_axes(const Request& r, const regie_tensor& x) {
  if (r.op == "GlobalAveragePool" || r.op == "GlobalMaxPool") return;
  std::vector<int64_t> axes = reduced_axes(r, x.rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (static_cast<int32_t>(axes.size()) != x.rank - 2 || axes.front() != 2 || axes.back() != x.rank - 1)
    refuse("it reduces other axes than the positions");
}

}  // namespace

Lowered lower_blocked_reduction(const Request& r) {
  const regie_tensor &x = r.need(0), &y = r.results[0];
  if (!is_float(x.elem) || !is_float(y.elem)) refuse("elements other than f32 and f16");
  if (!is_blocked(r.operand_format(0)) || is_blocked(r.result_format(0)))
    refuse("its operand is to lie in blocks of channels, its result row-major");
  check_axes(r, x);
  Reduction p;
  p.in = x.elem;
  p.out = y.elem;
  if (x.dims[1] % kC0) {
    p.batch = x.dims[0];
    p.blocks = up(x.dims[1], kC0);
    p.channels = x.dims[1];
  } else {
    p.blocks = x.dims[0] * x.dims[1] / kC0;
  }
  for (int32_t d = 2; d < x.rank; ++d) p.positions *= x.dims[d];
  const bool largest = r.op == "GlobalMaxPool" || r.op == "ReduceMax";
  p.op = largest ? REGIE_TILE_MAX : r.op == "ReduceMin" ? REGIE_TILE_MIN : REGIE_TILE_ADD;
  if (r.op == "GlobalAveragePool" || r.op == "ReduceMean") p.factor = 1.0f / static_cast<float>(p.positions);
  p.chunk = std::min<int64_t>(p.positions, 512);
  if (const int64_t used = place(p).used; used > r.chip.sizes.ub)
    throw Overflow("its tiles need", used, r.chip);
  p.turns = up(p.blocks, r.chip.cores);
  p.parts = up(p.blocks, p.turns);
  Lowered out;
  out.name = "vector " + std::string(r.op) + " of NC1HWC0";
  out.cycles = cycles_of(p, r.chip);
  out.write = [p, chip = r.chip] {
    Written w;
    w.program = write(p, chip);
    return w;
  };
  return out;
}

}  // namespace aicore
