#include "text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "ir/verify.h"
#include "regie_test_paths.h"
#include "support/random_graph.h"

namespace regie {
namespace {

using testing::HasSubstr;

// Parses, verifies, prints.
std::string canonical(std::string_view text) {
  auto g = parse(text, "t.rg");
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.status().to_string());
  if (!g.ok()) return {};
  Status s = verify(**g);
  EXPECT_TRUE(s.ok()) << s.to_string();
  return print(**g);
}

std::string error_of(std::string_view text) {
  auto g = parse(text, "t.rg");
  EXPECT_FALSE(g.ok()) << "parsed, but should not: " << text;
  if (g.ok()) return {};
  EXPECT_EQ(g.status().code(), REGIE_INVALID_INPUT);
  return g.status().to_string();
}

// ---- What is canonical stays as it is ----

void expect_unchanged(std::string_view text) { EXPECT_EQ(canonical(text), text); }

TEST(Text, TheExampleOfTheDesign) {
  expect_unchanged(
      R"rg(graph @tiny(%x: f32[N,8,8,3], %w: const f32[16,3,3,3], %k: const f32[16]) -> (%y) where N in 1..32 {
  %c: f32[N,16,6,6] = Conv(%x, %w, %k) {strides = [1, 1]} @from("conv1")
  %y: f32[N,16,6,6] = Relu(%c) @from("act1")
}
)rg");
}

TEST(Text, InputsWithDefaults) {
  expect_unchanged(
      R"rg(graph @d(%x: f32[2], %w: f32[N] = f32[2] [1.0, 2.0], %k: i64[] = i64[] 3) -> (%y) {
  %y: f32[N] = Add(%x, %w)
}
)rg");
  auto g = parse("graph @d(%x: f32[N] = f32[2] [1.0, 2.0], %k: f32[3]) -> (%x) {}", "t.rg");
  ASSERT_TRUE(g.ok());
  const uint32_t x = (*g)->region(0).args[0], k = (*g)->region(0).args[1];
  ASSERT_TRUE((*g)->default_of(x));
  EXPECT_EQ((*g)->default_of(x)->as<float>()[1], 2.0f);
  EXPECT_FALSE((*g)->default_of(k));
  EXPECT_FALSE((*g)->is_constant(x));
  auto other = parse("graph @d(%x: f32[N] = f32[2] [1.0, 3.0], %k: f32[3]) -> (%x) {}", "t.rg");
  EXPECT_THAT(same_graph(**g, **other).message(), HasSubstr("the defaults of"));
}

TEST(Text, OutputsWhoseRankIsTold) {
  expect_unchanged(
      R"rg(graph @r(%x: f32[6], %d: i64[2], %z: f32[3]) -> (%x as "y" shaped %d, %z, %x as "again" shaped %d) {
}
)rg");
  auto g = parse("graph @r(%x: f32[6], %d: i64[2], %z: f32[3]) -> (%x shaped %d, %z) {}", "t.rg");
  ASSERT_TRUE(g.ok());
  EXPECT_EQ((*g)->region(0).result_count, 3u);
  EXPECT_EQ((*g)->output_shape(0), 2u);
  EXPECT_EQ((*g)->output_shape(1), REGIE_NONE);
  EXPECT_EQ((*g)->region(0).results[2], (*g)->region(0).args[1]);
}

TEST(Text, Attributes) {
  expect_unchanged(R"rg(graph @a() -> () {
  Op() {a = 1, b = -9223372036854775808, c = 1.0, d = 0.1d, e = 1e-05, f = inf, g = -inf, h = nan, i = -0.0}
  Op() {a = "text", b = [1, 2], c = [1.0, 2.5], d = ["x", ""], e = [], f = floats [], g = strings []}
  Op() {"odd key" = 1, t = f32[2] [1.0, -2.0], u = i64[] 3, v = string[1] ["s"], w = bool[2] [true, false]}
}
)rg");
}

