// Sizes as people write them: "4096", "64MiB", "4MB", "1.5g".
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace regie {

// Bytes. A number alone is bytes, as is B; K, M, G, T and KiB, MiB, GiB, TiB count by 1024; KB, MB, GB, TB by
// 1000; letters in any case, one space before them. A fraction is rounded down to whole bytes. INVALID_INPUT
// says what a size is.
Result<uint64_t> parse_size(std::string_view text);

}  // namespace regie
