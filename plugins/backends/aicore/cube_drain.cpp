// The way out of a tile: from L0C through UB, with the epilogue, to global memory.
#include "cube_emitter.h"

namespace aicore {

using namespace regie::tile;

void Emitter::way_out(const Turn& turn, const Expr& c, const Expr& n, const Expr& slot) {
  sums_->begin_read(sums_slot(slot));
  const int64_t rounds = t_.columns / t_.drained;
  if (p_.bytes.on_cube) {  // the next round's bytes are made while the cube adds those of this one
    begin_sum(turn, c, n, 0, slot, rounds == 1 ? slot : Expr(0));
    if (rounds > 1)
      b_.loop(rounds - 1, [&](const Expr& r) {
        begin_sum(turn, c, n, r + 1, slot, 1 - (r % 2));
        end_sum(turn, c, n, r, slot, r % 2);
      });
    end_sum(turn, c, n, rounds - 1, slot, rounds == 1 ? slot : Expr((rounds - 1) % 2));
    sums_->end_read(sums_slot(slot));
    return;
  }
  auto one = [&](const Expr& r, const Expr& out) {
    if (p_.of_bytes())
      round_of_bytes(turn, c, n, r, slot, out);
    else if (p_.leaves_as_it_is())
      round_as_it_is(turn, c, n, r, slot, out);
    else
      round(turn, c, n, r, slot, out);
  };
  if (rounds == 1)
    one(0, slot);
  else
    b_.loop(rounds, [&](const Expr& r) { one(r, r % 2); });
  sums_->end_read(sums_slot(slot));
}

Emitter::Part Emitter::part(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, int64_t es) const {
  Part x;
  if (p_.convolution) {
    const int64_t map = p_.out_height * p_.out_width;
    const Expr channel = first_channel(turn, n, r);
    const Expr position = row_tile(turn) * (t_.out_rows * p_.out_width) + c * t_.rows;
    // A position of a row-major plane is an element, one of a blocked plane as many as a block has channels.
    const int64_t lane = p_.result_lane(), one = p_.result_blocked ? lane : 1, most = t_.rows * one * es;
    x.offset = ((batch(turn) * p_.lanes_out() + channel) * map + position * one) * es;
    x.run = t_.turns_c > 1 ? clamp(0, most, (Expr(p_.out_height) - row_tile(turn)) * most)
                           : clamp(0, most, Expr(map * one * es) - position * (one * es));
    if (p_.result_blocked) {
      x.runs = clamp(0, t_.drained * 16 / lane, Expr(p_.lanes_out() / lane) - first_block(turn, n, r));
    } else {
      x.runs = clamp(0, t_.drained * 16, Expr(p_.out_channels) - channel);
    }
    x.pitch = map * one * es;
    x.row = t_.padded_rows * one;
  } else if (p_.result_matrix) {
    const Expr row = row_tile(turn) * t_.rows, block = first_block(turn, n, r);
    const int64_t rows = round_up(p_.m, 16), blocks = up(p_.n, 16);
    x.offset = (batch(turn) * (blocks * rows) + block * rows + row) * (16 * es);
    x.run = clamp(0, t_.rows * 16 * es, Expr(rows * 16 * es) - row * (16 * es));
    x.runs = clamp(0, t_.drained, Expr(blocks) - block);
    x.pitch = rows * 16 * es;
    x.row = t_.padded_rows * 16;
  } else {
    const Expr row = row_tile(turn) * t_.rows, column = first_column(n, r);
    x.offset = ((batch(turn) * p_.m + row) * p_.n + column) * es;
    x.run = clamp(0, t_.drained * 16 * es, Expr(p_.n * es) - column * es);
    x.runs = clamp(0, t_.rows, Expr(p_.m) - row);
    x.pitch = p_.n * es;
    x.row = t_.drained * 16;
  }
  return x;
}

void Emitter::by_column(uint8_t op, uint8_t type, const Expr& to, const Expr& table) {
  const int64_t m = t_.padded_rows;
  b_.binary(op, type, ub(to), ub(t_.ub_drain), ub(table), 16, {m, 64, 64, 0},
            {t_.drained, m * 64, m * 64, 64});
}

void Emitter::activate(const VectorStep& step, const Expr& to) {
  std::vector<Expr> temporaries;
  for (uint32_t i = 0; i < step.op->temporaries; ++i) temporaries.emplace_back(t_.ub_temporary + i * q() * 4);
  emit_vector(b_, step, to, temporaries, q());
}

// Blocks of columns of rows of 16 halves to rows of columns.
void Emitter::turn_sums(int64_t to, int64_t from) {
  const int64_t m = t_.padded_rows;
  b_.transpose(ub(to), ub(from), m * 2, 32, {m / 16, 32, 512}, {t_.drained, 16 * m * 2, m * 32});
}

// Sums of f32 as two halves, the rounded ones and what that loses: those end in ub_sum, these in ub_turned.
void Emitter::turn_sums_twice(int64_t count) {
  const auto narrow = [&](int64_t to, int64_t from) {
    b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(to), ub(from), count);
  };
  const auto widen = [&](int64_t to, int64_t from) {
    b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(to), ub(from), count);
  };
  const int64_t straight = t_.ub_turned + count * 2;
  narrow(straight, t_.ub_drain);
  turn_sums(t_.ub_turned, straight);
  widen(t_.ub_sum, straight);
  b_.binary(REGIE_TILE_SUB, REGIE_TILE_F32, ub(t_.ub_sum), ub(t_.ub_drain), ub(t_.ub_sum), count);
  narrow(straight, t_.ub_sum);
  turn_sums(t_.ub_drain, straight);
  widen(t_.ub_sum, t_.ub_turned);
  widen(t_.ub_turned, t_.ub_drain);
}

