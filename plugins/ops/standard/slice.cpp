// Slice and Pad: both address parts of axes. Their numbers may be computed at run time, so kernels read them
// there.
#include <algorithm>
#include <numeric>

#include "op.h"
#include "walk.h"

namespace regie::ops {
namespace {

// INT64_MAX, INT32_MAX and their like mean "to the end", whatever size the axis will have.
constexpr int64_t endless = INT32_MAX;
constexpr int64_t longest_step = int64_t{1} << 40;

// ---- Slice ----

// A position given from the front or, negative, from the back; at least `low`, but never more than `high`.
regie_dim position(const Infer& infer, regie_dim given, regie_dim size, regie_dim low,
                   std::optional<regie_dim> high) {
  if (auto n = infer.number(given); n && !infer.number(size)) {
    if (*n >= endless) return high.value_or(size);
    if (*n <= -endless) return high ? infer.dims.min(low, *high) : low;
  }
  if (infer.surely_below(given, 0)) {
    given = infer.dims.add(given, size);
  } else if (!infer.surely_at_least(given, 0)) {
    return REGIE_DIM_UNKNOWN;  // may count from the front or from the back
  }
  const regie_dim least = infer.dims.max(low, given);
  return high ? infer.dims.min(least, *high) : least;
}

// The axes that operand 3 says, of Slice and of Pad; the first `count` if it is absent, nothing if only the
// run tells.
std::optional<std::vector<int64_t>> given_axes(const Infer& infer, size_t count) {
  if (infer.has(3)) return infer.numbers(3);
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

void infer_slice(const Infer& infer) {
  auto x = infer.shape(0);
  auto any = [&] { infer.result(0, infer.elem(0), Infer::unknown(x.size())); };
  if (!infer.number(infer.rank(1) == 1 ? infer.shape(1)[0] : 1)) return any();  // lists of any length
  const auto known_axes = given_axes(infer, infer.length(1));
  if (!known_axes) return any();
  const std::vector<int64_t>& axes = *known_axes;
  Shape starts = infer.list(1), ends = infer.list(2);
  std::vector<std::optional<int64_t>> steps(starts.size(), 1);
  if (infer.has(4)) {
    steps.clear();
    for (regie_dim step : infer.list(4)) steps.push_back(infer.number(step));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    infer.bad("starts, ends, axes and steps must have the same number of elements");
  Shape y(x.begin(), x.end());
  std::vector<bool> seen(x.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    auto axis = static_cast<size_t>(infer.axis(axes[i], infer.rank(0)));
    if (seen[axis]) infer.bad("axis " + std::to_string(axes[i]) + " is given twice");
    seen[axis] = true;
    regie_dim size = x[axis];
    const sdk::Dims& d = infer.dims;
    if (!steps[i]) {
      y[axis] = REGIE_DIM_UNKNOWN;
      continue;
    }
    const int64_t by = *steps[i];
    if (by == 0) infer.bad("a step is 0");
    regie_dim length;
    if (by > 0) {
      // A start behind the end of the axis is behind `end` as well, and then nothing is left: it need not be
      // cut to the size, which would stand twice in what comes of it.
      regie_dim start = position(infer, starts[i], size, 0, std::nullopt),
                end = position(infer, ends[i], size, 0, size);
      length = d.ceildiv(d.sub(end, start), std::min(by, longest_step));
    } else {
      regie_dim last = d.sub(size, 1), before = infer.dim(-1);
      regie_dim start = position(infer, starts[i], size, 0, last);
      regie_dim end = position(infer, ends[i], size, before, last);
      length = d.ceildiv(d.sub(start, end), -std::max(by, -longest_step));
    }
    y[axis] = d.max(0, length);
  }
  infer.result(0, infer.elem(0), y);

  auto elements = infer.elements(0);
  auto fixed = [](regie_dim d) { return d >= 0; };
  if (!elements || std::find(steps.begin(), steps.end(), std::nullopt) != steps.end() ||
      x.size() > max_rank || !std::all_of(x.begin(), x.end(), fixed) ||
      !std::all_of(y.begin(), y.end(), fixed))
    return;
  Dims from = dense_strides(x);
  int64_t offset = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    auto start = infer.number(starts[i]);
    if (!start) return;
    auto axis = static_cast<size_t>(infer.axis(axes[i], infer.rank(0)));
    const int64_t size = x[axis], last = std::max<int64_t>(0, *steps[i] > 0 ? size : size - 1);
    offset += std::clamp<int64_t>(*start < 0 ? *start + size : *start, 0, last) * from[axis];
    from[axis] *= std::clamp(*steps[i], -longest_step, longest_step);
  }
  Shape picked;
  Walk<1>(y, {from}).rows([&](const auto& at, int64_t count, const auto& step) {
    for (int64_t i = 0; i < count; ++i)
      picked.push_back((*elements)[static_cast<size_t>(offset + at[0] + i * step[0])]);
  });
  infer.content(0, picked);
}

// Reads operand `i`, a list of i64 or i32, into `to`; its length.
size_t read_list(const Call& call, uint32_t i, Dims& to) {
  const regie_tensor& t = call.operand(i);
  auto count = static_cast<size_t>(sdk::count_of(t));
  if (count > max_rank) throw sdk::Failure(REGIE_INVALID_INPUT, "a list of axes is longer than any rank");
  dispatch(IndexTypes(), t.elem,
           [&]<class T>() { std::copy_n(static_cast<const T*>(t.data), count, to.begin()); });
  return count;
}

struct SliceKernel {
  std::vector<int64_t> shape, result;
  uint32_t size;
  bool axes, steps;

  void operator()(const Call& call) const {
    Dims starts{}, ends{}, at{}, by{};
    size_t count = read_list(call, 1, starts);
    bool fits = read_list(call, 2, ends) == count;
    for (size_t i = 0; i < count; ++i) {
      at[i] = static_cast<int64_t>(i);
      by[i] = 1;
    }
    if (axes) fits = fits && read_list(call, 3, at) == count;
    if (steps) fits = fits && read_list(call, 4, by) == count;
    if (!fits)
      throw sdk::Failure(REGIE_INVALID_INPUT, "Slice: starts, ends, axes and steps differ in length");

    Dims from = dense_strides(shape), lengths{};
    std::copy(shape.begin(), shape.end(), lengths.begin());
    int64_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
      auto axis = static_cast<size_t>(normal_axis("Slice: axis", at[i], static_cast<int64_t>(shape.size())));
      int64_t n = shape[axis], step = std::clamp(by[i], -longest_step, longest_step);
      if (step == 0) throw sdk::Failure(REGIE_INVALID_INPUT, "Slice: a step is 0");
      auto place = [&](int64_t given, int64_t low, int64_t high) {
        return std::max(low, std::min(given < 0 ? given + n : given, high));
      };
      int64_t start = step > 0 ? place(starts[i], 0, n) : place(starts[i], n == 0 ? -1 : 0, n - 1);
      int64_t end = step > 0 ? place(ends[i], 0, n) : place(ends[i], -1, n - 1);
      int64_t room = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
      lengths[axis] = room <= 0 ? 0 : (room + stride - 1) / stride;
      offset += start * from[axis];
      from[axis] *= step;
    }
    if (!std::equal(result.begin(), result.end(), lengths.begin()))
      throw sdk::Failure(REGIE_INVALID_INPUT, "Slice: the result would have the shape " +
                                                  print_shape(Index(lengths).first(shape.size())) + ", not " +
                                                  print_shape(result));
    if (std::find(result.begin(), result.end(), 0) != result.end()) return;
    Walk<2> walk(result, {from, dense_strides(result)});
    copy_strided(walk, size, call.in<char>(0) + offset * static_cast<int64_t>(size), call.out<void>(0));
  }
};

void check_index_lists(const Prepare& p, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i <= last; ++i)
    if (p.has(i) && ((p.in(i).elem != REGIE_I64 && p.in(i).elem != REGIE_I32) || p.in(i).rank > 1))
      p.bad("operand " + std::to_string(i) + " must be a list of i64 or i32");
}

KernelPtr prepare_slice(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, x.size());
  check_index_lists(p, 1, 4);
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  uint32_t size = p.moved_bytes(p.in(0));
  return make_kernel(SliceKernel{{x.begin(), x.end()}, {y.begin(), y.end()}, size, p.has(3), p.has(4)});
}

