// Operators that move bytes: they compute nothing, so all element types are alike to them.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "native.h"
#include "parallel.h"
#include "strided_copy.h"

namespace host_cpu {
namespace {

using regie::sdk::Failure;

// The logical axes' strides in a tensor's bytes, blocked channels split in two: {dims, strides}.
struct Axes {
  std::vector<int64_t> dims, strides;
};
// `split`: as if the channels were in blocks, so that the axes of two tensors correspond.
Axes axes_of(const NativeTensor& t, bool split) {
  const std::vector<int64_t> physical = t.physical(), strides = row_major_strides(physical);
  Axes a;
  for (int64_t i = 0; i < t.rank(); ++i) {
    const auto at = static_cast<size_t>(physical_axis(i, t.rank(), t.format));
    const bool channels = i == 1 && split && t.dims[1] % kBlock == 0;
    if (t.format == kBlocked && i == 1) {
      a.dims.push_back(physical[1]);
      a.strides.push_back(strides[1]);
      a.dims.push_back(physical.back());
      a.strides.push_back(1);
    } else if (channels) {
      a.dims.push_back(t.dims[1] / kBlock);
      a.strides.push_back(strides[at] * kBlock);
      a.dims.push_back(kBlock);
      a.strides.push_back(strides[at]);
    } else {
      a.dims.push_back(t.dims[static_cast<size_t>(i)]);
      a.strides.push_back(strides[at]);
      if (i == 1 && split) {
        a.dims.push_back(1);
        a.strides.push_back(0);
      }
    }
  }
  return a;
}

NativePtr copy_kernel(const StridedCopy& copy, uint32_t threads, int64_t from_offset = 0) {
  return native_kernel([=](const regie_launch& l) {
    if (l.operands[0].data != l.results[0].data || from_offset)
      copy.run(in_data<char>(l, 0) + from_offset, out_data<char>(l, 0), threads);
  });
}

// Bytes of an element that is moved from x to y.
uint32_t moved_size(const NativeTensor& x, const NativeTensor& y) {
  if (x.elem != y.elem) refuse("operand and result are of different types");
  return elem_size(x.elem);
}

// A result that is its operand's bytes under another shape.
NativePtr make_view(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (r.wants(1)) refuse("a second result is asked for");
  if (x.count() != y.count()) refuse("operand and result differ in size");
  const int64_t n = x.count(), one = 1;
  return copy_kernel(StridedCopy({&n, 1}, {&one, 1}, {&one, 1}, moved_size(x, y)), r.threads);
}

NativePtr make_reformat(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.dims != y.dims) refuse("operand and result differ");
  if (same_order(x.dims, x.format, y.format)) {
    const int64_t n = x.count(), one = 1;
    return copy_kernel(StridedCopy({&n, 1}, {&one, 1}, {&one, 1}, moved_size(x, y)), r.threads);
  }
  const bool split = x.format == kBlocked || y.format == kBlocked;
  const Axes a = axes_of(x, split), b = axes_of(y, split);
  return copy_kernel(StridedCopy(a.dims, a.strides, b.strides, moved_size(x, y)), r.threads);
}

NativePtr make_transpose(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.format == kBlocked || y.format == kBlocked) refuse("blocked channels are not transposed");
  const size_t rank = x.dims.size();
  std::vector<int64_t> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (auto given = r.attrs.integers("perm"); given && !given->empty()) {
    if (given->size() != rank) refuse("perm does not fit the operand's rank");
    perm.assign(given->begin(), given->end());
  }
  const Axes from = axes_of(x, false), to = axes_of(y, false);
  std::vector<int64_t> from_strides(rank);
  std::vector<uint8_t> seen(rank);
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<size_t>(normal_axis(perm[i], static_cast<int64_t>(rank)));
    if (seen[axis]++ || y.dims.size() != rank || y.dims[i] != x.dims[axis])
      refuse("perm does not fit the result");
    from_strides[i] = from.strides[axis];
  }
  return copy_kernel(StridedCopy(to.dims, from_strides, to.strides, moved_size(x, y)), r.threads);
}

