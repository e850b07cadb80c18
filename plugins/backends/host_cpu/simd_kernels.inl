// Included by simd_*.cpp, each compiled for one instruction set, with HOST_CPU_SIMD naming its table and
// HOST_CPU_LANES its vector's floats. Everything is in an unnamed namespace and nothing of the standard library
// is used: an inline function compiled here must not be taken for another file's.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "simd.h"

namespace host_cpu {
namespace {

#include "vectors.inl"
#include "vector_functions.inl"

inline V load_part(const float* p, int64_t n, float fill) {
  V v = all(fill);
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
inline void store_part(float* p, V v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
template <float (*F)(float)>
inline V each(V x) {
  V y;
  for (int i = 0; i < L; ++i) y[i] = F(x[i]);
  return y;
}
inline float sqrt_one(float f) { return __builtin_sqrtf(f); }
inline float floor_one(float f) { return __builtin_floorf(f); }
inline float ceil_one(float f) { return __builtin_ceilf(f); }
inline float even_one(float f) { return __builtin_rintf(f); }
inline V softplus_of(V x) { return max_of(x, all(0.f)) + log_of(1.f + exp_of(-abs_of(x))); }

template <class F>
inline void map1(float* y, const float* x, int64_t n, F f) {
  int64_t i = 0;
  for (; i + L <= n; i += L) store(y + i, f(load(x + i)));
  if (i < n) store_part(y + i, f(load_part(x + i, n - i, 1.f)), n - i);
}

void unary(Unary op, float* y, const float* x, int64_t n, float a, float b) {
  switch (op) {
    case Unary::kAbs: return map1(y, x, n, [](V v) { return abs_of(v); });
    case Unary::kCeil: return map1(y, x, n, [](V v) { return each<ceil_one>(v); });
    case Unary::kClip: return map1(y, x, n, [=](V v) { return min_of(max_of(v, all(a)), all(b)); });
    case Unary::kElu: return map1(y, x, n, [=](V v) { return v < 0.f ? a * (exp_of(v) - 1.f) : v; });
    case Unary::kErf: return map1(y, x, n, [](V v) { return erf_of(v); });
    case Unary::kExp: return map1(y, x, n, [](V v) { return exp_of(v); });
    case Unary::kFloor: return map1(y, x, n, [](V v) { return each<floor_one>(v); });
    case Unary::kGelu:
      return map1(y, x, n, [](V v) { return 0.5f * v * (1.f + erf_of(v * 0.70710678118f)); });
    case Unary::kGeluTanh:
      return map1(y, x, n, [](V v) {
        return 0.5f * v * (1.f + tanh_of(0.7978845608f * (v + 0.044715f * v * v * v)));
      });
    case Unary::kHardSigmoid:
      return map1(y, x, n, [=](V v) { return min_of(max_of(a * v + b, all(0.f)), all(1.f)); });
    case Unary::kHardSwish:
      return map1(y, x, n, [](V v) { return v * min_of(max_of(v * (1.f / 6) + 0.5f, all(0.f)), all(1.f)); });
    case Unary::kLeakyRelu: return map1(y, x, n, [=](V v) { return v < 0.f ? a * v : v; });
    case Unary::kLog: return map1(y, x, n, [](V v) { return log_of(v); });
    case Unary::kMish: return map1(y, x, n, [](V v) { return v * tanh_of(softplus_of(v)); });
    case Unary::kNeg: return map1(y, x, n, [](V v) { return -v; });
    case Unary::kReciprocal: return map1(y, x, n, [](V v) { return 1.f / v; });
    case Unary::kRelu: return map1(y, x, n, [](V v) { return max_of(v, all(0.f)); });
    case Unary::kRound: return map1(y, x, n, [](V v) { return each<even_one>(v); });
    case Unary::kSelu:
      return map1(y, x, n, [=](V v) { return b * (v > 0.f ? v : a * (exp_of(v) - 1.f)); });
    case Unary::kSigmoid: return map1(y, x, n, [](V v) { return sigmoid_of(v); });
    case Unary::kSign:
      return map1(y, x, n, [](V v) { return v > 0.f ? all(1.f) : v < 0.f ? all(-1.f) : v; });
    case Unary::kSoftplus: return map1(y, x, n, [](V v) { return softplus_of(v); });
    case Unary::kSoftsign: return map1(y, x, n, [](V v) { return v / (1.f + abs_of(v)); });
    case Unary::kSqrt: return map1(y, x, n, [](V v) { return each<sqrt_one>(v); });
    case Unary::kSwish: return map1(y, x, n, [=](V v) { return v / (1.f + exp_of(-a * v)); });
    case Unary::kTanh: return map1(y, x, n, [](V v) { return tanh_of(v); });
    case Unary::kThresholdedRelu: return map1(y, x, n, [=](V v) { return v > a ? v : all(0.f); });
  }
}

template <class F>
inline void map2(float* y, const float* a, const float* b, int64_t n, int sa, int sb, F f) {
  int64_t i = 0;
  if (sa && sb) {
    for (; i + L <= n; i += L) store(y + i, f(load(a + i), load(b + i)));
    if (i < n) store_part(y + i, f(load_part(a + i, n - i, 1.f), load_part(b + i, n - i, 1.f)), n - i);
  } else if (sa) {
    const V one = all(*b);
    for (; i + L <= n; i += L) store(y + i, f(load(a + i), one));
    if (i < n) store_part(y + i, f(load_part(a + i, n - i, 1.f), one), n - i);
  } else {
    const V one = all(*a);
    for (; i + L <= n; i += L) store(y + i, f(one, sb ? load(b + i) : all(*b)));
    if (i < n) store_part(y + i, f(one, sb ? load_part(b + i, n - i, 1.f) : all(*b)), n - i);
  }
}

// A NaN in either operand is the result.
inline V maximum(V a, V b) { return (a > b || a != a) ? a : b; }
inline V minimum(V a, V b) { return (a < b || a != a) ? a : b; }

void binary(Binary op, float* y, const float* a, const float* b, int64_t n, int sa, int sb) {
  switch (op) {
    case Binary::kAdd: return map2(y, a, b, n, sa, sb, [](V p, V q) { return p + q; });
    case Binary::kSub: return map2(y, a, b, n, sa, sb, [](V p, V q) { return p - q; });
    case Binary::kMul: return map2(y, a, b, n, sa, sb, [](V p, V q) { return p * q; });
    case Binary::kDiv: return map2(y, a, b, n, sa, sb, [](V p, V q) { return p / q; });
    case Binary::kMax: return map2(y, a, b, n, sa, sb, [](V p, V q) { return maximum(p, q); });
    case Binary::kMin: return map2(y, a, b, n, sa, sb, [](V p, V q) { return minimum(p, q); });
    case Binary::kPRelu: return map2(y, a, b, n, sa, sb, [](V p, V q) { return p < 0.f ? p * q : p; });
  }
}

void affine(float* y, const float* x, const float* scale, const float* shift, int64_t n) {
  int64_t i = 0;
  for (; i + L <= n; i += L) store(y + i, load(x + i) * load(scale + i) + load(shift + i));
  for (; i < n; ++i) y[i] = x[i] * scale[i] + shift[i];
}
void affine_one(float* y, const float* x, float scale, float shift, int64_t n) {
  map1(y, x, n, [=](V v) { return v * scale + shift; });
}

template <class F, class G>
inline float fold(const float* x, int64_t n, float start, F combine, G prepare) {
  V acc[4] = {all(start), all(start), all(start), all(start)};
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
    for (int k = 0; k < 4; ++k) acc[k] = combine(acc[k], prepare(load(x + i + k * L)));
  for (; i + L <= n; i += L) acc[0] = combine(acc[0], prepare(load(x + i)));
  V rest = combine(combine(acc[0], acc[1]), combine(acc[2], acc[3]));
  if (i < n) {
    const V last = prepare(load_part(x + i, n - i, 0.f));
    for (int64_t k = 0; k < n - i; ++k) {
      V one = all(start);
      one[0] = last[k];
      rest = combine(rest, one);
    }
  }
  V total = all(rest[0]);
  for (int k = 1; k < L; ++k) total = combine(total, all(rest[k]));
  return total[0];
}
inline V same(V v) { return v; }
inline V add(V a, V b) { return a + b; }
inline V times(V a, V b) { return a * b; }

float fold_row(Fold op, const float* x, int64_t n) {
  switch (op) {
    case Fold::kSum: return fold(x, n, 0.f, add, same);
    case Fold::kMax: return fold(x, n, -__builtin_inff(), maximum, same);
    case Fold::kMin: return fold(x, n, __builtin_inff(), minimum, same);
    case Fold::kProd: return fold(x, n, 1.f, times, same);
    case Fold::kSumAbs: return fold(x, n, 0.f, add, abs_of);
    case Fold::kSumSquare: return fold(x, n, 0.f, add, [](V v) { return v * v; });
  }
  return 0;
}

void fold_into(Fold op, float* acc, const float* x, int64_t n) {
  switch (op) {
    case Fold::kSum: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return a + b; });
    case Fold::kMax: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return maximum(a, b); });
    case Fold::kMin: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return minimum(a, b); });
    case Fold::kProd: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return a * b; });
    case Fold::kSumAbs: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return a + abs_of(b); });
    case Fold::kSumSquare: return map2(acc, acc, x, n, 1, 1, [](V a, V b) { return a + b * b; });
  }
}

