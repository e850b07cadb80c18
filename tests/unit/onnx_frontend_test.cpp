// The ONNX frontend on models written by hand: structure, versions, options, and every kind of broken file.
#include <cstdio>
#include <fstream>
#include <random>

#include "regie_test_paths.h"
#include "onnx_support.h"
#include "onnx_writer.h"

namespace onnx_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// x: f32[N,4] -> y, through one node of the default domain.
Graph one_node(const std::string& op, const std::vector<Message>& attrs = {},
               std::vector<std::string> inputs = {"x"}, std::vector<Message> initializers = {}) {
  Graph g;
  g.inputs = {value("x", kFloat, {"N", "4"})};
  g.nodes = {node({op, "it", ""}, inputs, {"y"}, attrs)};
  g.outputs = {output("y")};
  g.initializers = std::move(initializers);
  return g;
}

TEST_F(OnnxTest, ReadsTheDigitsModel) {
  auto r = import_file(REGIE_TEST_MODELS_DIR "/digits/digits.onnx");
  ASSERT_TRUE(r.ok()) << r.status().to_string();
  const regie::Graph& g = **r;
  EXPECT_EQ(g.name(), "digits");
  ASSERT_EQ(g.region(0).arg_count, 1u);
  EXPECT_EQ(type_text(g, g.region(0).args[0]), "f32[N,1,8,8]");
  ASSERT_EQ(g.region(0).result_count, 1u);
  EXPECT_EQ(regie::view(g.value(g.region(0).results[0]).name), "scores");
  EXPECT_EQ(type_text(g, g.region(0).results[0]), "f32[N,10]");
  const auto lines = lines_of(g);
  EXPECT_EQ(lines.at(0), "scale.out:f32[N,1,8,8] = Mul(x, [0.0625])");
  EXPECT_EQ(lines.at(1),
            "stem.conv.out:f32[N,16,8,8] = Conv(scale.out, stem.conv.weight) {dilations=1,1 group=1 "
            "kernel_shape=3,3 "
            "pads=1,1,1,1 strides=1,1}");
  // The shortest decimal number of the file's single-precision epsilon.
  EXPECT_THAT(lines.at(2), HasSubstr("{epsilon=1.0000000000000001e-05}"));
  const uint32_t second = g.node(g.region(0).first).next;
  ASSERT_EQ(g.node(second).origin_count, 1u);
  EXPECT_EQ(g.origin(g.node(second).origins[0]), "stem.conv (Conv)");
  EXPECT_EQ(g.value(g.node(second).operands[1]).kind, REGIE_VALUE_WEIGHT);
}

TEST_F(OnnxTest, NamesWhatHasNoName) {
  Graph g = one_node("Relu");
  g.nodes = {node({"Relu", "", ""}, {"x"}, {"a"}), node({"Relu", "", ""}, {"a"}, {"y"})};
  auto graph = good(model(g));
  const uint32_t first = graph->region(0).first;
  EXPECT_EQ(regie::view(graph->node(first).name), "Relu_0");
  EXPECT_EQ(regie::view(graph->node(graph->node(first).next).name), "Relu_1");
}

TEST_F(OnnxTest, SortsNodes) {
  Graph g = one_node("Relu");
  g.nodes = {node({"Add", "last", ""}, {"b", "a"}, {"y"}), node({"Relu", "second", ""}, {"a"}, {"b"}),
             node({"Neg", "first", ""}, {"x"}, {"a"})};
  EXPECT_THAT(lines_of(*good(model(g))),
              ElementsAre("a:f32[N,4] = Neg(x)", "b:f32[N,4] = Relu(a)", "y:f32[N,4] = Add(b, a)"));
}

