// Rules: local rewrites written in TOML (docs/rules.md), so that a fusion is data which can be read, tested
// without a build and added by a user. A rule set is compiled once against the operator schemas, indexed by
// root operator, and applied to a fixpoint by a worklist; what nearly matched is kept with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/edit.h"
#include "ir/graph.h"
#include "ir/schema.h"

namespace regie {

struct RuleSet;  // immutable; shared by compiles

// Reads rule files in the given order, which is the order in which rules are tried. INVALID_INPUT "file:line:
// ..." for unknown keys, operators, attributes, predicates and names, with the nearest that exists.
Result<std::shared_ptr<const RuleSet>> load_rules(const std::vector<std::string>& paths,
                                                  const SchemaSet& schemas);
// The same from text; `file_name` for messages, and test graphs in files are looked for beside it.
Result<std::shared_ptr<const RuleSet>> parse_rules(std::string_view toml, const std::string& file_name,
                                                   const SchemaSet& schemas);
std::vector<std::string> rule_names(const RuleSet& rules);  // in order

// The root operator was there, but something further did not hold.
struct NearMiss {
  std::string rule;
  uint32_t node = REGIE_NONE;        // that has the root operator
  std::string node_text;             // "node 'act1' (Op)"
  std::string stopped_at;            // "%c has 2 readers: node 'act1' (A), node 'sum3' (B)"
  uint32_t in_the_way = REGIE_NONE;  // node, where there is one
  std::string reason;                // the same for all nodes: a key of RuleCount::reasons
  uint32_t passed = 0;               // checks that held before it: how near it came
  std::vector<uint32_t> reached;     // nodes that the pattern's stand for, as far as it got, but for the root
};

struct RuleCount {
  std::string name;
  uint64_t matched = 0;                                   // patches that were recorded
  uint64_t applied = 0;                                   // and taken; the others were vetoed or held back
  std::vector<uint64_t> by_pattern;                       // of `applied`, by alternative of `match`
  uint64_t near_misses = 0;                               // nodes, at the end
  std::vector<std::pair<std::string, uint64_t>> reasons;  // of them, most frequent first
  std::vector<NearMiss> details;                          // the first: see ApplyRulesOptions
};

// In the order of the rules. Give the same object to every application of one compile: counts add up, and
// near misses are those of the last state of the graph.
struct RuleStatistics {
  std::vector<RuleCount> rules;
  std::vector<std::vector<uint32_t>> failed_roots;  // per rule: nodes to look at again, see the line above
};

// Applies what has been recorded: Edit::apply with the options of the caller.
using ApplyPatches = std::function<Result<ApplyOutcome>()>;

struct ApplyRulesOptions {
  std::vector<std::string> only;  // rule names; empty: all
  const std::vector<uint32_t>* changed =
      nullptr;  // nodes new or changed since the last time; NULL: look at all
  RuleStatistics* statistics = nullptr;
  size_t details = 256, details_a_reason = 64;  // near misses that are told at length, of each rule
};

// Applies rules until none fires on the changed nodes and what reads them. One patch a match, titled "rule
// NAME", anchored at the root; patches of one batch do not touch each other. A patch that `apply` leaves out
// is not tried again. Gives the number of patches applied. INVALID_INPUT if a rule rewrites its own results
// for ever.
Result<uint64_t> apply_rules(const RuleSet& rules, Graph& graph, Edit& edit, const ApplyPatches& apply,
                             const ApplyRulesOptions& options = {});

}  // namespace regie
