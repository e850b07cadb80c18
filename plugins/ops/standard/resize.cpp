// Resize: every axis on its own. For each position of a resized axis there is a list of positions of the
// input with weights (one for nearest); a row of taps an axis, computed once, serves any rank and any mode.
#include <algorithm>
#include <cmath>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Policy { kStretch, kNotLarger, kNotSmaller };

constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};
constexpr std::string_view kLengths[] = {"scaled", "whole"};
constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr std::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
enum Coordinate { kHalf, kSymmetric, kPytorch, kCorners, kAsymmetric, kHalfForNearest, kCrop };

// The axes that scales, sizes and roi speak of.
std::vector<size_t> resized_axes(std::string_view op, const sdk::Attrs& attrs, size_t rank) {
  std::vector<size_t> axes;
  auto given = attrs.integers("axes");
  if (!given || given->empty()) {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t a : *given)
    axes.push_back(
        static_cast<size_t>(normal_axis(std::string(op) + ": axis", a, static_cast<int64_t>(rank))));
  return axes;
}

// The numbers of a constant list of floats; nothing if it is absent, empty or not constant.
std::vector<double> floats_of(const regie_tensor* t) {
  std::vector<double> list;
  if (!t || !t->data) return list;
  dispatch(Floats(), t->elem, [&]<class T>() {
    const T* from = static_cast<const T*>(t->data);
    for (int64_t i = 0; i < sdk::count_of(*t); ++i) list.push_back(static_cast<double>(from[i]));
  });
  return list;
}

// What keep_aspect_ratio_policy makes of wanted sizes: one scale for all axes.
float common_scale(Policy policy, const std::vector<int64_t>& from, const std::vector<int64_t>& wanted) {
  float scale = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const float s = static_cast<float>(wanted[i]) / static_cast<float>(from[i]);
    if (i == 0 || (policy == Policy::kNotLarger ? s < scale : s > scale)) scale = s;
  }
  return scale;
}
int64_t scaled_size(int64_t size, float scale) {
  return static_cast<int64_t>(std::floor(scale * static_cast<float>(size)));
}
int64_t rounded_size(int64_t size, float scale) {
  return static_cast<int64_t>(std::floor(scale * static_cast<float>(size) + 0.5f));
}

// ---- Shape ----

// floor(size * scale). With a symbol in it, only for scales that are m / 2^k: floats have these exactly.
regie_dim scaled_dim(const Infer& infer, regie_dim size, double scale) {
  if (!(scale > 0)) infer.bad("a scale is not positive");
  if (size == REGIE_DIM_UNKNOWN) return size;
  if (auto n = infer.number(size)) return scaled_size(*n, static_cast<float>(scale));
  int64_t divisor = 1;
  for (; divisor < 1024 && scale != std::floor(scale); divisor *= 2) scale *= 2;
  // No multiple of 1/1024: only the run can tell.
  if (scale != std::floor(scale) || scale > 1e6) return REGIE_DIM_UNKNOWN;
  regie_dim whole = infer.dims.mul(size, static_cast<int64_t>(scale));
  return divisor == 1 ? whole : infer.dims.floordiv(whole, divisor);
}

