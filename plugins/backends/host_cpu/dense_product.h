// c[m, n] = bias + a[m, k] x b[n, k]' for weights that lie as the model has them: panels of b are turned
// round on the way and multiplied by the kernels of convolutions (direct_kernels.h), so that nothing is
// generated when a model is loaded. Turning costs about a tenth of the product of a hundred rows; few rows
// are dot products.
#pragma once

#include <cstdint>
#include <optional>

#include "product.h"

namespace host_cpu {

class DenseProduct {
 public:
  // All without gaps between rows.
  DenseProduct(int64_t m, int64_t n, int64_t k, uint32_t threads);
  uint64_t scratch_bytes() const;
  // `bias`: of n; NULL: 0. Does not throw.
  dnnl_status_t run(const float* a, const float* b, const float* bias, float* c, void* scratch) const;

 private:
  void dots(const float* a, const float* b, float* c) const;
  void panels(const float* a, const float* b, const float* bias, float* c, float* room) const;
  int64_t m_, n_, k_;
  uint32_t threads_;
  std::optional<Product> generated_;  // where there are no kernels of our own for this processor
};

}  // namespace host_cpu
