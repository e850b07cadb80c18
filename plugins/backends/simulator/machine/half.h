// Halves and floats: exact conversions, to nearest even, by the processor where it can. All ways give the
// same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regie::simulator {

bool has_half_conversions();  // whether the processor has F16C (and AVX, which that needs)
float half_to_float(uint16_t half);
uint16_t float_to_half(float value);
void halves_to_floats(const void* from, float* to, size_t count);  // any alignment of `from`
void floats_to_halves(const float* from, void* to, size_t count);

}  // namespace regie::simulator
