// The matcher: a rule's pattern against the producers of one node. Iterative; backtracks over the operand
// orders of commutative nodes only. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "rules/rule.h"

namespace regie {

struct AttrBinding {
  enum class Kind : uint8_t { kUnbound, kAbsent, kAttr, kDefault, kOp, kComputed };
  Kind kind = Kind::kUnbound;
  const regie_attr* attr = nullptr;
  const AttrValue* fallback = nullptr;
  NameId op = 0;
  AttrValue computed;
};

// What a pattern's slots stand for. Valid until the graph is next written.
struct MatchState {
  const Rule* rule = nullptr;
  const Graph* graph = nullptr;
  std::vector<uint32_t> nodes;   // by pattern node; REGIE_NONE: not reached
  std::vector<uint32_t> values;  // by slot; REGIE_NONE: absent, kUnboundValue
  std::vector<AttrBinding> attrs;

  // Whether a region gives it as a result; remembered until the graph changes, as hubs have many readers.
  bool read_by_region(uint32_t value) const;
  bool matched(uint32_t node) const;
  // Matched nodes that nobody reads once the root's results are replaced and the replacement reads what it
  // reads, readers before their producers.
  std::vector<uint32_t> removable() const;
  mutable std::unordered_map<uint32_t, bool> region_reads;
};
inline constexpr uint32_t kUnboundValue = REGIE_NONE - 1;

// Why a pattern did not match: compact, turned into words by describe_*.
struct MatchFailure {
  enum class Kind : uint8_t {
    kNone,
    kRootOp,
    kNotProduced,
    kOp,
    kResult,
    kOperandMissing,
    kOperandExtra,
    kOperandPresent,
    kNotSame,
    kAttr,
    kRegions,
    kControl,
    kOutput,
    kLet,
    kWhen,
    kReplace
  };
  Kind kind = Kind::kNone;
  uint32_t node = 0;   // pattern node
  uint32_t index = 0;  // operand, attribute, predicate or let
  uint32_t graph_node = REGIE_NONE;
  uint32_t progress = 0;  // checks passed before it
};

class Matcher {
 public:
  explicit Matcher(const Graph& graph) { state_.graph = &graph; }
  // Is `root` the root of a match? Then `state()` holds it. Otherwise `failure()` says how the best attempt
  // ended, and the state is that of the last one.
  bool match(const Rule& rule, uint32_t root);
  // Cheap: false if a producer of an operand of `root`, which is one of the rule's root operators, is not
  // what the pattern wants, so that `match` could only fail.
  bool may_match(const Rule& rule, uint32_t root) const;
  void graph_changed() { state_.region_reads.clear(); }
  const MatchState& state() const { return state_; }
  const MatchFailure& failure() const { return best_; }
  // Words for the failure of the last match of `rule` at `root`: the same for all nodes / with names of this
  // one.
  std::string reason() const;
  std::string details(uint32_t* in_the_way);

 private:
  bool attempt(uint64_t swaps, uint32_t* commutative_seen);
  bool match_node(uint32_t index, bool swap);
  bool condition(uint32_t index);  // of `when`
  bool bind_value(uint32_t slot, uint32_t value);
  bool bind_attr(const AttrPattern& pattern, const AttrValue& fallback, const regie_attr* attr);
  bool fail(MatchFailure::Kind kind, uint32_t node, uint32_t index, uint32_t graph_node);

  MatchState state_;
  uint32_t root_ = REGIE_NONE;
  uint64_t best_swaps_ = 0;
  uint32_t progress_ = 0;
  MatchFailure failure_, best_;
};

}  // namespace regie
