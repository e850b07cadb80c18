// What the cube adds to the sums of a convolution, where it would keep the vector unit busy: the bias as a
// product of a column of ones with its three halves, and a residual of halves as its product with the unit
// matrix. Both are exact in the sums' f32, take one block of k each, and leave the way out to round.
#include <cmath>
#include <cstring>
#include <vector>

#include "cube_emitter.h"
#include "cube_variants.h"
#include "half.h"

namespace aicore {

using namespace regie::tile;

namespace {

constexpr int64_t kBiasParts = 3;  // halves that a bias is the sum of

bool is_half(float v) { return from_half(to_half(v)) == v; }

}  // namespace

bool CubeProblem::leaves_as_it_is() const {
  const Epilogue& e = epilogue;
  const bool bounds = e.activation == "Clip" &&
                      (element_bytes() == 4 || (is_half(e.activation_alpha) && is_half(e.activation_beta)));
  return convolution && result_blocked && !of_bytes() && !e.scaled &&
         (cube_bias || e.bias_operand == REGIE_NONE) && (cube_residual || e.residual_operand == REGIE_NONE) &&
         (e.activation.empty() || e.activation == "Relu" || bounds);
}

bool let_cube_add(CubeProblem& p, const regie_tensor* bias) {
  const Epilogue& e = p.epilogue;
  if (!p.convolution || !p.result_blocked || p.of_bytes() || e.scaled || p.left_parts != 1 || !bias ||
      !bias->data)
    return false;
  float most = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(e.bias_count); ++i) {
    const float b = std::abs(float_at(*bias, i));
    if (!(b <= 16384)) return false;  // nor is it if it is not a number
    most = std::max(most, b);
  }
  // The smaller what stands for one, the more bits of small biases the halves have.
  p.ones = 1;
  while (most < 16384 && p.ones > 0x1p-14F) {
    p.ones /= 2;
    most *= 2;
  }
  p.cube_bias = true;
  p.cube_residual = e.residual_operand != REGIE_NONE && p.bytes_of(p.residual_elem) == 2;
  return true;
}

std::string pack_addends(const CubeProblem& p, const CubePlan& t, const regie_tensor& bias) {
  const int64_t blocks = t.n_tiles * t.columns;
  std::string out(static_cast<size_t>(packed_addend_bytes(p, t)), '\0');
  auto put = [&](int64_t block, int64_t n, int64_t k, uint16_t half) {
    std::memcpy(out.data() + (block * 256 + n * 16 + k) * 2, &half, 2);
  };
  for (int64_t n = 0; n < static_cast<int64_t>(p.epilogue.bias_count); ++n) {
    const int64_t group = n / p.out_group, column = n % p.out_group;
    float left = float_at(bias, n) / p.ones;
    for (int64_t k = 0; k < kBiasParts; ++k) {
      const uint16_t half = to_half(left);
      put(group * blocks + column / 16, column % 16, k, half);
      left -= from_half(half);
    }
  }
  if (p.cube_residual)
    for (int64_t i = 0; i < 16; ++i) put(p.groups * blocks, i, i, to_half(1));
  return out;
}

void Emitter::load_addends() {
  if (addends_ == REGIE_NONE) return;
  const int64_t own = t_.turns_n * t_.columns * kFractal, group = t_.n_tiles * t_.columns * kFractal;
  b_.copy(l1(t_.l1_addends), gm(addends_, first_group_ * group + part_n_ * own), own,
          {t_.turns_group, own, group});
  if (added_ != REGIE_NONE) {
    b_.copy(l1(t_.l1_addends + t_.turns_group * own), gm(addends_, p_.groups * group), kFractal);
    if (residual_is_cut(p_, t_))
      b_.fill(l1(t_.l1_residual), REGIE_TILE_F16, 0, residual_bytes(p_, t_));  // two of them, two bytes each
  }
  hand_over(b_, flags_, REGIE_TILE_LOAD, REGIE_TILE_MOVE);
}

void Emitter::load_residual(const Turn& turn, const Expr& c, const Expr& n, const Expr& slot) {
  const Part x = part(turn, c, n, 0, 2);
  residual_ready_->begin_write(slot);
  b_.copy(l1(slot * residual_bytes(p_, t_) + t_.l1_residual), gm(added_, x.offset), x.run,
          {clamp(0, t_.columns, Expr(p_.lanes_out() / 16) - first_block(turn, n, 0)), t_.padded_rows * kBlock,
           x.pitch});
  residual_ready_->end_write(slot);
}

void Emitter::load_first_residuals(const Turn& turn, const Expr& c, const Expr& slot) {
  if (added_ == REGIE_NONE) return;
  load_residual(turn, c, 0, slot);
  if (t_.turns_n > 1) load_residual(turn, c, 1, 1);
}

