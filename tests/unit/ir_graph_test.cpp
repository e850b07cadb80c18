#include "ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/verify.h"
#include "text/text.h"

namespace regie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::unique_ptr<Graph> graph_of(std::string_view text) {
  auto g = parse(text, "t.rg");
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.status().to_string());
  return g.ok() ? std::move(*g) : nullptr;
}

uint32_t find_value(const Graph& g, std::string_view name) {
  for (uint32_t v = 0; v < g.value_count(); ++v)
    if (g.live_value(v) && view(g.value(v).name) == name) return v;
  ADD_FAILURE() << "no value " << name;
  return 0;
}
uint32_t maker(const Graph& g, std::string_view value) { return g.value(find_value(g, value)).owner; }

std::vector<std::string> order(const Graph& g) {
  std::vector<std::string> out;
  g.for_each_node([&](uint32_t n) { out.emplace_back(view(g.node(n).name)); });
  return out;
}

NodeSpec op(std::string name, std::vector<uint32_t> operands = {}) {
  NodeSpec spec;
  spec.op = "Op";
  spec.name = std::move(name);
  spec.operands = std::move(operands);
  return spec;
}

void expect_sound(const Graph& g) {
  Status s = verify(g);
  EXPECT_TRUE(s.ok()) << s.to_string();
}

TEST(IrGraph, ViewsShowWhatWasBuilt) {
  Graph g;
  const regie_dim dims[] = {2, 3};
  uint32_t x = g.add_argument(0, g.make_type(REGIE_F32, dims), "x");
  NodeSpec spec = op("n", {x, REGIE_NONE, x});
  spec.attrs = {AttrValue::text("z", "last"), AttrValue::integer("a", 7), AttrValue::integers("m", {1, 2})};
  spec.result_count = 3;
  spec.omitted = {false, true, false};
  spec.result_names = {"r0", "", "r2"};
  spec.origins = {g.add_origin("b"), g.add_origin("a"), g.add_origin("b")};
  uint32_t n = g.add_node(0, spec);
  g.set_region_results(0, std::vector<uint32_t>{g.results(n)[2]});

  const regie_graph& v = g.view();
  EXPECT_EQ(v.node_count, 1u);
  EXPECT_EQ(v.region_count, 1u);
  const regie_node& node = v.nodes[n];
  EXPECT_EQ(view(node.op), "Op");
  EXPECT_THAT(std::vector<uint32_t>(node.operands, node.operands + 3), ElementsAre(x, REGIE_NONE, x));
  ASSERT_EQ(node.attr_count, 3u);
  EXPECT_EQ(view(node.attrs[0].name), "a");
  EXPECT_EQ(node.attrs[0].v.i, 7);
  EXPECT_EQ(view(node.attrs[1].name), "m");
  EXPECT_EQ(view(node.attrs[2].v.s), "last");
  EXPECT_EQ(g.find_attr(n, "m")->count, 2u);
  EXPECT_EQ(g.find_attr(n, "b"), nullptr);
  EXPECT_EQ(node.results[1], REGIE_NONE);
  EXPECT_EQ(v.values[node.results[2]].index, 2u);
  EXPECT_EQ(node.origin_count, 2u);
  EXPECT_EQ(v.values[x].use_count, 2u);
  EXPECT_EQ(v.values[node.results[0]].type.rank, -1);
  EXPECT_EQ(v.values[node.results[2]].uses[0].node, REGIE_USE_REGION | 0u);
  EXPECT_EQ(g.output_name(0), "r2");
  expect_sound(g);
}

TEST(IrGraph, UsesFollowOperandsBothWays) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2], %y: f32[2]) -> (%a, %x) {
  %a = Add(%x, %x)
  %b = Add(%x, %y)
  Sink(%a, %b, %x)
})rg");
  Graph& g = *owner;
  uint32_t x = find_value(g, "x"), y = find_value(g, "y");
  EXPECT_EQ(g.uses(x).size(), 5u);
  g.set_operand(maker(g, "a"), 1, y);
  EXPECT_EQ(g.uses(x).size(), 4u);
  EXPECT_EQ(g.uses(y).size(), 2u);
  g.set_operand(maker(g, "a"), 1, REGIE_NONE);
  EXPECT_EQ(g.uses(y).size(), 1u);
  expect_sound(g);
  g.replace_uses(x, y);
  EXPECT_EQ(g.uses(x).size(), 0u);
  EXPECT_EQ(g.uses(y).size(), 5u);
  EXPECT_EQ(g.region(0).results[1], y);
  expect_sound(g);
  // The output's name does not follow the value.
  EXPECT_EQ(g.output_name(1), "x");
  EXPECT_THAT(print(g), HasSubstr("-> (%a, %y as \"x\")"));
}

