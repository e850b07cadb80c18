// Writes the program of a CubePlan. Counts on chip are those of whole tiles everywhere; only what goes to or
// comes from global memory is cut to what there is, so that ragged edges cost no branches.
#include <functional>
#include <optional>

#include "channel.h"
#include "cube.h"

namespace aicore {

namespace {

using namespace regie::tile;

constexpr uint8_t kLoad = REGIE_TILE_LOAD, kMove = REGIE_TILE_MOVE, kCube = REGIE_TILE_CUBE,
                  kVector = REGIE_TILE_VECTOR, kStore = REGIE_TILE_STORE;

class Emitter {
 public:
  Emitter(const CubeProblem& problem, const CubePlan& plan, Builder& builder, const CubeBuffers& g)
      : p_(problem),
        t_(plan),
        b_(builder),
        es_(problem.element_bytes()),
        left_(g.left),
        right_(g.right),
        bias_(g.bias),
        residual_(g.residual),
        result_(g.result) {
    const CubeProblem& p = problem;
    const Expr core = b_.core();
    part_n_ = t_.parts_n == 1 ? Expr(0) : core % t_.parts_n;
    part_m_ = t_.parts_m == 1 ? Expr(0) : core / t_.parts_n % t_.parts_m;
    part_b_ = t_.parts_b == 1 ? Expr(0) : core / (t_.parts_n * t_.parts_m);
    if (p.groups == 1) {
      first_batch_ = part_b_ * t_.turns_batch;
    } else if (p.batch == 1) {
      first_group_ = part_b_ * t_.turns_group;
    } else if (t_.turns_group == p.groups) {
      first_batch_ = part_b_ * t_.turns_batch;
    } else {
      const int64_t parts = p.groups / t_.turns_group;  // of a batch
      if (t_.parts_b > 1) {
        first_batch_ = part_b_ / parts;
        first_group_ = (part_b_ % parts) * t_.turns_group;
      }
    }
  }

  void emit() {
    clear();
    load_bias();
    open();
    if (t_.resident) load_resident();
    // The innermost loop of several turns around tiles of rows loads the next turn's panel while it computes.
    const int inner = t_.turns_m > 1 ? 2 : t_.turns_group > 1 ? 1 : t_.turns_batch > 1 ? 0 : 3;
    Turn turn;
    nest(0, inner, turn);
    for (std::optional<Channel>* c : {&unit_, &panel_, &left_ready_, &right_unit_, &right_panel_,
                                      &right_ready_, &l0_, &sums_, &addend_, &results_})
      if (*c) {
        if (c == &right_ready_ && t_.resident) (*c)->end_read(0);
      }
    for (std::optional<Channel>* c : {&unit_, &panel_, &left_ready_, &right_unit_, &right_panel_,
                                      &right_ready_, &l0_, &sums_, &addend_, &results_})
      if (*c) (*c)->close();
  }

 private:
  struct Turn {
    Expr at[3] = {0, 0, 0};  // batch, group, row tile of this core
    Expr left_slot = 0;
  };

  // --- what there is
  // ---------------------------------------------------------------------------------------------

  Expr batch(const Turn& t) const { return first_batch_ + t.at[0]; }
  Expr group(const Turn& t) const { return first_group_ + t.at[1]; }
  Expr row_tile(const Turn& t) const { return part_m_ * t_.turns_m + t.at[2]; }

