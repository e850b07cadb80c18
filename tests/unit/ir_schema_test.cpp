#include "ir/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/text.h"

namespace regie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOps = R"toml(
schema = 1
revision = "onnx-21"
[types]
float = ["f16", "f32"]
[[op]]
name = "Conv"
doc = "Convolution"
operands = ["X: T", "W: T", "B: T?"]
results = ["Y: T"]
types = { T = "float" }
attributes = ["strides: ints", "group: int = 1", "auto_pad: string = 'NOTSET' in NOTSET|SAME_UPPER|VALID", "axis: int!", "alpha: float = 0.1", "pads: ints = [0, -1]", "scales: floats = [1, 2.5]", "value: tensor"]
[[op]]
name = "Concat"
operands = ["inputs: T*"]
results = ["out: T"]
types = { T = ["f32", "i64"] }
[[op]]
name = "Shape"
operands = ["x: any"]
results = ["y: i64", "more: i64*"]
[[op]]
name = "If"
operands = ["c: bool"]
results = ["out: any*"]
regions = [2, 2]
open_attributes = true
)toml";

class IrSchema : public testing::Test {
 protected:
  void SetUp() override {
    Status s = set_.add_text(kOps, "ops.toml");
    ASSERT_TRUE(s.ok()) << s.to_string();
  }
  // Of the last node of a graph with this body.
  Status check(const std::string& body) {
    auto g =
        parse("graph @g(%x: f32[2], %h: f16[2], %i: i64[2], %b: bool[], %u: ?[*], %d: f64[1]) -> () {\n" +
                  body + "\n}",
              "t.rg");
    EXPECT_TRUE(g.ok()) << g.status().to_string();
    if (!g.ok()) return {};
    graph_ = std::move(*g);
    return set_.check(*graph_, graph_->region(0).last);
  }
  std::string wrong(const std::string& body) {
    Status s = check(body);
    EXPECT_EQ(s.code(), REGIE_INVALID_MODEL) << body;
    return s.to_string();
  }
  SchemaSet set_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(IrSchema, Reads) {
  EXPECT_EQ(set_.revision(), "onnx-21");
  EXPECT_THAT(set_.names(), ElementsAre("Concat", "Conv", "If", "Shape"));
  const OpSchema* conv = set_.find(intern("Conv"));
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->doc, "Convolution");
  EXPECT_EQ(conv->where, "ops.toml:6");
  ASSERT_EQ(conv->operands.size(), 3u);
  EXPECT_TRUE(conv->operands[2].optional);
  EXPECT_THAT(conv->types.at("T"), ElementsAre(REGIE_F16, REGIE_F32));
  EXPECT_TRUE(conv->find_attr("axis")->required);
  EXPECT_THAT(conv->find_attr("auto_pad")->one_of, ElementsAre("NOTSET", "SAME_UPPER", "VALID"));
  EXPECT_EQ(conv->find_attr("alpha")->default_value.f, static_cast<double>(0.1f));
  EXPECT_TRUE(set_.find(intern("Concat"))->operands[0].variadic);
  EXPECT_EQ(set_.find(intern("If"))->max_regions, 2u);
  EXPECT_EQ(set_.find(intern("Nothing")), nullptr);
}

TEST_F(IrSchema, AcceptsWhatIsRight) {
  for (const char* body : {"%y = Conv(%x, %x) {axis = 1}",
                           "%y = Conv(%x, %x, %x) {axis = 1, auto_pad = \"VALID\", strides = [1, 2]}",
                           "%y = Conv(%x, %x, _) {axis = 0}", "%y = Conv(%u, %h) {axis = 1}", "%y = Concat()",
                           "%y = Concat(%x, %x, %x)", "%y = Shape(%b)", "%y, %z = Shape(%d)", "_ = Shape(%x)",
                           "If(%b) {any = 1} region @t() -> () {} region @e() -> () {}"}) {
    Status s = check(body);
    EXPECT_TRUE(s.ok()) << body << ": " << s.to_string();
  }
}

TEST_F(IrSchema, SaysWhatIsWrong) {
  EXPECT_THAT(wrong("%y = Conv(%x) {axis = 1} @name(\"c\")"),
              HasSubstr("node 'c' (Conv): operand 1 (W) is missing"));
  EXPECT_THAT(wrong("%y = Conv(%x, _) {axis = 1}"), HasSubstr("operand 1 (W) is missing"));
  EXPECT_THAT(wrong("%y = Conv(%x, %x, %x, %x) {axis = 1}"), HasSubstr("takes 2 to 3 operands, not 4"));
  EXPECT_THAT(wrong("%y = Conv(%x, %h) {axis = 1}"),
              HasSubstr("operand 1 (W) is f16, but operand 0 (X) is f32; both must be the same"));
  EXPECT_THAT(wrong("%y = Conv(%i, %i) {axis = 1}"), HasSubstr("operand 0 (X) is i64; it may be f16, f32"));
  EXPECT_THAT(wrong("%y: i64[2] = Conv(%x, %x) {axis = 1}"), HasSubstr("result 0 (Y) is i64"));
  EXPECT_THAT(wrong("%y, %z = Conv(%x, %x) {axis = 1}"), HasSubstr("takes 1 results, not 2"));
  EXPECT_THAT(wrong("%y = Conv(%x, %x)"), HasSubstr("attribute 'axis' is missing"));
  EXPECT_THAT(wrong("%y = Conv(%x, %x) {axis = 1.0}"),
              HasSubstr("attribute 'axis' is a float; it must be an integer"));
  EXPECT_THAT(wrong("%y = Conv(%x, %x) {axis = 1, auto_pad = \"SAME\"}"),
              HasSubstr("is 'SAME'; it may be NOTSET, SAME_UPPER, VALID"));
  EXPECT_THAT(wrong("%y = Conv(%x, %x) {axis = 1, stride = [1]}"),
              HasSubstr("unknown attribute 'stride'; known: strides, group"));
  EXPECT_THAT(wrong("%y = Concat(%x, _)"), HasSubstr("operand 1 (inputs) is missing"));
  EXPECT_THAT(wrong("%y = Concat(%x, %i)"), HasSubstr("both must be the same"));
  EXPECT_THAT(wrong("If(%x) region @t() -> () {} region @e() -> () {}"),
              HasSubstr("operand 0 (c) is f32; it must be bool"));
  EXPECT_THAT(wrong("If(%b) region @t() -> () {}"), HasSubstr("has 1 regions; it must have 2"));
  Status s = check("%y = Cnv(%x)");
  EXPECT_EQ(s.code(), REGIE_UNSUPPORTED);
  EXPECT_THAT(s.to_string(), HasSubstr("operator 'Cnv' is not known (is 'Conv' meant?)"));
}

