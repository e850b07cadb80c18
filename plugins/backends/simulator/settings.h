// What a target file tells the simulated device: its hardware, and how it is to be simulated.
#pragma once

#include "regie/accelerator.hpp"

namespace regie::simulator {

struct Settings {
  sdk::Accelerator hardware;
  bool sink = false;     // `mode`: the host hands over whatever lies between two waits at once
  bool numerics = true;  // `numerics`: off: time alone, results are not computed
  uint64_t wait_timeout_ns = 60'000'000'000;  // of real time
};
// Throws Failure(INVALID_INPUT) for a key or value that it does not know.
Settings read_settings(const regie_config* params);

}  // namespace regie::simulator
