// Quantised operators of the domain com.microsoft, which ONNX Runtime's quantisation tool writes in its
// format "QOperator": DequantizeLinear of what goes in, the operator on floats, QuantizeLinear of what comes
// out. Rules make products and element-wise programs of bytes of that again.
#include <algorithm>

#include "operators.h"

namespace regie::onnx {

namespace {

std::vector<Attribute> axis_attribute(int64_t axis) { return {Attribute::integer("axis", axis)}; }

// Operand `i` with its scale and zero point behind it, as floats.
uint32_t floats_of(Translation& t, size_t i, int64_t axis = 1) {
  return t.make("DequantizeLinear", {t.operand(i), t.operand(i + 1), t.operand(i + 2)}, axis_attribute(axis));
}

// The node's output: `value` by the scale in operand `i` and the zero point behind it; without one it is 0,
// and the type that of operand `like`.
void finish_quantised(Translation& t, uint32_t value, size_t i, size_t like) {
  uint32_t zero_point = t.operand(i + 1);
  if (zero_point == REGIE_NONE) zero_point = scalar_like(t, t.operand(like), 0, "zero_point");
  t.finish("QuantizeLinear", {value, t.operand(i), zero_point}, axis_attribute(1));
}

template <const char* kOp>
void of_two(Translation& t) {
  finish_quantised(t, t.make(kOp, {floats_of(t, 0), floats_of(t, 3)}), 6, 0);
}

template <const char* kOp>
void of_one(Translation& t) {
  finish_quantised(t, t.make(kOp, {floats_of(t, 0)}, t.attributes.list()), 3, 0);
}

// Between channels last and channels second.
uint32_t channels(Translation& t, uint32_t value, bool to_second) {
  const int64_t rank = t.type(t.operand(0)).rank;
  std::vector<int64_t> order{0};
  if (to_second) order.push_back(rank - 1);
  for (int64_t i = to_second ? 1 : 2; i < (to_second ? rank - 1 : rank); ++i) order.push_back(i);
  if (!to_second) order.push_back(1);
  return t.make("Transpose", {value}, {Attribute::list("perm", std::move(order))});
}

template <const char* kOp>
void pool(Translation& t) {
  const bool last = t.attributes.take_integer("channels_last", 0) != 0;
  uint32_t x = floats_of(t, 0);
  if (last) x = channels(t, x, true);
  x = t.make(kOp, {x}, t.attributes.list());
  if (last) x = channels(t, x, false);
  finish_quantised(t, x, 3, 0);
}

void concat(Translation& t) {
  if (t.operands.size() % 3 != 2)
    t.context.invalid("its inputs are a scale, a zero point, and three for each tensor");
  std::vector<uint32_t> parts;
  for (size_t i = 2; i < t.operands.size(); i += 3) parts.push_back(floats_of(t, i));
  finish_quantised(t, t.make("Concat", parts, t.attributes.list()), 0, 2);
}

void where(Translation& t) {
  finish_quantised(t, t.make("Where", {t.operand(0), floats_of(t, 1), floats_of(t, 4)}), 7, 1);
}

void reduce_mean(Translation& t) {
  uint32_t axes = REGIE_NONE;
  if (auto list = t.attributes.take_integers("axes")) axes = t.constant(integers(*list), "axes");
  finish_quantised(t, t.make("ReduceMean", {floats_of(t, 0), axes}, t.attributes.list()), 3, 0);
}

// Before operator set 13 a Softmax was of all dimensions from the axis on.
void softmax_of_bytes(Translation& t) {
  const int64_t opset_of = t.attributes.take_integer("opset", 13);
  const int64_t rank = t.type(t.operand(0)).rank;
  const int64_t axis = normal_axis(t, t.attributes.take_integer("axis", -1), rank);
  uint32_t x = floats_of(t, 0);
  if (opset_of >= 13 || axis == rank - 1) {
    x = t.make("Softmax", {x}, axis_attribute(axis));
  } else {
    const uint32_t flat =
        t.make("Softmax", {t.make("Flatten", {x}, axis_attribute(axis))}, axis_attribute(1));
    x = t.make("Reshape", {flat, t.make("Shape", {x})});
  }
  finish_quantised(t, x, 3, 0);
}

void gemm(Translation& t) {
  const double alpha = t.attributes.take_number("alpha", 1);
  const int64_t turned_a = t.attributes.take_integer("transA", 0),
                turned_b = t.attributes.take_integer("transB", 0);
  const uint32_t a = floats_of(t, 0), b = floats_of(t, 3, turned_b ? 0 : 1);
  uint32_t c = t.operand(6);
  if (c != REGIE_NONE) {  // counted in the products of both scales, and of alpha
    uint32_t scale = t.make("Mul", {t.operand(1), t.operand(4)});
    if (alpha != 1) scale = t.make("Mul", {scale, scalar_like(t, t.operand(1), alpha, "alpha")});
    c = t.make("DequantizeLinear", {c, scale}, axis_attribute(std::max(0, t.type(c).rank - 1)));
  }
  const std::vector<Attribute> attributes{Attribute::number("alpha", alpha), Attribute::number("beta", 1),
                                          Attribute::integer("transA", turned_a),
                                          Attribute::integer("transB", turned_b)};
  if (t.operand(7) == REGIE_NONE) return t.finish("Gemm", {a, b, c}, attributes);
  finish_quantised(t, t.make("Gemm", {a, b, c}, attributes), 7, 0);
}

// Sums of products of integers as floats: operands of the product, then both scales and a bias.
void finish_floats(Translation& t, const std::vector<uint32_t>& product, uint32_t a_scale, uint32_t b_scale,
                   uint32_t bias) {
  const uint32_t sums = t.make("Cast", {t.make("MatMulInteger", product)}, {Attribute::integer("to", 1)});
  const uint32_t scale = t.make("Mul", {a_scale, b_scale});
  if (bias == REGIE_NONE) return t.finish("Mul", {sums, scale}, {});
  t.finish("Add", {t.make("Mul", {sums, scale}), bias}, {});
}

void matmul_to_floats(Translation& t) {
  finish_floats(t, {t.operand(0), t.operand(1), t.operand(4), t.operand(5)}, t.operand(2), t.operand(3),
                t.operand(6));
}

void matmul_of_floats(Translation& t) {
  const std::vector<uint32_t> a = t.make_several("DynamicQuantizeLinear", {t.operand(0)}, {}, 3);
  finish_floats(t, {a[0], t.operand(1), a[2], t.operand(3)}, a[1], t.operand(2), t.operand(4));
}

// The same as ONNX's, but from before ONNX had 16 bits in them.
template <const char* kOp>
void of_onnx(Translation& t) {
  t.finish(kOp, t.operands, t.attributes.list());
}

constexpr char kAdd[] = "Add", kMul[] = "Mul", kSigmoid[] = "Sigmoid", kLeakyRelu[] = "LeakyRelu";
constexpr char kAveragePool[] = "AveragePool", kGlobalAveragePool[] = "GlobalAveragePool";
constexpr char kQuantize[] = "QuantizeLinear", kDequantize[] = "DequantizeLinear";

constexpr Operator kOperators[] = {
    {"DequantizeLinear", "1", {{1, "axis:i", 2, 3, of_onnx<kDequantize>}}},
    {"DynamicQuantizeMatMul", "1", {{1, "", 3, 5, matmul_of_floats}}},
    {"MatMulIntegerToFloat", "1", {{1, "", 4, 7, matmul_to_floats}}},
    {"QGemm", "1", {{1, "alpha:f transA:i transB:i", 6, 9, gemm}}},
    {"QLinearAdd", "1", {{1, "", 2, 8, of_two<kAdd>}}},
    {"QLinearAveragePool",
     "1",
     {{1, "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:I pads:I strides:I", 2, 5,
       pool<kAveragePool>}}},
    {"QLinearConcat", "1", {{1, "axis:i", 3, kAnyNumber, concat}}},
    {"QLinearGlobalAveragePool", "1", {{1, "channels_last:i", 5, 5, pool<kGlobalAveragePool>}}},
    {"QLinearLeakyRelu", "1", {{1, "alpha:f", 2, 5, of_one<kLeakyRelu>}}},
    {"QLinearMul", "1", {{1, "", 2, 8, of_two<kMul>}}},
    {"QLinearReduceMean", "1", {{1, "axes:I keepdims:i", 2, 5, reduce_mean}}},
    {"QLinearSigmoid", "1", {{1, "", 2, 5, of_one<kSigmoid>}}},
    {"QLinearSoftmax", "1", {{1, "axis:i opset:i", 2, 5, softmax_of_bytes}}},
    {"QLinearWhere", "1", {{1, "", 9, 9, where}}},
    {"QuantizeLinear", "1", {{1, "axis:i", 2, 3, of_onnx<kQuantize>}}},
};

}  // namespace

const Operator* find_operator_of_microsoft(std::string_view name) {
  constexpr std::string_view kDomain = "com.microsoft.";
  if (!name.starts_with(kDomain)) return nullptr;
  name.remove_prefix(kDomain.size());
  const auto* it = std::find_if(std::begin(kOperators), std::end(kOperators),
                                [&](const Operator& o) { return name == o.name; });
  return it == std::end(kOperators) ? nullptr : it;
}

}  // namespace regie::onnx
