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

void Emitter::round_of_bytes(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                             const Expr& out) {
  const ByteEpilogue& e = p_.bytes;
  const int64_t m = t_.padded_rows, d = t_.drained, count = q(), table = table_bytes(p_, t_);
  const Part x = part(turn, c, n, r, es_);
  const Expr from = sums_slot(slot) * sums_bytes() + r * (d * m / 16 * kSums);
  const Expr channel = first_channel(turn, n, r);
  const Place sums = ub(t_.ub_drain);
  int64_t next = t_.ub_tables;
  auto with_table = [&](uint8_t op, uint8_t type) {
    by_column(op, type, t_.ub_drain, channel * 4 + next);
    next += table;
  };
  b_.drain(kS32, kS32, sums, l0c(from), m, d, m * 64, m / 16 * kSums);
  if (e.corrected) with_table(REGIE_TILE_ADD, kS32);
  int64_t value = t_.ub_drain;
  if (p_.elem != REGIE_I32) {
    b_.cast(kS32, kF32, kRint, sums, sums, count);
    if (e.scaled) with_table(REGIE_TILE_MUL, kF32);
    if (e.biased) with_table(REGIE_TILE_ADD, kF32);
    if (const auto step = epilogue_activation(p_, {value, std::nullopt})) {
      activate(*step, t_.ub_sum);
      value = t_.ub_sum;
    }
  }
  const Expr result = out * (count * es_) + t_.ub_result;
  if (es_ == 4) {
    results_->begin_write(out);
    arrange_words(p_.elem == REGIE_I32 ? kS32 : kF32, result, value);
  } else {
    const Place whole = ub(value), half = ub(t_.ub_half);
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
    if (p_.convolution && !p_.result_blocked)
      b_.transpose(ub(t_.ub_turned), half, m * 2, 32, {m / 16, 32, 512}, {d, 16 * m * 2, m * 32});
    results_->begin_write(out);
    b_.cast(kF16, byte_type(p_.elem), kRint, ub(result), ub(t_.ub_turned), count);
  }
  results_->end_write(out);
  results_->begin_read(out);
  b_.copy(gm(result_, x.offset), ub(result), x.run, {x.runs, x.pitch, x.row * es_});
  results_->end_read(out);
}

}  // namespace aicore
