// The verifier: every structural invariant of a graph, checked from the outside. After each stage, and on
// every graph that a test makes. Linear in the graph's size; no recursion.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace regie {

struct VerifyOptions {
  const OpSet* ops = nullptr;  // schemas too
  bool shapes_known = false;   // every value has a type without unknown dimensions
  // INTERNAL for what a pass left behind; INVALID_MODEL where a user's own graph, or what it says of aliases,
  // is at fault.
  regie_status code = REGIE_INTERNAL, alias_code = REGIE_INTERNAL;
};

// Checks: links and use lists agree both ways; definitions before uses; regions form a tree and see only
// their own values and outer constants; results of the right regions; sorted unique attributes; unique names
// of arguments and results of region 0; no cycle; aliases point to live values of the same space without
// cycles; data bytes match types. A failure has the node's description.
Status verify(const Graph& graph, const VerifyOptions& options = {});
// The same of a graph that a user wrote: what is wrong is an INVALID_MODEL.
Status verify_given(const Graph& graph, const OpSet& ops);
// The same but for schemas: what is wrong, or nothing. For graphs that a user wrote.
std::optional<std::string> find_fault(const Graph& graph);

}  // namespace regie
