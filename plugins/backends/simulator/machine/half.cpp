#include "half.h"

#include <cstring>

#include "regie/half.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace regie::simulator {

bool has_half_conversions() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;  // clang 14 does not know "f16c" in __builtin_cpu_supports
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
#else
  return false;
#endif
}

namespace {

void to_floats_plain(const void* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, static_cast<const char*>(from) + 2 * i, 2);
    to[i] = sdk::half_value(h);
  }
}

void to_halves_plain(const float* from, void* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h = sdk::half_bits(from[i]);
    std::memcpy(static_cast<char*>(to) + 2 * i, &h, 2);
  }
}

#if defined(__x86_64__)

__attribute__((target("avx,f16c"))) void to_floats_f16c(const void* from, float* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                 reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + 2 * i))));
  if (i < count) to_floats_plain(static_cast<const char*>(from) + 2 * i, to + i, count - i);
}

__attribute__((target("avx,f16c"))) void to_halves_f16c(const float* from, void* to, size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(static_cast<char*>(to) + 2 * i),
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  if (i < count) to_halves_plain(from + i, static_cast<char*>(to) + 2 * i, count - i);
}

const bool kF16c = has_half_conversions();

#endif

}  // namespace

void halves_to_floats(const void* from, float* to, size_t count) {
#if defined(__x86_64__)
  if (kF16c) return to_floats_f16c(from, to, count);
#endif
  to_floats_plain(from, to, count);
}

void floats_to_halves(const float* from, void* to, size_t count) {
#if defined(__x86_64__)
  if (kF16c) return to_halves_f16c(from, to, count);
#endif
  to_halves_plain(from, to, count);
}

}  // namespace regie::simulator