TEST_F(OnnxTest, KeepsTheOrderOfAFileInOrder) {
  Graph g = one_node("Relu");
  g.nodes = {node({"Neg", "1", ""}, {"x"}, {"a"}), node({"Abs", "2", ""}, {"x"}, {"b"}),
             node({"Relu", "3", ""}, {"b"}, {"c"}), node({"Add", "4", ""}, {"c", "a"}, {"y"})};
  EXPECT_THAT(lines_of(*good(model(g))), ElementsAre("a:f32[N,4] = Neg(x)", "b:f32[N,4] = Abs(x)",
                                                     "c:f32[N,4] = Relu(b)", "y:f32[N,4] = Add(c, a)"));
}

TEST_F(OnnxTest, SaysWhatIsWrongWithTheGraph) {
  Graph cycle = one_node("Relu");
  cycle.nodes = {node({"Add", "p", ""}, {"x", "b"}, {"a"}), node({"Relu", "q", ""}, {"a"}, {"b"}),
                 node({"Neg", "after", ""}, {"b"}, {"y"})};
  EXPECT_THAT(
      bad(model(cycle), REGIE_INVALID_MODEL),
      AllOf(HasSubstr("cycle"), testing::AnyOf(HasSubstr("node 'p' (Add)"), HasSubstr("node 'q' (Relu)"))));

  EXPECT_THAT(bad(model(one_node("Relu", {}, {"ghost"})), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("model.onnx: node 'it' (Relu)"), HasSubstr("'ghost'")));

  Graph twice = one_node("Relu");
  twice.nodes.push_back(node({"Neg", "again", ""}, {"x"}, {"y"}));
  EXPECT_THAT(bad(model(twice), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("node 'again' (Neg)"), HasSubstr("'y'"), HasSubstr("'it'")));

  Graph input_again = one_node("Relu");
  input_again.nodes.push_back(node({"Neg", "again", ""}, {"x"}, {"x"}));
  EXPECT_THAT(bad(model(input_again), REGIE_INVALID_MODEL), HasSubstr("'x'"));

  Graph no_maker = one_node("Relu");
  no_maker.outputs.push_back(output("z"));
  EXPECT_THAT(bad(model(no_maker), REGIE_INVALID_MODEL), HasSubstr("output 'z'"));

  Graph two_outputs = one_node("Relu");
  two_outputs.outputs.push_back(output("y"));
  EXPECT_THAT(bad(model(two_outputs), REGIE_INVALID_MODEL), HasSubstr("two outputs 'y'"));

  Graph two_inputs = one_node("Relu");
  two_inputs.inputs.push_back(value("x", kFloat, {"2"}));
  EXPECT_THAT(bad(model(two_inputs), REGIE_INVALID_MODEL), HasSubstr("input 'x'"));

  Graph two_weights = one_node("Add", {}, {"x", "w"}, {floats("w", {1}, {1}), floats("w", {1}, {2})});
  EXPECT_THAT(bad(model(two_weights), REGIE_INVALID_MODEL), HasSubstr("initializer 'w'"));

  Graph wrong_type = one_node("Relu");
  wrong_type.outputs = {output("y", kInt64)};
  EXPECT_THAT(bad(model(wrong_type), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("'y'"), HasSubstr("i64"), HasSubstr("f32")));

  Graph no_output = one_node("Relu");
  no_output.outputs.clear();
  EXPECT_THAT(bad(model(no_output), REGIE_INVALID_MODEL), HasSubstr("no outputs"));

  EXPECT_THAT(bad(model(one_node("Relu", {}, {"x", "x"})), REGIE_INVALID_MODEL), HasSubstr("takes 1 input"));
  EXPECT_THAT(bad(model(one_node("Add", {}, {"", "x"})), REGIE_INVALID_MODEL),
              HasSubstr("input 0 is missing"));

  Graph shapes = one_node("MatMul", {}, {"x", "w"}, {floats("w", {3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_THAT(bad(model(shapes), REGIE_INVALID_MODEL), HasSubstr("model.onnx: node 'it' (MatMul)"));
}

TEST_F(OnnxTest, OutputsMayBeInputsAndWeights) {
  Graph g = one_node("Relu", {}, {"x"}, {floats("w", {2}, {1, 2})});
  g.outputs = {output("y"), output("x"), output("w")};
  auto graph = good(model(g));
  EXPECT_EQ(graph->region(0).result_count, 3u);
  EXPECT_EQ(graph->region(0).results[1], graph->region(0).args[0]);
}

TEST_F(OnnxTest, AnInitializerIsTheDefaultOfAnInput) {
  Graph g = one_node("Add", {}, {"x", "w"}, {floats("w", {1}, {3}), floats("unread", {1}, {4})});
  g.inputs.push_back(value("w", kFloat, {"1"}));
  auto graph = good(model(g));
  ASSERT_EQ(graph->region(0).arg_count, 2u);
  const uint32_t x = graph->region(0).args[0], w = graph->region(0).args[1];
  EXPECT_FALSE(graph->default_of(x));
  ASSERT_TRUE(graph->default_of(w));
  EXPECT_EQ(graph->default_of(w)->as<float>()[0], 3.0f);
  EXPECT_THAT(lines_of(*graph), ElementsAre("y:f32[N,4] = Add(x, w)"));

  auto folded = good(model(g), {{"defaults", "constant"}});
  EXPECT_EQ(folded->region(0).arg_count, 1u);
  EXPECT_THAT(lines_of(*folded), ElementsAre("y:f32[N,4] = Add(x, [3])"));
}

TEST_F(OnnxTest, AnInitializerMakesAnInputOfAnOldFileAWeight) {
  Graph g = one_node("Add", {}, {"x", "w"}, {floats("w", {1}, {3})});
  g.inputs.push_back(value("w", kFloat, {"1"}));
  std::string old = model(g);
  ASSERT_EQ(old.substr(0, 2), "\x08\x08");  // the IR version
  old[1] = 3;
  auto graph = good(old);
  EXPECT_EQ(graph->region(0).arg_count, 1u);
  EXPECT_THAT(lines_of(*graph), ElementsAre("y:f32[N,4] = Add(x, [3])"));
}

// Exporters leave other sizes behind than those of the tensor.
TEST_F(OnnxTest, TheSizesOfADefaultAreThoseOfItsTensor) {
  Graph g = one_node("Add", {}, {"x", "w"}, {floats("w", {4}, {1, 2, 3, 4})});
  g.inputs.push_back(value("w", kFloat, {"1", "3"}));
  EXPECT_EQ(type_text(*good(model(g)), 1), "f32[4]");
  g.inputs.back() = value("w", kFloat, {"M"});
  EXPECT_EQ(type_text(*good(model(g)), 1), "f32[M]");
  g.inputs.back() = value("w", kFloat, {}, false);
  EXPECT_EQ(type_text(*good(model(g)), 1), "f32[w_0]");
  g.inputs.back() = value("w", kInt64, {"4"});
  EXPECT_THAT(bad(model(g), REGIE_INVALID_MODEL), HasSubstr("initializer 'w'"));
}

TEST_F(OnnxTest, NamesAreText) {
  Graph g = one_node("Relu");
  g.name = "a\x1b[1m";
  g.nodes = {node({"Relu", "caf\xc3\xa9\xff\n", ""}, {"x"}, {"y"})};
  auto graph = good(model(g));
  EXPECT_EQ(graph->name(), "a?[1m");
  EXPECT_EQ(regie::view(graph->node(graph->region(0).first).name), "caf\xc3\xa9??");
  for (const char* name : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "a\nb"}) {
    g.nodes = {node({"Relu", "r", ""}, {"x"}, {name}), node({"Relu", "s", ""}, {name}, {"y"})};
    EXPECT_THAT(bad(model(g), REGIE_INVALID_MODEL),
                AllOf(HasSubstr("node 'r' (Relu)"), HasSubstr("not UTF-8")))
        << name;
  }
  g.nodes = {node({"R\xfflu", "r", ""}, {"x"}, {"y"})};
  EXPECT_THAT(bad(model(g), REGIE_UNSUPPORTED), HasSubstr("operator R?lu (node 'r')"));
}

TEST_F(OnnxTest, ListsAllOperatorsThatItDoesNotKnow) {
  Graph g = one_node("Relu");
  g.nodes = {node({"Foo", "f1", ""}, {"x"}, {"a"}), node({"Foo", "f2", ""}, {"a"}, {"b"}),
             node({"Bar", "b1", "com.foo"}, {"b"}, {"c"}), node({"Relu", "r", ""}, {"c"}, {"y"})};
  EXPECT_THAT(bad(model(g, Imports{{"", 21}, {"com.foo", 1}}), REGIE_UNSUPPORTED),
              AllOf(HasSubstr("2 operators: Foo (node 'f1' and 1 more), com.foo.Bar (node 'b1')")));
  g.nodes = {node({"Bar", "b1", "com.foo"}, {"x"}, {"y"})};
  EXPECT_THAT(bad(model(g, Imports{{"", 21}, {"com.foo", 1}}), REGIE_UNSUPPORTED),
              HasSubstr("operator com.foo.Bar (node 'b1') is not supported"));
  EXPECT_THAT(bad(model(g), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("does not import"), HasSubstr("'com.foo'")));
}

// Operators that passes make are no operators of files.
TEST_F(OnnxTest, FilesHaveNoOperatorsOfRegie) {
  Graph g = one_node("Relu");
  g.nodes = {node({"Copy", "c", "regie"}, {"x"}, {"y"})};
  EXPECT_THAT(bad(model(g, Imports{{"", 21}, {"regie", 1}}), REGIE_UNSUPPORTED),
              HasSubstr("operator regie.Copy (node 'c') is not supported"));
}

TEST_F(OnnxTest, ChecksOperatorSets) {
  EXPECT_THAT(bad(model(one_node("Relu"), 99), REGIE_UNSUPPORTED),
              AllOf(HasSubstr("99"), HasSubstr("1 to 28")));
  EXPECT_THAT(bad(model(one_node("Relu"), Imports{}), REGIE_INVALID_MODEL),
              HasSubstr("imports no operator set"));
  EXPECT_THAT(bad(model(one_node("Relu"), Imports{{"", 13}, {"ai.onnx", 14}}), REGIE_INVALID_MODEL),
              HasSubstr("twice"));
  EXPECT_THAT(bad(model(one_node("HardSwish"), 13), REGIE_INVALID_MODEL),
              HasSubstr("from operator set 14 on"));
  for (int64_t opset = 1; opset <= 28; ++opset)
    EXPECT_THAT(lines_of(*good(model(one_node("Relu"), opset))), ElementsAre("y:f32[N,4] = Relu(x)"))
        << opset;
}

TEST_F(OnnxTest, ChecksAttributes) {
  EXPECT_THAT(bad(model(one_node("Relu", {attr("slope", 1)})), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("no attribute 'slope'"), HasSubstr("none")));
  EXPECT_THAT(bad(model(one_node("Softmax", {attr_float("axis", 1)})), REGIE_INVALID_MODEL),
              HasSubstr("'axis' must be an integer, but is a float"));
  EXPECT_THAT(bad(model(one_node("Softmax", {attr("axis", 1), attr("axis", 1)})), REGIE_INVALID_MODEL),
              HasSubstr("twice"));
  EXPECT_THAT(bad(model(one_node("Softmax", {attr_of_call("axis", kAttrInt, "q")})), REGIE_INVALID_MODEL),
              HasSubstr("'q'"));
  EXPECT_THAT(lines_of(*good(model(one_node("LeakyRelu", {attr_float("alpha", 0.01f)})))),
              ElementsAre("y:f32[N,4] = LeakyRelu(x) {alpha=0.01}"));
}

// ---- Shapes of inputs ----

TEST_F(OnnxTest, NamesDimensions) {
  Graph g;
  g.inputs = {value("x", kFloat, {"?", "batch size", "-1", "0"})};
  g.nodes = {node({"Relu", "r", ""}, {"x"}, {"y"})};
  g.outputs = {output("y")};
  auto graph = good(model(g));
  EXPECT_EQ(type_text(*graph, graph->region(0).args[0]), "f32[x_0,batch_size,x_2,0]");
}

TEST_F(OnnxTest, OptionShapeFixesDimensions) {
  Graph g;
  g.inputs = {value("x", kFloat, {"N", "C"}), value("z", kFloat, {"N", "1"})};
  g.nodes = {node({"Mul", "m", ""}, {"x", "z"}, {"y"})};
  g.outputs = {output("y")};
  const std::string m = model(g);
  EXPECT_THAT(lines_of(*good(m)), ElementsAre("y:f32[N,C] = Mul(x, z)"));
  auto graph = good(m, {{"shape", "x=16,?"}});
  EXPECT_EQ(type_text(*graph, graph->region(0).args[1]), "f32[16,1]");
  EXPECT_THAT(lines_of(*graph), ElementsAre("y:f32[16,C] = Mul(x, z)"));
  EXPECT_THAT(lines_of(*good(m, {{"shape", "x = 16, 5"}, {"shape", "z=16,1"}})),
              ElementsAre("y:f32[16,5] = Mul(x, z)"));
  EXPECT_THAT(lines_of(*good(m, {{"shape", "x=B,5"}})), ElementsAre("y:f32[B,5] = Mul(x, z)"));

  EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"shape", "q=1,2"}}),
              AllOf(HasSubstr("'q'"), HasSubstr("'x', 'z'")));
  EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"shape", "x=1,2,3"}}), HasSubstr("'x' has 2 dimensions, not 3"));
  EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"shape", "z=3,2"}}), HasSubstr("cannot be made 2"));
  EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"shape", "x=3,2"}, {"shape", "z=4,1"}}), HasSubstr("'N'"));
  for (const char* text : {"x", "x=1;2", "x=-1,2", "x=1,", "x=1.5,2", "x=99999999999999999999,1"})
    EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"shape", text}}), HasSubstr("option 'shape'")) << text;
  EXPECT_THAT(bad(m, REGIE_INVALID_INPUT, {{"size", "x=1,2"}}),
              AllOf(HasSubstr("'size'"), HasSubstr("shape")));
}

