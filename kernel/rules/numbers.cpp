#include "rules/numbers.h"

#include <cmath>
#include <cstring>

#include "regie/half.hpp"

namespace regie {
namespace {

// From the double at once: rounded twice, by way of a float, it may be another.
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
      return sdk::half_value(load<uint16_t>(t, i));
    case REGIE_BF16:
      return sdk::bfloat_value(load<uint16_t>(t, i));
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
      store(t, i, sdk::bfloat_bits(static_cast<float>(d)));
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
