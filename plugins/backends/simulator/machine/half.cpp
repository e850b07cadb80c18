#include "half.h"

#include <bit>
#include <cstring>

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

float half_to_float(uint16_t half) {
  uint32_t sign = uint32_t{half & 0x8000u} << 16, exponent = (half >> 10) & 31, mantissa = half & 0x3ffu;
  if (exponent == 31) {
    uint32_t quiet = mantissa ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent == 0) {
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t float_to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {  // below the least normal half: in units of 2^-24, rounded by the addition
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

namespace {

void to_floats_plain(const void* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h;
    std::memcpy(&h, static_cast<const char*>(from) + 2 * i, 2);
    to[i] = half_to_float(h);
  }
}

void to_halves_plain(const float* from, void* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t h = float_to_half(from[i]);
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
