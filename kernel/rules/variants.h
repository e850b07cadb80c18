// Variants of a rule's test graph: the same computation said otherwise, or with one more thing to keep alive.
// Internal.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/schema.h"
#include "rules/rule.h"

namespace regie {

struct Variant {
  std::string label;
  bool same_verdict = true;  // must fire exactly if the test does; else either is right, if values are kept
  std::function<void(Graph&)> change;  // of a fresh copy of the test's graph
};

// `patterns`: of the rule.
std::vector<Variant> make_variants(std::span<const Rule> patterns, const Graph& graph,
                                   const SchemaSet& schemas);

}  // namespace regie
