// The plug-ins that are linked into this binary: a table that the build writes.
//
// It is empty unless the build says REGIE_STATIC_PLUGINS. The loader reads it first, so that a statically
// linked binary and one with shared objects differ in nothing else. The table is constant data without
// constructors.
#pragma once

#include <cstddef>

extern "C" {

struct regie_static_plugin {
  const char* manifest_toml;  // the text that NAME.toml would have
  const void* entry;          // the address of the plug-in's regie_plugin_entry
};

extern const regie_static_plugin* const regie_static_plugins;
extern const std::size_t regie_static_plugin_count;
}
