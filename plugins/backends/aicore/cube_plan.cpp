// Which tiles: all that fit the buffers are weighed by the model of time, the quickest is taken (the first of
// equals).
#include <algorithm>
#include <vector>

#include "channel.h"
#include "cube.h"
#include "cube_cost.h"
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
        cost_(p, chip),
        es_(p.element_bytes()),
        left_es_(p.bytes_of(p.left_elem)),
        right_es_(p.bytes_of(p.right_elem)),
        bias_es_(p.bytes_of(p.bias_elem)),
        residual_es_(p.bytes_of(p.residual_elem)) {}

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
        cost_.weigh(t);
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

  void too_big(const char* where, int64_t bytes, int64_t size) {
    if (nearest_bytes_ && bytes >= nearest_bytes_) return;
    nearest_bytes_ = bytes;
    nearest_ = std::string(where) + " has " + std::to_string(size) + " bytes, the smallest needs " +
               std::to_string(bytes);
  }

  const CubeProblem& p_;
  const Chip& chip_;
  const CubeCost cost_;
  int64_t es_, left_es_, right_es_, bias_es_, residual_es_;
  std::optional<CubePlan> best_;
  std::string nearest_ = "a row of the result is wider than L0C";
  int64_t nearest_bytes_ = 0;
};

}  // namespace

CubePlan plan_cube(const CubeProblem& problem, const Chip& chip) { return Search(problem, chip).best(); }

}  // namespace aicore
