// Included by map_*.cpp, each compiled for one instruction set, with HOST_CPU_MAPS naming its table and
// HOST_CPU_LANES its vector's floats. Everything is in an unnamed namespace and nothing of the standard library
// is used: an inline function compiled here must not be taken for another file's.

#if HOST_CPU_LANES > 4
#include <immintrin.h>
#endif

#include "map_kernels.h"

namespace host_cpu {
namespace {

#include "vectors.inl"

// The first `n` of a vector's floats.
#if HOST_CPU_LANES == 16
inline V load_some(const float* p, int64_t n) {
  return reinterpret_cast<V>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
}
inline void store_some(float* p, V v, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), reinterpret_cast<__m512>(v));
}
inline V greater(V x, V y) {
  // With a mask, as g++ 12 warns of what _mm512_max_ps leaves undefined.
  return reinterpret_cast<V>(
      _mm512_maskz_max_ps(static_cast<__mmask16>(-1), reinterpret_cast<__m512>(x), reinterpret_cast<__m512>(y)));
}
inline V evens(V a, V b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
#elif HOST_CPU_LANES == 8
inline __m256i first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline V load_some(const float* p, int64_t n) { return reinterpret_cast<V>(_mm256_maskload_ps(p, first(n))); }
inline void store_some(float* p, V v, int64_t n) {
  _mm256_maskstore_ps(p, first(n), reinterpret_cast<__m256>(v));
}
inline V greater(V x, V y) {
  return reinterpret_cast<V>(_mm256_max_ps(reinterpret_cast<__m256>(x), reinterpret_cast<__m256>(y)));
}
inline V evens(V a, V b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
#else
inline V load_some(const float* p, int64_t n) {
  V v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
inline void store_some(float* p, V v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
inline V greater(V x, V y) { return x > y ? x : y; }
inline V evens(V a, V b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
#endif

inline V everywhere(float f) { return f - V{}; }

struct Most {
  static constexpr float kNone = -__builtin_inff();
  // y where x is NaN.
  static V with(V x, V y) { return greater(x, y); }
  static float with(float x, float y) { return x > y ? x : y; }
};
struct Sum {
  static constexpr float kNone = 0;
  static V with(V x, V y) { return y + x; }
  static float with(float x, float y) { return y + x; }
};

// kVectors vectors of channels, the last of `tail` where that is not 0, for kPositions positions.
template <class Of, int kPositions, int kVectors, bool kPart>
inline void tile(const WindowWork& w, const float* x, float* y, int64_t tail) {
  V acc[kPositions][kVectors];
#pragma GCC unroll 8
  for (int p = 0; p < kPositions; ++p)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) acc[p][v] = everywhere(Of::kNone);
  for (int64_t r = 0; r < w.rows; ++r) {
    const float* at = x + r * w.row;
    for (int64_t c = 0; c < w.columns; ++c, at += w.column)
#pragma GCC unroll 8
      for (int p = 0; p < kPositions; ++p)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const float* from = at + p * w.x_step + v * L;
          acc[p][v] = Of::with(kPart ? load_some(from, tail) : load(from), acc[p][v]);
        }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPositions; ++p)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      V sum = acc[p][v];
      if (Of::kNone == 0) sum *= w.factor;
      float* to = y + p * w.y_step + v * L;
      if (kPart)
        store_some(to, sum, tail);
      else
        store(to, sum);
    }
}

template <class Of, int kVectors, bool kPart>
inline void strip(const WindowWork& w, const float* x, float* y, int64_t tail) {
  constexpr int kAtOnce = 4 / kVectors;
  int64_t p = 0;
  for (; p + kAtOnce <= w.positions; p += kAtOnce)
    tile<Of, kAtOnce, kVectors, kPart>(w, x + p * w.x_step, y + p * w.y_step, tail);
  for (; p < w.positions; ++p) tile<Of, 1, kVectors, kPart>(w, x + p * w.x_step, y + p * w.y_step, tail);
}

template <class Of>
void windows(const WindowWork& w) {
  int64_t j = 0;
  if (w.channels >= 4 * L) {
    // Position by position, so that what neighbours share is near.
    for (int64_t p = 0; p < w.positions; ++p)
      for (j = 0; j + 4 * L <= w.channels; j += 4 * L)
        tile<Of, 1, 4, false>(w, w.x + p * w.x_step + j, w.y + p * w.y_step + j, 0);
  }
  for (; j + L <= w.channels; j += L) strip<Of, 1, false>(w, w.x + j, w.y + j, 0);
  if (j < w.channels) strip<Of, 1, true>(w, w.x + j, w.y + j, w.channels - j);
}

void window(Window of, const WindowWork& w) { of == Window::kMax ? windows<Most>(w) : windows<Sum>(w); }

// First over the windows' rows, then over their columns.
template <class Of>
void row_of(const RowWork& w) {
  float room[kRowRoom];
  const int64_t end = w.left + w.width + w.right + kRowSlack;
  for (int64_t i = 0; i < w.left; ++i) room[i] = Of::kNone;
  for (int64_t i = w.left + w.width; i < end; ++i) room[i] = Of::kNone;
  int64_t i = 0;
  for (; i + L <= w.width; i += L) {
    V acc = everywhere(Of::kNone);
    for (int64_t r = 0; r < w.rows; ++r) acc = Of::with(load(w.x + r * w.row + i), acc);
    store(room + w.left + i, acc);
  }
  for (; i < w.width; ++i) {
    float acc = Of::kNone;
    for (int64_t r = 0; r < w.rows; ++r) acc = Of::with(w.x[r * w.row + i], acc);
    room[w.left + i] = acc;
  }
  int64_t p = 0;
  if (w.stride <= 2)
    for (; p + L <= w.positions; p += L) {
      V acc = everywhere(Of::kNone);
      for (int64_t c = 0; c < w.columns; ++c) {
        const float* from = room + p * w.stride + c * w.column;
        acc = Of::with(w.stride == 1 ? load(from) : evens(load(from), load(from + L)), acc);
      }
      if (Of::kNone == 0) acc /= load(w.counted + p) * w.rows_counted;
      store(w.y + p, acc);
    }
  for (; p < w.positions; ++p) {
    float acc = Of::kNone;
    for (int64_t c = 0; c < w.columns; ++c) acc = Of::with(room[p * w.stride + c * w.column], acc);
    if (Of::kNone == 0) acc /= w.counted[p] * w.rows_counted;
    w.y[p] = acc;
  }
}

void row(Window of, const RowWork& w) { of == Window::kMax ? row_of<Most>(w) : row_of<Sum>(w); }

// `least` where v is smaller; NaN stays.
inline V at_least(V v, V least) { return greater(least, v); }

void affine(float* y, const float* x, const float* scale, const float* shift, int64_t channels,
            int64_t positions, float least) {
  const V low = everywhere(least);
  int64_t j = 0;
  if (channels == 16) {  // a block
    V a[16 / L], b[16 / L];
    for (int v = 0; v < 16 / L; ++v) a[v] = load(scale + v * L), b[v] = load(shift + v * L);
    for (int64_t p = 0; p < positions; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < 16 / L; ++v)
        store(y + p * 16 + v * L, at_least(load(x + p * 16 + v * L) * a[v] + b[v], low));
    return;
  }
  for (int64_t p = 0; p < positions; ++p, y += channels, x += channels) {
    for (j = 0; j + L <= channels; j += L)
      store(y + j, at_least(load(x + j) * load(scale + j) + load(shift + j), low));
    if (const int64_t n = channels - j; n > 0)
      store_some(y + j, at_least(load_some(x + j, n) * load_some(scale + j, n) + load_some(shift + j, n), low), n);
  }
}

// Of two rows of a matrix of blocks of kSize, whose other blocks are in place: the second block of the first and
// the first block of the second change places.
template <int kSize>
void exchange(V& a, V& b);
#if HOST_CPU_LANES == 16
template <>
inline void exchange<1>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  b = __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  a = first;
}
template <>
inline void exchange<2>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  b = __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  a = first;
}
template <>
inline void exchange<4>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  b = __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  a = first;
}
template <>
inline void exchange<8>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  b = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  a = first;
}
#elif HOST_CPU_LANES == 8
template <>
inline void exchange<1>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
  b = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  a = first;
}
template <>
inline void exchange<2>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
  b = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  a = first;
}
template <>
inline void exchange<4>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
  b = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  a = first;
}
#else
template <>
inline void exchange<1>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 4, 2, 6);
  b = __builtin_shufflevector(a, b, 1, 5, 3, 7);
  a = first;
}
template <>
inline void exchange<2>(V& a, V& b) {
  const V first = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  b = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  a = first;
}
#endif

