// Which element-wise nodes become one: groups of one region, found in one walk in program order.
//
// A group grows at its end only. A node joins the groups whose values it reads; any other reader of such a
// value closes the group, as the group's place is that of its last node. So no path leads out of a group and
// back, everything that a group reads stands before it and every reader behind it: nothing needs to be moved.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "regie/pass.hpp"

namespace fuse_pointwise {

struct Limits {
  uint32_t nodes = 64;     // in a group
  uint32_t operands = 24;  // that a group reads
  uint32_t results = 8;    // that others read
};

struct Group {
  std::vector<uint32_t> members;                  // nodes in program order
  std::vector<uint32_t> operands;                 // values from outside, each once, in order of first use
  std::unordered_map<uint32_t, uint32_t> unread;  // of a member's value: readers that are no members
  uint32_t open = 0;                              // values with such readers
  uint32_t large = 0;                             // operands of full shape that live for the group alone
  uint32_t others = 0;                            // nodes of other kinds before the last member
  bool closed = false;
};

class Grouping {
 public:
  // `noted`: nodes whose near misses have been told; grows.
  Grouping(regie::sdk::PassContext& context, const Limits& limits, std::set<uint32_t>* noted);
  // Groups of two nodes and more of one region, in program order.
  std::vector<Group> find(uint32_t region);

 private:
  void visit(const regie_node& n);
  bool is_candidate(const regie_node& n);
  bool is_elementwise(const regie_node& n);
  uint32_t root(uint32_t group);
  uint32_t group_of(uint32_t value);
  bool widens_for_others(const regie_node& n) const;
  // Why node n cannot join group g; empty if it can.
  std::string obstacle(const regie_node& n, const Group& g) const;
  bool fits(const regie_node& n, const std::vector<uint32_t>& joined, std::string* why) const;
  void join(const regie_node& n, const std::vector<uint32_t>& joined);
  void near_miss(const regie_node& n, const Group& g, const std::string& why);
  bool is_immediate(uint32_t value) const;
  bool counts_as_large(uint32_t value, const regie_type& shape) const;

  regie::sdk::PassContext& context_;
  const regie::sdk::GraphView& graph_;
  const Limits limits_;
  std::unordered_map<uint32_t, uint32_t> flags_;  // by op_id
  std::vector<uint8_t> is_waited_for_;            // nodes that others have control edges from
  std::vector<uint8_t> is_handed_out_;            // values that a region gives
  std::vector<uint32_t> group_of_node_;
  std::vector<uint32_t> parent_;  // of groups that became part of another one
  std::vector<Group> groups_;
  std::set<uint32_t>* noted_;
  uint32_t others_ = 0;
};

// A constant of one element whose bytes are known: part of the program instead of an operand.
bool is_immediate(const regie_value& v);

}  // namespace fuse_pointwise