// Lanes beyond the last channel are zeros: what lies there is that of zero weights, an epilogue on top.
void Emitter::fill_up(const Turn& turn, const Expr& n, const Expr& r, const Expr& result) {
  const int64_t m = t_.padded_rows, last = p_.lanes_out() / 16 - 1, valid = p_.out_channels % 16;
  const Expr block = first_block(turn, n, r);
  auto fill = [&] {
    b_.fill(ub(result + (Expr(last) - block) * (m * 16 * es_) + valid * es_),
            es_ == 2 ? REGIE_TILE_F16 : REGIE_TILE_F32, 0, 16 - valid, {m, 16 * es_});
  };
  b_.loop(clamp(0, 1, block - Expr(last - t_.drained)),
          [&](const Expr&) { b_.loop(clamp(0, 1, Expr(last + 1) - block), [&](const Expr&) { fill(); }); });
}

void Emitter::load_residual(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& out) {
  const int64_t es = residual_es_;
  const Expr to = out * (q() * es) + t_.ub_residual;
  if (p_.convolution || p_.residual_matrix == p_.result_matrix) {
    const Part from = part(turn, c, n, r, es);
    b_.copy(ub(to), gm(residual_, from.offset), from.run, {from.runs, from.row * es, from.pitch});
    return;
  }
  const int64_t blocks = up(p_.n, 16), one = 16 * es, laid = round_up(p_.m, 16);
  const Expr row = row_tile(turn) * t_.rows, block = first_block(turn, n, r);
  const Expr rows = clamp(0, t_.rows, Expr(p_.m) - row), columns = clamp(0, t_.drained, Expr(blocks) - block);
  if (p_.result_matrix)  // rows, to blocks of columns
    b_.copy(ub(to), gm(residual_, (batch(turn) * p_.m + row) * (p_.n * es) + block * one), one,
            {rows, one, p_.n * es}, {columns, t_.padded_rows * one, one});
  else  // blocks of columns, to rows
    b_.copy(ub(to), gm(residual_, (batch(turn) * (blocks * laid) + block * laid + row) * one), one,
            {rows, t_.drained * one, one}, {columns, one, laid * one});
}

void Emitter::fill_matrix(const Turn& turn, const Expr& n, const Expr& r, const Expr& result) {
  const int64_t m = t_.padded_rows, es = es_, last = up(p_.n, 16) - 1, valid = p_.n % 16;
  // Once where `at` has a value, which it passes in steps of `step`.
  const auto where = [&](const Expr& at, int64_t value, int64_t step, const std::function<void()>& body) {
    b_.loop(clamp(0, 1, at - Expr(value - step)),
            [&](const Expr&) { b_.loop(clamp(0, 1, Expr(value + 1) - at), [&](const Expr&) { body(); }); });
  };
  if (valid) {
    const Expr block = first_block(turn, n, r);
    where(block, last, t_.drained, [&] {
      b_.fill(ub(result + (Expr(last) - block) * (m * 16 * es) + valid * es), REGIE_TILE_F16, 0, 16 - valid,
              {m, 16 * es});
    });
  }
  if (p_.m % 16) {
    const int64_t tile = (p_.m - 1) / t_.rows, there = p_.m - tile * t_.rows;
    where(row_tile(turn), tile, 1, [&] {
      b_.fill(ub(result + there * 16 * es), REGIE_TILE_F16, 0, (round_up(p_.m, 16) - p_.m) * 16,
              {t_.drained, m * 16 * es});
    });
  }
}

