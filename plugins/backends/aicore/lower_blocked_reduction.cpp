// Pooling over all positions of a tensor in blocks of 16 channels: blocks are shared out between the cores,
// and the positions of one where there are fewer blocks than cores. Positions are added up, or compared,
// piece onto piece, and then half onto half; what cores found of one block meets in the launch's scratch.
#include <algorithm>
#include <limits>
#include <optional>

#include "channel.h"
#include "lower.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Reduction {
  uint8_t op = REGIE_TILE_ADD;
  float factor = 1;
  int64_t channels = 0;  // of one image, where they do not fill the last of its `blocks`; `batch` are images
  int64_t batch = 1, blocks = 1, positions = 1;
  regie_elem in = REGIE_F32, out = REGIE_F32;
  // Positions of a piece; cores that have blocks, and blocks of one; cores that share a block, and pieces of
  // one.
  int64_t chunk = 1, parts = 1, turns = 1, segments = 1, pieces_each = 1;
  double cycles = 0;
  int64_t pieces() const { return up(positions, chunk); }
  uint64_t scratch_bytes() const {
    return segments == 1 ? 0 : static_cast<uint64_t>(batch * blocks * segments * kC0 * 4);
  }
};

struct Places {
  int64_t load = 0, wide = 0, sum = 0, found = 0, result = 0, used = 0;
};
Places place(const Reduction& p) {
  Room room(0);
  Places x;
  x.load = room.take(2 * p.chunk * kC0 * size_of(p.in));
  x.wide = size_of(p.in) == 2 ? room.take(p.chunk * kC0 * 4) : 0;
  x.sum = room.take(p.chunk * kC0 * 4);
  x.found = room.take(p.segments == 1 ? 0 : p.segments * kC0 * 4);
  x.result = room.take(2 * kC0 * 4);
  x.used = room.used();
  return x;
}

int64_t folds_of(int64_t count) {
  int64_t folds = 0;
  for (int64_t n = count; n > 1; n = up(n, 2)) ++folds;
  return folds;
}

double cycles_of(const Reduction& p, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency,
               s = static_cast<double>(size_of(p.in)), e = static_cast<double>(p.chunk * kC0);
  const double all = static_cast<double>(p.batch * p.blocks * p.positions * kC0) * s;
  PipeCycles turn;
  turn[REGIE_TILE_LOAD] = h.load_start + e * s / chip.read_rate(p.parts * p.segments, all);
  const double instructions = size_of(p.in) == 2 ? 2 : 1;
  turn[REGIE_TILE_VECTOR] = instructions * (h.vector_start + e * 4 / lanes);
  for (double& b : turn.busy) b += 4 * h.flag_cycles;
  // Begin, half onto half, and the rest of a block.
  const double block = (static_cast<double>(folds_of(p.chunk)) + 3) * h.vector_start + 2 * e * 4 / lanes;
  const double gather =
      p.segments == 1
          ? 0
          : h.load_start + h.l2_latency + (static_cast<double>(folds_of(p.segments)) + 1) * h.vector_start;
  const auto blocks = static_cast<double>(p.batch * p.turns), pieces = static_cast<double>(p.pieces_each);
  return turn.sum() + h.l2_latency + (blocks * pieces - 1) * turn.longest() + blocks * (block + gather) +
         h.store_start + h.l2_latency +
         (p.segments == 1 ? 0 : h.barrier_cycles + h.store_start + h.l2_latency);
}

// The quickest way to share it out.
void share_out(Reduction& p, const Chip& chip) {
  std::optional<Reduction> best;
  int64_t least = 0;
  const int64_t cores = chip.cores;
  for (int64_t segments = 1; segments <= std::min(cores, up(p.positions, 16)); ++segments)
    for (int64_t each : {1, 2, 4, 8, 0}) {  // 0: by whole pieces of 512
      Reduction t = p;
      t.chunk = std::min<int64_t>(each ? up(p.positions, segments * each) : 512,
                                  std::min<int64_t>(p.positions, 512));
      t.pieces_each = up(t.pieces(), segments);
      t.segments = up(t.pieces(), t.pieces_each);
      t.turns = up(p.blocks, std::min(p.blocks, cores / t.segments));
      t.parts = up(p.blocks, t.turns);
      const int64_t used = place(t).used;
      if (!least || used < least) least = used;
      if (used > chip.sizes.ub) continue;
      t.cycles = cycles_of(t, chip);
      if (!best || t.cycles < best->cycles) best = t;
    }
  if (!best) throw Overflow("its tiles need", least, chip);
  p = *best;
}

