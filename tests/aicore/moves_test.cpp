// Slices with steps and along several axes, and maps resized by interpolation, against their definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "node.h"

namespace aicore::test {
namespace {

TEST(Aicore, SlicesWithSteps) {
  for_seeds(120, 71000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = pick(random, 0, 2) == 0 ? REGIE_F16 : REGIE_F32;
    const int64_t rank = pick(random, 1, 5);
    std::vector<int64_t> dims, out, starts, ends, axes, steps;
    for (int64_t d = 0; d < rank; ++d)
      dims.push_back(pick(random, 1, rank < 3 ? 300 : d + 1 == rank ? 60 : 9));
    out = dims;
    std::vector<int64_t> first(dims.size(), 0), step(dims.size(), 1);
    for (size_t d = 0; d < dims.size(); ++d) {
      if (pick(random, 0, 2) == 0) continue;
      first[d] = pick(random, 0, dims[d] - 1);
      step[d] = pick(random, 1, 4);
      const int64_t end = pick(random, first[d] + 1, dims[d]);
      out[d] = (end - first[d] + step[d] - 1) / step[d];
      const bool from_end = pick(random, 0, 1);
      starts.push_back(from_end ? first[d] - dims[d] : first[d]);
      // Beyond the axis is its end.
      ends.push_back(end == dims[d] ? 1000000 : end);
      axes.push_back(pick(random, 0, 1) ? static_cast<int64_t>(d) : static_cast<int64_t>(d) - rank);
      steps.push_back(step[d]);
    }
    if (starts.empty()) return;
    const Array x = random_array(random, dims);
    std::vector<double> expected;
    int64_t count = 1;
    for (int64_t d : out) count *= d;
    for (int64_t flat = 0; flat < count; ++flat) {
      int64_t rest = flat, from = 0, stride = 1;
      for (size_t d = dims.size(); d-- > 0; rest /= out[d], stride *= dims[d])
        from += (first[d] + rest % out[d] * step[d]) * stride;
      expected.push_back(x.values[static_cast<size_t>(from)]);
    }
    Node node("Slice", elem);
    node.operand(x).integers(starts).integers(ends).integers(axes).integers(steps).result(out);
    std::ostringstream words;
    words << "seed " << seed;
    for (int64_t d : dims) words << ' ' << d;
    SCOPED_TRACE(words.str());
    check(node, chip, expected, 0);
  });
}

TEST(Aicore, GathersByConstantIndices) {
  for_seeds(80, 72000, [](uint64_t seed, Random& random) {
    const Chip chip = any_chip(random);
    const regie_elem elem = pick(random, 0, 2) == 0 ? REGIE_F16 : REGIE_F32;
    const int64_t rank = pick(random, 1, 4), axis = pick(random, 0, rank - 1);
    std::vector<int64_t> dims, out;
    for (int64_t d = 0; d < rank; ++d) dims.push_back(pick(random, 1, d + 1 == rank ? 200 : 8));
    const int64_t size = dims[static_cast<size_t>(axis)];
    std::vector<int64_t> indices;
    for (int64_t i = pick(random, 1, 20); i > 0; --i) {
      // Neighbours, repetitions, jumps; from either end.
      const int64_t last = indices.empty() ? 0 : (indices.back() + size) % size;
      const int64_t at = pick(random, 0, 1) && last + 1 < size ? last + 1 : pick(random, 0, size - 1);
      indices.push_back(pick(random, 0, 2) ? at : at - size);
    }
    out = dims;
    out[static_cast<size_t>(axis)] = std::ssize(indices);
    const Array x = random_array(random, dims);
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < axis; ++d) outer *= dims[static_cast<size_t>(d)];
    for (int64_t d = axis + 1; d < rank; ++d) inner *= dims[static_cast<size_t>(d)];
    std::vector<double> expected;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t at : indices)
        for (int64_t i = 0; i < inner; ++i)
          expected.push_back(x.values[static_cast<size_t>((o * size + (at + size) % size) * inner + i)]);
    Node node("Gather", elem);
    node.operand(x).integers(indices).result(out);
    node.attr("axis", pick(random, 0, 1) ? axis : axis - rank);
    std::ostringstream words;
    words << "seed " << seed << " axis " << axis;
    for (int64_t d : dims) words << ' ' << d;
    SCOPED_TRACE(words.str());
    check(node, chip, expected, 0);
  });
}

