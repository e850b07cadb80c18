// The entry of the plug-in.
#include <string_view>

#include "regie/plugin.hpp"
#include "tables.h"

namespace {

const void* find(const char* id) {
  const std::string_view wanted = id;
  if (wanted == REGIE_DEVICE_ID) return &regie::simulator::device_table;
  if (wanted == REGIE_DEVICE_TRACE_ID) return &regie::simulator::trace_table;
  return nullptr;
}

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
