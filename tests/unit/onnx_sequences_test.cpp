// Sequences and optionals of the ONNX frontend: they are gone when the graph is made.
#include "regie_test_paths.h"
#include "unit/onnx_support.h"
#include "unit/onnx_writer.h"

namespace onnx_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// x and z f32[2,3], p i64[]; what the nodes make of them is called y.
Graph with_nodes(std::vector<Message> nodes, std::vector<Message> initializers = {}) {
  Graph g;
  g.inputs = {value("x", kFloat, {"2", "3"}), value("z", kFloat, {"2", "3"}), value("p", kInt64, {})};
  g.nodes = std::move(nodes);
  g.initializers = std::move(initializers);
  g.outputs = {output("y", 0)};
  return g;
}

class OnnxSequences : public OnnxTest {
 protected:
  std::vector<std::string> lines(const Graph& g, int64_t opset = 18) {
    return lines_of(*good(model(g, opset)));
  }
  std::string refused(const Graph& g, regie_status code, int64_t opset = 18) {
    return bad(model(g, opset), code);
  }
};

const Message kPair = node({"SequenceConstruct", "pair", ""}, {"x", "z"}, {"s"});

TEST_F(OnnxSequences, KnownPositionsLeaveNothing) {
  const std::vector<Message> positions{longs("one", {}, {1}), longs("last", {}, {-1})};
  EXPECT_THAT(lines(with_nodes({kPair, node({"SequenceAt", "at", ""}, {"s", "one"}, {"y"})}, positions)),
              ElementsAre("y:f32[2,3] = Identity(z)"));
  // [x, z] -> [x, x, z] -> [x, z] -> its last.
  EXPECT_THAT(lines(with_nodes({kPair, node({"SequenceInsert", "in", ""}, {"s", "x", "last"}, {"t"}),
                                node({"SequenceErase", "out", ""}, {"t", "one"}, {"u"}),
                                node({"SequenceAt", "at", ""}, {"u", "last"}, {"y"})},
                               positions)),
              ElementsAre("y:f32[2,3] = Identity(z)"));
  EXPECT_THAT(lines(with_nodes({kPair, node({"SequenceLength", "n", ""}, {"s"}, {"y"})})),
              ElementsAre("y:i64[] = Identity([2])"));
  EXPECT_THAT(lines(with_nodes({node({"SequenceEmpty", "none", ""}, {}, {"s"}),
                                node({"SequenceLength", "n", ""}, {"s"}, {"y"})})),
              ElementsAre("y:i64[] = Identity([0])"));
}

TEST_F(OnnxSequences, ConcatenationAndSplit) {
  EXPECT_THAT(
      lines(with_nodes({kPair, node({"ConcatFromSequence", "c", ""}, {"s"}, {"y"}, {attr("axis", 1)})})),
      ElementsAre("y:f32[2,6] = Concat(x, z) {axis=1}"));
  EXPECT_THAT(lines(with_nodes({kPair, node({"ConcatFromSequence", "c", ""}, {"s"}, {"y"},
                                            {attr("axis", -1), attr("new_axis", 1)})})),
              Contains("c_Concat:f32[2,3,2] = Concat(c_Unsqueeze, c_Unsqueeze_2) {axis=-1}"));
  const Message split =
      node({"SplitToSequence", "split", ""}, {"x"}, {"s"}, {attr("axis", 1), attr("keepdims", 0)});
  EXPECT_THAT(lines(with_nodes({split, node({"SequenceAt", "at", ""}, {"s", "one"}, {"y"})},
                               {longs("one", {}, {1})})),
              AllOf(Contains(HasSubstr("= Split(x, [1 1 1]) {axis=1}")), Contains(HasSubstr("y:f32[2] = "))));
  // Of the parts only the number counts: none is made.
  EXPECT_THAT(lines(with_nodes({split, node({"SequenceLength", "n", ""}, {"s"}, {"y"})})),
              ElementsAre("y:i64[] = Identity([3])"));
}

TEST_F(OnnxSequences, PositionsOfTheRun) {
  const auto made = lines(with_nodes({kPair, node({"SequenceAt", "at", ""}, {"s", "p"}, {"y"})}));
  EXPECT_THAT(made, AllOf(Contains(HasSubstr("f32[2,2,3] = Concat(")),
                          Contains(HasSubstr("y:f32[2,3] = Identity("))));
  // Beyond the end an index is outside of a list of the sequence's length.
  EXPECT_THAT(made, Contains(HasSubstr("= Gather([0 1], ")));
}

TEST_F(OnnxSequences, Optionals) {
  EXPECT_THAT(lines(with_nodes({node({"OptionalHasElement", "has", ""}, {"x"}, {"y"})})),
              ElementsAre("y:bool[] = Identity([1])"));
  EXPECT_THAT(lines(with_nodes({node({"OptionalHasElement", "has", ""}, {""}, {"y"})})),
              ElementsAre("y:bool[] = Identity([0])"));
  EXPECT_THAT(lines(with_nodes({node({"OptionalGetElement", "get", ""}, {"x"}, {"y"})})),
              ElementsAre("y:f32[2,3] = Identity(x)"));
  EXPECT_THAT(lines(with_nodes({kPair, node({"OptionalGetElement", "get", ""}, {"s"}, {"t"}),
                                node({"Identity", "same", ""}, {"t"}, {"u"}),
                                node({"SequenceLength", "n", ""}, {"u"}, {"y"})})),
              ElementsAre("y:i64[] = Identity([2])"));
}

// An input that is an optional tensor must be there when the model runs, and is.
TEST_F(OnnxSequences, OptionalInputs) {
  Graph g = with_nodes({node({"OptionalHasElement", "has", ""}, {"o"}, {"h"}),
                        node({"OptionalGetElement", "get", ""}, {"o"}, {"y"})});
  const Message shape = Message().message(1, Message().signed_number(1, 2));
  const Message tensor_type = Message().message(1, Message().number(1, kFloat).message(2, shape));
  g.inputs = {Message().text(1, "o").message(2, Message().message(9, Message().message(1, tensor_type)))};
  g.outputs.push_back(output("h", 0));
  EXPECT_THAT(lines(g), ElementsAre("h:bool[] = Identity([1])", "y:f32[2] = Identity(o)"));
}

TEST_F(OnnxSequences, WhatIsRefused) {
  EXPECT_THAT(refused(with_nodes({node({"SequenceConstruct", "c", ""}, {"x"}, {"y"})}), REGIE_UNSUPPORTED),
              HasSubstr("output 'y': the output is a sequence"));
  EXPECT_THAT(refused(with_nodes({kPair, node({"Relu", "r", ""}, {"s"}, {"y"})}), REGIE_UNSUPPORTED),
              HasSubstr("node 'r' (Relu): input 0 is a sequence"));
  EXPECT_THAT(refused(with_nodes({node({"SequenceLength", "n", ""}, {"x"}, {"y"})}), REGIE_INVALID_MODEL),
              HasSubstr("must be a sequence"));
  EXPECT_THAT(refused(with_nodes({kPair, node({"SequenceAt", "at", ""}, {"s", "two"}, {"y"})},
                                 {longs("two", {}, {2})}),
                      REGIE_INVALID_MODEL),
              HasSubstr("position 2 is outside of a sequence of 2 elements"));
  EXPECT_THAT(refused(with_nodes({node({"SplitToSequence", "split", ""}, {"x", "p"}, {"s"}),
                                  node({"SequenceLength", "n", ""}, {"s"}, {"y"})}),
                      REGIE_UNSUPPORTED),
              HasSubstr("known only at run time"));
}

}  // namespace
}  // namespace onnx_test