  // Bytes on chip that a cut load leaves unwritten must have been written once.
  void clear() {
    auto zero = [&](int64_t at, int64_t bytes) {
      if (bytes) b_.fill(ub(at), REGIE_TILE_F32, scalar(0), bytes / 4);
    };
    bool cleared = false;
    if (p_.convolution) {
      if (p_.in_group % 16 || t_.window * p_.width % t_.pixels || p_.channels % 16) {
        zero(t_.ub_load, 2 * 16 * t_.pixels * es_);
        cleared = true;
      }
    } else {
      if (p_.m % t_.rows || p_.k % t_.unit_columns || t_.parts_m * t_.turns_m * t_.rows > p_.m) {
        zero(t_.ub_load, 2 * t_.unit_rows * t_.unit_columns * es_);
        cleared = true;
      }
      if (!p_.constant_b) {
        zero(t_.ub_right_load, 2 * t_.right_unit_rows * t_.right_unit_columns * es_);
        cleared = true;
      }
    }
    if (residual_ != REGIE_NONE) {
      zero(t_.ub_residual, 2 * q() * es_);
      cleared = true;
    }
    if (bias_ != REGIE_NONE) {
      zero(t_.ub_bias, round_up(static_cast<int64_t>(p_.epilogue.bias_count), 16) * 4 + t_.columns * 64);
      cleared = true;
    }
    if (cleared) {
      const int64_t id = flags_.take(kVector, kLoad, 1);
      b_.set(kVector, kLoad, id);
      b_.wait(kVector, kLoad, id);
    }
  }

  int64_t q() const { return t_.drained * 16 * t_.padded_rows; }

  void load_bias() {
    if (bias_ == REGIE_NONE) return;
    const int64_t n = static_cast<int64_t>(p_.epilogue.bias_count);
    b_.copy(ub(es_ == 2 ? t_.ub_bias_load : t_.ub_bias), gm(bias_, 0), n * es_);
    const int64_t id = flags_.take(kLoad, kVector, 1);
    b_.set(kLoad, kVector, id);
    b_.wait(kLoad, kVector, id);
    if (es_ == 2)
      b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(t_.ub_bias), ub(t_.ub_bias_load), n);
  }

  void open() {
    unit_.emplace(b_, flags_, kLoad, kVector, 2);
    panel_.emplace(b_, flags_, kVector, kStore, 2);
    left_ready_.emplace(b_, flags_, kStore, kMove, t_.left_slots);
    if (p_.constant_b) {
      right_ready_.emplace(b_, flags_, kLoad, kMove, t_.resident ? 1 : 2);
    } else {
      right_unit_.emplace(b_, flags_, kLoad, kVector, 2);
      right_panel_.emplace(b_, flags_, kVector, kStore, 2);
      right_ready_.emplace(b_, flags_, kStore, kMove, 2);
    }
    l0_.emplace(b_, flags_, kMove, kCube, 2);
    sums_.emplace(b_, flags_, kCube, kVector, 2);
    if (residual_ != REGIE_NONE) addend_.emplace(b_, flags_, kLoad, kVector, 2);
    results_.emplace(b_, flags_, kVector, kStore, 2);
  }

  // --- loops
  // ---------------------------------------------------------------------------------------------------------

  void nest(int level, int inner, Turn& turn) {
    const int64_t trips[3] = {t_.turns_batch, t_.turns_group, t_.turns_m};
    if (level == 3) {  // one turn in all
      if (inner == 3) load_left(turn, 0);
      tiles(turn, 0);
      return;
    }
    if (trips[level] == 1) return nest(level + 1, inner, turn);
    if (level != inner) {
      b_.loop(trips[level], [&](const Expr& i) {
        turn.at[level] = i;
        nest(level + 1, inner, turn);
      });
      turn.at[level] = 0;
      return;
    }
    const bool ahead = t_.left_slots == 2;
    if (ahead) {
      turn.at[level] = 0;
      load_left(turn, 0);
    }
    b_.loop(trips[level], [&](const Expr& i) {
      turn.at[level] = i;
      if (ahead) {
        b_.loop(clamp(0, 1, Expr(trips[level] - 1) - i), [&](const Expr&) {
          Turn next = turn;
          next.at[level] = i + 1;
          // (i + 1) % 2, which an expression cannot say.
          load_left(next, 1 - (i % 2));
        });
      } else {
        load_left(turn, 0);
      }
      tiles(turn, ahead ? i % 2 : Expr(0), i % 2);
    });
    turn.at[level] = 0;
  }

