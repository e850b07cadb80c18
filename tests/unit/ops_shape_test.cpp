// Shape functions with symbols: arithmetic on shapes, results at random sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/schema.h"
#include "regie_test_paths.h"
#include "unit/ops_harness.h"

namespace regie::ops_test {
namespace {

using testing::HasSubstr;

// The shape as text, "N 3 2*N"; the failure's message if there is one.
std::string shape(const Inferred& i, const DimTable& dims, size_t result = 0) {
  if (!i.ok()) return i.message;
  std::string text;
  for (regie_dim d : i.results[result].dims) text += (text.empty() ? "" : " ") + dims.print(d);
  return text;
}

std::string content(const Inferred& i, const DimTable& dims, size_t result = 0) {
  if (!i.ok()) return i.message;
  if (!i.results[result].content) return "unknown";
  std::string text;
  for (regie_dim d : *i.results[result].content) text += (text.empty() ? "" : " ") + dims.print(d);
  return text;
}

class OpsShape : public testing::Test {
 protected:
  Inferred infer(const std::string& op, const Attrs& attrs, const std::vector<Operand>& operands,
                 uint32_t results = 1) {
    return ops_test::infer(op, attrs, operands, results, dims);
  }
  // A computed list with the content of result 0 of `i`, of rank 0 or 1.
  static Operand next(const Inferred& i) {
    Operand o = Operand::of(i.results[0].elem, i.results[0].dims);
    o.content = i.results[0].content;
    return o;
  }
  DimTable dims;
  regie_dim n = dims.symbol("N", 1, 1000), m = dims.symbol("M", 1, 1000);
};

TEST_F(OpsShape, ConvolutionKeepsTheBatch) {
  EXPECT_EQ(shape(infer("Conv", {list("pads", {1, 1, 1, 1})}, {f32({n, 3, 8, 8}), f32({16, 3, 3, 3})}), dims),
            "N 16 8 8");
  EXPECT_EQ(shape(infer("GlobalAveragePool", {}, {f32({n, 16, 8, 8})}), dims), "N 16 1 1");
  EXPECT_EQ(shape(infer("Flatten", {whole("axis", 1)}, {f32({n, 16, 1, 1})}), dims), "N 16");
  EXPECT_EQ(shape(infer("Gemm", {whole("transB", 1)}, {f32({n, 16}), f32({10, 16}), f32({10})}), dims),
            "N 10");
  EXPECT_EQ(shape(infer("MatMul", {}, {f32({n, 1, 4, 5}), f32({m, 5, 6})}), dims), "N M 4 6");
}

// A symbol that another operand leaves one value for is that value from then on, everywhere.
TEST_F(OpsShape, WhatMustBeEqualIsFixed) {
  auto range = [&](regie_dim d) { return dims.range(d); };
  const regie_dim c = dims.symbol("C"), k = dims.symbol("inner size"), rows = dims.symbol("R", 1, 9);
  EXPECT_EQ(shape(infer("Conv", {}, {f32({n, c, 8, 8}), f32({4, 6, 3, 3})}), dims), "N 4 6 6");
  EXPECT_EQ(range(c), std::pair(int64_t{6}, int64_t{6}));
  EXPECT_EQ(shape(infer("MatMul", {}, {f32({n, k}), f32({5, 2})}), dims), "N 2");
  EXPECT_EQ(range(k), std::pair(int64_t{5}, int64_t{5}));
  EXPECT_THAT(shape(infer("MatMul", {}, {f32({n, k}), f32({7, 2})}), dims), HasSubstr("do not fit"));
  EXPECT_THAT(shape(infer("MatMul", {}, {f32({n, rows}), f32({10, 2})}), dims), HasSubstr("do not fit"));
  EXPECT_EQ(shape(infer("Concat", {whole("axis", 1)}, {f32({rows, 2}), f32({3, 2})}), dims), "3 4");
  EXPECT_EQ(range(rows), std::pair(int64_t{3}, int64_t{3}));
  EXPECT_EQ(shape(infer("Reshape", {}, {f32({m, 4}), Operand::numbers({2, 8})}), dims), "2 8");
  EXPECT_EQ(range(m), std::pair(int64_t{4}, int64_t{4}));
  EXPECT_THAT(shape(infer("Reshape", {}, {f32({n, 4}), Operand::numbers({3, 2})}), dims),
              HasSubstr("cannot have the shape"));
  EXPECT_EQ(range(n), std::pair(int64_t{1}, int64_t{1000}));
}

// x.view(x.shape[0], -1), as exporters write it.
TEST_F(OpsShape, ReshapeByArithmeticOnShapes) {
  Operand x = f32({n, 3, 8, m});
  Inferred s = infer("Shape", {}, {x});
  EXPECT_EQ(content(s, dims), "N 3 8 M");
  Inferred first = infer("Gather", {whole("axis", 0)}, {next(s), Operand::constant(integers({}, {0}))});
  EXPECT_EQ(content(first, dims), "N");
  EXPECT_EQ(shape(first, dims), "");
  Inferred row = infer("Unsqueeze", {}, {next(first), Operand::numbers({0})});
  Inferred target = infer("Concat", {whole("axis", 0)}, {next(row), Operand::numbers({-1})});
  EXPECT_EQ(content(target, dims), "N -1");
  EXPECT_EQ(shape(infer("Reshape", {}, {x, next(target)}), dims), "N 24*M");
  EXPECT_EQ(shape(infer("Reshape", {}, {x, Operand::numbers({0, 0, -1})}), dims), "N 3 8*M");
  EXPECT_EQ(shape(infer("Reshape", {}, {f32({dims.mul(2, n), 5}), Operand::numbers({-1, 10})}), dims),
            "N 10");
  EXPECT_EQ(shape(infer("Expand", {}, {f32({1, 3, 1, 1}), next(s)}), dims), "N 3 8 M");
  EXPECT_EQ(shape(infer("ConstantOfShape", {}, {next(s)}), dims), "N 3 8 M");
}

TEST_F(OpsShape, ContentThroughArithmetic) {
  Operand s = Operand::with_content({n, 4, m});
  EXPECT_EQ(content(infer("Add", {}, {s, Operand::numbers({1})}), dims), "N+1 5 M+1");
  EXPECT_EQ(content(infer("Mul", {}, {Operand::constant(integers({}, {2})), s}), dims), "2*N 8 2*M");
  EXPECT_EQ(content(infer("Sub", {}, {s, s}), dims), "0 0 0");
  Inferred six = infer("Mul", {}, {s, Operand::numbers({6})});
  EXPECT_EQ(content(infer("Div", {}, {next(six), Operand::numbers({3})}), dims), "2*N 8 2*M");
  EXPECT_EQ(content(infer("Div", {}, {Operand::numbers({-7}), Operand::numbers({2})}), dims), "-3");
  // N-5 may be negative, where cutting and rounding down differ.
  Inferred shifted = infer("Sub", {}, {Operand::with_content({n}), Operand::numbers({5})});
  EXPECT_EQ(content(infer("Div", {}, {next(shifted), Operand::numbers({2})}), dims), "unknown");
  EXPECT_EQ(content(infer("Neg", {}, {Operand::numbers({3, -4})}), dims), "-3 4");
  EXPECT_EQ(content(infer("Max", {}, {s, Operand::numbers({0})}), dims), "N 4 M");
  EXPECT_EQ(content(infer("Cast", {whole("to", REGIE_I32)}, {s}), dims), "N 4 M");
  EXPECT_EQ(content(infer("Cast", {whole("to", REGIE_F32)}, {s}), dims), "N 4 M");
  EXPECT_EQ(content(infer("Cast", {whole("to", REGIE_F16)}, {s}), dims), "unknown");
  EXPECT_EQ(content(infer("Identity", {}, {s}), dims), "N 4 M");
  EXPECT_EQ(content(infer("ReduceProd", {whole("keepdims", 0)}, {s}), dims),
            dims.print(dims.mul(4, dims.mul(n, m))));
  EXPECT_EQ(content(infer("Size", {}, {f32({n, 2})}), dims), "2*N");
}

TEST_F(OpsShape, ContentThroughCopies) {
  Operand s = Operand::with_content({n, 4, m, 7});
  auto slice = [&](int64_t from, int64_t to, int64_t step) {
    return content(infer("Slice", {},
                         {s, Operand::numbers({from}), Operand::numbers({to}), Operand::numbers({0}),
                          Operand::numbers({step})}),
                   dims);
  };
  EXPECT_EQ(slice(1, 3, 1), "4 M");
  EXPECT_EQ(slice(-2, INT64_MAX, 1), "M 7");
  EXPECT_EQ(slice(-1, INT64_MIN, -1), "7 M 4 N");
  EXPECT_EQ(slice(3, 0, -2), "7 4");
  EXPECT_EQ(content(infer("Gather", {}, {s, Operand::numbers({-1, 0})}), dims), "7 N");
  Inferred parts = infer("Split", {whole("axis", 0)}, {s, Operand::numbers({1, 3})}, 2);
  EXPECT_EQ(content(parts, dims, 0), "N");
  EXPECT_EQ(content(parts, dims, 1), "4 M 7");
  EXPECT_EQ(content(infer("Squeeze", {}, {Operand::with_content({n}), Operand::numbers({0})}), dims), "N");
  EXPECT_EQ(content(infer("Expand", {}, {Operand::with_content({n}), Operand::numbers({3})}), dims), "N N N");
  AttrValue one;
  one.name = "value";
  one.kind = REGIE_ATTR_TENSOR;
  one.tensor = integers({1}, {-1});
  EXPECT_EQ(content(infer("ConstantOfShape", {one}, {Operand::numbers({2})}), dims), "-1 -1");
}

TEST_F(OpsShape, SplitAndBroadcastOfSymbols) {
  Inferred halves = infer("Split", {whole("num_outputs", 2)}, {f32({dims.mul(2, n), 3})}, 2);
  EXPECT_EQ(shape(halves, dims, 0), "N 3");
  EXPECT_EQ(shape(halves, dims, 1), "N 3");
  // Without the number of parts they are equal; with it the last one is what is left.
  for (const bool equal : {true, false}) {
    const Inferred thirds = infer(
        "Split", equal ? std::vector<AttrValue>() : std::vector{whole("num_outputs", 3)}, {f32({n})}, 3);
    const std::string each = dims.print(dims.op(REGIE_DIM_CEILDIV, n, 3));
    EXPECT_EQ(shape(thirds, dims, 0), each);
    EXPECT_EQ(shape(thirds, dims, 1), each);
    EXPECT_EQ(shape(thirds, dims, 2) == each, equal);
  }
  EXPECT_EQ(shape(infer("Add", {}, {f32({n, 1}), f32({1, m})}), dims), "N M");
  EXPECT_EQ(shape(infer("Add", {}, {f32({n, 4}), f32({4})}), dims), "N 4");
  EXPECT_EQ(shape(infer("Add", {}, {f32({n}), f32({4})}), dims), "4");
  regie_dim wide = dims.symbol("W", 2, 9);
  EXPECT_EQ(shape(infer("Add", {}, {f32({n}), f32({wide})}), dims), "W");
  EXPECT_EQ(shape(infer("Concat", {whole("axis", 0)}, {f32({n, 2}), f32({m, 2}), f32({3, 2})}), dims),
            dims.print(dims.add(dims.add(n, m), 3)) + " 2");
}

// Two symbols that may be 0 or 1: the formula must hold for every valid pair.
TEST_F(OpsShape, BroadcastOfUnboundedSymbols) {
  regie_dim a = dims.symbol("A"), b = dims.symbol("B");
  Inferred i = infer("Mul", {}, {f32({a}), f32({b})});
  ASSERT_TRUE(i.ok()) << i.message;
  for (auto [x, y, want] :
       {std::array<int64_t, 3>{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 1}, {5, 1, 5}, {1, 5, 5}, {5, 5, 5}}) {
    std::vector<std::optional<int64_t>> values{std::nullopt, std::nullopt, x, y};
    auto got = dims.evaluate(i.results[0].dims[0], values);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, want) << x << " " << y;
  }
}

// A map that was halved and is doubled again has the least even size that is no less; the sum with what was
// there before has that size, at every size that does not fail.
TEST_F(OpsShape, WhatIsRoundedUpIsTheGreaterOne) {
  const regie_dim h = dims.symbol("H", 0, 1 << 20);
  const auto at = [&](regie_dim d, int64_t size) {
    std::vector<std::optional<int64_t>> values(dims.symbol_count(), int64_t{1});
    values[*dims.symbol_index(h)] = size;
    return dims.evaluate(d, values).value();
  };
  const auto multiple = [&](int64_t k, int64_t of) {
    return dims.mul(dims.op(REGIE_DIM_CEILDIV, h, k * of), k);
  };
  for (int64_t k : {2, 3, 4, 8})
    for (int64_t of : {1, 2, 4, 16}) {
      const regie_dim x = dims.op(REGIE_DIM_CEILDIV, h, of), y = multiple(k, of);
      for (const auto& [a, b] : {std::pair(x, y), std::pair(y, x)}) {
        const Inferred sum = infer("Add", {}, {f32({n, a}), f32({n, b})});
        ASSERT_TRUE(sum.ok()) << sum.message;
        EXPECT_EQ(sum.results[0].dims[1], y) << k << " " << of << ": " << dims.print(sum.results[0].dims[1]);
        for (int64_t size = 0; size < 200; ++size) {
          const int64_t p = at(a, size), q = at(b, size);
          if (p != q && p != 1 && q != 1) continue;  // ONNX's rule: these cannot be added
          EXPECT_EQ(at(sum.results[0].dims[1], size), p == 1 ? q : p) << size;
        }
      }
    }
  // Not the least multiple: which one is greater depends on the size.
  const regie_dim below = dims.mul(dims.op(REGIE_DIM_FLOORDIV, h, 2), 2);
  const Inferred sum = infer("Add", {}, {f32({h}), f32({below})});
  ASSERT_TRUE(sum.ok()) << sum.message;
  EXPECT_NE(sum.results[0].dims[0], below);
}

// The expressions hold at other sizes than those that the formulas were made for.
TEST_F(OpsShape, RandomBindingsAgreeWithConcreteShapes) {
  struct Node {
    const char* op;
    Attrs attrs;
    std::vector<std::vector<std::string>> operands;  // dimensions as text; "=" introduces a constant list
    uint32_t results = 1;
  };
  auto text = [](const char* name, const char* v) { return AttrValue::text(name, v); };
  std::vector<Node> nodes = {
      {"Conv",
       {list("strides", {2, 3}), list("pads", {1, 0, 2, 1})},
       {{"N", "3", "H", "W"}, {"8", "3", "3", "3"}}},
      {"Conv",
       {list("strides", {2, 2}), text("auto_pad", "SAME_UPPER")},
       {{"N", "3", "H", "W"}, {"8", "3", "3", "2"}}},
      {"Conv", {list("dilations", {2}), whole("group", 2)}, {{"N", "4", "H"}, {"6", "2", "3"}}},
      {"ConvTranspose",
       {list("strides", {2, 2}), list("output_padding", {1, 0})},
       {{"N", "3", "H", "W"}, {"3", "5", "3", "3"}}},
      {"MaxPool",
       {list("kernel_shape", {3, 2}), list("strides", {2, 3}), whole("ceil_mode", 1),
        list("pads", {1, 0, 1, 1})},
       {{"N", "C", "H", "W"}},
       2},
      {"AveragePool",
       {list("kernel_shape", {3}), list("strides", {2}), text("auto_pad", "SAME_LOWER")},
       {{"N", "C", "H"}}},
      {"MatMul", {}, {{"N", "H", "W"}, {"W", "C"}}},
      {"Gemm", {whole("transA", 1)}, {{"N", "H"}, {"N", "W"}, {"W"}}},
      {"Concat", {whole("axis", -1)}, {{"N", "H"}, {"N", "W"}, {"N", "3"}}},
      {"Split", {whole("axis", 1), whole("num_outputs", 3)}, {{"N", "H"}}, 3},
      {"Slice", {}, {{"N", "H"}, {"=1"}, {"=-2"}, {"=1"}}},
      {"Slice",
       {},
       {{"H", "W"}, {"=-1", "2"}, {"=-9223372036854775807", "2147483647"}, {"=0", "1"}, {"=-2", "3"}}},
      {"Slice", {}, {{"H"}, {"=7"}, {"=1"}, {"=0"}, {"=-3"}}},
      {"Pad", {}, {{"N", "H"}, {"=1", "-2", "0", "3"}}},
      {"Flatten", {whole("axis", 2)}, {{"N", "H", "W", "C"}}},
      {"Reshape", {}, {{"N", "H", "6"}, {"=0", "-1", "2"}}},
      {"Transpose", {list("perm", {2, 0, 1})}, {{"N", "H", "W"}}},
      {"Gather", {whole("axis", 1)}, {{"N", "H"}, {"W", "2"}}},
      {"ReduceMean", {whole("keepdims", 0)}, {{"N", "H", "W"}, {"=-2"}}},
      {"ArgMax", {whole("axis", 1)}, {{"N", "H", "W"}}},
      {"Expand", {}, {{"N", "1", "W"}, {"=4", "1", "5", "1"}}},
      {"Where", {}, {{"N", "1"}, {"1", "W"}, {"N", "W"}}},
      {"regie.FusedMatMul", {whole("transB", 1)}, {{"N", "H", "W"}, {"C", "W"}, {"C"}, {"N", "H", "C"}}},
  };
  std::mt19937 random(5);
  for (const Node& node : nodes) {
    DimTable table;
    const std::vector<std::string> names = {"N", "C", "H", "W"};
    for (const auto& name : names) table.symbol(name, 3, 40);
    // The operands with symbols, or with these sizes.
    auto operands = [&](const std::vector<std::optional<int64_t>>* sizes) {
      std::vector<Operand> made;
      for (const auto& dims : node.operands) {
        std::vector<int64_t> shape;
        bool constant = dims[0].starts_with("=");
        for (std::string d : dims) {
          if (d.starts_with("=")) d.erase(0, 1);
          auto name = std::find(names.begin(), names.end(), d);
          if (name == names.end()) {
            shape.push_back(std::stoll(d));
          } else {
            shape.push_back(sizes ? *(*sizes)[static_cast<size_t>(name - names.begin())]
                                  : *table.find_symbol(d));
          }
        }
        bool index = std::string_view(node.op) == "Gather" && made.size() == 1;
        bool condition = std::string_view(node.op) == "Where" && made.empty();
        made.push_back(constant ? Operand::numbers(shape)
                                : Operand::of(index       ? REGIE_I64
                                              : condition ? REGIE_BOOL
                                                          : REGIE_F32,
                                              shape));
      }
      return made;
    };
    Inferred symbolic = ops_test::infer(node.op, node.attrs, operands(nullptr), node.results, table);
    ASSERT_TRUE(symbolic.ok()) << symbolic.message;
    for (int round = 0; round < 30; ++round) {
      std::vector<std::optional<int64_t>> sizes;
      for (size_t i = 0; i < names.size(); ++i)
        sizes.push_back(std::uniform_int_distribution<int64_t>(3, 40)(random));
      Inferred concrete = ops_test::infer(node.op, node.attrs, operands(&sizes), node.results, table);
      ASSERT_TRUE(concrete.ok()) << concrete.message;
      for (uint32_t r = 0; r < node.results; ++r) {
        std::vector<int64_t> got;
        for (regie_dim d : symbolic.results[r].dims) {
          auto v = table.evaluate(d, sizes);
          got.push_back(v.ok() ? *v : -1);
        }
        EXPECT_EQ(got, concrete.results[r].dims) << node.op << " " << shape(symbolic, table, r);
      }
    }
  }
}

TEST_F(OpsShape, BranchesOfIf) {
  auto conditional = [&](const Region& yes, const Region& no,
                         Operand condition = Operand::of(REGIE_BOOL, {})) {
    return ops_test::infer("If", {}, {std::move(condition), f32({n, 3})}, 1, dims, {yes, no});
  };
  Region keeps{{f32({n, 3})}, {f32({n, 3})}}, shrinks{{f32({n, 3})}, {f32({n, 2})}},
      flattens{{f32({n, 3})}, {f32({3})}}, integer{{f32({n, 3})}, {Operand::of(REGIE_I64, {n, 3})}};
  EXPECT_EQ(shape(conditional(keeps, keeps), dims), "N 3");
  EXPECT_EQ(shape(conditional(keeps, shrinks), dims), "N ?");  // the run tells
  Inferred different = conditional(keeps, flattens);
  EXPECT_EQ(different.code, REGIE_UNSUPPORTED);
  EXPECT_THAT(different.message, HasSubstr("f32[N, 3] if true, f32[3] if false"));
  Inferred types = conditional(keeps, integer);
  EXPECT_EQ(types.code, REGIE_INVALID_MODEL);
  EXPECT_THAT(types.message, HasSubstr("i64[N, 3]"));
  EXPECT_EQ(conditional(keeps, {{}, {f32({n, 3})}}).code, REGIE_INVALID_MODEL);
  EXPECT_EQ(conditional(keeps, {{f32({n, 3})}, {}}).code, REGIE_INVALID_MODEL);
  EXPECT_EQ(conditional(keeps, keeps, Operand::of(REGIE_BOOL, {2})).code, REGIE_INVALID_MODEL);
  EXPECT_EQ(conditional(keeps, keeps, Operand::of(REGIE_F32, {})).code, REGIE_INVALID_MODEL);
}

// Each schema has its shape function and the other way round, but for Loop, whose types the host infers; all
// but If have a kernel.
TEST_F(OpsShape, SchemasAndPluginHaveTheSameOperators) {
  auto schemas = SchemaSet::load({REGIE_TEST_SOURCE_DIR "/configs/ops"});
  ASSERT_TRUE(schemas.ok()) << schemas.status().to_string();
  EXPECT_EQ(schemas->revision(), "onnx-21");
  std::set<std::string> by_schema, shapes, kernels;
  for (const std::string& name : schemas->names()) by_schema.insert(name);
  for (const auto& [name, index] : Plugin::get().shape_index) shapes.insert(name);
  for (const auto& [name, index] : Plugin::get().kernel_index) kernels.insert(name);
  EXPECT_EQ(by_schema.erase("Loop"), 1u);
  EXPECT_EQ(by_schema, shapes);
  shapes.erase("If");  // the host runs its regions
  EXPECT_EQ(kernels, shapes);
  EXPECT_EQ(Plugin::get().shapes->count, by_schema.size());
}

}  // namespace
}  // namespace regie::ops_test
