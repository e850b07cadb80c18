#include "rules/variants.h"

#include <algorithm>

#include "rules/expr.h"

namespace regie {
namespace {

NodeSpec spec_of(const Graph& g, uint32_t id) {
  const regie_node& n = g.node(id);
  NodeSpec s;
  s.op = std::string(view(n.op));
  s.name = std::string(view(n.name));
  s.operands.assign(n.operands, n.operands + n.operand_count);
  for (uint32_t i = 0; i < n.attr_count; ++i) s.attrs.push_back(AttrValue::of(n.attrs[i]));
  s.control.assign(n.control, n.control + n.control_count);
  s.origins.assign(n.origins, n.origins + n.origin_count);
  s.result_count = n.result_count;
  for (uint32_t i = 0; i < n.result_count; ++i) {
    bool omitted = n.results[i] == REGIE_NONE;
    s.omitted.push_back(omitted);
    s.result_names.push_back(omitted ? "" : std::string(view(g.value(n.results[i]).name)));
  }
  return s;
}

void replace_node(Graph& g, uint32_t id, NodeSpec spec) {
  spec.result_names.clear();
  uint32_t fresh = g.add_node(g.node(id).region, spec, id);
  for (uint32_t i = 0; i < g.node(id).result_count; ++i) {
    uint32_t from = g.node(id).results[i];
    if (from == REGIE_NONE) continue;
    uint32_t to = g.node(fresh).results[i];
    std::string name(view(g.value(from).name));
    g.set_type(to, g.value(from).type);
    g.replace_uses(from, to);
    g.set_value_name(from, "");
    g.set_value_name(to, name);
  }
  g.remove_node(id);
}

void add_output(Graph& g, uint32_t value) {
  const regie_region& r = g.region(0);
  std::vector<uint32_t> results(r.results, r.results + r.result_count);
  results.push_back(value);
  if (g.value(value).name.size == 0) g.set_value_name(value, "regie_extra_output");
  g.set_region_results(0, results);
}

bool is_output(const Graph& g, uint32_t value) {
  const regie_region& r = g.region(0);
  return std::find(r.results, r.results + r.result_count, value) != r.results + r.result_count;
}

bool uses_weight(const Rule& rule) {  // the conditions of all patterns are the same
  return std::any_of(rule.when.begin(), rule.when.end(),
                     [](const Predicate& p) { return p.kind == PredicateKind::kWeight; });
}

std::string name_of_value(const Graph& g, uint32_t value) {
  return g.value(value).name.size ? "%" + std::string(view(g.value(value).name)) : g.describe_value(value);
}

void swap_kind(Graph& g, uint32_t value) {
  const regie_value& v = g.value(value);
  uint32_t kind = v.kind == REGIE_VALUE_WEIGHT ? REGIE_VALUE_CONSTANT : REGIE_VALUE_WEIGHT;
  std::string name(view(v.name));
  uint32_t region = v.owner;
  Tensor tensor = g.tensor(value);
  g.set_value_name(value, "");
  uint32_t fresh = tensor ? g.add_constant(region, kind, tensor, name)
                          : g.add_abstract_constant(region, kind, g.copy_type(g.value(value).type), name);
  g.replace_uses(value, fresh);
  g.remove_value(value);
}

// The leading dimension that the first argument has becomes a symbol in all arguments that share it.
void free_batch(Graph& g) {
  const regie_region& r = g.region(0);
  std::vector<uint32_t> args(r.args, r.args + r.arg_count);
  regie_dim batch = g.value(args[0]).type.dims[0];
  regie_dim symbol = g.dims().symbol("regie_batch", 1, 64);
  for (uint32_t a : args) {
    const regie_type& t = g.value(a).type;
    if (t.rank < 1 || t.dims[0] != batch) continue;
    std::vector<regie_dim> dims(t.dims, t.dims + t.rank);
    dims[0] = symbol;
    g.set_type(a, g.make_type(t.elem, dims, t.container));
  }
}

}  // namespace

std::vector<Variant> make_variants(std::span<const Rule> patterns, const Graph& graph,
                                   const SchemaSet& schemas) {
  std::vector<Variant> all;
  std::vector<uint32_t> nodes;
  graph.for_each_node([&](uint32_t n) {
    if (graph.node(n).region == 0 && graph.node(n).region_count == 0) nodes.push_back(n);
  });

  for (uint32_t n : nodes) {
    const regie_node& node = graph.node(n);
    bool commutes = false;
    for (const Rule& rule : patterns)
      for (const PatternNode& p : rule.nodes)
        for (const PatternOp& o : p.ops) commutes = commutes || (p.commutative && o.op == node.op_id);
    if (!commutes || node.operand_count != 2 || node.operands[0] == node.operands[1]) continue;
    all.push_back({"commuted operands of " + graph.describe_node(n), true, [n](Graph& g) {
                     uint32_t a = g.node(n).operands[0], b = g.node(n).operands[1];
                     g.set_operand(n, 0, b);
                     g.set_operand(n, 1, a);
                   }});
  }

  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    if (!graph.is_constant(v) || graph.value(v).owner != 0) continue;
    bool weight = graph.value(v).kind == REGIE_VALUE_WEIGHT;
    all.push_back({name_of_value(graph, v) + (weight ? " as a constant" : " as a weight"),
                   !uses_weight(patterns[0]), [v](Graph& g) { swap_kind(g, v); }});
  }

