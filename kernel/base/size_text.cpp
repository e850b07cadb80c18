#include "base/size_text.h"

#include <optional>
#include <string>

namespace regie {

namespace {

__extension__ typedef unsigned __int128 Wide;

std::optional<uint64_t> unit_of(std::string_view text) {
  std::string unit;
  for (char c : text) unit += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  if (unit.empty() || unit == "b") return 1;
  const size_t power = std::string_view("kmgt").find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  if (!rest.empty() && rest != "ib" && rest != "b") return std::nullopt;
  uint64_t value = 1;
  for (size_t i = 0; i <= power; ++i) value *= rest == "b" ? 1000 : 1024;
  return value;
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return invalid_input(
        "'" + std::string(text) + "' " + why +
        ": a size is a number of bytes, or one with K, M, G, T, KiB, MiB, GiB or TiB (powers "
        "of 1024) or KB, MB, GB or TB (powers of 1000) behind it, such as 64MiB");
  };
  const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  size_t at = 0;
  Wide whole = 0, part = 0, scale = 1;
  for (; digit(at); ++at) {
    whole = whole * 10 + static_cast<Wide>(text[at] - '0');
    if (whole > UINT64_MAX) return wrong("is too large");
  }
  if (at == 0) return wrong("is no size");
  if (at < text.size() && text[at] == '.') {
    if (!digit(++at)) return wrong("is no size");
    // Digits that no unit makes a byte of are read, and no more.
    for (; digit(at); ++at)
      if (scale < Wide{1'000'000'000'000'000'000}) {
        part = part * 10 + static_cast<Wide>(text[at] - '0');
        scale *= 10;
      }
  }
  if (at < text.size() && text[at] == ' ') ++at;
  const std::optional<uint64_t> unit = unit_of(text.substr(at));
  if (!unit) return wrong("has a unit that is not known");
  if (text.back() == ' ') return wrong("is no size");
  const Wide bytes = whole * *unit + part * *unit / scale;
  if (bytes > UINT64_MAX) return wrong("is too large");
  return static_cast<uint64_t>(bytes);
}

}  // namespace regie
