// The way in of both matrices: through UB to L1, or straight there where nothing is to be done.
#include "cube_emitter.h"

namespace aicore {

using namespace regie::tile;

void Emitter::window(const Expr& tile, const std::function<void(const Window&)>& body) {
  at_window(b_, tile, t_.out_rows * p_.map_stride(), p_.map_pad(), p_.map_height() - t_.window,
            t_.parts_m * t_.turns_m, body);
}

Expr Emitter::left_base(const Turn& turn) const {
  return (p_.a_batched ? batch(turn) : Expr(0)) * (p_.m * p_.k * left_es_);
}

void Emitter::load_left(const Turn& turn, const Expr& slot, const Expr& chunk) {
  left_ready_->begin_write(slot);
  const Expr row = row_tile(turn) * t_.rows, to = slot * t_.left_bytes + t_.l1_left;
  if (p_.direct())
    load_directly(turn, slot, chunk);
  else if (p_.convolution)
    load_map(turn, slot);
  else if (p_.transposed_a)
    load_panel(left_, left_es_, left_base(turn), 0, p_.k, row, p_.m, round_up(p_.k, 16), t_.rows,
               t_.unit_rows, t_.unit_columns, t_.ub_load, t_.ub_panel, *unit_, *panel_, to, {});
  else if (t_.streamed && p_.left_parts == 2) {
    const int64_t chunks = p_.part_blocks() / t_.chunk;  // of a part
    load_panel(left_, left_es_, left_base(turn), row, p_.m, (chunk % chunks) * (t_.chunk * 16), p_.k, t_.rows,
               t_.chunk * 16, t_.unit_rows, t_.unit_columns, t_.ub_load, t_.ub_panel, *unit_, *panel_, to,
               {false, chunk / chunks});
  } else
    load_panel(left_, left_es_, left_base(turn), row, p_.m, chunk * (t_.chunk * p_.k0()), p_.k, t_.rows,
               (t_.streamed ? t_.chunk : p_.part_blocks()) * p_.k0(), t_.unit_rows, t_.unit_columns,
               t_.ub_load, t_.ub_panel, *unit_, *panel_, to, {p_.left_parts == 2});
  left_ready_->end_write(slot);
}

void Emitter::load_directly(const Turn& turn, const Expr& slot, const Expr& chunk) {
  const Expr to = slot * t_.left_bytes + t_.l1_left;
  if (p_.left_matrix) {  // as it lies
    const Expr row = row_tile(turn) * t_.rows, block = chunk * t_.chunk;
    const int64_t rows = round_up(p_.m, 16);
    b_.copy(l1(to),
            gm(left_, (p_.a_batched ? batch(turn) : Expr(0)) * (p_.k_blocks() * rows * kBlock) +
                          block * (rows * kBlock) + row * kBlock),
            clamp(0, t_.rows * kBlock, Expr(rows * kBlock) - row * kBlock),
            {clamp(0, t_.streamed ? t_.chunk : p_.k_blocks(), Expr(p_.k_blocks()) - block), t_.rows * kBlock,
             rows * kBlock});
    return;
  }
  if (!p_.convolution) {  // rows become blocks of 16 columns (32 bytes) on the way
    const Expr row = row_tile(turn) * t_.rows, block = chunk * t_.chunk;
    b_.copy(l1(to), gm(left_, left_base(turn) + row * (p_.k * p_.lane()) + block * kBlock), kBlock,
            {clamp(0, t_.rows, Expr(p_.m) - row), kBlock, p_.k * p_.lane()},
            {clamp(0, t_.streamed ? t_.chunk : p_.k_blocks(), Expr(p_.k_blocks()) - block), t_.rows * kBlock,
             kBlock});
    return;
  }
  const int64_t map = p_.height * p_.width;
  const Expr channel = p_.groups == 1 ? Expr(0) : group(turn) * p_.in_group;
  window(row_tile(turn), [&](const Window& w) {
    const Expr from =
        ((batch(turn) * p_.lanes_in() + channel) * map + w.first * (p_.width * p_.k0())) * p_.lane();
    b_.copy(l1(to), gm(left_, from), t_.window * p_.width * kBlock,
            {p_.left_blocks(), t_.plane, map * kBlock});
  });
}

// A computed right matrix of halves, all of k: blocks of 16 columns (32 bytes) of its rows, in memory or on
// the way.
void Emitter::load_right_directly(const Turn& turn, const Expr& n, const Expr& slot) {
  const int64_t all_rows = p_.transposed_b ? p_.n : p_.k, all_columns = p_.transposed_b ? p_.k : p_.n,
                blocks = up(all_columns, 16), laid_rows = round_up(all_rows, 16),
                rows = p_.transposed_b ? t_.columns * 16 : round_up(p_.k, 16);
  const Expr block = column_tile(n) * t_.columns, first = block * 16;
  const Expr row = p_.transposed_b ? first : Expr(0), column = p_.transposed_b ? Expr(0) : block;
  const Expr count = p_.transposed_b ? Expr(blocks) : clamp(0, t_.columns, Expr(blocks) - block);
  const Expr batches = p_.b_batched ? batch(turn) : Expr(0);
  const Expr to = slot * t_.right_bytes + t_.l1_right;
  right_ready_->begin_write(slot);
  if (p_.right_matrix)
    b_.copy(
        l1(to),
        gm(right_, batches * (blocks * laid_rows * kBlock) + column * (laid_rows * kBlock) + row * kBlock),
        p_.transposed_b ? clamp(0, rows * kBlock, Expr(laid_rows * kBlock) - row * kBlock)
                        : Expr(laid_rows * kBlock),
        {count, rows * kBlock, laid_rows * kBlock});
  else
    b_.copy(
        l1(to),
        gm(right_, batches * (all_rows * all_columns * 2) + row * (all_columns * 2) + column * kBlock),
        kBlock,
        {p_.transposed_b ? clamp(0, rows, Expr(all_rows) - row) : Expr(all_rows), kBlock, all_columns * 2},
        {count, rows * kBlock, kBlock});
  right_ready_->end_write(slot);
}

void Emitter::rest_of(const Expr& half, const Expr& n, const std::function<void()>& subtract,
                      const Expr& to) {
  b_.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(t_.ub_wide), ub(half), n);
  subtract();
  b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(to), ub(t_.ub_wide), n);
}