  void tiles(const Turn& turn, const Expr& left_slot, const Expr& turn_slot = 0) {
    left_ready_->begin_read(left_slot);
    auto column_tiles = [&](const Expr& c, const Expr& outer) {
      if (t_.turns_n == 1) return tile(turn, left_slot, c, 0, outer);
      b_.loop(t_.turns_n, [&](const Expr& n) { tile(turn, left_slot, c, n, n % 2); });
    };
    if (t_.turns_c == 1)
      column_tiles(0, turn_slot);
    else
      b_.loop(t_.turns_c, [&](const Expr& c) { column_tiles(c, c % 2); });
    left_ready_->end_read(left_slot);
  }

  void tile(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& slot) {
    product(turn, left_slot, c, n, slot);
    way_out(turn, c, n, slot);
  }

  // --- the left panel
  // ------------------------------------------------------------------------------------------------

  // The window of input rows of a tile: where it begins, in one of three cases told by loops of no or one
  // turn.
  struct Window {
    Expr first = 0;  // row of the input that lies first in L1
    Expr top =
        0;  // row, of the window's rows, under the first kernel row of the tile: negative in the padding
  };
  void window(const Expr& tile, const std::function<void(const Window&)>& body) {
    const int64_t step = t_.out_rows * p_.stride_h, last = p_.height - t_.window;
    const Expr y = tile * step - Expr(p_.pad_top);
    if (last == 0 || tile.fixed()) {
      Window w;
      w.first = last == 0 ? Expr(0) : clamp(0, last, y);
      w.top = y - w.first;
      return body(w);
    }
    const int64_t above = up(p_.pad_top, step);            // tiles that begin in the padding
    const int64_t below = (last + p_.pad_top) / step + 1;  // the first that would end beyond the map
    const int64_t tiles = t_.parts_m * t_.turns_m;
    if (above > 0) b_.loop(clamp(0, 1, Expr(above) - tile), [&](const Expr&) { body({0, y}); });
    auto middle = [&] {
      if (below >= tiles) return body({y, 0});
      b_.loop(clamp(0, 1, Expr(below) - tile), [&](const Expr&) { body({y, 0}); });
    };
    if (below > above) {
      if (above == 0)
        middle();
      else
        b_.loop(clamp(0, 1, tile - Expr(above - 1)), [&](const Expr&) { middle(); });
    }
    if (below < tiles)
      b_.loop(clamp(0, 1, tile - Expr(below - 1)), [&](const Expr&) { body({last, y - Expr(last)}); });
  }

  void load_left(const Turn& turn, const Expr& slot) {
    left_ready_->begin_write(slot);
    if (p_.convolution)
      load_map(turn, slot);
    else
      load_panel(left_, es_ * ((p_.a_batched ? batch(turn) : Expr(0)) * (p_.m * p_.k)),
                 row_tile(turn) * t_.rows, p_.m, 0, p_.k, t_.rows, round_up(p_.k, 16), t_.unit_rows,
                 t_.unit_columns, t_.ub_load, t_.ub_panel, *unit_, *panel_,
                 slot * t_.left_bytes + t_.l1_left);
    left_ready_->end_write(slot);
  }

