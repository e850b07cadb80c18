// The program of a CubePlan: what is there once, the loops, and the product of a tile.
#include "cube_emitter.h"
#include "cube_variants.h"

namespace aicore {

using namespace regie::tile;

namespace {

constexpr uint8_t kLoad = REGIE_TILE_LOAD, kMove = REGIE_TILE_MOVE, kCube = REGIE_TILE_CUBE,
                  kVector = REGIE_TILE_VECTOR, kStore = REGIE_TILE_STORE;

}  // namespace

Emitter::Emitter(const CubeProblem& problem, const CubePlan& plan, Builder& builder, const CubeBuffers& g)
    : p_(problem),
      t_(plan),
      b_(builder),
      es_(problem.element_bytes()),
      left_es_(problem.bytes_of(problem.left_elem)),
      right_es_(problem.bytes_of(problem.right_elem)),
      bias_es_(problem.bytes_of(problem.bias_elem)),
      residual_es_(problem.bytes_of(problem.residual_elem)),
      left_(g.left),
      right_(g.right),
      bias_(problem.cube_bias ? REGIE_NONE : g.bias),
      residual_(problem.cube_residual ? REGIE_NONE : g.residual),
      result_(g.result),
      factors_(problem.epilogue.scaled ? g.factors : REGIE_NONE),
      addends_(problem.cube_bias ? g.bias : REGIE_NONE),
      added_(problem.cube_residual ? g.residual : REGIE_NONE),
      right_offset_(static_cast<int64_t>(g.right_offset)),
      factors_offset_(static_cast<int64_t>(g.factors_offset)),
      tables_offset_(static_cast<int64_t>(g.tables_offset)),
      zero_(g.zero),
      scale_(g.scale) {
  const CubeProblem& p = problem;
  sum_offset_ = tables_offset_ + p.bytes.tables() * p.result_columns() * 4;
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

void Emitter::emit() {
  clear();
  load_bias();
  load_factors();
  load_addends();
  load_tables();
  load_sum();
  open();
  if (t_.resident) load_resident();
  // The innermost loop of several turns around tiles of rows loads the next turn's panel while it computes.
  const int inner = t_.turns_m > 1 ? 2 : t_.turns_group > 1 ? 1 : t_.turns_batch > 1 ? 0 : 3;
  Turn turn;
  nest(0, inner, turn);
  if (t_.resident) right_ready_->end_read(0);
  for (std::optional<Channel>* c :
       {&unit_, &panel_, &left_ready_, &right_unit_, &right_panel_, &right_ready_, &l0_, &sums_, &addend_,
        &residual_ready_, &sum_panel_, &sum_left_, &sum_l0_, &sum_sums_, &results_})
    if (*c) (*c)->close();
}

void Emitter::clear() {
  auto zero = [&](int64_t at, int64_t bytes) {
    if (bytes) b_.fill(ub(at), REGIE_TILE_F32, scalar(0), bytes / 4);
  };
  bool cleared = false;
  const bool rows_missing = t_.parts_m * t_.turns_m * t_.rows > p_.m;
  if (p_.direct()) {
    if (!p_.convolution && rows_missing)
      b_.fill(l1(t_.l1_left), REGIE_TILE_F16, 0, t_.left_slots * t_.left_bytes / 2);
  } else if (p_.convolution) {
    if (p_.misses_channels() || t_.window * p_.width % t_.pixels || p_.left_blocks() % t_.unit_blocks) {
      zero(t_.ub_load, 2 * p_.k0() * t_.pixels * t_.unit_blocks * left_es_);
      cleared = true;
    }
  } else if (rows_missing || p_.transposed_a || p_.k % t_.unit_columns) {
    zero(t_.ub_load, 2 * t_.unit_rows * t_.unit_columns * left_es_);
    cleared = true;
  }
  if (p_.right_direct()) {
    if (p_.k % 16 || t_.parts_n * t_.turns_n * t_.columns * 16 > p_.n)
      b_.fill(l1(t_.l1_right), REGIE_TILE_F16, 0, t_.right_bytes);
  } else if (!p_.constant_b) {
    zero(t_.ub_right_load, 2 * t_.right_unit_rows * t_.right_unit_columns * right_es_);
    cleared = true;
  }
  if (residual_ != REGIE_NONE) {
    zero(t_.ub_residual, 2 * (p_.of_bytes() ? t_.result_slot : q() * residual_es_));
    cleared = true;
  }
  if (bias_ != REGIE_NONE) {
    zero(t_.ub_bias, table_bytes(p_, t_));
    cleared = true;
  }
  if (factors_ != REGIE_NONE) {
    zero(t_.ub_factors, table_bytes(p_, t_));
    cleared = true;
  }
  if (p_.of_bytes() && p_.bytes.tables()) {
    zero(t_.ub_tables, p_.bytes.tables() * table_bytes(p_, t_));
    cleared = true;
  }
  // What fills up blocks that are turned over.
  if (p_.of_bytes() && p_.requants() && p_.turned() && (t_.drained % 2 || t_.padded_rows % 32))
    zero(t_.ub_half, t_.result_slot);
  if (cleared) hand_over(b_, flags_, kVector, kLoad);
}

void Emitter::load_bias() {
  if (bias_ == REGIE_NONE) return;
  const int64_t n = static_cast<int64_t>(p_.epilogue.bias_count);
  b_.copy(ub(bias_es_ == 2 ? t_.ub_bias_load : t_.ub_bias), gm(bias_, 0), n * bias_es_);
  hand_over(b_, flags_, kLoad, kVector);
  if (bias_es_ == 2)
    b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(t_.ub_bias), ub(t_.ub_bias_load), n);
}

void Emitter::load_factors() {
  if (factors_ == REGIE_NONE) return;
  b_.copy(ub(t_.ub_factors), gm(factors_, factors_offset_), p_.result_columns() * 4);
  hand_over(b_, flags_, kLoad, kVector);
}

void Emitter::open() {
  if (!p_.direct()) {
    unit_.emplace(b_, flags_, kLoad, kVector, 2);
    panel_.emplace(b_, flags_, kVector, kStore, 2);
  }
  left_ready_.emplace(b_, flags_, p_.direct() ? kLoad : kStore, kMove, t_.left_slots);
  if (p_.constant_b) {
    right_ready_.emplace(b_, flags_, kLoad, kMove, t_.resident ? 1 : 2);
  } else if (p_.right_direct()) {
    right_ready_.emplace(b_, flags_, kLoad, kMove, 2);
  } else {
    right_unit_.emplace(b_, flags_, kLoad, kVector, 2);
    right_panel_.emplace(b_, flags_, kVector, kStore, 2);
    right_ready_.emplace(b_, flags_, kStore, kMove, 2);
  }
  l0_.emplace(b_, flags_, kMove, kCube, 2);
  sums_.emplace(b_, flags_, kCube, kVector, t_.sums_slots);
  if (residual_ != REGIE_NONE) addend_.emplace(b_, flags_, kLoad, kVector, 2);
  if (p_.bytes.on_cube) {
    const int64_t slots = t_.columns == t_.drained ? 1 : 2;
    sum_panel_.emplace(b_, flags_, kVector, kStore, slots);
    sum_left_.emplace(b_, flags_, kStore, kMove, slots);
    sum_l0_.emplace(b_, flags_, kMove, kCube, 1);
    sum_sums_.emplace(b_, flags_, kCube, kVector, slots);
  }
  results_.emplace(b_, flags_, kVector, kStore, 2);
  if (added_ != REGIE_NONE) residual_ready_.emplace(b_, flags_, kLoad, kMove, 2);
}

void Emitter::nest(int level, int inner, Turn& turn) {
  const int64_t trips[3] = {t_.turns_batch, t_.turns_group, t_.turns_m};
  if (level == 3) {  // one turn in all
    if (inner == 3 && !t_.streamed) load_left(turn, 0);
    if (t_.turns_c == 1) load_first_residuals(turn, 0, 0);
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
  const bool ahead = t_.left_slots == 2 && !t_.streamed;
  if (ahead) {
    turn.at[level] = 0;
    load_left(turn, 0);
  }
  b_.loop(trips[level], [&](const Expr& i) {
    turn.at[level] = i;
    // Before the next panel, as they are needed before it.
    if (t_.turns_c == 1) load_first_residuals(turn, 0, t_.turns_n > 1 ? Expr(0) : i % 2);
    const std::function<void()> load_next = [&, turn] {
      if (!ahead) return;
      b_.loop(clamp(0, 1, Expr(trips[level] - 1) - i), [&](const Expr&) {
        Turn next = turn;
        next.at[level] = i + 1;
        // (i + 1) % 2, which an expression cannot say.
        load_left(next, 1 - (i % 2));
      });
    };
    // The next panel must not keep the first tile's weights waiting.
    const bool after = ahead && p_.constant_b && !t_.resident && t_.turns_n > 1;
    if (!after) load_next();
    if (!ahead && !t_.streamed) load_left(turn, 0);
    tiles(turn, ahead ? i % 2 : Expr(0), i % 2, after ? load_next : std::function<void()>{});
  });
  turn.at[level] = 0;
}

void Emitter::tiles(const Turn& turn, const Expr& left_slot, const Expr& turn_slot,
                    const std::function<void()>& after_first) {
  if (!t_.streamed) left_ready_->begin_read(left_slot);
  auto column_tiles = [&](const Expr& c, const Expr& outer) {
    if (t_.turns_c > 1) load_first_residuals(turn, c, t_.turns_n > 1 ? Expr(0) : outer);
    if (t_.turns_n == 1) return tile(turn, left_slot, c, 0, outer);
    b_.loop(t_.turns_n, [&](const Expr& n) {
      tile(turn, left_slot, c, n, n % 2);
      if (after_first)
        b_.loop(clamp(0, 1, 1 - n),
                [&](const Expr&) { b_.loop(clamp(0, 1, 1 - c), [&](const Expr&) { after_first(); }); });
    });
  };
  if (t_.turns_c == 1)
    column_tiles(0, turn_slot);
  else
    b_.loop(t_.turns_c, [&](const Expr& c) { column_tiles(c, c % 2); });
  if (!t_.streamed) left_ready_->end_read(left_slot);
}

void Emitter::tile(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& slot) {
  product(turn, left_slot, c, n, slot);
  load_next_residual(turn, c, n);
  way_out(turn, c, n, slot);
}

void Emitter::product(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n,
                      const Expr& slot) {
  sums_->begin_write(sums_slot(slot));
  if (p_.right_direct()) {
    load_right_directly(turn, n, slot);
  } else if (!p_.constant_b) {
    const bool turned = p_.transposed_b;
    right_ready_->begin_write(slot);
    const Expr base = p_.b_batched ? batch(turn) * (p_.k * p_.n * right_es_) : Expr(0);
    const Expr first = column_tile(n) * (t_.columns * 16);
    load_panel(right_, right_es_, base, turned ? first : Expr(0), turned ? p_.n : p_.k,
               turned ? Expr(0) : first, turned ? p_.k : p_.n, turned ? t_.columns * 16 : round_up(p_.k, 16),
               turned ? round_up(p_.k, 16) : t_.columns * 16, t_.right_unit_rows, t_.right_unit_columns,
               t_.ub_right_load, t_.ub_right_panel, *right_unit_, *right_panel_,
               slot * t_.right_bytes + t_.l1_right, {});
    right_ready_->end_write(slot);
  }
  add_bias(turn, n, slot);
  auto chunk = [&](const Expr& k, const Expr& right_slot) {
    if (t_.streamed) load_left(turn, right_slot, k);
    if (p_.constant_b && !t_.resident) {
      right_ready_->begin_write(right_slot);
      b_.copy(l1(right_slot * t_.right_bytes + t_.l1_right), gm(right_, packed_from(turn, n, k * t_.chunk)),
              block(),
              {clamp(0, t_.chunk, Expr(p_.k_blocks()) - k * t_.chunk), block(), t_.n_tiles * block()});
      right_ready_->end_write(right_slot);
    }
    if (t_.streamed) left_ready_->begin_read(right_slot);
    if (!t_.resident) right_ready_->begin_read(right_slot);
    if (t_.steps == 1)
      step(turn, left_slot, c, n, k, 0, right_slot, slot);
    else
      b_.loop(t_.steps, [&](const Expr& s) { step(turn, left_slot, c, n, k, s, right_slot, slot); });
    if (!t_.resident) right_ready_->end_read(right_slot);
    if (t_.streamed) left_ready_->end_read(right_slot);
  };
  if (t_.chunks == 1)
    chunk(0, slot);
  else
    b_.loop(t_.chunks, [&](const Expr& k) { chunk(k, k % 2); });
  add_residual(slot);
  sums_->end_write(sums_slot(slot));
}

void Emitter::step(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& k,
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
      i.stride_h = p_.map_stride();
      i.stride_w = p_.stride_w;
      i.dilation_h = p_.map_dilation();
      i.dilation_w = p_.dilation_w;
      i.kernel_h = p_.map_kernel();
      i.kernel_w = p_.kernel_w;
      i.out_width = p_.out_width;
      i.first_row = c * t_.rows;
      i.rows = t_.rows;
      i.first_k = first;
      i.k_blocks = blocks;
      i.plane = t_.plane;
      i.row_stride = t_.step * kFractal;
      i.pad = p_.bytes.pad;
      b_.im2col(l0a(to_a), l1(left_slot * t_.left_bytes + t_.l1_left), left_type(), i);
    });
  } else if (p_.transposed_a) {
    const int64_t rows = round_up(round_up(p_.k, 16), t_.unit_rows);
    b_.fractal(l0a(to_a), l1(left_slot * t_.left_bytes + t_.l1_left + first * kFractal),
               {m1, t_.step * kFractal, rows * 32}, {blocks, kFractal, kFractal}, true);
  } else {
    const Expr from = t_.streamed ? right_slot * t_.left_bytes + s * (t_.step * t_.rows * 32)
                                  : left_slot * t_.left_bytes + first * (t_.rows * 32);
    b_.fractal(l0a(to_a), l1(from + t_.l1_left), {m1, t_.step * kFractal, kFractal},
               {blocks, kFractal, t_.rows * 32});
  }
  if (p_.constant_b) {
    const Expr from = t_.resident ? n * (kb * block()) + first * block() + t_.l1_right
                                  : right_slot * t_.right_bytes + s * (t_.step * block()) + t_.l1_right;
    b_.fractal(l0b(to_b), l1(from), {t_.columns * p_.right_parts(), kFractal, kFractal},
               {blocks, block(), block()});
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
  const int64_t k0 = p_.k0(), all_k = p_.convolution || p_.left_parts == 2 ? kb * k0 : p_.k;
  for (int64_t part = 0; part < p_.right_parts(); ++part)
    b_.mmad(left_type(), l0c(sums_slot(slot) * sums_bytes()), l0a(to_a),
            l0b(to_b + part * (t_.columns * kFractal)), t_.padded_rows, t_.columns * 16,
            clamp(0, t_.step * k0, Expr(all_k) - first * k0), part || p_.cube_bias ? Expr(1) : min(first, 1),
            m1 * kSums, t_.step * kFractal, block());
  l0_->end_read(l0);
}

