// How much work an operator is at concrete shapes: the arithmetic that its definition takes, and the bytes that
// it must read and write once. A model of cost, for engines that predict and devices that simulate plain code;
// both must count alike.
#pragma once

#include <algorithm>
#include <string_view>

#include "regie/plugin.hpp"
#include "regie/type_view.hpp"

namespace regie::sdk {

struct OperatorWork {
  double flops = 0;  // a multiplication with its addition is two
  double read_bytes = 0, written_bytes = 0;
  double bytes() const { return read_bytes + written_bytes; }
};

namespace work {

enum class Kind {
  kConv,           // a sum for each element of the result, over an output channel of the weights
  kConvTransposed, // for each element of operand 0
  kProduct,        // over the last axis of operand 0 ...
  kGemm,           // ... or its first, if it is transposed
  kRecurrent,      // a step: every weight once for each element of the batch
  kAttention,      // two products over the last axis of the keys
  kWindow,         // each element of the result reads its window
  kMoved           // no arithmetic
};
struct Entry {
  std::string_view op;
  Kind kind;
  uint32_t weights;  // operand
};
inline constexpr Entry kEntries[] = {
    {"Conv", Kind::kConv, 1},
    {"regie.FusedConv", Kind::kConv, 1},
    {"regie.QConv", Kind::kConv, 1},
    {"regie.QConvAdd", Kind::kConv, 3},
    {"ConvInteger", Kind::kConv, 1},
    {"QLinearConv", Kind::kConv, 3},
    {"ConvTranspose", Kind::kConvTransposed, 1},
    {"MatMul", Kind::kProduct, 1},
    {"regie.FusedMatMul", Kind::kProduct, 1},
    {"regie.QMatMul", Kind::kProduct, 1},
    {"MatMulInteger", Kind::kProduct, 1},
    {"QLinearMatMul", Kind::kProduct, 3},
    {"Gemm", Kind::kGemm, 1},
    {"LSTM", Kind::kRecurrent, 1},
    {"GRU", Kind::kRecurrent, 1},
    {"RNN", Kind::kRecurrent, 1},
    {"regie.Attention", Kind::kAttention, 1},
    {"MaxPool", Kind::kWindow, 0},
    {"AveragePool", Kind::kWindow, 0},
    {"LpPool", Kind::kWindow, 0},
    {"Reshape", Kind::kMoved, 0},
    {"Flatten", Kind::kMoved, 0},
    {"Squeeze", Kind::kMoved, 0},
    {"Unsqueeze", Kind::kMoved, 0},
    {"Identity", Kind::kMoved, 0},
    {"Transpose", Kind::kMoved, 0},
    {"Concat", Kind::kMoved, 0},
    {"Split", Kind::kMoved, 0},
    {"Slice", Kind::kMoved, 0},
    {"Gather", Kind::kMoved, 0},
    {"Expand", Kind::kMoved, 0},
    {"Pad", Kind::kMoved, 0},
    {"regie.Copy", Kind::kMoved, 0},
    {"regie.Reformat", Kind::kMoved, 0},
};
inline constexpr double kElementFlops = 4;  // of an element by any other operator

}  // namespace work

// Dimensions that are not known count as one. Absent operands and results have elem UNKNOWN. `inside`: how many
// operators its region has, where it has one.
inline OperatorWork operator_work(std::string_view op, const regie_attr* attrs, uint32_t attr_count,
                                  const regie_tensor* operands, uint32_t operand_count, const regie_tensor* results,
                                  uint32_t result_count, uint32_t inside = 1) {
  using work::Kind;
  const auto there = [](const regie_tensor& t) { return t.elem != REGIE_ELEM_UNKNOWN; };
  const auto count = [&](const regie_tensor& t) {
    double n = there(t) ? 1 : 0;
    for (int64_t d : dims_of(t)) n *= static_cast<double>(d < 0 ? 1 : d);
    return n;
  };
  const auto bytes = [&](const regie_tensor& t) { return count(t) * elem_bits(t.elem) / 8; };
  const auto dim = [&](const regie_tensor& t, int32_t axis) {
    return axis >= 0 && axis < t.rank ? static_cast<double>(std::max<int64_t>(1, t.dims[axis])) : 1.0;
  };
  OperatorWork w;
  double elements = 0, made = 0;
  for (uint32_t i = 0; i < operand_count; ++i) {
    w.read_bytes += bytes(operands[i]);
    elements = std::max(elements, count(operands[i]));
  }
  for (uint32_t i = 0; i < result_count; ++i) {
    w.written_bytes += bytes(results[i]);
    made = std::max(made, count(results[i]));
  }
  // What only picks from its operand reads what it gives, however large the table is.
  if (operand_count && result_count && (op == "Gather" || op == "Slice"))
    w.read_bytes -= std::max(0.0, bytes(operands[0]) - bytes(results[0]));
  elements = std::max(elements, made);
  w.flops = work::kElementFlops * elements * inside;
  const auto* entry = std::find_if(std::begin(work::kEntries), std::end(work::kEntries),
                                   [&](const work::Entry& e) { return e.op == op; });
  if (entry == std::end(work::kEntries) || operand_count <= entry->weights || !there(operands[entry->weights]) ||
      !there(operands[0]))
    return w;
  const Attrs a(attrs, attr_count);
  const regie_tensor &x = operands[0], &weights = operands[entry->weights];
  switch (entry->kind) {
    case Kind::kConv:
      w.flops = 2 * made * count(weights) / dim(weights, 0);
      break;
    case Kind::kConvTransposed:
      w.flops = 2 * count(x) * count(weights) / dim(weights, 0);
      break;
    case Kind::kProduct:
      w.flops = 2 * made * dim(x, x.rank - 1);
      break;
    case Kind::kGemm:
      w.flops = 2 * made * dim(x, a.integer("transA", 0) ? 0 : x.rank - 1);
      break;
    case Kind::kRecurrent: {
      double all = count(weights);
      if (operand_count > 2) all += count(operands[2]);
      const bool batch_first = a.integer("layout", 0) != 0;
      w.flops = 2 * all * dim(x, batch_first ? 1 : 0) * dim(x, batch_first ? 0 : 1);
      break;
    }
    case Kind::kAttention:
      w.flops = 4 * count(x) * dim(weights, weights.rank - 2);
      break;
    case Kind::kWindow: {
      double window = 1;
      if (const auto kernel = a.integers("kernel_shape"))
        for (int64_t k : *kernel) window *= static_cast<double>(std::max<int64_t>(1, k));
      w.flops = made * window;
      break;
    }
    case Kind::kMoved:
      w.flops = 0;
      break;
  }
  return w;
}

}  // namespace regie::sdk