  // A feature map, row-major: 16 channels of some positions at a time become positions of 16 channels.
  void load_map(const Turn& turn, const Expr& slot) {
    const int64_t map = p_.height * p_.width, P = t_.pixels, units = p_.left_blocks() * t_.pixel_chunks;
    const int64_t all = t_.window * p_.width;
    auto unit = [&](const Expr& u) {
      const bool single = t_.pixel_chunks == 1;
      const Expr c1 = single ? u : u / t_.pixel_chunks, chunk = single ? Expr(0) : u % t_.pixel_chunks,
                 s = u % 2;
      const Expr group_channel = p_.groups == 1 ? Expr(0) : group(turn) * p_.in_group;
      const Expr valid = clamp(0, 16, Expr(p_.channels) - group_channel - c1 * 16);
      const Expr bytes = single ? Expr(all * es_) : min(Expr(all * es_) - chunk * (P * es_), P * es_);
      unit_->begin_write(s);
      window(row_tile(turn), [&](const Window& w) {
        const Expr from =
            ((batch(turn) * p_.channels + group_channel + c1 * 16) * map + w.first * p_.width + chunk * P) *
            es_;
        b_.copy(ub(s * (16 * P * es_) + t_.ub_load), gm(left_, from), bytes, {valid, P * es_, map * es_});
      });
      unit_->end_write(s);
      unit_->begin_read(s);
      Expr half = s * (16 * P * es_) + t_.ub_load;
      if (es_ == 4) {
        b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(t_.ub_cast), ub(half), 16 * P);
        half = t_.ub_cast;
      }
      if (p_.channels % 16) {
        // Channels that are not there: zeros, as weights are, so that nothing of an earlier turn is
        // multiplied.
        const Expr missing = clamp(0, 16, c1 * 16 + 16 + group_channel - Expr(p_.channels));
        for (int64_t r = 0; r < 2 && es_ == 2; ++r)
          b_.loop(r == 0 ? Expr(1) - s : s, [&](const Expr&) {
            b_.fill(ub(valid * (P * 2) + (t_.ub_load + r * 32 * P)), REGIE_TILE_F16, 0, P, {missing, P * 2});
          });
        if (es_ == 4) b_.fill(ub(valid * (P * 2) + t_.ub_cast), REGIE_TILE_F16, 0, P, {missing, P * 2});
      }
      panel_->begin_write(s);
      const Expr panel = s * (32 * P) + t_.ub_panel;
      b_.transpose(ub(panel), ub(half), 32, P * 2, {P / 16, 512, 32});
      if (es_ == 4) unit_->end_read(s);
      if (es_ == 2) unit_->end_read(s);
      panel_->end_write(s);
      panel_->begin_read(s);
      b_.copy(l1(slot * t_.left_bytes + t_.l1_left + c1 * t_.plane + chunk * (32 * P)), ub(panel), 32 * P);
      panel_->end_read(s);
    };
    if (units == 1)
      unit(0);
    else
      b_.loop(units, unit);
  }

