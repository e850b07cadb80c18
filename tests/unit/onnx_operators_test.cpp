// Translation of older operator sets into the canonical operators, and control flow. What is expected is the
// text of the ONNX operator specification.
#include "regie_test_paths.h"
#include "onnx_support.h"
#include "onnx_writer.h"

namespace onnx_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// x: f32[dims] through one node to the outputs.
Graph with(const std::vector<std::string>& dims, const std::string& op, const std::vector<Message>& attrs,
           const std::vector<std::string>& outputs = {"y"}, std::vector<std::string> inputs = {"x"},
           std::vector<Message> initializers = {}) {
  Graph g;
  g.inputs = {value("x", kFloat, dims)};
  g.nodes = {node({op, "it", ""}, inputs, outputs, attrs)};
  for (const auto& o : outputs)
    if (!o.empty()) g.outputs.push_back(Message().text(1, o));
  g.initializers = std::move(initializers);
  return g;
}

TEST_F(OnnxTest, SoftmaxBefore13TakesTheTrailingAxesTogether) {
  EXPECT_THAT(lines_of(*good(model(with({"2", "3", "4"}, "Softmax", {}), 11))),
              ElementsAre("it_Flatten:f32[2,12] = Flatten(x) {axis=1}",
                          "it_Softmax:f32[2,12] = Softmax(it_Flatten) {axis=1}",
                          "y:f32[2,3,4] = Reshape(it_Softmax, [2 3 4]) {allowzero=1}"));
  EXPECT_THAT(lines_of(*good(model(with({"2", "3", "4"}, "LogSoftmax", {attr("axis", -1)}), 11))),
              ElementsAre("y:f32[2,3,4] = LogSoftmax(x) {axis=-1}"));
  EXPECT_THAT(lines_of(*good(model(with({"N", "3"}, "Softmax", {}), 9))),
              ElementsAre("y:f32[N,3] = Softmax(x) {axis=-1}"));
  auto symbolic = lines_of(*good(model(with({"N", "3", "4"}, "Softmax", {attr("axis", 0)}), 11)));
  EXPECT_THAT(symbolic, ElementsAre("it_Flatten:f32[1,12*N] = Flatten(x) {axis=0}",
                                    "it_Softmax:f32[1,12*N] = Softmax(it_Flatten) {axis=1}",
                                    "it_Shape:i64[3] = Shape(x)",
                                    "y:f32[N,3,4] = Reshape(it_Softmax, it_Shape) {allowzero=1}"));
  EXPECT_THAT(lines_of(*good(model(with({"2", "3", "4"}, "Softmax", {attr("axis", 1)}), 13))),
              ElementsAre("y:f32[2,3,4] = Softmax(x) {axis=1}"));
  EXPECT_THAT(bad(model(with({"2", "3"}, "Softmax", {attr("axis", 5)}), 11), REGIE_INVALID_MODEL),
              HasSubstr("axis 5"));
}

// One framework operator stays one to the user, whatever it became.
TEST_F(OnnxTest, TranslatedNodesKeepTheirOrigin) {
  auto g = good(model(with({"2", "3", "4"}, "Softmax", {}), 11));
  for (uint32_t n = g->region(0).first; n != REGIE_NONE; n = g->node(n).next) {
    ASSERT_EQ(g->node(n).origin_count, 1u);
    EXPECT_EQ(g->origin(g->node(n).origins[0]), "it (Softmax)");
  }
}

