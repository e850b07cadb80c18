// Graphs built by hand and an operator set without plug-ins, for tests of rules: schemas are the product's
// own, shapes are those of convolutions without padding and of broadcasting; nothing is computed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "ir/edit.h"
#include "ir/graph.h"
#include "ir/schema.h"
#include "ir/verify.h"
#include "regie_test_paths.h"
#include "rules/rules.h"

namespace regie::rules_test {

inline const SchemaSet& schemas() {
  static const SchemaSet set = [] {
    SchemaSet loaded;
    for (const char* file : {"elementwise", "fused", "nn", "tensor"}) {
      Status s = loaded.add_file(std::string(REGIE_TEST_SOURCE_DIR "/configs/ops/") + file + ".toml");
      EXPECT_TRUE(s.ok()) << s.to_string();
    }
    return loaded;
  }();
  return set;
}

class ShapeOnlyOps : public OpSet {
 public:
  Status check(const Graph& graph, uint32_t node) const override { return schemas().check(graph, node); }
  Status infer(Graph& graph, uint32_t node) const override {
    const std::string op(view(graph.node(node).op));
    const regie_type& a = graph.value(graph.operands(node)[0]).type;
    std::vector<regie_dim> dims(a.dims, a.dims + a.rank);
    if (op == "Conv" || op == "regie.FusedConv") {
      const regie_type& w = graph.value(graph.operands(node)[1]).type;
      dims[1] = w.dims[0];
      for (size_t i = 2; i < dims.size(); ++i) dims[i] = dims[i] - w.dims[i] + 1;
    } else if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") {
      const regie_type& b = graph.value(graph.operands(node)[1]).type;
      std::vector<regie_dim> other(b.dims, b.dims + b.rank);
      while (dims.size() < other.size()) dims.insert(dims.begin(), 1);
      while (other.size() < dims.size()) other.insert(other.begin(), 1);
      for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] == 1) dims[i] = other[i];
    } else if (op == "Unsqueeze") {
      dims.resize(dims.size() + static_cast<size_t>(graph.tensor(graph.operands(node)[1]).count()), 1);
    } else if (op == "Reshape") {
      regie_dim count = 1;
      for (regie_dim d : dims) count *= d;
      dims.assign(1, count);
    }
    for (uint32_t r : graph.results(node))
      if (r != REGIE_NONE) graph.set_type(r, graph.make_type(a.elem, dims));
    return {};
  }
  uint32_t flags(std::string_view) const override { return 0; }
  Result<std::vector<Tensor>> evaluate(const Graph& graph, uint32_t node, const std::vector<Tensor>&,
                                       uint64_t) const override {
    return unsupported("not computed in this test", graph.describe_node(node));
  }
};

class Builder {
 public:
  Builder() : graph(std::make_unique<Graph>()) {}
  regie_type type(std::vector<regie_dim> dims, regie_elem elem = REGIE_F32) {
    return graph->make_type(elem, dims);
  }
  uint32_t arg(const char* name, std::vector<regie_dim> dims) {
    return graph->add_argument(0, type(dims), name);
  }
  uint32_t weight(const char* name, std::vector<regie_dim> dims) {
    return graph->add_abstract_constant(0, REGIE_VALUE_WEIGHT, type(dims), name);
  }
  uint32_t scalar(const char* name, float v) {
    Tensor t = Tensor::zeros(REGIE_F32, {});
    *static_cast<float*>(t.mutable_data()) = v;
    return graph->add_constant(0, REGIE_VALUE_CONSTANT, t, name);
  }
  // The first result.
  uint32_t node(const char* op, std::vector<uint32_t> operands, const char* name,
                std::vector<AttrValue> attrs = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.name = name;
    spec.operands = std::move(operands);
    spec.attrs = std::move(attrs);
    spec.origins = {graph->add_origin(std::string(name) + " (" + op + ")")};
    spec.result_names = {name};
    uint32_t id = graph->add_node(0, spec);
    EXPECT_TRUE(ops.infer(*graph, id).ok());
    return graph->results(id)[0];
  }
  void results(std::vector<uint32_t> values) { graph->set_region_results(0, values); }

  ShapeOnlyOps ops;
  std::unique_ptr<Graph> graph;
};

inline std::shared_ptr<const RuleSet> rules_of(const std::string& toml) {
  auto rules = parse_rules("schema = 1\nrevision = \"onnx-21\"\n" + toml, "test.toml", schemas());
  EXPECT_TRUE(rules.ok()) << rules.status().to_string();
  return rules.ok() ? *rules : nullptr;
}

// Applies and verifies; gives the number of patches applied.
inline uint64_t apply(const RuleSet& rules, Builder& b, ApplyRulesOptions options = {},
                      EditOptions edit_options = {}) {
  Edit edit(*b.graph);
  auto applied = apply_rules(
      rules, *b.graph, edit, [&] { return edit.apply(b.ops, edit_options); }, options);
  EXPECT_TRUE(applied.ok()) << applied.status().to_string();
  Status sound = verify(*b.graph, {&b.ops, false});
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  return applied.ok() ? *applied : 0;
}

// "Conv Relu" in program order.
inline std::string ops_of(const Graph& graph) {
  std::string text;
  graph.for_each_node(
      [&](uint32_t n) { text += (text.empty() ? "" : " ") + std::string(view(graph.node(n).op)); });
  return text;
}

inline uint32_t find_op(const Graph& graph, std::string_view op) {
  uint32_t found = REGIE_NONE;
  graph.for_each_node([&](uint32_t n) {
    if (view(graph.node(n).op) == op) found = n;
  });
  return found;
}

}  // namespace regie::rules_test
