#include "wishes.h"

#include <algorithm>
#include <optional>

#include "matrices.h"
#include "quantised.h"
#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::Failure;

class Lister {
 public:
  Lister(const Request& base, Rounding rounding, const Widths* widths, std::optional<double> quickest)
      : r_(base), rounding_(rounding), widths_(widths), quickest_(quickest) {}

  std::vector<regie_format_wish> run() {
    const std::string_view op = r_.op;
    if (op == "regie.Reformat" || r_.results.empty() || r_.results[0].elem == REGIE_ELEM_UNKNOWN) return {};
    base_ = quickest_ ? quickest_ : cycles({}, {});
    if (!base_) return {};
    if (op == "Reshape" || op == "Transpose") views();
    if (op == "Reshape") return std::move(wishes_);
    if (byte_places(op))
      convolution_of_bytes();
    else if (op == "Conv" || op == "regie.FusedConv")
      convolution();
    else if (op == "ConvTranspose")
      transposed_convolution();
    else if (is_product(op))
      product();
    else if (is_window(op))
      pooling();
    else if (is_reduction(op))
      reduction();
    else if (op == "Softmax" || op == "LogSoftmax" || op == "LayerNormalization")
      rows();
    else if (is_move(op))
      move();
    else if (op == "regie.Attention")
      attention();
    else
      elementwise();
    return std::move(wishes_);
  }

 private:
  std::optional<double> cycles(const std::vector<regie_format>& operands,
                               const std::vector<regie_format>& results) const {
    const std::vector<regie_tensor> in = stored(r_.operands, operands), out = stored(r_.results, results);
    try {
      return lower({r_.chip, r_.plans, r_.graph, r_.node, r_.op, r_.attrs, in, out, operands, results})
          .cycles;
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
      return std::nullopt;
    }
  }

  // The other formats of a tensor than row-major, as far as its readers and writers go. None takes more
  // bytes: where channels do not fill the last block, halves do, or nothing does.
  bool blocks(const regie_tensor& t, bool half = false) const {
    int64_t positions = 1;
    for (int32_t d = 2; d < t.rank; ++d) positions *= t.dims[d];
    const std::span<const int64_t> dims{t.dims, static_cast<size_t>(t.rank)};
    return is_float(t.elem) && positions > 1 && blocks_fit(dims) &&
           laid_count(dims, kBlockedFormat) * (half ? 2 : size_of(t.elem)) <=
               regie::sdk::count_of(t) * size_of(t.elem);
  }
  // May an operand be halves for a reader that rounds it?
  bool may_be_half(size_t i) const {
    return rounding_ != Rounding::kNothing && i < r_.node.operand_count &&
           r_.node.operands[i] != REGIE_NONE && !wide(r_.node.operands[i]);
  }
  bool wide(uint32_t value) const { return widths_ && widths_->wide(value); }
  // May an operand be halves for a reader that does not round it, and a result?
  bool rounds_operand(size_t i) const {
    if (!may_be_half(i)) return false;
    return rounding_ == Rounding::kAll ||
           (rounding_ == Rounding::kShared && rounded_anyway(r_.node.operands[i], 0));
  }
  bool rounds_result(size_t i) const {
    if (i >= r_.node.result_count || r_.node.results[i] == REGIE_NONE || wide(r_.node.results[i]))
      return false;
    return rounding_ == Rounding::kShared ? rounded_anyway(r_.node.results[i], 0)
                                          : rounding_ != Rounding::kNothing;
  }
  // Does a reader on this engine round it to halves? Moves are looked through.
  bool rounded_anyway(uint32_t value, int depth) const {
    const regie_value& v = r_.graph->values[value];
    for (uint32_t i = 0; i < v.use_count; ++i) {
      const regie_use u = v.uses[i];
      if (u.node & REGIE_USE_REGION) continue;
      const regie_node& n = r_.graph->nodes[u.node];
      if (n.engine != r_.node.engine) continue;
      const std::string_view op = regie::sdk::sv(n.op);
      if (u.operand < (op == "regie.Attention" ? 3 : 2) && (is_product(op) || op == "regie.Attention"))
        return true;
      if (u.operand == 0 && is_window(op)) return true;
      if (!is_move(op) || depth == 4) continue;
      for (uint32_t out : regie::sdk::results_of(n))
        if (out != REGIE_NONE && rounded_anyway(out, depth + 1)) return true;
    }
    return false;
  }