TEST(IrGraph, OutputsWithoutANameGetOne) {
  Graph g;
  uint32_t n = g.add_node(0, op("n"));
  uint32_t r = g.results(n)[0];
  g.set_region_results(0, std::vector<uint32_t>{r, r});
  EXPECT_EQ(g.output_name(0), "output_0");
  EXPECT_EQ(g.output_name(1), "output_1");
  g.set_output_names(std::vector<std::string>{"p", "q"});
  g.set_region_results(0, std::vector<uint32_t>{r, r, r});
  EXPECT_EQ(g.output_name(0), "p");
  EXPECT_EQ(g.output_name(2), "output_2");
  expect_sound(g);
}

TEST(IrGraph, NodesMoveAndGoWithWhatIsInside) {
  auto owner = graph_of(R"rg(graph @g(%c: bool[], %x: f32[2]) -> (%x) {
  %k: const f32[1] = [1.0]
  %y = If(%c, %x) @name("outer") region @a(%p: f32[2]) -> (%q) {
    %q = Call(%p, %k) @name("inner") region @b(%r: f32[2], %s: f32[1]) -> (%t) {
      %t = Add(%r, %k) @name("innermost")
    }
  } region @b(%u: f32[2]) -> (%u) {
    %w: const f32[1] = [2.0]
    Sink(%u, %w) @name("sink")
  }
})rg");
  Graph& g = *owner;
  uint32_t k = find_value(g, "k"), w = find_value(g, "w"), innermost = maker(g, "t");
  EXPECT_THAT(order(g), ElementsAre("outer", "inner", "innermost", "sink"));
  EXPECT_TRUE(g.visible(k, g.node(innermost).region));
  EXPECT_FALSE(g.visible(w, g.node(innermost).region));
  EXPECT_FALSE(g.visible(find_value(g, "p"), g.node(innermost).region));
  EXPECT_EQ(g.uses(k).size(), 2u);
  g.remove_node(maker(g, "y"));
  EXPECT_EQ(g.uses(k).size(), 0u);
  EXPECT_FALSE(g.live(innermost));
  EXPECT_FALSE(g.live_value(w));
  EXPECT_EQ(g.live_node_count(), 0u);
  expect_sound(g);
  g.remove_value(k);
  expect_sound(g);
  EXPECT_EQ(print(g), "graph @g(%c: bool[], %x: f32[2]) -> (%x) {\n}\n");
}

TEST(IrGraph, OrderLabelsStandForTheList) {
  Graph g;
  std::mt19937 random(5);
  std::vector<uint32_t> nodes{g.add_node(0, op("0"))};
  // At random, and again and again in front of the same node, so that labels run out.
  for (int i = 1; i < 3000; ++i) {
    uint32_t before = i % 3 == 0 ? nodes[random() % nodes.size()] : i % 3 == 1 ? nodes[0] : REGIE_NONE;
    nodes.push_back(g.add_node(0, op(std::to_string(i)), before));
  }
  for (int i = 0; i < 2000; ++i) {
    uint32_t n = nodes[random() % nodes.size()], before = nodes[random() % nodes.size()];
    if (n != before) g.move_before(n, before);
  }
  expect_sound(g);
  std::vector<uint32_t> walk;
  for (uint32_t n = g.region(0).first; n != REGIE_NONE; n = g.node(n).next) walk.push_back(n);
  ASSERT_EQ(walk.size(), nodes.size());
  for (size_t i = 1; i < walk.size(); ++i) EXPECT_TRUE(g.before(walk[i - 1], walk[i]));
}