// Concat and Split: part `i` is the whole's part along an axis, from an offset on.
struct Part {
  StridedCopy copy;
  int64_t offset;  // bytes into the whole
};
std::vector<Part> parts_of(const NativeRequest& r, const NativeTensor& whole,
                           const std::vector<NativeTensor>& parts, bool join) {
  const int64_t axis = normal_axis(r.attrs.integer("axis", join ? INT64_MIN : 0), whole.rank());
  const Axes w = axes_of(whole, false);
  const int64_t size = elem_size(whole.elem);
  const std::vector<int64_t> physical = whole.physical(), strides = row_major_strides(physical);
  const int64_t step = strides[static_cast<size_t>(physical_axis(axis, whole.rank(), whole.format))];
  std::vector<Part> out;
  int64_t at = 0;
  for (const NativeTensor& p : parts) {
    if (!p.present()) {
      if (join) refuse("an operand is absent");
      refuse("a result is absent");
    }
    if (p.elem != whole.elem || p.rank() != whole.rank() || p.format != whole.format)
      refuse("the parts differ in type or format");
    // Of symbolic sizes only the run knows.
    for (int64_t d = 0; d < whole.rank(); ++d)
      if (d != axis && p.dims[static_cast<size_t>(d)] != whole.dims[static_cast<size_t>(d)])
        refuse("the parts differ along axis " + std::to_string(d));
    const Axes a = axes_of(p, false);
    const int64_t block = whole.format == kBlocked && axis == 1 ? kBlock : 1;
    if (p.dims[static_cast<size_t>(axis)] % block) refuse("a part is no whole number of blocks");
    const auto& from = join ? a.strides : w.strides;
    const auto& to = join ? w.strides : a.strides;
    out.push_back({StridedCopy(a.dims, from, to, static_cast<uint32_t>(size)), at / block * step * size});
    at += p.dims[static_cast<size_t>(axis)];
  }
  if (at != whole.dims[static_cast<size_t>(axis)]) refuse("the parts do not add up to the whole");
  return out;
}

NativePtr make_concat(const NativeRequest& r) {
  return native_kernel(
      [parts = parts_of(r, r.out(0), r.operands, true), threads = r.threads](const regie_launch& l) {
        for (size_t i = 0; i < parts.size(); ++i)
          parts[i].copy.run(l.operands[i].data, out_data<char>(l, 0) + parts[i].offset, threads);
      });
}

NativePtr make_split(const NativeRequest& r) {
  // Without sizes and without their number the parts are equal, which of a symbolic axis shows only here.
  if (!r.has(1) && !r.attrs.has("num_outputs")) {
    const int64_t size =
        r.in(0).dims[static_cast<size_t>(normal_axis(r.attrs.integer("axis", 0), r.in(0).rank()))];
    if (size % static_cast<int64_t>(r.results.size()) != 0)
      throw Failure(REGIE_INVALID_INPUT, "Split: an axis of size " + std::to_string(size) +
                                             " cannot be split into " + std::to_string(r.results.size()) +
                                             " equal parts");
  }
  return native_kernel(
      [parts = parts_of(r, r.in(0), r.results, false), threads = r.threads](const regie_launch& l) {
        for (size_t i = 0; i < parts.size(); ++i)
          parts[i].copy.run(in_data<char>(l, 0) + parts[i].offset, l.results[i].data, threads);
      });
}

NativePtr make_slice(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  const auto starts = r.constant_integers(1), ends = r.constant_integers(2);
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (r.has(3)) axes = r.constant_integers(3);
  if (r.has(4)) steps = r.constant_integers(4);
  if (axes.size() != starts.size() || steps.size() != starts.size() || ends.size() != starts.size())
    refuse("starts, ends, axes and steps differ in length");
  Axes from = axes_of(x, false);
  if (x.format == kBlocked) refuse("blocked channels are not cut");
  if (y.rank() != x.rank()) refuse("the result has another rank");
  std::vector<uint8_t> seen(x.dims.size());
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normal_axis(axes[i], x.rank()));
    const int64_t size = x.dims[axis], step = steps[i];
    if (seen[axis]++) refuse("an axis is cut twice");
    if (step == 0) refuse("a step is 0");
    int64_t start = starts[i] < 0 ? starts[i] + size : starts[i];
    start = step > 0 ? std::clamp<int64_t>(start, 0, size)
                     : std::clamp<int64_t>(start, 0, std::max<int64_t>(size - 1, 0));
    offset += start * from.strides[axis];
    from.strides[axis] *= step;
    // Where the slice ends is the result's size, which shape inference found; the bytes must be there.
    const int64_t last = start + (y.dims[axis] - 1) * step;
    if (y.dims[axis] > 0 && (last < 0 || last >= size)) refuse("the result reaches out of the operand");
  }
  for (size_t i = 0; i < y.dims.size(); ++i)
    if (!seen[i] && y.dims[i] != x.dims[i]) refuse("the result's shape does not follow from the operand's");
  const uint32_t size = moved_size(x, y);
  const Axes to = axes_of(y, false);
  return copy_kernel(StridedCopy(to.dims, from.strides, to.strides, size), r.threads, offset * size);
}

