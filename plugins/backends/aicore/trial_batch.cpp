#include "trial_batch.h"

#include <algorithm>
#include <string_view>

#include "regie/graph_view.hpp"
#include "widths.h"

namespace aicore {

namespace {

using regie::sdk::Attrs;
using regie::sdk::operands_of;
using regie::sdk::results_of;
using regie::sdk::sv;

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

class Batch {
 public:
  explicit Batch(const regie_graph& g) : g_(g), parted_(g.value_count) {}

  std::optional<OneOfBatch> run() {
    const regie_region& top = g_.regions[0];
    for (uint32_t i = 0; i < top.arg_count; ++i) {
      const regie_type& t = type(top.args[i]);
      if (t.container != REGIE_TENSOR || t.rank < 0) return std::nullopt;
      if (t.rank == 0 || t.dims[0] == 1) continue;
      if (t.dims[0] < 1 || (parts_ > 1 && t.dims[0] != parts_)) return std::nullopt;
      parts_ = t.dims[0];
      parted_[top.args[i]] = true;
    }
    if (parts_ < 2) return std::nullopt;
    OneOfBatch one;
    one.copied.resize(g_.node_count);
    for (uint32_t id = top.first; id != REGIE_NONE; id = g_.nodes[id].next) {
      const regie_node& n = g_.nodes[id];
      const auto ids = operands_of(n);
      if (std::none_of(ids.begin(), ids.end(), [&](uint32_t v) { return parted(v); })) continue;
      if (!alike(n)) return std::nullopt;
      for (uint32_t v : results_of(n)) {
        if (v == REGIE_NONE) continue;
        if (type(v).rank < 1 || type(v).dims[0] < parts_ || type(v).dims[0] % parts_) return std::nullopt;
        parted_[v] = true;
      }
      one.copied[id] = is_reshape(sv(n.op));
    }
    one.dims.resize(g_.value_count);
    for (uint32_t v = 0; v < g_.value_count; ++v) {
      const regie_type& t = type(v);
      if (t.container != REGIE_TENSOR || t.rank < 0) continue;
      one.dims[v].assign(t.dims, t.dims + t.rank);
      if (parted_[v]) one.dims[v][0] /= parts_;
    }
    return one;
  }