TEST_F(OnnxTest, AttributesThatBecameOperands) {
  EXPECT_THAT(lines_of(*good(model(with({"1", "3"}, "Squeeze", {attr_ints("axes", {0})}), 11))),
              ElementsAre("y:f32[3] = Squeeze(x, [0])"));
  EXPECT_THAT(lines_of(*good(model(with({"1", "3"}, "Squeeze", {}), 11))),
              ElementsAre("y:f32[3] = Squeeze(x)"));
  EXPECT_THAT(lines_of(*good(model(with({"3"}, "Unsqueeze", {attr_ints("axes", {0, 2})}), 11))),
              ElementsAre("y:f32[1,3,1] = Unsqueeze(x, [0 2])"));
  EXPECT_THAT(bad(model(with({"3"}, "Unsqueeze", {}), 11), REGIE_INVALID_MODEL),
              HasSubstr("'axes' is missing"));
  EXPECT_THAT(lines_of(*good(
                  model(with({"2", "3"}, "ReduceSum", {attr_ints("axes", {1}), attr("keepdims", 0)}), 11))),
              ElementsAre("y:f32[2] = ReduceSum(x, [1]) {keepdims=0}"));
  EXPECT_THAT(lines_of(*good(model(with({"2", "3"}, "ReduceMean", {attr_ints("axes", {-1})}), 13))),
              ElementsAre("y:f32[2,1] = ReduceMean(x, [-1])"));
  EXPECT_THAT(lines_of(*good(model(with({"2", "3"}, "ReduceMax", {}), 13))),
              ElementsAre("y:f32[1,1] = ReduceMax(x)"));
  EXPECT_THAT(bad(model(with({"2", "3"}, "ReduceMean", {attr_ints("axes", {1})}), 18), REGIE_INVALID_MODEL),
              HasSubstr("no attribute 'axes'"));
  EXPECT_THAT(lines_of(*good(model(
                  with({"2", "3"}, "Pad", {attr_ints("pads", {0, 1, 0, 1}), attr_float("value", 2)}), 7))),
              ElementsAre("y:f32[2,5] = Pad(x, [0 1 0 1], [2])"));
  EXPECT_THAT(
      lines_of(*good(model(with({"4", "3"}, "Slice",
                                {attr_ints("starts", {1}), attr_ints("ends", {3}), attr_ints("axes", {0})}),
                           9))),
      ElementsAre("y:f32[2,3] = Slice(x, [1], [3], [0])"));
  EXPECT_THAT(bad(model(with({"4"}, "Slice", {attr_ints("starts", {1}), attr_ints("ends", {3, 4})}), 9),
                  REGIE_INVALID_MODEL),
              HasSubstr("length"));
}

TEST_F(OnnxTest, ClipBefore11) {
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Clip", {attr_float("min", 0), attr_float("max", 6)}), 10))),
              ElementsAre("y:f32[2] = Clip(x, [0], [6])"));
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Clip", {attr_float("max", 6)}), 10))),
              ElementsAre("y:f32[2] = Clip(x, _, [6])"));
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Clip", {}), 10))), ElementsAre("y:f32[2] = Clip(x)"));
  // Half precision: 6 is 0x4600, 0.1 rounds to 0x2e66.
  Graph half = with({"2"}, "Clip", {attr_float("min", 0.1f), attr_float("max", 6)});
  half.inputs = {value("x", kHalf, {"2"})};
  EXPECT_THAT(lines_of(*good(model(half, 10))), ElementsAre("y:f16[2] = Clip(x, [11878], [17920])"));
}

TEST_F(OnnxTest, SplitBefore18) {
  EXPECT_THAT(lines_of(*good(model(with({"6"}, "Split", {attr_ints("split", {2, 4})}, {"a", "b"}), 11))),
              ElementsAre("a:f32[2], b:f32[4] = Split(x, [2 4])"));
  EXPECT_THAT(lines_of(*good(model(with({"6"}, "Split", {}, {"a", "b", "c"}), 11))),
              ElementsAre("a:f32[2], b:f32[2], c:f32[2] = Split(x) {num_outputs=3}"));
  EXPECT_THAT(lines_of(*good(model(with({"6"}, "Split", {}, {"a", "b"}), 13))),
              ElementsAre("a:f32[3], b:f32[3] = Split(x) {num_outputs=2}"));
  EXPECT_THAT(bad(model(with({"5"}, "Split", {}, {"a", "b"}), 13), REGIE_INVALID_MODEL),
              HasSubstr("equal parts"));
  // Of an axis that is open the parts are equal, or the run is refused.
  EXPECT_THAT(lines_of(*good(model(with({"N"}, "Split", {}, {"a", "b"}), 13))),
              ElementsAre("a:f32[floordiv(N+1, 2)], b:f32[floordiv(N+1, 2)] = Split(x)"));
  EXPECT_THAT(lines_of(*good(model(with({"5"}, "Split", {attr("num_outputs", 2)}, {"a", "b"}), 18))),
              ElementsAre("a:f32[3], b:f32[2] = Split(x) {num_outputs=2}"));
  EXPECT_THAT(
      bad(model(with({"6"}, "Split", {attr_ints("split", {6})}, {"a", "b"}), 11), REGIE_INVALID_MODEL),
      HasSubstr("1 sizes for 2 outputs"));
}

