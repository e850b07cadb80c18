#include "cache.h"

#include <algorithm>

namespace regie::simulator {

uint64_t Cache::hits(uintptr_t at, uint64_t bytes) const {
  const uintptr_t end = at + bytes;
  uint64_t found = 0;
  auto r = ranges_.upper_bound(at);
  if (r != ranges_.begin()) --r;
  for (; r != ranges_.end() && r->first < end; ++r)
    if (r->second.end > at) found += std::min(end, r->second.end) - std::max(at, r->first);
  return found;
}

void Cache::erase(std::map<uintptr_t, Range>::iterator r) {
  used_ -= r->second.end - r->first;
  age_.erase({r->second.tick, r->first});
  ranges_.erase(r);
}

void Cache::insert(uintptr_t begin, uintptr_t end, uint64_t tick) {
  ranges_[begin] = {end, tick};
  age_.insert({tick, begin});
  used_ += end - begin;
}

void Cache::drop(uintptr_t at, uint64_t bytes) {
  const uintptr_t end = at + bytes;
  auto r = ranges_.upper_bound(at);
  if (r != ranges_.begin()) --r;
  while (r != ranges_.end() && r->first < end) {
    const auto next = std::next(r);
    if (r->second.end > at) {
      const uintptr_t begin = r->first;
      const Range old = r->second;
      erase(r);
      if (begin < at) insert(begin, at, old.tick);
      if (old.end > end) insert(end, old.end, old.tick);
    }
    r = next;
  }
}

void Cache::touch(uintptr_t at, uint64_t bytes) {
  if (bytes == 0 || capacity_ == 0) return;
  drop(at, bytes);
  const uint64_t kept = std::min(bytes, capacity_);
  while (used_ + kept > capacity_) {
    const auto oldest = ranges_.find(age_.begin()->second);
    const uint64_t size = oldest->second.end - oldest->first, over = used_ + kept - capacity_;
    if (size <= over) {
      erase(oldest);
    } else {  // its beginning goes
      const Range old = oldest->second;
      const uintptr_t begin = oldest->first + over;
      erase(oldest);
      insert(begin, old.end, old.tick);
    }
  }
  insert(at + bytes - kept, at + bytes, ++tick_);
}

}  // namespace regie::simulator