NativePtr make_expand(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.rank() > y.rank()) refuse("the result has a lower rank");
  const size_t lead = y.dims.size() - x.dims.size();
  const auto own = row_major_strides(x.dims);
  std::vector<int64_t> from(y.dims.size(), 0);
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (x.dims[i] != 1 && x.dims[i] != y.dims[lead + i])
      refuse("the operand does not broadcast to the result");
    from[lead + i] = x.dims[i] == 1 ? 0 : own[i];
  }
  return copy_kernel(StridedCopy(y.dims, from, row_major_strides(y.dims), moved_size(x, y)), r.threads);
}

NativePtr make_tile(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.rank() != y.rank()) refuse("operand and result differ in rank");
  const auto own = row_major_strides(x.dims), all = row_major_strides(y.dims);
  std::vector<int64_t> dims, from, to;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (x.dims[i] == 0 || y.dims[i] % x.dims[i]) refuse("the result is no multiple of the operand");
    dims.insert(dims.end(), {y.dims[i] / x.dims[i], x.dims[i]});
    from.insert(from.end(), {0, own[i]});
    to.insert(to.end(), {all[i] * x.dims[i], all[i]});
  }
  return copy_kernel(StridedCopy(dims, from, to, moved_size(x, y)), r.threads);
}

// What lies around the operand by its own elements, axis by axis: of an axis, `begin` and `end` elements,
// from what is there of it and the whole of the axes before. As `y` lies; offsets in elements.
struct Border {
  StridedCopy copy;
  int64_t from, to;
};

std::vector<Border> borders(std::string_view mode, const std::vector<int64_t>& inner, const Axes& y,
                            std::span<const int64_t> begins, uint32_t size) {
  std::vector<Border> made;
  std::vector<int64_t> dims = inner;
  int64_t corner = 0;  // where what is there begins
  for (size_t axis = 0; axis < dims.size(); ++axis) corner += begins[axis] * y.strides[axis];
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t n = inner[axis], begin = begins[axis], end = y.dims[axis] - n - begin,
                  stride = y.strides[axis];
    if (mode == "reflect" && std::max(begin, end) >= n) refuse("it reflects more than once");
    if (mode == "wrap" && std::max(begin, end) > n) refuse("it wraps more than once");
    auto add = [&](int64_t count, int64_t from, int64_t to, int64_t step) {
      if (count == 0) return;
      dims[axis] = count;
      std::vector<int64_t> steps = y.strides;
      steps[axis] = step * stride;
      made.push_back(
          {StridedCopy(dims, steps, y.strides, size), corner + from * stride, corner + to * stride});
    };
    // Positions along the axis count from the first element of the operand.
    const bool mirrored = mode == "reflect", repeated = mode == "edge";
    add(begin, mirrored ? begin : repeated ? 0 : n - begin, -begin, mirrored ? -1 : repeated ? 0 : 1);
    add(end, mirrored ? n - 2 : repeated ? n - 1 : 0, n, mirrored ? -1 : repeated ? 0 : 1);
    dims[axis] = y.dims[axis];
    corner -= begin * stride;
  }
  return made;
}

