// Which operators can be computed on their operands as they were before a common Transpose, and how: the
// operator stays, its axes are renumbered, its constants turned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regie/pass.hpp"

namespace transposes {

using Perm = std::vector<int64_t>;  // as of Transpose: axis i of the result is axis perm[i] of the operand

Perm perm_of(const regie_node& transpose, int32_t rank);
Perm inverse(const Perm& p);
Perm compose(const Perm& first, const Perm& then);  // of Transpose by `first`, then by `then`
bool is_identity(const Perm& p);

// What an operand is to the move.
enum class Part {
  kMoved,   // a tensor that is read before its Transpose instead
  kTurned,  // a constant that is turned back: broadcast against the others
  kKept,    // the same as before: a single number, bounds
  kAbsent,
};

// How a node is computed before the Transpose.
struct Move {
  std::vector<Part> parts;                          // by operand
  std::vector<regie_attr> attrs;                    // all of them
  std::optional<std::vector<int64_t>> replacement;  // operand `replaced` is this list of numbers
  uint32_t replaced = REGIE_NONE;
  bool leaves = false;  // its result is the same with and without the Transpose
};

// `moved`: by operand, whether it comes (by way of other nodes perhaps) from a Transpose by `p`. Nothing if
// the node must stay behind the Transpose.
std::optional<Move> move_before(const regie::sdk::GraphView& g, const regie_node& n, const Perm& p,
                                const std::vector<bool>& moved);

}  // namespace transposes
