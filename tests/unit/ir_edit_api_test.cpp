// Edits of graphs through the C table, as a plug-in makes them.
#include "ir_edit_support.h"
#include "plugins/host.h"

namespace regie::edit_test {
namespace {

using testing::HasSubstr;

regie_status last_code = REGIE_OK;
std::string last_message;

class IrEditApi : public IrEdit {
 protected:
  void SetUp() override {
    set_edit_failure_sink([](const Status& s) {
      last_code = s.code();
      last_message = s.to_string();
      return s.code();
    });
    last_code = REGIE_OK;
  }
  void TearDown() override { set_edit_failure_sink(fail_on_this_thread); }
  const regie_edit_api& api() { return *edit_api(); }
  regie_edit* e() { return edit().handle(); }
};

TEST_F(IrEditApi, ReplacesANodeAsAPluginWould) {
  load(kChain);
  regie_str title = str(std::string_view("swap"));
  EXPECT_EQ(api().begin(e(), title, node("b")), REGIE_OK);
  int64_t pads[] = {1, 2};
  regie_attr attrs[2] = {};
  attrs[0].name = str(std::string_view("pads"));
  attrs[0].kind = REGIE_ATTR_INTS;
  attrs[0].count = 2;
  attrs[0].v.ints = pads;
  attrs[1].name = str(std::string_view("axis"));
  attrs[1].kind = REGIE_ATTR_INT;
  attrs[1].count = 1;
  attrs[1].v.i = 3;
  uint32_t a = value("a"), results[2] = {};
  const uint8_t omitted[] = {1, 0};
  regie_node_desc desc{};
  desc.struct_size = sizeof desc;
  desc.op = str(std::string_view("Split"));
  desc.operands = &a;
  desc.operand_count = 1;
  desc.attrs = attrs;
  desc.attr_count = 2;
  desc.result_count = 2;
  desc.results_omitted = omitted;
  EXPECT_EQ(api().node(e(), &desc, results), REGIE_OK);
  EXPECT_EQ(results[0], REGIE_NONE);
  EXPECT_EQ(api().replace(e(), value("b"), results[1]), REGIE_OK);
  EXPECT_EQ(api().remove(e(), node("b")), REGIE_OK);
  EXPECT_EQ(api().commit(e()), REGIE_OK);
  apply();
  EXPECT_THAT(print(g()), HasSubstr("_, %b: f32[2] = Split(%a) {axis = 3, pads = [1, 2]} @from(\"fb (F)\")"));
}

TEST_F(IrEditApi, RegionsConstantsAndAssignments) {
  load(kCall);
  EXPECT_EQ(api().begin(e(), str(std::string_view("inline")), node("c")), REGIE_OK);
  uint32_t args[] = {value("x"), value("y")}, results[2];
  EXPECT_EQ(api().inline_region(e(), node("c"), 0, args, results), REGIE_OK);
  regie_type type = g().value(value("x")).type;
  uint32_t region = 0, arg = 0, k = 0;
  EXPECT_EQ(api().open_region(e(), str(std::string_view("r")), 1, &type, nullptr, &region, &arg), REGIE_OK);
  const int64_t dims[] = {2};
  int32_t data[] = {5, 6};
  regie_tensor t{};
  t.elem = REGIE_I32;
  t.rank = 1;
  t.dims = dims;
  t.data = data;
  t.bytes = sizeof data;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_WEIGHT, &t, str(std::string_view("k")), &k), REGIE_OK);
  uint32_t operands[] = {arg, k}, inner = 0;
  regie_node_desc mix{};
  mix.struct_size = sizeof mix;
  mix.op = str(std::string_view("Mix"));
  mix.operands = operands;
  mix.operand_count = 2;
  mix.result_count = 1;
  EXPECT_EQ(api().node(e(), &mix, &inner), REGIE_OK);
  EXPECT_EQ(api().close_region(e(), 1, &inner), REGIE_OK);
  regie_node_desc call = mix;
  call.op = str(std::string_view("Call"));
  call.operand_count = 1;
  call.operands = &results[0];
  call.region_count = 1;
  call.regions = &region;
  uint32_t out = 0;
  EXPECT_EQ(api().node(e(), &call, &out), REGIE_OK);
  EXPECT_EQ(api().replace(e(), value("c"), out), REGIE_OK);
  EXPECT_EQ(api().replace(e(), value("d"), results[1]), REGIE_OK);
  EXPECT_EQ(api().remove(e(), node("c")), REGIE_OK);
  EXPECT_EQ(api().set_space(e(), out, 1), REGIE_OK);
  EXPECT_EQ(api().commit(e()), REGIE_OK);
  apply();
  EXPECT_THAT(print(g()), HasSubstr("%c: f32[2] @space(1) = Call(%s)"));
  EXPECT_THAT(print(g()), HasSubstr("%k#1: weight i32[2] = [5, 6]"));
}

TEST_F(IrEditApi, RubbishIsRefusedByName) {
  load(kChain);
  EXPECT_EQ(api().begin(nullptr, {}, 0), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().commit(e()), REGIE_BAD_PLUGIN);
  EXPECT_THAT(last_message, HasSubstr("commit without begin"));
  EXPECT_EQ(api().begin(e(), str(std::string_view("p")), node("a")), REGIE_OK);
  uint32_t out[2];
  EXPECT_EQ(api().node(e(), nullptr, out), REGIE_BAD_PLUGIN);
  regie_node_desc desc{};
  EXPECT_EQ(api().node(e(), &desc, out), REGIE_BAD_PLUGIN);  // no struct_size
  desc.struct_size = sizeof desc;
  desc.op = str(std::string_view("Relu"));
  desc.operand_count = 1;
  EXPECT_EQ(api().node(e(), &desc, out), REGIE_BAD_PLUGIN);  // a count without its list
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, nullptr, {}, out), REGIE_BAD_PLUGIN);
  regie_tensor t{};
  const int64_t dims[] = {2}, negative[] = {-1};
  t.elem = REGIE_F32;
  t.rank = 1;
  t.dims = dims;
  t.bytes = 8;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);  // no data
  float data[] = {1, 2};
  t.data = data;
  t.bytes = 4;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);
  EXPECT_THAT(last_message, HasSubstr("has 4 bytes; its type needs 8"));
  t.dims = negative;
  EXPECT_EQ(api().constant(e(), REGIE_VALUE_CONSTANT, &t, {}, out), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().inline_region(e(), node("a"), 0, nullptr, out), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().set_type(e(), value("a"), nullptr), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().close_region(e(), 1, nullptr), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().set_engine(e(), node("a"), 3, {}), REGIE_BAD_PLUGIN);
  EXPECT_EQ(api().abandon(e()), REGIE_OK);
}

}  // namespace
}  // namespace regie::edit_test