void Emitter::round(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                    const Expr& out) {
  const Epilogue& e = p_.epilogue;
  const int64_t m = t_.padded_rows, d = t_.drained, count = q();
  const Part x = part(turn, c, n, r, es_);
  const bool f16 = es_ == 2;
  if (residual_ != REGIE_NONE) {
    addend_->begin_write(out);
    load_residual(turn, c, n, r, out);
    addend_->end_write(out);
  }
  const Expr from = sums_slot(slot) * sums_bytes() + r * (d * m / 16 * kSums);
  // What is still to be done; all but the last step works in ub_sum.
  std::vector<std::function<void(const Expr&)>> steps;
  Expr value = t_.ub_sum;  // where the next step finds its operand
  const Expr sum = t_.ub_sum, channel = first_channel(turn, n, r);
  // In L0C's order, blocks of columns of `m` rows of 16; as f32 unless all that follows is to turn them.
  const bool as_halves = p_.turned() && !p_.split_sums && factors_ == REGIE_NONE;
  b_.drain(REGIE_TILE_F32, as_halves ? REGIE_TILE_F16 : REGIE_TILE_F32, ub(t_.ub_drain), l0c(from), m, d,
           m * (as_halves ? 32 : 64), m / 16 * kSums);
  if (factors_ != REGIE_NONE)
    by_column(REGIE_TILE_MUL, REGIE_TILE_F32, t_.ub_drain, channel * 4 + t_.ub_factors);
  if (!p_.convolution && e.alpha != 1)
    b_.binary_scalar(REGIE_TILE_MUL, REGIE_TILE_F32, ub(t_.ub_drain), ub(t_.ub_drain), scalar(e.alpha),
                     count);
  if (p_.result_matrix || (p_.convolution && p_.result_blocked)) {
    // Sums lie as the result does: blocks of columns, positions, 16.
    if (bias_ != REGIE_NONE)
      steps.push_back(
          [&](const Expr& to) { by_column(REGIE_TILE_ADD, REGIE_TILE_F32, to, channel * 4 + t_.ub_bias); });
    else
      value = t_.ub_drain;
  } else if (p_.convolution) {
    if (p_.split_sums) {
      turn_sums_twice(count);
      steps.push_back([&](const Expr& to) {
        b_.binary(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(sum), ub(t_.ub_turned), count);
      });
    } else {
      int64_t straight = t_.ub_drain, turned = t_.ub_turned;
      if (!as_halves) {
        std::swap(straight, turned);
        b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(straight), ub(turned), count);
      }
      turn_sums(turned, straight);
      steps.push_back([this, turned, count](const Expr& to) {
        b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(to), ub(turned), count);
      });
    }
    if (bias_ != REGIE_NONE)
      steps.push_back([&](const Expr& to) {
        b_.binary_row(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(sum), ub(channel * 4 + t_.ub_bias), m,
                      {d * 16, m * 4, m * 4, 4});
      });
  } else {
    const Repeat rows{m, d * 64, 64, 0}, blocks{d, 64, m * 64, 64};
    steps.push_back([this, rows, blocks, channel](const Expr& to) {
      if (bias_ != REGIE_NONE)
        b_.binary(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(t_.ub_drain), ub(channel * 4 + t_.ub_bias), 16,
                  rows, blocks);
      else
        b_.unary(REGIE_TILE_COPY, REGIE_TILE_F32, ub(to), ub(t_.ub_drain), 16, rows, blocks);
    });
  }
  if (residual_ != REGIE_NONE)
    steps.push_back([&](const Expr& to) {
      const Expr at = out * (count * residual_es_) + t_.ub_residual;
      const bool narrow = residual_es_ == 2;
      addend_->begin_read(out);
      if (narrow)
        b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(t_.ub_temporary), ub(at), count);
      b_.binary(REGIE_TILE_ADD, REGIE_TILE_F32, ub(to), ub(value), ub(narrow ? Expr(t_.ub_temporary) : at),
                count);
      addend_->end_read(out);
    });
  if (epilogue_activation(p_, {}))
    steps.push_back([&](const Expr& to) { activate(*epilogue_activation(p_, {value, std::nullopt}), to); });
  const Expr result = out * (count * es_) + t_.ub_result;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    steps[i](sum);
    value = sum;
  }
  results_->begin_write(out);
  if (f16 && !steps.empty()) {
    steps.back()(t_.ub_value);
    value = t_.ub_value;
  }
  if (f16)
    b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(result), ub(value), count);
  else if (steps.empty())
    b_.unary(REGIE_TILE_COPY, REGIE_TILE_F32, ub(result), ub(value), count);
  else
    steps.back()(result);
  if (p_.result_blocked && p_.out_channels % 16) fill_up(turn, n, r, result);
  if (p_.result_matrix) fill_matrix(turn, n, r, result);
  results_->end_write(out);
  results_->begin_read(out);
  b_.copy(gm(result_, x.offset), ub(result), x.run, {x.runs, x.pitch, x.row * es_});
  results_->end_read(out);
}

}  // namespace aicore
