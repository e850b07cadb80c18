// DepthToSpace, SpaceToDepth, MaxUnpool, Col2Im, CenterCropPad.
#include <algorithm>

#include "op.h"
#include "walk.h"
#include "window.h"

namespace regie::ops {
namespace {

// ---- DepthToSpace, SpaceToDepth: one transpose of six axes each ----

int64_t block_size(std::string_view op, const sdk::Attrs& attrs) {
  const int64_t b = attrs.integer("blocksize", 0);
  if (b < 1) throw sdk::Failure(REGIE_INVALID_MODEL, std::string(op) + ": blocksize must be positive");
  return b;
}

template <bool to_space>
void infer_blocks(const Infer& infer) {
  auto x = infer.shape(0);
  if (x.size() != 4) infer.bad("the input needs rank 4");
  const int64_t b = block_size(infer.op, infer.attrs);
  const sdk::Dims& d = infer.dims;
  auto part = [&](regie_dim size, int64_t by) {
    if (auto n = infer.number(size); n && *n % by != 0)
      infer.bad("the size " + std::to_string(*n) + " cannot be divided by " + std::to_string(by));
    return d.floordiv(size, by);
  };
  if (to_space) {
    infer.result(0, infer.elem(0), Shape{x[0], part(x[1], b * b), d.mul(x[2], b), d.mul(x[3], b)});
  } else {
    infer.result(0, infer.elem(0), Shape{x[0], d.mul(x[1], b * b), part(x[2], b), part(x[3], b)});
  }
}

template <bool to_space>
KernelPtr prepare_blocks(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  if (x.size() != 4 || y.size() != 4) p.bad("the input needs rank 4");
  const int64_t b = block_size(p.op, p.attrs);
  const bool column_first = p.attrs.text("mode", "DCR") == "CRD";
  // The larger picture has the rows h, block row; columns w, block column; the deeper one the channels.
  Index deep = to_space ? x : y;
  if (to_space ? x[1] % (b * b) != 0 : x[2] % b != 0 || x[3] % b != 0)
    p.bad("the shape " + print_shape(x) + " cannot be divided by " + std::to_string(to_space ? b * b : b));
  const int64_t channels = deep[1] / (b * b), h = deep[2], w = deep[3];
  p.expect_result(0, to_space ? std::vector<int64_t>{x[0], x[1] / (b * b), x[2] * b, x[3] * b}
                              : std::vector<int64_t>{x[0], x[1] * b * b, x[2] / b, x[3] / b});
  const std::vector<int64_t> shape{x[0], channels, h, b, w, b};
  const int64_t area = h * w;
  const int64_t row_step = (column_first ? b : b * channels) * area;
  const int64_t column_step = (column_first ? 1 : channels) * area,
                channel_step = (column_first ? b * b : 1) * area;
  Dims flat = dense_strides(shape);
  Dims depth{channels * b * b * area, channel_step, w, row_step, 1, column_step};
  Walk<2> walk(shape, {to_space ? depth : flat, to_space ? flat : depth});
  const uint32_t size = p.moved_bytes(p.in(0));
  return make_kernel(
      [walk, size](const Call& call) { copy_strided(walk, size, call.in<void>(0), call.out<void>(0)); });
}

// ---- MaxUnpool ----

void infer_max_unpool(const Infer& infer) {
  auto x = infer.shape(0);
  const Window window = attribute_window(infer);
  if (infer.has(2)) {
    Shape y = infer.list(2);
    if (y.size() != x.size()) infer.bad("output_shape needs one number an axis");
    return infer.result(0, infer.elem(0), y);
  }
  Shape y{x[0], x[1]};
  const sdk::Dims& d = infer.dims;
  for (size_t i = 0; i < window.rank(); ++i) {
    regie_dim full = d.add(d.mul(d.sub(x[2 + i], 1), window.strides[i]), window.kernel[i]);
    y.push_back(d.sub(full, window.begin[i] + window.end[i]));
  }
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_max_unpool(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  const Window window = attribute_window(p);
  // Indices are places in the tensor that the attributes alone would give; output_shape only makes it larger.
  std::vector<int64_t> natural{x[0], x[1]};
  for (size_t i = 0; i < window.rank(); ++i)
    natural.push_back((x[2 + i] - 1) * window.strides[i] + window.kernel[i] - window.begin[i] -
                      window.end[i]);
  if (!p.has(2)) p.expect_result(0, natural);
  if (p.in(1).elem != REGIE_I64 || sdk::count_of(p.in(1)) != sdk::count_of(p.in(0)))
    p.bad("the indices do not fit");
  const std::vector<int64_t> result(y.begin(), y.end());
  const int64_t count = sdk::count_of(p.in(0)), total = sdk::count_of(p.out(0));
  int64_t whole = 1;
  for (int64_t d : natural) whole *= d;
  Dims strides = dense_strides(result);
  return p.dispatch(Join<Floats, Types<int8_t>>(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      T* to = call.out<T>(0);
      std::fill_n(to, total, T());
      for (int64_t i = 0; i < count; ++i) {
        int64_t rest = call.in<int64_t>(1)[i], at = 0;
        if (rest < 0 || rest >= whole)
          throw sdk::Failure(REGIE_INVALID_INPUT,
                             "MaxUnpool: index " + std::to_string(rest) + " is outside of the result");
        for (size_t axis = natural.size(); axis-- > 0; rest /= natural[axis]) {
          if (rest % natural[axis] >= result[axis])
            throw sdk::Failure(REGIE_INVALID_INPUT, "MaxUnpool: an index is outside of output_shape");
          at += rest % natural[axis] * strides[axis];
        }
        to[at] = call.in<T>(0)[i];
      }
    });
  });
}

// ---- Col2Im: columns of blocks, added up into an image ----

void infer_col2im(const Infer& infer) {
  auto x = infer.shape(0);
  Shape image = infer.list(1);
  const auto block = infer.numbers(2);
  if (x.size() != 3 || image.size() != infer.length(2))
    infer.bad("needs an input of rank 3, and one block size an axis of the image");
  Shape y{x[0], REGIE_DIM_UNKNOWN};
  if (block) {
    int64_t area = 1;
    for (int64_t b : *block) area *= b;
    if (area < 1) infer.bad("a block size is not positive");
    y[1] = infer.dims.floordiv(x[1], area);
  }
  y.insert(y.end(), image.begin(), image.end());
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_col2im(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  const regie_tensor& block = p.in(2);
  if (!block.data || block.elem != REGIE_I64) p.bad("the block's shape must be constant");
  Index kernel(static_cast<const int64_t*>(block.data), static_cast<size_t>(sdk::count_of(block)));
  if (x.size() != 3 || y.size() != kernel.size() + 2) p.bad("the result has the shape " + print_shape(y));
  Window window(p.op, p.attrs, kernel.size());
  window.kernel.assign(kernel.begin(), kernel.end());
  window.resolve(y.subspan(2));
  std::vector<int64_t> places;
  int64_t positions = 1;
  for (size_t i = 0; i < kernel.size(); ++i) {
    places.push_back(window.result_size(i, y[2 + i]));
    positions *= places.back();
  }
  Taps taps(window, places, y.subspan(2));
  if (x[2] != positions || x[1] != y[1] * taps.count() || x[0] != y[0])
    p.bad("the columns " + print_shape(x) + " do not make the image " + print_shape(y));
  p.scratch_bytes = static_cast<uint64_t>(taps.strided_size()) * sizeof(double);
  return p.dispatch(Floats(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=, planes = y[0] * y[1]](const Call& call) {
      auto* sum = call.scratch<double>();
      for (int64_t plane = 0; plane < planes; ++plane) {
        std::fill_n(sum, taps.strided_size(), 0.0);
        for (int64_t tap = 0; tap < taps.count(); ++tap) {
          const T* from = call.in<T>(0) + (plane * taps.count() + tap) * positions;
          taps.rows(tap, [&](int64_t place, int64_t pixel, int64_t count, int64_t step) {
            for (int64_t i = 0; i < count; ++i)
              sum[pixel + i * step] += static_cast<double>(Compute<T>(from[place + i]));
          });
        }
        T* to = call.out<T>(0) + plane * taps.strided_size();
        for (int64_t i = 0; i < taps.strided_size(); ++i) to[i] = T(static_cast<Compute<T>>(sum[i]));
      }
    });
  });
}

