// mmad: L0C[m, n] (+)= L0A[m, k] * L0B[k, n]. Halves: a product of two halves is exact in a float, so that a
// fused or a separate multiplication and addition give the same bits, and every path adds in order of k.

#include <algorithm>
#include <cstring>

#include "chip.h"
#include "half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace regie::simulator {

namespace {

constexpr int64_t kFractal = REGIE_TILE_FRACTAL_BYTES;

// `rows` (at most 16) rows of 16 sums in `c`, += left[row][k] * right[k][16].
using Kernel = void (*)(float* c, const float* left, int64_t left_row, const float* right, int64_t rows,
                        int64_t k);
// A fractal of 16 columns x 16 k of halves as 16 rows of k with 16 floats.
using Turn = void (*)(const uint8_t* fractal, float* to);

void multiply_plain(float* c, const float* left, int64_t left_row, const float* right, int64_t rows,
                    int64_t k) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < k; ++q) {
      float a = left[r * left_row + q];
      for (int j = 0; j < 16; ++j) c[r * 16 + j] += a * right[q * 16 + j];
    }
}

void turn_plain(const uint8_t* fractal, float* to) {
  float row[16];
  for (int n = 0; n < 16; ++n) {
    halves_to_floats(fractal + n * 32, row, 16);
    for (int q = 0; q < 16; ++q) to[q * 16 + n] = row[q];
  }
}

// 16 sums += pairs of words of the left matrix by pairs of each column.
using Words = void (*)(uint32_t* sums, const int16_t* left, const int16_t* right, int64_t pairs);
void multiply_words_plain(uint32_t* sums, const int16_t* left, const int16_t* right, int64_t pairs) {
  for (int64_t q = 0; q < pairs; ++q)
    for (int s = 0; s < 16; ++s)
      sums[s] += static_cast<uint32_t>(left[2 * q] * right[q * 32 + 2 * s] +
                                       left[2 * q + 1] * right[q * 32 + 2 * s + 1]);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) void multiply_words_avx2(uint32_t* sums, const int16_t* left,
                                                         const int16_t* right, int64_t pairs) {
  auto* at = reinterpret_cast<__m256i*>(sums);
  __m256i low = _mm256_loadu_si256(at), high = _mm256_loadu_si256(at + 1);
  for (int64_t q = 0; q < pairs; ++q) {
    int32_t both;
    std::memcpy(&both, left + 2 * q, sizeof both);
    const __m256i x = _mm256_set1_epi32(both);
    const auto* y = reinterpret_cast<const __m256i*>(right + q * 32);
    low = _mm256_add_epi32(low, _mm256_madd_epi16(x, _mm256_loadu_si256(y)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(x, _mm256_loadu_si256(y + 1)));
  }
  _mm256_storeu_si256(at, low);
  _mm256_storeu_si256(at + 1, high);
}

template <int kRows>
__attribute__((target("avx2,fma"))) inline void multiply_rows(float* c, const float* left, int64_t left_row,
                                                              const float* right, int64_t k) {
  __m256 low[kRows], high[kRows];
  for (int r = 0; r < kRows; ++r) {
    low[r] = _mm256_loadu_ps(c + r * 16);
    high[r] = _mm256_loadu_ps(c + r * 16 + 8);
  }
  for (int64_t q = 0; q < k; ++q) {
    __m256 b0 = _mm256_loadu_ps(right + q * 16), b1 = _mm256_loadu_ps(right + q * 16 + 8);
    for (int r = 0; r < kRows; ++r) {
      __m256 a = _mm256_broadcast_ss(left + r * left_row + q);
      low[r] = _mm256_fmadd_ps(a, b0, low[r]);
      high[r] = _mm256_fmadd_ps(a, b1, high[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(c + r * 16, low[r]);
    _mm256_storeu_ps(c + r * 16 + 8, high[r]);
  }
}

__attribute__((target("avx2,fma"))) void multiply_avx2(float* c, const float* left, int64_t left_row,
                                                       const float* right, int64_t rows, int64_t k) {
  int64_t r = 0;
  for (; r + 6 <= rows; r += 6) multiply_rows<6>(c + r * 16, left + r * left_row, left_row, right, k);
  for (; r + 4 <= rows; r += 4) multiply_rows<4>(c + r * 16, left + r * left_row, left_row, right, k);
  for (; r < rows; ++r) multiply_rows<1>(c + r * 16, left + r * left_row, left_row, right, k);
}

__attribute__((target("avx2"))) inline void turn_8x8(const uint8_t* from, __m128i out[8]) {
  __m128i r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 32));
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i)
    for (int h = 0; h < 2; ++h) {
      r[4 * i + 2 * h] = _mm_unpacklo_epi32(s[4 * i + h], s[4 * i + 2 + h]);
      r[4 * i + 2 * h + 1] = _mm_unpackhi_epi32(s[4 * i + h], s[4 * i + 2 + h]);
    }
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = _mm_unpacklo_epi64(r[i], r[4 + i]);
    out[2 * i + 1] = _mm_unpackhi_epi64(r[i], r[4 + i]);
  }
}

