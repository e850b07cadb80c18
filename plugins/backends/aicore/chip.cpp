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

double overlapped(const PipeCycles& turn, double turns) {
  return turns <= 0 ? 0 : turn.sum() + (turns - 1) * turn.longest();
}

}  // namespace aicore