TEST(Text, ConstantsOfEveryElementType) {
  expect_unchanged(R"rg(graph @c() -> () {
  %f32: const f32[4] = [1.0, 0.1, nan(0x7fc00001), -nan]
  %f64: weight f64[2] = [0.1, 1e-300]
  %f16: const f16[3] = [1.5, 65504.0, 5.9604645e-08]
  %bf16: const bf16[1] = [3.140625]
  %i8: const i8[2] = [-128, 127]
  %u8: const u8[1] = [255]
  %i16: const i16[1] = [-32768]
  %u16: const u16[1] = [65535]
  %i32: const i32[1] = [-2147483648]
  %u32: const u32[1] = [4294967295]
  %i64: const i64[] = 7
  %u64: const u64[1] = [18446744073709551615]
  %bool: const bool[3] = [true, false, 0x2]
  %string: const string[2] = ["a\n\"b\"", "\xff"]
  %c64: const c64[1] = [1.0, -2.0]
  %i4: const i4[3] = [-8, 7, 0]
  %u4: const u4[2] = [15, 1]
  %f8: const f8e4m3fn[2] = [0x38, 0xff]
  %f4: const f4e2m1[3] = [0xf, 0x0, 0x1]
  %e8: const f8e8m0[2] = [0x7f, 0xff]
  %u2: const u2[5] = [3, 0, 1, 2, 1]
  %i2: const i2[3] = [-2, 1, -1]
  %empty: const f32[0,3] = []
}
)rg");
}

TEST(Text, ControlFlowWithCaptures) {
  expect_unchanged(R"rg(graph @branch(%c: bool[], %x: f32[2]) -> (%y) {
  %k: const f32[2] = [1.0, 2.0]
  %y: f32[2] = If(%c, %x) {depth = 1} @name("if1") @from("if1 (If)") region @then_branch(%p: f32[2]) -> (%q) {
    %q: f32[2] = Add(%p, %k)
  } region @else_branch(%p#1: f32[2]) -> (%p#1) {
  }
}
)rg");
}

TEST(Text, TypesFormatsAndContainers) {
  expect_unchanged(
      R"rg(graph @t(%a: f32[*], %b: ?[2,?], %c: seq(f32[2]), %d: opt(i64[]), %e: opt(seq(f16[*])), %f: f32[1,4,8,8,16]:NC1HWC0<16>/NCHW, %g: f32[2]:opaque<3>, %h: f32[2]:ND/NHWC, %i: f32[2*N+1,floordiv(N+1, 2)]) -> () where N in 3.. {
}
)rg");
}

TEST(Text, AssignmentsAndEngines) {
  expect_unchanged(
      R"rg(graph @placed(%x: f32[2] @space(0)) -> (%y) on "cpu" = "host" 0 space 0, "npu" = "card" 1 space 1 {
  %h: f32[2] @space(0) @alias(%y, 64), _ = Split(%x) @engine("npu") @stream(2)
  Sink(%h) @label(0) @engine("cpu")
  %y: f32[2] @space(0) = Relu(%h) @after(%h, 0) @engine("cpu")
}
)rg");
}

TEST(Text, OutputNamesDoubledNamesAndUnnamedValues) {
  expect_unchanged(R"rg(graph @n(%x: f32[2]) -> (%y as "scores", %y as "again", %0 as "third") {
  %y: f32[2] = Relu(%x)
  %y#1: f32[2] = Relu(%y)
  %0: f32[2] = Relu(%y#1)
  %"a/b:0": f32[2] = Relu(%0)
  %"7": f32[2] = Relu(%"a/b:0")
  %1: f32[2] = "aten::relu"(%"7")
}
)rg");
}

TEST(Text, SymbolsWithRangesAndData) {
  expect_unchanged(
      R"rg(graph @s(%x: f32[N,K,"batch size"]) -> () where K in 0..100 data, N in 1..32, "batch size" in 2.. {
}
)rg");
}

// ---- What people write ----

