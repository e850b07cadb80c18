// Operator sets 1 to 6: operators whose interface ONNX gave up before it settled. What they mean is in the
// operators' texts at those versions; where these are silent, as is said beside.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "operators.h"

namespace regie::onnx {

namespace {

bool surely_differ(const Translation::Type& a, const Translation::Type& b) {
  if (a.rank != b.rank) return true;
  for (size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return true;
  return false;
}

// "[2,?]"
std::string shape_of(const Translation::Type& t) {
  std::string text = "[";
  for (size_t i = 0; i < t.dims.size(); ++i)
    text += (i ? "," : "") + (t.dims[i] < 0 ? "?" : std::to_string(t.dims[i]));
  return text + "]";
}

bool one_element(const Translation::Type& t) {
  return std::all_of(t.dims.begin(), t.dims.end(), [](regie_dim d) { return d == 1; });
}

// `value` with `before` and `after` dimensions of 1 around its own.
uint32_t padded_rank(Translation& t, uint32_t value, int64_t rank, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return value;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < before; ++i) axes.push_back(i);
  for (int64_t i = 0; i < after; ++i) axes.push_back(before + rank + i);
  return t.make("Unsqueeze", {value, t.constant(integers(axes), "axes")});
}

// One number that must be known.
int64_t constant_number(Translation& t, size_t operand, const char* what) {
  const std::optional<int64_t> number = known_number(t, t.operand(operand));
  if (!number)
    t.context.unsupported(std::string(what) +
                          " must be a constant; export the model for operator set 7 or newer");
  return *number;
}

// A whole number of p, as of version 2 on.
void norm_to_integer(Translation& t) {
  const double p = t.attributes.take_number("p", 2);
  if (p != std::floor(p) || std::fabs(p) > 1e6)
    t.context.unsupported("a norm of the degree " + std::to_string(p) + " is not supported");
  t.attributes.add(Attribute::integer("p", static_cast<int64_t>(p)));
}

}  // namespace

// Before 7: both operands have one shape or, with broadcast=1, the second one's is a run of the first one's
// dimensions that ends with the last or begins at `axis`, or it has one element.
void broadcast_of_1(Translation& t) {
  const bool broadcast = t.attributes.take_integer("broadcast", 0) != 0;
  const auto axis = t.attributes.take("axis");
  uint32_t b = t.operand(1);
  const Translation::Type left = t.type(t.operand(0)), right = t.type(b);
  const std::string shapes = shape_of(left) + " and " + shape_of(right);
  if (!broadcast && surely_differ(left, right))
    t.context.invalid("operands of the shapes " + shapes +
                      " need the attribute broadcast=1 at operator set " + std::to_string(t.opset));
  if (broadcast) {
    if (right.rank > left.rank)
      t.context.invalid("the second operand has more dimensions than the first: " + shapes);
    int64_t first = axis ? axis->i : left.rank - right.rank;
    if (first < 0) first += left.rank;
    // Of one element, or with its last dimensions left out: wherever it is said to begin.
    const int64_t after = one_element(right) ? 0 : left.rank - first - right.rank;
    if (after < 0 || first < 0)
      t.context.invalid("axis " + std::to_string(axis ? axis->i : 0) + " does not fit the shapes " + shapes);
    b = padded_rank(t, b, right.rank, 0, after);
  }
  t.finish(t.ref.node->op_type(), {t.operand(0), b}, t.attributes.list());
}

// Before 7 the slope has one element, or one for each channel (axis 1), whatever follows it.
void prelu_of_1(Translation& t) {
  const Translation::Type x = t.type(t.operand(0)), slope = t.type(t.operand(1));
  uint32_t operand = t.operand(1);
  if (slope.rank == 1 && !one_element(slope) && x.rank > 2)
    operand = padded_rank(t, operand, 1, 0, x.rank - 2);
  t.finish("PRelu", {t.operand(0), operand}, t.attributes.list());
}

// Its defaults had fewer digits.
void selu_of_1(Translation& t) {
  for (const auto& [name, value] : {std::pair{"alpha", 1.6732f}, std::pair{"gamma", 1.0507f}})
    t.attributes.add(Attribute::number(name, t.attributes.take_number(name, shortest(value))));
  same(t);
}

// The type's name, as the file format spells it.
void cast_of_1(Translation& t) {
  static constexpr const char* kNames[] = {"",       "FLOAT",  "UINT8",     "INT8",      "UINT16",  "INT16",
                                           "INT32",  "INT64",  "STRING",    "BOOL",      "FLOAT16", "DOUBLE",
                                           "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
  std::string name = t.attributes.take_text("to", "");
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto* found = std::find(std::begin(kNames) + 1, std::end(kNames), name);
  if (found == std::end(kNames))
    t.context.invalid("attribute 'to' is " + quoted(name) + ", which is no element type");
  t.attributes.add(Attribute::integer("to", found - std::begin(kNames)));
  cast(t);
}

void concat_of_1(Translation& t) {
  t.attributes.add(Attribute::integer("axis", t.attributes.take_integer("axis", 1)));
  same(t);
}

void dropout_of_1(Translation& t) {
  const double ratio = t.attributes.take_number("ratio", 0.5);
  if (t.attributes.take_integer("is_test", 0) == 0 && ratio != 0)
    t.context.unsupported(
        "Dropout in training mode (is_test=0) is not supported; export the model for inference");
  dropout_of_inference(t);
}

// `output_sequence` told whether output 0 may be left out, which its absence tells as well.
void recurrent_of_1(Translation& t) {
  t.attributes.take("output_sequence");
  same(t);
}

// The third operand fits the product, or broadcasts to it as it does now.
void gemm_of_1(Translation& t) {
  t.attributes.take("broadcast");
  same(t);
}

void lp_pool_of_1(Translation& t) {
  norm_to_integer(t);
  same(t);
}

void reshape_of_1(Translation& t) {
  const uint32_t shape = t.constant(integers(required_integers(t, "shape")), "shape");
  t.finish("Reshape", {t.operand(0), shape}, t.attributes.list());
}

// The sizes are an attribute or a tensor of the data's own type. Without an axis: 0, as from version 2 on.
void split_of_1(Translation& t) {
  if (const uint32_t sizes = t.operand(1); sizes != REGIE_NONE) {
    const regie_tensor* data = t.data(sizes);
    const int64_t count = data && data->rank == 1 ? data->dims[0] : -1;
    std::vector<int64_t> list;
    bool known = count >= 0;
    for (int64_t i = 0; known && i < count; ++i) {
      const std::optional<int64_t> size = whole_at(*data, i);
      known = size.has_value();
      list.push_back(size.value_or(0));
    }
    if (!known)
      t.context.unsupported(
          "the sizes must be a constant list; export the model for operator set 7 or newer");
    t.attributes.take("split");
    t.attributes.add(Attribute::list("split", list));
    t.operands.resize(1);
  }
  split_to_operand(t);
}

// One axis, so many times.
void tile_of_1(Translation& t) {
  const int64_t times = constant_number(t, 1, "the number of tiles");
  const int64_t rank = t.type(t.operand(0)).rank;
  const int64_t axis = normal_axis(t, constant_number(t, 2, "the axis"), rank);
  if (times < 0) t.context.invalid("the number of tiles is " + std::to_string(times));
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(axis)] = times;
  t.finish("Tile", {t.operand(0), t.constant(integers(repeats), "repeats")}, {});
}

void upsample_of_1(Translation& t) {
  Attribute scales;
  scales.name = "scales";
  scales.kind = REGIE_ATTR_FLOATS;
  scales.floats = {1, 1, t.attributes.take_number("height_scale", 1),
                   t.attributes.take_number("width_scale", 1)};
  t.attributes.add(scales);
  upsample(t);
}

}  // namespace regie::onnx
