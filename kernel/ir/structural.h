// The closed set of operators that the kernel itself knows: control flow and copies. Everything else is
// plug-ins.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/graph.h"

namespace regie {

inline bool is_if(const regie_node& n) { return view(n.op) == "If"; }
inline bool is_loop(const regie_node& n) { return view(n.op) == "Loop"; }
inline bool is_copy(const regie_node& n) { return view(n.op) == "regie.Copy"; }
// Nodes whose regions are programs of tasks. (A region may also be an operator's own business:
// regie.Pointwise.)
inline bool is_control_flow(const regie_node& n) {
  std::string_view op = view(n.op);
  return op == "If" || op == "Loop" || op == "Scan";
}

// Calls f(node id) for the nodes that become tasks, in program order: the graph's own region and, after their
// owner, those of control flow.
template <class F>
void for_each_task_node(const Graph& g, F&& f) {
  std::vector<uint32_t> stack{g.region(0).first};
  while (!stack.empty()) {
    uint32_t n = stack.back();
    if (n == REGIE_NONE) {
      stack.pop_back();
      continue;
    }
    stack.back() = g.node(n).next;
    f(n);
    if (!is_control_flow(g.node(n))) continue;
    for (uint32_t r = g.node(n).region_count; r-- > 0;) stack.push_back(g.region(g.node(n).regions[r]).first);
  }
}

// The regions that hold tasks: 0 and those of control flow, owners first.
inline std::vector<uint32_t> task_regions(const Graph& g) {
  std::vector<uint32_t> regions{0};
  for_each_task_node(g, [&](uint32_t n) {
    if (is_control_flow(g.node(n)))
      regions.insert(regions.end(), g.node(n).regions, g.node(n).regions + g.node(n).region_count);
  });
  return regions;
}

// Calls f(node id) for the nodes in the regions of a node, at any depth.
template <class F>
void for_each_inner_node(const Graph& g, uint32_t owner, F&& f) {
  std::vector<uint32_t> regions(g.node(owner).regions, g.node(owner).regions + g.node(owner).region_count);
  for (size_t i = 0; i < regions.size(); ++i)
    for (uint32_t n = g.region(regions[i]).first; n != REGIE_NONE; n = g.node(n).next) {
      f(n);
      regions.insert(regions.end(), g.node(n).regions, g.node(n).regions + g.node(n).region_count);
    }
}

// How many values a Loop carries from one iteration to the next.
inline uint32_t carried_values(const regie_node& n) {
  for (uint32_t i = 0; i < n.attr_count; ++i)
    if (view(n.attrs[i].name) == "carried" && n.attrs[i].kind == REGIE_ATTR_INT)
      return static_cast<uint32_t>(std::clamp<int64_t>(n.attrs[i].v.i, 0, n.operand_count));
  return 0;
}
// A control-flow node's operands before its captures: the condition of an If; trip count, condition and
// initial values of a Loop.
inline uint32_t own_operands(const regie_node& n) {
  return is_loop(n) ? std::min(2 + carried_values(n), n.operand_count) : 1;
}
// The first argument of a region that stands for a capture: a branch has no others, a Loop's body begins with
// the iteration number, the condition and what is carried.
inline uint32_t first_capture(const regie_node& owner) { return is_loop(owner) ? own_operands(owner) : 0; }

// The outer value that this argument of a control-flow region stands for; REGIE_NONE: it is the region's own.
inline uint32_t captured_operand(const Graph& g, uint32_t argument) {
  const regie_value& v = g.value(argument);
  const regie_node& owner = g.node(g.region(v.owner).parent);
  const uint32_t first = first_capture(owner);
  return v.index < first ? REGIE_NONE : owner.operands[own_operands(owner) + v.index - first];
}
// Where the bytes of an argument lie that is no capture: a carried value has those of the owner's result, so
// that it is in its place when the last iteration has ended. REGIE_NONE: bytes of its own.
inline uint32_t carried_result(const Graph& g, uint32_t argument) {
  const regie_value& v = g.value(argument);
  const regie_node& owner = g.node(g.region(v.owner).parent);
  if (!is_loop(owner) || v.index < 2 || v.index >= first_capture(owner)) return REGIE_NONE;
  return v.index - 2 < owner.result_count ? owner.results[v.index - 2] : REGIE_NONE;
}
// The value whose bytes an argument has: what it captures, or the result that it becomes; itself where it has
// its own.
inline uint32_t behind_argument(const Graph& g, uint32_t argument) {
  const uint32_t captured = captured_operand(g, argument);
  if (captured != REGIE_NONE) return captured;
  const uint32_t result = carried_result(g, argument);
  return result != REGIE_NONE ? result : argument;
}
// The control-flow region in which a value is made; an argument of one that stands for an outer value counts
// there.
inline uint32_t home_region(const Graph& g, uint32_t value) {
  const regie_value& v = g.value(value);
  return v.kind == REGIE_VALUE_RESULT ? g.node(v.owner).region : v.owner;
}

}  // namespace regie
