// The vector unit: element-wise, casts, comparisons, selections, row reductions. Floats of two bytes are
// computed as floats of four and rounded once; chunks are read whole before they are written, so that a
// destination may be its own source.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "chip.h"
#include "half.h"
#include "regie/half.hpp"

namespace regie::simulator {

namespace {

constexpr int64_t kChunk = 512;

// How elements of a type are read into and written from an array of what they are computed in.
struct Half {
  using Work = float;
  static constexpr int64_t size = 2;
  static void load(const uint8_t* from, float* to, int64_t n) {
    halves_to_floats(from, to, static_cast<size_t>(n));
  }
  static void store(const float* from, uint8_t* to, int64_t n) {
    floats_to_halves(from, to, static_cast<size_t>(n));
  }
};
template <class T>
struct Plain {
  using Work = T;
  static constexpr int64_t size = sizeof(T);
  static void load(const uint8_t* from, T* to, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  }
  static void store(const T* from, uint8_t* to, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  }
};
using Float = Plain<float>;
using Int = Plain<int32_t>;

template <class F>
void with_type(uint8_t type, F&& f) {
  if (type == REGIE_TILE_F16)
    f(Half{});
  else if (type == REGIE_TILE_F32)
    f(Float{});
  else
    f(Int{});
}

template <class Kind>
typename Kind::Work constant(int64_t bits) {
  if constexpr (std::is_same_v<Kind, Half>)
    return sdk::half_value(sdk::half_bits(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  else
    return std::bit_cast<typename Kind::Work>(static_cast<uint32_t>(bits));
}

// Integers wrap.
template <class T, class F>
T wrapped(T a, T b, F f) {
  if constexpr (std::is_same_v<T, int32_t>)
    return static_cast<int32_t>(f(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
  else
    return f(a, b);
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    if (a != a || b != b) return std::numeric_limits<float>::quiet_NaN();
  return a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    if (a != a || b != b) return std::numeric_limits<float>::quiet_NaN();
  return a < b ? a : b;
}

template <class T>
void combine(uint8_t op, const T* to, const T* a, const T* b, T* out, int64_t n) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  };
  auto add = [](auto x, auto y) { return x + y; };
  switch (op) {
    case REGIE_TILE_ADD:
      return each([&](T x, T y) { return wrapped(x, y, add); });
    case REGIE_TILE_SUB:
      return each([&](T x, T y) { return wrapped(x, y, [](auto p, auto q) { return p - q; }); });
    case REGIE_TILE_MUL:
      return each([&](T x, T y) { return wrapped(x, y, [](auto p, auto q) { return p * q; }); });
    case REGIE_TILE_DIV:
      if constexpr (std::is_same_v<T, float>) each([](float x, float y) { return x / y; });
      return;
    case REGIE_TILE_MAX:
      return each([](T x, T y) { return larger(x, y); });
    case REGIE_TILE_MIN:
      return each([](T x, T y) { return smaller(x, y); });
    default:  // MLA
      for (int64_t i = 0; i < n; ++i)
        out[i] = wrapped(to[i], wrapped(a[i], b[i], [](auto p, auto q) { return p * q; }), add);
  }
}

template <class T>
void apply(uint8_t op, T* x, int64_t n) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
  };
  auto negative = [](T v) { return wrapped(T{0}, v, [](auto p, auto q) { return p - q; }); };
  if constexpr (std::is_same_v<T, float>) {
    switch (op) {
      case REGIE_TILE_EXP:
        return each([](float v) { return std::exp(v); });
      case REGIE_TILE_LN:
        return each([](float v) { return std::log(v); });
      case REGIE_TILE_SQRT:
        return each([](float v) { return std::sqrt(v); });
      case REGIE_TILE_RSQRT:
        return each([](float v) { return 1.0f / std::sqrt(v); });
      case REGIE_TILE_REC:
        return each([](float v) { return 1.0f / v; });
      case REGIE_TILE_ABS:
        return each([](float v) { return std::fabs(v); });
      case REGIE_TILE_NEG:
        return each([](float v) { return -v; });
      case REGIE_TILE_RELU:
        return each([](float v) { return v < 0 ? 0.0f : v; });
      default:
        return;
    }
  } else {
    if (op == REGIE_TILE_ABS) each([&](T v) { return v < 0 ? negative(v) : v; });
    if (op == REGIE_TILE_NEG) each(negative);
    if (op == REGIE_TILE_RELU) each([](T v) { return v < 0 ? 0 : v; });
  }
}

template <class T>
bool holds(uint8_t op, T a, T b) {
  switch (op) {
    case REGIE_TILE_LT:
      return a < b;
    case REGIE_TILE_LE:
      return a <= b;
    case REGIE_TILE_GT:
      return a > b;
    case REGIE_TILE_GE:
      return a >= b;
    case REGIE_TILE_EQ:
      return a == b;
    default:
      return a != b;
  }
}

double rounded(uint8_t how, double v) {
  switch (how) {
    case REGIE_TILE_RINT:
      return std::nearbyint(v);
    case REGIE_TILE_FLOOR:
      return std::floor(v);
    case REGIE_TILE_CEIL:
      return std::ceil(v);
    case REGIE_TILE_TRUNC:
      return std::trunc(v);
    default:
      return std::round(v);
  }
}

template <class Kind>
void cast_run(const typename Kind::Work* from, uint8_t to_type, uint8_t how, uint8_t* to, int64_t n) {
  float floats[kChunk];
  if (to_type == REGIE_TILE_F16 || to_type == REGIE_TILE_F32) {
    for (int64_t i = 0; i < n; ++i) floats[i] = static_cast<float>(from[i]);
    if (to_type == REGIE_TILE_F16)
      floats_to_halves(floats, to, static_cast<size_t>(n));
    else
      std::memcpy(to, floats, static_cast<size_t>(n) * 4);
    return;
  }
  double low = to_type == REGIE_TILE_S32 ? -0x1p31 : to_type == REGIE_TILE_S8 ? -128 : 0;
  double high = to_type == REGIE_TILE_S32 ? 0x1p31 - 1 : to_type == REGIE_TILE_S8 ? 127 : 255;
  for (int64_t i = 0; i < n; ++i) {
    double v = static_cast<double>(from[i]);
    int32_t whole = v != v ? 0 : static_cast<int32_t>(std::clamp(rounded(how, v), low, high));
    std::memcpy(to + i * tile::bytes_of(to_type), &whole, tile::bytes_of(to_type));
  }
}

}  // namespace

void Chip::binary(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  with_type(i.mode[1], [&]<class Kind>(Kind) {
    using T = typename Kind::Work;
    T x[kChunk], y[kChunk], z[kChunk];
    bool mla = i.mode[0] == REGIE_TILE_MLA;
    if (i.mode[2] == REGIE_TILE_BY_SCALAR) std::fill_n(y, kChunk, constant<Kind>(a[2]));
    for (int64_t r2 = 0; r2 < a[8]; ++r2)
      for (int64_t r1 = 0; r1 < a[4]; ++r1) {
        uint8_t* to = ub(a[0] + r1 * a[5] + r2 * a[9]);
        const uint8_t* from = ub(a[1] + r1 * a[6] + r2 * a[10]);
        const uint8_t* second =
            i.mode[2] == REGIE_TILE_BY_SCALAR ? nullptr : ub(a[2] + r1 * a[7] + r2 * a[11]);
        if (i.mode[2] == REGIE_TILE_BY_ROW && a[3]) {
          T one;
          Kind::load(second, &one, 1);
          std::fill_n(y, std::min(kChunk, a[3]), one);
        }
        for (int64_t k = 0; k < a[3]; k += kChunk) {
          int64_t n = std::min(kChunk, a[3] - k);
          Kind::load(from + k * Kind::size, x, n);
          if (i.mode[2] == REGIE_TILE_BY_VECTOR) Kind::load(second + k * Kind::size, y, n);
          if (mla) Kind::load(to + k * Kind::size, z, n);
          combine<T>(i.mode[0], z, x, y, x, n);
          Kind::store(x, to + k * Kind::size, n);
        }
      }
  });
}

void Chip::unary(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  bool bytes_only = i.mode[0] == REGIE_TILE_COPY;
  with_type(i.mode[1], [&]<class Kind>(Kind) {
    typename Kind::Work x[kChunk];
    for (int64_t r2 = 0; r2 < a[6]; ++r2)
      for (int64_t r1 = 0; r1 < a[3]; ++r1) {
        uint8_t* to = ub(a[0] + r1 * a[4] + r2 * a[7]);
        const uint8_t* from = ub(a[1] + r1 * a[5] + r2 * a[8]);
        if (bytes_only) {
          std::memmove(to, from, static_cast<size_t>(a[2] * Kind::size));
          continue;
        }
        for (int64_t k = 0; k < a[2]; k += kChunk) {
          int64_t n = std::min(kChunk, a[2] - k);
          Kind::load(from + k * Kind::size, x, n);
          apply(i.mode[0], x, n);
          Kind::store(x, to + k * Kind::size, n);
        }
      }
  });
}

void Chip::cast(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  int64_t from_size = tile::bytes_of(i.mode[0]), to_size = tile::bytes_of(i.mode[1]);
  for (int64_t r2 = 0; r2 < a[6]; ++r2)
    for (int64_t r1 = 0; r1 < a[3]; ++r1) {
      uint8_t* to = ub(a[0] + r1 * a[4] + r2 * a[7]);
      const uint8_t* from = ub(a[1] + r1 * a[5] + r2 * a[8]);
      for (int64_t k = 0; k < a[2]; k += kChunk) {
        int64_t n = std::min(kChunk, a[2] - k);
        const uint8_t* at = from + k * from_size;
        uint8_t* put = to + k * to_size;
        if (i.mode[0] == REGIE_TILE_S8 || i.mode[0] == REGIE_TILE_U8) {
          int32_t x[kChunk];
          for (int64_t q = 0; q < n; ++q)
            x[q] = i.mode[0] == REGIE_TILE_S8 ? static_cast<int8_t>(at[q]) : static_cast<int32_t>(at[q]);
          cast_run<Int>(x, i.mode[1], i.mode[2], put, n);
          continue;
        }
        with_type(i.mode[0], [&]<class Kind>(Kind) {
          typename Kind::Work x[kChunk];
          Kind::load(at, x, n);
          cast_run<Kind>(x, i.mode[1], i.mode[2], put, n);
        });
      }
    }
}

void Chip::compare(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  with_type(i.mode[1], [&]<class Kind>(Kind) {
    typename Kind::Work x[8], y[8];
    bool scalar = i.mode[2] == REGIE_TILE_BY_SCALAR;
    if (scalar) std::fill_n(y, 8, constant<Kind>(a[2]));
    for (int64_t r2 = 0; r2 < a[8]; ++r2)
      for (int64_t r1 = 0; r1 < a[4]; ++r1)
        for (int64_t k = 0; k < a[3]; k += 8) {
          Kind::load(ub(a[1] + r1 * a[6] + r2 * a[10] + k * Kind::size), x, 8);
          if (!scalar) Kind::load(ub(a[2] + r1 * a[7] + r2 * a[11] + k * Kind::size), y, 8);
          uint8_t bits = 0;
          for (int q = 0; q < 8; ++q) bits |= static_cast<uint8_t>(holds(i.mode[0], x[q], y[q]) << q);
          *ub(a[0] + r1 * a[5] + r2 * a[9] + k / 8) = bits;
        }
  });
}

void Chip::select(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  size_t size = tile::bytes_of(i.mode[0]);
  bool scalar = i.mode[1] == REGIE_TILE_BY_SCALAR;
  uint32_t bits = scalar ? static_cast<uint32_t>(a[3]) : 0;
  if (scalar && i.mode[0] == REGIE_TILE_F16) bits = sdk::half_bits(std::bit_cast<float>(bits));
  for (int64_t r2 = 0; r2 < a[10]; ++r2)
    for (int64_t r1 = 0; r1 < a[5]; ++r1) {
      uint8_t* to = ub(a[0] + r1 * a[6] + r2 * a[11]);
      const uint8_t* mask = ub(a[1] + r1 * a[7] + r2 * a[12]);
      const uint8_t* yes = ub(a[2] + r1 * a[8] + r2 * a[13]);
      const uint8_t* no = scalar ? nullptr : ub(a[3] + r1 * a[9] + r2 * a[14]);
      for (size_t k = 0; k < static_cast<size_t>(a[4]); ++k) {
        bool first = mask[k / 8] >> (k % 8) & 1;
        const void* from = first ? yes + k * size : scalar ? static_cast<const void*>(&bits) : no + k * size;
        std::memmove(to + k * size, from, size);
      }
    }
}

void Chip::reduce(const tile::Concrete& i) {
  const int64_t* a = i.arg;
  with_type(i.mode[1], [&]<class Kind>(Kind) {
    using T = typename Kind::Work;
    T x[kChunk];
    auto join = [op = i.mode[0]](T p, T q) {
      if (op == REGIE_TILE_ROW_MAX) return larger(p, q);
      if (op == REGIE_TILE_ROW_MIN) return smaller(p, q);
      return wrapped(p, q, [](auto s, auto t) { return s + t; });
    };
    for (int64_t r2 = 0; r2 < a[6]; ++r2)
      for (int64_t r1 = 0; r1 < a[3]; ++r1) {
        if (!a[2]) return;
        const uint8_t* from = ub(a[1] + r1 * a[5] + r2 * a[8]);
        T lanes[16];
        int used = 0;  // lanes that hold something
        for (int64_t k = 0; k < a[2]; k += kChunk) {
          int64_t n = std::min(kChunk, a[2] - k);
          Kind::load(from + k * Kind::size, x, n);
          for (int64_t q = 0; q < n; ++q) {
            int lane = static_cast<int>(q % 16);
            lanes[lane] = lane < used ? join(lanes[lane], x[q]) : x[q];
            used = std::max(used, lane + 1);
          }
        }
        for (int apart = 8; apart; apart /= 2)
          for (int lane = 0; lane < apart; ++lane)
            if (lane + apart < used) lanes[lane] = join(lanes[lane], lanes[lane + apart]);
        Kind::store(lanes, ub(a[0] + r1 * a[4] + r2 * a[7]), 1);
      }
  });
}

}  // namespace regie::simulator