NativePtr make_pad(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &y = r.out(0);
  const std::string_view mode = r.attrs.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    refuse("the mode is unknown");
  const auto pads = r.constant_integers(1);
  std::vector<int64_t> axes(x.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (r.has(3)) axes = r.constant_integers(3);
  if (pads.size() != 2 * axes.size() || x.rank() != y.rank()) refuse("pads do not fit the operand");
  if (x.format == kBlocked) refuse("blocked channels are not padded");
  const uint32_t size = moved_size(x, y);
  if (r.has(2) && (r.in(2).count() != 1 || r.in(2).elem != x.elem))
    refuse("the value is no scalar of its type");
  const Axes from = axes_of(x, false), to = axes_of(y, false);
  std::vector<int64_t> before(x.dims.size(), 0), cut = x.dims;
  int64_t from_offset = 0, to_offset = 0;
  std::vector<int64_t> expected = x.dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normal_axis(axes[i], x.rank()));
    const int64_t begin = pads[i], end = pads[axes.size() + i];
    if (mode != "constant" && (begin < 0 || end < 0 || x.dims[axis] == 0)) refuse("it cuts off");
    before[axis] = begin;
    expected[axis] += begin + end;
    cut[axis] += std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0);
    if (cut[axis] < 0) refuse("more is cut off than there is");
    from_offset += std::max<int64_t>(-begin, 0) * from.strides[axis];
    to_offset += std::max<int64_t>(begin, 0) * to.strides[axis];
  }
  if (expected != y.dims) refuse("the result's shape does not follow from the operand's");
  StridedCopy inner(cut, from.strides, to.strides, size);
  if (mode != "constant") {
    if (x.count() == 0) refuse("there is nothing to take from");
    return native_kernel(
        [=, threads = r.threads, around = borders(mode, x.dims, to, before, size)](const regie_launch& l) {
          auto* result = out_data<char>(l, 0);
          inner.run(l.operands[0].data, result + to_offset * size, threads);
          for (const Border& b : around) b.copy.run(result + b.from * size, result + b.to * size, threads);
        });
  }
  const int64_t total = y.count(), one = 1, none = 0;
  StridedCopy fill({&total, 1}, {&none, 1}, {&one, 1}, size);
  return native_kernel([=, threads = r.threads, value = r.has(2)](const regie_launch& l) {
    static constexpr uint64_t kZero = 0;
    fill.run(value ? l.operands[2].data : &kZero, l.results[0].data, threads);
    inner.run(in_data<char>(l, 0) + from_offset * size, out_data<char>(l, 0) + to_offset * size, threads);
  });
}

NativePtr make_gather(const NativeRequest& r) {
  const NativeTensor &x = r.in(0), &index = r.in(1), &y = r.out(0);
  if (index.elem != REGIE_I64 && index.elem != REGIE_I32) refuse("the indices are of no integer type");
  const auto axis = static_cast<size_t>(normal_axis(r.attrs.integer("axis", 0), x.rank()));
  int64_t outer = 1, inner = elem_size(x.elem);
  for (size_t i = 0; i < axis; ++i) outer *= x.dims[i];
  for (size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  const int64_t size = x.dims[axis], count = index.count(), wide = index.elem == REGIE_I64;
  if (outer * count * inner != y.count() * static_cast<int64_t>(elem_size(y.elem)))
    refuse("the result's size does not follow from the operands");
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    auto at = [&](int64_t i) {
      int64_t n = wide ? in_data<int64_t>(l, 1)[i] : in_data<int32_t>(l, 1)[i];
      return n < 0 ? n + size : n;
    };
    for (int64_t i = 0; i < count; ++i)
      if (at(i) < 0 || at(i) >= size)
        throw Failure(REGIE_INVALID_INPUT, "Gather: index " + std::to_string(at(i)) + " is outside of 0.." +
                                               std::to_string(size - 1));
    parallel(threads, outer * count, inner / 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(out_data<char>(l, 0) + i * inner,
                    in_data<char>(l, 0) + (i / count * size + at(i % count)) * inner,
                    static_cast<size_t>(inner));
    });
  });
}

constexpr NativeOp kOps[] = {
    {"Concat", make_concat, Takes::kJoined},
    {"Dropout", make_view},
    {"Expand", make_expand},
    {"Flatten", make_view},
    {"Gather", make_gather},
    {"Identity", make_view},
    {"Pad", make_pad},
    {"Reshape", make_view},
    {"Slice", make_slice},
    {"Split", make_split, Takes::kJoined},
    {"Squeeze", make_view},
    {"Tile", make_tile},
    {"Transpose", make_transpose, Takes::kMoved},
    {"Unsqueeze", make_view},
    {"regie.Reformat", make_reformat, Takes::kMoved},
};

}  // namespace

std::span<const NativeOp> native_moves() { return kOps; }

}  // namespace host_cpu