TEST(Text, SloppyInputPrintsCanonically) {
  EXPECT_EQ(canonical(R"rg(// a comment
graph(%x:f32[N,2],%w: weight f32[2,2])->(%y)where N in ..8{
  %y=MatMul(%x,%w)@from("b (B)","a (A)") {
    beta = 2.0, alpha = 1} @name("mm") // behind
  %k : const i64[2,2]=[[1,2],
                       [3,4]]
  %_, %z = Split(%_, %y, _)
  %v = Relu(%z) @space(1) {}
})rg"),
            R"rg(graph (%x: f32[N,2], %w: weight f32[2,2]) -> (%y) where N in 0..8 {
  %k: const i64[2,2] = [1, 2, 3, 4]
  %y = MatMul(%x, %w) {alpha = 1, beta = 2.0} @name("mm") @from("a (A)", "b (B)")
  _, %z = Split(_, %y, _)
  %v @space(1) = Relu(%z)
}
)rg");
}

// docs/graph.md: every block of text in it is a graph, in canonical form.
TEST(Text, TheDocumentsGraphsAreCanonical) {
  auto page = read_text_file(REGIE_TEST_SOURCE_DIR "/docs/graph.md");
  ASSERT_TRUE(page.ok());
  size_t blocks = 0;
  for (size_t at = page->find("```rg\n"); at != std::string::npos; at = page->find("```rg\n", at)) {
    at += 6;
    std::string text = page->substr(at, page->find("```", at) - at);
    EXPECT_EQ(canonical(text), text);
    ++blocks;
  }
  EXPECT_EQ(blocks, 5u);
}

TEST(Text, RangesAreKnownBeforeTheTypesThatUseThem) {
  // With N >= 1, max(N, 1) is N.
  EXPECT_THAT(canonical("graph @g(%x: f32[max(N, 1)]) -> () where N in 1..4 {}"), HasSubstr("%x: f32[N]"));
}

TEST(Text, SeveralGraphsInAFile) {
  auto graphs = parse_all("graph @a() -> () {}\ngraph @b() -> () where N in 1..2 {}\n", "t.rg");
  ASSERT_TRUE(graphs.ok());
  ASSERT_EQ(graphs->size(), 2u);
  EXPECT_EQ((*graphs)[0]->name(), "a");
  EXPECT_EQ((*graphs)[1]->name(), "b");
  EXPECT_EQ((*graphs)[0]->dims().symbol_count(), 0u);
}

TEST(Text, LargeConstantsPrintAsDigestsAndComeBack) {
  Graph g;
  Tensor t = Tensor::zeros(REGIE_F32, std::vector<int64_t>{100});
  static_cast<float*>(t.mutable_data())[7] = 3;
  uint32_t w = g.add_constant(0, REGIE_VALUE_WEIGHT, t, "w");
  std::string text = print(g);
  EXPECT_THAT(text, HasSubstr("%w: weight f32[100] = digest(\"" + t.digest() + "\")"));
  ParseOptions options;
  options.constants = [&](std::string_view digest, regie_elem elem,
                          std::span<const int64_t> dims) -> Result<Tensor> {
    EXPECT_EQ(elem, REGIE_F32);
    EXPECT_EQ(dims.size(), 1u);
    return digest == t.digest() ? t : Tensor();
  };
  auto back = parse(text, "t.rg", options);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(same_graph(g, **back).ok());
  auto abstract = parse(text, "t.rg");
  ASSERT_TRUE(abstract.ok());
  EXPECT_THAT(print(**abstract), HasSubstr("(%w: weight f32[100])"));
  EXPECT_FALSE(same_graph(g, **abstract).ok());
  PrintOptions all;
  all.inline_elements = 1000;
  EXPECT_THAT(print(g, all), HasSubstr("0.0, 3.0, 0.0"));
  EXPECT_EQ(g.value(w).kind, uint32_t{REGIE_VALUE_WEIGHT});
}