TEST_F(OnnxTest, AnInputWithoutRankNeedsTheOption) {
  Graph g;
  g.inputs = {value("x", kFloat, {}, false)};
  g.nodes = {node({"Relu", "r", ""}, {"x"}, {"y"})};
  g.outputs = {output("y")};
  EXPECT_THAT(bad(model(g), REGIE_INVALID_INPUT), AllOf(HasSubstr("input 'x'"), HasSubstr("shape")));
  EXPECT_THAT(lines_of(*good(model(g), {{"shape", "x=2,N"}})), ElementsAre("y:f32[2,N] = Relu(x)"));
  g.inputs = {Message().text(1, "x").message(2, Message().message(4, Message()))};
  EXPECT_THAT(bad(model(g), REGIE_UNSUPPORTED), HasSubstr("input 'x'"));
  g.inputs = {value("x", 27, {"2"})};
  EXPECT_THAT(bad(model(g), REGIE_UNSUPPORTED), HasSubstr("element type 27"));
}

// ---- Functions ----

TEST_F(OnnxTest, InlinesFunctions) {
  // scale(x; inner) = x * inner; twice(x; outer) = scale(x; outer) + scale(scale(x; outer); 10)
  const Message scale = Message()
                            .text(1, "scale")
                            .text(4, "x")
                            .text(5, "y")
                            .text(6, "inner")
                            .text(10, "loc")
                            .message(9, import_of("", 13))
                            .message(7, node({"Constant", "", ""}, {}, {"t"},
                                             {attr_of_call("value_float", kAttrFloat, "inner")}))
                            .message(7, node({"Mul", "", ""}, {"x", "t"}, {"y"}));
  const Message twice =
      Message()
          .text(1, "twice")
          .text(4, "x")
          .text(5, "y")
          .text(6, "outer")
          .text(10, "loc")
          .message(9, import_of("", 13))
          .message(9, import_of("loc", 1))
          .message(7, node({"scale", "", "loc"}, {"x"}, {"t"}, {attr_of_call("inner", kAttrFloat, "outer")}))
          .message(7, node({"scale", "", "loc"}, {"t"}, {"u"}, {attr_float("inner", 10)}))
          .message(7, node({"Add", "", ""}, {"u", "t"}, {"y"}));
  Graph g = one_node("Relu");
  g.nodes = {node({"twice", "a", "loc"}, {"x"}, {"t"}, {attr_float("outer", 3)}),
             node({"twice", "b", "loc"}, {"t"}, {"y"}, {attr_float("outer", 0.5f)})};
  EXPECT_THAT(lines_of(*good(model(g, Imports{{"", 13}, {"loc", 1}}, {scale, twice}))),
              ElementsAre("a/t:f32[N,4] = Mul(x, [3])", "a/u:f32[N,4] = Mul(a/t, [10])",
                          "t:f32[N,4] = Add(a/u, a/t)", "b/t:f32[N,4] = Mul(t, [0.5])",
                          "b/u:f32[N,4] = Mul(b/t, [10])", "y:f32[N,4] = Add(b/u, b/t)"));
}

