// Buffers on chip that one pipe fills and another empties, in turn: a pair of flags a slot. The producer
// waits until a slot is free, fills it and says so; the consumer waits until it is full, uses it and frees
// it. Slots are numbered by expressions, usually `i % slots`, so that loads of the next turn run while this
// one is computed.
#pragma once

#include <array>

#include "regie/plugin.hpp"
#include "regie/tile/builder.h"

namespace aicore {

// Hands out the flags of each ordered pair of pipes.
class Flags {
 public:
  int64_t take(uint8_t from, uint8_t to, int64_t count) {
    int64_t& next = next_[from][to];
    const int64_t first = next;
    next += count;
    if (next > REGIE_TILE_FLAGS)
      throw regie::sdk::Failure(REGIE_UNSUPPORTED, "more flags between two pipes than there are");
    return first;
  }

 private:
  std::array<std::array<int64_t, REGIE_TILE_PIPES>, REGIE_TILE_PIPES> next_{};
};

// Once: what `to` does from here on waits for what `from` was given before.
inline void hand_over(regie::tile::Builder& builder, Flags& flags, uint8_t from, uint8_t to) {
  const int64_t id = flags.take(from, to, 1);
  builder.set(from, to, id);
  builder.wait(from, to, id);
}

class Channel {
 public:
  using Expr = regie::tile::Expr;
  Channel(regie::tile::Builder& builder, Flags& flags, uint8_t producer, uint8_t consumer, int64_t slots)
      : b_(builder), producer_(producer), consumer_(consumer), slots_(slots) {
    full_ = flags.take(producer, consumer, slots);
    free_ = flags.take(consumer, producer, slots);
    for (int64_t s = 0; s < slots_; ++s) b_.set(consumer_, producer_, free_ + s);
  }
  int64_t slots() const { return slots_; }
  void begin_write(const Expr& slot) { b_.wait(consumer_, producer_, slot + free_); }
  void end_write(const Expr& slot) { b_.set(producer_, consumer_, slot + full_); }
  void begin_read(const Expr& slot) { b_.wait(producer_, consumer_, slot + full_); }
  void end_read(const Expr& slot) { b_.set(consumer_, producer_, slot + free_); }
  // At the end of the program: takes the last flags down.
  void close() {
    for (int64_t s = 0; s < slots_; ++s) b_.wait(consumer_, producer_, free_ + s);
  }

 private:
  regie::tile::Builder& b_;
  uint8_t producer_, consumer_;
  int64_t slots_, full_ = 0, free_ = 0;
};

// Gives out a memory on chip from its start.
class Room {
 public:
  explicit Room(int64_t size) : size_(size) {}
  int64_t take(int64_t bytes, int64_t alignment = 32) {
    const int64_t at = (used_ + alignment - 1) / alignment * alignment;
    used_ = at + bytes;
    return at;
  }
  int64_t used() const { return used_; }
  bool fits() const { return used_ <= size_; }

 private:
  int64_t size_, used_ = 0;
};

}  // namespace aicore
