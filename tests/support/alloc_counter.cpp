#include "support/alloc_counter.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REGIE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REGIE_TEST_SANITIZED 1
#endif
#endif

namespace {

constexpr int kFrames = 24, kKept = 8;
std::atomic<bool> armed{false};
std::atomic<uint64_t> ours{0}, foreign{0};
struct Trace {
  void* frames[kFrames];
  int count;
};
Trace kept[kKept];
thread_local bool inside = false;

const char* library_of(void* frame) {
  Dl_info info;
  return dladdr(frame, &info) && info.dli_fname ? info.dli_fname : "";
}

void note() {
  if (!armed.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  Trace trace;
  trace.count = backtrace(trace.frames, kFrames);
  bool is_foreign = false;
  for (int i = 0; i < trace.count; ++i) {
    const char* library = library_of(trace.frames[i]);
    is_foreign |= std::strstr(library, "libdnnl") || std::strstr(library, "libgomp");
  }
  if (is_foreign) {
    foreign.fetch_add(1);
  } else {
    const uint64_t n = ours.fetch_add(1);
    if (n < kKept) kept[n] = trace;
  }
  inside = false;
}

}  // namespace

#ifdef REGIE_TEST_SANITIZED

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));

namespace {
void on_malloc(const volatile void*, size_t) { note(); }
void on_free(const volatile void*) {}
}  // namespace

#else

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  note();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  note();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  note();
  return __libc_realloc(p, n);
}
void* memalign(size_t alignment, size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** p, size_t alignment, size_t n) {
  note();
  *p = __libc_memalign(alignment, n);
  return *p ? 0 : ENOMEM;
}
}

#endif

namespace regie::test {

void start_counting() {
  void* frame;
  backtrace(&frame, 1);  // loads the unwinder, which allocates
#ifdef REGIE_TEST_SANITIZED
  static const int installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
  if (!installed) std::abort();
#endif
  ours = foreign = 0;
  armed = true;
}

Allocations stop_counting() {
  armed = false;
  Allocations a{ours, foreign, {}};
  for (uint64_t i = 0; i < a.ours && i < kKept; ++i) {
    a.report += "allocation " + std::to_string(i) + ":\n";
    for (int f = 0; f < kept[i].count; ++f) {
      Dl_info info;
      const bool known = dladdr(kept[i].frames[f], &info) != 0;
      a.report += std::string("  ") + (known && info.dli_fname ? info.dli_fname : "?") + " " +
                  (known && info.dli_sname ? info.dli_sname : "?") + "\n";
    }
  }
  return a;
}

}  // namespace regie::test