// ---- Pad ----

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

PadMode pad_mode(std::string_view op, const sdk::Attrs& attrs) {
  static constexpr std::string_view names[] = {"constant", "reflect", "edge", "wrap"};
  return static_cast<PadMode>(choice(op, attrs, "mode", names));
}

void infer_pad(const Infer& infer) {
  auto x = infer.shape(0);
  pad_mode(infer.op, infer.attrs);
  const auto known_axes = given_axes(infer, x.size());
  if (!known_axes) return infer.result(0, infer.elem(0), Infer::unknown(x.size()));
  const std::vector<int64_t>& axes = *known_axes;
  Shape pads = infer.list(1);
  if (pads.size() != 2 * axes.size())
    infer.bad(std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) +
              " axes; two an axis are needed");
  Shape y(x.begin(), x.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<size_t>(infer.axis(axes[i], infer.rank(0)));
    y[axis] = infer.dims.add(y[axis], infer.dims.add(pads[i], pads[axes.size() + i]));
  }
  infer.result(0, infer.elem(0), y);
}

// Which element of an axis of `size` belongs to position `at` (which may be outside).
int64_t padded_source(PadMode mode, int64_t at, int64_t size) {
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(at, 0, size - 1);
  int64_t period = mode == PadMode::kWrap ? size : std::max<int64_t>(1, 2 * (size - 1));
  int64_t in_period = (at % period + period) % period;
  return in_period < size ? in_period : period - in_period;
}

