// Operators that pick elements by index or make indices: GatherElements, GatherND, OneHot, Range, CumSum,
// CumProd, Trilu, EyeLike, Tile, TopK, ReverseSequence.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "arithmetic.h"
#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// ---- GatherElements ----

void infer_gather_elements(const Infer& infer) {
  infer.axis_attribute(0);
  if (infer.rank(0) != infer.rank(1)) infer.bad("data and indices must have one rank");
  infer.result(0, infer.elem(0), infer.shape(1));
}

KernelPtr prepare_gather_elements(Prepare& p) {
  Index x = p.shape(0), y = p.shape(1);
  check_rank(p.op, x.size());
  p.expect_result(0, y);
  const size_t axis = p.axis_attribute(0);
  for (size_t i = 0; i < x.size(); ++i)
    if (i != axis && y[i] > x[i])
      p.bad("the indices " + print_shape(y) + " do not fit into " + print_shape(x));
  Dims strides = dense_strides(x);
  const int64_t step = strides[axis], size = x[axis];
  strides[axis] = 0;
  Walk<2> walk(y, {strides, dense_strides(y)});
  const uint32_t bytes = p.moved_bytes(p.in(0));
  return p.dispatch(IndexTypes(), p.in(1).elem, [&]<class I>() {
    return make_kernel([=](const Call& call) {
      walk.rows([&](const auto& at, int64_t n, const auto& by) {
        for (int64_t i = 0; i < n; ++i) {
          const int64_t to = at[1] + i * by[1];
          const int64_t from =
              at[0] + i * by[0] + normal_index("GatherElements", call.in<I>(1)[to], size) * step;
          copy_bytes(call.out<char>(0) + to * bytes, call.in<char>(0) + from * bytes, bytes);
        }
      });
    });
  });
}

// ---- GatherND ----

void infer_gather_nd(const Infer& infer) {
  auto x = infer.shape(0), indices = infer.shape(1);
  const int64_t batch = infer.attrs.integer("batch_dims", 0);
  if (x.empty() || indices.empty()) infer.bad("data and indices must not be scalars");
  auto depth = infer.number(indices.back());
  if (!depth) infer.unsupported("the last dimension of the indices must be a number");
  if (batch < 0 || batch >= infer.rank(1) || *depth < 1 || batch + *depth > infer.rank(0))
    infer.bad("indices of " + std::to_string(*depth) + " numbers behind " + std::to_string(batch) +
              " batch dimensions do not fit data of rank " + std::to_string(x.size()));
  Shape y(indices.begin(), indices.end() - 1);
  y.insert(y.end(), x.begin() + batch + *depth, x.end());
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_gather_nd(Prepare& p) {
  Index x = p.shape(0), indices = p.shape(1);
  const auto batch = static_cast<size_t>(p.attrs.integer("batch_dims", 0));
  if (indices.empty() || batch >= indices.size()) p.bad("the indices do not fit");
  const auto depth = static_cast<size_t>(indices.back());
  if (batch + depth > x.size()) p.bad("the indices are deeper than the data");
  std::vector<int64_t> y(indices.begin(), indices.end() - 1),
      sizes(x.begin() + static_cast<std::ptrdiff_t>(batch),
            x.begin() + static_cast<std::ptrdiff_t>(batch + depth));
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(batch + depth), x.end());
  p.expect_result(0, y);
  int64_t batches = 1, each = 1, block = p.moved_bytes(p.in(0)), area = block;
  for (size_t i = 0; i < batch; ++i) {
    if (x[i] != indices[i]) p.bad("the batch dimensions differ");
    batches *= x[i];
  }
  for (size_t i = batch; i + 1 < indices.size(); ++i) each *= indices[i];
  for (size_t i = batch + depth; i < x.size(); ++i) block *= x[i];
  for (size_t i = batch; i < x.size(); ++i) area *= x[i];
  return p.dispatch(IndexTypes(), p.in(1).elem, [&]<class I>() {
    return make_kernel([=](const Call& call) {
      const I* index = call.in<I>(1);
      char* to = call.out<char>(0);
      for (int64_t b = 0; b < batches; ++b)
        for (int64_t i = 0; i < each; ++i, to += block) {
          int64_t at = 0;
          for (int64_t size : sizes) at = at * size + normal_index("GatherND", *index++, size);
          copy_bytes(to, call.in<char>(0) + b * area + at * block, static_cast<uint64_t>(block));
        }
    });
  });
}

