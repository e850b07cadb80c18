#include "wishes.h"

#include <algorithm>
#include <optional>

#include "regie/graph_view.hpp"

namespace aicore {

namespace {

using regie::sdk::Failure;

class Lister {
 public:
  Lister(const Request& base, Rounding rounding)
      : r_(base), all_(rounding == Rounding::kAll), free_(rounding != Rounding::kNothing) {}

  std::vector<regie_format_wish> run() {
    const std::string_view op = r_.op;
    if (op == "regie.Reformat" || r_.results.empty() || r_.results[0].elem == REGIE_ELEM_UNKNOWN) return {};
    base_ = cycles({}, {});
    if (!base_) return {};
    if (op == "Conv" || op == "regie.FusedConv")
      convolution();
    else if (op == "MatMul" || op == "Gemm" || op == "regie.FusedMatMul")
      product();
    else if (op == "MaxPool" || op == "AveragePool")
      pooling();
    else if (op == "GlobalAveragePool" || op == "GlobalMaxPool" || op.starts_with("Reduce"))
      reduction();
    else if (op == "Softmax" || op == "LogSoftmax" || op == "LayerNormalization")
      rows();
    else if (op == "Concat" || op == "Split" || op == "Slice" || op == "Transpose" || op == "Expand")
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

  // The other formats of a tensor than row-major, as far as its readers and writers go.
  bool blocks(const regie_tensor& t) const {
    int64_t positions = 1;
    for (int32_t d = 2; d < t.rank; ++d) positions *= t.dims[d];
    return is_float(t.elem) && positions > 1 && blocks_fit({t.dims, static_cast<size_t>(t.rank)});
  }
  std::vector<regie_format> formats(const regie_tensor* t, bool halves, bool blocked = true) const {
    std::vector<regie_format> out{kPlainFormat};
    if (!t || !is_float(t->elem) || t->data) return out;
    const bool half = halves && t->elem == REGIE_F32;
    if (blocked && blocks(*t)) {
      out.push_back(kBlockedFormat);
      if (half) out.push_back(kBlockedFormat | kHalfFormat);
    } else if (half) {
      out.push_back(kHalfFormat);
    }
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
    for (regie_format x : formats(r_.operand(0), free_))
      for (regie_format y : formats(&r_.results[0], free_)) {
        std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
        operands[0] = x;
        if (residual) operands[3] = all_ ? y : y & ~kHalfFormat;
        offer(operands, {y});
      }
  }

  void product() {
    const bool residual = r_.operand(3) || (r_.operand(2) && !r_.operand(2)->data);
    for (regie_format a : formats(r_.operand(0), free_, false))
      for (regie_format b : formats(r_.operand(1), free_, false))
        for (regie_format y : formats(&r_.results[0], free_, false)) {
          std::vector<regie_format> operands(r_.operands.size(), kPlainFormat);
          operands[0] = a;
          operands[1] = b;
          if (residual && all_)
            for (size_t i : {size_t{2}, size_t{3}})
              if (r_.operand(i) && !r_.operand(i)->data && r_.operand(i)->elem == REGIE_F32 &&
                  regie::sdk::count_of(*r_.operand(i)) == regie::sdk::count_of(r_.results[0]))
                operands[i] = y;
          offer(operands, {y});
        }
  }

  // Exact for halves, and it rounds to them.
  void pooling() {
    const bool blocked = blocks(r_.need(0)) && blocks(r_.results[0]);
    for (regie_format x : formats(r_.operand(0), free_, blocked))
      for (regie_format y : formats(&r_.results[0], free_, blocked)) offer({x}, {y});
  }

  void reduction() {
    for (regie_format x : formats(r_.operand(0), all_))
      for (regie_format y : formats(&r_.results[0], free_, false)) offer({x}, {y});
  }

  void rows() {
    for (regie_format x : formats(r_.operand(0), all_, false))
      for (regie_format y : formats(&r_.results[0], free_, false)) offer({x}, {y});
  }

  // What only moves elements moves halves as well.
  void move() {
    const bool axis = r_.op == "Transpose" || r_.op == "Expand";
    auto fits = [&](std::span<const regie_tensor> list) {
      return std::all_of(list.begin(), list.end(),
                         [&](const regie_tensor& t) { return !is_float(t.elem) || (!t.data && blocks(t)); });
    };
    const bool constants = std::any_of(r_.operands.begin(), r_.operands.end(),
                                       [](const regie_tensor& t) { return is_float(t.elem) && t.data; });
    if (constants) return;
    auto with = [&](regie_format f) {
      std::vector<regie_format> operands, results(r_.results.size(), f);
      for (const regie_tensor& t : r_.operands) operands.push_back(is_float(t.elem) ? f : kPlainFormat);
      offer(operands, results);
    };
    const bool half = free_ && r_.need(0).elem == REGIE_F32;
    if (!axis && fits(r_.operands) && fits(r_.results)) {
      with(kBlockedFormat);
      if (half) with(kBlockedFormat | kHalfFormat);
    } else if (half) {
      with(kHalfFormat);
    }
  }

  // Operands of the result's shape go along; what broadcasts stays row-major.
  void elementwise() {
    const regie_tensor& y = r_.results[0];
    const bool f32 = std::all_of(r_.results.begin(), r_.results.end(),
                                 [](const regie_tensor& t) { return t.elem == REGIE_F32; });
    auto whole = [&](const regie_tensor& t) {
      return is_float(t.elem) && !t.data && t.rank == y.rank && std::equal(y.dims, y.dims + y.rank, t.dims);
    };
    std::vector<regie_format> orders{kPlainFormat};
    if (blocks(y)) orders.push_back(kBlockedFormat);
    for (regie_format order : orders)
      for (regie_format in : {regie_format{0}, kHalfFormat})
        for (regie_format out : {regie_format{0}, kHalfFormat}) {
          if ((in && !all_) || (out && (!free_ || !f32))) continue;
          std::vector<regie_format> operands;
          bool any = false;
          for (const regie_tensor& t : r_.operands) {
            const bool half = in && t.elem == REGIE_F32;
            operands.push_back(!whole(t) ? kPlainFormat : order | (half ? kHalfFormat : 0));
            any |= whole(t) && half;
          }
          if (in && !any) continue;
          offer(operands, std::vector<regie_format>(r_.results.size(), order | out));
        }
  }

  const Request& r_;
  bool all_, free_;
  std::optional<double> base_;
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

std::vector<regie_format_wish> wishes_of(const Request& base, Rounding rounding) {
  return Lister(base, rounding).run();
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
