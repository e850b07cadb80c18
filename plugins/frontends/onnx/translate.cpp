// How older forms of operators become canonical. Each function is the difference between two texts of the
// ONNX operator specification, named in its comment where it is not plain.
#include <algorithm>
#include <cstring>
#include <limits>

#include "operators.h"

namespace regie::onnx {

namespace {

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

std::vector<int64_t> required_integers(Translation& t, std::string_view name) {
  auto list = t.attributes.take_integers(name);
  if (!list) t.context.invalid("attribute " + quoted(name) + " is missing");
  return std::move(*list);
}

uint32_t scalar_like(Translation& t, uint32_t like, double value, std::string_view suffix) {
  TensorData data;
  const Translation::Type type = t.type(like);
  if (!scalar(type.elem, value, &data))
    t.context.invalid("the operator does not take " + std::string(element_name(type.elem)) +
                      " at operator set " + std::to_string(t.opset));
  return t.constant(data, suffix);
}

std::optional<int64_t> known_number(const Translation& t, uint32_t value) {
  const regie_tensor* data = t.data(value);
  return data && data->bytes != 0 ? whole_at(*data, 0) : std::nullopt;
}

int64_t normal_axis(Translation& t, int64_t axis, int64_t rank, std::string_view what) {
  if (axis < -rank || axis >= rank)
    t.context.invalid(std::string(what) + " " + std::to_string(axis) + " does not fit the rank " +
                      std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

void same(Translation& t) { t.finish(t.ref.node->op_type(), t.operands, t.attributes.list()); }

// As in numpy.matmul, a list is a row on the left and a column on the right, and that axis is not in the
// result.
void product_of_integers(Translation& t) {
  const std::string op(t.ref.node->op_type());
  const size_t right = op == "MatMulInteger" ? 1 : 3;
  std::vector<int64_t> gone;
  std::vector<uint32_t> operands = t.operands;
  if (t.type(operands[0]).rank == 1) {
    operands[0] = t.make("Unsqueeze", {operands[0], t.constant(integers({0}), "row")});
    gone.push_back(t.type(operands[right]).rank == 1 ? 0 : -2);
  }
  if (t.type(operands[right]).rank == 1) {
    operands[right] = t.make("Unsqueeze", {operands[right], t.constant(integers({1}), "column")});
    gone.push_back(gone.empty() ? -1 : 1);
  }
  if (gone.empty()) return same(t);
  const uint32_t whole = t.make(op, operands, t.attributes.list());
  t.finish("Squeeze", {whole, t.constant(integers(gone), "axes")}, {});
}

// What says how exactly intermediate numbers are kept is left out: they are of single precision at least.
void same_but_precision(Translation& t) {
  for (const char* name : {"precision", "softmax_precision", "stash_type"}) t.attributes.take(name);
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

// Split without sizes makes equal parts. The canonical form with their number takes a smaller last part,
// which older ones refuse; so of a symbolic axis it is the one without, whose parts are equal or the run is
// refused.
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
    bool fixed = true;
    if (axis >= 0 && axis < type.rank && parts > 0) {
      const regie_dim size = type.dims[static_cast<size_t>(axis)];
      fixed = size >= 0;
      if (fixed && size % parts != 0)
        t.context.invalid("a dimension of " + std::to_string(size) + " does not split into " +
                          std::to_string(parts) + " equal parts");
    }
    if (fixed) t.attributes.add(Attribute::integer("num_outputs", parts));
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
  const std::vector<int64_t> pads = required_integers(t, t.opset < 2 ? "paddings" : "pads");
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

// In training mode, elements are dropped where a random number is below the ratio, and the rest grow.
void dropout(Translation& t) {
  auto all_zero = [&](uint32_t value) {
    const regie_tensor* data = t.data(value);
    if (!data) return false;
    const auto* bytes = static_cast<const uint8_t*>(data->data);
    return std::all_of(bytes, bytes + data->bytes, [](uint8_t b) { return b == 0; });
  };
  const uint32_t ratio = t.operand(1), mode = t.operand(2), x = t.operand(0);
  if (mode == REGIE_NONE || all_zero(mode) || (ratio != REGIE_NONE && all_zero(ratio)))
    return t.finish("Dropout", {x}, {});
  auto cast_to = [&](uint32_t v, regie_elem elem) {
    return t.make("Cast", {v}, {Attribute::integer("to", elem)});
  };
  TensorData one, half;
  scalar(REGIE_F64, 1, &one);
  scalar(REGIE_F64, 0.5, &half);
  const uint32_t whole = t.constant(one, "one");
  const uint32_t dropped = ratio == REGIE_NONE ? t.constant(half, "ratio") : cast_to(ratio, REGIE_F64);
  std::vector<Attribute> draw{Attribute::integer("dtype", REGIE_F64)};
  if (auto seed = t.attributes.take("seed"))
    draw.push_back(Attribute::number("seed", static_cast<double>(seed->i)));
  const uint32_t drawn = t.make("GreaterOrEqual", {t.make("RandomUniformLike", {x}, draw), dropped});
  const uint32_t kept = t.make("Or", {drawn, t.make("Not", {mode})});
  const uint32_t growth =
      t.make("Where", {mode, t.make("Div", {whole, t.make("Sub", {whole, dropped})}), whole});
  const regie_elem elem = t.type(x).elem;
  const uint32_t grown = cast_to(t.make("Mul", {cast_to(x, REGIE_F64), growth}), elem);
  t.finish_with({t.make("Where", {kept, grown, scalar_like(t, x, 0, "zero")}), kept});
}

// 1 where a random number is below the operand.
void bernoulli(Translation& t) {
  const uint32_t x = t.operand(0);
  const regie_elem elem = t.type(x).elem;
  const int64_t to = t.attributes.take_integer("dtype", elem);
  std::vector<Attribute> draw = t.attributes.list();
  draw.push_back(Attribute::integer("dtype", elem));
  const uint32_t drawn = t.make("Less", {t.make("RandomUniformLike", {x}, draw), x});
  t.finish("Cast", {drawn}, {Attribute::integer("to", to)});
}

// Classes by their logarithmic weights: the greatest of these and as many numbers of Gumbel's distribution.
void multinomial(Translation& t) {
  const uint32_t x = t.operand(0);
  if (t.type(x).rank != 2) t.context.invalid("the operand must be a matrix: a row of classes for each item");
  const int64_t samples = t.attributes.take_integer("sample_size", 1);
  const int64_t to = t.attributes.take_integer("dtype", REGIE_I32);
  if (samples < 1 || (to != REGIE_I32 && to != REGIE_I64))
    t.context.invalid("sample_size must be 1 or more, and dtype i32 or i64");
  const uint32_t wide = t.make("Cast", {x}, {Attribute::integer("to", REGIE_F64)});
  const uint32_t rows = t.make("Unsqueeze", {wide, t.constant(integers({1}), "axis")});
  const uint32_t weights = t.make("Expand", {rows, t.constant(integers({1, samples, 1}), "samples")});
  std::vector<Attribute> draw = t.attributes.list();
  draw.push_back(Attribute::integer("dtype", REGIE_F64));
  auto minus_log = [&](uint32_t v) { return t.make("Neg", {t.make("Log", {v})}); };
  const uint32_t noise = minus_log(minus_log(t.make("RandomUniformLike", {weights}, draw)));
  const uint32_t best = t.make("ArgMax", {t.make("Add", {weights, noise})},
                               {Attribute::integer("axis", 2), Attribute::integer("keepdims", 0)});
  t.finish("Cast", {best}, {Attribute::integer("to", to)});
}

void random_of_shape(Translation& t) {
  const std::vector<int64_t> shape = required_integers(t, "shape");
  const bool normal = t.ref.node->op_type() == "RandomNormal";
  t.attributes.add(Attribute::integer("dtype", t.attributes.take_integer("dtype", REGIE_F32)));
  t.finish(normal ? "RandomNormalLike" : "RandomUniformLike",
           {t.make("ConstantOfShape", {t.constant(integers(shape), "shape")})}, t.attributes.list());
}

// In training mode, mean and variance are those of the batch, and what was given moves towards them. Until 6,
// `is_test` told the mode, then whether there is more than one output, since 14 an attribute. Until 8, there
// could be statistics for each position (`spatial` = 0): of all axes but the first.
void batch_normalization(Translation& t) {
  const bool said = t.opset < 7    ? t.attributes.take_integer("is_test", 0) == 0
                    : t.opset < 14 ? false
                                   : t.attributes.take_integer("training_mode", 0) != 0;
  const bool training = said || (t.opset < 14 && t.output_count() > 1);
  const bool spatial = t.attributes.take_integer("spatial", 1) != 0;
  const double momentum = t.attributes.take_number("momentum", 0.9);
  if (!training && t.output_count() > 1)
    t.context.invalid("BatchNormalization has one output where training_mode is 0");
  for (int i = 1; training && t.opset < 14 && i < 5; ++i)
    if (t.output_read(i))
      t.context.unsupported(
          "the statistics that BatchNormalization gives in training mode before operator set "
          "14 are not supported; leave output " +
          std::to_string(i) + " out");
  if (!training && spatial) return t.finish("BatchNormalization", t.operands, t.attributes.list());
  const Translation::Type type = t.type(t.operand(0));

  // Narrow floats would overflow in the squares.
  const bool narrow = type.elem == REGIE_F16 || type.elem == REGIE_BF16;
  auto to = [&](uint32_t v, regie_elem elem) {
    return t.type(v).elem == elem ? v : t.make("Cast", {v}, {Attribute::integer("to", elem)});
  };
  const regie_elem wide = narrow ? regie_elem{REGIE_F32} : type.elem;
  uint32_t mean = t.operand(3), variance = t.operand(4);
  const uint32_t x = spatial && !training ? t.operand(0) : to(t.operand(0), wide);
  if (training) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < type.rank; ++i)
      if (spatial ? i != 1 : i == 0) axes.push_back(i);
    const uint32_t over = t.constant(integers(axes), "axes");
    const uint32_t kept = t.make("ReduceMean", {x, over});
    const uint32_t off = t.make("Sub", {x, kept});
    const std::vector<Attribute> drop{Attribute::integer("keepdims", 0)};
    mean = t.make("ReduceMean", {x, over}, drop);
    variance = t.make("ReduceMean", {t.make("Mul", {off, off}), over}, drop);
  }
  uint32_t y = REGIE_NONE;
  if (spatial) {
    y = t.make("BatchNormalization", {t.operand(0), t.operand(1), t.operand(2), mean, variance},
               t.attributes.list());
  } else {
    const uint32_t epsilon = scalar_like(t, x, t.attributes.take_number("epsilon", 1e-5), "epsilon");
    const uint32_t deviation = t.make("Sqrt", {t.make("Add", {to(variance, wide), epsilon})});
    const uint32_t unit = t.make("Div", {t.make("Sub", {x, to(mean, wide)}), deviation});
    const uint32_t scaled = t.make("Mul", {unit, to(t.operand(1), wide)});
    y = to(t.make("Add", {scaled, to(t.operand(2), wide)}), type.elem);
  }
  std::vector<uint32_t> results{y};
  for (size_t i = 1; i < t.output_count(); ++i) {
    const uint32_t given = t.operand(2 + i), current = i == 1 ? mean : variance;
    if (t.opset < 14 || i > 2) break;
    const regie_elem elem = t.type(given).elem;
    const uint32_t old = to(given, wide);
    results.push_back(to(t.make("Add", {t.make("Mul", {old, scalar_like(t, old, momentum, "momentum")}),
                                        t.make("Mul", {current, scalar_like(t, old, 1 - momentum, "rest")})}),
                         elem));
  }
  t.finish_with(results);
}

void cast(Translation& t) {
  const auto& attrs = t.attributes.list();
  auto to = std::find_if(attrs.begin(), attrs.end(), [](const Attribute& a) { return a.name == "to"; });
  if (to == attrs.end()) t.context.invalid("attribute 'to' is missing");
  if (to->i < 0 || to->i > INT32_MAX) t.context.invalid("attribute 'to' is not an element type");
  // How to round matters for powers of two alone.
  if (element_type(t.context, static_cast<int32_t>(to->i)) != REGIE_F8E8M0) t.attributes.take("round_mode");
  t.finish("Cast", t.operands, t.attributes.list());
}

// The type comes from the second operand, whose values do not matter.
void cast_like(Translation& t) {
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
  const TensorData axis = integer(t.attributes.take_integer("axis", 1));
  t.finish("DFT", {t.operand(0), t.operand(1), t.constant(axis, "axis")}, t.attributes.list());
}

// What is kept of the past comes before the signal; each channel has its own filter.
void causal_conv_with_state(Translation& t) {
  const Translation::Type x = t.type(t.operand(0)), w = t.type(t.operand(1));
  const std::string activation = t.attributes.take_text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    t.context.invalid("activation " + quoted(activation) + " is not one of none, silu, swish");
  if (x.rank != 3 || w.rank != 3) t.context.invalid("signal and weight must have the rank 3");
  if (w.dims[0] < 0 || w.dims[2] < 1) t.context.unsupported("channels and width of the filter must be known");
  const int64_t kept = w.dims[2] - 1;
  uint32_t signal = t.operand(0);
  if (t.operand(3) != REGIE_NONE) {
    signal = t.make("Concat", {t.operand(3), signal}, {Attribute::integer("axis", 2)});
  } else if (kept > 0) {
    signal = t.make("Pad", {signal, t.constant(integers({0, 0, kept, 0, 0, 0}), "pads")});
  }
  std::vector<uint32_t> operands{signal, t.operand(1)};
  if (t.operand(2) != REGIE_NONE) operands.push_back(t.operand(2));
  std::vector<uint32_t> results{t.make("Conv", operands, {Attribute::integer("group", w.dims[0])})};
  if (activation != "none") results[0] = t.make("Swish", results);
  if (t.output_wanted(1)) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    results.push_back(
        t.make("Slice", {signal, t.constant(integers({kept > 0 ? -kept : kEnd}), "start"),
                         t.constant(integers({kEnd}), "end"), t.constant(integers({2}), "axis")}));
  }
  t.finish_with(results);
}

void constant(Translation& t) { t.finish_constant(); }

void branches(Translation& t) { t.finish_if(); }
void loop(Translation& t) { t.finish_loop(); }
void scan_of_8(Translation& t) { t.finish_scan_of_8(); }
void scan(Translation& t) { t.finish_scan(); }

}  // namespace regie::onnx