// While tile n is computed.
void Emitter::load_next_residual(const Turn& turn, const Expr& c, const Expr& n) {
  if (added_ == REGIE_NONE || t_.turns_n <= 2) return;
  b_.loop(clamp(0, 1, n), [&](const Expr&) {
    b_.loop(clamp(0, 1, Expr(t_.turns_n - 1) - n),
            [&](const Expr&) { load_residual(turn, c, n + 1, 1 - (n % 2)); });
  });
}

void Emitter::add_bias(const Turn& turn, const Expr& n, const Expr& slot) {
  if (addends_ == REGIE_NONE) return;
  const int64_t m1 = t_.padded_rows / 16;
  // Not the half of L0 that the first step takes.
  const Expr l0 = t_.steps > 1 || t_.chunks > 1 ? Expr(1) : 1 - slot;
  const Expr block = turn.at[1] * (t_.turns_n * t_.columns) + n * t_.columns;
  const Expr to_a = l0 * (m1 * t_.step * kFractal), to_b = l0 * (t_.step * this->block());
  l0_->begin_write(l0);
  b_.fill(l0a(to_a), REGIE_TILE_F16, scalar(p_.ones), m1 * kFractal / 2);
  b_.fractal(l0b(to_b), l1(block * kFractal + t_.l1_addends), {t_.columns, kFractal, kFractal});
  l0_->end_write(l0);
  l0_->begin_read(l0);
  b_.mmad(REGIE_TILE_F16, l0c(sums_slot(slot) * sums_bytes()), l0a(to_a), l0b(to_b), t_.padded_rows,
          t_.columns * 16, kBiasParts, 0, m1 * kSums, kFractal, t_.columns * kFractal);
  l0_->end_read(l0);
}

void Emitter::add_residual(const Expr& slot) {
  if (added_ == REGIE_NONE) return;
  const int64_t m1 = t_.padded_rows / 16, at_once = residual_blocks(t_), rounds = t_.columns / at_once;
  residual_ready_->begin_read(slot);
  auto one = [&](const Expr& r, const Expr& l0) {
    const Expr to_a = l0 * (m1 * t_.step * kFractal), to_b = l0 * (t_.step * block());
    l0_->begin_write(l0);
    b_.fractal(l0a(to_a), l1(slot * residual_bytes(p_, t_) + r * (at_once * m1 * kFractal) + t_.l1_residual),
               {m1 * at_once, kFractal, kFractal});
    b_.fractal(l0b(to_b), l1(t_.l1_addends + addend_bytes(p_, t_) - kFractal), {1, kFractal, kFractal});
    l0_->end_write(l0);
    l0_->begin_read(l0);
    for (int64_t j = 0; j < at_once; ++j)
      b_.mmad(REGIE_TILE_F16, l0c(sums_slot(slot) * sums_bytes() + (r * at_once + j) * (m1 * kSums)),
              l0a(to_a + j * m1 * kFractal), l0b(to_b), t_.padded_rows, 16, 16, 1, m1 * kSums, kFractal,
              kFractal);
    l0_->end_read(l0);
  };
  if (rounds == 1)
    one(0, t_.steps > 1 || t_.chunks > 1 ? Expr(1) : 1 - slot);
  else
    b_.loop(rounds, [&](const Expr& r) { one(r, r % 2); });
  residual_ready_->end_read(slot);
}

// Sums that are the result but for rounding and bounds: halves are bounded as halves, which gives the same
// bits, as rounding keeps the order and bounds are halves.
void Emitter::round_as_it_is(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                             const Expr& out) {
  const Epilogue& e = p_.epilogue;
  const int64_t m = t_.padded_rows, count = q();
  const Part x = part(turn, c, n, r, es_);
  const uint8_t type = es_ == 2 ? REGIE_TILE_F16 : REGIE_TILE_F32;
  const Expr result = out * (count * es_) + t_.ub_result;
  results_->begin_write(out);
  b_.drain(REGIE_TILE_F32, type, ub(result),
           l0c(sums_slot(slot) * sums_bytes() + r * (t_.drained * m / 16 * kSums)), m, t_.drained,
           m * 16 * es_, m / 16 * kSums);
  if (e.activation == "Relu") b_.unary(REGIE_TILE_RELU, type, ub(result), ub(result), count);
  if (e.activation == "Clip") {
    b_.binary_scalar(REGIE_TILE_MAX, type, ub(result), ub(result), scalar(e.activation_alpha), count);
    b_.binary_scalar(REGIE_TILE_MIN, type, ub(result), ub(result), scalar(e.activation_beta), count);
  }
  if (p_.out_channels % 16) fill_up(turn, n, r, result);
  results_->end_write(out);
  results_->begin_read(out);
  b_.copy(gm(result_, x.offset), ub(result), x.run, {x.runs, x.pitch, x.row * es_});
  results_->end_read(out);
}

}  // namespace aicore
