// GridSample, RoiAlign, MaxRoiPool and AffineGrid: values of a picture at places between its pixels.
#include <algorithm>
#include <array>
#include <cmath>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- GridSample ----

enum class Padding { kZeros, kBorder, kReflection };
enum class Sampling { kLinear, kNearest, kCubic };

Sampling sampling_mode(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"linear", "nearest", "cubic"};
  return static_cast<Sampling>(choice(op, attrs, "mode", names));
}

Padding sampling_padding(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"zeros", "border", "reflection"};
  return static_cast<Padding>(choice(op, attrs, "padding_mode", names));
}

void infer_grid_sample(const Infer& infer) {
  auto x = infer.shape(0), grid = infer.shape(1);
  sampling_mode(infer.op, infer.attrs);
  sampling_padding(infer.op, infer.attrs);
  if (x.size() < 3 || grid.size() != x.size()) infer.bad("input and grid must have one rank of at least 3");
  if (!infer.agree(grid.back(), static_cast<regie_dim>(x.size()) - 2))
    infer.bad("the grid needs " + std::to_string(x.size() - 2) + " numbers a place, not " +
              infer.dims.print(grid.back()));
  Shape y{x[0], x[1]};
  y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
  infer.result(0, infer.elem(0), y);
}

// -1..1 to pixels: the corners' centres or, without align_corners, their outer edges.
double pixel(double at, int64_t size, bool corners) {
  const auto n = static_cast<double>(size);
  return corners ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
}

double reflected(double at, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (at < low) {
    const double over = low - at, turns = std::floor(over / range), rest = over - turns * range;
    return std::fmod(turns, 2) == 0 ? low + rest : high - rest;
  }
  if (at > high) {
    const double over = at - high, turns = std::floor(over / range), rest = over - turns * range;
    return std::fmod(turns, 2) == 0 ? high - rest : low + rest;
  }
  return at;
}

double cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct GridSetup {
  std::vector<int64_t> sizes;  // of the picture
  int64_t batch, channels, places;
  bool corners;
  Padding padding;
  Sampling sampling;

  // Place of an axis within the picture, -1 outside of it.
  int64_t inside(int64_t at, int64_t size) const {
    if (size == 0) return -1;
    if (padding == Padding::kBorder) return std::clamp<int64_t>(at, 0, size - 1);
    if (padding == Padding::kReflection) {
      const auto n = static_cast<double>(size);
      const double r = corners ? reflected(static_cast<double>(at), 0, n - 1)
                               : reflected(static_cast<double>(at), -0.5, n - 0.5);
      return std::clamp<int64_t>(static_cast<int64_t>(r), 0, size - 1);
    }
    return at < 0 || at >= size ? -1 : at;
  }
};

template <class T, class G>
void grid_sample(const GridSetup& s, const Call& call) {
  const size_t rank = s.sizes.size();
  int64_t area = 1;
  for (int64_t d : s.sizes) area *= d;
  const int64_t reach = s.sampling == Sampling::kCubic ? 4 : s.sampling == Sampling::kLinear ? 2 : 1;
  int64_t taps = 1;
  for (size_t i = 0; i < rank; ++i) taps *= reach;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t place = 0; place < s.places; ++place) {
      const G* at = call.in<G>(1) + (n * s.places + place) * static_cast<int64_t>(rank);
      std::array<int64_t, 8> first{};
      std::array<std::array<double, 4>, 8> weight{};
      for (size_t axis = 0; axis < rank; ++axis) {
        const int64_t size = s.sizes[axis];
        // The grid has the last axis first.
        double x = pixel(static_cast<double>(Compute<G>(at[rank - 1 - axis])), size, s.corners);
        if (!(std::abs(x) < 1e15)) x = -1e9;
        if (s.sampling == Sampling::kNearest) x = std::nearbyint(x);
        if (s.sampling != Sampling::kCubic && size > 0) {
          const auto edge = static_cast<double>(size);
          if (s.padding == Padding::kBorder) x = std::clamp(x, 0.0, edge - 1);
          if (s.padding == Padding::kReflection)
            x = std::clamp(s.corners ? reflected(x, 0, edge - 1) : reflected(x, -0.5, edge - 0.5), 0.0,
                           edge - 1);
        }
        const double base = std::floor(x), rest = x - base;
        first[axis] = static_cast<int64_t>(base);
        if (s.sampling == Sampling::kNearest) {
          first[axis] = static_cast<int64_t>(std::nearbyint(x));
          weight[axis][0] = 1;
        } else if (s.sampling == Sampling::kLinear) {
          weight[axis][0] = 1 - rest, weight[axis][1] = rest;
        } else {
          first[axis] -= 1;
          for (int k = 0; k < 4; ++k) weight[axis][static_cast<size_t>(k)] = cubic(rest + 1 - k);
        }
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* from = call.in<T>(0) + (n * s.channels + c) * area;
        double sum = 0;
        for (int64_t tap = 0; tap < taps; ++tap) {
          int64_t rest = tap, offset = 0, stride = 1;
          double w = 1;
          for (size_t axis = rank; axis-- > 0 && w != 0; rest /= reach, stride *= s.sizes[axis]) {
            const int64_t k = rest % reach, inside = s.inside(first[axis] + k, s.sizes[axis]);
            w *= inside < 0 ? 0 : weight[axis][static_cast<size_t>(k)];
            offset += inside * stride;
          }
          if (w != 0) sum += w * static_cast<double>(Compute<T>(from[offset]));
        }
        call.out<T>(0)[(n * s.channels + c) * s.places + place] = T(static_cast<Compute<T>>(sum));
      }
    }
}