 private:
  const regie_type& type(uint32_t v) const { return g_.values[v].type; }
  bool parted(uint32_t v) const { return v != REGIE_NONE && parted_[v]; }
  static bool is_reshape(std::string_view op) {
    return is_one_of(op, {"Reshape", "Flatten", "Squeeze", "Unsqueeze"});
  }
  int32_t axis_of(const regie_node& n, int64_t fallback) const {
    const int64_t axis = Attrs(n).integer("axis", fallback);
    return static_cast<int32_t>(axis < 0 ? axis + type(n.operands[0]).rank : axis);
  }
  // One that stays as it is and is read by all parts: along the first axis of a result of this rank there is
  // nothing of it.
  bool is_shared(uint32_t v, int32_t rank) const {
    return v == REGIE_NONE || type(v).rank < rank || (type(v).rank == rank && type(v).dims[0] == 1);
  }
  bool only_first_is_parted(const regie_node& n) const {
    const auto ids = operands_of(n);
    return parted(ids[0]) && std::none_of(ids.begin() + 1, ids.end(), [&](uint32_t v) { return parted(v); });
  }
  bool keeps_first(const regie_node& n) const {
    return type(n.results[0]).rank > 0 && type(n.results[0]).dims[0] == type(n.operands[0]).dims[0];
  }
  // Each operand is parted, of the result's rank, and as long; or shared.
  bool is_broadcast(const regie_node& n, size_t from = 0) const {
    const regie_type& y = type(n.results[0]);
    for (uint32_t v : operands_of(n).subspan(std::min<size_t>(from, n.operand_count)))
      if (parted(v) ? type(v).rank != y.rank || type(v).dims[0] != y.dims[0] : !is_shared(v, y.rank))
        return false;
    return true;
  }
  // Does it treat parts alike, one after the other?
  bool alike(const regie_node& n) const {
    const std::string_view op = sv(n.op);
    if (regie::sdk::is_control_flow(n) || !n.operand_count || !n.result_count || n.results[0] == REGIE_NONE ||
        n.operands[0] == REGIE_NONE)
      return false;
    if (op == "regie.Pointwise" ||
        is_one_of(op, {"Add",      "Sub",      "Mul",   "Div",   "Pow",        "Min",           "Max",
                       "Relu",     "Sigmoid",  "Tanh",  "Exp",   "Log",        "Sqrt",          "Abs",
                       "Neg",      "Erf",      "Clip",  "Gelu",  "HardSwish",  "HardSigmoid",   "LeakyRelu",
                       "Elu",      "Softplus", "Where", "PRelu", "Cast",       "Identity",      "Equal",
                       "Greater",  "Less",     "Not",   "And",   "Or",         "Reciprocal",    "Mish",
                       "Softsign", "Floor",    "Sin",   "Cos",   "regie.Copy", "regie.Reformat"}))
      return is_broadcast(n);
    if (is_one_of(op,
                  {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
                   "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN"}))
      return only_first_is_parted(n) && keeps_first(n);
    if (op == "regie.FusedConv")
      return parted(n.operands[0]) && keeps_first(n) && !parted(n.operands[1]) && is_broadcast(n, 3);
    if (op == "MatMul" || op == "Gemm" || op == "regie.FusedMatMul") {
      if (n.operand_count < 2 || n.operands[1] == REGIE_NONE || !parted(n.operands[0]) || !keeps_first(n) ||
          Attrs(n).integer("transA", 0))
        return false;
      const regie_type &a = type(n.operands[0]), &b = type(n.operands[1]);
      const bool right = parted(n.operands[1]) ? a.rank > 2 && b.rank == a.rank && b.dims[0] == a.dims[0]
                                               : b.rank == 2 || is_shared(n.operands[1], a.rank);
      return right && is_broadcast(n, 2);
    }
    if (op == "regie.Attention") return is_broadcast(n) && parted(n.operands[0]);
    if (is_one_of(op, {"Softmax", "LogSoftmax", "LayerNormalization"}))
      return only_first_is_parted(n) && axis_of(n, -1) != 0;
    if (is_one_of(op, {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "Slice", "Pad"})) {
      if (!only_first_is_parted(n) || !keeps_first(n)) return false;
      if (op == "Pad") return true;  // along the first axis there is none, as it is as long as it was
      // Slices name axes after starts and ends; without any they are the first ones.
      const uint32_t place = op == "Slice" ? 3 : 1;
      const auto axes = regie::sdk::constant_integers(
          place < n.operand_count && n.operands[place] != REGIE_NONE ? &g_.values[n.operands[place]]
                                                                     : nullptr);
      const int64_t rank = type(n.operands[0]).rank;
      return axes &&
             std::none_of(axes->begin(), axes->end(), [&](int64_t a) { return a == 0 || a == -rank; });
    }
    if (op == "Concat") {
      if (axis_of(n, 0) == 0) return false;
      const auto ids = operands_of(n);
      return std::all_of(ids.begin(), ids.end(), [&](uint32_t v) { return parted(v); });
    }
    if (op == "Split") return only_first_is_parted(n) && axis_of(n, 0) != 0;
    if (op == "Transpose") {
      const auto perm = Attrs(n).integers("perm");
      return perm && !perm->empty() && perm->front() == 0;
    }
    if (op == "Resize")  // by scales; sizes would say how many parts there are
      return only_first_is_parted(n) && keeps_first(n) &&
             (n.operand_count < 4 || n.operands[3] == REGIE_NONE);
    if (is_reshape(op)) return only_first_is_parted(n);
    if (op == "Gather") {
      const int32_t axis = axis_of(n, 0);
      return parted(n.operands[0]) ? axis != 0 && !parted(n.operands[1]) : axis == 0;
    }
    return false;
  }

  const regie_graph& g_;
  std::vector<bool> parted_;
  int64_t parts_ = 1;
};

}  // namespace

std::optional<OneOfBatch> one_of_batch(const regie_graph& graph) { return Batch(graph).run(); }

}  // namespace aicore
