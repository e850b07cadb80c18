#include "rules/evaluate.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ir/structural.h"
#include "rules/numbers.h"

namespace regie {
namespace {

// One region being computed. Regions see their own values and outer constants; captures come as arguments.
struct Frame {
  uint32_t region;
  uint32_t next;                     // node to compute
  uint32_t owner;                    // node that gets the region's results; REGIE_NONE: the caller does
  int64_t iteration = 0, trips = 0;  // of a Loop
  std::vector<std::vector<Tensor>> collected = {};  // by value, then by iteration
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
        if (is_loop(graph_.node(node))) {
          REGIE_TRY(begin_loop(node, &frames));
          continue;
        }
        if (!is_if(graph_.node(node))) {
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
      if (is_loop(graph_.node(frame.owner))) {
        REGIE_TRY(end_iteration(results, &frames));
        continue;
      }
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

  // Shape and types were inferred: here it is enough that what is read is there.
  Status begin_loop(uint32_t node, std::vector<Frame>* frames) {
    const regie_node& n = graph_.node(node);
    const uint32_t own = own_operands(n);
    const regie_region& body = graph_.region(n.regions[0]);
    if (n.region_count != 1 || own < 2 || body.arg_count != n.operand_count ||
        body.result_count != n.result_count + 1 || n.result_count + 2 < own)
      return invalid_model("a Loop has a body with as many arguments as operands",
                           graph_.describe_node(node));
    Frame frame{body.id, body.first, node};
    frame.trips = INT64_MAX;
    bool goes_on = true;
    if (n.operands[0] != REGIE_NONE) {
      REGIE_ASSIGN(Tensor trips, get(n.operands[0]));
      auto count = trips && trips.count() == 1 ? integer_at(trips.view(), 0) : std::nullopt;
      if (!count) return invalid_model("the trip count must be one number", graph_.describe_node(node));
      frame.trips = static_cast<int64_t>(*count);
    }
    if (n.operands[1] != REGIE_NONE) {
      REGIE_ASSIGN(Tensor condition, get(n.operands[1]));
      REGIE_ASSIGN(goes_on, truth(condition, node));
    }
    for (uint32_t i = 2; i < n.operand_count; ++i) {
      REGIE_ASSIGN(values_[body.args[i]], get(n.operands[i]));
    }
    drop_read(node);
    frame.collected.resize(n.result_count + 2 - own);
    frames->push_back(std::move(frame));
    return next_iteration(goes_on, frames);
  }

  Result<bool> truth(const Tensor& condition, uint32_t node) const {
    auto value = condition && condition.count() == 1 ? integer_at(condition.view(), 0) : std::nullopt;
    if (!value) return invalid_model("the condition must be one bool", graph_.describe_node(node));
    return *value != 0;
  }

  Status end_iteration(const std::vector<Tensor>& results, std::vector<Frame>* frames) {
    Frame& frame = frames->back();
    const regie_region& body = graph_.region(frame.region);
    const uint32_t carried = own_operands(graph_.node(frame.owner)) - 2;
    REGIE_ASSIGN(const bool goes_on, truth(results[0], frame.owner));
    for (uint32_t i = 0; i < carried; ++i) values_[body.args[2 + i]] = results[1 + i];
    for (size_t i = 0; i < frame.collected.size(); ++i)
      frame.collected[i].push_back(results[1 + carried + i]);
    ++frame.iteration;
    return next_iteration(goes_on, frames);
  }

  // Begins it, or ends the loop.
  Status next_iteration(bool goes_on, std::vector<Frame>* frames) {
    Frame& frame = frames->back();
    const regie_region& body = graph_.region(frame.region);
    if (goes_on && frame.iteration < frame.trips) {
      values_[body.args[0]] = Tensor::copy({REGIE_I64, 0, 0, nullptr, nullptr, &frame.iteration, 8});
      uint8_t yes = 1;
      values_[body.args[1]] = Tensor::copy({REGIE_BOOL, 0, 0, nullptr, nullptr, &yes, 1});
      for (uint32_t n = body.first; n != REGIE_NONE; n = graph_.node(n).next)
        for (uint32_t v : graph_.results(n))
          if (v != REGIE_NONE) readers_[v] = 0;
      frame.next = body.first;
      return {};
    }
    std::span<const uint32_t> to = graph_.results(frame.owner);
    const uint32_t carried = own_operands(graph_.node(frame.owner)) - 2;
    for (uint32_t i = 0; i < to.size(); ++i) {
      if (to[i] == REGIE_NONE) continue;
      if (i < carried) {
        values_[to[i]] = values_[body.args[2 + i]];
      } else {
        REGIE_ASSIGN(values_[to[i]], stacked(frame, i - carried, to[i]));
      }
    }
    frames->pop_back();
    return {};
  }

  Result<Tensor> stacked(const Frame& frame, size_t which, uint32_t value) const {
    const std::vector<Tensor>& parts = frame.collected[which];
    const regie_type& t = graph_.value(value).type;
    std::vector<int64_t> dims{static_cast<int64_t>(parts.size())};
    for (int32_t i = 1; i < t.rank; ++i)
      dims.push_back(parts.empty() ? std::max<int64_t>(0, t.dims[i]) : parts[0].view().dims[i - 1]);
    REGIE_ASSIGN(Tensor whole, Tensor::try_zeros(t.elem, dims, graph_.describe_value(value)));
    uint64_t at = 0;
    for (const Tensor& part : parts) {
      if (part.bytes() != parts[0].bytes())
        return invalid_model("what its body gives has another size from iteration to iteration",
                             graph_.describe_node(frame.owner));
      if (part.bytes())
        std::memcpy(static_cast<std::byte*>(whole.mutable_data()) + at, part.data(), part.bytes());
      at += part.bytes();
    }
    return whole;
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
