// Resize of float32 by the nearest element or linearly along each axis. An axis has a table of two places and
// a weight for each position of the result; what lies behind the last resized axis is moved a row at a time.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "native.h"
#include "parallel.h"

namespace host_cpu {
namespace {

struct Axis {
  int64_t from = 1, to = 1;
  std::vector<int64_t> low, high;  // places of the operand
  std::vector<float> weight;       // of `high`; empty: nearest, `low` alone
  bool identity() const { return low.empty(); }
};

// In single precision, as others have it: where a position falls between two elements is decided by it.
float source_position(std::string_view mode, int64_t at, int64_t from, int64_t to, float scale,
                      float length) {
  const auto x = static_cast<float>(at);
  if (mode == "half_pixel") return (x + 0.5f) / scale - 0.5f;
  if (mode == "asymmetric") return x / scale;
  if (mode == "pytorch_half_pixel") return to > 1 ? (x + 0.5f) / scale - 0.5f : 0.f;
  if (mode == "align_corners") return length == 1 ? 0.f : x * static_cast<float>(from - 1) / (length - 1);
  refuse("coordinate_transformation_mode " + std::string(mode));
}

int64_t nearest(std::string_view mode, float x) {
  if (mode == "round_prefer_floor")
    return static_cast<int64_t>(x == std::trunc(x) + 0.5f ? std::floor(x) : std::round(x));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::round(x));
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  refuse("nearest_mode " + std::string(mode));
}

// `length`: of the resized axis; the size times the scale is a fraction at times.
Axis make_axis(const NativeRequest& r, bool linear, int64_t from, int64_t to, float scale, float length) {
  Axis a{from, to, {}, {}, {}};
  if (from == to && scale == 1) return a;
  const std::string_view coordinates = r.attrs.text("coordinate_transformation_mode", "half_pixel"),
                         rounding = r.attrs.text("nearest_mode", "round_prefer_floor");
  for (int64_t at = 0; at < to; ++at) {
    float x = source_position(coordinates, at, from, to, scale, length);
    if (!linear) {
      a.low.push_back(std::clamp<int64_t>(nearest(rounding, x), 0, from - 1));
      continue;
    }
    x = std::clamp(x, 0.f, static_cast<float>(from - 1));
    const float base = std::floor(x);
    a.low.push_back(static_cast<int64_t>(base));
    a.high.push_back(std::min<int64_t>(static_cast<int64_t>(base) + 1, from - 1));
    a.weight.push_back(x - base);
  }
  return a;
}

// outer x [axis a] x [axis b] x inner, row-major; `b` is the later of at most two neighbouring axes.
struct Plan {
  int64_t outer = 1, inner = 1;
  Axis a, b;
  uint32_t threads = 1;

  void run(const float* x, float* y) const {
    parallel(threads, outer * a.to, b.to * inner * 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / a.to, at = i % a.to;
        const float* plane = x + o * a.from * b.from * inner;
        const float* low = plane + (a.identity() ? at : a.low[static_cast<size_t>(at)]) * b.from * inner;
        float* row = y + i * b.to * inner;
        if (a.weight.empty() && b.weight.empty()) {
          nearest_row(low, row);
        } else {
          const float wa = a.weight.empty() ? 0.f : a.weight[static_cast<size_t>(at)];
          const float* high =
              a.weight.empty() ? low : plane + a.high[static_cast<size_t>(at)] * b.from * inner;
          linear_row(low, high, wa, row);
        }
      }
    });
  }

 private:
  void nearest_row(const float* from, float* to) const {
    if (b.identity()) {
      std::memcpy(to, from, static_cast<size_t>(b.to * inner) * sizeof(float));
    } else if (inner == 1) {
      for (int64_t k = 0; k < b.to; ++k) to[k] = from[b.low[static_cast<size_t>(k)]];
    } else {
      for (int64_t k = 0; k < b.to; ++k)
        std::memcpy(to + k * inner, from + b.low[static_cast<size_t>(k)] * inner,
                    static_cast<size_t>(inner) * sizeof(float));
    }
  }
  void linear_row(const float* low, const float* high, float wa, float* to) const {
    for (int64_t k = 0; k < b.to; ++k) {
      const auto i = static_cast<size_t>(k);
      const int64_t p = (b.identity() ? k : b.low[i]) * inner,
                    q = (b.weight.empty() ? p / inner : b.high[i]) * inner;
      const float wb = b.weight.empty() ? 0.f : b.weight[i];
      const float w00 = (1 - wa) * (1 - wb), w01 = (1 - wa) * wb, w10 = wa * (1 - wb), w11 = wa * wb;
      for (int64_t c = 0; c < inner; ++c)
        to[k * inner + c] = w00 * low[p + c] + w01 * low[q + c] + w10 * high[p + c] + w11 * high[q + c];
    }
  }
};

