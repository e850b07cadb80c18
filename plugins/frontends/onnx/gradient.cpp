#include "gradient.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace regie::onnx {

namespace {

// One node on the way back: its operands and result, and the derivative by that.
struct Step {
  Translation& t;
  std::vector<uint32_t> in;
  uint32_t out, by_out;

  uint32_t make(std::string_view op, const std::vector<uint32_t>& operands) const {
    return t.make(op, operands);
  }
  uint32_t times(uint32_t other) const { return make("Mul", {by_out, other}); }
  uint32_t number(double value) const {
    TensorData data;
    if (!scalar(t.type(out).elem, value, &data)) t.context.unsupported("derivatives are of numbers");
    return t.constant(data, "number");
  }
  uint32_t turned(uint32_t matrix) const {
    if (t.type(matrix).rank != 2) t.context.unsupported("the gradient of MatMul is there for matrices alone");
    return make("Transpose", {matrix});
  }
};

// The derivatives by each operand, of the result's shape where operands broadcast.
using Rule = std::vector<uint32_t> (*)(const Step&);
struct Known {
  std::string_view op;
  Rule rule;
};
constexpr Known kRules[] = {
    {"Add",
     [](const Step& s) {
       return std::vector{s.by_out, s.by_out};
     }},
    {"Div",
     [](const Step& s) {
       const uint32_t by_a = s.make("Div", {s.by_out, s.in[1]});
       return std::vector{by_a, s.make("Neg", {s.make("Div", {s.make("Mul", {by_a, s.in[0]}), s.in[1]})})};
     }},
    {"Exp", [](const Step& s) { return std::vector{s.times(s.out)}; }},
    {"Identity", [](const Step& s) { return std::vector{s.by_out}; }},
    {"Log",
     [](const Step& s) {
       return std::vector{s.make("Div", {s.by_out, s.in[0]})};
     }},
    {"MatMul",
     [](const Step& s) {
       return std::vector{s.make("MatMul", {s.by_out, s.turned(s.in[1])}),
                          s.make("MatMul", {s.turned(s.in[0]), s.by_out})};
     }},
    {"Mul",
     [](const Step& s) {
       return std::vector{s.times(s.in[1]), s.times(s.in[0])};
     }},
    {"Neg", [](const Step& s) { return std::vector{s.make("Neg", {s.by_out})}; }},
    {"Relu",
     [](const Step& s) {
       return std::vector{
           s.make("Where", {s.make("Greater", {s.in[0], s.number(0)}), s.by_out, s.number(0)})};
     }},
    {"Sigmoid",
     [](const Step& s) {
       return std::vector{s.times(s.make("Mul", {s.out, s.make("Sub", {s.number(1), s.out})}))};
     }},
    {"Sqrt",
     [](const Step& s) {
       return std::vector{s.make("Div", {s.by_out, s.make("Add", {s.out, s.out})})};
     }},
    {"Sub",
     [](const Step& s) {
       return std::vector{s.by_out, s.make("Neg", {s.by_out})};
     }},
    {"Sum", [](const Step& s) { return std::vector<uint32_t>(s.in.size(), s.by_out); }},
    {"Tanh",
     [](const Step& s) {
       return std::vector{s.times(s.make("Sub", {s.number(1), s.make("Mul", {s.out, s.out})}))};
     }},
};

uint32_t filled_like(Translation& t, uint32_t like, double value) {
  Attribute fill;
  fill.name = "value";
  fill.kind = REGIE_ATTR_TENSOR;
  if (!scalar(t.type(like).elem, value, &fill.tensor)) t.context.unsupported("derivatives are of numbers");
  fill.tensor.dims = {1};
  return t.make("ConstantOfShape", {t.make("Shape", {like})}, {fill});
}

// Summed over what the operand was broadcast along.
uint32_t summed_to(Translation& t, uint32_t value, uint32_t like) {
  const Translation::Type from = t.type(value), to = t.type(like);
  if (from.dims == to.dims) return value;
  std::vector<int64_t> axes;
  const int64_t before = from.rank - to.rank;
  for (int64_t i = 0; i < from.rank; ++i) {
    const regie_dim whole = from.dims[static_cast<size_t>(i)];
    const regie_dim part = i < before ? 1 : to.dims[static_cast<size_t>(i - before)];
    if (part == whole) continue;
    if (part != 1) t.context.unsupported("the gradient of what is broadcast needs sizes that are known");
    axes.push_back(i);
  }
  if (!axes.empty()) value = t.make("ReduceSum", {value, t.constant(integers(axes), "axes")});
  return t.make("Reshape", {value, t.make("Shape", {like})});
}

}  // namespace

void gradient(Translation& t, const Scope& scope, const Body& body, uint32_t index) {
  auto list = [&](const char* name) {
    auto a = t.attributes.take(name);
    return a ? a->strings : std::vector<std::string>();
  };
  std::vector<std::string> given = list("xs");
  const size_t wanted = given.size();
  const std::string y = t.attributes.take_text("y", "");
  for (const std::string& z : list("zs")) given.push_back(z);
  const wire::Node& node = *t.ref.node;
  if (wanted == 0 || static_cast<size_t>(node.input_size()) != given.size() ||
      static_cast<size_t>(node.output_size()) > wanted)
    t.context.invalid("Gradient has an input for each name of xs and zs, and an output for each of xs");
  for (size_t i = 0; i < given.size(); ++i)
    if (node.input(static_cast<int>(i)) != given[i])
      t.context.unsupported("the gradient is there where the graph was evaluated: input " +
                            std::to_string(i) + " must be " + quoted(given[i]));
  const uint32_t value = scope.find(y);
  if (value == REGIE_NONE || is_sequence(value))
    t.context.unsupported("the value " + quoted(y) + " must be made before its gradient, in the same graph");

  // From the last node to the first, so that a node's derivative is whole when it is passed on.
  std::unordered_map<std::string, uint32_t> by{{y, filled_like(t, value, 1)}};
  const auto end = std::find(body.order.begin(), body.order.end(), index);
  for (auto at = std::make_reverse_iterator(end); at != body.order.rend(); ++at) {
    const NodeRef& ref = body.nodes[*at];
    const wire::Node& n = *ref.node;
    auto made = [&](const std::string& name) {
      return by.count(name) && std::find(given.begin(), given.end(), name) == given.end();
    };
    if (std::none_of(n.output().begin(), n.output().end(), made)) continue;
    const auto* known = std::find_if(std::begin(kRules), std::end(kRules),
                                     [&](const Known& k) { return k.op == n.op_type(); });
    if (known == std::end(kRules) || !domain_of(n.domain()).empty() || ref.opsets->find("") < 7)
      t.context.unsupported("the gradient of node " + quoted(ref.name) + " (" + printable(full_name(n)) +
                            ") is not supported");
    Step step{t, {}, scope.find(n.output(0)), by.at(n.output(0))};
    for (const std::string& name : n.input()) step.in.push_back(scope.find(name));
    const std::vector<uint32_t> parts = known->rule(step);
    for (size_t i = 0; i < parts.size() && i < step.in.size(); ++i) {
      const uint32_t part = summed_to(t, parts[i], step.in[i]);
      auto [it, fresh] = by.emplace(n.input(static_cast<int>(i)), part);
      if (!fresh) it->second = t.make("Add", {it->second, part});
    }
  }
  std::vector<uint32_t> results;
  for (size_t i = 0; i < wanted; ++i) {
    auto it = by.find(given[i]);
    results.push_back(it == by.end() ? filled_like(t, t.operand(i), 0) : it->second);
  }
  t.finish_with(results);
}

}  // namespace regie::onnx
