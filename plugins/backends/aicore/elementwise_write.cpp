// The program of element-wise code: tiles of rows in UB, loops over them, and the loads and stores around
// them.
#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "channel.h"
#include "elementwise.h"
#include "regie/graph_view.hpp"
#include "shares.h"

namespace aicore {

namespace {

using namespace regie::tile;

struct Tiling {
  int64_t rows = 1, columns = 1, pitch = 1;  // of a tile
  int64_t part_rows = 1, part_columns = 1;   // cores
  int64_t turns_rows = 1, turns_columns = 1;
  std::vector<Share> outer = {};  // of the dimensions before rows and columns
  bool flat = false;              // one row: counts are cut exactly
  int64_t elements() const { return rows * pitch; }
  int64_t part_outer() const { return cores_of(outer); }
  int64_t cores() const { return part_outer() * part_rows * part_columns; }
};

class Writer {
 public:
  Writer(const Request& r, Code code, Shape shape)
      : chip_(r.chip), code_(std::move(code)), shape_(std::move(shape)) {
    auto bytes = [](const regie_tensor& t, regie_format f) {
      return static_cast<uint64_t>(laid_count(regie::sdk::dims_of(t), f) * size_of(t.elem));
    };
    for (size_t i = 0; i < r.operands.size(); ++i) {
      const regie_tensor& t = r.operands[i];
      operand_elem_.push_back(t.elem);
      operand_bytes_.push_back(t.elem == REGIE_ELEM_UNKNOWN ? 0 : bytes(t, r.operand_format(i)));
    }
    for (size_t i = 0; i < r.results.size(); ++i) {
      result_elem_.push_back(r.results[i].elem);
      result_bytes_.push_back(bytes(r.results[i], r.result_format(i)));
    }
    find_repeated();
    tile();
  }

  double cycles() const {
    const auto& h = chip_.hardware;
    const double lanes = h.vector_bytes * h.vector_units * h.vector_efficiency,
                 e = static_cast<double>(t_.elements());
    const int64_t running = t_.cores();
    double all = 0;
    for (uint32_t o : code_.operands) all += static_cast<double>(operand_bytes_[o]);
    for (uint64_t b : result_bytes_) all += static_cast<double>(b);
    PipeCycles turn;
    for (uint32_t o : code_.operands) {
      const double part = full(o) ? 1 : shape_.strides[o].back() ? 1.0 / static_cast<double>(t_.rows) : 0;
      turn[REGIE_TILE_LOAD] +=
          h.load_start + h.l2_latency +
          e * part * static_cast<double>(size_of(operand_elem_[o])) / chip_.read_rate(running, all);
      if (!is_repeated(o) && (!full(o) || size_of(operand_elem_[o]) != 4))
        turn[REGIE_TILE_VECTOR] += h.vector_start + e * 4 / lanes;
      if (is_byte(operand_elem_[o])) turn[REGIE_TILE_VECTOR] += h.vector_start + e * part * 2 / lanes;
    }
    turn[REGIE_TILE_VECTOR] += (code_.quick + code_.slow) * h.vector_start +
                               (code_.quick + code_.slow * h.slow_passes) * e * 4 / lanes;
    for (regie_elem elem : result_elem_) {
      turn[REGIE_TILE_STORE] += h.store_start + h.l2_latency +
                                e * static_cast<double>(size_of(elem)) / chip_.write_rate(running, all);
      if (elem == REGIE_F16) turn[REGIE_TILE_VECTOR] += h.vector_start + e * 4 / lanes;
      if (is_byte(elem)) turn[REGIE_TILE_VECTOR] += 2 * h.vector_start + e * 6 / lanes;
    }
    for (double& b : turn.busy) b += 4 * h.flag_cycles;
    return overlapped(turn, turns_of(t_.outer) * static_cast<double>(t_.turns_rows * t_.turns_columns));
  }

  Program write() const;

