// Included by direct_*.cpp, each compiled for one instruction set, with HOST_CPU_DIRECT naming its table and
// HOST_CPU_LANES its vector's floats. Everything is in an unnamed namespace and nothing of the standard library is
// used: an inline function compiled here must not be taken for another file's.

#include <immintrin.h>

#include "direct_kernels.h"

namespace host_cpu {
namespace {

#include "vectors.inl"
#include "vector_functions.inl"

// Sums, weights and an input fill the registers.
constexpr int kPixels = 6, kVectors = L == 16 ? 4 : 2;
constexpr int most_pixels(int vectors) {
  return L == 16 ? (vectors == 4 ? 6 : vectors == 3 ? 8 : 12) : vectors == 2 ? 6 : 10;
}

// The first of a vector's channels, where its last ones are not there.
#if HOST_CPU_LANES == 16
typedef __mmask16 Mask;
inline Mask mask_of(int n) { return static_cast<Mask>((1u << n) - 1); }
inline V load_some(const float* p, Mask mask) { return reinterpret_cast<V>(_mm512_maskz_loadu_ps(mask, p)); }
inline void store_some(float* p, V v, Mask mask) { _mm512_mask_storeu_ps(p, mask, reinterpret_cast<__m512>(v)); }
#else
typedef __m256i Mask;
inline Mask mask_of(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline V load_some(const float* p, Mask mask) { return reinterpret_cast<V>(_mm256_maskload_ps(p, mask)); }
inline void store_some(float* p, V v, Mask mask) { _mm256_maskstore_ps(p, mask, reinterpret_cast<__m256>(v)); }
#endif
inline V everywhere(float f) { return f - V{}; }  // exact, so that it is a broadcast and no subtraction
inline V clip(V v, V low, V high) { return min_of(max_of(v, low), high); }

constexpr float kZeros[16] = {};

template <int kP, int kV, class To>
inline void begin_sums(V (&sums)[kP][kV], const DirectShape& s, const DirectWork& t, To&& to) {
  const Mask tail = mask_of(t.tail);
  auto get = [&](const float* p, int v) { return v == kV - 1 ? load_some(p, tail) : load(p); };
  if (t.begin > 0) {
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sums[p][v] = get(t.dst + to(p) + v * s.dst_vector, v);
    return;
  }
#pragma GCC unroll 16
  for (int v = 0; v < kV; ++v) {
    const V bias = t.bias ? get(t.bias + v * L, v) : V{};
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p) sums[p][v] = bias;
  }
  if (t.residual)
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sums[p][v] += get(t.residual + to(p) + v * s.dst_vector, v);
}

// Stores y, so many vectors at each of the places, when the steps are through with them.
__attribute__((noinline)) void end_by_steps(const DirectShape& s, const DirectWork& t, float* y, int places,
                                            int vectors, const int64_t* at) {
  s.steps(s.what, y, static_cast<int64_t>(places) * vectors * L);
  const Mask tail = mask_of(t.tail);
  for (int p = 0; p < places; ++p)
    for (int v = 0; v < vectors; ++v, y += L) {
      float* to = t.dst + at[p] + v * s.dst_vector;
      v == vectors - 1 ? store_some(to, load(y), tail) : store(to, load(y));
    }
}

template <int kP, int kV, class To>
inline void end_sums(V (&sums)[kP][kV], const DirectShape& s, const DirectWork& t, To&& to) {
  if (t.last && s.ending == DirectShape::kClip) {
    const V low = everywhere(s.low), high = everywhere(s.high);
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sums[p][v] = clip(sums[p][v], low, high);
  } else if (t.last && s.ending == DirectShape::kHardSwish) {
    const V low = everywhere(s.low), high = everywhere(s.high);
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) sums[p][v] *= clip(sums[p][v] * low + high, V{}, all(1.f));
  } else if (t.last && s.ending != DirectShape::kNone) {
    // By way of the stack, so that there is one loop for each function and not one in each of these kernels.
    alignas(4 * L) float y[kP * kV * L];
    int64_t at[kP];
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p) {
      at[p] = to(p);
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) store(y + (p * kV + v) * L, sums[p][v]);
    }
    return end_by_steps(s, t, y, kP, kV, at);
  }
  const Mask tail = mask_of(t.tail);
#pragma GCC unroll 16
  for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
    for (int v = 0; v < kV; ++v) {
      float* y = t.dst + to(p) + v * s.dst_vector;
      v == kV - 1 ? store_some(y, sums[p][v], tail) : store(y, sums[p][v]);
    }
}

// sums += inputs x(p, i) by weights, over `count` input channels i.
template <int kP, int kV, class X>
inline void multiply(V (&sums)[kP][kV], const float* w, int64_t w_step, int64_t w_vector, int64_t count, X&& x) {
  auto step = [&](int64_t i) __attribute__((always_inline)) {
    V weights[kV];
#pragma GCC unroll 8
    for (int v = 0; v < kV; ++v) weights[v] = load(w + i * w_step + v * w_vector);
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p) {
      const V value = everywhere(x(p, i));
#pragma GCC unroll 8
      for (int v = 0; v < kV; ++v) sums[p][v] += value * weights[v];
    }
  };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    step(i);
    step(i + 1);
    step(i + 2);
    step(i + 3);
  }
  for (; i < count; ++i) step(i);
}

