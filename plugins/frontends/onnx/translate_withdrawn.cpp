// Operators that were experimental in ONNX up to its release 1.4 and are none any more. Exporters of that
// time wrote them (ImageScaler is what networks converted from Core ML begin with).
#include <limits>

#include "operators.h"

namespace regie::onnx {

namespace {

// factor * x, or x itself.
uint32_t times(Translation& t, uint32_t x, double factor, const char* name) {
  return factor == 1 ? x : t.make("Mul", {x, scalar_like(t, x, factor, name)});
}

}  // namespace

// alpha * x + beta; Scale has the factor alone.
void affine(Translation& t) {
  const uint32_t x = t.operand(0);
  const double factor = t.attributes.take_number(t.ref.node->op_type() == "Scale" ? "scale" : "alpha", 1);
  t.finish("Add",
           {times(t, x, factor, "alpha"), scalar_like(t, x, t.attributes.take_number("beta", 0), "beta")},
           {});
}

// Pictures without their border: left, top, right, bottom; or, with `scale`, of that height and width from
// the left and top border on.
void crop(Translation& t) {
  const auto border = t.attributes.take_integers("border"), scale = t.attributes.take_integers("scale");
  if (!border || border->size() != 4 || (scale && scale->size() != 2) || t.type(t.operand(0)).rank != 4)
    t.context.invalid(
        "Crop is for pictures (rank 4), with four numbers as border and, as scale, two or none");
  const std::vector<int64_t>& b = *border;
  auto end = [&](size_t axis, int64_t first, int64_t last) {
    if (scale) return first + (*scale)[axis];
    return last == 0 ? std::numeric_limits<int64_t>::max() : -last;
  };
  t.finish("Slice",
           {t.operand(0), t.constant(integers({b[1], b[0]}), "starts"),
            t.constant(integers({end(0, b[1], b[3]), end(1, b[0], b[2])}), "ends"),
            t.constant(integers({2, 3}), "axes")},
           {});
}

void image_scaler(Translation& t) {
  const uint32_t x = t.operand(0);
  const uint32_t scaled = times(t, x, t.attributes.take_number("scale", 1), "scale");
  const auto bias = t.attributes.take("bias");
  if (!bias) return t.finish("Identity", {scaled}, {});
  TensorData list = floats(bias->floats);
  list.dims = {static_cast<int64_t>(bias->floats.size()), 1, 1};
  uint32_t shift = t.constant(list, "bias");
  if (const regie_elem elem = t.type(x).elem; elem != REGIE_F32)
    shift = t.make("Cast", {shift}, {Attribute::integer("to", elem)});
  t.finish("Add", {scaled, shift}, {});
}

void parametric_softplus(Translation& t) {
  const uint32_t x = t.operand(0);
  const double alpha = t.attributes.take_number("alpha", 1), beta = t.attributes.take_number("beta", 1);
  const uint32_t y = t.make("Softplus", {times(t, x, beta, "beta")});
  t.finish("Mul", {y, scalar_like(t, x, alpha, "alpha")}, {});
}

void scaled_tanh(Translation& t) {
  const uint32_t x = t.operand(0);
  const double alpha = t.attributes.take_number("alpha", 1), beta = t.attributes.take_number("beta", 1);
  t.finish("Mul", {t.make("Tanh", {times(t, x, beta, "beta")}), scalar_like(t, x, alpha, "alpha")}, {});
}

// Over height and width or, with across_channels, over the channels too.
void mean_variance_of_1(Translation& t) {
  const int64_t rank = t.type(t.operand(0)).rank;
  std::vector<int64_t> axes;
  for (int64_t i = t.attributes.take_integer("across_channels", 0) != 0 ? 1 : 2; i < rank; ++i)
    axes.push_back(i);
  if (t.attributes.take_integer("normalize_variance", 1) != 0)
    return t.finish("MeanVarianceNormalization", {t.operand(0)}, {Attribute::list("axes", axes)});
  const uint32_t mean = t.make("ReduceMean", {t.operand(0), t.constant(integers(axes), "axes")});
  t.finish("Sub", {t.operand(0), mean}, {});
}

}  // namespace regie::onnx