template <int kSize>
inline void turn(V (&rows)[L]) {
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    if (!(i & kSize)) exchange<kSize>(rows[i], rows[i + kSize]);
  if constexpr (2 * kSize < L) turn<2 * kSize>(rows);
}

void transpose(float* y, int64_t y_step, const float* x, int64_t x_step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += L) {
    const int64_t m = rows - i < L ? rows - i : L;
    for (int64_t j = 0; j < columns; j += L) {
      const int64_t n = columns - j < L ? columns - j : L;
      V tile[L] = {};
      const float* from = x + i * x_step + j;
      if (m == L && n == L) {
#pragma GCC unroll 16
        for (int r = 0; r < L; ++r) tile[r] = load(from + r * x_step);
      } else {
        for (int64_t r = 0; r < m; ++r) tile[r] = load_some(from + r * x_step, n);
      }
      turn<1>(tile);
      float* to = y + j * y_step + i;
      if (n == L) {
#pragma GCC unroll 16
        for (int r = 0; r < L; ++r) store(to + r * y_step, tile[r]);
      } else {
        for (int64_t r = 0; r < n; ++r) store(to + r * y_step, tile[r]);
      }
    }
  }
}

}  // namespace

extern const MapLoops HOST_CPU_MAPS = {window, row, affine, transpose};

}  // namespace host_cpu