// ---- OneHot ----

void infer_one_hot(const Infer& infer) {
  auto indices = infer.shape(0);
  auto depth = infer.content(1);
  // The depth may be a float.
  std::optional<regie_dim> size;
  if (depth && depth->size() == 1) size = depth->front();
  if (auto number = scalar_of<double>(infer.in(1).data); !size && number)
    size = infer.dim(static_cast<int64_t>(*number));
  const int64_t axis = infer.axis(infer.attrs.integer("axis", -1), infer.rank(0) + 1);
  Shape y(indices.begin(), indices.end());
  y.insert(y.begin() + axis, size.value_or(REGIE_DIM_UNKNOWN));
  infer.result(0, infer.elem(2), y);
}

KernelPtr prepare_one_hot(Prepare& p) {
  Index indices = p.shape(0), y = p.out_shape(0);
  const auto axis =
      static_cast<size_t>(p.axis(p.attrs.integer("axis", -1), static_cast<int64_t>(indices.size()) + 1));
  if (y.size() != indices.size() + 1) p.bad("the result has the shape " + print_shape(y));
  int64_t outer = 1, inner = 1;
  const int64_t depth = y[axis];
  for (size_t i = 0; i < indices.size(); ++i) (i < axis ? outer : inner) *= indices[i];
  const uint32_t bytes = p.moved_bytes(p.in(2));
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class I>() {
    return make_kernel([=](const Call& call) {
      const char* values = call.in<char>(2);  // off, on
      char* to = call.out<char>(0);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t d = 0; d < depth; ++d)
          for (int64_t i = 0; i < inner; ++i, to += bytes) {
            auto index = static_cast<int64_t>(Compute<I>(call.in<I>(0)[o * inner + i]));
            if (index < 0) index += depth;  // outside of the range: off everywhere
            copy_bytes(to, values + (index == d ? bytes : 0), bytes);
          }
    });
  });
}

// ---- Range ----

void infer_range(const Infer& infer) {
  const regie_elem elem = infer.elem(0);
  auto starts = infer.content(0), limits = infer.content(1), steps = infer.content(2);
  const regie_dim unknown = REGIE_DIM_UNKNOWN;
  if (starts && limits && steps && starts->size() == 1 && limits->size() == 1 && steps->size() == 1) {
    const regie_dim start = starts->front(), limit = limits->front();
    auto step = infer.number(steps->front());
    if (step && *step == 0) infer.bad("the step is 0");
    if (!step) return infer.result(0, elem, {&unknown, 1});
    const sdk::Dims& d = infer.dims;
    regie_dim length =
        *step > 0 ? d.ceildiv(d.sub(limit, start), *step) : d.ceildiv(d.sub(start, limit), -*step);
    length = d.max(0, length);
    infer.result(0, elem, {&length, 1});
    auto first = infer.number(start);
    if (length >= 0 && length <= 1024 && first) {
      Shape content;
      for (int64_t i = 0; i < length; ++i) content.push_back(infer.dim(*first + i * *step));
      infer.content(0, content);
    }
    return;
  }
  std::array<double, 3> numbers{};
  for (uint32_t i = 0; i < 3; ++i) {
    const auto number = scalar_of<double>(infer.in(i).data);
    if (!number) return infer.result(0, elem, {&unknown, 1});
    numbers[i] = *number;
  }
  if (numbers[2] == 0) infer.bad("the step is 0");
  const auto length =
      static_cast<regie_dim>(std::max(0.0, std::ceil((numbers[1] - numbers[0]) / numbers[2])));
  infer.result(0, elem, {&length, 1});
}

