#include "long_rows.h"

#include <algorithm>
#include <limits>

#include "channel.h"

namespace aicore {

namespace {

using namespace regie::tile;

bool is_softmax(const Rows& p) { return p.kind == RowsKind::kSoftmax || p.kind == RowsKind::kLogSoftmax; }
// Numbers that are kept of a piece: a sum or extreme; maximum and sum of exponentials; sum and squares about
// the piece's own mean.
int64_t kept(const Rows& p) { return p.reduces() ? 1 : 2; }
bool casts_scale(const Rows& p) {
  return p.kind == RowsKind::kNormalise && p.bytes_of(p.scale_elem) == 2 &&
         (p.scale != REGIE_NONE || p.bias != REGIE_NONE);
}

struct Places {
  int64_t load = 0, scale = 0, bias = 0, value = 0, wide = 0, out = 0;
  // One f32 for each piece: of this core's share (`own`) and of the whole row, kind by kind.
  int64_t own = 0, own_pitch = 0, all = 0, all_pitch = 0, inverse = 0;
  int64_t first = 0, second = 0;  // what a row is computed with
  int64_t used = 0;
};
Places place(const Rows& p, const LongRowsCut& c) {
  const int64_t e = c.chunk, scale_s = p.bytes_of(p.scale_elem);
  Room r(0);
  Places x;
  x.load = r.take(2 * e * size_of(p.elem));
  if (p.scale != REGIE_NONE) x.scale = r.take(2 * e * scale_s);
  if (p.bias != REGIE_NONE) x.bias = r.take(2 * e * scale_s);
  x.value = r.take(e * 4);
  x.wide = casts_scale(p) ? r.take(e * 4) : 0;
  x.out = r.take(p.reduces() ? 64 : 2 * e * p.bytes_of(p.out_elem));
  x.own_pitch = round_up(c.turns * 4, kBlock);
  x.all_pitch = round_up(c.pieces * 4, kBlock);
  x.own = r.take(kept(p) * x.own_pitch);
  x.all = c.shared() ? r.take(kept(p) * x.all_pitch) : x.own;
  if (!c.shared()) x.all_pitch = x.own_pitch;
  x.inverse = p.kind == RowsKind::kNormalise ? r.take(c.pieces * 4) : 0;
  x.first = r.take(4);
  x.second = r.take(4);
  x.used = r.used();
  return x;
}

double cycles_of(const Rows& p, const LongRowsCut& c, const Chip& chip) {
  const auto& h = chip.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency,
               e = static_cast<double>(c.chunk), s = static_cast<double>(size_of(p.elem)),
               out_s = static_cast<double>(p.bytes_of(p.out_elem));
  const double count = static_cast<double>(p.rows * p.width);
  const double all = count * s + (p.reduces() ? static_cast<double>(p.rows) : count) * out_s;
  const int64_t cores = c.cores();
  const double load = h.load_start + in_blocks(1, c.chunk * size_of(p.elem), p.width * size_of(p.elem)) /
                                         chip.read_rate(cores, all);
  const double wide = p.elem == REGIE_F16;
  PipeCycles learn, apply;
  learn[REGIE_TILE_LOAD] = load;
  const double exponentials = is_softmax(p) ? h.slow_passes : 0;
  const double passes = is_softmax(p) ? 5 + exponentials : p.kind == RowsKind::kNormalise ? 6 : 2;
  const double learnt = is_softmax(p) ? 5 : p.kind == RowsKind::kNormalise ? 5 : 1;
  learn[REGIE_TILE_VECTOR] = (passes + wide) * e * 4 / lanes + (learnt + wide) * h.vector_start;
  if (!p.reduces()) {
    const int64_t scales = (p.scale != REGIE_NONE) + (p.bias != REGIE_NONE);
    const double parameters = static_cast<double>(scales), casts = casts_scale(p) ? parameters : 0,
                 narrow = out_s == 2;
    const double scale_s = static_cast<double>(p.bytes_of(p.scale_elem));
    apply[REGIE_TILE_LOAD] = load + parameters * (h.load_start + e * scale_s / chip.read_rate(cores, all));
    const double through = 2 + (p.kind == RowsKind::kSoftmax ? exponentials : 0) + parameters + casts;
    apply[REGIE_TILE_VECTOR] =
        (through + wide + narrow) * e * 4 / lanes + (3 + wide + narrow + parameters + casts) * h.vector_start;
    apply[REGIE_TILE_STORE] =
        h.store_start + in_blocks(1, c.chunk * p.bytes_of(p.out_elem), p.width * p.bytes_of(p.out_elem)) /
                            chip.write_rate(cores, all);
  }
  for (double& b : learn.busy) b += 4 * h.flag_cycles;
  for (double& b : apply.busy) b += 4 * h.flag_cycles;
  // The numbers of a row together: few elements, a handful of instructions.
  const double conclude = (p.reduces()     ? 3
                           : is_softmax(p) ? 6
                                           : 11) *
                          (h.vector_start + static_cast<double>(c.pieces) * 4 / lanes);
  const auto rows = static_cast<double>(c.row_turns), turns = static_cast<double>(c.turns);
  // Loads of the second pass begin while the first one still computes.
  double cycles = h.l2_latency + learn.sum() + (rows * turns - 1) * learn.longest() + rows * conclude +
                  h.store_start + h.l2_latency;
  if (!p.reduces()) cycles += apply.sum() + (rows * turns - 1) * apply.longest() - h.store_start;
  if (c.shared())
    cycles += rows * (h.store_start + h.load_start + 4 * h.flag_cycles) + 2 * h.l2_latency + h.barrier_cycles;
  return cycles;
}

// What is written down, with all that its parts use.
class Emitter {
 public:
  Emitter(const Rows& p, const LongRowsCut& c, Builder& b, const LongRowsBuffers& g)
      : p_(p),
        c_(c),
        b_(b),
        g_(g),
        x_(place(p, c)),
        loaded_(b, flags_, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2),
        results_(b, flags_, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2) {
    if (!c.shared()) return;
    told_.emplace(b, flags_, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 1);
    gathered_.emplace(b, flags_, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 1);
  }

