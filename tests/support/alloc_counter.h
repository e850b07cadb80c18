// Counts the allocations that our own code makes while a counter is on, and says from where.
//
// Every allocation of the process is seen (malloc and its kin, and so operator new). The one at fault is the
// first frame outside of the C and C++ run time libraries; where that lies in a library that is excluded by
// name, the allocation is not ours. Under ASan and TSan, which own malloc, their hooks are used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regie::test {

class AllocCounter {
 public:
  // One at a time. `excluded`: parts of file names of libraries.
  explicit AllocCounter(std::vector<std::string> excluded = {"libdnnl", "libgomp"});
  ~AllocCounter();
  AllocCounter(const AllocCounter&) = delete;
  // Counting is off until `start`; all threads count. Both allocate nothing.
  void start();
  void stop();
  void reset();
  uint64_t count() const;     // of our own code's
  uint64_t excluded() const;  // of excluded libraries
  // "host_cpu.so+0x1234 regie::sdk::...: 64 bytes" for the first few that were counted.
  std::vector<std::string> places() const;
};

}  // namespace regie::test