  std::vector<regie_format> formats(const regie_tensor* t, bool halves, bool blocked = true) const {
    std::vector<regie_format> out{kPlainFormat};
    if (!t || !is_float(t->elem) || t->data) return out;
    const bool half = halves && t->elem == REGIE_F32;
    if (blocked && blocks(*t)) out.push_back(kBlockedFormat);
    if (blocked && half && blocks(*t, true)) out.push_back(kBlockedFormat | kHalfFormat);
    // Of what fills its blocks, halves in blocks are enough to choose from.
    if (half && !(blocked && blocks(*t))) out.push_back(kHalfFormat);
    return out;
  }

  static std::vector<regie_format> byte_formats(const regie_tensor* t) {
    std::vector<regie_format> out{kPlainFormat};
    if (!t || t->data || !byte_blocks_fit(t->elem, {t->dims, static_cast<size_t>(t->rank)})) return out;
    int64_t positions = 1;
    for (int32_t d = 2; d < t->rank; ++d) positions *= t->dims[d];
    if (positions > 1) out.push_back(kByteBlockedFormat);
    return out;
  }

  // In columns of 16, with rows along this axis: halves that take no more bytes than the type does.
  static bool fits(const regie_tensor& t, int32_t rows) {
    const std::span<const int64_t> dims{t.dims, static_cast<size_t>(std::max(t.rank, 0))};
    return is_float(t.elem) && !t.data && rows >= 2 && t.rank >= rows &&
           laid_count(dims, matrix_format(rows)) * 2 <= regie::sdk::count_of(t) * size_of(t.elem);
  }
  static int32_t rows_of(const regie_tensor& t) {
    return rows_from_end({t.dims, static_cast<size_t>(std::max(t.rank, 0))});
  }
  // As `formats` without blocks, and in columns of 16 where rows lie along axis `rows` from the end.
  std::vector<regie_format> in_columns(const regie_tensor* t, bool halves, int32_t rows) const {
    std::vector<regie_format> out = formats(t, halves, false);
    if (t && (halves || t->elem == REGIE_F16) && fits(*t, rows)) out.push_back(matrix_format(rows));
    return out;
  }

  // `nothing`: it is not computed at all, as the result lies on what it is made of.
  void offer(std::vector<regie_format> operands, std::vector<regie_format> results, bool nothing = false) {
    auto plain = [](regie_format f) { return f == kPlainFormat; };
    operands.resize(r_.operands.size(), kPlainFormat);
    results.resize(r_.results.size(), kPlainFormat);
    if (std::all_of(operands.begin(), operands.end(), plain) &&
        std::all_of(results.begin(), results.end(), plain))
      return;
    const auto found = cycles(operands, results);
    if (!found) return;
    ++options_;
    double saved = nothing ? r_.chip.ns(*base_) : r_.chip.ns(*base_) - r_.chip.ns(*found);
    for (bool is_result : {false, true}) {
      const auto& list = is_result ? results : operands;
      for (uint32_t i = 0; i < list.size(); ++i)
        if (!plain(list[i])) {
          wishes_.push_back({is_result ? 1u : 0u, i, list[i], options_, saved});
          saved = 0;
        }
    }
  }

  // Operands of the cube are rounded to halves in any case; sums and what is added to them are not.
  void convolution() {
    const regie_tensor* residual = r_.operand(3);
    if (residual && residual->data) return;
    for (regie_format x : formats(r_.operand(0), may_be_half(0)))
      for (regie_format y : formats(&r_.results[0], rounds_result(0))) {
        std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
        operands[0] = x;
        if (!residual) {
          offer(operands, {y});
          continue;
        }
        for (regie_format f : formats(residual, rounds_operand(3)))
          if (is_blocked(f) == is_blocked(y)) {
            operands[3] = f;
            offer(operands, {y});
          }
      }
  }

