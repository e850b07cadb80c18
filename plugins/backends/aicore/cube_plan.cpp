// Which tiles: all that fit the buffers are weighed by the model of time, the quickest is taken (the first of
// equals).
#include <algorithm>
#include <utility>
#include <vector>

#include "channel.h"
#include "cube.h"
#include "cube_variants.h"

namespace aicore {

namespace {

std::vector<int64_t> divisors(int64_t n, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

class Search {
 public:
  Search(const CubeProblem& p, const Chip& chip)
      : p_(p),
        chip_(chip),
        es_(p.element_bytes()),
        left_es_(p.bytes_of(p.left_elem)),
        right_es_(p.bytes_of(p.right_elem)),
        bias_es_(p.bytes_of(p.bias_elem)),
        residual_es_(p.bytes_of(p.residual_elem)) {
    if (auto step = epilogue_activation(p, {})) {
      activation_ = step->op->instructions + step->op->slow * chip.hardware.slow_passes;
      activation_instructions_ = step->op->instructions + step->op->slow;
    }
  }

  CubePlan best() {
    const int64_t most_rows =
        std::min<int64_t>(chip_.sizes.l0c / kSums * 16, chip_.sizes.l0a / 2 / kFractal * 16);
    if (p_.convolution) {
      for (int64_t r = 1; r <= p_.out_height; ++r) {
        if (r > 1 && r * p_.out_width > most_rows) break;
        // Row groups of equal effort only, apart from small ones.
        if (r > 4 && up(p_.out_height, r) == up(p_.out_height, r - 1)) continue;
        if (r * p_.out_width <= std::min<int64_t>(most_rows, 512)) {
          try_rows(r * p_.out_width, r, 1);
        } else {
          for (int64_t c = 2; c <= p_.out_width; ++c)
            if (p_.out_width % c == 0 && p_.out_width / c <= std::min<int64_t>(most_rows, 256)) {
              try_rows(p_.out_width / c, 1, c);
              break;
            }
        }
      }
    } else {
      for (int64_t rows : {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 384}) {
        if (rows > round_up(p_.m, 16) || rows > most_rows) break;
        try_rows(rows, 1, 1);
      }
    }
    if (!best_) throw Overflow("no tile of it fits the buffers of a core (" + nearest_ + ")");
    return *best_;
  }

 private:
  void try_rows(int64_t rows, int64_t out_rows, int64_t turns_c) {
    CubePlan t;
    t.rows = rows;
    t.padded_rows = round_up(rows, 16);
    t.out_rows = out_rows;
    t.turns_c = turns_c;
    const int64_t n1 = p_.n_blocks();
    for (int64_t columns : {1, 2, 4, 8, 16}) {
      if (columns > 1 && columns >= 2 * n1) break;
      if (p_.result_blocked && columns * 16 % p_.result_lane()) continue;
      if (p_.groups > 1 && n1 % columns) continue;
      t.columns = columns;
      t.n_tiles = up(n1, columns);
      const int64_t m1 = t.padded_rows / 16;
      t.sums_slots = std::min<int64_t>(2, chip_.sizes.l0c / (m1 * columns * kSums));
      if (t.sums_slots == 0) break;
      t.step = std::min<int64_t>(
          {(chip_.sizes.l0a - sum_left(t)) / 2 / (m1 * kFractal),
           (chip_.sizes.l0b - p_.bytes.sum_bytes()) / 2 / (columns * p_.right_parts() * kFractal),
           p_.k_blocks()});
      if (t.step < 1) break;
      t.l0a_sum = chip_.sizes.l0a - sum_left(t);
      t.l0b_sum = chip_.sizes.l0b - p_.bytes.sum_bytes();
      try_parts(t);
    }
  }

  // Of a sum on the cube: of L0A, for 16 channels of both addends, and of L1, for all of a tile.
  int64_t sum_left(const CubePlan& t) const { return p_.bytes.on_cube ? 2 * t.padded_rows * kBlock : 0; }
  int64_t sum_panel(const CubePlan& t) const { return sum_left(t) * t.columns + p_.bytes.sum_bytes(); }

  void try_parts(CubePlan t) {
    const int64_t batches = p_.batch * p_.groups, cores = chip_.cores;
    const int64_t row_tiles = p_.convolution ? up(p_.out_height, t.out_rows) : up(p_.m, t.rows);
    for (int64_t pb : divisors(batches, batches)) {
      if (batches / pb > cores) continue;
      if (p_.groups > 1 && p_.batch > 1 && pb % p_.groups && p_.groups % pb) continue;
      t.parts_b = batches / pb;
      const bool whole = p_.groups == 1 || (p_.batch > 1 && pb % p_.groups == 0);
      t.turns_batch = p_.groups == 1 ? pb : whole ? pb / p_.groups : 1;
      t.turns_group = p_.groups == 1 ? 1 : whole ? p_.groups : pb;
      for (int64_t cn : divisors(t.n_tiles, cores / t.parts_b)) {
        t.parts_n = cn;
        t.turns_n = t.n_tiles / cn;
        int64_t cm = std::min(cores / (t.parts_b * cn), row_tiles);
        t.turns_m = up(row_tiles, cm);
        t.parts_m = up(row_tiles, t.turns_m);
        // More parts than row tiles would let cores idle: tried as it is, and no more.
        try_memory(t);
        if (!p_.convolution && p_.constant_b && !p_.transposed_a) try_streamed(t);
      }
    }
  }

  // Rows of a unit in UB, of `rows`: as many as `elements` hold, and such that units are whole.
  static int64_t unit_rows(int64_t elements, int64_t columns, int64_t rows) {
    return std::clamp<int64_t>(elements / columns / 16 * 16, 16, rows);
  }
  static int64_t even_rows(int64_t elements, int64_t columns, int64_t rows) {
    int64_t n = unit_rows(elements, columns, rows);
    while (rows % n) n -= 16;
    return n;
  }

  // Gives chunk, slots and addresses.
  void try_memory(CubePlan t) {
    const int64_t kb = p_.k_blocks();
    if (p_.convolution) {
      t.window = std::min((t.out_rows - 1) * p_.map_stride() + (p_.map_kernel() - 1) * p_.map_dilation() + 1,
                          p_.map_height());
      const int64_t all = t.window * p_.width;
      // Positions of k0 channels in UB, in whole blocks of a transposition.
      const int64_t some = chip_.sizes.ub >= (220 << 10) && p_.left_parts == 1 ? 384 : 256,
                    most = some * (p_.of_bytes() ? 2 : 1);
      t.pixels = p_.fold > 1 ? p_.width : std::min<int64_t>(round_up(all, p_.k0()), most);
      t.pixel_chunks = up(all, t.pixels);
      t.pixels = round_up(up(all, t.pixel_chunks), p_.k0());
      t.plane = p_.direct() ? all * kBlock : t.pixel_chunks * t.pixels * kBlock;
      // Small windows: several blocks of channels at a time.
      const int64_t blocks =
          t.pixel_chunks == 1 && !p_.direct() ? std::clamp<int64_t>(most / t.pixels, 1, p_.left_blocks()) : 1;
      t.unit_blocks = up(p_.left_blocks(), up(p_.left_blocks(), blocks));
      // Parts lie behind each other without a gap.
      while (p_.left_parts == 2 && p_.left_blocks() % t.unit_blocks) --t.unit_blocks;
      t.left_bytes = p_.left_parts * round_up(p_.left_blocks(), t.unit_blocks) * t.plane;
    } else {
      const int64_t budget = p_.constant_b && p_.left_parts == 1 ? 8192 : 4096;
      if (p_.transposed_a) {
        t.unit_columns = t.rows > 256 ? t.rows / 2 : t.rows;
        t.unit_rows = unit_rows(budget, t.unit_columns, kb * 16);
        t.left_bytes = round_up(kb * 16, t.unit_rows) * t.rows * 2;
      } else {
        t.unit_columns = std::min<int64_t>(kb * p_.k0(), 256);
        if (p_.left_parts == 2)
          while (p_.part_blocks() * 16 % t.unit_columns) t.unit_columns -= 16;
        t.unit_rows = even_rows(budget, t.unit_columns, t.rows);
        t.left_bytes =
            (p_.direct() ? kb : round_up(kb * p_.k0(), t.unit_columns) / p_.k0()) * t.rows * kBlock;
      }
    }
    const int64_t all = chip_.sizes.l1 - addend_bytes(p_, t) - 2 * residual_bytes(p_, t) - sum_panel(t);
    int64_t left = all;
    for (int64_t slots : {2, 1}) {
      t.left_slots = slots;
      left = all - slots * t.left_bytes;
      if (left >= 2 * t.step * t.columns * p_.right_parts() * kFractal) break;
    }
    const int64_t block = t.columns * p_.right_parts() * kFractal;  // of the right matrix, a block of k
    if (!p_.constant_b) {
      // All of k of a tile.
      const bool turned = p_.transposed_b;
      const int64_t rows = turned ? t.columns * 16 : kb * 16, columns = turned ? kb * 16 : t.columns * 16;
      t.right_unit_columns = std::min<int64_t>(columns, 256);
      t.right_unit_rows =
          turned ? even_rows(4096, t.right_unit_columns, rows) : unit_rows(4096, t.right_unit_columns, rows);
      if (p_.right_direct()) t.right_unit_columns = t.right_unit_rows = 16;
      t.right_bytes = round_up(rows, t.right_unit_rows) * round_up(columns, t.right_unit_columns) * 2;
      t.chunk = kb;
      t.chunks = 1;
      if (2 * t.right_bytes > left)
        return too_big("L1", 2 * t.right_bytes + t.left_slots * t.left_bytes, chip_.sizes.l1);
    } else {
      t.resident = p_.groups == 1 && kb * block * t.turns_n <= left &&
                   (t.turns_m * t.turns_batch > 1 || t.turns_n == 1);
      if (t.resident) {
        t.chunk = kb;
        t.chunks = 1;
        t.right_bytes = kb * block * t.turns_n;
      } else {
        t.chunk = std::min<int64_t>(left / 2 / block / t.step * t.step, round_up(kb, t.step));
        if (t.chunk < t.step)
          return too_big("L1", t.left_slots * t.left_bytes + 2 * t.step * block, chip_.sizes.l1);
        // Chunks of a size that lets loading and computing overlap.
        t.chunk =
            std::min<int64_t>(t.chunk, round_up(std::max<int64_t>(up(65536, block), up(kb, 4)), t.step));
        t.chunks = up(kb, t.chunk);
        t.right_bytes = t.chunk * block;
      }
    }
    finish(t);
  }

  // Both matrices in chunks of k: the largest that leave two of each in L1, and some smaller ones, which fill
  // sooner.
  void try_streamed(CubePlan t) {
    const int64_t kb = p_.k_blocks(), block = t.columns * p_.right_parts() * kFractal;
    t.streamed = true;
    t.left_slots = 2;
    t.unit_columns = 256;
    t.unit_rows = even_rows(p_.left_parts == 1 ? 8192 : 4096, t.unit_columns, t.rows);
    while (t.step & (t.step - 1)) t.step &= t.step - 1;
    const int64_t unit = std::max<int64_t>(16, t.step);
    const int64_t most = chip_.sizes.l1 / 2 / (t.rows * kBlock + block) / unit * unit;
    for (int64_t chunk = std::min(most, round_up(kb, unit)); chunk >= unit; chunk = chunk / 2 / unit * unit) {
      t.chunk = chunk;
      t.chunks = up(kb, chunk);
      if (t.chunks == 1) continue;  // then it is one panel
      if (p_.left_parts == 2 && p_.part_blocks() % chunk) continue;
      t.left_bytes = t.rows * chunk * kBlock;
      t.right_bytes = chunk * block;
      finish(t);
    }
  }

  // Addresses and time of what is cut.
  void finish(CubePlan t) {
    t.steps = up(t.chunk, t.step);
    Room l1(chip_.sizes.l1);
    t.l1_left = l1.take(t.left_slots * t.left_bytes);
    t.l1_right = l1.take((t.resident ? 1 : 2) * t.right_bytes);
    if (p_.bytes.on_cube) {
      t.l1_sum = l1.take(sum_left(t) * t.columns);
      t.l1_sum_right = l1.take(p_.bytes.sum_bytes());
    }
    t.l1_addends = l1.take(addend_bytes(p_, t));
    t.l1_residual = l1.take(2 * residual_bytes(p_, t));
    if (!l1.fits()) return too_big("L1", l1.used(), chip_.sizes.l1);
    bool fits = false;
    for (int64_t drained : {16, 8, 4, 2, 1}) {
      // Bytes leave room for more, and their way out has more instructions to start.
      if (t.columns % drained || (drained > 4 && !p_.of_bytes())) continue;
      if (p_.result_blocked && drained * 16 % p_.result_lane()) continue;
      t.drained = drained;
      if (place_ub(t)) {
        weigh(t);
        if (!best_ || t < *best_) best_ = t;
        if (!p_.bytes.on_cube) return;
        fits = true;  // how many rounds overlap is weighed
      }
    }
    if (!fits) too_big("UB", t.ub_used, chip_.sizes.ub);
  }

  bool place_ub(CubePlan& t) const {
    Room ub(chip_.sizes.ub);
    if (p_.direct()) {
      // Nothing of the left matrix comes by here.
    } else if (p_.convolution) {
      const int64_t unit = p_.k0() * t.pixels * t.unit_blocks;
      t.ub_load = ub.take(2 * unit * left_es_);
      t.ub_cast = left_es_ == 4 && !p_.left_blocked ? ub.take(unit * 2) : t.ub_load;
      t.ub_panel = ub.take(p_.left_parts * 2 * unit * p_.lane());
      if (p_.left_parts == 2) t.ub_wide = ub.take(unit * 4);
    } else {
      t.ub_load = ub.take(2 * t.unit_rows * t.unit_columns * left_es_);
      t.ub_panel = ub.take(p_.left_parts * 2 * t.unit_rows * t.unit_columns * p_.lane());
      if (p_.left_parts == 2) t.ub_wide = ub.take(t.unit_rows * t.unit_columns * 4);
    }
    if (p_.of_bytes()) return place_bytes(t, ub);
    if (!p_.constant_b && !p_.right_direct()) {
      t.ub_right_load = ub.take(2 * t.right_unit_rows * t.right_unit_columns * right_es_);
      t.ub_right_panel = ub.take(2 * t.right_unit_rows * t.right_unit_columns * 2);
    }
    const int64_t q = t.drained * 16 * t.padded_rows;
    if (p_.leaves_as_it_is()) {
      t.ub_result = ub.take(2 * q * es_);
      t.ub_used = ub.used();
      return ub.fits();
    }
    if (p_.epilogue.bias_operand != REGIE_NONE && !p_.cube_bias) {
      t.ub_bias = ub.take(table_bytes(p_, t));
      t.ub_bias_load = bias_es_ == 2 ? ub.take(table_bytes(p_, t) / 2) : t.ub_bias;
    }
    if (p_.epilogue.scaled) t.ub_factors = ub.take(table_bytes(p_, t));
    const bool turned = p_.turned();
    if (p_.epilogue.residual_operand != REGIE_NONE && !p_.cube_residual)
      t.ub_residual = ub.take(2 * q * residual_es_);
    t.ub_drain = ub.take(q * (turned && !p_.epilogue.scaled && !p_.split_sums ? 2 : 4));
    if (turned) t.ub_turned = ub.take(q * (p_.split_sums ? 4 : 2));
    t.ub_sum = ub.take(q * 4);
    t.ub_temporary = ub.take(q * 4 * epilogue_temporaries(p_));
    t.ub_value = es_ == 2 ? ub.take(q * 4) : 0;
    t.ub_result = ub.take(2 * q * es_);
    t.ub_used = ub.used();
    return ub.fits();
  }

  // What the sums of a product of bytes take on their way out.
  bool place_bytes(CubePlan& t, Room& ub) const {
    const int64_t q = t.drained * 16 * t.padded_rows;
    t.ub_tables = ub.take(p_.bytes.tables() * table_bytes(p_, t));
    t.ub_scalars = ub.take(4 * kBlock);
    t.result_slot = q * es_;
    if (p_.requants()) {
      if (p_.turned()) {
        t.result_slot = up(t.drained, 2) * 32 * round_up(t.padded_rows, 32);
        t.ub_half = ub.take(t.result_slot);
      }
    } else {
      t.ub_drain = ub.take(q * 4);
      t.ub_sum = p_.epilogue.activation.empty() ? t.ub_drain : ub.take(q * 4);
      t.ub_temporary = ub.take(q * 4 * epilogue_temporaries(p_));
      t.ub_half = es_ == 1 ? ub.take(q * 2) : 0;
      t.ub_turned = es_ == 1 && p_.turned() ? ub.take(q * 2) : t.ub_half;
    }
    t.ub_result = ub.take(2 * t.result_slot);
    if (p_.epilogue.residual_operand != REGIE_NONE) {
      t.ub_residual = ub.take(2 * t.result_slot);
      t.ub_sum_half = ub.take(t.result_slot * (!p_.bytes.on_cube ? 2 : t.columns == t.drained ? 4 : 8));
    }
    if (p_.epilogue.residual_operand != REGIE_NONE && !p_.bytes.on_cube) {
      t.ub_sum_inner = ub.take(t.result_slot * 4);
      t.ub_sum_outer = ub.take(t.result_slot * 4);
    }
    t.ub_used = ub.used();
    return ub.fits();
  }

  void weigh(CubePlan& t) const {
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

  // What is done to the sums of a product of bytes: passes of four bytes an element, and instructions.
  std::pair<double, double> bytes_out() const {
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

  double load_bytes(const CubePlan& t) const {  // of a unit of a map of bytes
    return in_blocks(p_.k0() * t.unit_blocks, std::min(t.pixels, t.window * p_.width), p_.height * p_.width);
  }
  double store_bytes(const CubePlan& t) const {  // of a tile of a product of bytes
    if (!p_.convolution) return in_blocks(t.rows * (t.columns / t.drained), t.drained * 16 * es_, p_.n * es_);
    const int64_t lane = p_.result_blocked ? p_.result_lane() : 1, one = lane * es_,
                  map = p_.out_height * p_.out_width;
    return in_blocks(t.columns * 16 / lane, t.rows * one, map * one);
  }

  void add_panel(PipeCycles& to, double rows, double columns, double unit, int64_t es, double read,
                 double lanes, double parts = 1) const {
    const auto& h = chip_.hardware;
    const double units = std::max(1.0, rows * columns / unit),
                 bytes = rows * columns * static_cast<double>(es);
    to[REGIE_TILE_LOAD] += units * (h.load_start + 2 * h.flag_cycles) + bytes / read;
    const double passes = 1 + 3 * (parts - 1);
    to[REGIE_TILE_VECTOR] += units * (passes * h.vector_start + 4 * h.flag_cycles) + passes * bytes / lanes;
    to[REGIE_TILE_STORE] += units * (parts * h.store_start + 4 * h.flag_cycles) +
                            parts * rows * columns * static_cast<double>(p_.lane()) / h.ub_to_l1;
  }

  void too_big(const char* where, int64_t bytes, int64_t size) {
    if (nearest_bytes_ && bytes >= nearest_bytes_) return;
    nearest_bytes_ = bytes;
    nearest_ = std::string(where) + " has " + std::to_string(size) + " bytes, the smallest needs " +
               std::to_string(bytes);
  }

  const CubeProblem& p_;
  const Chip& chip_;
  int64_t es_, left_es_, right_es_, bias_es_, residual_es_;
  double activation_ = 0, activation_instructions_ = 0;
  std::optional<CubePlan> best_;
  std::string nearest_ = "a row of the result is wider than L0C";
  int64_t nearest_bytes_ = 0;
};

}  // namespace

CubePlan plan_cube(const CubeProblem& problem, const Chip& chip) { return Search(problem, chip).best(); }

}  // namespace aicore