KernelPtr prepare_grid_sample(Prepare& p) {
  Index x = p.shape(0), grid = p.shape(1);
  if (x.size() < 3 || grid.size() != x.size() || x.size() > 10 ||
      grid.back() != static_cast<int64_t>(x.size()) - 2 || grid[0] != x[0])
    p.bad("input " + print_shape(x) + " and grid " + print_shape(grid) + " do not fit");
  GridSetup s{};
  s.sizes.assign(x.begin() + 2, x.end());
  s.batch = x[0], s.channels = x[1], s.places = 1;
  std::vector<int64_t> y{x[0], x[1]};
  for (int64_t d : grid.subspan(1, grid.size() - 2)) s.places *= d, y.push_back(d);
  p.expect_result(0, y);
  s.corners = p.attrs.integer("align_corners", 0) != 0;
  s.padding = sampling_padding(p.op, p.attrs);
  s.sampling = sampling_mode(p.op, p.attrs);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return p.dispatch(Floats(), p.in(1).elem, [&]<class G>() {
      return make_kernel([s](const Call& call) { grid_sample<T, G>(s, call); });
    });
  });
}

// ---- RoiAlign ----

void infer_roi_align(const Infer& infer) {
  auto x = infer.shape(0), rois = infer.shape(1);
  if (x.size() != 4 || rois.size() != 2 || infer.rank(2) != 1)
    infer.bad("needs an input of rank 4, regions of rank 2 and a list of batch indices");
  infer.result(
      0, infer.elem(0),
      Shape{rois[0], x[1], infer.attrs.integer("output_height", 1), infer.attrs.integer("output_width", 1)});
}

constexpr double kMostPlaces = 1e9;  // a bin and axis
constexpr int64_t kKeptPlaces = 256;

// Where a region is sampled along an axis: between two pixels.
struct Place {
  bool inside;
  int64_t low, high;
  double part;  // of the second
};

Place place_at(double at, int64_t size) {
  if (size <= 0 || !(at >= -1 && at <= static_cast<double>(size))) return {};
  at = std::max(at, 0.0);
  const auto low = std::min(static_cast<int64_t>(at), size - 1);
  if (low == size - 1) at = static_cast<double>(low);
  return {true, low, std::min(low + 1, size - 1), at - static_cast<double>(low)};
}

// The places of a region along an axis, the same for all channels: kept where they are not too many.
class Places {
 public:
  Places(double start, double bin, int64_t bins, int64_t each, int64_t size)
      : start_(start), bin_(bin), each_(each), size_(size), kept_(bins * each <= kKeptPlaces) {
    if (!kept_) return;
    for (int64_t b = 0; b < bins; ++b)
      for (int64_t i = 0; i < each; ++i) table_[static_cast<size_t>(b * each + i)] = find(b, i);
  }
  Place operator()(int64_t bin, int64_t i) const {
    return kept_ ? table_[static_cast<size_t>(bin * each_ + i)] : find(bin, i);
  }

 private:
  Place find(int64_t bin, int64_t i) const {
    return place_at(start_ + static_cast<double>(bin) * bin_ +
                        (static_cast<double>(i) + 0.5) * bin_ / static_cast<double>(each_),
                    size_);
  }
  double start_, bin_;
  int64_t each_, size_;
  bool kept_;
  std::array<Place, kKeptPlaces> table_;
};

