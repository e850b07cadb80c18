// What is to be ordered so that few bytes are alive, and what an order costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace order {

using Order = std::vector<uint32_t>;

// Bytes that several tasks touch: alive from the first of them to the last.
struct Bytes {
  int64_t size = 0;
  std::vector<uint32_t> touched_by;  // each task once
  bool begun = false;                // alive before the first task
  bool kept = false;                 // alive after the last
};

// `task` may write `made` over `over`, of the same size, if it is the last to touch that.
struct Overwrite {
  uint32_t task, made, over;       // indices of bytes
  uint32_t result = 0, value = 0;  // for who made the problem: result of the task, value that it reads
};

struct Region {
  std::vector<std::vector<uint32_t>> after;  // by task: what must have ended; a valid order is 0, 1, 2, ...
  std::vector<int64_t> room;                 // by task: bytes that are alive only while it runs
  std::vector<Bytes> bytes;
  std::vector<Overwrite> overwrites;  // of one task: those to be preferred first
  // By bytes, or empty: the task that makes all of them from its operands, if it may run once more; else
  // kNoTask.
  std::vector<uint32_t> again;
  std::vector<double> cost;  // by task, or empty: what a run takes

  static constexpr uint32_t kNoTask = UINT32_MAX;
  size_t count() const { return after.size(); }
};

// Tasks run one after the other.
class Replay {
 public:
  explicit Replay(const Region& region);

  // At each place of an order: bytes alive while the task there runs, and after it.
  struct Moment {
    int64_t during, after;
  };
  // `written_over`, if asked for: the overwrites that took place.
  std::vector<Moment> run(const Order& order, int64_t live,
                          std::vector<Overwrite>* written_over = nullptr) const;
  int64_t peak(const Order& order, int64_t live) const;

  const std::vector<std::vector<uint32_t>>& next() const { return next_; }
  const std::vector<std::vector<uint32_t>>& touches() const { return touches_; }
  const std::vector<std::vector<Overwrite>>& overwrites() const { return overwrites_; }

 private:
  const Region& region_;
  std::vector<std::vector<uint32_t>> next_;         // by task: who comes after it
  std::vector<std::vector<uint32_t>> touches_;      // by task: indices of bytes
  std::vector<std::vector<Overwrite>> overwrites_;  // by task
};

// A peak below which no order is: what is alive while one of the tasks runs, whatever else is not.
int64_t least_peak(const Region& region, const Replay& replay);

// The tasks at the places [begin, end) of an order as a region of their own, numbered by their places.
Region part_of(const Region& region, const Replay& replay, const Order& order, size_t begin, size_t end);

// Of SplitMix64: a set of tasks is known by what its members' numbers differ in (xor).
inline uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace order
