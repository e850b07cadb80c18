// Older forms of operators that resize, pick and normalise; and operators that are short for others.
#include <algorithm>
#include <cstring>

#include "translate.h"

namespace regie::onnx {

namespace {

// A list of floats as a tensor.
TensorData floats(const std::vector<double>& values) {
  TensorData t;
  t.elem = REGIE_F32;
  t.dims = {static_cast<int64_t>(values.size())};
  auto* to = static_cast<float*>(t.allocate(values.size() * sizeof(float)));
  for (double v : values) *to++ = static_cast<float>(v);
  return t;
}

Attribute text(std::string name, std::string value) {
  Attribute a;
  a.name = std::move(name);
  a.kind = REGIE_ATTR_STRING;
  a.s = std::move(value);
  return a;
}

// Upsample, and Resize of operator set 10: positions divide by the scale, and nearest cuts; where an axis
// shrinks, it takes the next position instead (as ONNX Runtime has always done; for whole factors it is the
// same). Axes that grow and axes that shrink then need a node each.
void resize_with(Translation& t, const std::vector<double>& scales) {
  std::string mode = "nearest";
  if (auto given = t.attributes.take("mode")) mode = given->s;
  if (mode == "bilinear") mode = "linear";
  const bool shrinks = std::any_of(scales.begin(), scales.end(), [](double s) { return s < 1; });
  const bool grows = std::any_of(scales.begin(), scales.end(), [](double s) { return s > 1; });
  auto attributes = [&](const char* rounding) {
    return std::vector<Attribute>{text("coordinate_transformation_mode", "asymmetric"), text("mode", mode),
                                  text("nearest_mode", rounding)};
  };
  uint32_t x = t.operand(0);
  std::vector<double> rest = scales;
  if (mode == "nearest" && shrinks && grows) {
    std::vector<double> down = scales;
    for (size_t i = 0; i < scales.size(); ++i) (scales[i] < 1 ? rest : down)[i] = 1;
    x = t.make("Resize", {x, REGIE_NONE, t.constant(floats(down), "down")}, attributes("ceil"));
  }
  const bool down_only = shrinks && !grows;
  t.finish("Resize", {x, REGIE_NONE, t.constant(floats(rest), "scales")},
           attributes(down_only ? "ceil" : "floor"));
}

}  // namespace

void upsample(Translation& t) {
  auto scales = t.attributes.take("scales");
  if (!scales) t.context.invalid("attribute 'scales' is missing");
  resize_with(t, scales->floats);
}

void resize_of_10(Translation& t) {
  const regie_tensor* data = t.data(t.operand(1));
  if (!data || data->elem != REGIE_F32 || data->rank != 1)
    t.context.unsupported(
        "the scales must be a constant list of floats; export the model with fixed scales, or for operator "
        "set 11 or newer");
  std::vector<double> scales(static_cast<const float*>(data->data),
                             static_cast<const float*>(data->data) + data->dims[0]);
  resize_with(t, scales);
}

// The type comes from the second operand, whose values do not matter.
void cast_like(Translation& t) {
  t.attributes.take("round_mode");
  t.attributes.add(Attribute::integer("to", t.type(t.operand(1)).elem));
  t.finish("Cast", {t.operand(0)}, t.attributes.list());
}

void mean(Translation& t) {
  uint32_t total = t.operand(0);
  if (t.operands.size() == 1) return t.finish("Identity", {total}, {});
  for (size_t i = 1; i < t.operands.size(); ++i) total = t.make("Add", {total, t.operands[i]});
  const uint32_t count = scalar_like(t, t.operand(0), static_cast<double>(t.operands.size()), "count");
  t.finish("Div", {total, count}, {});
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

void range(Translation& t) {
  t.attributes.take("stash_type");  // the precision of intermediate numbers
  t.finish("Range", t.operands, t.attributes.list());
}

// Until 20, the axis was an attribute.
void dft_of_17(Translation& t) {
  const int64_t axis = t.attributes.take_integer("axis", 1);
  TensorData number = integers({axis});
  number.dims.clear();
  t.finish("DFT", {t.operand(0), t.operand(1), t.constant(number, "axis")}, t.attributes.list());
}

// Until 20, the modes were named for pictures.
void grid_sample_of_16(Translation& t) {
  std::string mode = "bilinear";
  if (auto given = t.attributes.take("mode")) mode = given->s;
  if (mode.rfind("bi", 0) == 0) mode = mode == "bilinear" ? "linear" : "cubic";
  t.attributes.add(text("mode", mode));
  t.finish("GridSample", t.operands, t.attributes.list());
}

void roi_align_of_10(Translation& t) {
  t.attributes.add(text("coordinate_transformation_mode", "output_half_pixel"));
  t.finish("RoiAlign", t.operands, t.attributes.list());
}

// Both directions. What is left out matters for 8-bit floats, which are refused, and for rounding of the
// quotient, which is in single precision here.
void quantize(Translation& t) {
  t.attributes.take("saturate");
  t.attributes.take("precision");
  t.finish(t.ref.node->op_type(), t.operands, t.attributes.list());
}

void swiglu(Translation& t) {
  const uint32_t gate = t.make("Swish", {t.operand(0)}, t.attributes.list());
  t.finish("Mul", {gate, t.operand(1)}, {});
}

// The soft-max is computed in single precision at least.
void attention(Translation& t) {
  t.attributes.take("softmax_precision");
  t.finish("Attention", t.operands, t.attributes.list());
}

}  // namespace regie::onnx