TEST(IrGraph, SortKeepsTheOrderWhereItMay) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> () {
  %a = Op(%x) @name("a")
  %b = Op(%a) @name("b")
  %c = Op(%x) @name("c")
  %d = Op(%b, %c) @name("d")
})rg");
  Graph& g = *owner;
  ASSERT_TRUE(g.sort_region(0).ok());
  EXPECT_THAT(order(g), ElementsAre("a", "b", "c", "d"));
  g.set_operand(maker(g, "a"), 0, find_value(g, "c"));  // a must come after c; b after a
  EXPECT_FALSE(verify(g).ok());
  ASSERT_TRUE(g.sort_region(0).ok());
  EXPECT_THAT(order(g), ElementsAre("c", "a", "b", "d"));
  expect_sound(g);
  g.set_operand(maker(g, "c"), 0, find_value(g, "d"));
  Status s = g.sort_region(0);
  EXPECT_EQ(s.code(), REGIE_INVALID_MODEL);
  EXPECT_THAT(s.message(), HasSubstr("cycle through node '"));
}

TEST(IrGraph, ChangedNodesAreToldOnce) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> (%c) {
  %a: f32[2] = Op(%x)
  %b: f32[2] = Op(%a)
  %c: f32[2] = Op(%a)
})rg");
  Graph& g = *owner;
  uint32_t a = maker(g, "a"), b = maker(g, "b"), c = maker(g, "c");
  EXPECT_THAT(g.take_changed(), ElementsAre(a, b, c));
  EXPECT_THAT(g.take_changed(), ElementsAre());
  g.set_operand(b, 0, find_value(g, "x"));
  // c is the only reader of a now: what asks for a single use may fit.
  EXPECT_THAT(g.take_changed(), UnorderedElementsAre(a, b, c));
  regie_type t = g.value(find_value(g, "a")).type;
  g.set_type(find_value(g, "a"), t);
  EXPECT_THAT(g.take_changed(), ElementsAre());
  t.elem = REGIE_F16;
  g.set_type(find_value(g, "a"), t);
  EXPECT_THAT(g.take_changed(), UnorderedElementsAre(a, c));
  g.remove_node(b);
  EXPECT_THAT(g.take_changed(), ElementsAre(a));  // the only reader of x now
}

TEST(IrGraph, ControlEdgesGoWithTheirNodes) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> () {
  %a = Op(%x)
  %b = Op(%x) @after(%a)
  %c = Op(%x) @after(%a, %b, %a)
})rg");
  Graph& g = *owner;
  uint32_t a = maker(g, "a"), b = maker(g, "b"), c = maker(g, "c");
  EXPECT_EQ(g.node(c).control_count, 2u);
  EXPECT_THAT(g.control_readers(a), ElementsAre(b, c));
  g.remove_node(a);
  EXPECT_EQ(g.node(b).control_count, 0u);
  EXPECT_EQ(g.node(c).control_count, 1u);
  expect_sound(g);
  g.remove_node(c);
  EXPECT_TRUE(g.control_readers(b).empty());
  expect_sound(g);
}

TEST(IrGraph, SkippedIdsAreDeadAndNeverUsed) {
  Graph g;
  g.skip_ids(5, 3, 2);
  EXPECT_FALSE(g.live(2));
  EXPECT_FALSE(g.live_value(4));
  EXPECT_FALSE(g.live_region(1));
  uint32_t n = g.add_node(0, op("n"));
  EXPECT_EQ(n, 3u);
  EXPECT_EQ(g.results(n)[0], 5u);
  expect_sound(g);
}

TEST(IrGraph, NodesAreDescribedByTheFrameworksNames) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> () {
  %a = Conv(%x) @name("conv1") @from("conv1 (Conv)")
  %b = regie.Fused(%x) @from("conv1 (Conv)", "act (Relu)")
  %c = Relu(%x)
})rg");
  Graph& g = *owner;
  EXPECT_EQ(g.describe_node(maker(g, "a")), "node 'conv1' (Conv)");
  EXPECT_EQ(g.describe_node(maker(g, "b")), "node #1 (regie.Fused) made from 'conv1 (Conv)', 'act (Relu)'");
  EXPECT_EQ(g.describe_node(maker(g, "c")), "node #2 (Relu) that makes 'c'");
  EXPECT_EQ(g.describe_value(find_value(g, "x")), "value 'x'");
  EXPECT_THAT(g.describe_node(99), HasSubstr("no such node"));
}

