// Choices that cost something alone and in pairs, and the assignment of least cost. A placer's question in
// its bare form: exact where the network is like a tree of small width, which all small and all
// series-parallel graphs are, and an improvement of a given assignment elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace placing {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

class ChoiceNetwork {
 public:
  // A choice among `costs.size()` possibilities, at least one; kNever forbids one. Gives its number.
  uint32_t add(std::vector<double> costs);
  void add_cost(uint32_t choice, const std::vector<double>& costs);  // on top of its own
  // What a pair of choices costs: `table[i * (possibilities of b) + j]`. `a` and `b` differ.
  void add_pair(uint32_t a, uint32_t b, std::vector<double> table);

  size_t size() const { return costs_.size(); }
  size_t possibilities(uint32_t choice) const { return costs_[choice].size(); }
  // kNever if something forbids it.
  double cost(const std::vector<uint32_t>& assignment) const;

  struct Answer {
    std::vector<uint32_t> assignment;
    bool exact = false;  // no assignment costs less
  };
  // Never costs more than `start`, which must be possible. Eliminates choices one by one, those first that
  // touch the fewest others; a table above `most_entries` is avoided by fixing the choice with the most
  // neighbours as it is in the best assignment so far, in up to `rounds` rounds that fix others each time.
  Answer solve(const std::vector<uint32_t>& start, size_t most_entries = 1 << 14, int rounds = 8) const;

 private:
  struct Pair {
    uint32_t a, b;
    std::vector<double> table;
  };
  std::vector<std::vector<double>> costs_;
  std::vector<Pair> pairs_;
  friend class Elimination;
};

}  // namespace placing
