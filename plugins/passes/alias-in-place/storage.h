// Values that share bytes: which, where in them, who reads them, and how much is alive at once.
//
// A class of values is named by its root, the value that owns the bytes. Of its readers it is enough to know
// the last one in program order, and on which devices they are.
#pragma once

#include <cstdint>
#include <vector>

#include "regie/pass.hpp"

namespace alias_in_place {

struct Readers {
  bool known = false;
  uint64_t last = 0;  // order of the last reader
  uint32_t last_node = REGIE_NONE, last_value = REGIE_NONE;
  uint32_t handed_out = REGIE_NONE;           // a member that the region hands out
  uint32_t on[2] = {REGIE_NONE, REGIE_NONE};  // a reader each of two different devices
};

class Storage {
 public:
  explicit Storage(const regie::sdk::GraphView& graph);

  struct Place {
    uint32_t root;
    uint64_t offset;
  };
  Place place(uint32_t value) const;
  uint32_t root(uint32_t value) const { return place(value).root; }
  Readers& readers(uint32_t root);
  // The class of root `root` lies in that of `base` from now on, `offset` bytes into value `base`.
  void put(uint32_t root, uint32_t base, uint64_t offset);

 private:
  void add_readers(uint32_t value, Readers* all);
  void add_reader(uint32_t node, Readers* all);
  uint32_t device(uint32_t node) const;

  const regie::sdk::GraphView& graph_;
  struct Link {
    uint32_t base;
    uint64_t offset;
  };
  mutable std::vector<Link> links_;  // by value; shortened as they are followed
  std::vector<Readers> readers_;     // by root
};

// When each node runs and is over, on one line of steps in program order, branches behind their owners.
class Timeline {
 public:
  explicit Timeline(const regie::sdk::GraphView& graph);
  // Greatest sum of bytes alive at one step, by memory space. Symbolic sizes count as their least.
  std::vector<uint64_t> peaks(const regie::sdk::PassContext& context, const Storage& storage) const;

 private:
  const regie::sdk::GraphView& graph_;
  std::vector<uint32_t> begin_, end_;  // by node
  uint32_t steps_ = 0;
};

}  // namespace alias_in_place