TEST_F(OnnxTest, InferenceFormsOfTrainingOperators) {
  const std::vector<Message> statistics{floats("s", {3}, {1, 1, 1}), floats("b", {3}, {0, 0, 0}),
                                        floats("m", {3}, {0, 0, 0}), floats("v", {3}, {1, 1, 1})};
  const std::vector<std::string> inputs{"x", "s", "b", "m", "v"};
  auto bn = [&](std::vector<Message> attrs, std::vector<std::string> outputs, int64_t opset) {
    return model(with({"N", "3", "2"}, "BatchNormalization", attrs, outputs, inputs, statistics), opset);
  };
  for (int64_t opset : {7, 9, 14, 15})
    EXPECT_THAT(
        lines_of(
            *good(bn({attr_float("epsilon", 0.001f), attr_float("momentum", 0.5f)}, {"y", "", ""}, opset))),
        ElementsAre(
            "y:f32[N,3,2] = BatchNormalization(x, [1 1 1], [0 0 0], [0 0 0], [1 1 1]) {epsilon=0.001}"));
  // In training mode the statistics are those of the batch.
  EXPECT_THAT(lines_of(*good(bn({attr("training_mode", 1)}, {"y"}, 15))),
              AllOf(Contains(HasSubstr("ReduceMean(x, [0 2]) {keepdims=0}")),
                    Contains("it_BatchNormalization:f32[N,3,2] = BatchNormalization(x, [1 1 1], [0 0 0], "
                             "it_ReduceMean_2, it_ReduceMean_3)")));
  EXPECT_THAT(bad(bn({}, {"y", "mean"}, 15), REGIE_INVALID_MODEL), HasSubstr("one output"));
  EXPECT_THAT(bad(bn({}, {"y", "mean", "var"}, 9), REGIE_UNSUPPORTED), HasSubstr("training mode"));
  // For each position: the operands have all dimensions but the first.
  EXPECT_THAT(bad(bn({attr("spatial", 0)}, {"y"}, 7), REGIE_INVALID_MODEL), HasSubstr("cannot be broadcast"));

  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Dropout", {attr_float("ratio", 0.5f)}), 10))),
              ElementsAre("y:f32[2] = Dropout(x)"));
  EXPECT_THAT(
      lines_of(*good(model(with({"2"}, "Dropout", {attr("seed", 3)}, {"y", ""}, {"x", "r", "t"},
                                {floats("r", {}, {0.5f}), tensor("t", kBool, {}, std::string(1, '\0'))}),
                           13))),
      ElementsAre("y:f32[2] = Dropout(x)"));
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Dropout", {attr("seed", 3)}, {"y"}, {"x", "", "t"},
                                        {tensor("t", kBool, {}, "\1")}),
                                   13))),
              Contains("it_RandomUniformLike:f64[2] = RandomUniformLike(x) {dtype=11 seed=3}"));
}

TEST_F(OnnxTest, OtherForms) {
  Graph sum = with({"2"}, "Sum", {}, {"y"}, {"x", "x", "x"});
  EXPECT_THAT(lines_of(*good(model(sum, 13))),
              ElementsAre("it_Add:f32[2] = Add(x, x)", "y:f32[2] = Add(it_Add, x)"));
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Sum", {}), 13))), ElementsAre("y:f32[2] = Identity(x)"));
  EXPECT_THAT(lines_of(*good(model(with({"2"}, "Cast", {attr("to", 7), attr_text("round_mode", "up")}), 24))),
              ElementsAre("y:i64[2] = Cast(x) {to=7}"));
  EXPECT_THAT(bad(model(with({"2"}, "Cast", {attr("to", 27)}), 28), REGIE_UNSUPPORTED), HasSubstr("27"));
  EXPECT_THAT(bad(model(with({"2"}, "Cast", {}), 13), REGIE_INVALID_MODEL), HasSubstr("'to' is missing"));
  EXPECT_THAT(bad(model(with({"2", "2"}, "Gemm", {}, {"y"}, {"x", "x"}), 9), REGIE_INVALID_MODEL),
              HasSubstr("takes 3 inputs"));
  EXPECT_THAT(lines_of(*good(model(with({"2", "2"}, "Gemm", {}, {"y"}, {"x", "x"}), 11))),
              ElementsAre("y:f32[2,2] = Gemm(x, x)"));
}