  void run() {
    if (p_.kind == RowsKind::kNormalise) {
      const int64_t last = p_.width - (c_.pieces - 1) * c_.chunk;
      if (c_.pieces > 1)
        b_.fill(ub(x_.inverse), kF32, scalar(1.0f / static_cast<float>(c_.chunk)), c_.pieces - 1);
      b_.fill(ub(x_.inverse + (c_.pieces - 1) * 4), kF32, scalar(1.0f / static_cast<float>(last)), 1);
    }
    const Expr core = b_.core();
    const Expr part = c_.segments == 1 ? core : core / c_.segments, segment = c_.segments == 1 ? Expr(0)
                                                                              : c_.row_parts == 1
                                                                                  ? core
                                                                                  : core % c_.segments;
    first_ = segment * c_.turns;
    own_pieces_ = clamp(0, c_.turns, Expr(c_.pieces) - first_);
    const Expr first_row = c_.row_parts == 1 ? Expr(0) : part * c_.row_turns;
    auto rows = [&](auto&& body) {
      b_.loop(clamp(0, c_.row_turns, Expr(p_.rows) - first_row),
              [&](const Expr& r) { body(first_row + r, r % 2); });
    };
    if (!c_.shared()) {
      rows([&](const Expr& row, const Expr& slot) {
        learn(row, slot);
        conclude();
        finish(row, slot);
      });
    } else {
      rows([&](const Expr& row, const Expr& slot) {
        told_->begin_write(0);
        learn(row, slot);
        told_->end_write(0);
        told_->begin_read(0);
        for (int64_t i = 0; i < kept(p_); ++i)
          b_.copy(gm(g_.scratch, (row * (kept(p_) * c_.pieces) + i * c_.pieces + first_) * 4),
                  ub(x_.own + i * x_.own_pitch), own_pieces_ * 4);
        told_->end_read(0);
      });
      b_.barrier();
      // Of a row that has one result the first of its cores makes it.
      const Expr mine = p_.reduces() ? clamp(0, 1, Expr(1) - segment) : Expr(1);
      b_.loop(mine, [&](const Expr&) {
        rows([&](const Expr& row, const Expr& slot) {
          gathered_->begin_write(0);
          b_.copy(ub(x_.all), gm(g_.scratch, row * (kept(p_) * c_.pieces * 4)), c_.pieces * 4,
                  {kept(p_), x_.all_pitch, c_.pieces * 4});
          gathered_->end_write(0);
          gathered_->begin_read(0);
          conclude();
          gathered_->end_read(0);
          finish(row, slot);
        });
      });
      told_->close();
      gathered_->close();
    }
    loaded_.close();
    results_.close();
  }

