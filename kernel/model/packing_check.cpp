#include "model/packing_check.h"

#include <algorithm>
#include <map>

namespace regie {

namespace {

struct Event {
  uint64_t step;
  bool start;  // ends come first: a life does not include its upper step
  size_t buffer;
};

std::vector<Event> events_of(std::span<const PackedBuffer> buffers) {
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == 0) continue;
    events.push_back({buffers[i].lower, true, i});
    events.push_back({buffers[i].upper, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.step != b.step) return a.step < b.step;
    if (a.start != b.start) return b.start;
    return a.buffer < b.buffer;
  });
  return events;
}

}  // namespace

std::optional<PackingFault> find_packing_fault(std::span<const PackedBuffer> buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const PackedBuffer& b = buffers[i];
    if (b.offset + b.size < b.offset) return PackingFault{PackingFault::kEndless, i, i};
    if (b.alignment == 0 || b.offset % b.alignment) return PackingFault{PackingFault::kMisaligned, i, i};
  }
  std::map<uint64_t, size_t> live;  // by offset
  for (const Event& e : events_of(buffers)) {
    const PackedBuffer& b = buffers[e.buffer];
    if (!e.start) {
      live.erase(b.offset);
      continue;
    }
    const auto after = live.lower_bound(b.offset);
    if (after != live.end() && after->first < b.offset + b.size)
      return PackingFault{PackingFault::kOverlap, after->second, e.buffer};
    if (after != live.begin()) {
      const size_t below = std::prev(after)->second;
      if (buffers[below].offset + buffers[below].size > b.offset)
        return PackingFault{PackingFault::kOverlap, below, e.buffer};
    }
    live.emplace_hint(after, b.offset, e.buffer);
  }
  return std::nullopt;
}

PackingFacts packing_facts(std::span<const PackedBuffer> buffers) {
  PackingFacts facts;
  for (const PackedBuffer& b : buffers)
    if (b.size) facts.peak = std::max(facts.peak, b.offset + b.size);
  uint64_t live = 0;
  for (const Event& e : events_of(buffers)) {
    const uint64_t size = buffers[e.buffer].size;
    if (!e.start) {
      live -= size;
    } else if ((live += size) > facts.most_live) {
      facts.most_live = live;
      facts.most_at = e.step;
    }
  }
  return facts;
}

}  // namespace regie
