// Benchmarks that hold something to a limit: less than a second of processor time each in a release build;
// the process fails otherwise.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/status.h"

namespace regie::bench {

inline constexpr double kLimitSeconds = 1.0;

inline void need(const Status& s) {
  if (s.ok()) return;
  std::fprintf(stderr, "%s\n", s.to_string().c_str());
  std::exit(1);
}

// Of this thread, so that the limit does not depend on what else the machine does.
inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Runs `step` on a fresh `make()` an iteration; making is not timed.
template <class Make, class Step>
void timed(benchmark::State& state, Make&& make, Step&& step) {
  double worst = 0;
  for (auto _ : state) {
    auto input = make();
    const double begin = cpu_seconds();
    step(input);
    const double seconds = cpu_seconds() - begin;
    state.SetIterationTime(seconds);
    worst = std::max(worst, seconds);
  }
  state.counters["worst_s"] = worst;
  state.SetLabel(worst < kLimitSeconds ? "pass: < 1 s" : "FAIL: limit 1 s");
#ifdef NDEBUG
  if (worst >= kLimitSeconds) {
    std::fprintf(stderr, "the benchmark after the last one shown took %.2f s; the limit is %.2f s\n", worst,
                 kLimitSeconds);
    std::exit(1);
  }
#endif
}

}  // namespace regie::bench