NativePtr make_resize(const NativeRequest& r) {
  r.need_float(0);
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.rank() != y.rank() || x.format != y.format || y.elem != REGIE_F32)
    refuse("operand and result differ");
  const std::string_view mode = r.attrs.text("mode", "nearest");
  if (mode != "nearest" && mode != "linear") refuse("mode " + std::string(mode));
  if (r.attrs.integer("antialias", 0) || r.attrs.integer("exclude_outside", 0))
    refuse("antialias, exclude_outside");
  if (r.attrs.text("keep_aspect_ratio_policy", "stretch") != "stretch") refuse("keep_aspect_ratio_policy");
  if (auto axes = r.attrs.integers("axes"); axes && !axes->empty()) refuse("axes");
  // Scales say where elements lie; sizes give them as quotients.
  std::vector<float> scales(x.dims.size());
  const bool by_scale = r.has(2) && r.in(2).count() > 0;
  if (by_scale && (r.in(2).elem != REGIE_F32 || !r.in(2).data || r.in(2).count() != x.rank()))
    refuse("the scales are no constant, one an axis");
  for (size_t i = 0; i < scales.size(); ++i) {
    if (x.dims[i] == 0 || y.dims[i] == 0) refuse("a dimension is 0");
    scales[i] = by_scale ? static_cast<const float*>(r.in(2).data)[i]
                         : static_cast<float>(y.dims[i]) / static_cast<float>(x.dims[i]);
  }
  const std::vector<int64_t> from = x.physical(), to = y.physical();
  if (from.size() != to.size()) refuse("operand and result differ");
  std::vector<float> physical_scales(from.size(), 1.f);
  for (int64_t i = 0; i < x.rank(); ++i)
    physical_scales[static_cast<size_t>(physical_axis(i, x.rank(), x.format))] =
        scales[static_cast<size_t>(i)];
  std::vector<size_t> resized;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i] || physical_scales[i] != 1) resized.push_back(i);
  if (resized.size() > 2 || (resized.size() == 2 && resized[1] != resized[0] + 1))
    refuse("the resized axes are more than two, or no neighbours");
  if (x.format == kBlocked && !resized.empty() && (resized[0] < 2 || resized.back() + 1 == from.size()))
    refuse("channels are resized");
  Plan plan;
  plan.threads = r.threads;
  const size_t first = resized.empty() ? from.size() : resized[0],
               last = resized.empty() ? first : resized.back() + 1;
  for (size_t i = 0; i < first; ++i) plan.outer *= from[i];
  for (size_t i = last; i < from.size(); ++i) plan.inner *= from[i];
  const bool scaled = by_scale && r.attrs.text("corners", "scaled") == "scaled";
  auto axis = [&](size_t i) {
    const float scale = physical_scales[i],
                length = scaled ? scale * static_cast<float>(from[i]) : static_cast<float>(to[i]);
    return make_axis(r, mode == "linear", from[i], to[i], scale, length);
  };
  if (!resized.empty()) plan.a = axis(resized[0]);
  if (resized.size() == 2) plan.b = axis(resized[1]);
  return native_kernel(
      [plan](const regie_launch& l) { plan.run(in_data<float>(l, 0), out_data<float>(l, 0)); });
}

constexpr NativeOp kOps[] = {{"Resize", make_resize, Takes::kPooled, false, 4}};

}  // namespace

std::span<const NativeOp> native_resize() { return kOps; }

}  // namespace host_cpu
