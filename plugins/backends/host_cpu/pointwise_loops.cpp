#include "pointwise_loops.h"

namespace host_cpu {
namespace {

using Find = Loop (*)(Code, Lane, Lane);

Find best_level() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) return find_loop_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return find_loop_avx2;
  return find_loop_sse2;
}

}  // namespace

Loop find_loop(Code code, Lane from, Lane to) {
  static const Find best = best_level();
  return best(code, from, to);
}

}  // namespace host_cpu
