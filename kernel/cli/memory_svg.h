// A memory plan as a picture: time from left to right, addresses from the bottom to the top, a box a buffer.
#pragma once

#include <string>

#include "cli/buffers_csv.h"

namespace regie::cli {

struct SvgFacts {
  uint64_t peak = 0, lower_bound = 0;
};

// Of very many buffers only the largest are drawn, and the picture says so.
std::string memory_svg(const BufferTable& table, const std::vector<uint64_t>& offsets, const SvgFacts& facts);

}  // namespace regie::cli
