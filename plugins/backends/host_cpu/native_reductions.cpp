// Reductions of float32 over any axes that form one run of neighbours among those that matter; soft-max along
// one axis; average and maximum over the spatial axes where oneDNN's pooling refuses.
#include <algorithm>
#include <cmath>

#include "native.h"
#include "parallel.h"
#include "simd.h"

namespace host_cpu {
namespace {

// A row-major tensor as outer x reduced x inner.
struct Runs {
  int64_t outer = 1, reduced = 1, inner = 1;
};

Runs runs_of(const std::vector<int64_t>& dims, const std::vector<uint8_t>& is_reduced) {
  Runs runs;
  bool seen = false, left = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (is_reduced[i]) {
      if (left) refuse("the reduced axes are not neighbours");
      seen = true;
      runs.reduced *= dims[i];
    } else {
      left = seen;
      (seen ? runs.inner : runs.outer) *= dims[i];
    }
  }
  return runs;
}

// Physical flags of the axes that a reduction is over.
std::vector<uint8_t> reduced_axes(const NativeRequest& r, const NativeTensor& x) {
  std::vector<int64_t> axes;
  if (r.has(1))
    axes = r.constant_integers(1);
  else if (auto given = r.attrs.integers("axes"))
    axes.assign(given->begin(), given->end());
  std::vector<uint8_t> flags(x.physical().size());
  if (axes.empty()) {
    if (r.attrs.integer("noop_with_empty_axes", 0)) refuse("it reduces nothing");
    std::fill(flags.begin(), flags.end(), 1);
  }
  for (int64_t a : axes) {
    const int64_t axis = normal_axis(a, x.rank());
    flags[static_cast<size_t>(physical_axis(axis, x.rank(), x.format))] = 1;
    if (x.format == kBlocked && axis == 1) flags.back() = 1;
  }
  return flags;
}

struct Reduction {
  Fold fold;
  bool mean = false;
  float (*finish)(float) = nullptr;
};

NativePtr reduce_kernel(const NativeRequest& r, Reduction how) {
  r.need_float(0);
  r.need_float_results();
  const NativeTensor &x = r.in(0), &y = r.out(0);
  const std::vector<uint8_t> flags = reduced_axes(r, x);
  if (x.format == kBlocked && (flags[1] || flags.back())) refuse("blocked channels are not reduced");
  if (y.format != kPlainFormat && y.rank() != x.rank()) refuse("the result has another rank");
  const Runs runs = runs_of(x.physical(), flags);
  if (runs.outer * runs.inner != y.count()) refuse("the result's size does not follow from the operand's");
  if (runs.reduced == 0) refuse("it reduces no element");
  if (y.format != x.format) {
    // Where only one axis is left, its order is the same in every format.
    std::vector<int64_t> kept;
    for (size_t i = 0; i < x.dims.size(); ++i)
      if (!flags[static_cast<size_t>(physical_axis(static_cast<int64_t>(i), x.rank(), x.format))] &&
          x.dims[i] != 1)
        kept.push_back(x.dims[i]);
    if (kept.size() > 1 && !(kept.size() == 2 && kept[0] == x.dims[0] && kept[1] == x.dims[1]))
      refuse("the result has another format");
  }
  const float factor = how.mean ? 1.f / static_cast<float>(runs.reduced) : 1.f;
  auto finish = [=](float* y_row, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (how.mean) y_row[i] *= factor;
      if (how.finish) y_row[i] = how.finish(y_row[i]);
    }
  };
  if (runs.inner == 1)
    return native_kernel([=, threads = r.threads](const regie_launch& l) {
      parallel(threads, runs.outer, runs.reduced, [&](int64_t begin, int64_t end) {
        float* to = out_data<float>(l, 0);
        for (int64_t i = begin; i < end; ++i)
          to[i] = simd().fold_row(how.fold, in_data<float>(l, 0) + i * runs.reduced, runs.reduced);
        finish(to + begin, end - begin);
      });
    });
  // Stretches of the inner axis, so that few outer ones occupy all threads, and sums stay in the first cache.
  const int64_t stretch = std::min<int64_t>(runs.inner, 1024), pieces = (runs.inner + stretch - 1) / stretch;
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    parallel(threads, runs.outer * pieces, runs.reduced * stretch, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / pieces, first = i % pieces * stretch, n = std::min(stretch, runs.inner - first);
        const float* from = in_data<float>(l, 0) + o * runs.reduced * runs.inner + first;
        float* to = out_data<float>(l, 0) + o * runs.inner + first;
        const float start = how.fold == Fold::kMax    ? -INFINITY
                            : how.fold == Fold::kMin  ? INFINITY
                            : how.fold == Fold::kProd ? 1.f
                                                      : 0.f;
        std::fill(to, to + n, start);
        for (int64_t k = 0; k < runs.reduced; ++k) simd().fold_into(how.fold, to, from + k * runs.inner, n);
        finish(to, n);
      }
    });
  });
}

