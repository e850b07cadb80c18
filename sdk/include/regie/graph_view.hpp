// Header-only reading of a graph: nodes in program order without recursion, operands and producers, sizes of
// types, words for messages. Spans and references point into host storage and live as long as the call that
// gave the graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regie/c/view.h"
#include "regie/plugin.hpp"
#include "regie/type_view.hpp"

namespace regie::sdk {

inline std::span<const uint32_t> operands_of(const regie_node& n) { return {n.operands, n.operand_count}; }
inline std::span<const uint32_t> results_of(const regie_node& n) { return {n.results, n.result_count}; }
inline std::span<const uint32_t> regions_of(const regie_node& n) { return {n.regions, n.region_count}; }
inline std::span<const uint32_t> control_of(const regie_node& n) { return {n.control, n.control_count}; }
inline std::span<const uint32_t> args_of(const regie_region& r) { return {r.args, r.arg_count}; }
inline std::span<const uint32_t> results_of(const regie_region& r) { return {r.results, r.result_count}; }
inline std::span<const regie_use> uses_of(const regie_value& v) { return {v.uses, v.use_count}; }

inline bool is_region_use(const regie_use& u) { return (u.node & REGIE_USE_REGION) != 0; }
// Handed out by its region: a graph output, or a result of a control-flow region.
inline bool is_region_result(const regie_value& v) {
  for (const regie_use& u : uses_of(v))
    if (is_region_use(u)) return true;
  return false;
}
inline bool is_constant(const regie_value& v) {
  return v.kind == REGIE_VALUE_CONSTANT || v.kind == REGIE_VALUE_WEIGHT;
}
// The elements of a constant of i64 or i32; nothing for other values, and where there is none.
inline std::optional<std::vector<int64_t>> constant_integers(const regie_value* v) {
  if (!v || !is_constant(*v) || !v->data || !v->data->data || v->data->strides) return std::nullopt;
  const regie_tensor& t = *v->data;
  if (t.elem != REGIE_I64 && t.elem != REGIE_I32) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t i = 0, count = count_of(t); i < count; ++i)
    out.push_back(t.elem == REGIE_I64 ? static_cast<const int64_t*>(t.data)[i]
                                      : static_cast<const int32_t*>(t.data)[i]);
  return out;
}
// The element of a constant of one bool, by the same rules.
inline std::optional<bool> constant_bool(const regie_value* v) {
  if (!v || !is_constant(*v) || !v->data || !v->data->data || v->data->elem != REGIE_BOOL || v->data->bytes != 1)
    return std::nullopt;
  return *static_cast<const uint8_t*>(v->data->data) != 0;
}

// The closed set of operators whose regions are programs of their own; regions of others (regie.Pointwise)
// are part of what an engine lowers, so nothing inside them is placed, ordered or given memory.
inline bool is_control_flow(const regie_node& n) {
  const std::string_view op = sv(n.op);
  return n.region_count != 0 && (op == "If" || op == "Loop" || op == "Scan");
}

class GraphView {
 public:
  explicit GraphView(const regie_graph* g) : g_(g) {}
  const regie_graph& raw() const { return *g_; }
  uint32_t node_count() const { return g_->node_count; }  // array lengths: dead entries included
  uint32_t value_count() const { return g_->value_count; }
  uint32_t region_count() const { return g_->region_count; }
  const regie_node& node(uint32_t id) const { return g_->nodes[id]; }
  const regie_value& value(uint32_t id) const { return g_->values[id]; }
  const regie_region& region(uint32_t id) const { return g_->regions[id]; }
  const regie_engine_ref& engine(uint32_t id) const { return g_->engines[id]; }
  std::span<const regie_engine_ref> engines() const { return {g_->engines, g_->engine_count}; }
  std::span<const uint32_t> changed() const { return {g_->changed, g_->changed_count}; }
  bool live(uint32_t node) const { return node < g_->node_count && g_->nodes[node].op.data != nullptr; }

