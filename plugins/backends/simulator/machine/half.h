// Many halves and floats at once, by the processor where it can; the same bits as regie/half.hpp gives one by
// one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regie::simulator {

bool has_half_conversions();  // whether the processor has F16C (and AVX, which that needs)
void halves_to_floats(const void* from, float* to, size_t count);  // any alignment of `from`
void floats_to_halves(const float* from, void* to, size_t count);

}  // namespace regie::simulator
