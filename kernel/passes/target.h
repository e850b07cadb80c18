// Targets: which devices there are, which engines compile for them, in which order of priority, and what a
// transfer between them costs. TOML in configs/targets; naming another one at deploy time swaps the hardware.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "plugins/host.h"

namespace regie {

using Params = std::vector<std::pair<std::string, std::string>>;

struct TargetDevice {
  std::string name, plugin;
  Params params;
  uint64_t alignment = 64;  // of every buffer in its memory, bytes: as its device says when a model is loaded
};

struct TargetEngine {
  std::string name, plugin;
  uint32_t device = 0;  // index into devices
  Params params;        // the device's, overridden by the engine's own
};

struct Target {
  std::string name, doc, path;
  std::vector<TargetDevice> devices;
  std::vector<TargetEngine> engines;        // in order of priority
  uint32_t host_device = 0;                 // where inputs, outputs and control flow live: memory space 0
  double latency_ns = 0, bytes_per_ns = 1;  // of a copy between memory spaces
  double sync_ns = 0;                       // of an event between two engines of one device
  // Memory spaces: 0 is the host's, then one for each further device. Space of device d:
  uint32_t space_of(uint32_t device) const {
    return device == host_device ? 0 : device < host_device ? device + 1 : device;
  }
  uint32_t device_of(uint32_t space) const;
};

// `settings`: those of an engine of the target, {"aicore.operands", "f16"}, are in the place of what it says.
Result<Target> load_target(const PluginHost& host, std::string_view name_or_path,
                           const Params& settings = {});

}  // namespace regie
