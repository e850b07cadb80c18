// Writes the program of a CubePlan. Counts on chip are those of whole tiles everywhere; only what goes to or
// comes from global memory is cut to what there is, so that ragged edges cost no branches. The loops and the
// product are in cube_emit.cpp, the way in of both matrices in cube_load.cpp, the way out in cube_drain.cpp.
#pragma once

#include <functional>
#include <optional>

#include "channel.h"
#include "cube.h"
#include "window.h"

namespace aicore {

class Emitter {
 public:
  using Builder = regie::tile::Builder;
  using Expr = regie::tile::Expr;

  Emitter(const CubeProblem& problem, const CubePlan& plan, Builder& builder, const CubeBuffers& g);
  void emit();

 private:
  struct Turn {
    Expr at[3] = {0, 0, 0};  // batch, group, row tile of this core
  };

  // What there is.

  Expr batch(const Turn& t) const { return first_batch_ + t.at[0]; }
  Expr group(const Turn& t) const { return first_group_ + t.at[1]; }
  Expr row_tile(const Turn& t) const { return part_m_ * t_.turns_m + t.at[2]; }

  // Bytes on chip that a cut load leaves unwritten must have been written once.
  void clear();
  int64_t q() const { return t_.drained * 16 * t_.padded_rows; }

  void load_bias();
  void load_factors();
  // Of what the cube adds (cube_addends.cpp): once, of a turn's first tiles, of the tile after the next.
  void load_addends();
  void load_residual(const Turn& turn, const Expr& c, const Expr& n, const Expr& slot);
  void load_first_residuals(const Turn& turn, const Expr& c, const Expr& slot);
  void load_next_residual(const Turn& turn, const Expr& c, const Expr& n);
  void add_bias(const Turn& turn, const Expr& n, const Expr& slot);
  void add_residual(const Expr& slot);
  // Of a product of bytes (cube_bytes.cpp).
  void load_tables();
  void open();

  // Loops.

  void nest(int level, int inner, Turn& turn);
  // `after_first`: what is written behind the first tile.
  void tiles(const Turn& turn, const Expr& left_slot, const Expr& turn_slot = 0,
             const std::function<void()>& after_first = {});
  void tile(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& slot);

  // The left panel.

  // The window of input rows of a tile.
  void window(const Expr& tile, const std::function<void(const Window&)>& body);
  Expr left_base(const Turn& turn) const;
  void load_left(const Turn& turn, const Expr& slot, const Expr& chunk = 0);

  // A feature map: 16 channels of some positions at a time become positions of 16 channels.
  void load_map(const Turn& turn, const Expr& slot);
  // A row of it where several are folded to one (cube_fold.cpp): its loads, and zeros for rows that the input
  // has not.
  void load_folded(const Turn& turn, const Expr& row, const Expr& to);
  void clear_folded(const Expr& row, const Expr& half);
  // A left panel of halves that needs nothing done.
  void load_directly(const Turn& turn, const Expr& slot, const Expr& chunk);

  // The right matrix of a tile likewise.
  void load_right_directly(const Turn& turn, const Expr& n, const Expr& slot);

  // Which halves of an f32 panel (CubeProblem::left_parts): the rounded values; both, these behind each other
  // in L1; or one of them, the rest where `rest` is 1.
  struct Parts {
    bool both = false;
    std::optional<Expr> rest = std::nullopt;
  };
  // What rounding to `half` lost of `n` elements: `subtract` takes ub_wide from what was rounded.
  void rest_of(const Expr& half, const Expr& n, const std::function<void()>& subtract, const Expr& to);

  // Part of a row-major matrix, `rows` x `columns` from (r0, c0), to L1 as blocks of 16 columns: (column
  // block, row, 16).
  void load_panel(uint32_t buffer, int64_t es, const Expr& base, const Expr& r0, int64_t all_rows,
                  const Expr& c0, int64_t all_columns, int64_t rows, int64_t columns, int64_t unit_rows,
                  int64_t unit_columns, int64_t ub_load, int64_t ub_panel, Channel& unit, Channel& panel,
                  const Expr& to, const Parts& parts);

  // The right matrix.

  Expr column_tile(const Expr& n) const { return part_n_ * t_.turns_n + n; }
  int64_t block() const { return t_.columns * p_.right_parts() * kFractal; }
  Expr packed_from(const Turn& turn, const Expr& n, const Expr& first_k) const;
  void load_resident();

  // The product.

  void product(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& slot);
  void step(const Turn& turn, const Expr& left_slot, const Expr& c, const Expr& n, const Expr& k,
            const Expr& s, const Expr& right_slot, const Expr& slot);
  Expr sums_slot(const Expr& slot) const { return t_.sums_slots == 1 ? Expr(0) : slot; }
  int64_t sums_bytes() const { return t_.padded_rows / 16 * t_.columns * kSums; }

