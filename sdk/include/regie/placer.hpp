// Header-only veneer for placers: what the engines answered, where values lie, words for the ledger. A placer is a class
// that derives from `Placer`, decides for each node of the problem and says why; plugins/passes/place-by-priority is the
// shortest example.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "regie/c/placer.h"
#include "regie/graph_view.hpp"

namespace regie::sdk {

inline std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
  return text;
}

class Placer {
 public:
  static constexpr uint32_t kHostSpace = 0;

  Placer(const regie_host* host, const regie_placement_problem* problem)
      : problem_(problem), graph_(problem->graph), dims_(host, problem->graph->dims) {}

  const GraphView& graph() const { return graph_; }
  const regie_placement_problem& problem() const { return *problem_; }
  uint32_t count() const { return problem_->node_count; }
  const regie_placement_node& at(uint32_t index) const { return problem_->nodes[index]; }
  const regie_node& node(uint32_t index) const { return graph_.node(at(index).node); }
  uint32_t engines() const { return static_cast<uint32_t>(graph_.engines().size()); }
  uint32_t space(uint32_t engine) const { return graph_.engine(engine).space; }

  // The value whose bytes are read when `value` is: what a region captured is where the owner's operand lies.
  // REGIE_NONE for constants, which every device has, and for absent ones.
  uint32_t storage_of(uint32_t value) const {
    while (value != REGIE_NONE) {
      const regie_value& v = graph_.value(value);
      if (is_constant(v)) return REGIE_NONE;
      const uint32_t outer = v.kind == REGIE_VALUE_ARGUMENT ? graph_.operand_behind(v) : REGIE_NONE;
      if (outer == REGIE_NONE) return value;
      value = outer;
    }
    return REGIE_NONE;
  }
  // Symbolic dimensions count as their least values.
  uint64_t bytes(uint32_t value) const { return least_bytes(graph_.value(value).type, dims_); }
  double transfer_ns(uint32_t from, uint32_t to, uint64_t bytes) const {
    return from == to ? 0.0 : problem_->transfer_ns(problem_, from, to, bytes);
  }
  double sync_ns(uint32_t from, uint32_t to) const { return problem_->sync_ns(problem_, from, to); }

  // `reason`: why there, in one line; each further line begins with the name of another engine, as `answer` gives
  // it, and says what it would have cost there. `explain` shows them apart.
  void assign(uint32_t index, uint32_t engine, std::string_view reason) const {
    check(problem_->assign(problem_, index, engine, str(reason)));
  }

  // Is the node's engine settled? Then it is assigned, or refused.
  bool assign_forced(uint32_t index) {
    const regie_placement_node& p = at(index);
    if (p.forced_engine == REGIE_NONE) return false;
    // Control flow has no kernel: the host itself runs it, so there is no answer to ask for.
    const bool control = is_control_flow(node(index));
    if (!control && !p.answers[p.forced_engine].can)
      refuse(index, "it was asked for on engine '" + name(p.forced_engine) +
                        "', which says: " + why(p.answers[p.forced_engine]));
    else
      assign(index, p.forced_engine, control ? "control flow runs on the host" : "asked for by the user");
    return true;
  }

  // The first engine that can, unless it has nothing but the reference kernel and a later one, with what the transfers
  // of the operands cost, is faster. `engine_of`: by node id, of those placed before; REGIE_NONE: on the host.
  struct Choice {
    uint32_t engine = REGIE_NONE;  // nobody can, which is noted
    double ns = 0;                 // with transfers
    bool gave_way = false;         // the first one did
  };
  Choice by_priority(uint32_t index, std::span<const uint32_t> engine_of) {
    const regie_answer* answers = at(index).answers;
    uint32_t first = 0;
    while (first < engines() && !answers[first].can) ++first;
    if (first == engines()) {
      refuse(index, everyone(index));
      return {};
    }
    Choice best{first, with_operands(index, first, engine_of)};
    for (uint32_t e = first + 1; answers[first].reference && e < engines(); ++e) {
      if (!answers[e].can || answers[e].reference) continue;
      if (const double ns = with_operands(index, e, engine_of); ns < best.ns) best = {e, ns, true};
    }
    return best;
  }

  // Throws if a node was refused: the first one, and how many more.
  void finish() const {
    if (refused_ == 0) return;
    std::string text = first_;
    if (refused_ > 1) text += " (and " + std::to_string(refused_ - 1) + " more nodes without an engine)";
    throw Failure(REGIE_UNSUPPORTED, text, where_);
  }

  std::string name(uint32_t engine) const { return std::string(sv(graph_.engine(engine).name)); }
  static std::string why(const regie_answer& a) {
    return a.reason.size ? std::string(sv(a.reason)) : "no reason given";
  }
  // "own kernel, predicted 12.0 us (brgconv)": in the engine's words of when it was asked.
  static std::string kernel(const regie_answer& a) {
    const std::string kind = a.reference ? "reference kernel" : "own kernel";
    std::string text = kind + ", predicted " + microseconds(a.cost_ns);
    if (a.reason.size && sv(a.reason) != kind) text += " (" + std::string(sv(a.reason)) + ")";
    return text;
  }
  // "npu: could, 12.0 us": what one engine said.
  std::string answer(uint32_t index, uint32_t engine) const {
    const regie_answer& a = at(index).answers[engine];
    if (!a.can) return name(engine) + " says: " + why(a);
    return name(engine) + (a.reference ? ": reference kernel only, " : ": could, ") + microseconds(a.cost_ns);
  }
  // A line for each engine apart from `except`, for the reason of `assign`.
  std::string other_lines(uint32_t index, uint32_t except) const {
    std::string text;
    for (uint32_t e = 0; e < engines(); ++e)
      if (e != except) text += "\n" + answer(index, e);
    return text;
  }
  // What the engines said.
  std::string everyone(uint32_t index) const {
    std::string text;
    for (uint32_t e = 0; e < engines(); ++e) text += (e ? "; " : "") + answer(index, e);
    return text;
  }

 private:
  double with_operands(uint32_t index, uint32_t engine, std::span<const uint32_t> engine_of) const {
    double ns = at(index).answers[engine].cost_ns;
    for (uint32_t operand : operands_of(node(index))) {
      const uint32_t v = storage_of(operand);
      if (v == REGIE_NONE) continue;
      const regie_node* producer = graph_.producer(graph_.value(v));
      const uint32_t from = producer && !is_control_flow(*producer) ? engine_of[producer->id] : REGIE_NONE;
      ns += transfer_ns(from == REGIE_NONE ? kHostSpace : space(from), space(engine), bytes(operand));
    }
    return ns;
  }

  void refuse(uint32_t index, const std::string& reasons) {
    if (refused_++) return;
    where_ = graph_.describe(node(index));
    first_ = "no engine of the target can compute " + std::string(sv(node(index).op)) + ": " +
             (reasons.empty() ? "the target has no engine" : reasons);
  }

  const regie_placement_problem* problem_;
  GraphView graph_;
  Dims dims_;
  uint32_t refused_ = 0;
  std::string first_, where_;
};

}  // namespace regie::sdk
