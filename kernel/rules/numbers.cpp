#include "rules/numbers.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace regie {
namespace {

double half_to_double(uint16_t h) {
  int exponent = (h >> 10) & 31;
  int mantissa = h & 1023;
  double magnitude;
  if (exponent == 31)
    magnitude = mantissa ? std::nan("") : HUGE_VAL;
  else if (exponent == 0)
    magnitude = std::ldexp(mantissa, -24);
  else
    magnitude = std::ldexp(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

uint16_t double_to_half(double d) {
  uint16_t sign = std::signbit(d) ? 0x8000 : 0;
  double a = std::fabs(d);
  if (std::isnan(a)) return sign | 0x7e00;
  if (a >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(a, &exponent);
  if (a == 0 || exponent < -13)
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(a, 24))));
  auto mantissa = static_cast<uint32_t>(std::nearbyint(std::ldexp(a, 11 - exponent)));  // 1024..2048
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + mantissa));
}

double bf16_to_double(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

uint16_t double_to_bf16(double d) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(d));
  if (std::isnan(d)) return static_cast<uint16_t>((bits >> 16) | 64);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T>
T load(const regie_tensor& t, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(t.data) + i * static_cast<int64_t>(sizeof(T)), sizeof v);
  return v;
}
template <class T>
void store(Tensor& t, int64_t i, T v) {
  std::memcpy(static_cast<char*>(t.mutable_data()) + i * static_cast<int64_t>(sizeof(T)), &v, sizeof v);
}

}  // namespace

bool is_float(regie_elem e) { return e == REGIE_F32 || e == REGIE_F64 || e == REGIE_F16 || e == REGIE_BF16; }

bool is_integer(regie_elem e) {
  switch (e) {
    case REGIE_I8:
    case REGIE_U8:
    case REGIE_I16:
    case REGIE_U16:
    case REGIE_I32:
    case REGIE_U32:
    case REGIE_I64:
    case REGIE_U64:
      return true;
    default:
      return false;
  }
}

std::optional<int64_t> integer_at(const regie_tensor& t, int64_t i) {
  if (!t.data) return std::nullopt;
  switch (t.elem) {
    case REGIE_BOOL:
      return load<uint8_t>(t, i) != 0;
    case REGIE_I8:
      return load<int8_t>(t, i);
    case REGIE_U8:
      return load<uint8_t>(t, i);
    case REGIE_I16:
      return load<int16_t>(t, i);
    case REGIE_U16:
      return load<uint16_t>(t, i);
    case REGIE_I32:
      return load<int32_t>(t, i);
    case REGIE_U32:
      return load<uint32_t>(t, i);
    case REGIE_I64:
      return load<int64_t>(t, i);
    case REGIE_U64:
      return static_cast<int64_t>(load<uint64_t>(t, i));
    default:
      return std::nullopt;
  }
}

std::optional<double> number_at(const regie_tensor& t, int64_t i) {
  if (!t.data) return std::nullopt;
  switch (t.elem) {
    case REGIE_F32:
      return load<float>(t, i);
    case REGIE_F64:
      return load<double>(t, i);
    case REGIE_F16:
      return half_to_double(load<uint16_t>(t, i));
    case REGIE_BF16:
      return bf16_to_double(load<uint16_t>(t, i));
    default:
      break;
  }
  if (auto n = integer_at(t, i)) return static_cast<double>(*n);
  return std::nullopt;
}

std::optional<double> splat_of(const Graph& graph, uint32_t value) {
  const regie_tensor* t = graph.is_constant(value) ? graph.value(value).data : nullptr;
  if (!t || !t->data) return std::nullopt;
  const int64_t n = element_count({t->dims, static_cast<size_t>(t->rank)});
  auto first = n > 0 ? number_at(*t, 0) : std::nullopt;
  for (int64_t i = 1; first && i < n; ++i)
    if (number_at(*t, i) != first) return std::nullopt;
  return first;
}

bool set_number(Tensor& t, int64_t i, double d) {
  switch (t.elem()) {
    case REGIE_F32:
      store(t, i, static_cast<float>(d));
      return true;
    case REGIE_F64:
      store(t, i, d);
      return true;
    case REGIE_F16:
      store(t, i, double_to_half(d));
      return true;
    case REGIE_BF16:
      store(t, i, double_to_bf16(d));
      return true;
    case REGIE_BOOL:
      store(t, i, static_cast<uint8_t>(d != 0));
      return true;
    default:
      break;
  }
  if (!is_integer(t.elem())) return false;
  auto n = static_cast<int64_t>(std::nearbyint(d));
  switch (elem_bits(t.elem())) {
    case 8:
      store(t, i, static_cast<int8_t>(n));
      return true;
    case 16:
      store(t, i, static_cast<int16_t>(n));
      return true;
    case 32:
      store(t, i, static_cast<int32_t>(n));
      return true;
    default:
      store(t, i, n);
      return true;
  }
}

}  // namespace regie
