// The model of time of a plan: what each pipe does for a tile, and how tiles overlap.
#include "cube_cost.h"

#include <algorithm>

#include "cube_variants.h"

namespace aicore {

CubeCost::CubeCost(const CubeProblem& p, const Chip& chip)
    : p_(p),
      chip_(chip),
      es_(p.element_bytes()),
      left_es_(p.bytes_of(p.left_elem)),
      right_es_(p.bytes_of(p.right_elem)),
      residual_es_(p.bytes_of(p.residual_elem)) {
  if (auto step = epilogue_activation(p, {})) {
    activation_ = step->op->instructions + step->op->slow * chip.hardware.slow_passes;
    activation_instructions_ = step->op->instructions + step->op->slow;
  }
}

void CubeCost::weigh(CubePlan& t) const {
  const auto& h = chip_.hardware;
  const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency, flag = h.flag_cycles;
  auto d = [](int64_t n) { return static_cast<double>(n); };
  // Weights come from the memory, and a tensor that the L2 does not hold (a product's: not with all
  // others); an addend, which was made before, if not beside the left matrix.
  const auto out = [&](bool matrix) {
    return p_.convolution ? p_.out_channels * p_.out_height * p_.out_width
                          : p_.laid_matrix(p_.m, p_.n, matrix);
  };
  const double left_size =
                   d((p_.convolution ? p_.batch * p_.channels * p_.height * p_.width : p_.left_count()) *
                     left_es_),
               addend_size = p_.epilogue.residual_operand == REGIE_NONE
                                 ? 0
                                 : d(p_.batch * out(p_.residual_matrix) * residual_es_),
               result_size = d(p_.batch * out(p_.result_matrix) * es_),
               right_size =
                   d(p_.groups * p_.k_blocks() * t.n_tiles * t.columns * p_.right_parts() * kFractal),
               sum = left_size + result_size + (p_.constant_b ? 0 : d(p_.right_count() * right_es_)),
               weights = chip_.read_rate(t.cores()),
               read = chip_.read_rate(t.cores(), p_.convolution ? left_size : sum),
               read_addend = chip_.read_rate(t.cores(), left_size + addend_size),
               write = chip_.write_rate(t.cores(), p_.convolution ? result_size : sum);
  const double load_start = h.load_start + 2 * flag, store_start = h.store_start + 2 * flag;
  // Read again, it comes from the cache; what that does not hold, once for all cores that read it together.
  const auto rate = [&](double first, double unique, double reads, double together) {
    const double missed = unique <= h.l2_bytes ? 1 / reads : 1 / std::min(reads, together);
    return 1 / (missed / first + (1 - missed) / h.l2_read);
  };
  const double parts_m = d(t.parts_m), parts_n = d(t.parts_n),
               left_reads = t.streamed ? d(t.n_tiles) : parts_n,
               left_rate = rate(read, left_size, left_reads, parts_n);
  // Each turn of the batch reads weights anew that do not stay in L1.
  const double apart = d(t.parts_b) * parts_m;
  const double right_rate =
      rate(weights, right_size, apart * (t.resident ? 1 : d(t.turns_batch * t.turns_m)), apart);
  double far = p_.constant_b ? right_size : 0;  // which all cores and pipes take from and to the memory
  if (left_size > h.l2_bytes) far += left_size * std::max(1.0, left_reads / parts_n);
  if (left_size + addend_size > h.l2_bytes) far += addend_size;
  if (result_size > h.l2_bytes) far += result_size;
  PipeCycles left, tile;
  if (p_.direct()) {
    left[REGIE_TILE_LOAD] = d(t.streamed ? t.chunks : 1) * load_start +
                            d(p_.convolution ? t.left_bytes : t.rows * p_.k * p_.lane()) / left_rate;
  } else if (p_.convolution) {
    const double units = d(up(p_.left_blocks(), t.unit_blocks) * t.pixel_chunks),
                 elements = d(p_.k0() * t.pixels * t.unit_blocks);
    left[REGIE_TILE_LOAD] = units * (d(p_.fold) * load_start +
                                     (p_.of_bytes() ? load_bytes(t) : elements * d(left_es_)) / left_rate);
    double starts = p_.left_blocked ? 1 : 3, bytes = p_.left_blocked || left_es_ == 2 ? 4 : 8;
    if (p_.left_parts == 2) {  // widened, subtracted, rounded, and turned as well
      starts += p_.left_blocked ? 3 : 4;
      bytes += p_.left_blocked ? 12 : 16;
    }
    if (p_.of_bytes()) {  // turned
      starts = 1;
      bytes = 2;
    }
    left[REGIE_TILE_VECTOR] = units * (starts * h.vector_start + 4 * flag + elements * bytes / lanes);
    const double parts = d(p_.left_parts);
    left[REGIE_TILE_STORE] =
        units * (parts * h.store_start + 4 * flag + parts * elements * d(p_.lane()) / h.ub_to_l1);
  } else {
    add_panel(left, d(t.rows), d(p_.part_blocks() * p_.k0()), d(t.unit_rows * t.unit_columns), left_es_,
              left_rate, lanes, d(p_.left_parts));
  }
  const double turns_m = d(t.turns_batch * t.turns_group * t.turns_m), inner = d(t.turns_c * t.turns_n);
  for (uint32_t i = 0; i < REGIE_TILE_PIPES; ++i) tile[i] = left[i] / (t.streamed ? 1 : inner);
  const double kb = d(p_.k_blocks()), m1 = d(t.padded_rows / 16), n1 = d(t.columns);
  const double parts = d(p_.right_parts()), right_memory = kb * n1 * parts * kFractal;
  if (p_.right_direct())
    tile[REGIE_TILE_LOAD] += load_start + kb * 16 * n1 * 32 / read;
  else if (!p_.constant_b)
    add_panel(tile, n1 * 16, kb * 16, d(t.right_unit_rows * t.right_unit_columns), right_es_, read, lanes);
  else if (!t.resident)
    tile[REGIE_TILE_LOAD] += d(t.chunks) * load_start + right_memory / right_rate;
  const double steps = d(t.chunks * t.steps);
  tile[REGIE_TILE_MOVE] +=
      steps * (2 * h.move_start + 2 * flag) + kb * m1 * kFractal / h.l1_to_l0a + right_memory / h.l1_to_l0b;
  tile[REGIE_TILE_CUBE] +=
      steps * (parts * h.cube_start + 2 * flag) + kb * m1 * n1 * parts / h.cube_efficiency;
  const double q = d(t.columns * 16 * t.padded_rows), rounds = d(t.columns / t.drained);
  double vector = q * 4 / h.l0c_to_ub, starts = 1, sums_on_cube = 0;
  auto pass = [&](double passes) {
    vector += passes * q * 4 / lanes;
    starts += passes;
  };
  double activation = activation_, activation_instructions = activation_instructions_;
  const bool as_it_is = p_.leaves_as_it_is(), residual = p_.epilogue.residual_operand != REGIE_NONE;
  if (as_it_is) {  // bounds, of halves at half the price
    activation *= d(es_) / 4;
  } else if (p_.of_bytes()) {
    const auto [passes, instructions] = bytes_out();
    vector += passes * q * 4 / lanes;
    if (p_.bytes.scaled && p_.bytes.corrected) vector += q * 4 / h.l0c_to_ub;
    starts += instructions;
    if (p_.bytes.on_cube) {
      vector += q * 4 / h.l0c_to_ub;
      tile[REGIE_TILE_STORE] += rounds * (4 * h.store_start + 4 * flag) + 4 * q / h.ub_to_l1;
      tile[REGIE_TILE_MOVE] += n1 * (2 * h.move_start + 4 * flag) + 4 * q / h.l1_to_l0a;
      sums_on_cube = n1 * (2 * h.cube_start + 4 * flag) + 4 * m1 * n1 / h.cube_efficiency;
      tile[REGIE_TILE_CUBE] += sums_on_cube;
    }
  } else if (!p_.convolution) {
    if (!p_.result_matrix || p_.epilogue.bias_operand != REGIE_NONE) pass(1);
  } else if (!p_.result_blocked)
    pass(p_.split_sums ? 9 : 2);
  if (p_.epilogue.bias_operand != REGIE_NONE && p_.convolution && !p_.cube_bias) pass(1);
  if (p_.epilogue.scaled) pass(p_.turned() && !p_.split_sums ? 2 : 1);
  if (es_ == 2 && !as_it_is) pass(1);
  if (p_.cube_bias) {
    tile[REGIE_TILE_MOVE] +=
        2 * h.move_start + 2 * flag + m1 * kFractal / h.l1_to_l0a + n1 * kFractal / h.l1_to_l0b;
    tile[REGIE_TILE_CUBE] += h.cube_start + 2 * flag + m1 * n1 / h.cube_efficiency;
  }
  if (residual && p_.cube_residual) {
    const double at_once = d(residual_blocks(t)), moves = n1 / at_once;
    tile[REGIE_TILE_LOAD] += load_start + q * d(residual_es_) / read_addend;
    tile[REGIE_TILE_MOVE] +=
        moves * (2 * h.move_start + 2 * flag + kFractal / h.l1_to_l0b) + m1 * n1 * kFractal / h.l1_to_l0a;
    tile[REGIE_TILE_CUBE] += moves * 2 * flag + n1 * (h.cube_start + m1 / h.cube_efficiency);
  } else if (residual) {
    if (!p_.of_bytes()) pass(residual_es_ == 2 ? 2 : 1);
    tile[REGIE_TILE_LOAD] +=
        rounds * load_start + (p_.of_bytes() ? store_bytes(t) : q * d(residual_es_)) / read_addend;
  }
  vector += activation * q * 4 / lanes;
  tile[REGIE_TILE_VECTOR] +=
      vector + rounds * ((starts + activation_instructions) * h.vector_start + 4 * flag);
  tile[REGIE_TILE_STORE] += rounds * store_start + (p_.of_bytes() ? store_bytes(t) : q * d(es_)) / write;
  double all = overlapped(tile, turns_m * inner) + h.l2_latency;
  if (t.streamed) {
    // Chunks overlap, so a tile fills with one of them; in UB the way in of the next tile waits for the way
    // out.
    const double turns = turns_m * inner, drain = tile[REGIE_TILE_VECTOR] - left[REGIE_TILE_VECTOR],
                 fill = (tile.sum() - tile.longest() - drain) / d(t.chunks);
    all = turns * tile.longest() + fill + drain + (p_.direct() ? 0 : (turns - 1) * (drain + fill));
  }
  if (sums_on_cube > 0) {
    // A tile's product begins when the cube has added the bytes of the one before; of a single round these
    // wait for each other.
    const double waits = (tile[REGIE_TILE_STORE] + sums_on_cube) / rounds;
    all = turns_m * inner *
              std::max(tile[REGIE_TILE_LOAD],
                       tile[REGIE_TILE_CUBE] - sums_on_cube + tile[REGIE_TILE_VECTOR] + waits) +
          tile[REGIE_TILE_LOAD] + tile[REGIE_TILE_STORE] + h.l2_latency;
  }
  if (t.sums_slots == 1) all += (turns_m * inner - 1) * tile[REGIE_TILE_VECTOR];
  if (t.left_slots == 1 && p_.convolution) all += (turns_m - 1) * left.longest();  // none is loaded ahead
  if (t.resident) all += load_start + right_memory * d(t.turns_n) / right_rate;
  // Tables are there before anything else is done, and so are zeros where they end.
  if (const double tables = d(p_.of_bytes() ? p_.bytes.tables() * table_bytes(p_, t) : 0); tables > 0)
    all += load_start + h.l2_latency + h.vector_start + 4 * flag + tables / weights + tables / lanes;
  if (p_.cube_bias) all += load_start + d(addend_bytes(p_, t)) / weights;
  if (p_.cube_residual)
    all += load_start + (residual_is_cut(p_, t) ? 2 * d(residual_bytes(p_, t)) / h.ub_to_l1 : 0);
  t.pipes = all;
  t.cycles = std::max(all, far * h.core_mhz / 1000 / h.memory_bytes_per_ns);
}

std::pair<double, double> CubeCost::bytes_out() const {
  double passes = 0, instructions = 0;
  auto add = [&](double more, double count = 1) {
    passes += more;
    instructions += count;
  };
  if (p_.epilogue.residual_operand != REGIE_NONE) {
    if (p_.bytes.on_cube)
      add(1, 3);
    else
      add(8, 10);
    for (bool used : {p_.bytes.inner_zero != 0, p_.bytes.residual_zero != 0, p_.bytes.sum_zero != 0,
                      p_.bytes.sum_low > least_byte(p_.elem)})
      if (used) add(0.5);
  }
  if (p_.requants()) {
    if (p_.turned()) add(0.5);
    return {passes, instructions};
  }
  if (p_.bytes.biased || (p_.bytes.corrected && !p_.bytes.scaled)) add(1);
  if (es_ == 4) {
    p_.turned() ? add(2, 2) : add(1);
    return {passes, instructions};
  }
  if (p_.bytes.divisor != 0) add(chip_.hardware.slow_passes);
  add(2, 2);  // to whole numbers, to halves
  if (p_.result_blocked) add(1);
  for (bool used :
       {p_.bytes.zero != 0, p_.bytes.low > least_byte(p_.elem), p_.bytes.high < most_byte(p_.elem)})
    if (used) add(0.5);
  if (p_.turned()) add(1);
  add(0.5);
  return {passes, instructions};
}

double CubeCost::load_bytes(const CubePlan& t) const {  // of a unit of a map of bytes
  return in_blocks(p_.k0() * t.unit_blocks, std::min(t.pixels, t.window * p_.width), p_.height * p_.width);
}
double CubeCost::store_bytes(const CubePlan& t) const {  // of a tile of a product of bytes
  if (!p_.convolution) return in_blocks(t.rows * (t.columns / t.drained), t.drained * 16 * es_, p_.n * es_);
  const int64_t lane = p_.result_blocked ? p_.result_lane() : 1, one = lane * es_,
                map = p_.out_height * p_.out_width;
  return in_blocks(t.columns * 16 / lane, t.rows * one, map * one);
}

void CubeCost::add_panel(PipeCycles& to, double rows, double columns, double unit, int64_t es, double read,
                         double lanes, double parts) const {
  const auto& h = chip_.hardware;
  const double units = std::max(1.0, rows * columns / unit), bytes = rows * columns * static_cast<double>(es);
  to[REGIE_TILE_LOAD] += units * (h.load_start + 2 * h.flag_cycles) + bytes / read;
  const double passes = 1 + 3 * (parts - 1);
  to[REGIE_TILE_VECTOR] += units * (passes * h.vector_start + 4 * h.flag_cycles) + passes * bytes / lanes;
  to[REGIE_TILE_STORE] += units * (parts * h.store_start + 4 * h.flag_cycles) +
                          parts * rows * columns * static_cast<double>(p_.lane()) / h.ub_to_l1;
}

}  // namespace aicore
