// The graph: a tree of regions in one id space, stored as the C view structs that plug-ins see
// (regie/c/view.h), so that a view costs nothing. Only the kernel writes, through the functions below; passes
// describe changes as patches (edit.h). Ids are never reused. Program order within a region is a linked list
// with ascending labels, so that "is before" is O(1) and inserting is O(1) amortised. Regions with captures
// get them as explicit operands and arguments: a node reads only values of its own region, or constants and
// weights of an enclosing one.
//
// A region that no node has taken yet is *detached*: its parent is REGIE_NONE; what it sees is given by its
// scope.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/dim.h"
#include "base/elem.h"
#include "base/names.h"
#include "base/status.h"
#include "regie/c/view.h"

namespace regie {

struct AttrValue {  // an owning attribute, for building; `of` copies a view
  std::string name;
  uint32_t kind = 0;  // REGIE_ATTR_*
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  Tensor tensor;
  static AttrValue of(const regie_attr& a);
  static AttrValue integer(std::string name, int64_t v);
  static AttrValue number(std::string name, double v);
  static AttrValue text(std::string name, std::string v);
  static AttrValue integers(std::string name, std::vector<int64_t> v);
};

struct NodeSpec {  // what a new node is made of
  std::string op, name;
  std::vector<uint32_t> operands;  // REGIE_NONE: absent
  std::vector<AttrValue> attrs;
  std::vector<uint32_t> regions;  // detached regions, each used once
  std::vector<uint32_t> control;
  std::vector<uint32_t> origins;  // indices from add_origin
  std::vector<std::string> result_names;
  std::vector<bool> omitted;  // per result
  uint32_t result_count = 1;
};

class Graph {
 public:
  Graph();  // with an empty region 0
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The view; its pointers are valid until the next write. `changed` is empty: the pass manager fills it in a
  // copy.
  const regie_graph& view() const;
  DimTable& dims() const { return *dims_; }
  std::string_view name() const { return name_; }
  void set_name(std::string_view name);

  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }    // dead included
  uint32_t value_count() const { return static_cast<uint32_t>(values_.size()); }  // dead included
  uint32_t region_count() const { return static_cast<uint32_t>(regions_.size()); }
  uint32_t live_node_count() const { return live_nodes_; }
  const regie_node& node(uint32_t id) const { return nodes_[id]; }
  const regie_value& value(uint32_t id) const { return values_[id]; }
  const regie_region& region(uint32_t id) const { return regions_[id]; }
  bool live(uint32_t node) const { return node < nodes_.size() && nodes_[node].op.data != nullptr; }
  uint32_t scope(uint32_t region) const {
    return region_scope_[region];
  }  // the region around it, REGIE_NONE for 0
  bool live_region(uint32_t region) const { return region < regions_.size() && region_live_[region]; }
  bool live_value(uint32_t value) const {
    return value < values_.size() && values_[value].kind != REGIE_VALUE_DEAD;
  }
  bool is_constant(uint32_t value) const {
    return live_value(value) &&
           (values_[value].kind == REGIE_VALUE_CONSTANT || values_[value].kind == REGIE_VALUE_WEIGHT);
  }
  const Tensor& tensor(
      uint32_t value) const;  // of a constant or weight; empty Tensor if only the type is known
  // Of an argument of region 0: NULL if a run must give it.
  const Tensor* default_of(uint32_t argument) const {
    const auto it = defaults_.find(argument);
    return it == defaults_.end() ? nullptr : &it->second;
  }
  std::span<const uint32_t> operands(uint32_t node) const {
    return {nodes_[node].operands, nodes_[node].operand_count};
  }
  std::span<const uint32_t> results(uint32_t node) const {
    return {nodes_[node].results, nodes_[node].result_count};
  }
  std::span<const regie_use> uses(uint32_t value) const {
    return {values_[value].uses, values_[value].use_count};
  }
  // Live constants and weights that belong to the region, by ascending id. O(all that it ever had).
  std::vector<uint32_t> constants(uint32_t region) const;
  const regie_attr* find_attr(uint32_t node, std::string_view name) const;
  // May a node in `region` (or its result list) read `value`? Own values; constants of it and of the regions
  // around it.
  bool visible(uint32_t value, uint32_t region) const;
  // The region that `value` belongs to.
  uint32_t region_of(uint32_t value) const;
  // Do `a` and `b`, nodes of one region, stand in this order?
  bool before(uint32_t a, uint32_t b) const { return nodes_[a].order < nodes_[b].order; }
  // Names of the graph's outputs, which outlive the values that they are read from. Never empty.
  std::string_view output_name(uint32_t index) const { return output_names_[index]; }
  // Of an output that is a list of elements, whose rank and dimensions a run tells: the output that is those,
  // which stands behind all that have a name of the framework's. REGIE_NONE: the output is what its type
  // says.
  uint32_t output_shape(uint32_t index) const {
    return index < output_shapes_.size() ? output_shapes_[index] : REGIE_NONE;
  }
  std::string_view origin(uint32_t index) const { return view_str(origins_[index]); }
  // "node 'conv1' (Op)" for messages: the framework's name where there is one, its origins otherwise.
  std::string describe_node(uint32_t node) const;
  std::string describe_value(uint32_t value) const;