void emit_cube(const CubeProblem& problem, const CubePlan& plan, Builder& builder,
               const CubeBuffers& buffers) {
  Emitter(problem, plan, builder, buffers).emit();
}

Program cube_program(const CubeProblem& p, const CubePlan& plan, const Chip& chip, uint64_t right_bytes) {
  Builder b(static_cast<uint32_t>(plan.cores()), chip.sizes);
  const int64_t left_es = p.bytes_of(p.left_elem);
  uint64_t left = 0, result = 0;  // bytes, elements
  if (p.convolution) {
    left = static_cast<uint64_t>(p.batch * p.lanes_in() * p.height * p.width * left_es);
    result = static_cast<uint64_t>(p.batch * p.lanes_out() * p.out_height * p.out_width);
  } else {
    left = static_cast<uint64_t>(p.left_count() * left_es);
    result = static_cast<uint64_t>(p.batch * p.laid_matrix(p.m, p.n, p.result_matrix));
  }
  CubeBuffers g;
  g.left = b.operand(0, left);
  g.right = b.operand(p.right_operand, right_bytes);
  const Epilogue& e = p.epilogue;
  if (e.bias_operand != REGIE_NONE)
    g.bias = b.operand(e.bias_operand, p.cube_bias
                                           ? static_cast<uint64_t>(packed_addend_bytes(p, plan))
                                           : e.bias_count * static_cast<uint64_t>(p.bytes_of(p.bias_elem)));
  if (e.residual_operand != REGIE_NONE)
    g.residual = b.operand(
        e.residual_operand,
        (p.convolution ? result
                       : static_cast<uint64_t>(p.batch * p.laid_matrix(p.m, p.n, p.residual_matrix))) *
            static_cast<uint64_t>(p.bytes_of(p.residual_elem)));
  if (e.scaled) {
    g.factors = g.right;
    g.factors_offset = right_bytes - static_cast<uint64_t>(p.result_columns() * 4);
  }
  if (p.of_bytes()) {
    g.tables_offset =
        right_bytes - static_cast<uint64_t>(p.bytes.tables() * p.result_columns() * 4 + p.bytes.sum_bytes());
    if (p.bytes.zero_operand != REGIE_NONE) g.zero = b.operand(p.bytes.zero_operand, 1);
    if (p.bytes.scale_operand != REGIE_NONE) g.scale = b.operand(p.bytes.scale_operand, 4);
  }
  g.result = b.result(0, result * static_cast<uint64_t>(p.element_bytes()));
  emit_cube(p, plan, b, g);
  return b.finish();
}

}  // namespace aicore
