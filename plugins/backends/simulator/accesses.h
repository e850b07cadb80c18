// Who may touch which bytes of a device's memory when: ranges of addresses with their last writer and the
// readers since, ordered by vector clocks over the streams. Finds reads of what nobody wrote, and two
// accesses of which one writes and that no order of streams, events and waits of the host sets one before the
// other: mistakes of a schedule that give the right answer as long as nobody hurries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regie::simulator {

// By stream: how much of its work is known to have ended. The host has one too.
class Knowledge {
 public:
  uint64_t of(uint32_t stream) const { return stream < known_.size() ? known_[stream] : 0; }
  void know(uint32_t stream, uint64_t count) {
    if (known_.size() <= stream) known_.resize(stream + 1);
    if (known_[stream] < count) known_[stream] = count;
  }
  void join(const Knowledge& other) {
    for (uint32_t s = 0; s < other.known_.size(); ++s) know(s, other.known_[s]);
  }

 private:
  std::vector<uint64_t> known_;
};

// A piece of work of a stream: its number there, from 1 on, and what it is called in messages.
struct Access {
  uint32_t stream = 0;
  uint64_t count = 0;
  std::string what;
};

class Accesses {
 public:
  void allocate(uintptr_t at, uint64_t bytes);
  // "" or which work may still use it; then `stream` is its stream.
  std::string release(uintptr_t at, const Knowledge& host, uint32_t* stream);

  // Each: "" or what is wrong. `knowledge` is that of the stream with the work itself in it.
  std::string read(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge);
  std::string write(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge);
  // Written and then worth nothing: the scratch of a launch.
  std::string spoil(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge);

  const std::map<uintptr_t, uint64_t>& blocks() const { return blocks_; }  // allocations: address and bytes
  // Does the range lie in one of them?
  bool holds(uintptr_t at, uint64_t bytes) const;

 private:
  struct Range {
    uintptr_t end = 0;
    bool written = false;
    Access writer;  // count 0: nobody
    std::vector<Access> readers;
  };
  using Ranges = std::map<uintptr_t, Range>;
  Ranges::iterator cut(uintptr_t at);  // the range that begins there, made so
  std::string change(uintptr_t at, uint64_t bytes, const Access& by, const Knowledge& knowledge,
                     bool written);
  Ranges ranges_;
  std::map<uintptr_t, uint64_t> blocks_;
};

}  // namespace regie::simulator