TEST_F(OnnxTest, ConstantsInAllForms) {
  auto constant = [&](const Message& a) {
    Graph g;
    g.nodes = {node({"Constant", "k", ""}, {}, {"y"}, {a})};
    g.outputs = {Message().text(1, "y")};
    auto graph = good(model(g, 13));
    if (graph->region(0).result_count == 0) return std::string();
    const uint32_t v = graph->region(0).results[0];
    EXPECT_EQ(graph->value(v).kind, REGIE_VALUE_CONSTANT);
    return type_text(*graph, v) + " " + (graph->tensor(v).elem() == REGIE_STRING ? "" : elements(*graph, v));
  };
  EXPECT_EQ(constant(attr_tensor("value", floats("", {2}, {1, 2}))), "f32[2] [1 2]");
  EXPECT_EQ(constant(attr_float("value_float", 1.5f)), "f32[] [1.5]");
  EXPECT_EQ(constant(attr("value_int", -3)), "i64[] [-3]");
  EXPECT_EQ(constant(attr_ints("value_ints", {1, 2})), "i64[2] [1 2]");
  EXPECT_EQ(constant(attr_head("value_floats", kAttrFloats).single(7, 1).single(7, 0.1f)),
            "f32[2] [1 0.100000001]");
  EXPECT_EQ(constant(attr_text("value_string", "a")), "string[] ");
  EXPECT_EQ(constant(attr_head("value_strings", kAttrStrings).text(9, "a").text(9, "b")), "string[2] ");
  EXPECT_EQ(
      constant(
          attr_head("sparse_value", kAttrSparse)
              .message(
                  22,
                  Message().message(1, floats("", {1}, {4})).message(2, longs("", {1}, {1})).number(3, 3))),
      "f32[3] [0 4 0]");
  Graph two;
  two.nodes = {node({"Constant", "k", ""}, {}, {"y"}, {attr("value_int", 1), attr_float("value_float", 1)})};
  two.outputs = {Message().text(1, "y")};
  EXPECT_THAT(bad(model(two, 13), REGIE_INVALID_MODEL), HasSubstr("one attribute"));
}

// ---- If ----

Graph branch(std::vector<Message> nodes, const std::string& result, std::vector<Message> initializers = {}) {
  Graph g;
  g.nodes = std::move(nodes);
  g.outputs = {Message().text(1, result)};
  g.initializers = std::move(initializers);
  return g;
}

Graph choice(const Graph& yes, const Graph& no) {
  Graph g;
  g.inputs = {value("c", kBool, {}), value("x", kFloat, {"N"}), value("z", kFloat, {"N"})};
  g.nodes = {node({"Neg", "before", ""}, {"x"}, {"n"}),
             node({"If", "if", ""}, {"c"}, {"y"},
                  {attr_graph("else_branch", no.message()), attr_graph("then_branch", yes.message())})};
  g.outputs = {Message().text(1, "y")};
  g.initializers = {floats("w", {1}, {3})};
  return g;
}

TEST_F(OnnxTest, IfTakesCapturesAsOperands) {
  // Captures: n and x; w is a weight and read directly; both branches call their value r and their constant
  // k.
  const Graph g =
      choice(branch({node({"Mul", "m", ""}, {"n", "k"}, {"r"})}, "r", {floats("k", {1}, {2})}),
             branch({node({"Constant", "", ""}, {}, {"k"}, {attr_float("value_float", -1)}),
                     node({"Mul", "", ""}, {"x", "k"}, {"q"}), node({"Add", "", ""}, {"q", "w"}, {"r"})},
                    "r"));
  auto graph = good(model(g));
  EXPECT_THAT(lines_of(*graph),
              ElementsAre("n:f32[N] = Neg(x)", "y:f32[N] = If(c, n, x)",
                          "then_branch(n, x):", "r:f32[N] = Mul(n, [2])", "-> r",
                          "else_branch(n, x):", "q:f32[N] = Mul(x, [-1])", "r:f32[N] = Add(q, [3])", "-> r"));
  // Unnamed nodes of a branch are named after where they are.
  const uint32_t last = graph->region(2).last;
  EXPECT_EQ(regie::view(graph->node(last).name), "if/else_branch/Add_2");
}

TEST_F(OnnxTest, IfBranchesMayPassValuesOn) {
  // A weight of the graph around, and one of its own.
  EXPECT_THAT(lines_of(*good(model(choice(branch({}, "w"), branch({}, "k", {floats("k", {1}, {2})}))))),
              ElementsAre("n:f32[N] = Neg(x)", "y:f32[1] = If(c)", "then_branch():", "-> [3]",
                          "else_branch():", "-> [2]"));
  EXPECT_THAT(lines_of(*good(model(choice(branch({}, "n"), branch({}, "x"))))),
              ElementsAre("n:f32[N] = Neg(x)", "y:f32[N] = If(c, n, x)", "then_branch(n, x):", "-> n",
                          "else_branch(n, x):", "-> x"));
}