  // Bytes in blocks of 32, either way; products lie row-major.
  void convolution_of_bytes() {
    const bool sums = r_.op == "regie.QConvAdd";
    if (!sums && r_.op != "regie.QConv" && r_.op != "QLinearConv") return;
    for (regie_format x : byte_formats(r_.operand(0)))
      for (regie_format y : byte_formats(&r_.results[0])) {
        std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
        operands[0] = x;
        if (sums) operands[9] = y;  // what is added lies as the result does
        offer(operands, {y});
      }
  }

  void transposed_convolution() {
    for (regie_format x : formats(r_.operand(0), may_be_half(0)))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), false)) offer({x}, {y});
  }

  void product() {
    // Of operands that are added, those of the result's shape.
    std::vector<size_t> added;
    for (size_t i : {size_t{2}, size_t{3}})
      if (const regie_tensor* t = r_.operand(i);
          t && !t->data && (t->elem == REGIE_F16 || (t->elem == REGIE_F32 && rounds_operand(i))) &&
          regie::sdk::count_of(*t) == regie::sdk::count_of(r_.results[0]))
        added.push_back(i);
    const int32_t rows = rows_of(r_.results[0]);
    std::vector<regie_format> addends{kPlainFormat};
    if (!added.empty() && r_.need(added.front()).elem == REGIE_F32) addends.push_back(kHalfFormat);
    if (!added.empty() && fits(r_.need(added.front()), rows)) addends.push_back(matrix_format(rows));
    for (regie_format a : in_columns(r_.operand(0), may_be_half(0), rows))
      for (regie_format b : in_columns(r_.operand(1), may_be_half(1), 2))
        for (regie_format y : in_columns(&r_.results[0], rounds_result(0), rows))
          for (regie_format c : addends) {
            std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
            operands[0] = a;
            operands[1] = b;
            for (size_t i : added) operands[i] = c;
            offer(operands, {y});
          }
  }

  // Exact for halves, and it rounds to them.
  void pooling() {
    if (byte_formats(r_.operand(0)).size() > 1 && byte_formats(&r_.results[0]).size() > 1)
      offer({kByteBlockedFormat}, {kByteBlockedFormat});
    const bool blocked = blocks(r_.need(0), true) && blocks(r_.results[0], true);
    for (regie_format x : formats(r_.operand(0), may_be_half(0), blocked))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), blocked)) offer({x}, {y});
  }

  void reduction() {
    for (regie_format x : formats(r_.operand(0), rounds_operand(0)))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), false)) offer({x}, {y});
  }

  void rows() {
    const int32_t rows = rows_of(r_.results[0]);
    for (regie_format x : in_columns(r_.operand(0), rounds_operand(0), rows))
      for (regie_format y : in_columns(&r_.results[0], rounds_result(0), rows)) offer({x}, {y});
  }

  // Queries, keys and values are the cube's, and lie alike.
  void attention() {
    const std::vector<regie_format> kinds{kPlainFormat, kHalfFormat, matrix_format(2)};
    auto may = [&](const regie_tensor& t, regie_format f, bool halves) {
      const std::vector<regie_format> all = in_columns(&t, halves, 2);
      return std::find(all.begin(), all.end(), f) != all.end();
    };
    for (regie_format x : kinds) {
      bool all = true;
      for (size_t i = 0; i < 3; ++i) all = all && may(r_.need(i), x, may_be_half(i));
      for (regie_format y : kinds)
        if (all && may(r_.results[0], y, rounds_result(0))) offer({x, x, x}, {y});
    }
  }

  // Where the bytes stay, whichever axis has the rows on either side.
  void views() {
    const regie_tensor &x = r_.need(0), &y = r_.results[0];
    if (x.data || x.elem != y.elem || !is_float(x.elem)) return;
    if (x.elem == REGIE_F32 && !rounds_result(0)) return;
    auto all = [](const regie_tensor& t) {
      std::vector<regie_format> out;
      if (t.elem == REGIE_F32) out.push_back(kHalfFormat);
      for (int32_t rows = 2; rows <= t.rank; ++rows)
        if (t.dims[t.rank - rows] > 1 && fits(t, rows)) out.push_back(matrix_format(rows));
      return out;
    };
    const bool anyway = leaves_bytes(r_, kPlainFormat, kPlainFormat);
    for (regie_format from : all(x))
      for (regie_format to : all(y))
        if ((is_matrix(from) || is_matrix(to) || r_.op == "Reshape") && leaves_bytes(r_, from, to))
          offer({from}, {to}, !anyway);
  }

  // What only moves elements moves halves as well.
  void move() {
    const bool axis = r_.op == "Transpose" || r_.op == "Expand";
    // Scales of a Resize are parameters.
    const std::span<const regie_tensor> moved = r_.op == "Resize" ? r_.operands.first(1) : r_.operands;
    auto fits = [&](std::span<const regie_tensor> list, bool half) {
      return std::all_of(list.begin(), list.end(),
                         [&](const regie_tensor& t) { return !is_float(t.elem) || blocks(t, half); });
    };
    const bool constants = std::any_of(moved.begin(), moved.end(),
                                       [](const regie_tensor& t) { return is_float(t.elem) && t.data; });
    if (constants) return;
    auto with = [&](regie_format f) {
      std::vector<regie_format> operands, results(r_.results.size(), f);
      for (const regie_tensor& t : moved) operands.push_back(is_float(t.elem) ? f : kPlainFormat);
      offer(operands, results);
    };
    bool half = may_be_half(0) && r_.need(0).elem == REGIE_F32;
    for (size_t i = 0; i < r_.results.size(); ++i) half = half && rounds_result(i);
    const bool blocked = !axis && fits(moved, false) && fits(r_.results, false);
    if (blocked) with(kBlockedFormat);
    if (half && !axis && fits(moved, true) && fits(r_.results, true)) with(kBlockedFormat | kHalfFormat);
    if (half && !blocked) with(kHalfFormat);
    if (half || r_.need(0).elem == REGIE_F16) columns(moved);
  }

  // Joined or cut along the columns.
  void columns(std::span<const regie_tensor> moved) {
    if (r_.op != "Concat" && r_.op != "Split" && r_.op != "Slice") return;
    const bool joins = r_.op == "Concat";
    const regie_tensor& whole = joins ? r_.results[0] : r_.need(0);
    const int32_t rows = rows_of(whole);
    bool one = rows > 0, all = true;  // matrix, of whole blocks; in columns
    std::vector<regie_format> operands, results(r_.results.size(), matrix_format(rows));
    auto look = [&](const regie_tensor& t) {
      all = all && fits(t, rows) && t.rank == whole.rank;
      for (int32_t d = 0; d + 1 < t.rank; ++d) one = one && (t.dims[d] == 1 || d == t.rank - rows);
      one = one && t.rank > 0 && t.dims[t.rank - 1] % kC0 == 0;
    };
    for (const regie_tensor& t : moved) {
      if (is_float(t.elem)) look(t);
      operands.push_back(is_float(t.elem) ? matrix_format(rows) : kPlainFormat);
    }
    for (const regie_tensor& t : r_.results) look(t);
    // Pieces of one matrix's bytes (regie/part_view.hpp), which they are not where they lie row-major.
    bool anyway = true;
    for (int32_t d = 0; d + 1 < whole.rank; ++d) anyway = anyway && whole.dims[d] == 1;
    if (all) offer(operands, results, one && !anyway);
  }

  // Bytes all of one shape, beside single numbers, may lie in any order.
  void bytes_in_blocks() {
    if (r_.op != "regie.Pointwise") return;
    std::vector<regie_format> operands;
    for (const regie_tensor& t : r_.operands)
      operands.push_back(!t.data && byte_formats(&t).size() > 1 ? kByteBlockedFormat : kPlainFormat);
    offer(operands, std::vector<regie_format>(r_.results.size(), kByteBlockedFormat));
  }

  // Operands of the result's shape go along; what broadcasts stays row-major.
  void elementwise() {
    const regie_tensor& y = r_.results[0];
    bool narrow = true;
    for (size_t i = 0; i < r_.results.size(); ++i)
      narrow = narrow && r_.results[i].elem == REGIE_F32 && rounds_result(i);
    auto whole = [&](const regie_tensor& t) {
      return is_float(t.elem) && !t.data && t.rank == y.rank && std::equal(y.dims, y.dims + y.rank, t.dims);
    };
    std::vector<regie_format> orders{kPlainFormat};
    auto byte = [](const regie_tensor& t) { return is_byte(t.elem) && !t.data; };
    const bool bytes = std::any_of(r_.operands.begin(), r_.operands.end(), byte) ||
                       std::any_of(r_.results.begin(), r_.results.end(), byte);  // they lie row-major
    if (blocks(y, true) && !bytes) orders.push_back(kBlockedFormat);
    bytes_in_blocks();
    for (regie_format order : orders)
      for (regie_format in : {regie_format{0}, kHalfFormat})
        for (regie_format out : {regie_format{0}, kHalfFormat}) {
          if (out && !narrow) continue;
          if (order && !out && !blocks(y)) continue;
          std::vector<regie_format> operands;
          bool any = false, fits = true;
          for (size_t i = 0; i < r_.operands.size(); ++i) {
            const regie_tensor& t = r_.operands[i];
            const bool half = in && t.elem == REGIE_F32 && rounds_operand(i);
            operands.push_back(!whole(t) ? kPlainFormat : order | (half ? kHalfFormat : 0));
            any |= whole(t) && half;
            fits = fits && (!whole(t) || !order || blocks(t, half));
          }
          if ((in && !any) || !fits) continue;
          offer(operands, std::vector<regie_format>(r_.results.size(), order | out));
        }
    const int32_t rows = rows_of(y);
    for (size_t i = 0; i < r_.results.size(); ++i)
      if (!fits(r_.results[i], rows) || (r_.results[i].elem == REGIE_F32 && !rounds_result(i))) return;
    if (bytes) return;
    std::vector<regie_format> operands;
    for (size_t i = 0; i < r_.operands.size(); ++i) {
      if (whole(r_.operands[i]) && r_.operands[i].elem == REGIE_F32 && !rounds_operand(i)) return;
      operands.push_back(whole(r_.operands[i]) ? matrix_format(rows) : kPlainFormat);
    }
    offer(operands, std::vector<regie_format>(r_.results.size(), matrix_format(rows)));
  }

  const Request& r_;
  Rounding rounding_;
  const Widths* widths_;
  std::optional<double> quickest_, base_;
  uint32_t options_ = 0;
  std::vector<regie_format_wish> wishes_;
};

}  // namespace