struct PadKernel {
  PadMode mode;
  std::vector<int64_t> shape, result;
  uint32_t size;
  bool axes, value;

  void operator()(const Call& call) const {
    Dims list{}, at{}, begin{};
    // Pads are twice as many as axes.
    const regie_tensor& pads = call.operand(1);
    size_t rank = shape.size(), count = rank;
    for (size_t i = 0; i < rank; ++i) at[i] = static_cast<int64_t>(i);
    if (axes) count = read_list(call, 3, at);
    if (sdk::count_of(pads) != static_cast<int64_t>(2 * count))
      throw sdk::Failure(REGIE_INVALID_INPUT, "Pad: needs two pads an axis");
    const auto* amounts = call.in<int64_t>(1);
    std::copy(shape.begin(), shape.end(), list.begin());
    for (size_t i = 0; i < count; ++i) {
      auto axis = static_cast<size_t>(normal_axis("Pad: axis", at[i], static_cast<int64_t>(rank)));
      begin[axis] += amounts[i];
      list[axis] += amounts[i] + amounts[count + i];
    }
    if (!std::equal(result.begin(), result.end(), list.begin()))
      throw sdk::Failure(REGIE_INVALID_INPUT, "Pad: the result would have the shape " +
                                                  print_shape(Index(list).first(rank)) + ", not " +
                                                  print_shape(result));
    bool source_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (std::find(result.begin(), result.end(), 0) != result.end()) return;
    if (source_empty && mode != PadMode::kConstant)
      throw sdk::Failure(REGIE_INVALID_INPUT, "Pad: there is nothing in an empty tensor to pad with");
    fill(call, begin);
  }

 private:
  void fill(const Call& call, const Dims& begin) const {
    constexpr char zero[16] = {};
    const char* constant = value ? call.in<char>(2) : zero;
    Dims strides = dense_strides(shape), index{};
    char* to = call.out<char>(0);
    size_t rank = shape.size();
    int64_t inner = rank == 0 ? 1 : result[rank - 1];
    for (;;) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t axis = 0; axis + 1 < rank; ++axis) {
        int64_t position = index[axis] - begin[axis];
        if (mode == PadMode::kConstant) {
          inside = inside && position >= 0 && position < shape[axis];
        } else {
          position = padded_source(mode, position, shape[axis]);
        }
        offset += position * strides[axis];
      }
      for (int64_t i = 0; i < inner; ++i, to += size) {
        int64_t position = rank == 0 ? 0 : i - begin[rank - 1];
        if (rank != 0 && mode != PadMode::kConstant)
          position = padded_source(mode, position, shape[rank - 1]);
        bool outside = !inside || (rank != 0 && (position < 0 || position >= shape[rank - 1]));
        const char* from =
            outside ? constant : call.in<char>(0) + (offset + position) * static_cast<int64_t>(size);
        std::memcpy(to, from, size);
      }
      size_t axis = rank < 2 ? 0 : rank - 1;
      for (;;) {
        if (axis-- == 0) return;
        if (++index[axis] < result[axis]) break;
        index[axis] = 0;
      }
    }
  }
};

KernelPtr prepare_pad(Prepare& p) {
  Index x = p.shape(0), y = p.out_shape(0);
  check_rank(p.op, x.size());
  check_index_lists(p, 3, 3);
  if (p.in(1).elem != REGIE_I64 || p.in(1).rank != 1) p.bad("the pads must be a list of i64");
  if (p.has(2) && (sdk::count_of(p.in(2)) != 1 || p.in(2).elem != p.in(0).elem))
    p.bad("the constant must be a single number of the input's type");
  if (x.size() != y.size()) p.bad("the result has the shape " + print_shape(y));
  uint32_t size = p.moved_bytes(p.in(0));
  return make_kernel(PadKernel{
      pad_mode(p.op, p.attrs), {x.begin(), x.end()}, {y.begin(), y.end()}, size, p.has(3), p.has(2)});
}

constexpr Op table[] = {
    {"Slice", 0, infer_slice, prepare_slice},
    {"Pad", 0, infer_pad, prepare_pad},
};

}  // namespace

std::span<const Op> slice_ops() { return table; }

}  // namespace regie::ops
