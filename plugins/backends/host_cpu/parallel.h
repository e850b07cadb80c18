// Parallel loops on the threads that oneDNN's kernels use too: libgomp's, by its own entry points, so that
// any compiler makes them and no second pool of threads waits beside it.
#pragma once

#include <algorithm>
#include <cstdint>

extern "C" void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
extern "C" int omp_get_thread_num(void);
extern "C" int omp_get_num_threads(void);

namespace host_cpu {

// Calls f(begin, end) so that the ranges cover 0..count-1, on up to `threads` threads. `cost`: elements or so
// that one step touches; below some ten thousand in all a second thread costs more than it gains.
// f must not throw.
template <class F>
void parallel(uint32_t threads, int64_t count, int64_t cost, F&& f) {
  constexpr int64_t kWorthwhile = 1 << 14;
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
