// The closed set of operators that the kernel itself knows: control flow and copies. Everything else is
// plug-ins.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace regie {

inline bool is_if(const regie_node& n) { return view(n.op) == "If"; }
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

// The value that an If hands to this argument of one of its regions: captures are operands 1, 2 ... in order.
inline uint32_t captured_operand(const Graph& g, uint32_t argument) {
  const regie_value& v = g.value(argument);
  return g.node(g.region(v.owner).parent).operands[1 + v.index];
}

}  // namespace regie