 private:
  static constexpr uint8_t kF16 = REGIE_TILE_F16, kF32 = REGIE_TILE_F32;

  Expr length(const Expr& piece) const { return clamp(0, c_.chunk, Expr(p_.width) - piece * c_.chunk); }
  // This core's pieces of a row, as f32 at `v`; `parameters`: with scale and bias.
  template <class Body>
  void pieces(const Expr& row, const Expr& row_slot, bool parameters, Body&& body) {
    const int64_t s = size_of(p_.elem), scale_s = p_.bytes_of(p_.scale_elem), e = c_.chunk;
    b_.loop(own_pieces_, [&](const Expr& turn) {
      // Of single pieces those of two rows take turns.
      const Expr piece = first_ + turn, slot = c_.turns == 1 ? row_slot : turn % 2, n = length(piece);
      loaded_.begin_write(slot);
      b_.copy(ub(slot * (e * s) + x_.load), gm(g_.in, row * (p_.width * s) + piece * (e * s)), n * s);
      const Expr scale = slot * (e * scale_s) + x_.scale, bias = slot * (e * scale_s) + x_.bias;
      if (parameters && p_.scale != REGIE_NONE)
        b_.copy(ub(scale), gm(g_.scale, piece * (e * scale_s)), n * scale_s);
      if (parameters && p_.bias != REGIE_NONE)
        b_.copy(ub(bias), gm(g_.bias, piece * (e * scale_s)), n * scale_s);
      loaded_.end_write(slot);
      loaded_.begin_read(slot);
      Expr v = slot * (e * s) + x_.load;
      if (s == 2) {
        b_.cast(kF16, kF32, REGIE_TILE_RINT, ub(x_.value), ub(v), n);
        v = x_.value;
      }
      body(turn, piece, slot, v, n, scale, bias);
      loaded_.end_read(slot);
    });
  }

  void learn(const Expr& row, const Expr& row_slot) {
    pieces(row, row_slot, false,
           [&](const Expr& turn, const Expr& piece, const Expr&, const Expr& v, const Expr& n, const Expr&,
               const Expr&) {
             const Place one = ub(turn * 4 + x_.own), two = ub(turn * 4 + (x_.own + x_.own_pitch));
             switch (p_.kind) {
               case RowsKind::kSoftmax:
               case RowsKind::kLogSoftmax:
                 // Where a mask has taken out a whole piece its maximum is minus infinity, less which nothing
                 // can be taken.
                 b_.reduce(REGIE_TILE_ROW_MAX, kF32, one, ub(v), n);
                 b_.binary_scalar(REGIE_TILE_MAX, kF32, one, one,
                                  scalar(std::numeric_limits<float>::lowest()), 1);
                 b_.binary_row(REGIE_TILE_SUB, kF32, ub(x_.value), ub(v), one, n);
                 b_.unary(REGIE_TILE_EXP, kF32, ub(x_.value), ub(x_.value), n);
                 b_.reduce(REGIE_TILE_SUM, kF32, two, ub(x_.value), n);
                 break;
               case RowsKind::kNormalise:
                 b_.reduce(REGIE_TILE_SUM, kF32, one, ub(v), n);
                 b_.binary(REGIE_TILE_MUL, kF32, ub(x_.first), one, ub(piece * 4 + x_.inverse), 1);
                 b_.binary_row(REGIE_TILE_SUB, kF32, ub(x_.value), ub(v), ub(x_.first), n);
                 b_.binary(REGIE_TILE_MUL, kF32, ub(x_.value), ub(x_.value), ub(x_.value), n);
                 b_.reduce(REGIE_TILE_SUM, kF32, two, ub(x_.value), n);
                 break;
               default:
                 b_.reduce(extreme(), kF32, one, ub(v), n);
             }
           });
  }
  uint8_t extreme() const {
    return p_.kind == RowsKind::kMax   ? REGIE_TILE_ROW_MAX
           : p_.kind == RowsKind::kMin ? REGIE_TILE_ROW_MIN
                                       : REGIE_TILE_SUM;
  }