KernelPtr prepare_range(Prepare& p) {
  if (p.out(0).rank != 1) p.bad("the result must be a list");
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() {
    return make_kernel([count = sdk::count_of(p.out(0))](const Call& call) {
      const Compute<T> start = *call.in<T>(0), step = *call.in<T>(2);
      for (int64_t i = 0; i < count; ++i)
        call.out<T>(0)[i] = T(static_cast<Compute<T>>(start + static_cast<Compute<T>>(i) * step));
    });
  });
}

// ---- CumSum, CumProd ----

void infer_cumulative(const Infer& infer) {
  for (regie_dim d : infer.shape(1))
    if (!infer.agree(d, 1)) infer.bad("the axis must be a single number");
  infer.result(0, infer.elem(0), infer.shape(0));
}

template <bool product>
KernelPtr prepare_cumulative(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  std::vector<int64_t> shape(x.begin(), x.end());
  const bool exclusive = p.attrs.integer("exclusive", 0) != 0, reverse = p.attrs.integer("reverse", 0) != 0;
  if (sdk::count_of(p.in(1)) != 1) p.bad("the axis must be a single number");
  return p.dispatch(Join<Floats, WideInts>(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Sum<T>;
      const auto axis = static_cast<size_t>(normal_axis(
          "axis", scalar_of<int64_t>(&call.operand(1)).value_or(0), static_cast<int64_t>(shape.size())));
      const Lines lines(shape, axis);
      lines.each([&](int64_t first) {
        A sum = product ? A(1) : A(0);
        for (int64_t n = 0; n < lines.size; ++n) {
          const int64_t at = first + (reverse ? lines.size - 1 - n : n) * lines.inner;
          const A value = static_cast<A>(Compute<T>(call.in<T>(0)[at]));
          const A before = sum;
          sum = product ? Times()(sum, value) : Plus()(sum, value);
          call.out<T>(0)[at] = T(static_cast<Compute<T>>(exclusive ? before : sum));
        }
      });
    });
  });
}

// ---- Trilu, EyeLike ----

void infer_matrices(const Infer& infer) {
  if (infer.rank(0) < 2) infer.bad("the input needs a rank of at least 2");
  infer.result(0, infer.elem(0), infer.shape(0));
}

KernelPtr prepare_trilu(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  if (x.size() < 2) p.bad("the input needs a rank of at least 2");
  const int64_t rows = x[x.size() - 2], columns = x.back();
  const int64_t matrices = rows * columns == 0 ? 0 : sdk::count_of(p.in(0)) / (rows * columns);
  const uint32_t bytes = p.moved_bytes(p.in(0));
  const bool upper = p.attrs.integer("upper", 1) != 0, shifted = p.has(1) && sdk::count_of(p.in(1)) != 0;
  return make_kernel([=](const Call& call) {
    const int64_t k = shifted ? scalar_of<int64_t>(&call.operand(1)).value_or(0) : 0;
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = (m * rows + r) * columns;
        // Columns low..high-1 are kept.
        const int64_t low =
            upper
                ? std::clamp<int64_t>(r + std::clamp<int64_t>(k, -rows - columns, rows + columns), 0, columns)
                : 0;
        const int64_t high =
            upper ? columns
                  : std::clamp<int64_t>(r + std::clamp<int64_t>(k, -rows - columns, rows + columns) + 1, 0,
                                        columns);
        char* to = call.out<char>(0) + row * bytes;
        std::memset(to, 0, static_cast<size_t>(columns) * bytes);
        copy_bytes(to + low * bytes, call.in<char>(0) + (row + low) * bytes,
                   static_cast<uint64_t>(std::max<int64_t>(0, high - low)) * bytes);
      }
  });
}