  // The value at a place of the node; null where it is absent.
  const regie_value* operand(const regie_node& n, uint32_t i) const {
    return i < n.operand_count && n.operands[i] != REGIE_NONE ? &value(n.operands[i]) : nullptr;
  }
  const regie_value* result(const regie_node& n, uint32_t i) const {
    return i < n.result_count && n.results[i] != REGIE_NONE ? &value(n.results[i]) : nullptr;
  }
  // The node that computes the value; null for arguments and constants.
  const regie_node* producer(const regie_value& v) const {
    return v.kind == REGIE_VALUE_RESULT ? &node(v.owner) : nullptr;
  }
  // How many of a control-flow node's operands are its own (a condition; a Loop's trip count, condition and initial
  // values); the rest are captures, one for each of the last arguments of its regions.
  uint32_t own_operands(const regie_node& owner) const {
    if (sv(owner.op) != "Loop") return 1;
    return std::min(2 + carried_values(owner), owner.operand_count);
  }
  // The values that a Loop carries from one iteration to the next.
  static uint32_t carried_values(const regie_node& loop) {
    for (uint32_t i = 0; i < loop.attr_count; ++i)
      if (sv(loop.attrs[i].name) == "carried" && loop.attrs[i].kind == REGIE_ATTR_INT)
        return static_cast<uint32_t>(std::clamp<int64_t>(loop.attrs[i].v.i, 0, loop.operand_count));
    return 0;
  }
  // The place among its owner's operands of the outer value that a region's argument stands for; REGIE_NONE for
  // arguments of the graph itself, and for what a Loop hands to its body.
  uint32_t captured_place(const regie_value& argument) const {
    const regie_region& r = region(argument.owner);
    if (r.parent == REGIE_NONE) return REGIE_NONE;
    const regie_node& owner = node(r.parent);
    const uint32_t own = own_operands(owner), first = sv(owner.op) == "Loop" ? own : 0;
    return argument.index < first ? REGIE_NONE : own + argument.index - first;
  }
  uint32_t operand_behind(const regie_value& argument) const {
    const uint32_t place = captured_place(argument);
    return place == REGIE_NONE ? REGIE_NONE : node(region(argument.owner).parent).operands[place];
  }
  // The regions whose nodes become tasks: the graph's own and those of control flow, owners first.
  std::vector<uint32_t> task_regions() const {
    std::vector<uint32_t> regions{0};
    for (size_t i = 0; i < regions.size(); ++i)
      for (const regie_node& n : nodes(regions[i]))
        if (is_control_flow(n)) regions.insert(regions.end(), n.regions, n.regions + n.region_count);
    return regions;
  }

  // Nodes of one region in program order: for (const regie_node& n : graph.nodes(0)).
  class Nodes {
   public:
    class iterator {
     public:
      using value_type = regie_node;
      using difference_type = std::ptrdiff_t;
      iterator(const regie_node* nodes, uint32_t at) : nodes_(nodes), at_(at) {}
      const regie_node& operator*() const { return nodes_[at_]; }
      iterator& operator++() {
        at_ = nodes_[at_].next;
        return *this;
      }
      bool operator==(const iterator& o) const { return at_ == o.at_; }

     private:
      const regie_node* nodes_;
      uint32_t at_;
    };
    Nodes(const regie_node* nodes, uint32_t first) : nodes_(nodes), first_(first) {}
    iterator begin() const { return {nodes_, first_}; }
    iterator end() const { return {nodes_, REGIE_NONE}; }

   private:
    const regie_node* nodes_;
    uint32_t first_;
  };
  Nodes nodes(uint32_t region_id) const { return {g_->nodes, region(region_id).first}; }

  // Ids of all nodes of the region tree in program order; a node that owns regions comes before or after what
  // is inside.
  enum class Order { kOwnerFirst, kInnerFirst };
  std::vector<uint32_t> all_nodes(Order order) const {
    struct Frame {
      uint32_t next, after;  // the next node of a region; the owner that follows when the region is done
    };
    std::vector<uint32_t> out;
    std::vector<Frame> stack{{region(0).first, REGIE_NONE}};
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == REGIE_NONE) {
        if (f.after != REGIE_NONE) out.push_back(f.after);
        stack.pop_back();
        continue;
      }
      const regie_node& n = node(f.next);
      f.next = n.next;
      if (order == Order::kOwnerFirst || n.region_count == 0) out.push_back(n.id);
      for (uint32_t r = n.region_count; r-- > 0;) {
        const bool last = r + 1 == n.region_count;
        stack.push_back(
            {region(n.regions[r]).first, last && order == Order::kInnerFirst ? n.id : REGIE_NONE});
      }
    }
    return out;
  }

  // For messages: node 'conv1' (Conv), by its first origin where it has no name; %y.
  std::string describe(const regie_node& n) const {
    if (n.name.size) return "node '" + std::string(sv(n.name)) + "' (" + std::string(sv(n.op)) + ")";
    if (n.origin_count)
      return "node from " + std::string(sv(g_->origins[n.origins[0]])) + " (" + std::string(sv(n.op)) + ")";
    return "unnamed node (" + std::string(sv(n.op)) + ")";
  }
  std::string describe(const regie_value& v) const {
    return v.name.size ? "%" + std::string(sv(v.name)) : "%" + std::to_string(v.id);
  }

 private:
  const regie_graph* g_;
};

}  // namespace regie::sdk
