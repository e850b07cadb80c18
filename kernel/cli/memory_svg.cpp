#include "cli/memory_svg.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace regie::cli {

namespace {

constexpr double kWidth = 1200, kHeight = 700, kLeft = 10, kTop = 40;
constexpr size_t kMostBoxes = 20'000;

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", x);
  return text;
}

}  // namespace

std::string memory_svg(const BufferTable& table, const std::vector<uint64_t>& offsets,
                       const SvgFacts& facts) {
  const auto& buffers = table.buffers;
  uint64_t first = UINT64_MAX, last = 0;
  for (const regie_memory_buffer& b : buffers) {
    first = std::min(first, b.lower);
    last = std::max(last, b.upper);
  }
  const double steps = buffers.empty() ? 1 : static_cast<double>(last - first);
  const double bytes = static_cast<double>(std::max<uint64_t>({facts.peak, facts.lower_bound, 1}));
  auto x = [&](uint64_t step) { return kLeft + static_cast<double>(step - first) / steps * kWidth; };
  auto y = [&](uint64_t address) { return kTop + kHeight - static_cast<double>(address) / bytes * kHeight; };

  std::vector<uint32_t> drawn(buffers.size());
  std::iota(drawn.begin(), drawn.end(), 0);
  std::erase_if(drawn, [&](uint32_t i) { return buffers[i].size == 0; });
  std::string note;
  if (drawn.size() > kMostBoxes) {
    auto area = [&](uint32_t i) {
      return static_cast<double>(buffers[i].size) * static_cast<double>(buffers[i].upper - buffers[i].lower);
    };
    std::sort(drawn.begin(), drawn.end(), [&](uint32_t a, uint32_t b) {
      const double x_a = area(a), x_b = area(b);
      return x_a != x_b ? x_a > x_b : a < b;
    });
    note =
        "; the largest " + std::to_string(kMostBoxes) + " of " + std::to_string(drawn.size()) + " are drawn";
    drawn.resize(kMostBoxes);
    std::sort(drawn.begin(), drawn.end());
  }

  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth + 2 * kLeft) +
                    " " + number(kHeight + kTop + 30) + "\" font-family=\"sans-serif\" font-size=\"14\">\n";
  out += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  out += "<text x=\"" + number(kLeft) + "\" y=\"20\">" + std::to_string(buffers.size()) + " buffers, peak " +
         std::to_string(facts.peak) + " bytes, lower bound " + std::to_string(facts.lower_bound) + note +
         "</text>\n";
  out += "<g stroke=\"black\" stroke-width=\"0.3\">\n";
  for (uint32_t i : drawn) {
    const regie_memory_buffer& b = buffers[i];
    const double left = x(b.lower), top = y(offsets[i] + b.size);
    const uint32_t hue = static_cast<uint32_t>(i * uint64_t{137} % 360);
    out += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(x(b.upper) - left) +
           "\" height=\"" + number(y(offsets[i]) - top) + "\" fill=\"hsl(" + std::to_string(hue) +
           ",60%,75%)\"><title>" + escape(table.ids[i]) + ": steps " + std::to_string(b.lower) + " to " +
           std::to_string(b.upper) + ", bytes " + std::to_string(offsets[i]) + " to " +
           std::to_string(offsets[i] + b.size) + "</title></rect>\n";
  }
  out += "</g>\n<line x1=\"" + number(kLeft) + "\" x2=\"" + number(kLeft + kWidth) + "\" y1=\"" +
         number(y(facts.lower_bound)) + "\" y2=\"" + number(y(facts.lower_bound)) +
         "\" stroke=\"red\" stroke-dasharray=\"6 4\"/>\n";
  if (!buffers.empty())
    out += "<text x=\"" + number(kLeft) + "\" y=\"" + number(kTop + kHeight + 20) + "\">step " +
           std::to_string(first) + "</text><text x=\"" + number(kLeft + kWidth) + "\" y=\"" +
           number(kTop + kHeight + 20) + "\" text-anchor=\"end\">step " + std::to_string(last) + "</text>\n";
  return out + "</svg>\n";
}

}  // namespace regie::cli
