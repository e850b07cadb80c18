// A small operator set for tests of graphs and patches that must not depend on any plug-in: a handful of
// operators whose shape rules fit in a line. `Call` means its region applied to its operands, so inlining
// must not change what a graph computes.
#pragma once

#include <map>
#include <string>

#include "ir/op_set.h"
#include "ir/types.h"

namespace regie::test {

class FakeOpSet : public OpSet {
 public:
  struct Rule {
    uint32_t least_operands, most_operands;
    uint32_t results;
    uint32_t regions;
  };
  static const std::map<std::string_view, Rule>& rules() {
    static const std::map<std::string_view, Rule> r = {
        {"Relu", {1, 1, 1, 0}},    {"Neg", {1, 1, 1, 0}},    {"Identity", {1, 1, 1, 0}},
        {"Add", {2, 2, 1, 0}},     {"Mix", {1, 1000, 1, 0}}, {"Split", {1, 1, 2, 0}},
        {"Sink", {1, 1000, 0, 0}}, {"Make", {0, 0, 1, 0}},   {"Call", {0, 1000, 8, 1}},
        {"If", {1, 1000, 8, 2}},   {"Narrow", {1, 1, 1, 0}}, {"Refuse", {1, 1, 1, 0}},
    };
    return r;
  }

  Status check(const Graph& g, uint32_t n) const override {
    std::string_view op = view(g.node(n).op);
    auto rule = rules().find(op);
    if (rule == rules().end())
      return unsupported(g.describe_node(n) + ": operator '" + std::string(op) + "' is not known");
    const regie_node& node = g.node(n);
    if (node.operand_count < rule->second.least_operands || node.operand_count > rule->second.most_operands)
      return invalid_model(g.describe_node(n) + ": wrong number of operands");
    if (node.result_count > rule->second.results)
      return invalid_model(g.describe_node(n) + ": wrong number of results");
    if (node.region_count != rule->second.regions)
      return invalid_model(g.describe_node(n) + ": wrong number of regions");
    return {};
  }

  // Every result has operand 0's type, but: Add needs both alike; Make is f32[4]; Narrow is f16; Call and If
  // have their first region's result types; Refuse never works.
  Status infer(Graph& g, uint32_t n) const override {
    std::string_view op = view(g.node(n).op);
    if (op == "Refuse") return invalid_model(g.describe_node(n) + ": refused");
    if (g.node(n).region_count) {
      const regie_region& r = g.region(g.node(n).regions[0]);
      for (uint32_t i = 0; i < g.node(n).result_count; ++i) {
        if (i >= r.result_count)
          return invalid_model(g.describe_node(n) + ": its region gives fewer results");
        if (g.results(n)[i] != REGIE_NONE) g.set_type(g.results(n)[i], g.value(r.results[i]).type);
      }
      return {};
    }
    regie_type type{};
    if (op == "Make") {
      const regie_dim four = 4;
      type = g.make_type(REGIE_F32, {&four, 1});
    } else {
      uint32_t first = g.operands(n)[0];
      if (first == REGIE_NONE) return invalid_model(g.describe_node(n) + ": operand 0 is missing");
      type = g.value(first).type;
    }
    if (op == "Add") {
      const regie_type& other = g.value(g.operands(n)[1]).type;
      if (!types_agree(type, other)) return invalid_model(g.describe_node(n) + ": operands differ in type");
      type = merge_types(g, type, other);
    }
    if (op == "Narrow") type.elem = REGIE_F16;
    for (uint32_t r : g.results(n))
      if (r != REGIE_NONE) g.set_type(r, type);
    return {};
  }

  uint32_t flags(std::string_view) const override { return 0; }
  Result<std::vector<Tensor>> evaluate(const Graph& g, uint32_t n, const std::vector<Tensor>&,
                                       uint64_t) const override {
    return unsupported(g.describe_node(n) + ": these operators have no kernels");
  }
};

}  // namespace regie::test