 private:
  // Elements from one row to the next.
  static int64_t row_stride(const std::vector<int64_t>& strides) {
    return strides.size() < 2 ? 0 : strides[strides.size() - 2];
  }
  bool full(uint32_t o) const {
    const auto& s = shape_.strides[o];
    return s.back() == 1 && (s.size() < 2 || row_stride(s) != 0);
  }
  int64_t first(uint32_t o) const { return o < shape_.first.size() ? shape_.first[o] : 0; }
  // Operands that broadcast along rows or columns need not be spread where instructions repeat them: as the
  // second operand of one with two, whose first is spread.
  bool broadcasts(const Location& l) const { return l.kind == Location::kOperand && !full(l.number); }
  static bool commutes(uint8_t op) {
    return op == REGIE_TILE_ADD || op == REGIE_TILE_MUL || op == REGIE_TILE_MAX || op == REGIE_TILE_MIN;
  }
  bool repeats(const Step& step, uint32_t o) const {
    const auto op = binary_instruction(*step.vector.op);
    if (!op || step.in.size() != 2) return false;
    const bool second = broadcasts(step.in[1]) && step.in[1].number == o;
    const Location& other = step.in[second ? 0 : 1];
    return (second || commutes(*op)) && other.kind != Location::kConstant && !broadcasts(other);
  }
  void find_repeated() {
    for (uint32_t o : code_.operands) {
      const auto& st = shape_.strides[o];
      if (full(o) || operand_elem_[o] != REGIE_F32 || (!st.back() && !row_stride(st))) continue;
      if (std::all_of(code_.steps.begin(), code_.steps.end(), [&](const Step& step) {
            return std::none_of(step.in.begin(), step.in.end(),
                                [&](const Location& l) { return broadcasts(l) && l.number == o; }) ||
                   repeats(step, o);
          }))
        repeated_.push_back(o);
    }
  }
  bool is_repeated(uint32_t o) const {
    return std::find(repeated_.begin(), repeated_.end(), o) != repeated_.end();
  }
  int64_t inner() const { return shape_.dims.back(); }
  int64_t outer_rows() const { return shape_.dims.size() < 2 ? 1 : shape_.dims[shape_.dims.size() - 2]; }

  // Of one of a result's two places: no block belongs to both.
  int64_t slot_bytes(regie_elem elem) const { return round_up(t_.elements() * size_of(elem), 32); }

  // Addresses in UB, by operand, register and result.
  struct Places {
    std::unordered_map<uint32_t, int64_t> load_at, value_at, wide_at, load_bytes, half_at;
    std::vector<int64_t> registers, result_at, rounded_at, narrow_at;
    int64_t used = 0;
  };
  Places place() const {
    const int64_t e = t_.elements();
    Room room(chip_.sizes.ub);
    Places x;
    for (uint32_t o : code_.operands) {
      const int64_t s = size_of(operand_elem_[o]);
      const auto& strides = shape_.strides[o];
      const bool by_row = !full(o) && strides.back() == 0 && row_stride(strides) != 0;
      const int64_t count = full(o) ? e : strides.back() ? t_.pitch : by_row ? t_.rows : 1;
      x.load_bytes[o] = round_up(count * s, 32);
      x.load_at[o] = room.take(2 * x.load_bytes[o]);
      if (!is_repeated(o) && (!full(o) || s != 4)) x.value_at[o] = room.take(e * 4);
      if (s == 1) x.half_at[o] = room.take(count * 2);
      if (!full(o) && s != 4 && !strides.back()) x.wide_at[o] = room.take(round_up(t_.rows * 4, 32));
    }
    for (uint32_t i = 0; i < code_.registers; ++i) x.registers.push_back(room.take(e * 4));
    for (regie_elem elem : result_elem_) {
      x.result_at.push_back(room.take(2 * slot_bytes(elem)));
      x.rounded_at.push_back(size_of(elem) != 4 ? room.take(e * 4) : 0);
      x.narrow_at.push_back(is_byte(elem) ? room.take(e * 2) : 0);
    }
    x.used = room.used();
    return x;
  }