void infer_eye(const Infer& infer) {
  if (infer.rank(0) != 2) infer.bad("the input needs rank 2");
  infer.result(0, static_cast<regie_elem>(infer.attrs.integer("dtype", infer.elem(0))), infer.shape(0));
}

KernelPtr prepare_eye(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const int64_t k = p.attrs.integer("k", 0);
  return p.dispatch(All(), p.out(0).elem, [&]<class T>() {
    return make_kernel([k, rows = x[0], columns = x[1]](const Call& call) {
      T* to = call.out<T>(0);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) *to++ = T(static_cast<Compute<T>>(c - r == k ? 1 : 0));
    });
  });
}

// ---- Tile ----

void infer_tile(const Infer& infer) {
  auto x = infer.shape(0);
  Shape repeats = infer.list(1);
  if (repeats.size() != x.size())
    infer.bad(std::to_string(repeats.size()) + " repeats for an input of rank " + std::to_string(x.size()));
  Shape y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(infer.dims.mul(x[i], repeats[i]));
  infer.result(0, infer.elem(0), y);
}

KernelPtr prepare_tile(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, 2 * x.size());
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  // Each axis becomes two: the repeats, over which the input does not move, and the input's.
  std::vector<int64_t> shape;
  Dims from{}, to{}, dense_x = dense_strides(x), dense_y = dense_strides(y);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0 ? y[i] != 0 : y[i] % x[i] != 0) p.bad("the result has the shape " + print_shape(y));
    from[shape.size()] = 0, to[shape.size()] = dense_y[i] * x[i];
    shape.push_back(x[i] == 0 ? 0 : y[i] / x[i]);
    from[shape.size()] = dense_x[i], to[shape.size()] = dense_y[i];
    shape.push_back(x[i]);
  }
  Walk<2> walk(shape, {from, to});
  return make_kernel([walk, size = p.moved_bytes(p.in(0))](const Call& call) {
    copy_strided(walk, size, call.in<void>(0), call.out<void>(0));
  });
}

// ---- TopK ----

void infer_top_k(const Infer& infer) {
  auto x = infer.shape(0);
  const size_t axis = infer.axis_attribute(-1);
  Shape k = infer.list(1);
  if (k.size() != 1) infer.bad("k must be a single number");
  Shape y(x.begin(), x.end());
  if (auto wanted = infer.number(k[0]), size = infer.number(y[axis]); wanted && size && *wanted > *size)
    infer.bad("k is " + std::to_string(*wanted) + ", the axis has " + std::to_string(*size) + " elements");
  y[axis] = k[0];
  infer.result(0, infer.elem(0), y);
  infer.result(1, REGIE_I64, y);
}

KernelPtr prepare_top_k(Prepare& p) {
  Index x = p.shape(0);
  const size_t axis = p.axis_attribute(-1);
  const Lines lines(x, axis);
  const int64_t outer = lines.outer, size = lines.size, inner = lines.inner;
  const uint32_t some = p.wants(0) ? 0 : 1;
  if (p.out_shape(some).size() != x.size()) p.bad("the result does not fit");
  const int64_t k = p.out_shape(some)[axis];
  // A symbolic axis may be too short for now: only the sizes of a run count.
  const bool fits = k <= size;
  const bool largest = p.attrs.integer("largest", 1) != 0, values = p.wants(0), indices = p.wants(1);
  p.scratch_bytes = static_cast<uint64_t>(size) * sizeof(int64_t);
  return p.dispatch(Numbers(), p.in(0).elem, [&]<class T>() {
    return make_kernel([=](const Call& call) {
      using A = Compute<T>;
      if (!fits)
        throw sdk::Failure(REGIE_INVALID_INPUT, "TopK: k is " + std::to_string(k) + ", the axis has " +
                                                    std::to_string(size) + " elements");
      auto* order = call.scratch<int64_t>();
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
          const T* from = call.in<T>(0) + o * size * inner + i;
          for (int64_t n = 0; n < size; ++n) order[n] = n;
          // Of equal elements the first goes first; NaN counts as the greatest.
          auto before = [&](int64_t a, int64_t b) {
            const A x = from[a * inner], y = from[b * inner];
            const bool x_nan = x != x, y_nan = y != y;
            if (x_nan != y_nan) return largest ? x_nan : y_nan;
            if (x_nan || x == y) return a < b;
            return largest ? x > y : x < y;
          };
          // Which they are first: a partial sort keeps a heap of all k for every element.
          if (k < size) std::nth_element(order, order + k, order + size, before);
          std::sort(order, order + k, before);
          for (int64_t n = 0; n < k; ++n) {
            const int64_t at = (o * k + n) * inner + i;
            if (values) call.out<T>(0)[at] = from[order[n] * inner];
            if (indices) call.out<int64_t>(1)[at] = order[n];
          }
        }
    });
  });
}

