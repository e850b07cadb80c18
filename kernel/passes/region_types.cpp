#include "passes/region_types.h"

#include <algorithm>
#include <vector>

#include "ir/structural.h"
#include "ir/types.h"
#include "passes/known_content.h"
#include "passes/late_symbols.h"
#include "text/text.h"

namespace regie {

namespace {

bool same_content(const regie_value& a, const regie_value& b) {
  return a.content_count == b.content_count && (a.content != nullptr) == (b.content != nullptr) &&
         (!a.content || std::equal(a.content, a.content + a.content_count, b.content));
}

// The argument gets the value's type, but keeps its own layout.
bool hand_in(Graph& graph, uint32_t argument, const regie_type& type) {
  const regie_type& old = graph.value(argument).type;
  if (same_shape(old, type)) return false;
  graph.set_type(argument, with_layout_of(type, old));
  return true;
}

// What was inferred from a type that was too exact must not be held against what is inferred now.
void forget_inside(Graph& graph, uint32_t region) {
  std::vector<uint32_t> regions{region};
  for (size_t i = 0; i < regions.size(); ++i)
    for (uint32_t n = graph.region(regions[i]).first; n != REGIE_NONE; n = graph.node(n).next) {
      const regie_node& node = graph.node(n);
      for (uint32_t v : graph.results(n))
        if (v != REGIE_NONE) graph.forget_type(v);
      if (!is_control_flow(node)) continue;
      regions.insert(regions.end(), node.regions, node.regions + node.region_count);
    }
}

bool lacks_types_inside(const Graph& graph, uint32_t region) {
  for (uint32_t n = graph.region(region).first; n != REGIE_NONE; n = graph.node(n).next)
    if (lacks_types(graph, n)) return true;
  return false;
}

Status infer_inside(Graph& graph, uint32_t region, const OpSet& ops) {
  for (uint32_t n = graph.region(region).first; n != REGIE_NONE; n = graph.node(n).next)
    REGIE_TRY(ops.infer(graph, n));
  return {};
}

// Does the dimension stand for something that becomes known inside of the Loop, or by it? `outside`: the
// symbols of its operands.
std::vector<bool> symbols_outside(const Graph& graph, const regie_node& loop) {
  const DimTable& dims = graph.dims();
  std::vector<bool> outside(dims.symbol_count());
  for (uint32_t i = 0; i < loop.operand_count; ++i) {
    if (loop.operands[i] == REGIE_NONE) continue;
    const regie_type& t = graph.value(loop.operands[i]).type;
    for (int32_t d = 0; d < t.rank; ++d)
      if (t.dims[d] < 0 && t.dims[d] != REGIE_DIM_UNKNOWN)
        dims.visit_symbols(t.dims[d], [&](size_t s) { outside[s] = true; });
  }
  return outside;
}

bool made_inside(const Graph& graph, regie_dim dim, const std::vector<bool>& outside) {
  bool inside = false;
  if (dim < 0 && dim != REGIE_DIM_UNKNOWN)
    graph.dims().visit_symbols(dim, [&](size_t s) {
      inside = inside || (graph.dims().symbol_at(s).data_dependent && (s >= outside.size() || !outside[s]));
    });
  return inside;
}

// A carried value's dimension that varies: a data-dependent symbol that is not the initial value's.
bool varies(const Graph& graph, regie_dim argument, regie_dim initial) {
  if (argument == initial || argument >= 0) return false;
  const auto symbol = graph.dims().symbol_index(argument);
  return symbol && graph.dims().symbol_at(*symbol).data_dependent;
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

  // Dimensions that are another at the end of an iteration than at its beginning become symbols, which are
  // bound anew each time; then what is inside is inferred again, until nothing more varies.
  Status carry() {
    bool changed = false;
    for (uint32_t i = 0; i < carried_; ++i) {
      const regie_type &initial = g_.value(n_.operands[2 + i]).type, &old = g_.value(body().args[2 + i]).type;
      std::vector<regie_dim> dims(initial.dims, initial.dims + std::max(initial.rank, 0));
      for (size_t d = 0; old.rank == initial.rank && d < dims.size(); ++d)
        if (varies(g_, old.dims[d], dims[d])) dims[d] = old.dims[d];
      regie_type type = initial;
      type.dims = dims.data();
      changed |= hand_in(g_, body().args[2 + i], type);
    }
    for (;;) {
      if (changed) REGIE_TRY(infer_inside(g_, n_.regions[0], ops_));
      changed = false;
      for (uint32_t i = 0; i < carried_; ++i) {
        REGIE_ASSIGN(const bool more, let_vary(i));
        changed |= more;
      }
      if (!changed) return {};
      forget_inside(g_, n_.regions[0]);
    }
  }

  Result<bool> let_vary(uint32_t i) {
    const uint32_t before = body().args[2 + i], after = body().results[1 + i];
    const regie_type &a = g_.value(before).type, &b = g_.value(after).type;
    const std::string both = "carried value " + std::to_string(i) + " begins an iteration as " + of(before) +
                             ", and ends it as " + of(after);
    if (a.elem != b.elem) return bad(both + "; both need one element type");
    if (a.rank != b.rank)
      return unsupported(both + "; values whose rank changes from iteration to iteration are not covered",
                         g_.describe_node(node_));
    const regie_type& initial = g_.value(n_.operands[2 + i]).type;
    std::vector<regie_dim> dims(a.dims, a.dims + std::max(a.rank, 0));
    bool more = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == b.dims[d] || varies(g_, dims[d], initial.dims[d])) continue;
      dims[d] = REGIE_DIM_UNKNOWN;
      more = true;
    }
    if (!more) return false;
    regie_type type = a;
    g_.forget_type(before);
    if (!settle_late_dims(g_, before, type.rank, dims.data())) return bad(both);
    type.dims = dims.data();
    g_.set_type(before, type);
    return true;
  }

