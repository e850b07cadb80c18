#include "operators.h"

#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <iterator>

namespace regie::onnx {

namespace {

constexpr int kAny = kAnyNumber;
constexpr const char* kConv = "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";
constexpr const char* kReduceOld = "axes:I keepdims:i";
constexpr const char* kReduce = "keepdims:i noop_with_empty_axes:i";

// Sorted by name. Versions and attributes are checked against the onnx package by
// tests/frontends/check_operators.py.
constexpr Operator kOperators[] = {
    {"Abs", "1 6 13", {{6, "", 1, 1, same}}},
    {"Add", "1 6 7 13 14", {{7, "", 2, 2, same}}},
    {"And", "1 7", {{7, "", 2, 2, same}}},
    {"ArgMax",
     "1 11 12 13",
     {{1, "axis:i keepdims:i", 1, 1, same}, {12, "axis:i keepdims:i select_last_index:i", 1, 1, same}}},
    {"ArgMin",
     "1 11 12 13",
     {{1, "axis:i keepdims:i", 1, 1, same}, {12, "axis:i keepdims:i select_last_index:i", 1, 1, same}}},
    {"AveragePool",
     "1 7 10 11 19 22",
     {{7, "auto_pad:s count_include_pad:i kernel_shape:I pads:I strides:I", 1, 1, same},
      {10, "auto_pad:s ceil_mode:i count_include_pad:i kernel_shape:I pads:I strides:I", 1, 1, same},
      {19, "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I", 1, 1,
       same}}},
    {"BatchNormalization",
     "1 6 7 9 14 15",
     {{7, "epsilon:f momentum:f spatial:i", 5, 5, batch_normalization},
      {9, "epsilon:f momentum:f", 5, 5, batch_normalization},
      {14, "epsilon:f momentum:f training_mode:i", 5, 5, batch_normalization}}},
    {"Cast",
     "1 6 9 13 19 21 23 24 25 28",
     {{6, "to:i", 1, 1, cast},
      {19, "saturate:i to:i", 1, 1, cast},
      {24, "round_mode:s saturate:i to:i", 1, 1, cast}}},
    {"Ceil", "1 6 13", {{6, "", 1, 1, same}}},
    {"Clip", "1 6 11 12 13", {{6, "max:f min:f", 1, 1, clip_to_operands}, {11, "", 1, 3, same}}},
    {"Concat", "1 4 11 13", {{4, "axis:i", 1, kAny, same}}},
    {"Constant",
     "1 9 11 12 13 19 21 23 24 25",
     {{1, "value:t", 0, 0, constant},
      {11, "sparse_value:p value:t", 0, 0, constant},
      {12,
       "sparse_value:p value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
       "value_strings:S",
       0, 0, constant}}},
    {"ConstantOfShape", "9 20 21 23 24 25", {{9, "value:t", 1, 1, same}}},
    {"Conv", "1 11 22", {{1, kConv, 2, 3, same}}},
    {"ConvTranspose",
     "1 11 22",
     {{1, "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I", 2,
       3, same}}},
    {"Div", "1 6 7 13 14", {{7, "", 2, 2, same}}},
    {"Dropout",
     "1 6 7 10 12 13 22",
     {{7, "ratio:f", 1, 1, dropout_of_inference}, {12, "seed:i", 1, 3, dropout}}},
    {"Elu", "1 6 22", {{6, "alpha:f", 1, 1, same}}},
    {"Equal", "1 7 11 13 19", {{7, "", 2, 2, same}}},
    {"Erf", "9 13", {{9, "", 1, 1, same}}},
    {"Exp", "1 6 13", {{6, "", 1, 1, same}}},
    {"Expand", "8 13", {{8, "", 2, 2, same}}},
    {"Flatten", "1 9 11 13 21 23 24 25", {{1, "axis:i", 1, 1, same}}},
    {"Floor", "1 6 13", {{6, "", 1, 1, same}}},
    {"Gather", "1 11 13", {{1, "axis:i", 2, 2, same}}},
    {"Gemm",
     "1 6 7 9 11 13",
     {{7, "alpha:f beta:f transA:i transB:i", 3, 3, same},
      {11, "alpha:f beta:f transA:i transB:i", 2, 3, same}}},
    {"GlobalAveragePool", "1 22", {{1, "", 1, 1, same}}},
    {"GlobalMaxPool", "1 22", {{1, "", 1, 1, same}}},
    {"Greater", "1 7 9 13", {{7, "", 2, 2, same}}},
    {"GreaterOrEqual", "12 16", {{12, "", 2, 2, same}}},
    {"HardSigmoid", "1 6 22", {{6, "alpha:f beta:f", 1, 1, same}}},
    {"HardSwish", "14 22", {{14, "", 1, 1, same}}},
    {"Identity", "1 13 14 16 19 21 23 24 25", {{1, "", 1, 1, same}}},
    {"If", "1 11 13 16 19 21 23 24 25", {{1, "else_branch:g then_branch:g", 1, 1, branches}}},
    {"LeakyRelu", "1 6 16", {{6, "alpha:f", 1, 1, same}}},
    {"Less", "1 7 9 13", {{7, "", 2, 2, same}}},
    {"LessOrEqual", "12 16", {{12, "", 2, 2, same}}},
    {"Log", "1 6 13", {{6, "", 1, 1, same}}},
    {"LogSoftmax", "1 11 13", {{1, "axis:i", 1, 1, softmax_of_2d}, {13, "axis:i", 1, 1, same}}},
    {"MatMul", "1 9 13", {{1, "", 2, 2, same}}},
    {"Max", "1 6 8 12 13", {{6, "", 1, kAny, same}}},
    {"MaxPool",
     "1 8 10 11 12 22",
     {{1, "auto_pad:s kernel_shape:I pads:I strides:I", 1, 1, same},
      {8, "auto_pad:s kernel_shape:I pads:I storage_order:i strides:I", 1, 1, same},
      {10, "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I", 1, 1,
       same}}},
    {"Min", "1 6 8 12 13", {{6, "", 1, kAny, same}}},
    {"Mul", "1 6 7 13 14", {{7, "", 2, 2, same}}},
    {"Neg", "1 6 13", {{6, "", 1, 1, same}}},
    {"Not", "1", {{1, "", 1, 1, same}}},
    {"Or", "1 7", {{7, "", 2, 2, same}}},
    {"Pad",
     "1 2 11 13 18 19 21 23 24 25",
     {{2, "mode:s pads:I value:f", 1, 1, pad_to_operands},
      {11, "mode:s", 2, 3, same},
      {18, "mode:s", 2, 4, same}}},
    {"Pow", "1 7 12 13 15", {{7, "", 2, 2, same}}},
    {"Reciprocal", "1 6 13", {{6, "", 1, 1, same}}},
    {"ReduceL1", "1 11 13 18", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceL2", "1 11 13 18", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceMax", "1 11 12 13 18 20", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceMean", "1 11 13 18", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceMin", "1 11 12 13 18 20", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceProd", "1 11 13 18", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"ReduceSum", "1 11 13", {{1, kReduceOld, 1, 1, axes_to_operand}, {13, kReduce, 1, 2, same}}},
    {"ReduceSumSquare", "1 11 13 18", {{1, kReduceOld, 1, 1, axes_to_operand}, {18, kReduce, 1, 2, same}}},
    {"Relu", "1 6 13 14", {{6, "", 1, 1, same}}},
    {"Reshape", "1 5 13 14 19 21 23 24 25", {{5, "", 2, 2, same}, {14, "allowzero:i", 2, 2, same}}},
    {"Round", "11 22", {{11, "", 1, 1, same}}},
    {"Shape", "1 13 15 19 21 23 24 25", {{1, "", 1, 1, same}, {15, "end:i start:i", 1, 1, same}}},
    {"Sigmoid", "1 6 13", {{6, "", 1, 1, same}}},
    {"Size", "1 13 19 21 23 24 25", {{1, "", 1, 1, same}}},
    {"Slice", "1 10 11 13", {{1, "axes:I ends:I starts:I", 1, 1, slice_to_operands}, {10, "", 3, 5, same}}},
    {"Softmax", "1 11 13", {{1, "axis:i", 1, 1, softmax_of_2d}, {13, "axis:i", 1, 1, same}}},
    {"Split",
     "1 2 11 13 18",
     {{2, "axis:i split:I", 1, 1, split_to_operand},
      {13, "axis:i", 1, 2, split_without_sizes},
      {18, "axis:i num_outputs:i", 1, 2, same}}},
    {"Sqrt", "1 6 13", {{6, "", 1, 1, same}}},
    {"Squeeze", "1 11 13 21 23 24 25", {{1, "axes:I", 1, 1, axes_to_operand}, {13, "", 1, 2, same}}},
    {"Sub", "1 6 7 13 14", {{7, "", 2, 2, same}}},
    {"Sum", "1 6 8 13", {{6, "", 1, kAny, sum}}},
    {"Tanh", "1 6 13", {{6, "", 1, 1, same}}},
    {"Transpose", "1 13 21 23 24 25", {{1, "perm:I", 1, 1, same}}},
    {"Unsqueeze", "1 11 13 21 23 24 25", {{1, "axes:I", 1, 1, axes_to_operand}, {13, "", 2, 2, same}}},
    {"Where", "9 16", {{9, "", 3, 3, same}}},
    {"Xor", "1 7", {{7, "", 2, 2, same}}},
};

}  // namespace

const Operator* find_operator(std::string_view name) {
  const auto* end = std::end(kOperators);
  const auto* it =
      std::lower_bound(std::begin(kOperators), end, name,
                       [](const Operator& op, std::string_view n) { return std::string_view(op.name) < n; });
  return it != end && name == it->name ? it : nullptr;
}

const Form* form_at(const Operator& op, int64_t opset) {
  if (opset < first_version(op)) return nullptr;
  const Form* found = nullptr;
  for (const Form& f : op.forms)
    if (f.since != 0 && f.since <= opset) found = &f;
  return found;
}

int first_version(const Operator& op) { return std::atoi(op.versions); }

size_t outputs_of(const NodeRef& ref) {
  int count = ref.node->output_size();
  while (count > 0 && ref.node->output(count - 1).empty()) --count;
  return static_cast<size_t>(count);
}

}  // namespace regie::onnx