  // From the numbers of a row's pieces to `first` and `second`.
  void conclude() {
    const Place one = ub(x_.all), two = ub(x_.all + x_.all_pitch), first = ub(x_.first),
                second = ub(x_.second);
    const int64_t n = c_.pieces;
    const float one_of = 1.0f / static_cast<float>(p_.width);
    switch (p_.kind) {
      case RowsKind::kSoftmax:
      case RowsKind::kLogSoftmax:
        b_.reduce(REGIE_TILE_ROW_MAX, kF32, first, one, n);
        b_.binary_row(REGIE_TILE_SUB, kF32, one, one, first, n);
        b_.unary(REGIE_TILE_EXP, kF32, one, one, n);
        b_.binary(REGIE_TILE_MUL, kF32, one, one, two, n);
        b_.reduce(REGIE_TILE_SUM, kF32, second, one, n);
        b_.unary(p_.kind == RowsKind::kSoftmax ? REGIE_TILE_REC : REGIE_TILE_LN, kF32, second, second, 1);
        break;
      case RowsKind::kNormalise:
        // Squares about the row's mean: those about each piece's, and what the means differ by as often as
        // the piece has elements.
        b_.reduce(REGIE_TILE_SUM, kF32, first, one, n);
        b_.binary_scalar(REGIE_TILE_MUL, kF32, first, first, scalar(one_of), 1);
        b_.binary(REGIE_TILE_MUL, kF32, one, one, ub(x_.inverse), n);
        b_.binary_row(REGIE_TILE_SUB, kF32, one, one, first, n);
        b_.binary(REGIE_TILE_MUL, kF32, one, one, one, n);
        b_.binary(REGIE_TILE_DIV, kF32, one, one, ub(x_.inverse), n);
        b_.binary(REGIE_TILE_ADD, kF32, one, one, two, n);
        b_.reduce(REGIE_TILE_SUM, kF32, second, one, n);
        b_.binary_scalar(REGIE_TILE_MUL, kF32, second, second, scalar(one_of), 1);
        b_.binary_scalar(REGIE_TILE_ADD, kF32, second, second, scalar(p_.epsilon), 1);
        b_.unary(REGIE_TILE_RSQRT, kF32, second, second, 1);
        break;
      default:
        b_.reduce(extreme(), kF32, first, one, n);
        if (p_.kind == RowsKind::kMean)
          b_.binary_scalar(REGIE_TILE_MUL, kF32, first, first, scalar(one_of), 1);
    }
  }

  // `n` elements of f32 to where the store takes them.
  void hand_on(const Expr& to, const Expr& from, const Expr& n) {
    if (p_.bytes_of(p_.out_elem) == 2)
      b_.cast(kF32, kF16, REGIE_TILE_RINT, ub(to), ub(from), n);
    else
      b_.unary(REGIE_TILE_COPY, kF32, ub(to), ub(from), n);
  }