  void set_result(uint32_t index, const regie_type& type) {
    g_.set_type(n_.results[index], with_layout_of(type, g_.value(n_.results[index]).type));
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
    const std::vector<bool> outside = symbols_outside(g_, n_);
    for (uint32_t i = carried_; i < n_.result_count; ++i) {
      if (n_.results[i] == REGIE_NONE) continue;
      const regie_type& part = g_.value(body().results[1 + i]).type;
      std::vector<regie_dim> dims{length};
      for (int32_t d = 0; d < part.rank; ++d)
        dims.push_back(made_inside(g_, part.dims[d], outside) ? REGIE_DIM_UNKNOWN : part.dims[d]);
      if (!settle_late_dims(g_, n_.results[i], static_cast<int32_t>(dims.size()), dims.data()))
        return bad(of(n_.results[i]) + " is not made of " + of(body().results[1 + i]));
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
    if (changed || lacks_types_inside(graph, region)) REGIE_TRY(infer_inside(graph, region, ops));
  }
  return {};
}

std::vector<LoopDim> loop_dims(const Graph& graph, uint32_t node) {
  std::vector<LoopDim> out;
  const regie_node& n = graph.node(node);
  const regie_region& body = graph.region(n.regions[0]);
  const uint32_t carried = own_operands(n) - 2;
  const std::vector<bool> outside = symbols_outside(graph, n);
  for (uint32_t i = 0; i < carried; ++i) {
    const regie_type& t = graph.value(body.args[2 + i]).type;
    const regie_type& initial = graph.value(n.operands[2 + i]).type;
    for (int32_t d = 0; d < t.rank; ++d)
      if (varies(graph, t.dims[d], initial.dims[d])) out.push_back({i, static_cast<uint32_t>(d), t.dims[d]});
  }
  for (uint32_t i = carried; i < n.result_count; ++i) {
    if (n.results[i] == REGIE_NONE) continue;
    const regie_type& t = graph.value(n.results[i]).type;
    for (int32_t d = 0; d < t.rank; ++d)
      if (t.dims[d] < 0 && graph.dims().symbol_index(t.dims[d]) && made_inside(graph, t.dims[d], outside))
        out.push_back({i, static_cast<uint32_t>(d), t.dims[d]});
  }
  return out;
}

Status infer_loop(Graph& graph, uint32_t node, const OpSet& ops) { return LoopTypes(graph, node, ops).run(); }

}  // namespace regie