// ---- CenterCropPad ----

std::vector<size_t> centred_axes(std::string_view op, const sdk::Attrs& attrs, size_t rank) {
  std::vector<size_t> axes;
  if (auto given = attrs.integers("axes")) {
    for (int64_t a : *given)
      axes.push_back(static_cast<size_t>(normal_axis(op, a, static_cast<int64_t>(rank))));
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

void infer_center(const Infer& infer) {
  auto x = infer.shape(0);
  Shape wanted = infer.list(1), y(x.begin(), x.end());
  auto axes = centred_axes(infer.op, infer.attrs, x.size());
  if (wanted.size() != axes.size()) infer.bad("needs one size an axis");
  for (size_t i = 0; i < axes.size(); ++i) y[axes[i]] = wanted[i];
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_center(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, x.size());
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  const uint32_t size = p.moved_bytes(p.in(0));
  // What both have in common, and where it begins in each.
  std::vector<int64_t> common;
  int64_t from = 0, to = 0;
  Dims in = dense_strides(x), out = dense_strides(y);
  for (size_t i = 0; i < x.size(); ++i) {
    common.push_back(std::min(x[i], y[i]));
    if (x[i] > y[i]) from += (x[i] - y[i]) / 2 * in[i];
    if (y[i] > x[i]) to += (y[i] - x[i]) / 2 * out[i];
  }
  Walk<2> walk(common, {in, out});
  const auto bytes = static_cast<uint64_t>(sdk::count_of(p.out(0))) * size;
  return make_kernel([=](const Call& call) {
    if (bytes == 0) return;
    std::memset(call.out<char>(0), 0, bytes);
    copy_strided(walk, size, call.in<char>(0) + from * size, call.out<char>(0) + to * size);
  });
}

constexpr Op table[] = {
    {"DepthToSpace", 0, infer_blocks<true>, prepare_blocks<true>},
    {"SpaceToDepth", 0, infer_blocks<false>, prepare_blocks<false>},
    {"MaxUnpool", 0, infer_max_unpool, prepare_max_unpool},
    {"Col2Im", 0, infer_col2im, prepare_col2im},
    {"CenterCropPad", 0, infer_center, prepare_center},
};

}  // namespace

std::span<const Op> block_ops() { return table; }

}  // namespace regie::ops