TEST_F(OnnxTest, FunctionsWithDefaultsAndPassedInputs) {
  const Message f = Message()
                        .text(1, "f")
                        .text(4, "x")
                        .text(4, "unused")
                        .text(5, "x")
                        .text(5, "y")
                        .text(10, "loc")
                        .message(9, import_of("", 21))
                        .message(11, attr_float("slope", 0.25f))
                        .message(7, node({"LeakyRelu", "", ""}, {"x"}, {"y"},
                                         {attr_of_call("alpha", kAttrFloat, "slope")}));
  Graph g = one_node("Relu");
  g.nodes = {node({"f", "call", "loc"}, {"x"}, {"same", "y"})};
  g.outputs = {output("y"), output("same")};
  EXPECT_THAT(lines_of(*good(model(g, Imports{{"", 21}, {"loc", 1}}, {f}))),
              ElementsAre("y:f32[N,4] = LeakyRelu(x) {alpha=0.25}", "same:f32[N,4] = Identity(x)"));
}

TEST_F(OnnxTest, RefusesEndlessFunctions) {
  auto calls = [](const std::string& name, const std::string& other, int times) {
    Message f =
        Message().text(1, name).text(4, "x").text(5, "y").text(10, "loc").message(9, import_of("loc", 1));
    std::string from = "x";
    for (int i = 0; i < times; ++i) {
      const std::string to = i + 1 == times ? "y" : "t" + std::to_string(i);
      f.message(7, node({other, "", "loc"}, {from}, {to}));
      from = to;
    }
    return f;
  };
  Graph g = one_node("Relu");
  g.nodes = {node({"f0", "call", "loc"}, {"x"}, {"y"})};
  const Imports imports{{"", 21}, {"loc", 1}};
  EXPECT_THAT(bad(model(g, imports, {calls("f0", "f1", 1), calls("f1", "f0", 1)}), REGIE_INVALID_MODEL),
              HasSubstr("calls itself"));
  std::vector<Message> doubling;
  for (int i = 0; i < 40; ++i)
    doubling.push_back(calls("f" + std::to_string(i), "f" + std::to_string(i + 1), 2));
  EXPECT_THAT(bad(model(g, imports, doubling), REGIE_LIMIT), HasSubstr("expand to more than"));
}