TEST_F(IrSchema, DefaultsAreMergedIn) {
  ASSERT_TRUE(check("%y = Conv(%x, %x) {axis = 4, group = 2}").ok());
  std::vector<regie_attr> attrs = set_.with_defaults(*graph_, graph_->region(0).last);
  std::vector<std::string> names;
  for (const regie_attr& a : attrs) names.emplace_back(view(a.name));
  EXPECT_THAT(names, ElementsAre("alpha", "auto_pad", "axis", "group", "pads", "scales"));
  EXPECT_EQ(attrs[0].v.f, static_cast<double>(0.1f));
  EXPECT_EQ(view(attrs[1].v.s), "NOTSET");
  EXPECT_EQ(attrs[2].v.i, 4);
  EXPECT_EQ(attrs[3].v.i, 2);
  ASSERT_EQ(attrs[4].count, 2u);
  EXPECT_EQ(attrs[4].v.ints[1], -1);
  ASSERT_EQ(attrs[5].count, 2u);
  EXPECT_EQ(attrs[5].v.floats[1], 2.5);
}

struct BadSchema {
  const char* op;  // lines of an [[op]] table
  const char* message;
};
class IrSchemaErrors : public testing::TestWithParam<BadSchema> {};

TEST_P(IrSchemaErrors, NamePlaceAndReason) {
  SchemaSet set;
  Status s = set.add_text(std::string("schema = 1\n[[op]]\n") + GetParam().op, "bad.toml");
  EXPECT_EQ(s.code(), REGIE_INVALID_INPUT);
  EXPECT_THAT(s.to_string(), HasSubstr("bad.toml:"));
  EXPECT_THAT(s.to_string(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Table, IrSchemaErrors,
    testing::Values(
        BadSchema{"doc = 'x'", "name"}, BadSchema{"name = ''", "is not an operator name"},
        BadSchema{"name = 'A'\nopernds = []", "opernds"},
        BadSchema{"name = 'A'\noperands = ['X']", "a name and a type are needed; write \"X: T\""},
        BadSchema{"name = 'A'\noperands = ['X: T']", "'T' is neither a key of `types` nor an element type"},
        BadSchema{"name = 'A'\noperands = ['X: f32*', 'Y: f32']", "nothing may follow"},
        BadSchema{"name = 'A'\noperands = ['X: f32', 'X: f32']", "this name is there twice"},
        BadSchema{"name = 'A'\ntypes = { T = 'flaot' }", "'flaot' is neither an element type nor a group"},
        BadSchema{"name = 'A'\ntypes = { T = [] }", "must not be empty"},
        BadSchema{"name = 'A'\nattributes = ['a']", "a name and a kind are needed"},
        BadSchema{"name = 'A'\nattributes = ['a: integer']", "unknown kind 'integer'; known: int, float"},
        BadSchema{"name = 'A'\nattributes = ['a: int = x']", "the default does not fit the kind"},
        BadSchema{"name = 'A'\nattributes = ['a: int = 1.5']", "the default does not fit the kind"},
        BadSchema{"name = 'A'\nattributes = ['a: int! = 1']", "a required attribute has no default"},
        BadSchema{"name = 'A'\nattributes = ['a: int in 1|2']", "only strings can have a list of choices"},
        BadSchema{"name = 'A'\nattributes = [\"a: string = 'c' in a|b\"]",
                  "the default is not one of the choices"},
        BadSchema{"name = 'A'\nattributes = ['a: int', 'a: int']", "attribute 'a' of A is there twice"},
        BadSchema{"name = 'A'\nregions = [2, 1]", "regions must be [least, most]"},
        BadSchema{"name = 'A'\n[[op]]\nname = 'A'",
                  "operator 'A' is defined here and at bad.toml:2; remove one"}));

TEST(IrSchemaFiles, RevisionsMustAgree) {
  SchemaSet set;
  ASSERT_TRUE(set.add_text("schema = 1\nrevision = 'a'", "a.toml").ok());
  EXPECT_THAT(set.add_text("schema = 1\nrevision = 'b'", "b.toml").to_string(),
              HasSubstr("one product has one revision"));
  EXPECT_FALSE(set.add_text("schema = 9", "c.toml").ok());
  EXPECT_THAT(SchemaSet::load({"/no/such/folder"}).status().to_string(), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace regie
