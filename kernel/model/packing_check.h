// An independent check of a raw memory plan: buffers with lifetimes and offsets, nothing known of where they
// come from. One sweep over time with the live buffers kept by offset; O(n log n). Shares no code with any
// planner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace regie {

struct PackedBuffer {
  uint64_t lower = 0, upper = 0;  // live in [lower, upper)
  uint64_t size = 0;
  uint64_t alignment = 1;
  uint64_t offset = 0;
};

struct PackingFault {
  enum Kind { kOverlap, kMisaligned, kEndless } kind;  // kEndless: offset + size does not fit 64 bits
  size_t first, second;                                // buffers; the same one unless they overlap
};

// The first fault in time, if there is one.
std::optional<PackingFault> find_packing_fault(std::span<const PackedBuffer> buffers);

struct PackingFacts {
  uint64_t peak = 0;       // max(offset + size), of buffers that have bytes
  uint64_t most_live = 0;  // greatest sum of sizes live at one step
  uint64_t most_at = 0;    // the first such step
};
// `buffers` without a fault.
PackingFacts packing_facts(std::span<const PackedBuffer> buffers);

}  // namespace regie