// Positions from `first` up to `end` as long as there are kP of them; returns the first that is left.
// kUnit: input channels lie beside each other.
template <int kP, int kV, bool kUnit>
int64_t strip_of(const DirectShape& s, const DirectWork& t, int64_t first) {
  const int64_t pixel = s.src_pixel, step = kUnit ? 1 : s.src_step, w_step = s.w_step, w_vector = s.w_vector;
  const int64_t taps_begin = t.rows[0] * s.kernel_width, taps_end = t.rows[1] * s.kernel_width;
  for (; t.count - first >= kP; first += kP) {
    V sums[kP][kV];
    const int64_t dst_at = t.dst_at + first * s.dst_pixel;
    auto to = [&](int p) { return dst_at + p * s.dst_pixel; };
    begin_sums(sums, s, t, to);
    const float* src = t.src + first * pixel;
    for (int64_t c = t.begin; c < t.end; c += s.in_block) {
      const float* w = t.w + c / s.in_block * s.w_block;
      const float* in = src + c / 16 * s.src_block + c % 16 * step;
      for (int64_t tap = taps_begin; tap < taps_end; ++tap) {
        // Three positions share an address, so that one instruction's index reaches them.
        const float* x[(kP + 2) / 3];
#pragma GCC unroll 16
        for (int p = 0; p < (kP + 2) / 3; ++p) x[p] = in + s.src_taps[tap] + 3 * p * pixel;
        multiply(sums, w + s.w_taps[tap], w_step, w_vector, t.end - c < s.in_block ? t.end - c : s.in_block,
                 [&](int p, int64_t i) { return x[p / 3][p % 3 * pixel + i * step]; });
      }
    }
    end_sums(sums, s, t, to);
  }
  return first;
}

template <int kP, int kV, bool kUnit>
void scattered_of(const DirectShape& s, const DirectWork& t) {
  V sums[kP][kV];
  auto to = [&](int p) { return t.dst_ats[p]; };
  begin_sums(sums, s, t, to);
  for (int64_t c = t.begin; c < t.end; c += s.in_block) {
    const int64_t channel = c / 16 * s.src_block + c % 16 * s.src_step;
    const float* w = t.w + c / s.in_block * s.w_block;
    const float* const* from = t.table;
    for (int64_t tap = 0; tap < t.window; ++tap, from += kP) {
      const float* x[kP];
      int64_t step[kP];
#pragma GCC unroll 16
      for (int p = 0; p < kP; ++p) {
        x[p] = from[p] ? from[p] + channel : kZeros;
        step[p] = kUnit ? 1 : from[p] ? s.src_step : 0;
      }
      multiply(sums, w + s.w_taps[tap], s.w_step, s.w_vector, t.end - c < s.in_block ? t.end - c : s.in_block,
               [&](int p, int64_t i) { return x[p][kUnit ? i : i * step[p]]; });
    }
  }
  end_sums(sums, s, t, to);
}

// f.operator()<n>() for the n that is `n`, of 1..most.
template <int kMost, class F>
inline void with_number(int64_t n, F&& f) {
  if constexpr (kMost > 1)
    if (n < kMost) return with_number<kMost - 1>(n, f);
  f.template operator()<kMost>();
}

template <int kV, bool kUnit>
void strip_of_vectors(const DirectShape& s, const DirectWork& t) {
  // Inputs that lie apart are those of a first layer's few channels.
  constexpr int kMost = kUnit ? most_pixels(kV) : kPixels;
  int64_t first = strip_of<kMost, kV, kUnit>(s, t, 0);
  if constexpr (kMost > kPixels)
    if (t.count - first >= kPixels) first = strip_of<kPixels, kV, kUnit>(s, t, first);
  if (first < t.count)
    with_number<kPixels - 1>(t.count - first, [&]<int kP>() { strip_of<kP, kV, kUnit>(s, t, first); });
}

void strip(const DirectShape& s, const DirectWork& t) {
  with_number<kVectors>(t.vectors, [&]<int kV>() {
    s.src_step == 1 ? strip_of_vectors<kV, true>(s, t) : strip_of_vectors<kV, false>(s, t);
  });
}

void scattered(const DirectShape& s, const DirectWork& t) {
  with_number<kVectors>(t.vectors, [&]<int kV>() {
    with_number<kPixels>(t.count, [&]<int kP>() {
      s.src_step == 1 ? scattered_of<kP, kV, true>(s, t) : scattered_of<kP, kV, false>(s, t);
    });
  });
}

