#include "wishes.h"

#include <algorithm>
#include <optional>

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
    if (byte_places(op)) return {};  // row-major
    if (op == "regie.Reformat" || r_.results.empty() || r_.results[0].elem == REGIE_ELEM_UNKNOWN) return {};
    base_ = quickest_ ? quickest_ : cycles({}, {});
    if (!base_) return {};
    if (op == "Conv" || op == "regie.FusedConv")
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
    else if (op != "regie.Attention")
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
      if (u.operand < 2 && is_product(op)) return true;
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

  void offer(std::vector<regie_format> operands, std::vector<regie_format> results) {
    auto plain = [](regie_format f) { return f == kPlainFormat; };
    operands.resize(r_.operands.size(), kPlainFormat);
    results.resize(r_.results.size(), kPlainFormat);
    if (std::all_of(operands.begin(), operands.end(), plain) &&
        std::all_of(results.begin(), results.end(), plain))
      return;
    const auto found = cycles(operands, results);
    if (!found) return;
    ++options_;
    double saved = r_.chip.ns(*base_) - r_.chip.ns(*found);
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

  void transposed_convolution() {
    for (regie_format x : formats(r_.operand(0), may_be_half(0)))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), false)) offer({x}, {y});
  }

  void product() {
    // Of operands that are added, those of the result's shape.
    std::vector<size_t> added;
    for (size_t i : {size_t{2}, size_t{3}})
      if (const regie_tensor* t = r_.operand(i);
          t && !t->data && t->elem == REGIE_F32 && rounds_operand(i) &&
          regie::sdk::count_of(*t) == regie::sdk::count_of(r_.results[0]))
        added.push_back(i);
    for (regie_format a : formats(r_.operand(0), may_be_half(0), false))
      for (regie_format b : formats(r_.operand(1), may_be_half(1), false))
        for (regie_format y : formats(&r_.results[0], rounds_result(0), false))
          for (bool half : {false, true}) {
            if (half && added.empty()) continue;
            std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
            operands[0] = a;
            operands[1] = b;
            if (half)
              for (size_t i : added) operands[i] = kHalfFormat;
            offer(operands, {y});
          }
  }

  // Exact for halves, and it rounds to them.
  void pooling() {
    const bool blocked = blocks(r_.need(0), true) && blocks(r_.results[0], true);
    for (regie_format x : formats(r_.operand(0), may_be_half(0), blocked))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), blocked)) offer({x}, {y});
  }

  void reduction() {
    for (regie_format x : formats(r_.operand(0), rounds_operand(0)))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), false)) offer({x}, {y});
  }

  void rows() {
    for (regie_format x : formats(r_.operand(0), rounds_operand(0), false))
      for (regie_format y : formats(&r_.results[0], rounds_result(0), false)) offer({x}, {y});
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
