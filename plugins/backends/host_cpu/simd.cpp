#include "simd.h"

namespace host_cpu {

CpuLevel cpu_level() {
#if defined(__x86_64__)
  static const CpuLevel level = [] {
    auto has_all = [](auto... present) { return (present && ...); };
    if (has_all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512dq"),
                __builtin_cpu_supports("avx512cd")))
      return CpuLevel::kAvx512;
    return has_all(__builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                   __builtin_cpu_supports("bmi2"))
               ? CpuLevel::kAvx2
               : CpuLevel::kBase;
  }();
  return level;
#else
  return CpuLevel::kBase;
#endif
}

const Simd& simd() {
#if defined(__x86_64__)
  static const Simd* const chosen = cpu_level() == CpuLevel::kAvx512 ? &simd_avx512
                                    : cpu_level() == CpuLevel::kAvx2 ? &simd_avx2
                                                                     : &simd_base;
  return *chosen;
#else
  return simd_base;
#endif
}

}  // namespace host_cpu