KernelPtr prepare_roi_align(Prepare& p) {
  Index x = p.shape(0), rois = p.shape(1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4)
    p.bad("needs an input of rank 4 and regions of four numbers");
  const int64_t height = p.attrs.integer("output_height", 1), width = p.attrs.integer("output_width", 1);
  p.expect_result(0, std::vector<int64_t>{rois[0], x[1], height, width});
  if (p.in(2).elem != REGIE_I64 || sdk::count_of(p.in(2)) != rois[0])
    p.bad("needs one i64 batch index a region");
  const int64_t batch = x[0], channels = x[1], rows = x[2], columns = x[3], count = rois[0],
                fixed = p.attrs.integer("sampling_ratio", 0);
  const double scale = p.attrs.number("spatial_scale", 1);
  const bool half = p.attrs.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool most = p.attrs.text("mode", "avg") == "max";
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      for (int64_t r = 0; r < count; ++r) {
        const int64_t item = call.in<int64_t>(2)[r];
        if (item < 0 || item >= batch)
          throw sdk::Failure(REGIE_INVALID_INPUT,
                             "RoiAlign: batch index " + std::to_string(item) + " is outside of the batch");
        const T* roi = call.in<T>(1) + r * 4;
        const double offset = half ? 0.5 : 0;
        const double left = static_cast<double>(A(roi[0])) * scale - offset,
                     top = static_cast<double>(A(roi[1])) * scale - offset;
        double w = static_cast<double>(A(roi[2])) * scale - offset - left,
               h = static_cast<double>(A(roi[3])) * scale - offset - top;
        if (!half) w = std::max(w, 1.0), h = std::max(h, 1.0);
        const double bin_w = w / static_cast<double>(width), bin_h = h / static_cast<double>(height);
        // A region that is no number, or endless, has no places that could be sampled.
        auto places = [&](double bin) {
          if (fixed > 0) return fixed;
          return std::abs(bin) < kMostPlaces ? static_cast<int64_t>(std::ceil(bin)) : int64_t{0};
        };
        const int64_t grid_h = places(bin_h), grid_w = places(bin_w);
        const double samples = static_cast<double>(std::max<int64_t>(grid_h * grid_w, 1));
        const Places at_y(top, bin_h, height, grid_h, rows), at_x(left, bin_w, width, grid_w, columns);
        for (int64_t c = 0; c < channels; ++c) {
          const T* from = call.in<T>(0) + (item * channels + c) * rows * columns;
          T* to = call.out<T>(0) + (r * channels + c) * height * width;
          for (int64_t py = 0; py < height; ++py)
            for (int64_t px = 0; px < width; ++px) {
              double sum = 0;
              bool started = false;
              for (int64_t iy = 0; iy < grid_h; ++iy) {
                const Place y = at_y(py, iy);
                for (int64_t ix = 0; ix < grid_w; ++ix) {
                  const Place x = at_x(px, ix);
                  double value = 0, greatest = 0;
                  // Nothing is outside of the picture, nor in one that has no pixels.
                  if (y.inside && x.inside) {
                    const T *first = from + y.low * columns, *second = from + y.high * columns;
                    const double parts[] = {
                        (1 - y.part) * (1 - x.part) * static_cast<double>(A(first[x.low])),
                        (1 - y.part) * x.part * static_cast<double>(A(first[x.high])),
                        y.part * (1 - x.part) * static_cast<double>(A(second[x.low])),
                        y.part * x.part * static_cast<double>(A(second[x.high]))};
                    value = parts[0] + parts[1] + parts[2] + parts[3];
                    if (most) greatest = *std::max_element(std::begin(parts), std::end(parts));
                  }
                  // The greatest weighted neighbour, not the greatest interpolated value: so the
                  // specification's reference does.
                  if (most)
                    sum = started ? std::max(sum, greatest) : greatest;
                  else
                    sum += value;
                  started = true;
                }
              }
              to[py * width + px] = T(static_cast<A>(most ? sum : sum / samples));
            }
        }
      }
    });
  });
}

// ---- MaxRoiPool ----

void infer_max_roi_pool(const Infer& infer) {
  auto x = infer.shape(0), rois = infer.shape(1);
  auto pooled = infer.attrs.integers("pooled_shape");
  if (x.size() != 4 || rois.size() != 2 || !pooled || pooled->size() != 2)
    infer.bad("needs an input of rank 4, regions of rank 2 and two pooled sizes");
  infer.result(0, infer.elem(0), Shape{rois[0], x[1], (*pooled)[0], (*pooled)[1]});
}

