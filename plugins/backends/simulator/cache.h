// Which bytes of a device's memory lie in its second-level cache: ranges of addresses, the least recently
// used given up first. What it answers depends on the order of its calls alone, never on where memory was
// allocated.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace regie::simulator {

class Cache {
 public:
  explicit Cache(uint64_t capacity) : capacity_(capacity) {}
  // Bytes of the range that are there.
  uint64_t hits(uintptr_t at, uint64_t bytes) const;
  // Read or written as a whole: its end stays if it is larger than the cache.
  void touch(uintptr_t at, uint64_t bytes);
  void drop(uintptr_t at, uint64_t bytes);

 private:
  struct Range {
    uintptr_t end;
    uint64_t tick;
  };
  void erase(std::map<uintptr_t, Range>::iterator range);
  void insert(uintptr_t begin, uintptr_t end, uint64_t tick);
  const uint64_t capacity_;
  uint64_t used_ = 0, tick_ = 0;
  std::map<uintptr_t, Range> ranges_;             // apart, by first address
  std::set<std::pair<uint64_t, uintptr_t>> age_;  // tick and address; parts of one range keep its tick
};

}  // namespace regie::simulator