TEST_F(OnnxTest, NestedIfsCaptureThroughEveryLevel) {
  const Graph leaf = branch({node({"Add", "deep", ""}, {"z", "n"}, {"d"})}, "d");
  const Graph other = branch({node({"Neg", "o", ""}, {"x"}, {"e"})}, "e");
  const Graph middle =
      branch({node({"If", "inner", ""}, {"c"}, {"r"},
                   {attr_graph("then_branch", leaf.message()), attr_graph("else_branch", other.message())})},
             "r");
  EXPECT_THAT(lines_of(*good(model(choice(middle, branch({}, "x"))))),
              ElementsAre("n:f32[N] = Neg(x)", "y:f32[N] = If(c, c, z, n, x)", "then_branch(c, z, n, x):",
                          "r:f32[N] = If(c, z, n, x)", "then_branch(z, n, x):", "d:f32[N] = Add(z, n)",
                          "-> d", "else_branch(z, n, x):", "e:f32[N] = Neg(x)", "-> e", "-> r",
                          "else_branch(c, z, n, x):", "-> x"));
}

TEST_F(OnnxTest, IfWaitsForItsCaptures) {
  Graph g = choice(branch({node({"Relu", "", ""}, {"late"}, {"r"})}, "r"), branch({}, "x"));
  g.nodes.push_back(node({"Abs", "last", ""}, {"x"}, {"late"}));
  EXPECT_THAT(lines_of(*good(model(g)))[1], "late:f32[N] = Abs(x)");
}

TEST_F(OnnxTest, SaysWhatIsWrongWithAnIf) {
  const Graph fine = branch({node({"Relu", "r", ""}, {"x"}, {"r"})}, "r");
  EXPECT_THAT(
      bad(model(choice(fine, branch({node({"Relu", "r", ""}, {"ghost"}, {"r"})}, "r"))), REGIE_INVALID_MODEL),
      AllOf(HasSubstr("node 'if' (If)"), HasSubstr("'ghost'")));
  EXPECT_THAT(
      bad(model(choice(fine, branch({node({"Relu", "inner", ""}, {"x"}, {"n"})}, "n"))), REGIE_INVALID_MODEL),
      AllOf(HasSubstr("node 'inner' (Relu)"), HasSubstr("'n'"), HasSubstr("unique")));
  EXPECT_THAT(
      bad(model(choice(
              fine,
              branch({node({"Relu", "a", ""}, {"q"}, {"p"}), node({"Relu", "b", ""}, {"p"}, {"q"})}, "q"))),
          REGIE_INVALID_MODEL),
      HasSubstr("cycle"));
  Graph two = fine;
  two.outputs.push_back(Message().text(1, "x"));
  EXPECT_THAT(bad(model(choice(fine, two)), REGIE_INVALID_MODEL),
              HasSubstr("else_branch has 2 outputs, the node has 1"));
  Graph with_input = fine;
  with_input.inputs = {value("i", kFloat, {"1"})};
  EXPECT_THAT(bad(model(choice(with_input, fine)), REGIE_INVALID_MODEL), HasSubstr("then_branch has inputs"));
  Graph one = choice(fine, fine);
  one.nodes[1] = node({"If", "if", ""}, {"c"}, {"y"}, {attr_graph("then_branch", fine.message())});
  EXPECT_THAT(bad(model(one), REGIE_INVALID_MODEL), HasSubstr("then_branch and else_branch"));
  EXPECT_THAT(
      bad(model(choice(fine, branch({node({"Foo", "f", ""}, {"x"}, {"r"})}, "r"))), REGIE_UNSUPPORTED),
      HasSubstr("operator Foo (node 'f')"));
}

// The If's own output may be called like its branches' results: it is not there yet where they are.
TEST_F(OnnxTest, BranchResultsMayHaveTheNameOfTheOutput) {
  EXPECT_THAT(
      lines_of(*good(model(choice(branch({node({"Relu", "r", ""}, {"x"}, {"y"})}, "y"), branch({}, "x"))))),
      testing::Contains("-> y"));
}

}  // namespace
}  // namespace onnx_test
