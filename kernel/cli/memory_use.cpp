#include "cli/memory_use.h"

#include <cstdio>

namespace regie::cli {

// Not getrusage: its figure includes what the process held before it became this program, that is, its
// parent's.
uint64_t peak_resident_bytes() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (!status) return 0;
  unsigned long long kib = 0;
  for (char line[256]; std::fgets(line, sizeof line, status);)
    if (std::sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
  std::fclose(status);
  return kib * 1024;
}

}  // namespace regie::cli