// y = exp(x - most), where there is a y; returns the sum.
inline float exp_sum(float* y, const float* x, int64_t n, float most) {
  V sums = all(0.f);
  float sum = 0;
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const V e = exp_of(load(x + i) - most);
    if (y) store(y + i, e);
    sums += e;
  }
  if (i < n) {
    const V e = exp_of(load_part(x + i, n - i, 0.f) - most);
    if (y) store_part(y + i, e, n - i);
    for (int64_t k = 0; k < n - i; ++k) sum += e[k];
  }
  for (int k = 0; k < L; ++k) sum += sums[k];
  return sum;
}

void softmax_row(float* y, const float* x, int64_t n, bool log) {
  const float most = fold_row(Fold::kMax, x, n);
  if (log) {
    const float shift = most + log_of(all(exp_sum(nullptr, x, n, most)))[0];
    return map1(y, x, n, [=](V v) { return v - shift; });
  }
  const float inverse = 1.f / exp_sum(y, x, n, most);
  map1(y, y, n, [=](V v) { return v * inverse; });
}

float exp_row(float* x, const float* mask, float scale, int64_t n) {
  if (mask)
    map2(x, x, mask, n, 1, 1, [=](V a, V m) { return a * scale + m; });
  else
    map1(x, x, n, [=](V a) { return a * scale; });
  return exp_sum(x, x, n, fold_row(Fold::kMax, x, n));
}

