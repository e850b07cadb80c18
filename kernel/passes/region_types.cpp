#include "passes/region_types.h"

#include <algorithm>
#include <vector>

#include "ir/structural.h"
#include "ir/types.h"
#include "passes/known_content.h"
#include "text/text.h"

namespace regie {

namespace {

// All but the layout, which is a decision.
bool same_shape(const regie_type& a, const regie_type& b) {
  return a.elem == b.elem && a.container == b.container && a.rank == b.rank &&
         (a.rank <= 0 || std::equal(a.dims, a.dims + a.rank, b.dims));
}

bool same_content(const regie_value& a, const regie_value& b) {
  return a.content_count == b.content_count && (a.content != nullptr) == (b.content != nullptr) &&
         (!a.content || std::equal(a.content, a.content + a.content_count, b.content));
}

// The argument gets the value's type, but keeps its own layout.
bool hand_in(Graph& graph, uint32_t argument, const regie_type& type) {
  const regie_type& old = graph.value(argument).type;
  if (same_shape(old, type)) return false;
  regie_type fresh = type;
  if (old.rank == type.rank) {
    fresh.format = old.format;
    fresh.origin_format = old.origin_format;
  }
  graph.set_type(argument, fresh);
  return true;
}

Status infer_inside(Graph& graph, uint32_t region, const OpSet& ops) {
  for (uint32_t n = graph.region(region).first; n != REGIE_NONE; n = graph.node(n).next)
    REGIE_TRY(ops.infer(graph, n));
  return {};
}

// The one integer that a value is known to be, as a dimension.
regie_dim known_integer(const Graph& graph, uint32_t value) {
  const regie_value& v = graph.value(value);
  if (v.content && v.content_count == 1) return v.content[0];
  if (!graph.is_constant(value) || !graph.tensor(value) || v.type.elem != REGIE_I64 ||
      graph.tensor(value).count() != 1)
    return REGIE_DIM_UNKNOWN;
  return std::max<int64_t>(0, graph.tensor(value).as<int64_t>()[0]);  // a negative number would be a handle
}

// A constant condition: 1 or 0; -1 if it is none.
int known_condition(const Graph& graph, uint32_t value) {
  if (value == REGIE_NONE) return 1;
  if (!graph.is_constant(value) || !graph.tensor(value) || graph.tensor(value).count() != 1) return -1;
  return graph.tensor(value).as<uint8_t>()[0] != 0;
}

class LoopTypes {
 public:
  LoopTypes(Graph& graph, uint32_t node, const OpSet& ops)
      : g_(graph), node_(node), n_(graph.node(node)), ops_(ops) {}

  Status run() {
    REGIE_TRY(check_form());
    REGIE_TRY(carry());
    for (uint32_t i = 0; i < carried_; ++i)
      if (n_.results[i] != REGIE_NONE) set_result(i, g_.value(body().args[2 + i]).type);
    return collect();
  }

 private:
  const regie_region& body() const { return g_.region(n_.regions[0]); }
  Status bad(const std::string& what) const { return invalid_model(what, g_.describe_node(node_)); }
  std::string of(uint32_t value) const {
    return g_.describe_value(value) + ", " + print_type(g_, g_.value(value).type);
  }

  Status one_element(uint32_t value, regie_elem elem, const char* what) const {
    const regie_type& t = g_.value(value).type;
    if (t.elem != elem || t.container != REGIE_TENSOR)
      return bad(std::string(what) + " must be " + std::string(elem_name(elem)) + ": " + of(value));
    for (int32_t i = 0; i < t.rank; ++i)
      if (t.dims[i] >= 0 && t.dims[i] != 1)
        return bad(std::string(what) + " must have one element: " + of(value));
    return {};
  }

  Status check_form() {
    if (n_.region_count != 1) return bad("has one region, its body");
    carried_ = carried_values(n_);
    if (n_.operand_count < 2 + carried_)
      return bad("carries " + std::to_string(carried_) + " values, but has " +
                 std::to_string(n_.operand_count) + " operands");
    if (body().arg_count != n_.operand_count)
      return bad("the body takes " + std::to_string(body().arg_count) + " arguments, but there are " +
                 std::to_string(n_.operand_count) + " operands");
    if (n_.result_count < carried_ || body().result_count != n_.result_count + 1)
      return bad("the body gives " + std::to_string(body().result_count) + " results, a condition before " +
                 std::to_string(n_.result_count) + " that the Loop has");
    if (n_.operands[0] != REGIE_NONE) REGIE_TRY(one_element(n_.operands[0], REGIE_I64, "the trip count"));
    if (n_.operands[1] != REGIE_NONE) REGIE_TRY(one_element(n_.operands[1], REGIE_BOOL, "the condition"));
    REGIE_TRY(one_element(body().args[0], REGIE_I64, "the body's iteration number"));
    REGIE_TRY(one_element(body().args[1], REGIE_BOOL, "the body's condition"));
    REGIE_TRY(one_element(body().results[0], REGIE_BOOL, "the condition that the body gives"));
    for (uint32_t i = 0; i < carried_; ++i) {
      if (n_.operands[2 + i] == REGIE_NONE) return bad("carried value " + std::to_string(i) + " is absent");
      REGIE_TRY(tensor(n_.operands[2 + i]));
    }
    for (uint32_t i = 1; i < body().result_count; ++i) REGIE_TRY(tensor(body().results[i]));
    return {};
  }

