// Memory of a context for what the plan has no place for, as its size depends on data: blocks in size classes
// of each memory space, kept from run to run. What was taken is not freed before it is given back, so that
// whoever gives a block back vouches for it that nothing touches it any more.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/device.h"

namespace regie {

struct SessionCore;

class LatePool {
 public:
  explicit LatePool(const SessionCore& core);
  // At least `bytes`, aligned as the space demands, contents undefined. OUT_OF_MEMORY once what lies unused
  // has been let go of as well.
  Result<DeviceMemory> take(uint32_t space, uint64_t bytes);
  void give(uint32_t space, DeviceMemory block);
  // Lets go of unused blocks beyond what runs of late have needed at once.
  void end_run();
  uint64_t bytes() const;  // held, in use or not

 private:
  struct Space {
    std::multimap<uint64_t, DeviceMemory> unused;  // by size
    uint64_t unused_bytes = 0, used_bytes = 0;
    uint64_t most = 0;    // used at once in this run
    uint64_t recent = 0;  // the same of the runs before, fading
  };
  const SessionCore& core_;
  std::vector<Space> spaces_;
};

}  // namespace regie
