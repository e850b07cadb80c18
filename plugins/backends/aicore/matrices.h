// Tensors in FRACTAL_NZ (formats.h): which operators leave their bytes where they lie, and programs that see
// them as something else that there are programs for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lower.h"

namespace aicore {

// Does Reshape, or Transpose, give the bytes that it is given? Of operand 0 in `from` and the result in `to`.
bool leaves_bytes(const Request& r, regie_format from, regie_format to);
// The same of nodes of a graph whose values have formats already.
bool leaves_bytes(const regie_graph* graph, const regie_node& n);

// Reshape, and Transpose where it leaves the bytes: a copy, where they cannot share them.
Lowered lower_reshape(const Request& r);

// A node of element-wise code, of joins or cuts with tensors in FRACTAL_NZ, as one in blocks of channels:
// columns are channels, rows positions. What it points to lives as long as it.
struct Seen {
  std::vector<regie_tensor> operands, results;
  std::vector<std::vector<int64_t>> dims;
  std::optional<Request> request;
};
// Rows that fill up the last fractal are positions like others to what only moves; else, and where something
// broadcasts in a way that blocks do not know, it throws UNSUPPORTED.
std::shared_ptr<Seen> seen_as_blocks(const Request& r, bool moves);
bool any_matrix(const Request& r);

}  // namespace aicore