// One element of the result, straight from the definition: weights of a tap are those of its distance from
// the place in the operand.
double kernel(bool cubic, double a, double distance) {
  const double d = std::abs(distance);
  if (!cubic) return d < 1 ? 1 - d : 0;
  if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}
double place(const std::string& mode, int64_t i, int64_t in, int64_t out) {
  const double scale = static_cast<double>(out) / static_cast<double>(in);
  if (mode == "asymmetric") return static_cast<double>(i) / scale;
  if (mode == "align_corners")
    return out == 1 ? 0 : static_cast<double>(i * (in - 1)) / static_cast<double>(out - 1);
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  return (static_cast<double>(i) + 0.5) / scale - 0.5;
}

TEST(Aicore, Interpolation) {
  Tally tally;
  const char* modes[] = {"asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"};
  for_seeds(80, 73000, [&](uint64_t seed, Random& random) {
    Chip chip = any_chip(random);
    chip.two_halves = seed % 3 == 0;
    const regie_elem elem = pick(random, 0, 2) == 0 ? REGIE_F16 : REGIE_F32;
    const bool cubic = seed % 4 == 0, inside = cubic && pick(random, 0, 1);
    const std::string mode = modes[seed % 5 % 4];
    const std::vector<int64_t> dims{pick(random, 1, 2), pick(random, 1, 12), pick(random, 1, 40),
                                    pick(random, 1, 40)};
    std::vector<int64_t> out = dims;
    for (size_t d : {size_t{2}, size_t{3}})
      if (pick(random, 0, 4)) out[d] = pick(random, 1, pick(random, 0, 3) ? 90 : 300);
    const Array x = random_array(random, dims);
    std::vector<double> expected;
    for (int64_t p = 0; p < dims[0] * dims[1]; ++p)
      for (int64_t i = 0; i < out[2]; ++i)
        for (int64_t j = 0; j < out[3]; ++j) {
          const double v = place(mode, i, dims[2], out[2]), u = place(mode, j, dims[3], out[3]);
          double sum = 0, all = 0;
          const auto reach = [&](double at, int64_t k) { return static_cast<int64_t>(std::floor(at)) + k; };
          for (int64_t a = -1; a <= 2; ++a)
            for (int64_t b = -1; b <= 2; ++b) {
              const int64_t row = reach(v, a), column = reach(u, b);
              const double weight = kernel(cubic, -0.75, v - static_cast<double>(row)) *
                                    kernel(cubic, -0.75, u - static_cast<double>(column));
              const bool there = row >= 0 && row < dims[2] && column >= 0 && column < dims[3];
              if (inside && !there) continue;
              const int64_t r = std::clamp<int64_t>(row, 0, dims[2] - 1),
                            c = std::clamp<int64_t>(column, 0, dims[3] - 1);
              sum += weight * x.values[static_cast<size_t>((p * dims[2] + r) * dims[3] + c)];
              all += weight;
            }
          expected.push_back(inside ? sum / all : sum);
        }
    Node node("Resize", elem);
    node.operand(x).absent().absent().integers(out).result(out);
    node.attr("coordinate_transformation_mode", mode.c_str()).attr("mode", cubic ? "cubic" : "linear");
    if (inside) node.attr("exclude_outside", int64_t{1});
    std::ostringstream words;
    words << (cubic ? "cubic " : "linear ") << mode << (inside ? " inside" : "") << " seed " << seed;
    for (int64_t d : dims) words << ' ' << d;
    words << " to " << out[2] << ' ' << out[3];
    SCOPED_TRACE(words.str());
    tally.check(node, chip, expected, 2e-3);
  });
  tally.finish("interpolation");
}

}  // namespace
}  // namespace aicore::test