  Status tensor(uint32_t value) const {
    const regie_type& t = g_.value(value).type;
    if (t.container != REGIE_TENSOR)
      return unsupported(of(value) + ", is no tensor; only tensors go from iteration to iteration",
                         g_.describe_node(node_));
    if (t.rank < 0) return unsupported("the rank of " + of(value) + " is not known", g_.describe_node(node_));
    return {};
  }

  Status carry() {
    bool changed = false;
    for (uint32_t i = 0; i < carried_; ++i)
      changed |= hand_in(g_, body().args[2 + i], g_.value(n_.operands[2 + i]).type);
    if (changed) REGIE_TRY(infer_inside(g_, n_.regions[0], ops_));
    for (uint32_t i = 0; i < carried_; ++i) {
      const uint32_t before = body().args[2 + i], after = body().results[1 + i];
      const regie_type &a = g_.value(before).type, &b = g_.value(after).type;
      const std::string both = "carried value " + std::to_string(i) + " begins an iteration as " +
                               of(before) + ", and ends it as " + of(after);
      if (a.elem != b.elem) return bad(both + "; both need one element type");
      if (!same_shape(a, b))
        return unsupported(both + "; values whose shape changes from iteration to iteration are not covered",
                           g_.describe_node(node_));
    }
    return {};
  }

  void set_result(uint32_t index, const regie_type& type) {
    const regie_type& old = g_.value(n_.results[index]).type;
    regie_type fresh = type;
    if (old.rank == type.rank) {
      fresh.format = old.format;
      fresh.origin_format = old.origin_format;
    }
    g_.set_type(n_.results[index], fresh);
  }

  regie_dim trips() {
    const int first = known_condition(g_, n_.operands[1]);
    if (first == 0) return 0;
    if (first < 0 || n_.operands[0] == REGIE_NONE) return REGIE_DIM_UNKNOWN;
    const uint32_t goes_on = body().results[0];
    if (goes_on != body().args[1] && !(g_.is_constant(goes_on) && known_condition(g_, goes_on) == 1))
      return REGIE_DIM_UNKNOWN;
    regie_dim count = known_integer(g_, n_.operands[0]);
    if (count == REGIE_DIM_UNKNOWN && learn_contents(g_, node_, ops_))
      count = known_integer(g_, n_.operands[0]);
    if (count == REGIE_DIM_UNKNOWN || count >= 0) return count;
    return g_.dims().range(count).first < 0 ? g_.dims().op(REGIE_DIM_MAX, count, 0) : count;
  }

  Status collect() {
    if (carried_ == n_.result_count) return {};
    const regie_dim length = trips();
    for (uint32_t i = carried_; i < n_.result_count; ++i) {
      if (n_.results[i] == REGIE_NONE) continue;
      const regie_type& part = g_.value(body().results[1 + i]).type;
      if (length == REGIE_DIM_UNKNOWN)
        return unsupported("how many iterations it makes is known only when it runs, so that " +
                               g_.describe_value(n_.results[i]) + " has no length; this is not covered",
                           g_.describe_node(node_));
      std::vector<regie_dim> dims{length};
      dims.insert(dims.end(), part.dims, part.dims + part.rank);
      regie_type whole = part;
      whole.rank = static_cast<int32_t>(dims.size());
      whole.dims = dims.data();
      whole.format = whole.origin_format = REGIE_FORMAT_ND;
      set_result(i, whole);
    }
    return {};
  }

  Graph& g_;
  const uint32_t node_;
  const regie_node& n_;
  const OpSet& ops_;
  uint32_t carried_ = 0;
};

}  // namespace

Status infer_captures(Graph& graph, uint32_t node, const OpSet& ops) {
  for (uint32_t k = 0; k < graph.node(node).region_count; ++k) {
    const uint32_t region = graph.node(node).regions[k];
    bool changed = false;
    for (uint32_t i = 0; i < graph.region(region).arg_count; ++i) {
      const uint32_t argument = graph.region(region).args[i];
      // A wrong number of arguments is for the shape function to say.
      if (own_operands(graph.node(node)) + i - first_capture(graph.node(node)) >=
          graph.node(node).operand_count)
        continue;
      const uint32_t outer = captured_operand(graph, argument);
      if (outer == REGIE_NONE || graph.value(outer).type.rank < 0) continue;
      changed |= hand_in(graph, argument, graph.value(outer).type);
      const regie_value& v = graph.value(outer);
      if (!v.content || same_content(v, graph.value(argument))) continue;
      graph.set_content(argument, std::vector<regie_dim>(v.content, v.content + v.content_count));
      changed = true;
    }
    if (changed) REGIE_TRY(infer_inside(graph, region, ops));
  }
  return {};
}

Status infer_loop(Graph& graph, uint32_t node, const OpSet& ops) { return LoopTypes(graph, node, ops).run(); }

}  // namespace regie
