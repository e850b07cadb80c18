// Older forms of operators that sample pictures: Upsample, Resize, GridSample, RoiAlign.
#include <algorithm>

#include "operators.h"

namespace regie::onnx {

namespace {

std::string mode_of(Translation& t) {
  std::string mode = t.attributes.take_text("mode", "nearest");
  return mode == "bilinear" ? "linear" : mode;
}

std::vector<Attribute> asymmetric(const std::string& mode, const char* rounding) {
  return {Attribute::text("coordinate_transformation_mode", "asymmetric"), Attribute::text("mode", mode),
          Attribute::text("nearest_mode", rounding)};
}

// Upsample, and Resize of operator set 10: positions divide by the scale, and nearest cuts; where an axis
// shrinks, it takes the next position instead (as ONNX Runtime has always done; for whole factors it is the
// same). Axes that grow and axes that shrink then need a node each.
void resize_with(Translation& t, const std::vector<double>& scales) {
  const std::string mode = mode_of(t);
  const bool shrinks = std::any_of(scales.begin(), scales.end(), [](double s) { return s < 1; });
  const bool grows = std::any_of(scales.begin(), scales.end(), [](double s) { return s > 1; });
  uint32_t x = t.operand(0);
  std::vector<double> rest = scales;
  if (mode == "nearest" && shrinks && grows) {
    std::vector<double> down = scales;
    for (size_t i = 0; i < scales.size(); ++i) (scales[i] < 1 ? rest : down)[i] = 1;
    x = t.make("Resize", {x, REGIE_NONE, t.constant(floats(down), "down")}, asymmetric(mode, "ceil"));
  }
  t.finish("Resize", {x, REGIE_NONE, t.constant(floats(rest), "scales")},
           asymmetric(mode, shrinks && !grows ? "ceil" : "floor"));
}

}  // namespace

void upsample(Translation& t) {
  auto scales = t.attributes.take("scales");
  if (!scales) t.context.invalid("attribute 'scales' is missing");
  resize_with(t, scales->floats);
}

void resize_of_10(Translation& t) {
  const regie_tensor* data = t.data(t.operand(1));
  if (!data && t.ref.node->op_type() == "Upsample")  // no axis shrinks, so the scales need not be known
    return t.finish("Resize", {t.operand(0), REGIE_NONE, t.operand(1)}, asymmetric(mode_of(t), "floor"));
  if (!data || data->elem != REGIE_F32 || data->rank != 1)
    t.context.unsupported(
        "the scales must be a constant list of floats; export the model with fixed scales, or for operator "
        "set 11 or newer");
  std::vector<double> scales(static_cast<const float*>(data->data),
                             static_cast<const float*>(data->data) + data->dims[0]);
  resize_with(t, scales);
}

// "align_corners" divides by the length of the resized axis less one. Where scales give no whole length,
// ONNX's tests and its reference implementation take the length times the scale; PyTorch, and so its
// exporter, the length of the result.
void resize(Translation& t) {
  std::string coordinates = t.attributes.take_text("coordinate_transformation_mode", "half_pixel");
  if (coordinates == "align_corners" && t.context.producer == "pytorch")
    t.attributes.add(Attribute::text("corners", "whole"));
  t.attributes.add(Attribute::text("coordinate_transformation_mode", std::move(coordinates)));
  same(t);
}

// Until 20, the modes were named for pictures.
void grid_sample_of_16(Translation& t) {
  std::string mode = t.attributes.take_text("mode", "bilinear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  t.attributes.add(Attribute::text("mode", mode));
  t.finish("GridSample", t.operands, t.attributes.list());
}

void roi_align_of_10(Translation& t) {
  t.attributes.add(Attribute::text("coordinate_transformation_mode", "output_half_pixel"));
  t.finish("RoiAlign", t.operands, t.attributes.list());
}

}  // namespace regie::onnx
