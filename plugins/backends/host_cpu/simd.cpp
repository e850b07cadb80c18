#include "simd.h"

namespace host_cpu {

const Simd& simd() {
#if defined(__x86_64__)
  static const Simd* const chosen = [] {
    auto has_all = [](auto... present) { return (present && ...); };
    if (has_all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512dq"),
                __builtin_cpu_supports("avx512cd")))
      return &simd_avx512;
    if (has_all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                __builtin_cpu_supports("bmi2")))
      return &simd_avx2;
    return &simd_base;
  }();
  return *chosen;
#else
  return simd_base;
#endif
}

}  // namespace host_cpu
