#include <string_view>

#include "regie/plugin.hpp"
#include "tables.h"

namespace {
const void* find(const char* id) {
  return std::string_view(id) == REGIE_ENGINE_ID ? &aicore::engine_table : nullptr;
}
}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
