// The way out of a product of bytes: sums of 32 bits, corrected, scaled and rounded to what the result is of.
// The sums are exact, and each step on the way is what the operators' definitions say: as f32, times the
// scale, to the nearest whole number (even where two are as near), plus the zero point, held within the type.
#include "cube_emitter.h"

namespace aicore {

using namespace regie::tile;

namespace {

constexpr uint8_t kF16 = REGIE_TILE_F16, kF32 = REGIE_TILE_F32, kS32 = REGIE_TILE_S32,
                  kRint = REGIE_TILE_RINT;

}  // namespace

void Emitter::load_tables() {
  if (!p_.of_bytes() || !p_.bytes.tables()) return;
  const int64_t n = p_.result_columns(), bytes = table_bytes(p_, t_);
  b_.copy(ub(t_.ub_tables), gm(right_, tables_offset_), n * 4, {p_.bytes.tables(), bytes, n * 4});
  if (zero_ != REGIE_NONE) b_.copy(ub(t_.ub_scalars), gm(zero_, 0), 1);
  if (scale_ != REGIE_NONE) b_.copy(ub(t_.ub_scalars + kBlock), gm(scale_, 0), 4);
  hand_over(b_, flags_, REGIE_TILE_LOAD, REGIE_TILE_VECTOR);
  if (zero_ != REGIE_NONE) {
    const Place half = ub(t_.ub_scalars + 2 * kBlock), whole = ub(t_.ub_scalars + 3 * kBlock);
    b_.cast(left_type(), kF16, kRint, half, ub(t_.ub_scalars), 1);
    b_.cast(kF16, kS32, kRint, whole, half, 1);
    b_.binary_row(REGIE_TILE_MUL, kS32, ub(t_.ub_tables), ub(t_.ub_tables), whole, n);
  }
  if (scale_ != REGIE_NONE) {
    const Place factors = ub(t_.ub_tables + (p_.bytes.corrected ? bytes : 0));
    b_.binary_row(REGIE_TILE_MUL, kF32, factors, factors, ub(t_.ub_scalars + kBlock), n);
  }
}

void Emitter::arrange_words(uint8_t type, const Expr& to, const Expr& from) {
  const int64_t m = t_.padded_rows, d = t_.drained;
  if (p_.convolution && p_.result_blocked) {
    b_.unary(REGIE_TILE_COPY, type, ub(to), ub(from), q());
  } else if (p_.convolution) {
    for (int64_t half = 0; half < 2; ++half)  // 8 columns of a block
      b_.transpose(ub(to + half * (8 * m * 4)), ub(from + half * 32), m * 4, 64, {m / 8, 32, 512},
                   {d, 16 * m * 4, m * 64}, REGIE_TILE_B32);
  } else {
    b_.unary(REGIE_TILE_COPY, type, ub(to), ub(from), 16, {m, d * 64, 64}, {d, 64, m * 64});
  }
}

Requant Emitter::tables_of(const Expr& channel, int64_t row) const {
  const ByteEpilogue& e = p_.bytes;
  const int64_t table = table_bytes(p_, t_);
  Requant q{ub(channel * 4 + (t_.ub_tables + (e.corrected ? table : 0))), std::nullopt, false, 0, row};
  if (e.corrected) q.addend = ub(channel * 4 + t_.ub_tables);
  return q;
}

void Emitter::scale_sums(const Expr& from, const Expr& channel) {
  const int64_t m = t_.padded_rows;
  b_.requant(kS32, kF32, ub(t_.ub_drain), l0c(from), tables_of(channel, 64), m,
             {t_.drained, m * 64, m / 16 * kSums, 64});
}

void Emitter::requantise(const Expr& from, const Expr& channel, const Expr& result) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, d = t_.drained, sums = m / 16 * kSums;
  const uint8_t type = byte_type(p_.elem);
  Requant q = tables_of(channel, p_.convolution ? kBlock : d * 16);
  q.offset = e.zero;
  q.relu = e.low > least_byte(p_.elem);
  if (!p_.convolution) {  // rows of columns, as the result has them
    b_.requant(kS32, type, ub(result), l0c(from), q, m, {d, 16, sums, 64});
    return;
  }
  // Two blocks of columns are one of 32 channels.
  const int64_t pairs = up(d, 2), rows = p_.result_blocked ? m : round_up(m, 32);
  const Repeat halves{std::min<int64_t>(d, 2), 16, sums, 64}, blocks{pairs, rows * kBlock, 2 * sums, 128};
  if (p_.result_blocked) {
    b_.requant(kS32, type, ub(result), l0c(from), q, m, halves, blocks);
    return;
  }
  b_.requant(kS32, type, ub(t_.ub_half), l0c(from), q, m, halves, blocks);
  b_.transpose(ub(result), ub(t_.ub_half), rows, kBlock, {rows / 32, 32, 32 * kBlock},
               {pairs, 32 * rows, 32 * rows}, REGIE_TILE_B8);
}

