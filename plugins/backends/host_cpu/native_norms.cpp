// Normalisations of float32: over rows (layer), over groups of channels (instance, group), by given
// statistics (batch).
#include <algorithm>
#include <cmath>

#include "map_kernels.h"
#include "native.h"
#include "parallel.h"
#include "simd.h"

namespace host_cpu {
namespace {

NativePtr make_layer_norm(const NativeRequest& r) {
  r.need_float(0);
  r.need_float_results();
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (r.wants(1) || r.wants(2)) refuse("mean or deviation are asked for");
  if (x.dims != y.dims) refuse("operand and result differ");
  const auto axis = static_cast<size_t>(normal_axis(r.attrs.integer("axis", -1), x.rank()));
  int64_t rows = 1, n = 1;
  for (size_t i = 0; i < x.dims.size(); ++i) (i < axis ? rows : n) *= x.dims[i];
  for (size_t o : {1, 2}) {
    if (o == 2 && !r.has(o)) continue;
    r.need_float(o);
    if (r.in(o).count() != n) refuse("scale or bias broadcast within a row");
  }
  const auto epsilon = static_cast<float>(r.attrs.number("epsilon", 1e-5));
  return native_kernel([=, threads = r.threads, shift = r.has(2)](const regie_launch& l) {
    parallel(threads, rows, n * 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        simd().normalise_row(out_data<float>(l, 0) + i * n, in_data<float>(l, 0) + i * n,
                             in_data<float>(l, 1), shift ? in_data<float>(l, 2) : nullptr, n, epsilon);
    });
  });
}

// y = x * a + b with one a and b a channel; the fused operator's may be at least 0.
NativePtr make_batch_norm(const NativeRequest& r) {
  r.need_float(0);
  r.need_float_results();
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (r.attrs.integer("training_mode", 0)) refuse("training_mode is set");
  if (r.results.size() > 1 && r.wants(1)) refuse("running statistics are asked for");
  if (x.dims != y.dims || x.format != y.format || x.rank() < 2) refuse("operand and result differ");
  const int64_t channels = x.dims[1];
  for (size_t o = 1; o < 5; ++o) {
    r.need_float(o);
    if (r.in(o).count() != channels) refuse("a parameter has not one element a channel");
  }
  int64_t spatial = 1;
  for (size_t i = 2; i < x.dims.size(); ++i) spatial *= x.dims[i];
  const int64_t batch = x.dims[0];
  const auto epsilon = static_cast<float>(r.attrs.number("epsilon", 1e-5));
  const regie_format format = x.format;
  const std::string_view activation = r.attrs.text("activation", "");
  if (!activation.empty() && activation != "Relu") refuse("the activation is not known");
  const float least = activation.empty() ? -INFINITY : 0.f;
  const auto scratch = static_cast<uint64_t>(channels) * 2 * sizeof(float);
  return native_kernel(
      [=, threads = r.threads](const regie_launch& l) {
        auto* a = static_cast<float*>(l.scratch);
        float* b = a + channels;
        const float *scale = in_data<float>(l, 1), *shift = in_data<float>(l, 2),
                    *mean = in_data<float>(l, 3), *variance = in_data<float>(l, 4);
        for (int64_t c = 0; c < channels; ++c) {
          a[c] = scale[c] / std::sqrt(variance[c] + epsilon);
          b[c] = shift[c] - mean[c] * a[c];
        }
        const float* from = in_data<float>(l, 0);
        float* to = out_data<float>(l, 0);
        if (format == kPlainFormat) {
          parallel(threads, batch * channels, spatial, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              float* y = to + i * spatial;
              simd().affine_one(y, from + i * spatial, a[i % channels], b[i % channels], spatial);
              if (least == 0) simd().unary(Unary::kRelu, y, y, spatial, 0, 0);
            }
          });
        } else {
          // Maps one after the other, of so many channels beside each other.
          const int64_t beside = format == kChannelsLast ? channels : std::min(channels, kBlock);
          const int64_t blocks = channels / beside;
          parallel(threads, batch * blocks * spatial, beside, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
              const int64_t c = i / spatial % blocks * beside;
              const int64_t n = std::min(end, (i / spatial + 1) * spatial) - i;
              map_loops().affine(to + i * beside, from + i * beside, a + c, b + c, beside, n, least);
              i += n;
            }
          });
        }
      },
      scratch);
}

// Each of `groups` groups of channels of each image by its own mean and deviation.
NativePtr group_norm(const NativeRequest& r, int64_t groups) {
  r.need_float(0);
  r.need_float_results();
  r.need_float(1);
  r.need_float(2);
  const NativeTensor &x = r.in(0), &y = r.out(0);
  if (x.dims != y.dims || x.rank() < 2) refuse("operand and result differ");
  const int64_t channels = x.dims[1];
  if (groups < 1 || channels % groups) refuse("the channels do not divide into groups");
  if (r.in(1).count() != channels || r.in(2).count() != channels)
    refuse("scale and bias have not one element a channel");
  int64_t spatial = 1;
  for (size_t i = 2; i < x.dims.size(); ++i) spatial *= x.dims[i];
  const int64_t in_group = channels / groups, batch = x.dims[0];
  const double epsilon = r.attrs.number("epsilon", 1e-5);
  return native_kernel([=, threads = r.threads](const regie_launch& l) {
    parallel(threads, batch * groups, in_group * spatial * 2, [&](int64_t begin, int64_t end) {
      const float *scale = in_data<float>(l, 1), *shift = in_data<float>(l, 2);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = in_group * spatial;
        const float* from = in_data<float>(l, 0) + i * n;
        float* to = out_data<float>(l, 0) + i * n;
        double sum = 0, square = 0;
        simd().moments(from, n, &sum, &square);
        const double mean = sum / static_cast<double>(n);
        const double variance = std::max(square / static_cast<double>(n) - mean * mean, 0.0);
        const double inverse = 1 / std::sqrt(variance + epsilon);
        for (int64_t k = 0; k < in_group; ++k) {
          const int64_t c = i % groups * in_group + k;
          const double a = scale[c] * inverse;
          simd().affine_one(to + k * spatial, from + k * spatial, static_cast<float>(a),
                            static_cast<float>(shift[c] - mean * a), spatial);
        }
      }
    });
  });
}
NativePtr make_instance_norm(const NativeRequest& r) {
  if (r.in(0).rank() < 2) refuse("the operand has no channels");
  return group_norm(r, r.in(0).dims[1]);
}
NativePtr make_group_norm(const NativeRequest& r) { return group_norm(r, r.attrs.integer("num_groups", 0)); }

constexpr NativeOp kOps[] = {
    {"BatchNormalization", make_batch_norm, Takes::kElementwise, true, 2},
    {"GroupNormalization", make_group_norm, Takes::kPlain, true, 6},
    {"InstanceNormalization", make_instance_norm, Takes::kPlain, true, 6},
    {"LayerNormalization", make_layer_norm, Takes::kPlain, true, 6},
    {"regie.FusedBatchNormalization", make_batch_norm, Takes::kElementwise, true, 2},
};

}  // namespace

std::span<const NativeOp> native_norms() { return kOps; }

}  // namespace host_cpu