  // The way out.

  void way_out(const Turn& turn, const Expr& c, const Expr& n, const Expr& slot);

  void round_as_it_is(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                      const Expr& out);
  void round_of_bytes(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                      const Expr& out);
  // A round's sums out of L0C, by the tables: to f32 in L0C's order, or to the bytes of the result.
  void scale_sums(const Expr& from, const Expr& channel);
  void requantise(const Expr& from, const Expr& channel, const Expr& result);
  void round_words(int64_t value, const Expr& result, const Expr& out);
  // `count` bytes of the result and as many of the residual become bytes of their sum.
  void add_bytes(const Expr& result, const Expr& out);
  void load_sum();
  // Bytes as halves, less their zero point.
  void widen_bytes(regie_elem elem, const Expr& from, int32_t zero, const Expr& to);
  // The tables of columns from `channel` on, as requant takes them.
  regie::tile::Requant tables_of(const Expr& channel, int64_t row) const;
  // Sums, or what was made of them, in four bytes each, to the result's order.
  void arrange_words(uint8_t type, const Expr& to, const Expr& from);
  // What the cube and im2col take the left matrix for.
  uint8_t left_type() const { return p_.of_bytes() ? byte_type(p_.left_elem) : uint8_t{REGIE_TILE_F16}; }

  // Where a round's part of the result (and of the residual) lies in global memory.
  struct Part {
    Expr offset = 0, run = 0, runs = 0;  // bytes, bytes, count
    int64_t pitch = 0;                   // bytes from run to run there
    int64_t row = 0;                     // bytes from run to run in UB, for an element of one byte
  };
  // The first column of a round within its group, and that as a channel of the result.
  Expr first_column(const Expr& n, const Expr& r) const {
    return column_tile(n) * (t_.columns * 16) + r * (t_.drained * 16);
  }
  Expr first_channel(const Turn& turn, const Expr& n, const Expr& r) const {
    return (p_.groups == 1 ? Expr(0) : group(turn) * p_.out_group) + first_column(n, r);
  }
  // The same in blocks of channels.
  Expr first_block(const Turn& turn, const Expr& n, const Expr& r) const {
    const int64_t lane = p_.result_lane();
    return (p_.groups == 1 ? Expr(0) : group(turn) * (p_.out_group / lane)) +
           column_tile(n) * (t_.columns * 16 / lane) + r * (t_.drained * 16 / lane);
  }
  // A residual that lies in another order than the result comes in blocks of 16 columns of single rows.
  void load_residual(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& out);
  // Of a product in FRACTAL_NZ: what fills up rows and columns is zero.
  void fill_matrix(const Turn& turn, const Expr& n, const Expr& r, const Expr& result);
  Part part(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, int64_t es) const;
  // The same as a product on the cube, to where the round's sums lay in L0C: up to it, and from it on.
  void begin_sum(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
                 const Expr& out);
  void end_sum(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
               const Expr& out);
  void load_residual(const Part& x, const Expr& out);
  void store_result(const Part& x, const Expr& out);
  Expr sums_of_round(const Expr& slot, const Expr& r) const {
    return sums_slot(slot) * sums_bytes() + r * (t_.drained * t_.padded_rows / 16 * kSums);
  }
  Expr sum_slot(const Expr& out) const { return t_.columns == t_.drained ? Expr(0) : out; }
  // ub_drain, in L0C's order, with a table's number for each column.
  void by_column(uint8_t op, uint8_t type, const Expr& to, const Expr& table);
  void activate(const VectorStep& step, const Expr& to);
  void turn_sums(int64_t to, int64_t from);
  void turn_sums_twice(int64_t count);
  void fill_up(const Turn& turn, const Expr& n, const Expr& r, const Expr& result);
  void round(const Turn& turn, const Expr& c, const Expr& n, const Expr& r, const Expr& slot,
             const Expr& out);

  const CubeProblem& p_;
  const CubePlan& t_;
  Builder& b_;
  Flags flags_;
  int64_t es_, left_es_, right_es_, bias_es_, residual_es_;
  uint32_t left_, right_, bias_, residual_, result_, factors_;
  uint32_t addends_, added_;  // instead of bias and residual, where the cube adds them
  int64_t right_offset_, factors_offset_;
  int64_t tables_offset_;  // of a product of bytes
  int64_t sum_offset_ = 0;
  uint32_t zero_, scale_;
  Expr part_b_ = 0, part_m_ = 0, part_n_ = 0, first_batch_ = 0, first_group_ = 0;
  // Channels, in the order of a tile's way.
  std::optional<Channel> unit_, panel_, left_ready_, right_unit_, right_panel_, right_ready_, l0_, sums_,
      addend_, sum_panel_, sum_left_, sum_l0_, sum_sums_, results_, residual_ready_;
};

}  // namespace aicore