void Emitter::round_of_bytes(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                             const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, d = t_.drained, table = table_bytes(p_, t_);
  Part x = part(turn, c, n, r, es_);
  if (p_.requants() && p_.turned()) x.row = round_up(m, 32);
  const Expr from = sums_slot(slot) * sums_bytes() + r * (d * m / 16 * kSums);
  const Expr channel = first_channel(turn, n, r), result = out * t_.result_slot + t_.ub_result;
  if (residual_ != REGIE_NONE) load_residual(x, out);
  if (p_.requants()) {
    results_->begin_write(out);
    requantise(from, channel, result);
  } else if (!e.scaled) {
    b_.drain(kS32, kS32, ub(t_.ub_drain), l0c(from), m, d, m * 64, m / 16 * kSums);
    if (e.corrected) by_column(REGIE_TILE_ADD, kS32, t_.ub_drain, channel * 4 + t_.ub_tables);
    results_->begin_write(out);
    arrange_words(kS32, result, t_.ub_drain);
  } else {
    scale_sums(from, channel);
    if (e.biased)
      by_column(REGIE_TILE_ADD, kF32, t_.ub_drain, channel * 4 + (t_.ub_tables + (e.tables() - 1) * table));
    int64_t value = t_.ub_drain;
    if (const auto step = epilogue_activation(p_, {value, std::nullopt})) {
      activate(*step, t_.ub_sum);
      value = t_.ub_sum;
    }
    if (es_ == 4) {
      results_->begin_write(out);
      arrange_words(kF32, result, value);
    } else {
      round_words(value, result, out);
    }
  }
  if (residual_ != REGIE_NONE) add_bytes(result, out);
  store_result(x, out);
}

void Emitter::round_words(int64_t value, const Expr& result, const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, d = t_.drained, count = q();
  const Place whole = ub(value), half = ub(t_.ub_half);
  const uint8_t type = byte_type(p_.elem);
  if (e.divisor != 0) b_.binary_scalar(REGIE_TILE_DIV, kF32, whole, whole, scalar(e.divisor), count);
  b_.cast(kF32, kS32, kRint, whole, whole, count);
  // Whole numbers up to 2048 are halves; what is larger is beyond the type's bounds, and stays there.
  if (p_.convolution)
    b_.cast(kS32, kF16, kRint, half, whole, count);
  else  // to rows
    b_.cast(kS32, kF16, kRint, half, whole, 16, {m, d * 32, 64}, {d, 32, m * 64});
  if (e.zero != 0)
    b_.binary_scalar(REGIE_TILE_ADD, kF16, half, half, scalar(static_cast<float>(e.zero)), count);
  if (e.low > least_byte(p_.elem))
    b_.binary_scalar(REGIE_TILE_MAX, kF16, half, half, scalar(static_cast<float>(e.low)), count);
  if (e.high < most_byte(p_.elem))
    b_.binary_scalar(REGIE_TILE_MIN, kF16, half, half, scalar(static_cast<float>(e.high)), count);
  if (p_.turned())
    b_.transpose(ub(t_.ub_turned), half, m * 2, 32, {m / 16, 32, 512}, {d, 16 * m * 2, m * 32});
  results_->begin_write(out);
  if (!p_.convolution || !p_.result_blocked) {
    b_.cast(kF16, type, kRint, ub(result), ub(t_.ub_turned), count);
    return;
  }
  // Two blocks of 16 channels are one of 32.
  for (int64_t i = 0; i < 2; ++i)
    b_.cast(kF16, type, kRint, ub(result + i * 16), ub(t_.ub_turned + i * (m * 32)), 16, {m, kBlock, 32},
            {d / 2, m * kBlock, m * 64});
}

void Emitter::widen_bytes(regie_elem elem, const Expr& from, int32_t zero, const Expr& to) {
  const int64_t count = t_.result_slot;
  b_.cast(byte_type(elem), kF16, kRint, ub(to), ub(from), count);
  if (zero != 0)
    b_.binary_scalar(REGIE_TILE_SUB, kF16, ub(to), ub(to), scalar(static_cast<float>(zero)), count);
}

void Emitter::load_sum() {
  if (!p_.bytes.on_cube) return;
  const int64_t bytes = p_.bytes.sum_bytes();
  b_.copy(l1(t_.l1_sum_right), gm(right_, sum_offset_), bytes);
  hand_over(b_, flags_, REGIE_TILE_LOAD, REGIE_TILE_MOVE);
  b_.fractal(l0b(t_.l0b_sum), l1(t_.l1_sum_right), {bytes / kFractal, kFractal, kFractal});
  b_.fill(ub(t_.ub_scalars), kF32, scalar(p_.bytes.sum_factor), 16);
}

void Emitter::load_residual(const Part& x, const Expr& out) {
  addend_->begin_write(out);
  b_.copy(ub(out * t_.result_slot + t_.ub_residual), gm(residual_, x.offset), x.run,
          {x.runs, x.row, x.pitch});
  addend_->end_write(out);
}

