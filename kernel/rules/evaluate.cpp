#include "rules/evaluate.h"

#include <memory>

#include "rules/numbers.h"

namespace regie {
namespace {

// One region being computed. Regions see their own values and outer constants; captures come as arguments.
struct Frame {
  uint32_t region;
  uint32_t next;   // node to compute
  uint32_t owner;  // node that gets the region's results; REGIE_NONE: the caller does
};

class Evaluator {
 public:
  Evaluator(const Graph& graph, const OpSet& ops, const ValueBindings& bindings, uint64_t budget)
      : graph_(graph),
        ops_(ops),
        budget_(budget),
        values_(graph.value_count()),
        readers_(graph.value_count()) {
    for (const auto& [value, tensor] : bindings) values_[value] = tensor;
  }

  Result<std::vector<Tensor>> run() {
    for (uint32_t i = 0; i < graph_.region(0).arg_count; ++i) REGIE_TRY(bound(graph_.region(0).args[i]));
    std::vector<Frame> frames{{0, graph_.region(0).first, REGIE_NONE}};
    while (true) {
      Frame& frame = frames.back();
      if (frame.next != REGIE_NONE) {
        uint32_t node = frame.next;
        frame.next = graph_.node(node).next;
        if (graph_.node(node).region_count == 0 || graph_.node(node).op.data == nullptr) {
          REGIE_TRY(compute(node));
          continue;
        }
        if (view(graph_.node(node).op) != "If") {
          REGIE_TRY(compute(node));  // an operator that runs its regions itself
          continue;
        }
        REGIE_ASSIGN(uint32_t region, branch(node));
        frames.push_back({region, graph_.region(region).first, node});
        continue;
      }
      std::vector<Tensor> results;
      const regie_region& region = graph_.region(frame.region);
      for (uint32_t i = 0; i < region.result_count; ++i) {
        REGIE_ASSIGN(Tensor t, get(region.results[i]));
        results.push_back(std::move(t));
      }
      if (frame.owner == REGIE_NONE) return results;
      std::span<const uint32_t> to = graph_.results(frame.owner);
      if (to.size() > results.size())
        return invalid_model("a branch gives fewer results than the node has",
                             graph_.describe_node(frame.owner));
      for (size_t i = 0; i < to.size(); ++i)
        if (to[i] != REGIE_NONE) values_[to[i]] = results[i];
      frames.pop_back();
    }
  }

 private:
  Status bound(uint32_t value) {
    if (values_[value]) return {};
    return invalid_input(graph_.describe_value(value) + " has no tensor; bind one");
  }

  Result<Tensor> get(uint32_t value) {
    if (value == REGIE_NONE) return Tensor();
    if (!values_[value] && graph_.is_constant(value)) values_[value] = graph_.tensor(value);
    REGIE_TRY(bound(value));
    return values_[value];
  }

  Status compute(uint32_t node) {
    std::vector<Tensor> operands;
    for (uint32_t value : graph_.operands(node)) {
      REGIE_ASSIGN(Tensor t, get(value));
      operands.push_back(std::move(t));
    }
    auto results = ops_.evaluate(graph_, node, operands, budget_);
    if (!results.ok()) {
      Status s = std::move(results).status();
      s.set_where(graph_.describe_node(node));
      return std::move(s).while_doing("evaluating " + graph_.describe_node(node));
    }
    std::span<const uint32_t> to = graph_.results(node);
    if (results->size() < to.size())
      return internal_error(
          "the kernel gave " + std::to_string(results->size()) + " results of " + std::to_string(to.size()),
          graph_.describe_node(node));
    for (size_t i = 0; i < to.size(); ++i)
      if (to[i] != REGIE_NONE) values_[to[i]] = std::move((*results)[i]);
    drop_read(node);
    return {};
  }

  // Lets go of tensors after their last reader, so that long graphs fit in memory.
  void drop_read(uint32_t node) {
    for (uint32_t value : graph_.operands(node)) {
      if (value == REGIE_NONE || graph_.value(value).kind != REGIE_VALUE_RESULT) continue;
      if (++readers_[value] == graph_.value(value).use_count) values_[value] = Tensor();
    }
  }

  Result<uint32_t> branch(uint32_t node) {
    const regie_node& n = graph_.node(node);
    if (n.region_count != 2 || n.operand_count < 1)
      return invalid_model("needs a condition and two branches", graph_.describe_node(node));
    REGIE_ASSIGN(Tensor condition, get(n.operands[0]));
    auto truth = condition && condition.count() == 1 ? integer_at(condition.view(), 0) : std::nullopt;
    if (!truth) return invalid_model("the condition must be one bool", graph_.describe_node(node));
    uint32_t id = n.regions[*truth != 0 ? 0 : 1];
    const regie_region& region = graph_.region(id);
    if (region.arg_count > n.operand_count - 1)
      return invalid_model("a branch has more arguments than the node captures", graph_.describe_node(node));
    for (uint32_t i = 0; i < region.arg_count; ++i) {
      REGIE_ASSIGN(values_[region.args[i]], get(n.operands[i + 1]));
    }
    drop_read(node);
    return id;
  }

  const Graph& graph_;
  const OpSet& ops_;
  uint64_t budget_;
  std::vector<Tensor> values_;
  std::vector<uint32_t> readers_;  // that have run, by value
};

}  // namespace

Result<std::vector<Tensor>> evaluate_graph(const Graph& graph, const OpSet& ops,
                                           const ValueBindings& bindings, uint64_t budget) {
  return Evaluator(graph, ops, bindings, budget).run();
}

}  // namespace regie
