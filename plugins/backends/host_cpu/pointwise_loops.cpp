#include "pointwise_loops.h"

namespace host_cpu {
namespace {

struct Level {
  const char* name;
  Loop (*find)(Code, Lane, Lane);
};

Level best_level() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) return {"avx512", find_loop_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"avx2", find_loop_avx2};
  return {"sse2", find_loop_sse2};
}

const Level& level() {
  static const Level best = best_level();
  return best;
}

}  // namespace

Loop find_loop(Code code, Lane from, Lane to) { return level().find(code, from, to); }
const char* loop_level() { return level().name; }

}  // namespace host_cpu