// ---- ReverseSequence ----

void infer_reverse(const Infer& infer) {
  if (infer.rank(0) < 2) infer.bad("the input needs a rank of at least 2");
  const int64_t batch = infer.attrs.integer("batch_axis", 1), time = infer.attrs.integer("time_axis", 0);
  if (batch + time != 1 || batch * time != 0) infer.bad("batch_axis and time_axis must be 0 and 1");
  if (infer.rank(1) != 1 || !infer.agree(infer.shape(1)[0], infer.shape(0)[static_cast<size_t>(batch)]))
    infer.bad("needs one length a sequence");
  infer.result(0, infer.elem(0), infer.shape(0));
}

KernelPtr prepare_reverse(Prepare& p) {
  Index x = p.shape(0);
  p.expect_result(0, x);
  const bool time_first = p.attrs.integer("time_axis", 0) == 0;
  const int64_t batch = x[time_first ? 1 : 0], time = x[time_first ? 0 : 1];
  int64_t block = p.moved_bytes(p.in(0));
  for (int64_t d : x.subspan(2)) block *= d;
  if (p.in(1).elem != REGIE_I64 || sdk::count_of(p.in(1)) != batch) p.bad("needs one i64 length a sequence");
  return make_kernel([=](const Call& call) {
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = call.in<int64_t>(1)[b];
      if (length < 0 || length > time)
        throw sdk::Failure(REGIE_INVALID_INPUT, "ReverseSequence: the length " + std::to_string(length) +
                                                    " is outside of an axis of size " + std::to_string(time));
      for (int64_t t = 0; t < time; ++t) {
        auto at = [&](int64_t step) { return (time_first ? step * batch + b : b * time + step) * block; };
        copy_bytes(call.out<char>(0) + at(t), call.in<char>(0) + at(t < length ? length - 1 - t : t),
                   static_cast<uint64_t>(block));
      }
    }
  });
}

constexpr Op table[] = {
    {"GatherElements", 0, infer_gather_elements, prepare_gather_elements},
    {"GatherND", 0, infer_gather_nd, prepare_gather_nd},
    {"OneHot", 0, infer_one_hot, prepare_one_hot},
    {"Range", 0, infer_range, prepare_range},
    {"CumSum", 0, infer_cumulative, prepare_cumulative<false>},
    {"CumProd", 0, infer_cumulative, prepare_cumulative<true>},
    {"Trilu", 0, infer_matrices, prepare_trilu},
    {"EyeLike", 0, infer_eye, prepare_eye},
    {"Tile", 0, infer_tile, prepare_tile},
    {"TopK", 0, infer_top_k, prepare_top_k},
    {"ReverseSequence", 0, infer_reverse, prepare_reverse},
};

}  // namespace

std::span<const Op> index_ops() { return table; }

}  // namespace regie::ops
