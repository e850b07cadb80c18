#include "passes/known_content.h"

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/elem.h"
#include "regie/c/op_kernel.h"

namespace regie {

namespace {

constexpr uint64_t kMostBytes = 64 << 10;  // of each tensor on the way
constexpr size_t kMostNodes = 256;
constexpr int64_t kMostElements = 1024;  // of a content

class Computer {
 public:
  Computer(const Graph& graph, const OpSet& ops) : graph_(graph), ops_(ops) {}

  // Nothing if it does not depend on constants alone, or takes too much.
  std::optional<Tensor> compute(uint32_t value) {
    if (graph_.value(value).kind != REGIE_VALUE_RESULT) return std::nullopt;
    // Producers before their readers.
    std::vector<uint32_t> found{graph_.value(value).owner}, order;
    std::unordered_map<uint32_t, bool> finished;
    while (!found.empty()) {
      const uint32_t node = found.back();
      auto [at, fresh] = finished.try_emplace(node, false);
      if (!fresh) {
        found.pop_back();
        if (!at->second) order.push_back(node);
        at->second = true;
        continue;
      }
      if (finished.size() > kMostNodes || !computable(node)) return std::nullopt;
      for (uint32_t v : graph_.operands(node)) {
        if (v == REGIE_NONE || tensors_.count(v)) continue;
        if (graph_.value(v).kind == REGIE_VALUE_RESULT) {
          if (!finished.count(graph_.value(v).owner)) found.push_back(graph_.value(v).owner);
        } else if (!graph_.is_constant(v) || !graph_.tensor(v)) {
          return std::nullopt;
        }
      }
    }
    for (uint32_t node : order)
      if (!run(node)) return std::nullopt;
    return tensors_.at(value);
  }

 private:
  bool computable(uint32_t node) const {
    const regie_node& n = graph_.node(node);
    if (n.region_count || (ops_.flags(view(n.op)) & (REGIE_OP_NONDETERMINISTIC | REGIE_OP_DYNAMIC_RESULT)))
      return false;
    for (uint32_t v : graph_.results(node)) {
      if (v == REGIE_NONE) continue;
      const regie_type& t = graph_.value(v).type;
      if (t.rank < 0 || t.container != REGIE_TENSOR || t.elem == REGIE_STRING) return false;
      uint64_t count = 1;
      for (int32_t i = 0; i < t.rank; ++i) {
        if (t.dims[i] < 0 || static_cast<uint64_t>(t.dims[i]) > kMostBytes) return false;
        count *= static_cast<uint64_t>(t.dims[i]);
        if (elem_bytes(t.elem, count) > kMostBytes) return false;
      }
    }
    return true;
  }

  bool run(uint32_t node) {
    std::span<const uint32_t> results = graph_.results(node);
    std::vector<Tensor> operands;
    for (uint32_t v : graph_.operands(node)) {
      if (v == REGIE_NONE)
        operands.emplace_back();
      else if (auto at = tensors_.find(v); at != tensors_.end())
        operands.push_back(at->second);
      else
        operands.push_back(graph_.tensor(v));
    }
    auto computed = ops_.evaluate(graph_, node, operands, kMostBytes);
    if (!computed.ok()) return false;
    for (size_t i = 0; i < results.size() && i < computed->size(); ++i)
      if (results[i] != REGIE_NONE) tensors_[results[i]] = (*computed)[i];
    return true;
  }

  const Graph& graph_;
  const OpSet& ops_;
  std::unordered_map<uint32_t, Tensor> tensors_;
};

}  // namespace

bool learn_contents(Graph& graph, uint32_t node, const OpSet& ops) {
  Computer computer(graph, ops);
  bool any = false;
  const std::vector<uint32_t> operands(graph.operands(node).begin(), graph.operands(node).end());
  for (uint32_t v : operands) {
    if (v == REGIE_NONE || graph.value(v).kind != REGIE_VALUE_RESULT || graph.value(v).content) continue;
    const regie_type& t = graph.value(v).type;
    if (t.rank > 1 || (t.elem != REGIE_I64 && t.elem != REGIE_I32)) continue;
    auto tensor = computer.compute(v);
    if (!tensor || tensor->count() > kMostElements) continue;
    std::vector<regie_dim> content;
    for (int64_t i = 0; i < tensor->count(); ++i) {
      const int64_t x = t.elem == REGIE_I64 ? tensor->as<int64_t>()[static_cast<size_t>(i)]
                                            : tensor->as<int32_t>()[static_cast<size_t>(i)];
      // The least number has no positive counterpart; as a bound it means the same as its neighbour.
      content.push_back(x >= 0 ? x : graph.dims().sub(0, x == INT64_MIN ? INT64_MAX : -x));
    }
    graph.set_content(v, content);
    any = true;
  }
  return any;
}

}  // namespace regie