// Two passes, as E[x^2] - E[x]^2 loses what matters where the mean is large.
void normalise_row(float* y, const float* x, const float* scale, const float* shift, int64_t n, float epsilon) {
  const float mean = fold_row(Fold::kSum, x, n) / static_cast<float>(n);
  V sums = all(0.f);
  float sum = 0;
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const V d = load(x + i) - mean;
    sums += d * d;
  }
  for (; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  for (int k = 0; k < L; ++k) sum += sums[k];
  const float inverse = 1.f / __builtin_sqrtf(sum / static_cast<float>(n) + epsilon);
  for (i = 0; i + L <= n; i += L) {
    V v = (load(x + i) - mean) * inverse;
    if (scale) v *= load(scale + i);
    if (shift) v += load(shift + i);
    store(y + i, v);
  }
  for (; i < n; ++i) {
    float v = (x[i] - mean) * inverse;
    if (scale) v *= scale[i];
    if (shift) v += shift[i];
    y[i] = v;
  }
}

void moments(const float* x, int64_t n, double* sum, double* square) {
  double s = 0, q = 0;
  constexpr int64_t kBlock = 4096;  // single precision within, double between
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t m = n - i < kBlock ? n - i : kBlock;
    s += static_cast<double>(fold_row(Fold::kSum, x + i, m));
    q += static_cast<double>(fold_row(Fold::kSumSquare, x + i, m));
  }
  *sum = s;
  *square = q;
}

// By halves: lane by lane each addition would wait for the one before.
inline float sum_of(V v) {
#if HOST_CPU_LANES >= 16
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
#if HOST_CPU_LANES == 16
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
#elif HOST_CPU_LANES == 8
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
#endif
  return (v[0] + v[2]) + (v[1] + v[3]);
}

// Of kRows rows of weights, with kBatch vectors: a row is read once for all of them.
template <int kRows, int kBatch>
inline void dot_rows(float* y, int64_t y_step, const float* w, const float* x, int64_t columns) {
  V acc[kBatch][kRows] = {};
  int64_t j = 0;
  for (; j + L <= columns; j += L) {
    V v[kBatch];
    for (int b = 0; b < kBatch; ++b) v[b] = load(x + b * columns + j);
    for (int r = 0; r < kRows; ++r) {
      const V row = load(w + r * columns + j);
      for (int b = 0; b < kBatch; ++b) acc[b][r] += v[b] * row;
    }
  }
  for (int b = 0; b < kBatch; ++b)
    for (int r = 0; r < kRows; ++r) {
      float sum = sum_of(acc[b][r]);
      for (int64_t k = j; k < columns; ++k) sum += w[r * columns + k] * x[b * columns + k];
      y[b * y_step + r] += sum;
    }
}

template <int kRows, int kBatch>
inline void gemv_dot_of(float* y, int64_t y_step, const float* w, const float* x, int64_t rows,
                        int64_t columns) {
  int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    dot_rows<kRows, kBatch>(y + i, y_step, w + i * columns, x, columns);
  for (; i < rows; ++i) dot_rows<1, kBatch>(y + i, y_step, w + i * columns, x, columns);
}

void gemv_dot(float* y, int64_t y_step, const float* w, const float* x, int64_t rows, int64_t columns,
              int64_t batch) {
  for (; batch >= 2; batch -= 2, y += 2 * y_step, x += 2 * columns)
    gemv_dot_of<6, 2>(y, y_step, w, x, rows, columns);
  if (batch) gemv_dot_of<8, 1>(y, y_step, w, x, rows, columns);
}