TEST(Text, PrintOptionsLeaveThingsOut) {
  auto g = parse(R"rg(graph @g(%x: f32[2]) -> (%y) on "e" = "d" 0 space 0 {
  %y: f32[2] @space(1) = Relu(%x) @from("r (Relu)") @engine("e") @stream(1)
})rg",
                 "t.rg");
  ASSERT_TRUE(g.ok());
  PrintOptions bare;
  bare.assignments = false;
  bare.provenance = false;
  EXPECT_EQ(print(**g, bare), "graph @g(%x: f32[2]) -> (%y) {\n  %y: f32[2] = Relu(%x)\n}\n");
  EXPECT_EQ(print_node(**g, 0),
            "%y: f32[2] @space(1) = Relu(%x) @from(\"r (Relu)\") @engine(\"e\") @stream(1)");
}

// ---- Errors: place, and what was expected ----

struct BadText {
  const char* text;
  const char* message;  // a part of it
};

class TextErrors : public testing::TestWithParam<BadText> {};

TEST_P(TextErrors, NamePlaceAndReason) {
  EXPECT_THAT(error_of(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, TextErrors,
    testing::Values(
        BadText{"", "t.rg:1:1: expected 'graph', not the end of the text"},
        BadText{"grph @g() -> () {}", "t.rg:1:1: expected 'graph', not 'grph'"},
        BadText{"graph @g() -> () {", "t.rg:1:19: expected a node or '}', not the end of the text"},
        BadText{"graph @g() -> () {} x", "t.rg:1:21: expected the end of the text after one graph"},
        BadText{"graph @g() -> (%y) {}", "t.rg:1:16: '%y' is not defined up to here"},
        BadText{"graph @g() -> () {\n  Op(%x)\n}", "t.rg:2:6: '%x' is not defined up to here"},
        BadText{"graph @g() -> () {\n  %a = Op(%b)\n  %b = Op(%a)\n}", "t.rg:2:11: '%b' is not defined"},
        BadText{"graph @g(%x: f32[2], %x: f32[2]) -> () {}",
                "t.rg:1:22: '%x' is defined twice; first in line 1"},
        BadText{"graph @g(%x: f32[2]) -> () {\n %x = Op(%x)\n}", "t.rg:2:2: '%x' is defined twice"},
        BadText{"graph @g(%x: f33[2]) -> () {}", "t.rg:1:14: unknown element type 'f33'"},
        BadText{"graph @g(%x: f32[2] = f32[3] [1, 2, 3]) -> () {}",
                "t.rg:1:23: its default is not of its type"},
        BadText{"graph @g(%x: f32[2] = i32[2] [1, 2]) -> () {}", "t.rg:1:23: its default is not of its type"},
        BadText{"graph @g(%x: f32[N] = f32[3] [1, 2, 3]) -> () where N in 0..2 {}", "t.rg:1:23: its default"},
        BadText{"graph @g(%x: f32[2]) -> (%x shaped %x) {}", "t.rg:1:36: dimensions are a list of i64"},
        BadText{"graph @g(%x: f32) -> () {}", "t.rg:1:17: expected '[' and dimensions"},
        BadText{"graph @g(%x: f32[-2]) -> () {}", "t.rg:1:18: a dimension must not be negative"},
        BadText{"graph @g(%x: f32[2,) -> () {}", "t.rg:1:20: expected ',' or ']' after a dimension"},
        BadText{"graph @g(%x: f32[N**2]) -> () {}", "t.rg:1:18"},
        BadText{"graph @g(%x: f32[99999999999999999999]) -> () {}", "does not fit a signed 64-bit integer"},
        BadText{"graph @g(%x: f32[2]:NCDHW) -> () {}", "t.rg:1:21: unknown format 'NCDHW'; known: ND, NCHW"},
        BadText{"graph @g(%x: f32[N]) -> () where N in 5..2 {}", "t.rg:1:34: the range of N is empty"},
        BadText{"graph @g() -> () {\n Op() {a = 1, a = 2}\n}", "t.rg:2:15: attribute 'a' is there twice"},
        BadText{"graph @g() -> () {\n Op() {a = }\n}", "t.rg:2:12: expected a value: 1, 1.0"},
        BadText{"graph @g() -> () {\n Op() {a = [1, \"x\"]}\n}", "t.rg:2:16: expected a number"},
        BadText{"graph @g() -> () {\n Op() {a = 1e99}\n}",
                "beyond single precision; for a double write '1e99d'"},
        BadText{"graph @g() -> () {\n Op() @nme(\"x\")\n}",
                "t.rg:2:8: unknown annotation '@nme' here; known: @name"},
        BadText{"graph @g() -> () {\n Op() @after(%q)\n}", "t.rg:2:14: '%q' is not defined"},
        BadText{"graph @g() -> () {\n Op() @after(3)\n}", "t.rg:2:14: no node up to here has @label(3)"},
        BadText{"graph @g() -> () {\n %k: const i8[2] = [1, 300]\n}",
                "t.rg:2:24: '300' does not fit the element type"},
        BadText{"graph @g() -> () {\n %k: const i8[2] = [1]\n}", "t.rg:2:20: expected 2 elements"},
        BadText{"graph @g() -> () {\n %k: const i8[2] = [1, 2, 3]\n}", "t.rg:2:20: expected 2 elements"},
        BadText{"graph @g() -> () {\n %k: const f32[1000000000000] = [1.0]\n}",
                "the text is shorter than that"},
        BadText{"graph @g() -> () {\n %k: const f32[N] = [1.0]\n}",
                "t.rg:2:12: what has data must be a tensor with constant"},
        BadText{"graph @g() -> () {\n Op() {a = \"x\n}",
                "t.rg:2:12: this string has no closing '\"' on its line"},
        BadText{"graph @g() -> () {\n Op() {a = \"\\q\"}\n}", "unknown escape \\ before 'q'"},
        BadText{"graph @g() -> () {\n %1x = Op()\n}",
                "names that begin with a digit are written with quotes: %\"1x\""},
        BadText{"graph @g() -> () {\n %a/b = Op()\n}", "t.rg:2:4: expected '='"},
        BadText{"graph @g() -> () {\n \x01\n}", "t.rg:2:2: byte 0x01 may only stand inside a string"},
        BadText{"graph @g(%x: f32[2]) -> (%x as \"a\", %x as \"a\") {}", "two outputs are named 'a'"},
        BadText{"graph @g(%x: f32[2]) -> () {\n Call() region @r() -> (%x) {}\n}",
                "'%x' is a value of an enclosing region; make it an operand"},
        BadText{"graph @g(%x: f32[2]) -> () {\n Call() region @r() -> () {\n  Op(%x)\n }\n}",
                "t.rg:3:6: '%x' is a value of an enclosing region"},
        BadText{"graph @g() -> () {\n Call() region @r() -> () {\n  %q = Op()\n }\n Op(%q)\n}",
                "t.rg:5:5: '%q' is not defined"},
        BadText{"graph @g(%x: f32[2], %x#1: f32[2]) -> () {}", "t.rg:1:1: two inputs are named 'x'"},
        BadText{"graph @g(%x: f32[2] @alias(%x, 0)) -> () {}", "t.rg:1:1: value 'x' lies in itself"},
        BadText{"graph @g(%x: f32[2] @alias(%z, 0)) -> () {}", "'%z' is not defined anywhere"},
        BadText{"graph @g(%x: f32[2] @engine(\"e\")) -> () {}", "expected @space or @alias behind a type"}));

// ---- Shapes of text that must not break anything ----

TEST(Text, DeepNestingNeedsNoStack) {
  constexpr int kDepth = 20000;
  std::string text = "graph @deep() -> () {\n";
  for (int i = 0; i < kDepth; ++i) text += "Call() region @r() -> () {\n";
  for (int i = 0; i < kDepth; ++i) text += "}\n";
  text += "}\n";
  auto g = parse(text, "t.rg");
  ASSERT_TRUE(g.ok()) << g.status().to_string();
  EXPECT_TRUE(verify(**g).ok());
  std::string printed = print(**g);
  auto back = parse(printed, "t.rg");
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(same_graph(**g, **back).ok());
  (*g)->remove_node((*g)->region(0).first);
  EXPECT_EQ((*g)->live_node_count(), 0u);
}

TEST(Text, DamagedTextIsAnErrorOrAGraphNeverACrash) {
  std::mt19937_64 random(1);
  test::RandomGraphOptions small;
  small.nodes = 6;
  uint32_t parsed = 0, refused = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::string text = print(*test::RandomGraph(seed, small).make());
    for (int i = 0; i < 60; ++i) {
      std::string damaged = text;
      for (uint64_t k = 1 + random() % 3; k > 0; --k) {
        size_t at = random() % damaged.size();
        switch (random() % 4) {
          case 0:
            damaged[at] = static_cast<char>(random());
            break;
          case 1:
            damaged.erase(at, 1 + random() % 20);
            break;
          case 2:
            damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 30));
            break;
          default:
            damaged.resize(at);
            break;
        }
        if (damaged.empty()) damaged = "g";
      }
      auto g = parse(damaged, "t.rg");
      if (!g.ok()) {
        ++refused;
        EXPECT_THAT(g.status().where(), HasSubstr("t.rg:"));
        continue;
      }
      ++parsed;
      EXPECT_NE(print(**g), "");
    }
  }
  EXPECT_GT(parsed, 20u);
  EXPECT_GT(refused, 200u);
}