  // Part of a row-major matrix, `rows` x `columns` from (r0, c0), to L1 as blocks of 16 columns: (column
  // block, row, 16).
  void load_panel(uint32_t buffer, const Expr& base, const Expr& r0, int64_t all_rows, const Expr& c0,
                  int64_t all_columns, int64_t rows, int64_t columns, int64_t unit_rows, int64_t unit_columns,
                  int64_t ub_load, int64_t ub_panel, Channel& unit, Channel& panel, const Expr& to) {
    const int64_t nr = up(rows, unit_rows), nc = up(columns, unit_columns), all = nr * unit_rows;
    auto one = [&](const Expr& u) {
      const Expr r = nc == 1 ? u : u / nc, c = nc == 1 ? Expr(0) : u % nc, s = u % 2;
      const Expr valid_rows = clamp(0, unit_rows, Expr(all_rows) - r0 - r * unit_rows);
      const Expr valid =
          clamp(0, unit_columns * es_, Expr(all_columns * es_) - c0 * es_ - c * (unit_columns * es_));
      unit.begin_write(s);
      b_.copy(ub(s * (unit_rows * unit_columns * es_) + ub_load),
              gm(buffer, base + ((r0 + r * unit_rows) * all_columns + c0 + c * unit_columns) * es_), valid,
              {valid_rows, unit_columns * es_, all_columns * es_});
      unit.end_write(s);
      unit.begin_read(s);
      panel.begin_write(s);
      const Place out = ub(s * (unit_rows * unit_columns * 2) + ub_panel);
      const Place in = ub(s * (unit_rows * unit_columns * es_) + ub_load);
      const Repeat by_row{unit_rows, 32, unit_columns * es_},
          by_block{unit_columns / 16, unit_rows * 32, 16 * es_};
      if (es_ == 4)
        b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, out, in, 16, by_row, by_block);
      else
        b_.unary(REGIE_TILE_COPY, REGIE_TILE_F16, out, in, 16, by_row, by_block);
      unit.end_read(s);
      panel.end_write(s);
      panel.begin_read(s);
      b_.copy(l1(to + r * (unit_rows * 32) + c * (unit_columns / 16 * all * 32)), out, unit_rows * 32,
              {unit_columns / 16, all * 32, unit_rows * 32});
      panel.end_read(s);
    };
    if (nr * nc == 1)
      one(0);
    else
      b_.loop(nr * nc, one);
  }

  // --- the right matrix
  // ----------------------------------------------------------------------------------------------

  Expr column_tile(const Expr& n) const { return part_n_ * t_.turns_n + n; }
  int64_t block() const { return t_.columns * kFractal; }
  Expr packed_from(const Turn& turn, const Expr& n, const Expr& first_k) const {
    const int64_t row = t_.n_tiles * block(), kb = p_.k_blocks();
    const Expr group_k = p_.groups == 1 ? Expr(0) : group(turn) * kb;
    return (group_k + first_k) * row + column_tile(n) * block();
  }

  void load_resident() {
    const int64_t kb = p_.k_blocks();
    right_ready_->begin_write(0);
    for (int64_t n = 0; n < t_.turns_n; ++n)
      b_.copy(l1(t_.l1_right + n * kb * block()), gm(right_, packed_from({}, n, 0)), block(),
              {kb, block(), t_.n_tiles * block()});
    right_ready_->end_write(0);
    right_ready_->begin_read(0);
  }

  // --- the product
  // ---------------------------------------------------------------------------------------------------

  void product(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& slot) {
    sums_->begin_write(slot);
    if (!p_.constant_b) {
      const bool turned = p_.transposed_b;
      right_ready_->begin_write(slot);
      const Expr base = p_.b_batched ? batch(turn) * (p_.k * p_.n * es_) : Expr(0);
      const Expr first = column_tile(n) * (t_.columns * 16);
      load_panel(right_, base, turned ? first : Expr(0), turned ? p_.n : p_.k, turned ? Expr(0) : first,
                 turned ? p_.k : p_.n, turned ? t_.columns * 16 : round_up(p_.k, 16),
                 turned ? round_up(p_.k, 16) : t_.columns * 16, t_.right_unit_rows, t_.right_unit_columns,
                 t_.ub_right_load, t_.ub_right_panel, *right_unit_, *right_panel_,
                 slot * t_.right_bytes + t_.l1_right);
      right_ready_->end_write(slot);
    }
    auto chunk = [&](const Expr& k, const Expr& right_slot) {
      if (p_.constant_b && !t_.resident) {
        right_ready_->begin_write(right_slot);
        b_.copy(l1(right_slot * t_.right_bytes + t_.l1_right), gm(right_, packed_from(turn, n, k * t_.chunk)),
                block(),
                {clamp(0, t_.chunk, Expr(p_.k_blocks()) - k * t_.chunk), block(), t_.n_tiles * block()});
        right_ready_->end_write(right_slot);
      }
      if (!t_.resident) right_ready_->begin_read(right_slot);
      if (t_.steps == 1)
        step(turn, left_slot, c, n, k, 0, right_slot, slot);
      else
        b_.loop(t_.steps, [&](const Expr& s) { step(turn, left_slot, c, n, k, s, right_slot, slot); });
      if (!t_.resident) right_ready_->end_read(right_slot);
    };
    if (t_.chunks == 1)
      chunk(0, slot);
    else
      b_.loop(t_.chunks, [&](const Expr& k) { chunk(k, k % 2); });
    sums_->end_write(slot);
  }

  void step(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& k,
            const Expr& s, const Expr& right_slot, const Expr& slot) {
    const int64_t m1 = t_.padded_rows / 16, kb = p_.k_blocks(), half_a = m1 * t_.step * kFractal,
                  half_b = t_.step * block();
    // Of a single step in a chunk, chunks take turns; else steps.
    const Expr l0 = t_.steps > 1 ? s % 2 : t_.chunks > 1 ? k % 2 : slot;
    const Expr first = k * t_.chunk + s * t_.step;
    // A chunk's last step may reach into the next chunk's blocks only where the chunk is the last.
    const Expr blocks = clamp(0, t_.step, Expr(kb) - first);
    l0_->begin_write(l0);
    const Expr to_a = l0 * half_a, to_b = l0 * half_b;
    if (p_.convolution) {
      window(row_tile(turn), [&](const Window& w) {
        Im2col i;
        i.height = t_.window;
        i.width = p_.width;
        i.top = w.top;
        i.left = -p_.pad_left;
        i.stride_h = p_.stride_h;
        i.stride_w = p_.stride_w;
        i.dilation_h = p_.dilation_h;
        i.dilation_w = p_.dilation_w;
        i.kernel_h = p_.kernel_h;
        i.kernel_w = p_.kernel_w;
        i.out_width = p_.out_width;
        i.first_row = c * t_.rows;
        i.rows = t_.rows;
        i.first_k = first;
        i.k_blocks = blocks;
        i.plane = t_.plane;
        i.row_stride = t_.step * kFractal;
        b_.im2col(l0a(to_a), l1(left_slot * t_.left_bytes + t_.l1_left), REGIE_TILE_F16, i);
      });
    } else {
      b_.fractal(l0a(to_a), l1(left_slot * t_.left_bytes + t_.l1_left + first * (t_.rows * 32)),
                 {m1, t_.step * kFractal, kFractal}, {blocks, kFractal, t_.rows * 32});
    }
    if (p_.constant_b) {
      const Expr from = t_.resident ? n * (kb * block()) + first * block() + t_.l1_right
                                    : right_slot * t_.right_bytes + s * (t_.step * block()) + t_.l1_right;
      b_.fractal(l0b(to_b), l1(from), {t_.columns, kFractal, kFractal}, {blocks, block(), block()});
    } else if (p_.transposed_b) {
      const int64_t rows = round_up(t_.columns * 16, t_.right_unit_rows);
      b_.fractal(l0b(to_b), l1(right_slot * t_.right_bytes + t_.l1_right + first * (rows * 32)),
                 {t_.columns, kFractal, kFractal}, {blocks, block(), rows * 32});
    } else {
      const int64_t rows = round_up(round_up(p_.k, 16), t_.right_unit_rows);
      b_.fractal(l0b(to_b), l1(right_slot * t_.right_bytes + t_.l1_right + first * kFractal),
                 {t_.columns, kFractal, rows * 32}, {blocks, block(), kFractal}, true);
    }
    l0_->end_write(l0);
    l0_->begin_read(l0);
    const int64_t all_k = p_.convolution ? kb * 16 : p_.k;
    b_.mmad(REGIE_TILE_F16, l0c(slot * sums_bytes()), l0a(to_a), l0b(to_b), t_.padded_rows, t_.columns * 16,
            clamp(0, t_.step * 16, Expr(all_k) - first * 16), min(first, 1), m1 * kSums, t_.step * kFractal,
            block());
    l0_->end_read(l0);
  }

  int64_t sums_bytes() const { return t_.padded_rows / 16 * t_.columns * kSums; }

  // --- the way out
  // ---------------------------------------------------------------------------------------------------

  void way_out(const Turn& turn, const Expr& c, const Expr& n, const Expr& slot) {
    sums_->begin_read(slot);
    const int64_t rounds = t_.columns / t_.drained;
    if (rounds == 1)
      round(turn, c, n, 0, slot, slot);
    else
      b_.loop(rounds, [&](const Expr& r) { round(turn, c, n, r, slot, r % 2); });
    sums_->end_read(slot);
  }

  // Where a round's part of the result (and of the residual) lies in global memory.
  struct Part {
    Expr offset = 0, run = 0, runs = 0;  // bytes, bytes, count
    int64_t pitch = 0;                   // bytes from run to run there
    int64_t row = 0;                     // bytes from run to run in UB, for an element of one byte
  };
  Part part(const Turn& turn, const Expr& c, const Expr& n, const Expr& r) const {
    Part x;
    const Expr column = column_tile(n) * (t_.columns * 16) + r * (t_.drained * 16);
    if (p_.convolution) {
      const int64_t map = p_.out_height * p_.out_width;
      const Expr channel = (p_.groups == 1 ? Expr(0) : group(turn) * p_.out_group) + column;
      const Expr position = row_tile(turn) * (t_.out_rows * p_.out_width) + c * t_.rows;
      x.offset = ((batch(turn) * p_.out_channels + channel) * map + position) * es_;
      x.run = t_.turns_c > 1
                  ? clamp(0, t_.rows * es_, (Expr(p_.out_height) - row_tile(turn)) * (t_.rows * es_))
                  : clamp(0, t_.rows * es_, Expr(map * es_) - position * es_);
      x.runs = clamp(0, t_.drained * 16, Expr(p_.out_channels) - channel);
      x.pitch = map * es_;
      x.row = t_.padded_rows;
    } else {
      const Expr row = row_tile(turn) * t_.rows;
      x.offset = ((batch(turn) * p_.m + row) * p_.n + column) * es_;
      x.run = clamp(0, t_.drained * 16 * es_, Expr(p_.n * es_) - column * es_);
      x.runs = clamp(0, t_.rows, Expr(p_.m) - row);
      x.pitch = p_.n * es_;
      x.row = t_.drained * 16;
    }
    return x;
  }

  void round(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
             const Expr& out) {
    const Epilogue& e = p_.epilogue;
    const int64_t m = t_.padded_rows, d = t_.drained, count = q();
    const Part x = part(turn, c, n, r);
    const bool f16 = es_ == 2;
    if (residual_ != REGIE_NONE) {
      addend_->begin_write(out);
      b_.copy(ub(out * (count * es_) + t_.ub_residual), gm(residual_, x.offset), x.run,
              {x.runs, x.row * es_, x.pitch});
      addend_->end_write(out);
    }
    const Expr from = slot * sums_bytes() + r * (d * m / 16 * kSums);
    // What is still to be done; all but the last step works in ub_sum.
    std::vector<std::function<void(const Expr&)>> steps;
    const Expr sum = t_.ub_sum, column = column_tile(n) * (t_.columns * 16) + r * (d * 16);
    if (p_.convolution) {
      b_.drain(REGIE_TILE_F32, REGIE_TILE_F16, ub(t_.ub_drain), l0c(from), m, d, m * 32, m / 16 * kSums);
      b_.transpose(ub(t_.ub_turned), ub(t_.ub_drain), m * 2, 32, {m / 16, 32, 512}, {d, 16 * m * 2, m * 32});
      steps.push_back([&](const Expr& to) {
        b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(to), ub(t_.ub_turned), count);
      });
      if (bias_ != REGIE_NONE)
        steps.push_back([&](const Expr& to) {
          const Expr channel = (p_.groups == 1 ? Expr(0) : group(turn) * p_.out_group) + column;
          b_.binary_row(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(sum), ub(channel * 4 + t_.ub_bias), m,
                        {d * 16, m * 4, m * 4, 4});
        });
    } else {
      b_.drain(REGIE_TILE_F32, REGIE_TILE_F32, ub(t_.ub_drain), l0c(from), m, d, m * 64, m / 16 * kSums);
      const Repeat rows{m, d * 64, 64, 0}, blocks{d, 64, m * 64, 64};
      if (e.alpha != 1)
        b_.binary_scalar(REGIE_TILE_MUL, REGIE_TILE_F32, ub(t_.ub_drain), ub(t_.ub_drain), scalar(e.alpha),
                         count);
      steps.push_back([this, rows, blocks, column](const Expr& to) {
        if (bias_ != REGIE_NONE)
          b_.binary(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(t_.ub_drain), ub(column * 4 + t_.ub_bias), 16,
                    rows, blocks);
        else
          b_.unary(REGIE_TILE_COPY, REGIE_TILE_F32, ub(to), ub(t_.ub_drain), 16, rows, blocks);
      });
    }
    if (residual_ != REGIE_NONE)
      steps.push_back([&](const Expr& to) {
        const Expr at = out * (count * es_) + t_.ub_residual;
        addend_->begin_read(out);
        if (f16) b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(t_.ub_temporary), ub(at), count);
        b_.binary(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(sum), ub(f16 ? Expr(t_.ub_temporary) : at),
                  count);
        addend_->end_read(out);
      });
    if (auto step = epilogue_activation(p_, {sum, std::nullopt}))
      steps.push_back([&, step](const Expr& to) {
        std::vector<Expr> temporaries;
        for (uint32_t i = 0; i < step->op->temporaries; ++i)
          temporaries.emplace_back(t_.ub_temporary + i * count * 4);
        emit_vector(b_, *step, to, temporaries, count);
      });
    const Expr result = out * (count * es_) + t_.ub_result;
    for (size_t i = 0; i + 1 < steps.size(); ++i) steps[i](sum);
    results_->begin_write(out);
    if (f16) {
      steps.back()(t_.ub_value);
      b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(result), ub(t_.ub_value), count);
    } else {
      steps.back()(result);
    }
    results_->end_write(out);
    results_->begin_read(out);
    b_.copy(gm(result_, x.offset), ub(result), x.run, {x.runs, x.pitch, x.row * es_});
    results_->end_read(out);
  }

  const CubeProblem& p_;
  const CubePlan& t_;
  Builder& b_;
  Flags flags_;
  int64_t es_;
  uint32_t left_, right_, bias_, residual_, result_;
  Expr part_b_ = 0, part_m_ = 0, part_n_ = 0, first_batch_ = 0, first_group_ = 0;
  // Channels, in the order of a tile's way.
  std::optional<Channel> unit_, panel_, left_ready_, right_unit_, right_panel_, right_ready_, l0_, sums_,
      addend_, results_;
};

}  // namespace