// Several sums of each, as one waits for the one before.
template <int kVectors, int kSums>
inline void columns_of(float* y, const float* w, const float* x, int64_t width, int64_t columns) {
  V acc[kSums][kVectors] = {};
  int64_t i = 0;
  for (; i + kSums <= columns; i += kSums)
    for (int s = 0; s < kSums; ++s)
      for (int v = 0; v < kVectors; ++v) acc[s][v] += all(x[i + s]) * load(w + (i + s) * width + v * L);
  for (; i < columns; ++i)
    for (int v = 0; v < kVectors; ++v) acc[0][v] += all(x[i]) * load(w + i * width + v * L);
  for (int v = 0; v < kVectors; ++v) {
    V sum = acc[0][v];
    for (int s = 1; s < kSums; ++s) sum += acc[s][v];
    store(y + v * L, load(y + v * L) + sum);
  }
}

void gemv_columns(float* y, const float* w, const float* x, int64_t width, int64_t columns) {
  int64_t j = 0;
  for (; j + 2 * L <= width; j += 2 * L) columns_of<2, 4>(y + j, w + j, x, width, columns);
  for (; j + L <= width; j += L) columns_of<1, 4>(y + j, w + j, x, width, columns);
  for (; j < width; ++j)
    for (int64_t i = 0; i < columns; ++i) y[j] += x[i] * w[i * width + j];
}

template <int kVectors>
inline void sum_columns(float* y, const float* x, int64_t rows, int64_t step) {
  V acc[2][kVectors] = {};
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2)
    for (int s = 0; s < 2; ++s)
      for (int v = 0; v < kVectors; ++v) acc[s][v] += load(x + (r + s) * step + v * L);
  if (r < rows)
    for (int v = 0; v < kVectors; ++v) acc[0][v] += load(x + r * step + v * L);
  for (int v = 0; v < kVectors; ++v) store(y + v * L, acc[0][v] + acc[1][v]);
}

void sum_rows(float* y, const float* x, int64_t rows, int64_t step, int64_t n) {
  if (n >= L) {
    int64_t j = 0;
    for (; j + 4 * L <= n; j += 4 * L) sum_columns<4>(y + j, x + j, rows, step);
    for (; j + L <= n; j += L) sum_columns<1>(y + j, x + j, rows, step);
    // The last ones once more with what is missing to a vector.
    if (j < n) sum_columns<1>(y + n - L, x + n - L, rows, step);
    return;
  }
  int64_t r = 0;
  for (int64_t j = 0; j < n; ++j) y[j] = 0;
  if (step == n && L % n == 0) {  // several rows are a vector
    float sums[L];
    const int64_t together = L / n;
    r = rows / together * together;
    if (r > 0) {
      sum_columns<1>(sums, x, r / together, L);
      for (int64_t j = 0; j < L; ++j) y[j % n] += sums[j];
    }
  }
  for (; r < rows; ++r)
    for (int64_t j = 0; j < n; ++j) y[j] += x[r * step + j];
}

void lstm_step(const float* gi, const float* go, const float* gf, const float* gc, float* cell, float* hidden,
               int64_t n) {
  int64_t j = 0;
  for (; j < n; j += L) {
    const int64_t m = n - j < L ? n - j : L;
    const bool whole = m == L;
    auto get = [&](const float* p) { return whole ? load(p + j) : load_part(p + j, m, 0.f); };
    const V c = sigmoid_of(get(gf)) * get(cell) + sigmoid_of(get(gi)) * tanh_of(get(gc));
    const V h = sigmoid_of(get(go)) * tanh_of(c);
    if (whole) {
      store(cell + j, c);
      store(hidden + j, h);
    } else {
      store_part(cell + j, c, m);
      store_part(hidden + j, h, m);
    }
  }
}

void gru_mix(const float* z, const float* candidate, float* hidden, int64_t n) {
  for (int64_t j = 0; j < n; j += L) {
    const int64_t m = n - j < L ? n - j : L;
    const bool whole = m == L;
    auto get = [&](const float* p) { return whole ? load(p + j) : load_part(p + j, m, 0.f); };
    const V g = sigmoid_of(get(z));
    const V h = (1.f - g) * tanh_of(get(candidate)) + g * get(hidden);
    if (whole)
      store(hidden + j, h);
    else
      store_part(hidden + j, h, m);
  }
}

}  // namespace

extern const Simd HOST_CPU_SIMD = {unary,       binary,        affine,  affine_one, fold_row,  fold_into, softmax_row,
                                   exp_row,     normalise_row, moments, gemv_dot,   gemv_columns, sum_rows, lstm_step, gru_mix};

}  // namespace host_cpu
