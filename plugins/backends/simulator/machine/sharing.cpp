// What cores read in common: where a buffer is larger than the cache, a byte comes from the memory again for
// each time that it is read, but once for all cores that go over it together, as cores of one program do.
#include <algorithm>

#include "regie/tile/codec.h"
#include "regie/tile/stream.h"
#include "tile_machine.h"

namespace regie::simulator {

namespace {

constexpr int64_t kPage = 4096;

// Pages that one core reads of one buffer.
class Pages {
 public:
  explicit Pages(uint64_t bytes) : read_((bytes + kPage - 1) / kPage) {}
  void run(int64_t at, int64_t bytes) {
    const int64_t end = std::min<int64_t>(up(at + bytes), static_cast<int64_t>(read_.size()));
    for (int64_t p = std::max<int64_t>(at, 0) / kPage; p < end; ++p) read_[static_cast<size_t>(p)] = true;
  }
  const std::vector<bool>& read() const { return read_; }

 private:
  static int64_t up(int64_t bytes) { return (bytes + kPage - 1) / kPage; }
  std::vector<bool> read_;
};

// The runs of a copy, those that lie within a page joined.
void mark(const tile::Concrete& i, Pages& pages) {
  const int64_t* a = i.arg;
  struct Repeat {
    int64_t count, stride;
  } repeats[] = {{a[3], a[5]}, {a[6], a[8]}, {a[9], a[11]}};
  int64_t bytes = a[2];
  if (bytes <= 0) return;
  for (const Repeat& r : repeats)
    if (r.count <= 0) return;
  std::sort(std::begin(repeats), std::end(repeats),
            [](const Repeat& x, const Repeat& y) { return x.stride < y.stride; });
  for (Repeat& r : repeats)
    if (r.count > 1 && r.stride >= 0 && r.stride <= std::max(bytes, kPage)) {
      bytes += (r.count - 1) * r.stride;
      r.count = 1;
    }
  for (int64_t x = 0; x < repeats[2].count; ++x)
    for (int64_t y = 0; y < repeats[1].count; ++y)
      for (int64_t z = 0; z < repeats[0].count; ++z)
        pages.run(a[1] + x * repeats[2].stride + y * repeats[1].stride + z * repeats[0].stride, bytes);
}

}  // namespace

std::vector<double> readers_in_common(const tile::Program& program, const std::vector<bool>& asked) {
  std::vector<double> common(program.gm.size(), 1);
  if (std::find(asked.begin(), asked.end(), true) == asked.end()) return common;
  const tile::Plan plan(program);
  std::vector<std::vector<bool>> together(program.gm.size());
  std::vector<double> apart(program.gm.size(), 0);
  for (uint32_t core = 0; core < program.cores; ++core) {
    std::vector<Pages> pages;
    for (size_t b = 0; b < program.gm.size(); ++b) pages.emplace_back(asked[b] ? program.gm[b].bytes : 0);
    tile::Stream stream(plan, core, tile::VerifyOptions{}.instruction_budget);
    tile::Concrete i;
    while (stream.next(i) == tile::Stream::Result::instruction) {
      if (i.op != REGIE_TILE_OP_COPY || i.mode[1] < REGIE_TILE_GM) continue;
      const size_t b = i.mode[1] - REGIE_TILE_GM;
      if (asked[b]) mark(i, pages[b]);
    }
    for (size_t b = 0; b < program.gm.size(); ++b) {
      const std::vector<bool>& mine = pages[b].read();
      together[b].resize(mine.size());
      for (size_t p = 0; p < mine.size(); ++p)
        if (mine[p]) {
          together[b][p] = true;
          ++apart[b];
        }
    }
  }
  for (size_t b = 0; b < program.gm.size(); ++b) {
    const auto all = static_cast<double>(std::count(together[b].begin(), together[b].end(), true));
    if (all > 0) common[b] = apart[b] / all;
  }
  return common;
}

}  // namespace regie::simulator