// ---- Broken files ----

TEST_F(OnnxTest, EveryTruncationIsAnError) {
  const std::string whole = file_bytes(REGIE_TEST_MODELS_DIR "/digits/digits.onnx");
  ASSERT_GT(whole.size(), 100000u);
  size_t tried = 0;
  for (size_t size = 0; size < whole.size(); size += 64, ++tried) {
    auto r = import(whole.substr(0, size));
    ASSERT_FALSE(r.ok()) << size;
    ASSERT_EQ(r.status().code(), REGIE_INVALID_MODEL) << size << ": " << r.status().to_string();
    ASSERT_EQ(r.status().where(), "model.onnx") << size << ": " << r.status().to_string();
  }
  EXPECT_GT(tried, 1500u);
  EXPECT_THAT(bad(whole.substr(0, 1000), REGIE_INVALID_MODEL),
              AllOf(HasSubstr("truncated"), HasSubstr("of 1000")));
  EXPECT_THAT(bad("", REGIE_INVALID_MODEL), HasSubstr("empty"));
}

TEST_F(OnnxTest, RandomBytesAreNoModel) {
  std::mt19937 random(7);
  for (size_t size : {1u, 2u, 16u, 100u, 5000u, 100000u}) {
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    bytes[0] = static_cast<char>(0xff);
    EXPECT_THAT(bad(bytes, REGIE_INVALID_MODEL), HasSubstr("not a model that any frontend knows: tried onnx"))
        << size;
  }
}

