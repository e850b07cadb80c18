// A row of numbers: raise a stretch of it to at least a value, ask for the greatest of a stretch; each in
// logarithmic time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace packed {

class RangeMax {
 public:
  explicit RangeMax(uint32_t count) {
    while (leaves_ < count) leaves_ *= 2;
    whole_.assign(2 * leaves_, 0);
    some_.assign(2 * leaves_, 0);
  }
  void raise(uint32_t begin, uint32_t end, uint64_t value) {
    uint32_t l = begin + leaves_, r = end + leaves_;
    const uint32_t l0 = l, r0 = r - 1;
    for (; l < r; l /= 2, r /= 2) {
      if (l & 1) set(l++, value);
      if (r & 1) set(--r, value);
    }
    for (uint32_t n = l0 / 2; n; n /= 2) some_[n] = std::max(some_[n], value);
    for (uint32_t n = r0 / 2; n; n /= 2) some_[n] = std::max(some_[n], value);
  }
  uint64_t max(uint32_t begin, uint32_t end) const {
    uint64_t best = 0;
    uint32_t l = begin + leaves_, r = end + leaves_;
    const uint32_t l0 = l, r0 = r - 1;
    for (; l < r; l /= 2, r /= 2) {
      if (l & 1) best = std::max(best, some_[l++]);
      if (r & 1) best = std::max(best, some_[--r]);
    }
    for (uint32_t n = l0; n; n /= 2) best = std::max(best, whole_[n]);
    for (uint32_t n = r0; n; n /= 2) best = std::max(best, whole_[n]);
    return best;
  }

 private:
  void set(uint32_t n, uint64_t value) {
    whole_[n] = std::max(whole_[n], value);
    some_[n] = std::max(some_[n], value);
  }
  uint32_t leaves_ = 1;
  std::vector<uint64_t> whole_;  // the whole stretch below a node is at least this
  std::vector<uint64_t> some_;   // some of it is this: the maximum below the node, but for what is above it
};

}  // namespace packed
