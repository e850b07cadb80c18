// A plug-in's file, looked at before it is opened. Opening a file that is no shared object of this machine,
// is cut short, or needs a sanitizer that this process lacks can end the process; so what decides is read
// from the file's bytes first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace regie {

// The numbers at the head of `regie_plugin_entry`, as they lie in the file.
struct EntryNumbers {
  uint32_t magic = 0, struct_size = 0, abi_major = 0, abi_minor = 0, build_flags = 0;
};

struct LibraryFile {
  bool has_entry = false;  // exports regie_plugin_entry as data
  EntryNumbers numbers;
  uint32_t needs = 0;               // REGIE_BUILD_*: run times of sanitizers that it calls
  std::vector<std::string> needed;  // names of the libraries that it is linked with
};

// BAD_PLUGIN with what is wrong with the file; NOT_FOUND or IO if it cannot be read. Never runs code of the
// file.
Result<LibraryFile> read_library_file(const std::string& path);

}  // namespace regie
