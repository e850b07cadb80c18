#include "support/alloc_counter.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REGIE_TEST_SANITIZER_HOOKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REGIE_TEST_SANITIZER_HOOKS 1
#endif
#endif

// The hooks' own frames are told from a caller's by lying between these two.
#define REGIE_HOOK __attribute__((noinline, section("regie_alloc_hooks")))
extern "C" const char __start_regie_alloc_hooks[], __stop_regie_alloc_hooks[];

namespace {

constexpr size_t kPlaces = 16, kNames = 8;
struct Place {
  void* address;
  size_t bytes;
};
std::atomic<bool> on{false};
std::atomic<uint64_t> ours{0}, theirs{0};
std::array<Place, kPlaces> noted;
std::array<std::array<char, 64>, kNames> excluded_names;
size_t excluded_count = 0;
thread_local bool inside = false;  // the bookkeeping's own allocations

bool contains(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

// Frames of the language run time, which allocates on somebody's behalf.
bool is_runtime_library(const char* file) {
  for (const char* name :
       {"libstdc++", "libc++", "libc.so", "libm.so", "ld-linux", "libgcc_s", "libasan", "libtsan"})
    if (contains(file, name)) return true;
  return false;
}

// Instances of the standard library's templates: of several libraries that have one, the dynamic linker takes
// any.
bool is_shared_template(const char* symbol) {
  if (!symbol) return false;
  for (const char* start : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"})
    if (std::strncmp(symbol, start, std::strlen(start)) == 0) return true;
  return false;
}

REGIE_HOOK void note(size_t bytes) {
  if (!on.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  void* frames[48];
  const int count = backtrace(frames, 48);
  void* at = nullptr;
  bool foreign = false;
  for (int i = 0; i < count; ++i) {
    if (frames[i] >= __start_regie_alloc_hooks && frames[i] < __stop_regie_alloc_hooks) continue;
    Dl_info info{};
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    if (is_runtime_library(info.dli_fname) || is_shared_template(info.dli_sname)) continue;
    at = frames[i];
    for (size_t k = 0; k < excluded_count; ++k)
      foreign = foreign || contains(info.dli_fname, excluded_names[k].data());
    break;
  }
  if (foreign) {
    ++theirs;
  } else {
    const uint64_t n = ours++;
    if (n < kPlaces) noted[n] = {at, bytes};
  }
  inside = false;
}

}  // namespace

#ifdef REGIE_TEST_SANITIZER_HOOKS
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
namespace {
REGIE_HOOK void hook_malloc(const volatile void*, size_t bytes) { note(bytes); }
void hook_free(const volatile void*) {}
void install() {
  static const int done = __sanitizer_install_malloc_and_free_hooks(hook_malloc, hook_free);
  (void)done;
}
}  // namespace
#else
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

REGIE_HOOK void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
REGIE_HOOK void* calloc(size_t n, size_t bytes) {
  note(n * bytes);
  return __libc_calloc(n, bytes);
}
REGIE_HOOK void* realloc(void* p, size_t bytes) {
  note(bytes);
  return __libc_realloc(p, bytes);
}
REGIE_HOOK void* memalign(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
REGIE_HOOK void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}
REGIE_HOOK int posix_memalign(void** p, size_t alignment, size_t bytes) {
  note(bytes);
  *p = __libc_memalign(alignment, bytes);
  return *p ? 0 : 12;
}
void free(void* p) { __libc_free(p); }
}
namespace {
void install() {}
}  // namespace
#endif

namespace regie::test {

AllocCounter::AllocCounter(std::vector<std::string> excluded) {
  install();
  inside = true;
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs
  inside = false;
  excluded_count = std::min(excluded.size(), kNames);
  for (size_t i = 0; i < excluded_count; ++i)
    std::snprintf(excluded_names[i].data(), excluded_names[i].size(), "%s", excluded[i].c_str());
  reset();
}
AllocCounter::~AllocCounter() { stop(); }
void AllocCounter::start() { on = true; }
void AllocCounter::stop() { on = false; }
void AllocCounter::reset() { ours = theirs = 0; }
uint64_t AllocCounter::count() const { return ours; }
uint64_t AllocCounter::excluded() const { return theirs; }
std::vector<std::string> AllocCounter::places() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min<uint64_t>(ours, kPlaces); ++i) {
    Dl_info info{};
    std::string line = "?";
    if (noted[i].address && dladdr(noted[i].address, &info) && info.dli_fname) {
      char offset[32];
      std::snprintf(
          offset, sizeof offset, "+%#zx",
          static_cast<size_t>(static_cast<char*>(noted[i].address) - static_cast<char*>(info.dli_fbase)));
      line = std::string(info.dli_fname) + offset + (info.dli_sname ? std::string(" ") + info.dli_sname : "");
    }
    lines.push_back(line + ": " + std::to_string(noted[i].bytes) + " bytes");
  }
  return lines;
}

}  // namespace regie::test