  // The largest tile that fits and lets all cores work: with all of them within rows and columns, or some of
  // them in the dimensions around.
  void tile() {
    const std::vector<int64_t> outer(shape_.dims.begin(),
                                     shape_.dims.end() - std::min<ptrdiff_t>(2, std::ssize(shape_.dims)));
    int64_t most = 16384;
    for (; most >= 64; most = most / 4 * 3 / 64 * 64) {
      cut(most, spread(outer, 1));
      if (place().used > chip_.sizes.ub) continue;
      Tiling best = t_;
      double least = cycles();
      for (int64_t around = 2; around <= chip_.cores && !outer.empty(); ++around) {
        const std::vector<Share> shares = spread(outer, around);
        cut(most, shares);
        if (t_.part_outer() != around || place().used > chip_.sizes.ub) continue;
        if (const double now = cycles(); now < least) {
          least = now;
          best = t_;
        }
      }
      t_ = best;
      return;
    }
    throw Overflow("its " + std::to_string(code_.registers) + " intermediate values do not fit UB (" +
                   std::to_string(chip_.sizes.ub) + " bytes)");
  }

  void cut(int64_t most, const std::vector<Share>& outer) {
    t_ = {};
    t_.outer = outer;
    const int64_t cores = chip_.cores / t_.part_outer();
    t_.flat = shape_.dims.size() == 1;
    if (t_.flat) {
      // Enough turns a core to overlap, none of them small.
      const int64_t share = up(inner(), cores);
      t_.columns = std::clamp<int64_t>(round_up(up(share, 4), 64), std::min<int64_t>(1024, most), most);
      const int64_t tiles = up(inner(), t_.columns);
      t_.turns_columns = up(tiles, cores);
      t_.part_columns = up(tiles, t_.turns_columns);
      t_.pitch = t_.columns;
      return;
    }
    t_.columns = std::min<int64_t>(inner(), most);
    if (outer_rows() == 1)  // nothing but columns to share, none of them small
      t_.columns = std::min(t_.columns, std::max<int64_t>(1024, round_up(up(inner(), cores), 64)));
    t_.pitch = round_up(t_.columns, 16);
    if (t_.pitch > most) t_.columns = t_.pitch = most / 16 * 16;
    const int64_t row_cap = std::max<int64_t>(1, std::min<int64_t>(most / t_.pitch, 2048));
    const int64_t column_tiles = up(inner(), t_.columns);
    int64_t want = column_tiles >= cores ? 1 : cores / column_tiles;
    t_.rows = std::min(row_cap, up(outer_rows(), want));
    const int64_t row_tiles = up(outer_rows(), t_.rows);
    t_.part_columns = std::min(column_tiles, cores);
    t_.turns_columns = up(column_tiles, t_.part_columns);
    t_.part_columns = up(column_tiles, t_.turns_columns);
    t_.part_rows = std::max<int64_t>(1, std::min(row_tiles, cores / t_.part_columns));
    t_.turns_rows = up(row_tiles, t_.part_rows);
    t_.part_rows = up(row_tiles, t_.turns_rows);
  }

