// Planning in an order of one's choice, largest first for example: each buffer goes to the lowest, or the
// tightest, gap between the buffers placed already that share time with it. The work is the number of pairs
// that share time: they are found by a tree over time, never by looking at all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "items.h"

namespace plan {

enum class Fit { kFirst, kBest };  // the lowest gap, or the smallest

class Stack {
 public:
  explicit Stack(const Problem& problem);
  // Offsets by item; `order` names all free items. Fixed ones are there from the start.
  std::vector<uint64_t> plan(std::span<const uint32_t> order, Fit fit);

 private:
  struct Placed {
    uint64_t begin, end;
  };
  void add(uint32_t item);
  void collect(const Item& item);

  const Problem& problem_;
  std::vector<uint32_t> by_lower_;  // items in ascending order of their start
  std::vector<uint32_t> position_;  // of an item in by_lower_
  std::vector<uint64_t> latest_;    // tree over by_lower_: latest end of the placed items below a tree node
  size_t leaves_ = 1;
  std::vector<uint64_t> offsets_;
  std::vector<Placed> near_;  // what shares time with the item at hand
  std::vector<size_t> walk_;
};

}  // namespace plan