  // ---- Writing. Indices must be valid (asserted); what input can get wrong is a Status. ----
  regie_type make_type(regie_elem elem, std::span<const regie_dim> dims, uint16_t container = REGIE_TENSOR);
  regie_type copy_type(const regie_type& type);  // dims into this graph's arena
  uint32_t add_origin(std::string_view text);    // the same text gives the same index
  uint32_t add_argument(uint32_t region, const regie_type& type, std::string_view name);
  // A run need not give this argument of region 0: it then computes with `tensor`. Nothing else knows of it,
  // as a run may give another one. INVALID_MODEL if it is not of the argument's type.
  Status set_default(uint32_t argument, Tensor tensor);
  uint32_t add_constant(uint32_t region, uint32_t kind, Tensor tensor, std::string_view name);
  uint32_t add_abstract_constant(uint32_t region, uint32_t kind, const regie_type& type,
                                 std::string_view name);
  // Appends to `region`, or inserts before `before`. Result types are unknown (rank -1) until set.
  uint32_t add_node(uint32_t region, const NodeSpec& spec, uint32_t before = REGIE_NONE);
  // Detached until a node takes it. `scope`: the region that the node will be in.
  uint32_t add_region(std::string_view name, uint32_t scope = REGIE_NONE);
  // Outputs of region 0 that have no name yet get the value's, or "output_<i>"; those that have one keep it.
  void set_region_results(uint32_t region, std::span<const uint32_t> values);
  void set_region_result(uint32_t region, uint32_t index, uint32_t value);
  void set_output_names(std::span<const std::string> names);  // one a result of region 0
  // `shapes`: one a result of region 0, REGIE_NONE or the index of a later result.
  void set_output_shapes(std::vector<uint32_t> shapes) { output_shapes_ = std::move(shapes); }
  void set_type(uint32_t value, const regie_type& type);
  // Nothing is known of its type and content any more: it is to be inferred afresh.
  void forget_type(uint32_t value);
  void set_content(uint32_t value, std::span<const regie_dim> content);
  void set_value_name(uint32_t value, std::string_view name);
  void set_operand(uint32_t node, uint32_t operand, uint32_t value);
  // Replaces all attributes, no name twice; names and values are copied.
  void set_attrs(uint32_t node, std::span<const regie_attr> attrs);
  void set_origins(uint32_t node, std::span<const uint32_t> origins);  // sorted here, doubles removed
  void replace_uses(uint32_t old_value, uint32_t new_value);           // O(uses of old)
  void remove_node(uint32_t node);      // results must be unread; its regions die with it
  void remove_region(uint32_t region);  // a detached one, with all that is in it
  // Nodes that have `node` among their control edges.
  const std::set<uint32_t>& control_readers(uint32_t node) const;
  void remove_value(uint32_t value);  // an unread constant or weight; or an unread argument
  // Out of its place to just before `before` (at the end of `region` if REGIE_NONE), which may be of another
  // region.
  void move_before(uint32_t node, uint32_t before) { move(node, nodes_[before].region, before); }
  void move(uint32_t node, uint32_t region, uint32_t before);
  void move_constant(uint32_t value, uint32_t region);
  // Re-links the region in a topological order, stable with respect to the present one; INVALID_MODEL naming
  // a node on a cycle if there is none.
  Status sort_region(uint32_t region);
  // Assignments.
  void set_engines(std::vector<std::pair<std::string, regie_engine_ref>> engines);
  void set_control(uint32_t node, std::span<const uint32_t> control);
  void set_engine(uint32_t node, uint32_t engine) {
    nodes_[node].engine = engine;
    ++revision_;
  }
  void set_stream(uint32_t node, uint32_t stream) { nodes_[node].stream = stream; }
  void set_space(uint32_t value, uint32_t space) { values_[value].space = space; }
  void set_alias(uint32_t value, uint32_t base, uint64_t offset);
  // Ids of nodes made or whose operands changed since the last take; for the pass manager.
  std::vector<uint32_t> take_changed();
  // Grows with each change of nodes, operands, types, constants read and engines.
  uint64_t revision() const { return revision_; }
  uint32_t next_value_id() const { return value_count(); }
  uint32_t next_node_id() const { return node_count(); }
  uint32_t next_region_id() const { return region_count(); }
  // Makes dead ids so that the next ones are at least these (ids handed out by a dropped patch).
  void skip_ids(uint32_t values, uint32_t nodes, uint32_t regions);

