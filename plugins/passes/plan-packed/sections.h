// Time, cut down: of all stretches between two events only those matter that begin with a start and end with
// an end, because the live set of every other one is part of a neighbour's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace packed {

struct Life {
  uint64_t lower, upper;  // lower < upper
};

struct Sections {
  uint32_t count = 0;
  std::vector<uint32_t> begin, end;  // by life: never empty
};

Sections cut_sections(std::span<const Life> lives);

}  // namespace packed
