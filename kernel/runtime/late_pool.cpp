#include "runtime/late_pool.h"

#include <algorithm>
#include <bit>

#include "runtime/core.h"

namespace regie {

namespace {

constexpr uint64_t kLeast = 256;
constexpr uint64_t kAlwaysKept = 1 << 20;

// Four classes to each power of two: at most a quarter is wasted, and close sizes meet in one class.
uint64_t class_of(uint64_t bytes) {
  if (bytes <= kLeast) return kLeast;
  if (bytes > uint64_t{1} << 62) return bytes;
  const uint64_t quarter = std::bit_floor(bytes - 1) / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

}  // namespace

LatePool::LatePool(const SessionCore& core) : core_(core), spaces_(core.model->spaces.size()) {}

Result<DeviceMemory> LatePool::take(uint32_t space, uint64_t bytes) {
  Space& s = spaces_[space];
  const uint64_t wanted = class_of(bytes);
  DeviceMemory block;
  if (auto it = s.unused.lower_bound(wanted); it != s.unused.end() && it->first <= 2 * wanted) {
    block = std::move(it->second);
    s.unused.erase(it);
    s.unused_bytes -= block.bytes();
  } else {
    const ModelSpace& of = core_.model->spaces[space];
    const Device& device = *core_.devices[of.device];
    Result<DeviceMemory> made = DeviceMemory::allocate(device, of.device_space, wanted);
    if (!made.ok() && !s.unused.empty()) {
      s.unused.clear();
      s.unused_bytes = 0;
      made = DeviceMemory::allocate(device, of.device_space, wanted);
    }
    REGIE_ASSIGN(block, std::move(made));
  }
  s.used_bytes += block.bytes();
  s.most = std::max(s.most, s.used_bytes);
  return block;
}

void LatePool::give(uint32_t space, DeviceMemory block) {
  Space& s = spaces_[space];
  s.used_bytes -= block.bytes();
  s.unused_bytes += block.bytes();
  const uint64_t size = block.bytes();
  s.unused.emplace(size, std::move(block));
}

void LatePool::end_run() {
  for (Space& s : spaces_) {
    s.recent = std::max(s.most, s.recent - s.recent / 8);
    s.most = s.used_bytes;
    const uint64_t kept = std::max(kAlwaysKept, 2 * s.recent);
    while (!s.unused.empty() && s.unused_bytes > kept) {
      auto largest = std::prev(s.unused.end());
      s.unused_bytes -= largest->first;
      s.unused.erase(largest);
    }
  }
}

uint64_t LatePool::bytes() const {
  uint64_t sum = 0;
  for (const Space& s : spaces_) sum += s.unused_bytes + s.used_bytes;
  return sum;
}

}  // namespace regie
