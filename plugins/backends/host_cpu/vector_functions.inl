// Functions of vectors, element by element, for files that are compiled for one instruction set; after
// vectors.inl, within their unnamed namespace.

typedef int32_t I __attribute__((vector_size(4 * L), aligned(4), may_alias));

inline V all(float f) { return V{} + f; }
inline V bits(I i) { return reinterpret_cast<V>(i); }
inline I bits(V v) { return reinterpret_cast<I>(v); }
// A NaN in x stays, as it compares false. The instructions give their second operand then. (Those with a mask, as
// g++ warns of what the others leave undefined.)
inline V min_of(V x, V b) {
#if HOST_CPU_LANES == 16
  return reinterpret_cast<V>(_mm512_maskz_min_ps(0xffff, reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(x)));
#elif HOST_CPU_LANES == 8
  return reinterpret_cast<V>(_mm256_min_ps(reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(x)));
#else
  return x > b ? b : x;
#endif
}
inline V max_of(V x, V b) {
#if HOST_CPU_LANES == 16
  return reinterpret_cast<V>(_mm512_maskz_max_ps(0xffff, reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(x)));
#elif HOST_CPU_LANES == 8
  return reinterpret_cast<V>(_mm256_max_ps(reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(x)));
#else
  return x < b ? b : x;
#endif
}
inline V abs_of(V x) { return bits(bits(x) & 0x7fffffff); }

#if HOST_CPU_LANES == 16
constexpr float kMostOfExp = 89.f;  // becomes infinity by itself
#else
constexpr float kMostOfExp = 88.7228f;
#endif
// exp(x) is p 2^n, with p between 0.7 and 1.42.
inline V exp_of(V x) {
  const V given = x;
  x = max_of(min_of(x, all(kMostOfExp)), all(-87.3365f));
  const V magic = all(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer
  const V n = (x * 1.44269504f + magic) - magic;
  const V r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  V p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.f;
#if HOST_CPU_LANES == 16
  const V y = reinterpret_cast<V>(_mm512_maskz_scalef_ps(0xffff, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  // Added to the exponent's bits, as 2^128, which n may ask for, is no float. Of NaN k's lowest bits are 0.
  const I k = __builtin_convertvector(n, I);
  V y = bits(bits(p) + (k << 23));
  y = given > 88.7228f ? all(__builtin_inff()) : y;
#endif
  return given < -103.9721f ? all(0.f) : y;
}

inline V tanh_of(V x) {
  const V given = x;
  x = max_of(min_of(x, all(7.90531110763549805f)), all(-7.90531110763549805f));
  const V s = x * x;
  V p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  V q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  const V y = x * p / q;
  return abs_of(given) < 0.0004f ? given : y;
}

inline V erf_of(V x) {
  const V given = x;
  x = max_of(min_of(x, all(4.f)), all(-4.f));
  const V s = x * x;
  V p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  V q = s * -1.45660718464996e-05f - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  const V y = x * p / q;
  return given != given ? given : y;
}

inline V log_of(V x) {
  const V given = x;
  const I denormal = given < 1.17549435e-38f;
  x = denormal ? x * 8388608.f : x;
  const I b = bits(x);
  V e = __builtin_convertvector((b >> 23) - 126, V);
  e = denormal ? e - 23.f : e;
  V m = bits((b & 0x007fffff) | 0x3f000000);
  const I small = m < 0.707106781f;
  e = small ? e - 1.f : e;
  m = small ? m + m - 1.f : m - 1.f;
  const V z = m * m;
  V p = all(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  V y = p * m * z + e * -2.12194440e-4f - z * 0.5f;
  y = m + y + e * 0.693359375f;
  y = given == 0.f ? all(-__builtin_inff()) : y;
  y = given < 0.f ? all(__builtin_nanf("")) : y;
  return (given != given || given == __builtin_inff()) ? given : y;
}

inline V sigmoid_of(V x) { return 1.f / (1.f + exp_of(-x)); }
