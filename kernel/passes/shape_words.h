// What stands behind an input's name in --shape and --typical: "1,?,224".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace regie {

// A word an axis; of an empty list none.
std::vector<std::string_view> axis_words(std::string_view list);

// Nothing if the word is not a number of at least 0.
std::optional<int64_t> axis_size(std::string_view word);

}  // namespace regie
