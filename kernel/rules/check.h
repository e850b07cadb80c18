// The rule tester behind `regie check`: runs the tests that a rule file carries, and variants made from them,
// against the reference kernels. A rule that changes what a graph computes does not get through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/op_set.h"
#include "ir/schema.h"
#include "rules/rules.h"

namespace regie {

struct CheckOptions {
  uint64_t seed = 1;
  double relative = 1e-4, absolute = 1e-5;  // |a - b| <= relative * max|a| + absolute, per result
  bool variants = true;
  std::vector<std::string> only;  // rule names; empty: all
};

struct RuleCheck {
  std::string rule, where;  // where: file:line
  uint32_t tests = 0;
  uint32_t variants = 0;  // made from the tests
  uint32_t fired = 0;     // of tests and variants
  uint32_t unmade = 0;   // variants that shape inference refuses, e.g. a dynamic batch where it must be known
  double max_error = 0;  // greatest |a - b| / max(|a|, tiny), over all comparisons
  std::vector<std::string> failures;  // "file:line: test 1, variant 'commuted operands of ...': ..."
};

struct CheckReport {
  std::vector<RuleCheck> rules;  // in order
  bool passed() const;
  std::string to_text() const;
};

// A failed test is in the report; a Status is bad input (a test graph that does not parse, an unknown rule
// name).
Result<CheckReport> check_rules(const RuleSet& rules, const SchemaSet& schemas, const OpSet& ops,
                                const CheckOptions& options = {});

}  // namespace regie