__attribute__((target("avx2,f16c"))) void turn_avx2(const uint8_t* fractal, float* to) {
  for (int half = 0; half < 2; ++half)      // of the columns
    for (int part = 0; part < 2; ++part) {  // of k
      __m128i rows[8];
      turn_8x8(fractal + half * 8 * 32 + part * 16, rows);
      for (int q = 0; q < 8; ++q)
        _mm256_storeu_ps(to + (part * 8 + q) * 16 + half * 8, _mm256_cvtph_ps(rows[q]));
    }
}

const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_half_conversions();
const Kernel kMultiply = kAvx2 ? multiply_avx2 : multiply_plain;
const Turn kTurn = kAvx2 ? turn_avx2 : turn_plain;
const Words kMultiplyWords = kAvx2 ? multiply_words_avx2 : multiply_words_plain;
#else
const Words kMultiplyWords = multiply_words_plain;
const Kernel kMultiply = multiply_plain;
const Turn kTurn = turn_plain;
#endif

}  // namespace

void Chip::mmad_halves(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  int64_t m = a[3], n = a[4], k = a[5];
  if (!m || !n || !k) return;
  int64_t k1 = (k + 15) / 16, row = k1 * 16;
  left_.resize(static_cast<size_t>((m + 15) / 16 * 16 * row));
  for (int64_t r = 0; r < m; ++r)
    for (int64_t j = 0; j < k1; ++j)
      halves_to_floats(at(REGIE_TILE_L0A, a[1] + r / 16 * a[8] + j * kFractal + r % 16 * 32),
                       left_.data() + r * row + j * 16, 16);
  right_.resize(static_cast<size_t>(row * 16));
  for (int64_t l = 0; l * 16 < n; ++l) {
    for (int64_t j = 0; j < k1; ++j)
      kTurn(at(REGIE_TILE_L0B, a[2] + j * a[9] + l * kFractal), right_.data() + j * 256);
    int64_t columns = std::min<int64_t>(16, n - l * 16);
    for (int64_t r = 0; r < m; r += 16) {
      int64_t rows = std::min<int64_t>(16, m - r);
      float* c = reinterpret_cast<float*>(at(REGIE_TILE_L0C, a[0] + l * a[7] + r * 64));
      if (columns == 16) {
        if (!a[6]) std::fill(c, c + rows * 16, 0.0f);
        kMultiply(c, left_.data() + r * row, row, right_.data(), rows, k);
        continue;
      }
      float edge[256] = {};
      if (a[6])
        for (int64_t q = 0; q < rows; ++q) std::copy(c + q * 16, c + q * 16 + columns, edge + q * 16);
      kMultiply(edge, left_.data() + r * row, row, right_.data(), rows, k);
      for (int64_t q = 0; q < rows; ++q) std::copy(edge + q * 16, edge + q * 16 + columns, c + q * 16);
    }
  }
}

// The left matrix is of s8, or of u8; the right one of s8. Sums of two products at a time, which 32 bits
// hold.
void Chip::mmad_bytes(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  int64_t m = a[3], n = a[4], k = a[5];
  if (!m || !n || !k) return;
  const bool is_signed = i.mode[0] == REGIE_TILE_S8;
  int64_t k1 = (k + 31) / 32, pairs = (k + 1) / 2, row = k1 * 32;
  words_.assign(static_cast<size_t>(m * row + row * 16), 0);
  int16_t* left = words_.data();
  int16_t* right = left + m * row;
  for (int64_t r = 0; r < m; ++r)
    for (int64_t q = 0; q < k; q += 32) {
      const uint8_t* from = at(REGIE_TILE_L0A, a[1] + r / 16 * a[8] + q / 32 * kFractal + r % 16 * 32);
      for (int64_t s = 0; s < std::min<int64_t>(32, k - q); ++s)
        left[r * row + q + s] = static_cast<int16_t>(is_signed ? static_cast<int8_t>(from[s]) : from[s]);
    }
  for (int64_t l = 0; l * 16 < n; ++l) {
    for (int64_t j = 0; j < k1; ++j) {
      const int8_t* b = reinterpret_cast<const int8_t*>(at(REGIE_TILE_L0B, a[2] + j * a[9] + l * kFractal));
      for (int64_t x = 0; x < 16; ++x)
        for (int64_t q = 0; q < 32; ++q) right[(j * 16 + q / 2) * 32 + x * 2 + q % 2] = b[x * 32 + q];
    }
    size_t columns = static_cast<size_t>(std::min<int64_t>(16, n - l * 16));
    for (int64_t r = 0; r < m; ++r) {
      uint8_t* c = at(REGIE_TILE_L0C, a[0] + l * a[7] + r * 64);
      uint32_t sums[16] = {};
      if (a[6]) std::memcpy(sums, c, columns * 4);
      kMultiplyWords(sums, left + r * row, right, pairs);
      std::memcpy(c, sums, columns * 4);
    }
  }
}

}  // namespace regie::simulator