// One vector, positions from `first` on. Of windows in which columns lie kStride-th of the distance between two
// positions apart, neighbours read the same inputs, each of which is loaded once. kEdge: some are in the padding.
template <int kP, int kWidth, int kStride, bool kEdge>
inline void depthwise_tile(const DirectShape& s, const DirectWork& t, int64_t first) {
  V sums[kP][1];
  const int64_t dst_at = t.dst_at + first * s.dst_pixel;
  auto to = [&](int p) { return dst_at + p * s.dst_pixel; };
  begin_sums(sums, s, t, to);
  const float* src = t.src + first * s.src_pixel;
  const Mask mask = mask_of(t.tail);
  const int64_t begin = t.columns[0] - first * kStride, end = t.columns[1] - first * kStride;
  for (int64_t row = t.rows[0]; row < t.rows[1]; ++row) {
    const int64_t tap = row * s.kernel_width;
    const float* x = src + s.src_taps[tap];
    V w[kWidth];
#pragma GCC unroll 16
    for (int b = 0; b < kWidth; ++b) w[b] = load(t.w + s.w_taps[tap + b]);
#pragma GCC unroll 32
    for (int j = 0; j < (kP - 1) * kStride + kWidth; ++j) {
      if (kEdge && (j < begin || j >= end)) continue;
      const V value = load_some(x + j * s.src_right, mask);
#pragma GCC unroll 8
      for (int b = 0; b < kWidth; ++b)
        if (j >= b && (j - b) % kStride == 0 && (j - b) / kStride < kP) sums[(j - b) / kStride][0] += value * w[b];
    }
  }
  end_sums(sums, s, t, to);
}

void next_vector(const DirectShape& s, DirectWork* t, int vectors) {
  t->src += vectors * s.src_vector;
  t->w += vectors * s.w_vector;
  t->dst += vectors * s.dst_vector;
  if (t->bias) t->bias += vectors * L;
  if (t->residual) t->residual += vectors * s.dst_vector;
}

// All vectors of a few positions, then those of the next: as they lie beside each other in memory.
template <int kP, int kWidth, int kStride>
int64_t depthwise_tiles(const DirectShape& s, const DirectWork& all, int64_t first) {
  for (; all.count - first >= kP; first += kP) {
    const int64_t at = first * kStride;
    const bool edge = all.columns[0] > at || all.columns[1] < at + (kP - 1) * kStride + kWidth;
    DirectWork t = all;
    for (int v = 0; v < all.vectors; ++v, next_vector(s, &t, 1)) {
      t.tail = v + 1 < all.vectors ? L : all.tail;
      edge ? depthwise_tile<kP, kWidth, kStride, true>(s, t, first)
           : depthwise_tile<kP, kWidth, kStride, false>(s, t, first);
    }
  }
  return first;
}

template <int kWidth, int kStride>
void depthwise_strip(const DirectShape& s, const DirectWork& t) {
  int64_t first = L == 16 ? depthwise_tiles<12, kWidth, kStride>(s, t, 0) : 0;
  first = depthwise_tiles<6, kWidth, kStride>(s, t, first);
  first = depthwise_tiles<2, kWidth, kStride>(s, t, first);
  depthwise_tiles<1, kWidth, kStride>(s, t, first);
}

// Any windows: kV vectors of one position.
template <int kV>
inline void depthwise_vectors(const DirectShape& s, const DirectWork& t, int64_t at) {
  V sums[1][kV];
  auto to = [&](int) { return t.dst_at + at * s.dst_pixel; };
  begin_sums(sums, s, t, to);
  const float* src = t.src + at * s.src_pixel;
  const Mask mask = mask_of(t.tail);
  for (int64_t row = t.rows[0]; row < t.rows[1]; ++row)
    for (int64_t tap = row * s.kernel_width + t.columns[0]; tap < row * s.kernel_width + t.columns[1]; ++tap) {
      const float *x = src + s.src_taps[tap], *w = t.w + s.w_taps[tap];
#pragma GCC unroll 16
      for (int v = 0; v < kV; ++v) {
        const float* from = x + v * s.src_vector;
        sums[0][v] += (v == kV - 1 ? load_some(from, mask) : load(from)) * load(w + v * s.w_vector);
      }
    }
  end_sums(sums, s, t, to);
}

void depthwise_anyhow(const DirectShape& s, const DirectWork& all) {
  for (int64_t at = 0; at < all.count; ++at) {
    DirectWork t = all;
    int v = 0;
    for (; v + 4 <= all.vectors; v += 4, next_vector(s, &t, 4)) {
      t.tail = v + 4 < all.vectors ? L : all.tail;
      depthwise_vectors<4>(s, t, at);
    }
    for (; v < all.vectors; ++v, next_vector(s, &t, 1)) {
      t.tail = v + 1 < all.vectors ? L : all.tail;
      depthwise_vectors<1>(s, t, at);
    }
  }
}

void depthwise(const DirectShape& s, const DirectWork& t) {
  if (!s.rows_at_once) return depthwise_anyhow(s, t);
  const bool one = s.src_pixel == s.src_right;
  if (s.kernel_width == 3)
    one ? depthwise_strip<3, 1>(s, t) : depthwise_strip<3, 2>(s, t);
  else
    one ? depthwise_strip<5, 1>(s, t) : depthwise_strip<5, 2>(s, t);
}

}  // namespace

extern const Direct HOST_CPU_DIRECT = {L, kPixels, kVectors, strip, scattered, depthwise};

}  // namespace host_cpu
