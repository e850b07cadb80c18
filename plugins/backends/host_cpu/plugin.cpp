// host_cpu: the computer itself as an engine and a device.

#include <string_view>

#include "code_pool.h"
#include "regie/plugin.hpp"
#include "tables.h"

namespace {
const void* find(const char* id) {
  const std::string_view wanted = id;
  if (wanted == REGIE_ENGINE_ID) return &host_cpu::engine_table;
  if (wanted == REGIE_DEVICE_ID) {
    // While the library is opened, which may be ahead, rather than by the first device: it changes
    // protections, for which every thread of the process stands still.
    host_cpu::pool_generated_code();
    return &host_cpu::device_table;
  }
  return nullptr;
}
}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
