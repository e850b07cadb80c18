// The AI Core machine of a target: the device runs kernels on it, and tests of engines run what they
// compiled.
#pragma once

#include <algorithm>
#include <cstdint>

#include "regie/accelerator.hpp"
#include "tile_machine.h"

namespace regie::simulator {

inline TileMachine machine_of(const sdk::Accelerator& h) {
  TileMachine m;
  m.cores = static_cast<uint32_t>(h.core_count);
  const auto size = [](double bytes) { return static_cast<uint32_t>(std::min(bytes, 4294967295.0)); };
  m.chip.l1 = size(h.l1_bytes);
  m.chip.l0a = size(h.l0a_bytes);
  m.chip.l0b = size(h.l0b_bytes);
  m.chip.l0c = size(h.l0c_bytes);
  m.chip.ub = size(h.ub_bytes);
  m.clock_ghz = h.core_mhz / 1000;
  m.l1_to_l0a = h.l1_to_l0a;
  m.l1_to_l0b = h.l1_to_l0b;
  m.l1_to_ub = h.l1_to_ub;
  m.l0c_to_ub = h.l0c_to_ub;
  m.ub_to_l1 = h.ub_to_l1;
  m.vector_bytes = h.vector_bytes;
  m.vector_units = h.vector_units;
  m.cube_efficiency = h.cube_efficiency;
  m.vector_efficiency = h.vector_efficiency;
  m.slow_passes = h.slow_passes;
  m.startup = {h.load_start, h.move_start, h.cube_start, h.vector_start, h.store_start};
  m.flag_cycles = h.flag_cycles;
  m.barrier_cycles = h.barrier_cycles;
  return m;
}

}  // namespace regie::simulator