  // Calls f(node id) in program order, descending into regions after their owner. No recursion. f may not
  // change order.
  template <class F>
  void for_each_node(F&& f) const;

 private:
  static std::string_view view_str(regie_str s) { return {s.data, s.size}; }
  uint32_t new_value(uint32_t kind, uint32_t owner, uint32_t index, std::string_view name);
  void add_use(uint32_t value, regie_use use);
  void remove_use(uint32_t value, uint32_t slot);
  uint32_t& slot_of(regie_use use);
  void touch(uint32_t node);
  void touch_readers(uint32_t value);
  regie_attr copy_attr(const AttrValue& attr);
  void link(uint32_t region, uint32_t node, uint32_t before);
  void unlink(uint32_t node);
  void relabel_around(uint32_t region, uint32_t node);
  void kill_nodes(std::vector<uint32_t> nodes, std::vector<uint32_t> regions);
  void kill_node(uint32_t node);
  void kill_value(uint32_t value);

  std::string name_;
  std::unique_ptr<DimTable> dims_;
  Arena arena_;
  std::vector<regie_node> nodes_;
  std::vector<regie_value> values_;
  std::vector<regie_region> regions_;
  std::vector<uint8_t> region_live_;
  std::vector<uint32_t> region_scope_;
  std::vector<std::vector<uint32_t>> region_args_;
  std::vector<std::vector<uint32_t>> region_results_;
  std::vector<std::vector<uint32_t>> region_constants_;  // dead and moved ones included
  std::vector<std::vector<regie_use>> uses_;             // by value
  std::vector<uint32_t*> operand_slots_;             // by node: place of each operand in its value's use list
  std::vector<std::vector<uint32_t>> result_slots_;  // by region: the same for region results
  std::unordered_map<uint32_t, std::set<uint32_t>> control_readers_;
  std::vector<Tensor> tensors_;          // by value
  std::map<uint32_t, Tensor> defaults_;  // by argument
  std::vector<Tensor> attr_tensors_;     // keeps the bytes of tensor attributes
  std::vector<std::string> output_names_;
  std::vector<uint32_t> output_shapes_;  // empty: none has one
  std::vector<regie_str> origins_;
  std::unordered_map<std::string_view, uint32_t> origin_ids_;
  std::vector<regie_engine_ref> engines_;
  std::vector<uint8_t> changed_flag_;
  std::vector<uint32_t> changed_;
  uint32_t live_nodes_ = 0;
  uint64_t revision_ = 1;
  mutable regie_graph view_{};
};

template <class F>
void Graph::for_each_node(F&& f) const {
  std::vector<uint32_t> stack{regions_[0].first};
  while (!stack.empty()) {
    uint32_t n = stack.back();
    if (n == REGIE_NONE) {
      stack.pop_back();
      continue;
    }
    stack.back() = nodes_[n].next;
    f(n);
    for (uint32_t r = nodes_[n].region_count; r-- > 0;) stack.push_back(regions_[nodes_[n].regions[r]].first);
  }
}

}  // namespace regie