NativePtr make_mean(const NativeRequest& r) { return reduce_kernel(r, {Fold::kSum, true}); }
NativePtr make_sum(const NativeRequest& r) { return reduce_kernel(r, {Fold::kSum}); }
NativePtr make_max(const NativeRequest& r) { return reduce_kernel(r, {Fold::kMax}); }
NativePtr make_min(const NativeRequest& r) { return reduce_kernel(r, {Fold::kMin}); }
NativePtr make_prod(const NativeRequest& r) { return reduce_kernel(r, {Fold::kProd}); }
NativePtr make_l1(const NativeRequest& r) { return reduce_kernel(r, {Fold::kSumAbs}); }
NativePtr make_l2(const NativeRequest& r) {
  return reduce_kernel(r, {Fold::kSumSquare, false, [](float f) { return std::sqrt(f); }});
}
NativePtr make_sum_square(const NativeRequest& r) { return reduce_kernel(r, {Fold::kSumSquare}); }

NativePtr softmax_kernel(const NativeRequest& r, bool log) {
  r.need_float(0);
  r.need_float_results();
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.dims != y.dims) refuse("operand and result differ");
  const auto axis = static_cast<size_t>(normal_axis(r.attrs.integer("axis", -1), x.rank()));
  Runs runs;
  for (size_t i = 0; i < x.dims.size(); ++i)
    (i < axis ? runs.outer : i == axis ? runs.reduced : runs.inner) *= x.dims[i];
  if (runs.inner == 1)
    return native_kernel([=, threads = r.threads](const regie_launch& l) {
      parallel(threads, runs.outer, runs.reduced * 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          simd().softmax_row(out_data<float>(l, 0) + i * runs.reduced,
                             in_data<float>(l, 0) + i * runs.reduced, runs.reduced, log);
      });
    });
  // Along another axis: maxima and sums of a stretch of neighbours at once, beside each other on the stack.
  constexpr int64_t kStretch = 256;
  const int64_t pieces = (runs.inner + kStretch - 1) / kStretch;
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    parallel(threads, runs.outer * pieces, runs.reduced * kStretch * 8, [&](int64_t begin, int64_t end) {
      float most[kStretch], sum[kStretch], row[kStretch];
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % pieces * kStretch, n = std::min(kStretch, runs.inner - first);
        const int64_t at = i / pieces * runs.reduced * runs.inner + first;
        const float* from = in_data<float>(l, 0) + at;
        float* to = out_data<float>(l, 0) + at;
        std::fill(most, most + n, -INFINITY);
        std::fill(sum, sum + n, 0.f);
        for (int64_t k = 0; k < runs.reduced; ++k)
          simd().fold_into(Fold::kMax, most, from + k * runs.inner, n);
        for (int64_t k = 0; k < runs.reduced; ++k) {
          float* to_row = to + k * runs.inner;
          simd().binary(Binary::kSub, to_row, from + k * runs.inner, most, n, 1, 1);
          simd().unary(Unary::kExp, log ? row : to_row, to_row, n, 0, 0);
          simd().fold_into(Fold::kSum, sum, log ? row : to_row, n);
        }
        if (log) simd().unary(Unary::kLog, sum, sum, n, 0, 0);
        for (int64_t k = 0; k < runs.reduced; ++k)
          simd().binary(log ? Binary::kSub : Binary::kDiv, to + k * runs.inner, to + k * runs.inner, sum, n,
                        1, 1);
      }
    });
  });
}
NativePtr make_softmax(const NativeRequest& r) { return softmax_kernel(r, false); }
NativePtr make_log_softmax(const NativeRequest& r) { return softmax_kernel(r, true); }

constexpr NativeOp kOps[] = {
    {"LogSoftmax", make_log_softmax, Takes::kPlain, true, 12},
    {"ReduceL1", make_l1, Takes::kPooled},
    {"ReduceL2", make_l2, Takes::kPooled},
    {"ReduceMax", make_max, Takes::kPooled},
    {"ReduceMean", make_mean, Takes::kPooled},
    {"ReduceMin", make_min, Takes::kPooled},
    {"ReduceProd", make_prod, Takes::kPooled},
    {"ReduceSum", make_sum, Takes::kPooled},
    {"ReduceSumSquare", make_sum_square, Takes::kPooled},
    {"Softmax", make_softmax, Takes::kPlain, true, 12},
};

}  // namespace

std::span<const NativeOp> native_reductions() { return kOps; }

}  // namespace host_cpu