// ---- same_graph sees each difference ----

TEST(Text, SameGraphSaysTheFirstDifference) {
  const std::string base = R"rg(graph @g(%x: f32[N,2]) -> (%y as "o") where N in 1..4 {
  %k: const i64[2] = [1, 2]
  %h: f32[2] = Op(%x, %k, _) {a = 1.0} @name("n") @from("f (F)")
  %y: f32[2] @space(1) = Relu(%h) @after(%h) @engine("e") @stream(1)
}
)rg";
  auto g = parse(base, "a.rg");
  ASSERT_TRUE(g.ok());
  const std::pair<const char*, const char*> changes[] = {{"@g(", "@h("},
                                                         {"%x: f32[N,2]", "%x: f32[N,3]"},
                                                         {"f32[N,2]", "f16[N,2]"},
                                                         {"as \"o\"", "as \"p\""},
                                                         {"in 1..4", "in 1..5"},
                                                         {"[1, 2]", "[1, 3]"},
                                                         {"const", "weight"},
                                                         {"%k, _", "_, %k"},
                                                         {"a = 1.0", "a = 2.0"},
                                                         {"a = 1.0", "b = 1.0"},
                                                         {"a = 1.0", "a = 1"},
                                                         {"\"n\"", "\"m\""},
                                                         {"f (F)", "g (F)"},
                                                         {"@space(1)", "@space(0)"},
                                                         {" @after(%h)", ""},
                                                         {"\"e\"", "\"f\""},
                                                         {"@stream(1)", ""},
                                                         {"Relu", "Neg"},
                                                         {"Relu(%h)", "Relu(%x)"},
                                                         {", _)", ")"},
                                                         {"%h: f32[2] =", "%h: f32[2], %z ="}};
  for (auto [from, to] : changes) {
    std::string text = base;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, std::string(from).size(), to);
    auto other = parse(text, "b.rg");
    ASSERT_TRUE(other.ok()) << other.status().to_string() << text;
    Status s = same_graph(**g, **other);
    EXPECT_FALSE(s.ok()) << from << " -> " << to;
    EXPECT_THAT(s.to_string(), HasSubstr("the graphs differ: "));
    EXPECT_FALSE(same_graph(**other, **g).ok()) << from << " -> " << to;
  }
  auto again = parse(base, "c.rg");
  EXPECT_TRUE(same_graph(**g, **again).ok());
}

}  // namespace
}  // namespace regie
