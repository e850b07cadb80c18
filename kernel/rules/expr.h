// Expressions and predicates of rules: parsing against a rule's names, and evaluation under a match.
// Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/lexer.h"
#include "rules/match.h"
#include "rules/rule.h"

namespace regie {

// Names that a text may use. Both lists grow only in the parser of the match.
struct RuleNames {
  const std::vector<ValueSlot>* values;
  uint32_t value_count;  // how many of them may be used
  const std::vector<std::string>* attrs;
  std::optional<uint32_t> find_value(std::string_view name) const;
  std::optional<uint32_t> find_attr(std::string_view name) const;
};

// Slots of values that occur are appended to `values`.
Result<RuleExpr> parse_expr(RuleCursor& at, const RuleNames& names, std::vector<uint32_t>* values);
Result<Predicate> parse_predicate(std::string_view text, const std::string& file, int line,
                                  const RuleNames& names);
Result<uint32_t> use_value(RuleCursor& at, const RuleNames& names);  // the slot of the %name at the cursor

// Nothing if it cannot be known (rank not inferred, constant without bytes ...); kind 0 if an attribute is
// absent.
std::optional<AttrValue> evaluate_expr(const RuleExpr& expr, const MatchState& m);
bool holds(const Predicate& p, const MatchState& m);
// What stands against it, for a near miss: "%c has 2 readers: ..."; sets the node in the way.
std::string explain(const Predicate& p, const MatchState& m, uint32_t* in_the_way);
std::string describe_binding(const MatchState& m, uint32_t slot);  // "%c: f32[N,16,6,6]"

// Equality as patterns mean it: numbers across kinds, floats in single precision.
bool same_attr(const AttrValue& a, const AttrValue& b);

}  // namespace regie