void infer_resize(const Infer& infer) {
  auto x = infer.shape(0);
  choice(infer.op, infer.attrs, "mode", kModes);
  choice(infer.op, infer.attrs, "coordinate_transformation_mode", kCoordinates);
  choice(infer.op, infer.attrs, "nearest_mode", kRoundings);
  choice(infer.op, infer.attrs, "corners", kLengths);
  auto policy = static_cast<Policy>(choice(infer.op, infer.attrs, "keep_aspect_ratio_policy", kPolicies));
  auto axes = resized_axes(infer.op, infer.attrs, x.size());
  Shape y(x.begin(), x.end());
  // Before operator set 13 an absent list was an empty one.
  auto given = [&](uint32_t i) {
    return infer.has(i) && infer.rank(i) == 1 && infer.number(infer.shape(i)[0]) != int64_t{0};
  };
  if (given(3)) {
    Shape sizes = infer.list(3);
    if (sizes.size() != axes.size())
      infer.bad(std::to_string(sizes.size()) + " sizes for " + std::to_string(axes.size()) + " axes");
    if (policy == Policy::kStretch) {
      for (size_t i = 0; i < axes.size(); ++i) y[axes[i]] = sizes[i];
    } else {
      const auto wanted = infer.numbers(3);
      std::vector<int64_t> from;
      for (size_t axis : axes)
        if (auto n = infer.number(x[axis])) from.push_back(*n);
      const bool known = wanted && from.size() == axes.size();
      const float scale = known ? common_scale(policy, from, *wanted) : 0;
      for (size_t i = 0; i < axes.size(); ++i)
        y[axes[i]] = known ? rounded_size(from[i], scale) : REGIE_DIM_UNKNOWN;
    }
  } else if (given(2)) {
    auto scales = floats_of(infer.in(2).data);
    const size_t count = scales.empty() ? infer.length(2) : scales.size();
    if (count != axes.size())
      infer.bad(std::to_string(count) + " scales for " + std::to_string(axes.size()) + " axes");
    for (size_t i = 0; i < axes.size(); ++i)
      y[axes[i]] = scales.empty() ? REGIE_DIM_UNKNOWN : scaled_dim(infer, x[axes[i]], scales[i]);
  } else {
    infer.bad("needs scales or sizes");
  }
  // The kernel is made for the region, which it must therefore be told.
  const bool crops = infer.attrs.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  if (crops && given(1) && floats_of(infer.in(1).data).empty())
    for (size_t axis : axes) y[axis] = REGIE_DIM_UNKNOWN;
  infer.result(0, infer.elem(0), y);
}

// ---- Taps ----

struct AxisTaps {
  int64_t from, to;              // sizes
  size_t count = 1;              // taps a position
  std::vector<int64_t> places;   // `count` a position of the result
  std::vector<float> weights;    // likewise
  std::vector<uint8_t> outside;  // a position lies outside of the input (tf_crop_and_resize)
};

struct AxisSetup {
  Coordinate coordinate;
  Mode mode;
  size_t rounding;
  bool antialias, exclude_outside;
  float cubic_a;
  float scale, length;  // of the resized axis, which by scales may be a fraction
  float start, end;     // roi
};

// Single precision throughout: where a position falls between two is decided by it, and others do the same.
float source_position(const AxisSetup& a, int64_t at, int64_t from, int64_t to) {
  const auto x = static_cast<float>(at), size = static_cast<float>(from), result = static_cast<float>(to);
  switch (a.coordinate) {
    case kHalf:
      return (x + 0.5f) / a.scale - 0.5f;
    case kSymmetric: {
      const float adjustment = result / (a.scale * size), center = size / 2;
      return center * (1 - adjustment) + (x + 0.5f) / a.scale - 0.5f;
    }
    case kPytorch:
      return to > 1 ? (x + 0.5f) / a.scale - 0.5f : 0.0f;
    case kCorners:
      return a.length == 1 ? 0.0f : x * (size - 1) / (a.length - 1);
    case kAsymmetric:
      return x / a.scale;
    case kHalfForNearest:
      return (x + 0.5f) / a.scale;
    case kCrop:
      return to > 1 ? a.start * (size - 1) + x * (a.end - a.start) * (size - 1) / (result - 1)
                    : 0.5f * (a.start + a.end) * (size - 1);
  }
  return x;
}

int64_t nearest(size_t rounding, float x) {
  switch (rounding) {
    case 0:
      return static_cast<int64_t>(x == std::trunc(x) + 0.5f ? std::floor(x) : std::round(x));
    case 1:
      return static_cast<int64_t>(std::round(x));
    case 2:
      return static_cast<int64_t>(std::floor(x));
    default:
      return static_cast<int64_t>(std::ceil(x));
  }
}

float cubic_weight(float a, float x) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

