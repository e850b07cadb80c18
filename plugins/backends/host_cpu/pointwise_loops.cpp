#include "pointwise_loops.h"

#include "simd.h"

namespace host_cpu {

Loop find_loop(Code code, Lane from, Lane to) {
  switch (cpu_level()) {
    case CpuLevel::kAvx512:
      return find_loop_avx512(code, from, to);
    case CpuLevel::kAvx2:
      return find_loop_avx2(code, from, to);
    case CpuLevel::kBase:
      break;
  }
  return find_loop_sse2(code, from, to);
}

}  // namespace host_cpu