void emit_cube(const CubeProblem& problem, const CubePlan& plan, Builder& builder,
               const CubeBuffers& buffers) {
  Emitter(problem, plan, builder, buffers).emit();
}

Program cube_program(const CubeProblem& p, const CubePlan& plan, const Chip& chip, uint64_t right_bytes) {
  Builder b(static_cast<uint32_t>(plan.cores()), chip.sizes);
  const int64_t es = p.element_bytes();
  uint64_t left = 0, result = 0;
  if (p.convolution) {
    left = static_cast<uint64_t>(p.batch * p.channels * p.height * p.width * es);
    result = static_cast<uint64_t>(p.batch * p.out_channels * p.out_height * p.out_width * es);
  } else {
    left = static_cast<uint64_t>((p.a_batched ? p.batch : 1) * p.m * p.k * es);
    result = static_cast<uint64_t>(p.batch * p.m * p.n * es);
  }
  CubeBuffers g;
  g.left = b.operand(0, left);
  g.right = b.operand(1, right_bytes);
  const Epilogue& e = p.epilogue;
  if (e.bias_operand != REGIE_NONE)
    g.bias = b.operand(e.bias_operand, e.bias_count * static_cast<uint64_t>(es));
  if (e.residual_operand != REGIE_NONE) g.residual = b.operand(e.residual_operand, result);
  g.result = b.result(0, result);
  emit_cube(p, plan, b, g);
  return b.finish();
}

}  // namespace aicore