AxisTaps axis_taps(const AxisSetup& a, int64_t from, int64_t to) {
  AxisTaps taps{from, to, 1, {}, {}, {}};
  // Antialiasing widens the filter where the picture shrinks.
  const float squeeze = a.antialias ? std::min(a.scale, 1.0f) : 1.0f;
  const float reach = a.mode == Mode::kCubic ? 2.0f : 1.0f;
  const auto first = a.mode == Mode::kNearest ? 0 : static_cast<int64_t>(std::floor(-reach / squeeze)) + 1;
  const auto last = a.mode == Mode::kNearest ? 0 : 1 - first;
  taps.count = static_cast<size_t>(last - first + 1);
  for (int64_t at = 0; at < to; ++at) {
    float x = from == to && a.scale == 1 && a.coordinate != kCrop ? static_cast<float>(at)
                                                                  : source_position(a, at, from, to);
    taps.outside.push_back(a.coordinate == kCrop && (x < 0 || x > static_cast<float>(from - 1)));
    if (a.mode == Mode::kNearest) {
      taps.places.push_back(std::clamp<int64_t>(nearest(a.rounding, x), 0, from - 1));
      taps.weights.push_back(1);
      continue;
    }
    if (a.mode == Mode::kLinear && !a.antialias) x = std::clamp(x, 0.0f, static_cast<float>(from - 1));
    const float base = std::floor(x), rest = x - base;
    float sum = 0;
    const size_t begin = taps.weights.size();
    for (int64_t k = first; k <= last; ++k) {
      const float distance = (static_cast<float>(k) - rest) * squeeze;
      float weight =
          a.mode == Mode::kCubic ? cubic_weight(a.cubic_a, distance) : std::max(0.0f, 1 - std::abs(distance));
      const int64_t place = static_cast<int64_t>(base) + k;
      if (a.exclude_outside && (place < 0 || place >= from)) weight = 0;
      taps.places.push_back(std::clamp<int64_t>(place, 0, from - 1));
      taps.weights.push_back(weight);
      sum += weight;
    }
    if ((a.exclude_outside || a.antialias) && sum != 0)
      for (size_t k = begin; k < taps.weights.size(); ++k) taps.weights[k] /= sum;
  }
  return taps;
}

// ---- Kernel ----

struct ResizeSetup {
  std::vector<int64_t> shape;  // the input's
  std::vector<AxisTaps> axes;  // those that are not copied as they are, by `order`
  std::vector<size_t> order;
  bool crop = false;
  double extrapolation = 0;
  int64_t largest = 0;  // elements of the largest tensor between two axes
};

// One axis from `in` to `out`, both of `outer` x size x `inner` elements.
template <class S, class A, class Out>
void resize_axis(const AxisTaps& t, int64_t outer, int64_t inner, const S* in, Out* out) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t at = 0; at < t.to; ++at) {
      Out* to = out + (o * t.to + at) * inner;
      const size_t tap = static_cast<size_t>(at) * t.count;
      const S* first = in + (o * t.from + t.places[tap]) * inner;
      const A weight = static_cast<A>(t.weights[tap]);
      if (t.count == 1) {
        for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<Out>(first[i]);
        continue;
      }
      for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<Out>(weight * A(first[i]));
      for (size_t k = 1; k < t.count; ++k) {
        const S* from = in + (o * t.from + t.places[tap + k]) * inner;
        const A w = static_cast<A>(t.weights[tap + k]);
        if (w == 0) continue;
        for (int64_t i = 0; i < inner; ++i) to[i] += static_cast<Out>(w * A(from[i]));
      }
    }
}

template <class T>
T rounded_to(double x) {
  if constexpr (std::is_integral_v<T>) {
    return saturated<T>(x);  // cubic overshoots
  } else {
    return T(static_cast<Compute<T>>(x));
  }
}