bool takes_blocks(std::string_view op) {
  constexpr std::string_view kNone[] = {"MatMul",          "Gemm",      "regie.FusedMatMul",
                                        "regie.Attention", "Softmax",   "LogSoftmax",
                                        "Expand",          "Transpose", "LayerNormalization"};
  return std::find(std::begin(kNone), std::end(kNone), op) == std::end(kNone);
}

bool takes_byte_blocks(std::string_view op) {
  constexpr std::string_view kAll[] = {"regie.QConv", "regie.QConvAdd",  "QLinearConv",
                                       "MaxPool",     "regie.Pointwise", "regie.Reformat"};
  return std::find(std::begin(kAll), std::end(kAll), op) != std::end(kAll);
}

std::vector<regie_format_wish> wishes_of(const Request& base, Rounding rounding, const Widths* widths,
                                         std::optional<double> quickest) {
  return Lister(base, rounding, widths, quickest).run();
}

std::vector<regie_tensor> stored(std::span<const regie_tensor> tensors,
                                 std::span<const regie_format> formats) {
  std::vector<regie_tensor> out(tensors.begin(), tensors.end());
  for (size_t i = 0; i < out.size() && i < formats.size(); ++i)
    if (is_half(formats[i]) && out[i].elem == REGIE_F32) {
      out[i].elem = REGIE_F16;
      out[i].bytes /= 2;
    }
  return out;
}

}  // namespace aicore
