#include "simd.h"

#include <cstdlib>
#include <string_view>

namespace host_cpu {
#if defined(__x86_64__)
namespace {

// What oneDNN is told to leave unused, our own loops leave too.
CpuLevel allowed_level() {
  const char* given = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!given) given = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string_view most = given ? given : "";
  if (most == "SSE41" || most == "AVX") return CpuLevel::kBase;
  return most == "AVX2" || most == "AVX2_VNNI" ? CpuLevel::kAvx2 : CpuLevel::kAvx512;
}

}  // namespace
#endif

CpuLevel cpu_level() {
#if defined(__x86_64__)
  static const CpuLevel level = [] {
    const CpuLevel most = allowed_level();
    auto has_all = [](auto... present) { return (present && ...); };
    if (has_all(__builtin_cpu_supports("avx512f"), __builtin_cpu_supports("avx512bw"),
                __builtin_cpu_supports("avx512vl"), __builtin_cpu_supports("avx512dq"),
                __builtin_cpu_supports("avx512cd"), most == CpuLevel::kAvx512))
      return CpuLevel::kAvx512;
    return has_all(most != CpuLevel::kBase, __builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
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
