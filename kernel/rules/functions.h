// The functions of rule expressions, and numbers and lists as they see them. Internal to kernel/rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/match.h"
#include "rules/rule.h"

namespace regie {

struct FunctionInfo {
  std::string_view name;
  RuleFunction function;
  size_t least, most;
  bool of_value;  // the first argument is a %value
};
const FunctionInfo* find_function(std::string_view name);
std::vector<std::string> function_names();

// Nothing if it cannot be known.
std::optional<AttrValue> call_function(const RuleExpr& call, const MatchState& m);

std::optional<double> as_number(const AttrValue& v);
std::optional<std::vector<double>> as_numbers(const AttrValue& v);
AttrValue from_dim(regie_dim d);  // a number, or a symbolic dimension (kRuleDim)
std::optional<AttrValue> make_list(const std::vector<AttrValue>& items);
std::optional<std::vector<AttrValue>> list_items(const AttrValue& list);

}  // namespace regie
