// Kernels of the format "regie.tile/1": programs of the AI Cores, which tile_machine.h runs and times.
#pragma once

#include "kernels.h"

namespace regie::simulator {

// Throws Failure: CORRUPT for what is no sound program, UNSUPPORTED for one that needs more than the target
// has.
std::unique_ptr<LoadedKernel> load_tile_kernel(const Settings& settings, const regie_kernel_image& image);

}  // namespace regie::simulator