// ---- The verifier finds each kind of damage that the writing functions let through ----

TEST(IrVerify, ReadsBeforeDefinitions) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> () {
  %a = Op(%x) @name("early")
  %b = Op(%x) @name("late")
})rg");
  owner->set_operand(maker(*owner, "a"), 0, find_value(*owner, "b"));
  Status s = verify(*owner);
  EXPECT_EQ(s.code(), REGIE_INTERNAL);
  EXPECT_THAT(s.message(), HasSubstr("node 'early' (Op) reads value 'b' before it is made"));
}

TEST(IrVerify, ReadsAcrossRegions) {
  auto owner = graph_of(R"rg(graph @g(%x: f32[2]) -> () {
  Call(%x) region @r(%p: f32[2]) -> () {
    Op(%p) @name("inside")
  }
})rg");
  Graph& g = *owner;
  uint32_t inside = g.uses(find_value(g, "p"))[0].node;
  g.set_operand(inside, 0, find_value(g, "x"));
  EXPECT_THAT(verify(g).message(), HasSubstr("node 'inside' (Op) reads value 'x' of another region"));
  g.set_operand(inside, 0, find_value(g, "p"));
  EXPECT_TRUE(verify(g).ok());
  g.set_region_results(g.node(inside).region, std::vector<uint32_t>{find_value(g, "x")});
  EXPECT_THAT(verify(g).message(), HasSubstr("gives a value that it cannot see"));
}

TEST(IrVerify, ControlEdgesBackwardsAndNamesTwice) {
  auto owner = graph_of("graph @g(%x: f32[2], %y: f32[2]) -> (%x, %y) {\n %a = Op(%x)\n %b = Op(%x)\n}");
  Graph& g = *owner;
  g.set_control(maker(g, "a"), std::vector<uint32_t>{maker(g, "b")});
  EXPECT_THAT(verify(g).message(), HasSubstr("control edge"));
  g.set_control(maker(g, "a"), {});
  g.set_value_name(find_value(g, "y"), "x");
  EXPECT_THAT(verify(g).message(), HasSubstr("two inputs are named 'x'"));
  g.set_value_name(g.region(0).args[1], "y");
  g.set_output_names(std::vector<std::string>{"o", "o"});
  EXPECT_THAT(verify(g).message(), HasSubstr("two outputs are named 'o'"));
}

TEST(IrVerify, AliasesInCirclesOrAcrossSpaces) {
  auto owner = graph_of("graph @g(%x: f32[2]) -> () {\n %a = Op(%x)\n %b = Op(%x)\n}");
  Graph& g = *owner;
  uint32_t x = find_value(g, "x"), a = find_value(g, "a"), b = find_value(g, "b");
  g.set_alias(a, b, 0);
  g.set_alias(b, x, 64);
  EXPECT_TRUE(verify(g).ok());
  g.set_space(x, 1);
  EXPECT_THAT(verify(g).message(), HasSubstr("another memory space"));
  g.set_space(x, REGIE_NONE);
  g.set_alias(x, a, 0);
  EXPECT_THAT(verify(g).message(), HasSubstr("lies in itself"));
}

TEST(IrVerify, DataAgainstTypes) {
  Graph g;
  uint32_t k =
      g.add_constant(0, REGIE_VALUE_CONSTANT, Tensor::zeros(REGIE_F32, std::vector<int64_t>{2}), "k");
  expect_sound(g);
  const regie_dim three = 3;
  g.set_type(k, g.make_type(REGIE_F32, {&three, 1}));
  EXPECT_THAT(verify(g).message(), HasSubstr("value 'k' has data that does not fit its type"));
}

TEST(IrVerify, ShapesKnown) {
  auto owner = graph_of("graph @g(%x: f32[N,2]) -> () {\n %a: f32[N,?] = Op(%x)\n}");
  EXPECT_TRUE(verify(*owner).ok());
  VerifyOptions options;
  options.shapes_known = true;
  EXPECT_THAT(verify(*owner, options).message(),
              HasSubstr("value 'a' has a type that is not wholly known: f32[N,?]"));
}

}  // namespace
}  // namespace regie