KernelPtr prepare_max_roi_pool(Prepare& p) {
  Index x = p.shape(0), rois = p.shape(1);
  auto pooled = p.attrs.integers("pooled_shape");
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 5 || !pooled || pooled->size() != 2)
    p.bad("the shapes do not fit");
  const int64_t height = (*pooled)[0], width = (*pooled)[1];
  p.expect_result(0, std::vector<int64_t>{rois[0], x[1], height, width});
  const int64_t batch = x[0], channels = x[1], rows = x[2], columns = x[3], count = rois[0];
  const double scale = p.attrs.number("spatial_scale", 1);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      for (int64_t r = 0; r < count; ++r) {
        const T* roi = call.in<T>(1) + r * 5;
        const auto item = static_cast<int64_t>(A(roi[0]));
        if (item < 0 || item >= batch)
          throw sdk::Failure(REGIE_INVALID_INPUT,
                             "MaxRoiPool: batch index " + std::to_string(item) + " is outside of the batch");
        auto at = [&](int i) {
          return static_cast<int64_t>(std::round(static_cast<double>(A(roi[i])) * scale));
        };
        const int64_t left = at(1), top = at(2), w = std::max<int64_t>(at(3) - left + 1, 1),
                      h = std::max<int64_t>(at(4) - top + 1, 1);
        auto bound = [](int64_t i, int64_t size, int64_t parts, bool up) {
          const double exact =
              static_cast<double>(i) * static_cast<double>(size) / static_cast<double>(parts);
          return static_cast<int64_t>(up ? std::ceil(exact) : std::floor(exact));
        };
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t py = 0; py < height; ++py)
            for (int64_t px = 0; px < width; ++px) {
              const int64_t y0 = std::clamp(bound(py, h, height, false) + top, int64_t{0}, rows),
                            y1 = std::clamp(bound(py + 1, h, height, true) + top, int64_t{0}, rows);
              const int64_t x0 = std::clamp(bound(px, w, width, false) + left, int64_t{0}, columns),
                            x1 = std::clamp(bound(px + 1, w, width, true) + left, int64_t{0}, columns);
              const T* from = call.in<T>(0) + (item * channels + c) * rows * columns;
              A most = y1 <= y0 || x1 <= x0 ? A(0) : A(from[y0 * columns + x0]);
              for (int64_t y = y0; y < y1; ++y)
                for (int64_t k = x0; k < x1; ++k) most = std::max(most, A(from[y * columns + k]));
              call.out<T>(0)[((r * channels + c) * height + py) * width + px] = T(most);
            }
      }
    });
  });
}

// ---- AffineGrid ----

void infer_affine_grid(const Infer& infer) {
  auto theta = infer.shape(0);
  Shape size = infer.list(1);
  if (theta.size() != 3 || (size.size() != 4 && size.size() != 5))
    infer.bad("needs matrices, and the size of a picture with two or three axes");
  Shape y{size[0]};
  y.insert(y.end(), size.begin() + 2, size.end());
  y.push_back(static_cast<regie_dim>(size.size()) - 2);
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_affine_grid(Prepare& p) {
  Index theta = p.shape(0), y = p.out_shape(0);
  const auto axes = static_cast<int64_t>(y.size()) - 2;
  if (axes < 2 || axes > 3 || theta.size() != 3 || theta[0] != y[0] || theta[1] != axes ||
      theta[2] != axes + 1 || y.back() != axes)
    p.bad("matrices " + print_shape(theta) + " do not fit " + print_shape(y));
  const bool corners = p.attrs.integer("align_corners", 0) != 0;
  const std::vector<int64_t> sizes(y.begin() + 1, y.end() - 1);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, batch = y[0]](const Call& call) {
      int64_t places = 1;
      for (int64_t d : sizes) places *= d;
      T* to = call.out<T>(0);
      for (int64_t n = 0; n < batch; ++n)
        for (int64_t place = 0; place < places; ++place) {
          std::array<double, 4> at{0, 0, 0, 0};
          int64_t rest = place;
          for (int64_t axis = axes; axis-- > 0;) {  // the last axis is x
            const int64_t size = sizes[static_cast<size_t>(axis)];
            const auto k = static_cast<double>(rest % size), s = static_cast<double>(size);
            at[static_cast<size_t>(axes - 1 - axis)] =
                corners ? (size == 1 ? 0 : -1 + 2 * k / (s - 1)) : (2 * k + 1) / s - 1;
            rest /= size;
          }
          at[static_cast<size_t>(axes)] = 1;
          for (int64_t row = 0; row < axes; ++row) {
            double sum = 0;
            for (int64_t k = 0; k <= axes; ++k)
              sum += static_cast<double>(Compute<T>(call.in<T>(0)[(n * axes + row) * (axes + 1) + k])) *
                     at[static_cast<size_t>(k)];
            *to++ = T(static_cast<Compute<T>>(sum));
          }
        }
    });
  });
}

constexpr Op table[] = {
    {"GridSample", 0, infer_grid_sample, prepare_grid_sample},
    {"RoiAlign", 0, infer_roi_align, prepare_roi_align},
    {"MaxRoiPool", 0, infer_max_roi_pool, prepare_max_roi_pool},
    {"AffineGrid", 0, infer_affine_grid, prepare_affine_grid},
};

}  // namespace

std::span<const Op> sampling_ops() { return table; }

}  // namespace regie::ops
