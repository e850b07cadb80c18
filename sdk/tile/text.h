// What assembler and disassembler share: which argument is a constant rather than an address, and how it is
// written.
#pragma once

#include <array>
#include <cstdint>

namespace regie::tile {

int scalar_arg(uint16_t op, const std::array<uint8_t, 4>& mode);  // -1: none
bool scalar_is_float(uint16_t op, const std::array<uint8_t, 4>& mode);

}  // namespace regie::tile