void Emitter::store_result(const Part& x, const Expr& out) {
  results_->end_write(out);
  results_->begin_read(out);
  b_.copy(gm(result_, x.offset), ub(out * t_.result_slot + t_.ub_result), x.run,
          {x.runs, x.pitch, x.row * es_});
  results_->end_read(out);
}

void Emitter::begin_sum(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                        const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, m1 = m / 16, d = t_.drained, count = t_.result_slot, sums = m1 * kSums;
  constexpr uint8_t f16 = REGIE_TILE_F16;
  const Expr from = sums_of_round(slot, r), result = out * count + t_.ub_result, s = sum_slot(out);
  load_residual(part(turn, c, n, r, es_), out);
  results_->begin_write(out);
  requantise(from, first_channel(turn, n, r), result);
  sum_panel_->begin_write(s);
  const Expr halves = s * (count * 4) + t_.ub_sum_half;
  widen_bytes(p_.elem, result, e.inner_zero, halves);
  addend_->begin_read(out);
  widen_bytes(p_.residual_elem, out * count + t_.ub_residual, e.residual_zero, halves + count * 2);
  addend_->end_read(out);
  sum_panel_->end_write(s);
  // Rows of 32 channels to blocks of 16.
  const int64_t side_bytes = d * m * kBlock;
  const Expr left = s * (2 * side_bytes) + t_.l1_sum;
  sum_panel_->begin_read(s);
  sum_left_->begin_write(s);
  for (int64_t side = 0; side < 2; ++side)
    for (int64_t half = 0; half < 2; ++half)
      b_.copy(l1(left + (side * side_bytes + half * (m * kBlock))),
              ub(halves + (side * (count * 2) + half * kBlock)), kBlock, {m, kBlock, 2 * kBlock},
              {d / 2, 2 * m * kBlock, 2 * m * kBlock});
  sum_panel_->end_read(s);
  sum_left_->end_write(s);
  sum_left_->begin_read(s);
  sum_sums_->begin_write(s);
  b_.loop(d, [&](const Expr& j) {
    sum_l0_->begin_write(0);
    for (int64_t side = 0; side < 2; ++side)
      b_.fractal(l0a(t_.l0a_sum + side * kFractal), l1(left + j * (m * kBlock) + side * side_bytes),
                 {m1, 2 * kFractal, kFractal});
    sum_l0_->end_write(0);
    sum_l0_->begin_read(0);
    for (int64_t step = 0; step < 2; ++step)
      b_.mmad(f16, l0c(from + j * sums), l0a(t_.l0a_sum), l0b(t_.l0b_sum + step * 2 * kFractal), m, 16, 32,
              step, sums, 2 * kFractal, kFractal);
    sum_l0_->end_read(0);
  });
  sum_left_->end_read(s);
  sum_sums_->end_write(s);
}

void Emitter::end_sum(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                      const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, d = t_.drained, sums = m / 16 * kSums;
  sum_sums_->begin_read(sum_slot(out));
  Requant q{ub(t_.ub_scalars), std::nullopt, e.sum_low > least_byte(p_.elem), e.sum_zero, kBlock};
  b_.requant(kF32, byte_type(p_.elem), ub(out * t_.result_slot + t_.ub_result), l0c(sums_of_round(slot, r)),
             q, m, {2, 16, sums, 0}, {d / 2, m * kBlock, 2 * sums, 0});
  sum_sums_->end_read(sum_slot(out));
  store_result(part(turn, c, n, r, es_), out);
}

void Emitter::add_bytes(const Expr& result, const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t count = t_.result_slot;
  const Place half = ub(t_.ub_sum_half), inner = ub(t_.ub_sum_inner), sum = ub(t_.ub_sum_outer);
  const auto widen = [&](regie_elem elem, const Expr& from, int32_t zero, const Place& to) {
    widen_bytes(elem, from, zero, t_.ub_sum_half);
    b_.cast(kF16, kF32, kRint, to, half, count);
  };
  widen(p_.elem, result, e.inner_zero, inner);
  addend_->begin_read(out);
  widen(p_.residual_elem, out * count + t_.ub_residual, e.residual_zero, sum);
  addend_->end_read(out);
  b_.binary_scalar(REGIE_TILE_MUL, kF32, sum, sum, scalar(e.residual_scale), count);
  b_.binary_scalar(REGIE_TILE_MLA, kF32, sum, inner, scalar(e.inner_scale), count);
  if (e.sum_divisor != 0) b_.binary_scalar(REGIE_TILE_DIV, kF32, sum, sum, scalar(e.sum_divisor), count);
  b_.cast(kF32, kS32, kRint, sum, sum, count);
  b_.cast(kS32, kF16, kRint, half, sum, count);
  if (e.sum_zero != 0)
    b_.binary_scalar(REGIE_TILE_ADD, kF16, half, half, scalar(static_cast<float>(e.sum_zero)), count);
  if (e.sum_low > least_byte(p_.elem))
    b_.binary_scalar(REGIE_TILE_MAX, kF16, half, half, scalar(static_cast<float>(e.sum_low)), count);
  b_.cast(kF16, byte_type(p_.elem), kRint, ub(result), half, count);
}

}  // namespace aicore
