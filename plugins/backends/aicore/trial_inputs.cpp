#include "trial_inputs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "half.h"
#include "regie/graph_view.hpp"
#include "regie/type_view.hpp"

namespace aicore {

namespace {

using regie::sdk::sv;

// The same numbers everywhere: no library's generator.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
  }
  double even() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Mean 0, variance 1: the sum of twelve that are even.
  float normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += even();
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_;
};

// Planes of height x width, what is before them are channels. A tensor of one axis is a row.
struct Planes {
  int64_t channels = 1, height = 1, width = 1;
  explicit Planes(const regie_tensor& t) {
    if (t.rank >= 1) width = t.dims[t.rank - 1];
    if (t.rank >= 2) height = t.dims[t.rank - 2];
    for (int32_t i = 0; i + 2 < t.rank; ++i) channels *= t.dims[i];
  }
};

// Lines of short strokes in the upper part, the same in all channels: 1 where it is dark.
std::vector<bool> strokes(Random& random, int64_t height, int64_t width) {
  std::vector<bool> dark(static_cast<size_t>(height * width));
  const int64_t line = std::clamp<int64_t>(height / 8, 4, 24), tall = std::max<int64_t>(line * 2 / 3, 2);
  const int64_t thick = std::max<int64_t>(tall / 6, 1);
  for (int64_t top = line / 3; top + tall <= std::max(height * 2 / 3, tall); top += line)
    for (int64_t left = line / 2; left < width - line / 2;) {
      // A letter: two or three bars.
      for (int64_t bars = 2 + random.below(2); bars > 0; --bars) {
        const bool upright = random.below(2) != 0;
        const int64_t y = top + random.below(upright ? tall / 4 + 1 : tall - thick + 1);
        const int64_t x = left + random.below(tall / 2);
        const int64_t y_end = std::min(y + (upright ? tall - (y - top) : thick), height);
        const int64_t x_end = std::min(x + (upright ? thick : tall / 2), width);
        for (int64_t i = y; i < y_end; ++i)
          for (int64_t j = x; j < x_end; ++j) dark[static_cast<size_t>(i * width + j)] = true;
      }
      left += tall * (random.below(6) == 0 ? 2 : 1);
    }
  return dark;
}

// White and black of a picture whose mean and deviation were taken out by the usual numbers.
void draw_page(Random& random, const Planes& p, std::vector<float>& to) {
  const std::vector<bool> dark = strokes(random, p.height, p.width);
  for (int64_t c = 0, k = 0; c < p.channels; ++c) {
    const float white = 2.25f + 0.19f * static_cast<float>(c % 3),
                black = -2.1f + 0.1f * static_cast<float>(c % 3);
    for (int64_t y = 0; y < p.height; ++y)
      for (int64_t x = 0; x < p.width; ++x, ++k) {
        // The lower half is shaded.
        const float shade =
            std::max(0.0f, static_cast<float>(2 * y - p.height) / static_cast<float>(p.height));
        to[static_cast<size_t>(k)] =
            dark[static_cast<size_t>(y * p.width + x)] ? black : white - 0.3f * shade;
      }
  }
}

void draw_picture(Random& random, const Planes& p, std::vector<float>& to) {
  const double turn = 6.283185307179586;
  for (int64_t c = 0, k = 0; c < p.channels; ++c) {
    double wave[3][3];
    for (auto& w : wave)
      for (double& part : w) part = random.even();
    const int64_t top = random.below(p.height), left = random.below(p.width);
    for (int64_t y = 0; y < p.height; ++y)
      for (int64_t x = 0; x < p.width; ++x, ++k) {
        double v = 0.5;
        for (const auto& w : wave)
          v += 0.2 *
               std::cos(turn * (3 * w[0] * static_cast<double>(y) / static_cast<double>(p.height) +
                                3 * w[1] * static_cast<double>(x) / static_cast<double>(p.width) + w[2]));
        if (y >= top && x >= left) v = 1 - v;
        to[static_cast<size_t>(k)] =
            static_cast<float>(std::clamp(v + 0.04 * (random.even() - 0.5), 0.0, 1.0));
      }
  }
}

