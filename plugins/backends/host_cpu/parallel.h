// Parallel loops on the threads that oneDNN's kernels use too: libgomp's, by its own entry points, so that
// any compiler makes them and no second pool of threads waits beside it. Its functions are declared here, as
// <omp.h> is not always there for clang.
#pragma once

#include <algorithm>
#include <cstdint>

extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);
extern "C" int omp_get_max_threads(void);
extern "C" void omp_set_num_threads(int);

namespace host_cpu {

constexpr int64_t kWorthwhile = 1 << 14;

// Calls f(begin, end) so that the ranges cover 0..count-1, on up to `threads` threads. `cost`: elements or so
// that one step touches; below kWorthwhile in all a second thread costs more than it gains.
// f must not throw.
template <class F>
void parallel(uint32_t threads, int64_t count, int64_t cost, F&& f) {
  const int64_t useful =
      std::min<int64_t>({threads, count, count * std::max<int64_t>(cost, 1) / kWorthwhile});
  if (useful <= 1) {
    if (count > 0) f(int64_t{0}, count);
    return;
  }
  struct Job {
    std::remove_reference_t<F>* f;
    int64_t count;
  } job{&f, count};
  GOMP_parallel(
      [](void* data) {
        const Job& j = *static_cast<Job*>(data);
        const int64_t i = omp_get_thread_num(), n = omp_get_num_threads();
        const int64_t begin = j.count * i / n, end = j.count * (i + 1) / n;
        if (begin < end) (*j.f)(begin, end);
      },
      &job, static_cast<unsigned>(useful), 0);
}

}  // namespace host_cpu