  for (uint32_t n : nodes) {
    for (uint32_t v : graph.results(n)) {
      if (v == REGIE_NONE) continue;
      if (!is_output(graph, v))
        all.push_back(
            {name_of_value(graph, v) + " as a further output", false, [v](Graph& g) { add_output(g, v); }});
      uint32_t reader = REGIE_NONE;
      for (const regie_use& use : graph.uses(v))
        if (!(use.node & REGIE_USE_REGION) && graph.node(use.node).region_count == 0) reader = use.node;
      if (reader == REGIE_NONE) continue;
      all.push_back({"a second reader of " + name_of_value(graph, v), false, [reader](Graph& g) {
                       NodeSpec s = spec_of(g, reader);
                       s.result_names.clear();
                       uint32_t copy = g.add_node(g.node(reader).region, s, g.node(reader).next);
                       for (uint32_t i = 0; i < g.node(copy).result_count; ++i)
                         if (uint32_t r = g.node(copy).results[i]; r != REGIE_NONE) {
                           g.set_value_name(r, "regie_extra_output" + std::to_string(i));
                           add_output(g, r);
                         }
                     }});
    }
  }

  for (uint32_t n : nodes) {
    const regie_node& node = graph.node(n);
    const OpSchema* schema = schemas.find(node.op_id);
    if (!schema) continue;
    NodeSpec full = spec_of(graph, n);
    for (const SchemaAttr& a : schema->attrs) {
      const regie_attr* given = graph.find_attr(n, a.name);
      if (!a.has_default) continue;
      if (!given) {
        full.attrs.push_back(a.default_value);
        full.attrs.back().name = a.name;
      } else if (!a.required && same_attr(AttrValue::of(*given), a.default_value)) {
        std::string name = a.name;
        all.push_back({"default of '" + name + "' of " + graph.describe_node(n) + " left out", true,
                       [n, name](Graph& g) {
                         NodeSpec s = spec_of(g, n);
                         std::erase_if(s.attrs, [&](const AttrValue& v) { return v.name == name; });
                         replace_node(g, n, std::move(s));
                       }});
      }
    }
    if (full.attrs.size() > node.attr_count)
      all.push_back(
          {"defaults of " + graph.describe_node(n) + " written out", true, [n, attrs = full.attrs](Graph& g) {
             NodeSpec s = spec_of(g, n);
             s.attrs = attrs;
             replace_node(g, n, std::move(s));
           }});
  }

  const regie_region& main = graph.region(0);
  if (main.arg_count > 0) {
    const regie_type& t = graph.value(main.args[0]).type;
    if (t.rank > 0 && t.dims[0] >= 0) all.push_back({"dynamic batch", false, free_batch});
  }
  return all;
}

}  // namespace regie