  void finish(const Expr& row, const Expr& row_slot) {
    const int64_t out_s = p_.bytes_of(p_.out_elem), e = c_.chunk;
    if (p_.reduces()) {
      results_.begin_write(row_slot);
      hand_on(row_slot * 32 + x_.out, x_.first, 1);
      results_.end_write(row_slot);
      results_.begin_read(row_slot);
      b_.copy(gm(g_.out, row * out_s), ub(row_slot * 32 + x_.out), out_s);
      results_.end_read(row_slot);
      return;
    }
    const int64_t scale_s = p_.bytes_of(p_.scale_elem);
    pieces(row, row_slot, true,
           [&](const Expr&, const Expr& piece, const Expr& slot, const Expr& v, const Expr& n,
               const Expr& scale, const Expr& bias) {
             results_.begin_write(slot);
             const Expr to = slot * (e * out_s) + x_.out;
             // The last instruction writes f32 where the store takes it.
             const Place value = ub(x_.value), last = out_s == 2 ? value : ub(to);
             b_.binary_row(REGIE_TILE_SUB, kF32, value, ub(v), ub(x_.first), n);
             if (p_.kind == RowsKind::kSoftmax) b_.unary(REGIE_TILE_EXP, kF32, value, value, n);
             const bool parameters = p_.scale != REGIE_NONE || p_.bias != REGIE_NONE;
             b_.binary_row(p_.kind == RowsKind::kLogSoftmax ? REGIE_TILE_SUB : REGIE_TILE_MUL, kF32,
                           parameters ? value : last, value, ub(x_.second), n);
             auto parameter = [&](uint8_t op, const Expr& at, const Place& result) {
               if (scale_s == 2) b_.cast(kF16, kF32, REGIE_TILE_RINT, ub(x_.wide), ub(at), n);
               b_.binary(op, kF32, result, value, ub(scale_s == 2 ? Expr(x_.wide) : at), n);
             };
             if (p_.scale != REGIE_NONE)
               parameter(REGIE_TILE_MUL, scale, p_.bias != REGIE_NONE ? value : last);
             if (p_.bias != REGIE_NONE) parameter(REGIE_TILE_ADD, bias, last);
             if (out_s == 2) b_.cast(kF32, kF16, REGIE_TILE_RINT, ub(to), value, n);
             results_.end_write(slot);
             results_.begin_read(slot);
             b_.copy(gm(g_.out, row * (p_.width * out_s) + piece * (e * out_s)), ub(to), n * out_s);
             results_.end_read(slot);
           });
  }

  const Rows& p_;
  const LongRowsCut& c_;
  Builder& b_;
  const LongRowsBuffers g_;
  const Places x_;
  Flags flags_;
  Channel loaded_, results_;
  std::optional<Channel> told_, gathered_;
  Expr first_ = 0, own_pieces_ = 1;
};

}  // namespace

std::optional<LongRowsCut> cut_long_rows(const Rows& p, const Chip& chip) {
  std::optional<LongRowsCut> best;
  if (p.any_matrix()) return best;
  const int64_t cores = chip.cores, most = up(p.width, 16);
  for (int64_t segments = 1; segments <= std::min(cores, most); ++segments) {
    // More turns than needed let loads run under the vector unit's work.
    int found = 0;
    for (int64_t turns = 1; found < 4 && segments * turns <= most * 2;
         turns = turns < 4 ? turns + 1 : turns * 5 / 4) {
      LongRowsCut c;
      c.chunk = round_up(up(p.width, segments * turns), 16);
      c.pieces = up(p.width, c.chunk);
      c.segments = segments;
      c.turns = up(c.pieces, segments);
      c.segments = up(c.pieces, c.turns);
      c.row_turns = up(p.rows, std::min(p.rows, cores / c.segments));
      c.row_parts = up(p.rows, c.row_turns);
      if (place(p, c).used > chip.sizes.ub) continue;
      ++found;
      c.cycles = cycles_of(p, c, chip);
      if (!best || c.cycles < best->cycles) best = c;
    }
  }
  return best;
}

uint64_t long_rows_scratch(const Rows& p, const LongRowsCut& c) {
  return c.shared() ? static_cast<uint64_t>(p.rows * kept(p) * c.pieces * 4) : 0;
}

void emit_long_rows(const Rows& p, const LongRowsCut& c, Builder& b, const LongRowsBuffers& g) {
  Emitter(p, c, b, g).run();
}

}  // namespace aicore
