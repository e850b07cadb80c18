#include "chip.h"

#include <algorithm>

#include "regie/tile/hand_written.h"

namespace aicore {

Chip::Chip(const regie::sdk::Accelerator& a) : hardware(a) {
  cores = static_cast<uint32_t>(std::min<double>(a.core_count, REGIE_TILE_MAX_CORES));
  sizes = regie::tile::on_chip_of(a);
}

double Chip::read_rate(int64_t running) const {
  const double memory =
      hardware.memory_bytes_per_ns * 1000 / hardware.core_mhz / static_cast<double>(running);
  return std::min(hardware.l2_read, memory);
}

double Chip::write_rate(int64_t running) const {
  const double memory =
      hardware.memory_bytes_per_ns * 1000 / hardware.core_mhz / static_cast<double>(running);
  return std::min(hardware.l2_write, memory);
}

double PipeCycles::longest() const { return *std::max_element(busy.begin(), busy.end()); }

double PipeCycles::sum() const {
  double all = 0;
  for (double b : busy) all += b;
  return all;
}

std::vector<Share> spread(const std::vector<int64_t>& sizes, int64_t cores) {
  std::vector<Share> best, now(sizes.size());
  double least = 0;
  auto visit = [&](auto&& self, size_t d, int64_t left, double turns) -> void {
    if (d == sizes.size()) {
      if (!best.empty() && turns >= least) return;
      least = turns;
      best = now;
      return;
    }
    // Of parts that leave as many turns, the fewest.
    for (int64_t parts = 1; parts <= std::min(left, sizes[d]); ++parts) {
      const int64_t each = up(sizes[d], parts);
      if (up(sizes[d], each) != parts) continue;
      now[d] = {parts, each};
      self(self, d + 1, left / parts, turns * static_cast<double>(each));
    }
  };
  visit(visit, 0, cores, 1);
  return best;
}

int64_t cores_of(const std::vector<Share>& shares) {
  int64_t n = 1;
  for (const Share& s : shares) n *= s.parts;
  return n;
}

double turns_of(const std::vector<Share>& shares) {
  double n = 1;
  for (const Share& s : shares) n *= static_cast<double>(s.turns);
  return n;
}

double overlapped(const PipeCycles& turn, double turns) {
  return turns <= 0 ? 0 : turn.sum() + (turns - 1) * turn.longest();
}

}  // namespace aicore
