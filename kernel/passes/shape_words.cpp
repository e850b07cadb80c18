#include "passes/shape_words.h"

#include <algorithm>
#include <charconv>

namespace regie {

std::vector<std::string_view> axis_words(std::string_view list) {
  std::vector<std::string_view> words;
  for (size_t at = 0; !list.empty() && at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

std::optional<int64_t> axis_size(std::string_view word) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
  if (error != std::errc() || end != word.data() + word.size() || size < 0) return std::nullopt;
  return size;
}

}  // namespace regie
