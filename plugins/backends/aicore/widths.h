// Which values lie as f32 between tasks, to go into the cube as two halves (docs/aicore.md, "Two halves where
// it pays"): with operands = "auto" an operand that lies as halves is one, and one that lies as f32 is split.
// So the decision is one about values. Those that moves hand on lie alike and are decided together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regie/c/view.h"

namespace aicore {

// Products and convolutions of floats: what the cube multiplies, it rounds.
bool is_product(std::string_view op);
// What gathers halves.
bool is_window(std::string_view op);
// What only moves elements, and gives its operands' bytes on as they lie.
bool is_move(std::string_view op);

// "conv1, Gemm": names of the framework's nodes, or operators.
std::vector<std::string> listed_names(std::string_view text);
// Does the node come from one of these?
bool is_listed(const regie_graph* graph, const regie_node& n, const std::vector<std::string>& names);

class Widths {
 public:
  // Values of the graph that this engine's products, by its index, read: all may lie as halves at first.
  Widths(const regie_graph* graph, uint32_t engine);

  bool wide(uint32_t value) const { return value < wide_.size() && wide_[class_[value]]; }
  // Together with what lies alike.
  void widen(uint32_t value) { wide_[class_[value]] = true; }
  void narrow(uint32_t value) { wide_[class_[value]] = false; }
  // Of values that lie alike, the one that stands for all of them.
  uint32_t class_of(uint32_t value) const { return class_[value]; }

  // Who rounds a value that lies as halves, and does not if it lies as f32: a product of a computed left
  // matrix with constants, a window.
  struct Reader {
    uint32_t node, value;
    bool product;
  };
  // In program order.
  const std::vector<Reader>& readers() const { return readers_; }

 private:
  uint32_t find(uint32_t value);

  std::vector<uint32_t> class_;
  std::vector<bool> wide_;
  std::vector<Reader> readers_;
};

}  // namespace aicore
