#include "accesses.h"

#include <algorithm>

namespace regie::simulator {

namespace {

bool ended(const Access& a, const Knowledge& k) { return a.count <= k.of(a.stream); }

std::string unordered(const Access& by, const char* does, const Access& other, const char* did,
                      uint64_t bytes) {
  return by.what + " " + does + " " + std::to_string(bytes) + " bytes that " + other.what + " " + did +
         " on another stream, and nothing sets one before the other: an event or a wait is missing";
}

}  // namespace

void Accesses::allocate(uintptr_t at, uint64_t bytes) {
  blocks_[at] = bytes;
  ranges_[at].end = at + bytes;
}

std::string Accesses::release(uintptr_t at, const Knowledge& host, uint32_t* stream) {
  std::string problem;
  const auto block = blocks_.find(at);
  if (block == blocks_.end()) return "memory is released that was not allocated";
  const uintptr_t end = at + block->second;
  auto r = ranges_.lower_bound(at);
  while (r != ranges_.end() && r->first < end) {
    const auto check = [&](const Access& a) {
      if (!problem.empty() || ended(a, host)) return;
      problem = "memory is released while " + a.what + " may still use it";
      *stream = a.stream;
    };
    check(r->second.writer);
    for (const Access& a : r->second.readers) check(a);
    r = ranges_.erase(r);
  }
  blocks_.erase(block);
  return problem;
}

bool Accesses::holds(uintptr_t at, uint64_t bytes) const {
  auto block = blocks_.upper_bound(at);
  if (block == blocks_.begin()) return false;
  --block;
  return at - block->first <= block->second && bytes <= block->second - (at - block->first);
}

Accesses::Ranges::iterator Accesses::cut(uintptr_t at) {
  auto r = ranges_.upper_bound(at);
  --r;
  if (r->first == at || r->second.end <= at) return r->first == at ? r : std::next(r);
  Range tail = r->second;
  r->second.end = at;
  return ranges_.emplace_hint(std::next(r), at, std::move(tail));
}

std::string Accesses::read(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge) {
  if (bytes == 0) return {};
  if (!holds(at, bytes)) return by.what + " reads memory that is not allocated";
  auto r = cut(at);
  const uintptr_t end = at + bytes;
  for (; r != ranges_.end() && r->first < end; ++r) {
    if (r->second.end > end) cut(end);
    Range& range = r->second;
    const uint64_t size = range.end - r->first;
    if (!ended(range.writer, knowledge)) return unordered(by, "reads", range.writer, "writes", size);
    if (!range.written)
      return by.what + " reads " + std::to_string(size) + " bytes that " +
             (range.writer.count ? "hold only the scratch of " + range.writer.what : "nobody has written");
    const auto mine = std::find_if(range.readers.begin(), range.readers.end(),
                                   [&](const Access& a) { return a.stream == by.stream; });
    if (mine == range.readers.end())
      range.readers.push_back(by);
    else
      *mine = by;
  }
  return {};
}

std::string Accesses::change(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge,
                             bool written) {
  if (bytes == 0) return {};
  if (!holds(at, bytes)) return by.what + " writes memory that is not allocated";
  const uintptr_t end = at + bytes;
  auto r = cut(at);
  const auto first = r;
  for (; r != ranges_.end() && r->first < end; ++r) {
    if (r->second.end > end) cut(end);
    const uint64_t size = r->second.end - r->first;
    if (!ended(r->second.writer, knowledge)) return unordered(by, "writes", r->second.writer, "writes", size);
    for (const Access& a : r->second.readers)
      if (!ended(a, knowledge)) return unordered(by, "writes", a, "reads", size);
  }
  ranges_.erase(std::next(first), r);
  first->second = {end, written, by, {}};
  return {};
}

std::string Accesses::write(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge) {
  return change(at, bytes, by, knowledge, true);
}
std::string Accesses::spoil(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge) {
  return change(at, bytes, by, knowledge, false);
}

}  // namespace regie::simulator