void Emitter::load_map(const Turn& turn, const Expr& slot) {
  const int64_t map = p_.height * p_.width, P = t_.pixels, blocks = t_.unit_blocks,
                channels = p_.k0() * blocks;
  const int64_t units = up(p_.left_blocks(), blocks) * t_.pixel_chunks;
  const int64_t all = t_.window * p_.width, es = left_es_;
  auto load = [&](const Expr& u) {
    const bool single = t_.pixel_chunks == 1;
    const Expr unit = single ? u : u / t_.pixel_chunks, first = unit * channels,
               chunk = single ? Expr(0) : u % t_.pixel_chunks, s = u % 2;
    const Expr channel = (p_.groups == 1 ? Expr(0) : group(turn) * p_.in_group) + first;
    const bool folded = p_.fold > 1;
    const Expr valid = folded ? Expr(p_.in_group) : clamp(0, channels, Expr(p_.channels) - channel);
    // A position of a row-major plane is an element, one of a blocked plane 16.
    const int64_t one = p_.left_blocked ? 16 * es : es;
    const Expr bytes = single ? Expr(all * one) : min(Expr(all * one) - chunk * (P * one), P * one);
    unit_->begin_write(s);
    window(row_tile(turn), [&](const Window& w) {
      const Expr from =
          (batch(turn) * p_.lanes_in() + channel) * (map * es) + (w.first * p_.width + chunk * P) * one;
      const Place to = ub(s * (channels * P * es) + t_.ub_load);
      if (folded)
        load_folded(turn, w.first + chunk, s * (channels * P * es) + t_.ub_load);
      else if (p_.left_blocked)
        b_.copy(to, gm(left_, from), bytes,
                {clamp(0, blocks, Expr(p_.left_blocks()) - unit * blocks), P * one, map * one});
      else
        b_.copy(to, gm(left_, from), bytes, {valid, P * es, map * es});
    });
    unit_->end_write(s);
    unit_->begin_read(s);
    const bool both = p_.left_parts == 2;
    const int64_t panel_bytes = channels * p_.lane() * P;
    const Expr panel = s * (p_.left_parts * panel_bytes) + t_.ub_panel;
    const auto subtract = [&] {
      b_.binary(REGIE_TILE_SUB, REGIE_TILE_F32, ub(t_.ub_wide), ub(s * (channels * P * es) + t_.ub_load),
                ub(t_.ub_wide), channels * P);
    };
    Expr half = s * (channels * P * es) + t_.ub_load;
    if (p_.of_bytes()) {  // what channels that are not there leave behind is multiplied by zeros
      panel_->begin_write(s);
      b_.transpose(ub(panel), ub(half), 32, P, {P / 32, 1024, 32}, {blocks, 32 * P, 32 * P}, REGIE_TILE_B8);
    } else if (p_.left_blocked) {  // f32, which only has to become halves
      panel_->begin_write(s);
      b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(panel), ub(half), channels * P);
      if (both) rest_of(panel, channels * P, subtract, panel + panel_bytes);
    } else {
      if (es == 4) {
        b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(t_.ub_cast), ub(half), channels * P);
        half = t_.ub_cast;
      }
      std::function<void()> clear_all = [] {};
      if (p_.misses_channels()) {
        // Channels that are not there: zeros, as weights are, so that nothing of an earlier turn is
        // multiplied. Where they lie depends on the slot, which an address cannot say beside `valid`.
        const Expr missing = folded ? Expr(channels - p_.in_group)
                                    : clamp(0, channels, channel + channels - Expr(p_.channels));
        auto clear_missing = [&, missing](int64_t at) {
          b_.fill(ub(valid * (P * 2) + at), REGIE_TILE_F16, 0, P, {missing, P * 2});
        };
        if (es == 4) {
          clear_all = [this, clear_missing] { clear_missing(t_.ub_cast); };
          clear_all();
        } else {
          b_.loop(Expr(1) - s, [&](const Expr&) { clear_missing(t_.ub_load); });
          b_.loop(s, [&](const Expr&) { clear_missing(t_.ub_load + channels * P * 2); });
        }
      }
      if (folded) window(row_tile(turn), [&](const Window& w) { clear_folded(w.first + chunk, half); });
      panel_->begin_write(s);
      const auto turn_over = [&](const Expr& to) {
        b_.transpose(ub(to), ub(half), 32, P * 2, {P / 16, 512, 32}, {blocks, 32 * P, 32 * P});
      };
      turn_over(panel);
      if (both) {
        rest_of(half, channels * P, subtract, half);
        clear_all();
        turn_over(panel + panel_bytes);
      }
    }
    unit_->end_read(s);
    panel_->end_write(s);
    panel_->begin_read(s);
    for (int64_t i = 0; i < p_.left_parts; ++i)
      b_.copy(l1(slot * t_.left_bytes + t_.l1_left + i * (p_.left_blocks() * t_.plane) +
                 unit * (blocks * t_.plane) + chunk * (32 * P)),
              ub(panel + i * panel_bytes), 32 * P * blocks);
    panel_->end_read(s);
  };
  if (units == 1)
    load(0);
  else
    b_.loop(units, load);
}

