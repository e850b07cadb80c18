// What a symbolic plan costs away from the shape that it was made for: at random values of the symbols, the
// arenas that the runtime lays out, beside a plan made for that shape alone from the same lives; and how long
// laying out takes. Called by tests/bench/memory_shapes.py.
//
// usage: regie-shape-bench MODEL.rgm COUNT SEED SYMBOL=LOWEST..GREATEST[/MULTIPLE]...
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "model/file.h"
#include "model/layout.h"
#include "support/provider.h"

namespace regie {
namespace {

struct Range {
  std::string name;
  int64_t low, high, multiple;
};

template <class T>
T need(Result<T> r) {
  if (r.ok()) return std::move(r).value();
  std::fprintf(stderr, "%s\n", r.status().to_string().c_str());
  std::exit(2);
}

Range range_of(const std::string& text) {
  char name[64];
  Range r{{}, 0, 0, 1};
  long low = 0, high = 0, multiple = 1;
  if (std::sscanf(text.c_str(), "%63[^=]=%ld..%ld/%ld", name, &low, &high, &multiple) < 3 || low > high ||
      multiple < 1) {
    std::fprintf(stderr, "not SYMBOL=LOWEST..GREATEST[/MULTIPLE]: %s\n", text.c_str());
    std::exit(2);
  }
  return {name, low, high, multiple};
}

// The sum over the spaces of the peak of a plan for these sizes.
uint64_t planned(const test::Provided<regie_memory_table>& planner, const regie_config* options,
                 const Model& m, const Placement& at) {
  uint64_t sum = 0;
  for (uint32_t space = 0; space < at.space_bytes.size(); ++space) {
    std::vector<regie_memory_buffer> buffers;
    for (size_t b = 0; b < m.buffers.size(); ++b)
      if (m.buffers[b].space == space && at.sizes[b])
        buffers.push_back({m.buffers[b].lower, m.buffers[b].upper, at.sizes[b], REGIE_OFFSET_FREE,
                           m.buffers[b].alignment, 0, 0});
    if (buffers.empty()) continue;
    regie_memory_problem p{};
    p.struct_size = sizeof(p);
    p.buffer_count = buffers.size();
    p.buffers = buffers.data();
    p.capacity = UINT64_MAX;
    std::vector<uint64_t> offsets(buffers.size());
    regie_memory_answer answer{};
    const Status s = call_plugin("planner", [&] {
      return planner.table->plan(planner.index, host_table(), options, &p, offsets.data(), &answer);
    });
    if (!s.ok()) {
      std::fprintf(stderr, "%s\n", s.to_string().c_str());
      std::exit(2);
    }
    sum += answer.peak;
  }
  return sum;
}

int run(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr,
                 "usage: regie-shape-bench MODEL.rgm COUNT SEED SYMBOL=LOWEST..GREATEST[/MULTIPLE]...\n");
    return 2;
  }
  const auto model = need(load_model(arguments[1]));
  const int shapes = std::atoi(arguments[2]);
  std::mt19937_64 random(std::strtoull(arguments[3], nullptr, 10));
  const std::vector<int64_t> reference = reference_symbols(*model);
  std::vector<std::pair<size_t, Range>> ranges;
  for (int a = 4; a < count; ++a) {
    const Range r = range_of(arguments[a]);
    size_t at = 0;
    while (at < model->symbols.size() && model->symbols[at].name != r.name) ++at;
    if (at == model->symbols.size()) {
      std::fprintf(stderr, "%s has no symbol %s; it has %s\n", arguments[1], r.name.c_str(),
                   symbols_text(*model, reference).c_str());
      return 2;
    }
    ranges.emplace_back(at, r);
  }
  const test::Provided<regie_memory_table> planner(&PluginHost::memory, "plan-packed");
  const ConfigText fast(std::vector<std::pair<std::string, std::string>>{{"effort", "fast"}});
  double sum = 0, worst = 0, seconds = 0, least = 1e9;
  uint64_t largest = 0;
  for (int i = 0; i < shapes; ++i) {
    std::vector<int64_t> symbols = reference;
    for (const auto& [at, r] : ranges) {
      const int64_t steps = (r.high - r.low) / r.multiple + 1;
      symbols[at] = r.low + static_cast<int64_t>(random() % static_cast<uint64_t>(steps)) * r.multiple;
    }
    const auto start = std::chrono::steady_clock::now();
    const ShapeValues values = need(evaluate_shapes(*model, symbols));
    const Placement placed = need(place_buffers(*model, values));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    uint64_t symbolic = 0;
    for (uint64_t bytes : placed.space_bytes) symbolic += bytes;
    largest = std::max(largest, symbolic);
    const uint64_t fresh = planned(planner, fast.get(), *model, placed);
    const double ratio = fresh ? static_cast<double>(symbolic) / static_cast<double>(fresh) : 1;
    sum += ratio;
    worst = std::max(worst, ratio);
    least = std::min(least, ratio);
  }
  std::printf(
      "%zu buffers, %d shapes: mean %.4f, worst %.4f, best %.4f of a plan of its own, at most %llu bytes; "
      "%.2f us a shape, %.1f us per 1,000 buffers\n",
      model->buffers.size(), shapes, sum / shapes, worst, least,
      static_cast<unsigned long long>(largest), seconds / shapes * 1e6,
      seconds / shapes * 1e9 / static_cast<double>(std::max<size_t>(model->buffers.size(), 1)));
  return worst <= 1.05 ? 0 : 1;
}

}  // namespace
}  // namespace regie

int main(int count, char** arguments) { return regie::run(count, arguments); }