std::vector<float> numbers(Random& random, TrialInputs kind, const regie_tensor& t) {
  std::vector<float> values(regie::sdk::count_of(t));
  switch (kind) {
    case TrialInputs::kNoise:
      for (float& v : values) v = random.normal();
      break;
    case TrialInputs::kPage:
      draw_page(random, Planes(t), values);
      break;
    case TrialInputs::kPicture:
      draw_picture(random, Planes(t), values);
      break;
    case TrialInputs::kFlat:
      for (float& v : values) v = 0.02f + 0.002f * random.normal();
  }
  return values;
}

// Rows of the table that the argument picks from; 2 where it picks from none.
int64_t rows_for(const regie_graph& graph, const regie_value& v) {
  for (uint32_t u = 0; u < v.use_count; ++u) {
    if (v.uses[u].node & REGIE_USE_REGION || v.uses[u].operand != 1) continue;
    const regie_node& n = graph.nodes[v.uses[u].node];
    if (sv(n.op) != "Gather") continue;
    const regie_type& table = graph.values[n.operands[0]].type;
    const int64_t axis = regie::sdk::Attrs(n).integer("axis", 0);
    if (axis >= 0 && axis < table.rank && table.dims[axis] > 0) return table.dims[axis];
  }
  return 2;
}

// Noise: any. A page: few, then always the first one, as what is filled up. A picture: any, nothing masked.
// Flat: the first half is not masked.
int64_t whole(Random& random, TrialInputs kind, int64_t rows, int64_t at, int64_t width) {
  const int64_t any = random.below(rows);
  const bool first_half = at % width < (width + 1) / 2;
  switch (kind) {
    case TrialInputs::kPage:
      return rows == 2 ? 1 : at % width < (width + 3) / 4 ? any : 0;
    case TrialInputs::kPicture:
      return rows == 2 ? 1 : any;
    case TrialInputs::kFlat:
      return rows == 2 ? first_half : any;
    default:
      return any;
  }
}

template <class T>
void draw_whole(Random& random, TrialInputs kind, int64_t rows, const regie_tensor& t) {
  const int64_t width = t.rank ? std::max<int64_t>(t.dims[t.rank - 1], 1) : 1;
  const auto count = static_cast<int64_t>(regie::sdk::count_of(t));
  for (int64_t k = 0; k < count; ++k)
    static_cast<T*>(t.data)[k] = static_cast<T>(whole(random, kind, rows, k, width));
}

}  // namespace

const char* name_of(TrialInputs kind) {
  switch (kind) {
    case TrialInputs::kPage:
      return "a page";
    case TrialInputs::kPicture:
      return "a picture";
    case TrialInputs::kFlat:
      return "a flat one";
    default:
      return "noise";
  }
}

bool draw_input(const regie_graph& graph, uint32_t index, TrialInputs kind, const regie_tensor& t) {
  Random random(7 + 1000 * static_cast<uint64_t>(kind) + index);
  const regie_value& v = graph.values[graph.regions[0].args[index]];
  const int64_t rows = rows_for(graph, v);
  switch (t.elem) {
    case REGIE_F32: {
      const std::vector<float> values = numbers(random, kind, t);
      std::copy(values.begin(), values.end(), static_cast<float*>(t.data));
      return true;
    }
    case REGIE_F16: {
      const std::vector<float> values = numbers(random, kind, t);
      std::transform(values.begin(), values.end(), static_cast<uint16_t*>(t.data), to_half);
      return true;
    }
    case REGIE_I64:
      draw_whole<int64_t>(random, kind, rows, t);
      return true;
    case REGIE_I32:
      draw_whole<int32_t>(random, kind, rows, t);
      return true;
    case REGIE_BOOL:
      draw_whole<uint8_t>(random, kind, 2, t);
      return true;
    case REGIE_I8:
    case REGIE_U8:
      draw_whole<uint8_t>(random, kind, 256, t);
      return true;
    default:
      return false;
  }
}

}  // namespace aicore