void Emitter::load_panel(uint32_t buffer, int64_t es, const Expr& base, const Expr& r0, int64_t all_rows,
                         const Expr& c0, int64_t all_columns, int64_t rows, int64_t columns,
                         int64_t unit_rows, int64_t unit_columns, int64_t ub_load, int64_t ub_panel,
                         Channel& unit, Channel& panel, const Expr& to, const Parts& parts) {
  const int64_t nr = up(rows, unit_rows), nc = up(columns, unit_columns), all = nr * unit_rows;
  auto one = [&](const Expr& u) {
    const Expr r = nc == 1 ? u : u / nc, c = nc == 1 ? Expr(0) : u % nc, s = u % 2;
    const Expr valid_rows = clamp(0, unit_rows, Expr(all_rows) - r0 - r * unit_rows);
    const Expr valid =
        clamp(0, unit_columns * es, Expr(all_columns * es) - c0 * es - c * (unit_columns * es));
    unit.begin_write(s);
    b_.copy(ub(s * (unit_rows * unit_columns * es) + ub_load),
            gm(buffer, base + ((r0 + r * unit_rows) * all_columns + c0 + c * unit_columns) * es), valid,
            {valid_rows, unit_columns * es, all_columns * es});
    unit.end_write(s);
    unit.begin_read(s);
    panel.begin_write(s);
    const int64_t elements = unit_rows * unit_columns, count = parts.both ? 2 : 1, k0 = p_.k0(),
                  panel_bytes = elements * p_.lane();
    const Expr half = s * (count * panel_bytes) + ub_panel;
    const Place out = ub(half);
    const Place in = ub(s * (unit_rows * unit_columns * es) + ub_load);
    if (const int64_t part = p_.part_blocks() * 16; parts.rest && part != all_columns) {
      // Columns that fill up a part are multiplied, by zeros: what an earlier unit of other rows left there
      // need not be finite.
      const int64_t last = part - unit_columns, there = all_columns - last;
      b_.loop(clamp(0, 1, c0 + c * unit_columns - Expr(last - 1)), [&](const Expr&) {
        b_.fill(ub(s * (unit_rows * unit_columns * es) + ub_load + there * es), REGIE_TILE_F32, scalar(0),
                unit_columns - there, {unit_rows, unit_columns * es});
      });
    }
    const Repeat by_row{unit_rows, 32, unit_columns * es},
        by_block{unit_columns / k0, unit_rows * 32, k0 * es};
    if (es == 4)
      b_.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, out, in, 16, by_row, by_block);
    else  // 32 bytes, whatever they are
      b_.unary(REGIE_TILE_COPY, REGIE_TILE_F16, out, in, 16, by_row, by_block);
    const auto rest = [&](const Expr& to_half) {
      rest_of(
          half, elements,
          [&] {
            b_.binary(REGIE_TILE_SUB, REGIE_TILE_F32, ub(t_.ub_wide), in, ub(t_.ub_wide), 16,
                      {unit_rows, 64, unit_columns * es, 64},
                      {unit_columns / 16, unit_rows * 64, 16 * es, unit_rows * 64});
          },
          to_half);
    };
    if (parts.both) rest(half + elements * 2);
    if (parts.rest) b_.loop(*parts.rest, [&](const Expr&) { rest(half); });
    unit.end_read(s);
    panel.end_write(s);
    panel.begin_read(s);
    for (int64_t i = 0; i < count; ++i)
      b_.copy(l1(to + i * (p_.part_blocks() * all * 32) + r * (unit_rows * 32) +
                 c * (unit_columns / k0 * all * 32)),
              ub(half + i * panel_bytes), unit_rows * 32, {unit_columns / k0, all * 32, unit_rows * 32});
    panel.end_read(s);
  };
  if (nr * nc == 1)
    one(0);
  else
    b_.loop(nr * nc, one);
}

Expr Emitter::packed_from(const Turn& turn, const Expr& n, const Expr& first_k) const {
  const int64_t row = t_.n_tiles * block(), kb = p_.k_blocks();
  const Expr group_k = p_.groups == 1 ? Expr(0) : group(turn) * kb;
  return (group_k + first_k) * row + column_tile(n) * block() + Expr(right_offset_);
}

void Emitter::load_resident() {
  const int64_t kb = p_.k_blocks();
  right_ready_->begin_write(0);
  for (int64_t n = 0; n < t_.turns_n; ++n)
    b_.copy(l1(t_.l1_right + n * kb * block()), gm(right_, packed_from({}, n, 0)), block(),
            {kb, block(), t_.n_tiles * block()});
  right_ready_->end_write(0);
  right_ready_->begin_read(0);
}

}  // namespace aicore