template <class T>
KernelPtr weighted_kernel(Prepare& p, const ResizeSetup& s) {
  using A = std::conditional_t<is_float<T>, Compute<T>, float>;
  p.scratch_bytes = 2 * static_cast<uint64_t>(s.largest) * sizeof(A);
  return make_kernel([s, count = sdk::count_of(p.out(0))](const Call& call) {
    if (count == 0) return;
    A *from = call.scratch<A>(), *to = from + s.largest;
    Dims dims{};
    const Index shape = Index(dims).first(s.shape.size());  // as far as axes are done
    int64_t elements = 1;
    for (size_t i = 0; i < shape.size(); ++i) elements *= dims[i] = s.shape[i];
    const T* x = call.in<T>(0);
    for (int64_t i = 0; i < elements; ++i) from[i] = static_cast<A>(Compute<T>(x[i]));
    for (size_t k = 0; k < s.axes.size(); ++k) {
      const Lines lines(shape, s.order[k]);
      resize_axis<A, A, A>(s.axes[k], lines.outer, lines.inner, from, to);
      dims[s.order[k]] = s.axes[k].to;
      std::swap(from, to);
    }
    T* y = call.out<T>(0);
    for (int64_t i = 0; i < count; ++i) y[i] = rounded_to<T>(static_cast<double>(from[i]));
    if (!s.crop) return;
    for (size_t k = 0; k < s.axes.size(); ++k) {
      const Lines lines(shape, s.order[k]);
      for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t at = 0; at < lines.size; ++at)
          if (s.axes[k].outside[static_cast<size_t>(at)])
            std::fill_n(y + (o * lines.size + at) * lines.inner, lines.inner, rounded_to<T>(s.extrapolation));
    }
  });
}

// Nearest without a value for what is outside copies elements, whatever they are.
template <class Bytes>
KernelPtr nearest_kernel(Prepare& p, const ResizeSetup& s) {
  std::vector<std::vector<int64_t>> offsets;  // in elements, by axis and position of the result
  Index y = p.out_shape(0);
  Dims strides = dense_strides(s.shape);
  for (size_t i = 0; i < y.size(); ++i) {
    offsets.emplace_back();
    const auto* found = std::find(s.order.data(), s.order.data() + s.order.size(), i);
    const AxisTaps* taps = found == s.order.data() + s.order.size()
                               ? nullptr
                               : &s.axes[static_cast<size_t>(found - s.order.data())];
    for (int64_t at = 0; at < y[i]; ++at)
      offsets.back().push_back((taps ? taps->places[static_cast<size_t>(at)] : at) * strides[i]);
  }
  return make_kernel([offsets, count = sdk::count_of(p.out(0))](const Call& call) {
    if (count == 0) return;
    const Bytes* x = call.in<Bytes>(0);
    Bytes* y = call.out<Bytes>(0);
    const size_t rank = offsets.size();
    std::array<size_t, max_rank> index{};
    for (;;) {
      int64_t at = 0;
      for (size_t i = 0; i + 1 < rank; ++i) at += offsets[i][index[i]];
      if (rank == 0) {
        *y = *x;
        return;
      }
      for (int64_t last : offsets[rank - 1]) *y++ = x[at + last];
      size_t axis = rank - 1;
      for (;;) {
        if (axis-- == 0) return;
        if (++index[axis] < offsets[axis].size()) break;
        index[axis] = 0;
      }
    }
  });
}

AxisSetup axis_setup(const Prepare& p) {
  AxisSetup a{};
  a.coordinate =
      static_cast<Coordinate>(choice(p.op, p.attrs, "coordinate_transformation_mode", kCoordinates));
  a.mode = static_cast<Mode>(choice(p.op, p.attrs, "mode", kModes));
  a.rounding = choice(p.op, p.attrs, "nearest_mode", kRoundings);
  a.antialias = p.attrs.integer("antialias", 0) != 0 && a.mode != Mode::kNearest;
  a.exclude_outside = p.attrs.integer("exclude_outside", 0) != 0;
  a.cubic_a = static_cast<float>(p.attrs.number("cubic_coeff_a", -0.75));
  return a;
}

