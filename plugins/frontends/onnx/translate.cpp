// How older forms of operators become canonical. Each function is the difference between two texts of the
// ONNX operator specification, named in its comment where it is not plain.
#include <algorithm>
#include <cstring>
#include <limits>

#include "operators.h"

namespace regie::onnx {

namespace {

std::vector<int64_t> required_integers(Translation& t, std::string_view name) {
  auto list = t.attributes.take_integers(name);
  if (!list) t.context.invalid("attribute " + quoted(name) + " is missing");
  return std::move(*list);
}

// A scalar constant of the type of `like`.
uint32_t scalar_like(Translation& t, uint32_t like, double value, std::string_view suffix) {
  TensorData data;
  const Translation::Type type = t.type(like);
  if (!scalar(type.elem, value, &data))
    t.context.invalid("the operator does not take " + std::string(element_name(type.elem)) +
                      " at operator set " + std::to_string(t.opset));
  return t.constant(data, suffix);
}

void drop_absent(std::vector<uint32_t>* operands) {
  while (!operands->empty() && operands->back() == REGIE_NONE) operands->pop_back();
}

// The sum of the first `count` operands.
uint32_t sum_of(Translation& t, size_t count) {
  uint32_t total = t.operand(0);
  for (size_t i = 1; i < count; ++i) total = t.make("Add", {total, t.operands[i]});
  return total;
}

}  // namespace

void same(Translation& t) { t.finish(t.ref.node->op_type(), t.operands, t.attributes.list()); }

// What says how exactly intermediate numbers are kept is left out: they are of single precision at least. And
// `saturate` matters for 8-bit floats only, which are refused.
void same_but_precision(Translation& t) {
  for (const char* name : {"precision", "saturate", "softmax_precision", "stash_type"})
    t.attributes.take(name);
  same(t);
}

// Before 13, the axis (1 unless given) splits the dimensions in two groups; all of the second are normalised
// together. From 13 on, one dimension is, and the axis is -1 unless given.
void softmax_of_2d(Translation& t) {
  const std::string& op = t.ref.node->op_type();
  const uint32_t x = t.operand(0);
  const Translation::Type type = t.type(x);
  int64_t axis = t.attributes.take_integer("axis", 1);
  if (axis < -type.rank || axis > std::max(type.rank, 1) - (axis == 1 ? 0 : 1))
    t.context.invalid("axis " + std::to_string(axis) + " does not fit the rank " + std::to_string(type.rank));
  if (axis < 0) axis += type.rank;
  if (axis == type.rank - 1) {
    t.finish(op, {x}, {Attribute::integer("axis", -1)});
    return;
  }
  const bool fixed = std::all_of(type.dims.begin(), type.dims.end(), [](regie_dim d) { return d >= 0; });
  const uint32_t flat = t.make("Flatten", {x}, {Attribute::integer("axis", axis)});
  const uint32_t y = t.make(op, {flat}, {Attribute::integer("axis", 1)});
  const uint32_t shape =
      fixed ? t.constant(integers({type.dims.begin(), type.dims.end()}), "shape") : t.make("Shape", {x});
  // A dimension of 0 is one of 0 elements here, not "as in the operand".
  t.finish("Reshape", {y, shape}, {Attribute::integer("allowzero", 1)});
}

// Squeeze and Unsqueeze before 13, ReduceSum before 13, the other reductions before 18. No axes: all of them.
void axes_to_operand(Translation& t) {
  std::vector<uint32_t> operands = t.operands;
  auto axes = t.attributes.take_integers("axes");
  if (!axes && t.ref.node->op_type() == "Unsqueeze") t.context.invalid("attribute 'axes' is missing");
  if (axes && !axes->empty()) operands.push_back(t.constant(integers(*axes), "axes"));
  t.finish(t.ref.node->op_type(), operands, t.attributes.list());
}

// Split without sizes makes equal parts; the canonical form wants their number, and would take an uneven last
// part, which older ones refuse.
void split_without_sizes(Translation& t) {
  std::vector<uint32_t> operands = t.operands;
  drop_absent(&operands);
  if (operands.size() < 2) {
    const auto parts = static_cast<int64_t>(t.output_count());
    const Translation::Type type = t.type(t.operand(0));
    const auto& attrs = t.attributes.list();
    auto a = std::find_if(attrs.begin(), attrs.end(), [](const Attribute& x) { return x.name == "axis"; });
    int64_t axis = a == attrs.end() ? 0 : a->i;
    if (axis < 0) axis += type.rank;
    if (axis >= 0 && axis < type.rank && parts > 0) {
      const regie_dim size = type.dims[static_cast<size_t>(axis)];
      if (size >= 0 && size % parts != 0)
        t.context.invalid("a dimension of " + std::to_string(size) + " does not split into " +
                          std::to_string(parts) + " equal parts");
    }
    t.attributes.add(Attribute::integer("num_outputs", parts));
  }
  t.finish("Split", operands, t.attributes.list());
}

void split_to_operand(Translation& t) {
  auto sizes = t.attributes.take_integers("split");
  if (!sizes || sizes->empty()) return split_without_sizes(t);
  if (sizes->size() != t.output_count())
    t.context.invalid("attribute 'split' has " + std::to_string(sizes->size()) + " sizes for " +
                      std::to_string(t.output_count()) + " outputs");
  const uint32_t operand = t.constant(integers(*sizes), "split");
  t.finish("Split", {t.operand(0), operand}, t.attributes.list());
}

void pad_to_operands(Translation& t) {
  const std::vector<int64_t> pads = required_integers(t, "pads");
  const double value = t.attributes.take_number("value", 0);
  std::vector<uint32_t> operands{t.operand(0), t.constant(integers(pads), "pads")};
  if (value != 0) operands.push_back(scalar_like(t, t.operand(0), value, "value"));
  t.finish("Pad", operands, t.attributes.list());
}

void slice_to_operands(Translation& t) {
  const std::vector<int64_t> starts = required_integers(t, "starts"), ends = required_integers(t, "ends");
  auto axes = t.attributes.take_integers("axes");
  if (starts.size() != ends.size() || (axes && axes->size() != starts.size()))
    t.context.invalid("attributes 'starts', 'ends' and 'axes' must be of one length");
  std::vector<uint32_t> operands{t.operand(0), t.constant(integers(starts), "starts"),
                                 t.constant(integers(ends), "ends")};
  if (axes) operands.push_back(t.constant(integers(*axes), "axes"));
  t.finish("Slice", operands, t.attributes.list());
}

void clip_to_operands(Translation& t) {
  auto low = t.attributes.take("min"), high = t.attributes.take("max");
  std::vector<uint32_t> operands{t.operand(0), REGIE_NONE, REGIE_NONE};
  if (low) operands[1] = scalar_like(t, t.operand(0), low->f, "min");
  if (high) operands[2] = scalar_like(t, t.operand(0), high->f, "max");
  drop_absent(&operands);
  t.finish("Clip", operands, t.attributes.list());
}

// Before 12, Dropout is of inference only: it passes its operand on, and the ratio has no effect.
void dropout_of_inference(Translation& t) {
  if (t.opset < 10 && t.output_read(1))
    t.context.unsupported("the mask of Dropout before operator set 10 is not supported; leave output 1 out");
  t.finish("Dropout", {t.operand(0)}, {});
}

// In training mode too, a ratio of 0 drops nothing; some exporters leave it so.
void dropout(Translation& t) {
  auto all_zero = [&](uint32_t value) {
    const regie_tensor* data = t.data(value);
    if (!data) return false;
    const auto* bytes = static_cast<const uint8_t*>(data->data);
    return std::all_of(bytes, bytes + data->bytes, [](uint8_t b) { return b == 0; });
  };
  const uint32_t ratio = t.operand(1), mode = t.operand(2);
  if (mode != REGIE_NONE && !all_zero(mode) && !(ratio != REGIE_NONE && all_zero(ratio)))
    t.context.unsupported(
        "Dropout in training mode is not supported: its training_mode must be a constant false, or its ratio "
        "0; export the model for inference");
  t.finish("Dropout", {t.operand(0)}, {});
}

void batch_normalization(Translation& t) {
  const bool training = t.attributes.take_integer("training_mode", 0) != 0 || t.output_count() > 1;
  if (training)
    t.context.unsupported(
        "BatchNormalization in training mode is not supported; export the model for inference");
  if (t.attributes.take_integer("spatial", 1) != 1)
    t.context.unsupported(
        "BatchNormalization with spatial=0 (statistics for each position) is not supported");
  t.attributes.take("momentum");  // of training only
  t.finish("BatchNormalization", t.operands, t.attributes.list());
}

void cast(Translation& t) {
  const auto& attrs = t.attributes.list();
  auto to = std::find_if(attrs.begin(), attrs.end(), [](const Attribute& a) { return a.name == "to"; });
  if (to == attrs.end()) t.context.invalid("attribute 'to' is missing");
  if (to->i < 0 || to->i > INT32_MAX) t.context.invalid("attribute 'to' is not an element type");
  element_type(t.context, static_cast<int32_t>(to->i));
  t.attributes.take("round_mode");  // matters for a type that is refused above
  t.finish("Cast", t.operands, t.attributes.list());
}

// The type comes from the second operand, whose values do not matter.
void cast_like(Translation& t) {
  t.attributes.take("round_mode");
  t.attributes.add(Attribute::integer("to", t.type(t.operand(1)).elem));
  t.finish("Cast", {t.operand(0)}, t.attributes.list());
}

void sum(Translation& t) {
  if (t.operands.size() == 1) return t.finish("Identity", t.operands, {});
  t.finish("Add", {sum_of(t, t.operands.size() - 1), t.operands.back()}, {});
}

void mean(Translation& t) {
  if (t.operands.size() == 1) return t.finish("Identity", t.operands, {});
  const uint32_t total = sum_of(t, t.operands.size());
  const uint32_t count = scalar_like(t, t.operand(0), static_cast<double>(t.operands.size()), "count");
  t.finish("Div", {total, count}, {});
}

void swiglu(Translation& t) {
  const uint32_t gate = t.make("Swish", {t.operand(0)}, t.attributes.list());
  t.finish("Mul", {gate, t.operand(1)}, {});
}

// Until 21, scale and bias had one number a group; each is for all channels of its group.
void group_normalization_of_18(Translation& t) {
  const Translation::Type x = t.type(t.operand(0));
  if (x.rank < 2 || x.dims[1] < 0) t.context.unsupported("the number of channels must be known");
  const int64_t groups = t.attributes.take_integer("num_groups", 0);
  if (groups < 1 || x.dims[1] % groups != 0)
    t.context.invalid(std::to_string(x.dims[1]) + " channels do not split into " + std::to_string(groups) +
                      " groups");
  const uint32_t column = t.constant(integers({groups, 1}), "column");
  const uint32_t matrix = t.constant(integers({groups, x.dims[1] / groups}), "matrix");
  const uint32_t list = t.constant(integers({x.dims[1]}), "list");
  std::vector<uint32_t> operands{t.operand(0)};
  for (size_t i = 1; i <= 2; ++i)
    operands.push_back(
        t.make("Reshape", {t.make("Expand", {t.make("Reshape", {t.operand(i), column}), matrix}), list}));
  t.attributes.add(Attribute::integer("num_groups", groups));
  t.finish("GroupNormalization", operands, t.attributes.list());
}

void top_k_of_1(Translation& t) {
  const int64_t k = t.attributes.take_integer("k", -1);
  if (k < 0) t.context.invalid("attribute 'k' is missing or negative");
  t.finish("TopK", {t.operand(0), t.constant(integers({k}), "k")}, t.attributes.list());
}

// The name of ScatterElements before operator set 11.
void scatter(Translation& t) { t.finish("ScatterElements", t.operands, t.attributes.list()); }

// Until 20, the axis was an attribute.
void dft_of_17(Translation& t) {
  const int64_t axis = t.attributes.take_integer("axis", 1);
  TensorData number = integers({axis});
  number.dims.clear();
  t.finish("DFT", {t.operand(0), t.operand(1), t.constant(number, "axis")}, t.attributes.list());
}

void constant(Translation& t) { t.finish_constant(); }

void branches(Translation& t) { t.finish_if(); }
void loop(Translation& t) { t.finish_loop(); }
void scan_of_8(Translation& t) {
  t.context.unsupported(
      "Scan of operator set 8 goes over batches, each of a length of its own, and is not supported; convert "
      "the "
      "model to operator set 9 or later");
}
void scan(Translation& t) { t.finish_scan(); }

}  // namespace regie::onnx