Program write(const Reduction& p, const Chip& chip) {
  constexpr uint8_t f16 = REGIE_TILE_F16, f32 = REGIE_TILE_F32;
  const int64_t s = size_of(p.in), out_s = size_of(p.out), all = p.chunk * kC0, S = p.segments;
  const Places x = place(p);
  Builder b(static_cast<uint32_t>(p.parts * S), chip.sizes);
  const uint32_t in = b.operand(0, static_cast<uint64_t>(p.batch * p.blocks * p.positions * kC0 * s));
  const int64_t channels = p.channels ? p.channels : p.blocks * kC0;  // of the result, for each image
  const uint32_t out = b.result(0, static_cast<uint64_t>(p.batch * channels * out_s));
  const uint32_t scratch = S == 1 ? 0 : b.scratch(0, p.scratch_bytes());
  Flags flags;
  Channel loaded(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
      results(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr core = b.core();
  const Expr part = p.parts == 1 ? Expr(0) : core / S, segment = S == 1 ? Expr(0) : core % S;
  const Expr first = part * p.turns, first_piece = segment * p.pieces_each;
  // Folds `count` positions at `at` to the first.
  auto fold = [&](int64_t at, int64_t count) {
    for (int64_t n = count; n > 1;) {
      const int64_t half = up(n, 2);
      b.binary(p.op, f32, ub(at), ub(at), ub(at + half * 64), (n - half) * kC0);
      n = half;
    }
  };
  const float neutral = p.op == REGIE_TILE_ADD   ? 0.0f
                        : p.op == REGIE_TILE_MAX ? -std::numeric_limits<float>::infinity()
                                                 : std::numeric_limits<float>::infinity();
  // To one position at x.sum, of the pieces of this core.
  auto sum_up = [&](const Expr& item, const Expr& turn_slot) {
    const bool one = p.pieces() == 1;  // that need not meet another
    if (!one) b.fill(ub(x.sum), f32, scalar(neutral), all);
    b.loop(clamp(0, p.pieces_each, Expr(p.pieces()) - first_piece), [&](const Expr& i) {
      // Of single pieces those of two blocks take turns.
      const Expr piece = first_piece + i, slot = p.pieces_each == 1 ? turn_slot : i % 2,
                 at = slot * (all * s) + x.load;
      const Expr n = clamp(0, all, Expr(p.positions * kC0) - piece * all);
      loaded.begin_write(slot);
      b.copy(ub(at), gm(in, item * (p.positions * kC0 * s) + piece * (all * s)), n * s);
      loaded.end_write(slot);
      loaded.begin_read(slot);
      if (s == 2) b.cast(f16, f32, REGIE_TILE_RINT, ub(one ? x.sum : x.wide), ub(at), n);
      if (!one)
        b.binary(p.op, f32, ub(x.sum), ub(x.sum), s == 2 ? ub(x.wide) : ub(at), n);
      else if (s == 4)
        b.unary(REGIE_TILE_COPY, f32, ub(x.sum), ub(at), n);
      loaded.end_read(slot);
    });
    fold(x.sum, p.chunk);
  };
  auto give = [&](const Expr& n, const Expr& block, const Expr& slot, int64_t sum) {
    if (p.factor != 1) b.binary_scalar(REGIE_TILE_MUL, f32, ub(sum), ub(sum), scalar(p.factor), kC0);
    results.begin_write(slot);
    const Place result = ub(slot * (kC0 * 4) + x.result);
    if (out_s == 2)
      b.cast(f32, f16, REGIE_TILE_RINT, result, ub(sum), kC0);
    else
      b.unary(REGIE_TILE_COPY, f32, result, ub(sum), kC0);
    results.end_write(slot);
    results.begin_read(slot);
    b.copy(gm(out, n * (channels * out_s) + block * (kC0 * out_s)), result,
           p.channels ? clamp(0, kC0 * out_s, Expr(channels * out_s) - block * (kC0 * out_s))
                      : Expr(kC0 * out_s));
    results.end_read(slot);
  };
  // A ragged share: the last cores have fewer blocks, or none.
  auto blocks = [&](auto&& body) {
    auto image = [&](const Expr& n) {
      b.loop(clamp(0, p.turns, Expr(p.blocks) - first),
             [&](const Expr& turn) { body(n, first + turn, turn % 2); });
    };
    if (p.batch == 1)
      image(0);
    else
      b.loop(p.batch, image);
  };
  if (S == 1) {
    blocks([&](const Expr& n, const Expr& block, const Expr& slot) {
      sum_up(n * p.blocks + block, slot);
      give(n, block, slot, x.sum);
    });
  } else {
    blocks([&](const Expr& n, const Expr& block, const Expr& slot) {
      const Expr item = n * p.blocks + block;
      sum_up(item, slot);
      const Place found = ub(slot * (kC0 * 4) + x.result);
      results.begin_write(slot);
      b.unary(REGIE_TILE_COPY, f32, found, ub(x.sum), kC0);
      results.end_write(slot);
      results.begin_read(slot);
      b.copy(gm(scratch, item * (S * kC0 * 4) + segment * (kC0 * 4)), found, kC0 * 4);
      results.end_read(slot);
    });
    b.barrier();
    Channel gathered(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 1);
    b.loop(clamp(0, 1, Expr(1) - segment), [&](const Expr&) {
      blocks([&](const Expr& n, const Expr& block, const Expr& slot) {
        gathered.begin_write(0);
        b.copy(ub(x.found), gm(scratch, (n * p.blocks + block) * (S * kC0 * 4)), S * kC0 * 4);
        gathered.end_write(0);
        gathered.begin_read(0);
        fold(x.found, S);
        give(n, block, slot, x.found);
        gathered.end_read(0);
      });
    });
    gathered.close();
  }
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
  share_out(p, r.chip);
  Lowered out;
  out.name = "vector " + std::string(r.op) + " of NC1HWC0";
  out.cycles = p.cycles;
  out.write = [p, chip = r.chip] {
    Written w;
    w.program = write(p, chip);
    w.scratch_bytes = p.scratch_bytes();
    return w;
  };
  return out;
}

}  // namespace aicore