KernelPtr prepare_resize(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, x.size());
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  auto axes = resized_axes(p.op, p.attrs, x.size());
  AxisSetup setup = axis_setup(p);
  auto given = [&](uint32_t i) { return p.has(i) && sdk::count_of(p.in(i)) != 0; };
  const bool by_sizes = given(3);
  std::vector<double> scales, roi;
  if (!by_sizes) {
    if (!given(2)) p.bad("needs scales or sizes");
    scales = floats_of(&p.in(2));
    if (scales.size() != axes.size()) p.bad("the scales must be constant, one an axis");
  }
  if (setup.coordinate == kCrop) {
    if (given(1)) roi = floats_of(&p.in(1));
    if (roi.size() != 2 * axes.size()) p.bad("the region (roi) must be constant, two numbers an axis");
  }
  const auto policy = static_cast<Policy>(choice(p.op, p.attrs, "keep_aspect_ratio_policy", kPolicies));
  float common = 0;
  if (by_sizes && policy != Policy::kStretch) {
    const regie_tensor& sizes = p.in(3);
    if (!sizes.data || sizes.elem != REGIE_I64)
      p.bad("the sizes must be constant where proportions are kept");
    std::vector<int64_t> from, wanted(static_cast<const int64_t*>(sizes.data),
                                      static_cast<const int64_t*>(sizes.data) + sdk::count_of(sizes));
    if (wanted.size() != axes.size()) p.bad("needs one size an axis");
    for (size_t axis : axes) from.push_back(x[axis]);
    common = common_scale(policy, from, wanted);
  }

  const bool whole_corners = choice(p.op, p.attrs, "corners", kLengths) == 1;
  ResizeSetup s;
  s.shape.assign(x.begin(), x.end());
  s.crop = setup.coordinate == kCrop;
  s.extrapolation = p.attrs.number("extrapolation_value", 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t from = x[axes[i]], to = y[axes[i]];
    if (from == 0 && to != 0) p.bad("an empty axis cannot become larger");
    setup.scale = !by_sizes     ? static_cast<float>(scales[i])
                  : common != 0 ? common
                                : static_cast<float>(to) / static_cast<float>(from);
    if (!by_sizes && scaled_size(from, setup.scale) != to) p.bad("the scales do not give " + print_shape(y));
    setup.length =
        by_sizes || whole_corners ? static_cast<float>(to) : setup.scale * static_cast<float>(from);
    setup.start = roi.empty() ? 0 : static_cast<float>(roi[i]);
    setup.end = roi.empty() ? 1 : static_cast<float>(roi[axes.size() + i]);
    const bool whole = !s.crop || (setup.start == 0 && setup.end == 1);
    if (from == to && setup.scale == 1 && whole) continue;
    s.axes.push_back(axis_taps(setup, from, to));
    s.order.push_back(axes[i]);
  }
  // Axes that shrink go first: less is left for the others.
  std::vector<size_t> turn(s.axes.size());
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = i;
  std::stable_sort(turn.begin(), turn.end(), [&](size_t a, size_t b) {
    return static_cast<double>(s.axes[a].to) * static_cast<double>(s.axes[b].from) <
           static_cast<double>(s.axes[b].to) * static_cast<double>(s.axes[a].from);
  });
  ResizeSetup sorted = s;
  for (size_t i = 0; i < turn.size(); ++i)
    sorted.axes[i] = s.axes[turn[i]], sorted.order[i] = s.order[turn[i]];
  std::vector<int64_t> dims = s.shape;
  for (size_t k = 0; k <= sorted.axes.size(); ++k) {
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    sorted.largest = std::max(sorted.largest, count);
    if (k < sorted.axes.size()) dims[sorted.order[k]] = sorted.axes[k].to;
  }
  p.expect_result(0, dims);
  if (setup.mode == Mode::kNearest && !s.crop) {
    switch (elem_size(p.in(0).elem)) {
      case 1:
        return nearest_kernel<uint8_t>(p, sorted);
      case 2:
        return nearest_kernel<uint16_t>(p, sorted);
      case 4:
        return nearest_kernel<uint32_t>(p, sorted);
      case 8:
        return nearest_kernel<uint64_t>(p, sorted);
      default:
        p.no_type(p.in(0).elem);
    }
  }
  return p.dispatch(Join<Floats, Types<int8_t, uint8_t, int32_t>>(), p.in(0).elem,
                    [&]<class T>() { return weighted_kernel<T>(p, sorted); });
}

constexpr Op table[] = {{"Resize", 0, infer_resize, prepare_resize}};

}  // namespace

std::span<const Op> resize_ops() { return table; }

}  // namespace regie::ops
