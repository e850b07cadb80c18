#include "numeric.h"

#include <array>

namespace regie::ops {

namespace {
struct ElemFacts {
  std::string_view name;
  uint8_t size;
};
constexpr std::array<ElemFacts, 27> facts{
    {{"?", 0},          {"f32", 4},    {"u8", 1},         {"i8", 1},    {"u16", 2},  {"i16", 2},
     {"i32", 4},        {"i64", 8},    {"string", 0},     {"bool", 1},  {"f16", 2},  {"f64", 8},
     {"u32", 4},        {"u64", 8},    {"c64", 8},        {"c128", 16}, {"bf16", 2}, {"f8e4m3fn", 1},
     {"f8e4m3fnuz", 1}, {"f8e5m2", 1}, {"f8e5m2fnuz", 1}, {"u4", 0},    {"i4", 0},   {"f4e2m1", 0},
     {"f8e8m0", 1},     {"u2", 0},     {"i2", 0}}};
}  // namespace

std::string_view elem_name(regie_elem elem) { return facts[elem < facts.size() ? elem : 0].name; }
uint32_t elem_size(regie_elem elem) { return facts[elem < facts.size() ? elem : 0].size; }

}  // namespace regie::ops