  const Chip& chip_;
  Code code_;
  Shape shape_;
  Tiling t_;
  std::vector<regie_elem> operand_elem_, result_elem_;
  std::vector<uint64_t> operand_bytes_, result_bytes_;
  std::vector<uint32_t> repeated_;
};

Program Writer::write() const {
  Builder b(static_cast<uint32_t>(t_.cores()), chip_.sizes);
  std::unordered_map<uint32_t, uint32_t> buffers;
  for (uint32_t o : code_.operands) buffers[o] = b.operand(o, operand_bytes_[o]);
  std::vector<uint32_t> out_buffers;
  for (uint32_t i = 0; i < result_elem_.size(); ++i) out_buffers.push_back(b.result(i, result_bytes_[i]));

  const int64_t e = t_.elements();
  Places places = place();
  auto& [load_at, value_at, wide_at, load_bytes, half_at, registers, result_at, rounded_at, narrow_at, used] =
      places;
  if (used > chip_.sizes.ub)
    throw regie::sdk::Failure(REGIE_INTERNAL, "a tile of element-wise code takes more of UB than there is");
  const bool ragged =
      !t_.flat && (t_.pitch != t_.columns || t_.part_columns * t_.turns_columns * t_.columns != inner() ||
                   t_.part_rows * t_.turns_rows * t_.rows != outer_rows() || shape_.channels);
  Flags flags;
  if (ragged) {
    for (uint32_t o : code_.operands)
      b.fill(ub(load_at[o]), REGIE_TILE_F32, scalar(0), 2 * load_bytes[o] / 4);
    hand_over(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_LOAD);
  }
  std::optional<Channel> in;
  if (!code_.operands.empty()) in.emplace(b, flags, REGIE_TILE_LOAD, REGIE_TILE_VECTOR, 2);
  Channel out(b, flags, REGIE_TILE_VECTOR, REGIE_TILE_STORE, 2);
  const Expr core = b.core();
  const Expr part_c = t_.part_columns == 1 ? Expr(0) : core % t_.part_columns;
  const Expr part_r = t_.part_rows == 1      ? Expr(0)
                      : t_.part_outer() == 1 ? core / t_.part_columns
                                             : core / t_.part_columns % t_.part_rows;

  auto tile = [&](const std::vector<Expr>& outer, const Expr& r, const Expr& c, const Expr& s) {
    const Expr row = (part_r * t_.turns_rows + r) * t_.rows,
               column = (part_c * t_.turns_columns + c) * t_.columns;
    const Expr rows = t_.flat ? Expr(1) : clamp(0, t_.rows, Expr(outer_rows()) - row);
    const Expr width = clamp(0, t_.columns, Expr(inner()) - column);
    const Expr count = t_.flat ? width : Expr(e);
    auto offset = [&](const std::vector<int64_t>& strides) {
      Expr at = column * strides.back();
      if (strides.size() > 1) at = at + row * row_stride(strides);
      for (size_t i = 0; i < outer.size(); ++i) at = at + outer[i] * strides[i];
      return at;
    };
    if (in) {
      in->begin_write(s);
      for (uint32_t o : code_.operands) {
        const auto& st = shape_.strides[o];
        const int64_t size = size_of(operand_elem_[o]);
        const Place to = ub(s * load_bytes[o] + load_at[o]),
                    from = gm(buffers[o], (offset(st) + Expr(first(o))) * size);
        // Rows and columns may both be cut to nothing: then nothing is read.
        if (full(o))
          b.copy(to, from, width * size, {rows, t_.pitch * size, row_stride(st) * size});
        else if (st.back() && shape_.channels &&
                 shape_.ends[o])  // what is beyond the last channel is made up for
          b.copy(to, from,
                 clamp(0, t_.columns * size,
                       Expr(shape_.channels * size) - outer[shape_.blocks_at] * (kC0 * size)));
        else if (st.back())
          b.copy(to, from, width * size);
        else if (row_stride(st))
          b.copy(to, from, size, {rows, size, row_stride(st) * size});
        else
          b.copy(to, from, size);
      }
      in->end_write(s);
      in->begin_read(s);
    }
    for (uint32_t o : code_.operands) {
      const auto& st = shape_.strides[o];
      int64_t size = size_of(operand_elem_[o]);
      Place at = ub(s * load_bytes[o] + load_at[o]);
      if (is_repeated(o)) continue;
      if (size == 1) {  // bytes become halves first
        const Place half = ub(half_at[o]);
        const Expr there = full(o) ? count : st.back() ? Expr(t_.pitch) : Expr(row_stride(st) ? t_.rows : 1);
        b.cast(byte_type(operand_elem_[o]), REGIE_TILE_F16, REGIE_TILE_RINT, half, at, there);
        if (const float zero = code_.zero_of(o); zero != 0)
          b.binary_scalar(REGIE_TILE_ADD, REGIE_TILE_F16, half, half, scalar(-zero), there);
        at = half;
        size = 2;
      }
      if (full(o)) {
        if (size == 2) b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, ub(value_at[o]), at, count);
        continue;
      }
      const Place to = ub(value_at[o]);
      const bool rowwise = st.back() != 0;
      const bool by_row = !rowwise && row_stride(st) != 0;
      if (rowwise) {  // one row for all rows
        const Repeat all{t_.rows, t_.pitch * 4, 0};
        if (size == 2)
          b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, to, at, t_.pitch, all);
        else
          b.unary(REGIE_TILE_COPY, REGIE_TILE_F32, to, at, t_.pitch, all);
      } else {  // one element for a row, or for all: spread by an addition to zeros
        Place one = at;
        if (size == 2) {
          one = ub(wide_at[o]);
          b.cast(REGIE_TILE_F16, REGIE_TILE_F32, REGIE_TILE_RINT, one, at, by_row ? t_.rows : 1);
        }
        b.fill(to, REGIE_TILE_F32, scalar(0), e);
        b.binary_row(REGIE_TILE_ADD, REGIE_TILE_F32, to, to, one, t_.pitch,
                     {t_.rows, t_.pitch * 4, t_.pitch * 4, by_row ? 4 : 0});
      }
    }
    out.begin_write(s);
    auto location = [&](const Location& l) -> Expr {
      switch (l.kind) {
        case Location::kOperand:
          if (auto v = value_at.find(l.number); v != value_at.end()) return v->second;
          return s * load_bytes[l.number] + load_at[l.number];
        case Location::kResult:
          if (size_of(result_elem_[l.number]) != 4) return rounded_at[l.number];
          return s * (e * 4) + result_at[l.number];
        default:
          return registers[l.number];
      }
    };
    std::vector<bool> made(result_elem_.size(), false);  // lie as bytes already
    for (const Step& step : code_.steps) {
      const bool first = broadcasts(step.in[0]) && is_repeated(step.in[0].number);
      if (first || (step.in.size() == 2 && broadcasts(step.in[1]) && is_repeated(step.in[1].number))) {
        const Place to = ub(location(step.out)), x = ub(location(step.in[first ? 1 : 0])),
                    y = ub(location(step.in[first ? 0 : 1]));
        const uint8_t op = *binary_instruction(*step.vector.op);
        const int64_t pitch = t_.pitch * 4;
        if (shape_.strides[step.in[first ? 0 : 1].number].back())  // one row for all rows
          b.binary(op, REGIE_TILE_F32, to, x, y, t_.pitch, {t_.rows, pitch, pitch, 0});
        else
          b.binary_row(op, REGIE_TILE_F32, to, x, y, t_.pitch, {t_.rows, pitch, pitch, 4});
        continue;
      }
      VectorStep v = step.vector;
      for (size_t i = 0; i < v.in.size(); ++i)
        v.in[i] = step.in[i].kind == Location::kConstant ? Source{0, step.in[i].constant}
                                                         : Source{location(step.in[i]), std::nullopt};
      std::vector<Expr> temporaries;
      for (uint32_t t : step.temporaries) temporaries.emplace_back(registers[t]);
      if (!step.to_bytes) {
        emit_vector(b, v, location(step.out), temporaries, count);
        continue;
      }
      const uint32_t i = step.out.number;
      const Place whole = ub(rounded_at[i]), half = ub(narrow_at[i]);
      VectorStep quotient{find_vector_op("Div"), 0, 0, {v.in[0], v.in[1]}};
      emit_vector(b, quotient, rounded_at[i], {}, count);
      b.cast(REGIE_TILE_F32, REGIE_TILE_S32, REGIE_TILE_RINT, whole, whole, count);
      // Whole numbers up to 2048 are halves; what is larger is beyond the type's bounds, and stays there.
      b.cast(REGIE_TILE_S32, REGIE_TILE_F16, REGIE_TILE_RINT, half, whole, count);
      if (*v.in[2].constant != 0)
        b.binary_scalar(REGIE_TILE_ADD, REGIE_TILE_F16, half, half, scalar(*v.in[2].constant), count);
      b.cast(REGIE_TILE_F16, byte_type(result_elem_[i]), REGIE_TILE_RINT,
             ub(s * slot_bytes(result_elem_[i]) + result_at[i]), half, count);
      made[i] = true;
    }
    for (uint32_t i = 0; i < result_elem_.size(); ++i)
      if (result_elem_[i] == REGIE_F16)
        b.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, ub(s * (e * 2) + result_at[i]),
               ub(rounded_at[i]), count);
      else if (is_byte(result_elem_[i]) && !made[i]) {  // whole numbers within their bounds already
        const Place whole = ub(rounded_at[i]), half = ub(narrow_at[i]);
        b.cast(REGIE_TILE_F32, REGIE_TILE_F16, REGIE_TILE_RINT, half, whole, count);
        b.cast(REGIE_TILE_F16, byte_type(result_elem_[i]), REGIE_TILE_RINT,
               ub(s * slot_bytes(result_elem_[i]) + result_at[i]), half, count);
      }
    if (shape_.channels) {  // lanes of the last block beyond the channels are zeros, whatever was computed
                            // there
      const int64_t last = shape_.dims[shape_.blocks_at] - 1, there = shape_.channels % kC0;
      b.loop(clamp(0, 1, outer[shape_.blocks_at] - Expr(last - 1)), [&](const Expr&) {
        for (uint32_t i = 0; i < result_elem_.size(); ++i) {
          const int64_t size = size_of(result_elem_[i]);
          b.fill(ub(s * (e * size) + (result_at[i] + there * size)),
                 size == 2 ? REGIE_TILE_F16 : REGIE_TILE_F32, scalar(0), kC0 - there, {e / kC0, kC0 * size});
        }
      });
    }
    if (in) in->end_read(s);
    out.end_write(s);
    out.begin_read(s);
    std::vector<int64_t> strides(shape_.dims.size(), 1);
    for (size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape_.dims[i + 1];
    for (uint32_t i = 0; i < result_elem_.size(); ++i) {
      const int64_t size = size_of(result_elem_[i]);
      b.copy(gm(out_buffers[i], offset(strides) * size), ub(s * slot_bytes(result_elem_[i]) + result_at[i]),
             width * size, {rows, inner() * size, t_.pitch * size});
    }
    out.end_read(s);
  };

  // Rows and columns inside of the shares, so that the slot of a turn follows from the innermost of loops
  // with several turns.
  emit_shares(b, t_.outer, shape_.dims, t_.part_rows * t_.part_columns,
              [&](const std::vector<Expr>& outer, const Expr& slot) {
                auto columns = [&](const Expr& r, const Expr& from) {
                  if (t_.turns_columns == 1) return tile(outer, r, 0, from);
                  b.loop(t_.turns_columns, [&](const Expr& c) { tile(outer, r, c, c % 2); });
                };
                if (t_.turns_rows == 1) return columns(0, slot);
                b.loop(t_.turns_rows, [&](const Expr& r) { columns(r, r % 2); });
              });
  if (in) in->close();
  out.close();
  return b.finish();
}
}  // namespace

Lowered lowered(const Request& r, Code code, Shape shape) {
  auto writer = std::make_shared<Writer>(r, std::move(code), std::move(shape));
  Lowered out;
  out.name = "vector " + std::string(r.op);
  out.cycles = writer->cycles();
  out.write = [writer] {
    Written w;
    w.program = writer->write();
    return w;
  };
  return out;
}
}  // namespace aicore
