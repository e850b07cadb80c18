#include "dense_product.h"

#include <algorithm>
#include <cstring>

#include "direct_kernels.h"
#include "map_kernels.h"
#include "parallel.h"
#include "simd.h"

namespace host_cpu {
namespace {

constexpr int64_t kFewRows = 8;
constexpr int64_t kDeep = 1024;  // of k at once, so that a panel stays in the second-level cache

int64_t width(const Direct& d) { return d.lanes * d.vectors; }

}  // namespace

DenseProduct::DenseProduct(int64_t m, int64_t n, int64_t k, uint32_t threads)
    : m_(m), n_(n), k_(k), threads_(threads) {
  if (m >= kFewRows && !direct()) generated_.emplace(ProductShape{m, n, k, true, true, n}, 1, threads);
}

uint64_t DenseProduct::scratch_bytes() const {
  if (generated_) return generated_->scratch_bytes();
  if (m_ < kFewRows) return 0;
  return static_cast<uint64_t>(threads_ * std::min(k_, kDeep) * width(*direct())) * sizeof(float);
}

dnnl_status_t DenseProduct::run(const float* a, const float* b, const float* bias, float* c,
                                void* scratch) const {
  if (m_ >= kFewRows && !generated_) {
    panels(a, b, bias, c, static_cast<float*>(scratch));
    return dnnl_success;
  }
  const auto row = static_cast<size_t>(n_) * sizeof(float);
  for (int64_t i = 0; i < m_; ++i)
    if (bias)
      std::memcpy(c + i * n_, bias, row);
    else
      std::memset(c + i * n_, 0, row);
  if (generated_) return generated_->run(0, a, b, c, scratch);
  dots(a, b, c);
  return dnnl_success;
}

void DenseProduct::dots(const float* a, const float* b, float* c) const {
  constexpr int64_t kRows = 32;
  parallel(threads_, (n_ + kRows - 1) / kRows, kRows * k_ * m_, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRows, last = std::min(n_, end * kRows);
    simd().gemv_dot(c + first, n_, b + first * k_, a, last - first, k_, m_);
  });
}

void DenseProduct::panels(const float* a, const float* b, const float* bias, float* c, float* room) const {
  const Direct& d = *direct();
  const int64_t panel = width(d), deep = std::min(k_, kDeep), zero = 0;
  DirectShape shape{};
  shape.kernel_width = 1;
  shape.src_taps = shape.w_taps = &zero;
  shape.src_right = shape.src_pixel = k_;
  shape.src_block = shape.in_block = 16;
  shape.w_step = panel, shape.w_block = 16 * panel;
  shape.w_vector = shape.dst_vector = d.lanes;
  shape.dst_pixel = n_;
  parallel(threads_, (n_ + panel - 1) / panel, m_ * k_ * panel / 20, [&](int64_t begin, int64_t end) {
    float* const w = room + omp_get_thread_num() * deep * panel;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * panel, outputs = std::min(panel, n_ - first);
      DirectWork work{};
      work.vectors = static_cast<int>((outputs + d.lanes - 1) / d.lanes);
      work.tail = static_cast<int>(outputs - (work.vectors - 1) * d.lanes);
      work.last = true;
      work.rows[1] = work.columns[1] = 1;
      work.count = m_;
      work.dst = c + first;
      work.w = w;
      for (int64_t at = 0; at < k_; at += deep) {
        work.end = std::min(deep, k_ - at);
        map_loops().transpose(w, panel, b + first * k_ + at, k_, outputs, work.end);
        work.src = a + at;
        work.bias = at == 0 && bias ? bias + first : nullptr;
        work.residual = at == 0 ? nullptr : work.dst;
        d.strip(shape, work);
      }
    }
  });
}

}  // namespace host_cpu