// Any flipped byte gives a model or an error, never a crash; the sanitizers watch.
TEST_F(OnnxTest, FlippedBytesDoNotCrash) {
  Graph g = one_node("Add", {}, {"x", "w"}, {floats("w", {4}, {1, 2, 3, 4})});
  Graph branch;
  branch.nodes = {node({"Neg", "n", ""}, {"y"}, {"r"})};
  branch.outputs = {output("r")};
  g.inputs.push_back(value("c", kBool, {}));
  g.nodes.push_back(
      node({"If", "if", ""}, {"c"}, {"z"},
           {attr_graph("then_branch", branch.message()), attr_graph("else_branch", branch.message())}));
  g.outputs = {output("z")};
  const std::string whole = model(g);
  ASSERT_TRUE(import(whole).ok());
  std::mt19937 random(11);
  size_t errors = 0;
  for (size_t at = 0; at < whole.size(); ++at)
    for (int k = 0; k < 6; ++k) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(k < 3 ? bytes[at] ^ (1 << (random() % 8)) : random());
      auto r = import(bytes);
      if (r.ok()) continue;
      ++errors;
      ASSERT_NE(r.status().code(), REGIE_INTERNAL) << at << ": " << r.status().to_string();
      ASSERT_NE(r.status().code(), REGIE_BAD_PLUGIN) << at << ": " << r.status().to_string();
    }
  EXPECT_GT(errors, whole.size());
}

TEST_F(OnnxTest, DeepNestingIsRefused) {
  Graph inner;
  inner.nodes = {node({"Neg", "n", ""}, {"x"}, {"r0"})};
  inner.outputs = {output("r0")};
  auto nested = [&](int depth) {
    Graph g = inner;
    for (int i = 1; i <= depth; ++i) {
      Graph outer;
      const std::string to = "r" + std::to_string(i);
      outer.nodes = {
          node({"If", "if", ""}, {"c"}, {to},
               {attr_graph("then_branch", g.message()), attr_graph("else_branch", inner.message())})};
      outer.outputs = {output(to)};
      g = outer;
    }
    g.inputs = {value("x", kFloat, {"N"}), value("c", kBool, {})};
    return model(g);
  };
  EXPECT_THAT(bad(nested(101), REGIE_UNSUPPORTED), HasSubstr("deeper than 100"));
  auto deep = good(nested(100));
  EXPECT_EQ(deep->region_count(), 201u);
}

}  // namespace
}  // namespace onnx_test
