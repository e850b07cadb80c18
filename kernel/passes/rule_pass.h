// apply-rules: the one pass of the kernel's own. It knows no operator either: what it does is in the rule
// files that its option `rules` names (comma separated names of configs/rules, or paths).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/edit.h"
#include "passes/compile_state.h"
#include "regie/c/pass.h"

namespace regie {

struct RuleSet;
struct RuleStatistics;

class RulePass {
 public:
  static constexpr std::string_view kName = "apply-rules";
  static const regie_pass_info* info();
  static Result<RulePass> create(const CompileState& state, const PassUse& use);
  // The option `rules` of this use, and the files that such a list names.
  static std::string rules_of(const CompileOptions& options, const PassUse& use);
  static Result<std::vector<std::string>> paths(const PluginHost& plugins, std::string_view rules,
                                                const std::string& where);
  // `changed`: nodes to look at. Leaves counts and near misses in the ledger.
  Status run(CompileState& state, const std::vector<uint32_t>& changed,
             const std::function<Result<ApplyOutcome>(Edit&)>& apply);

 private:
  std::shared_ptr<const RuleSet> rules_;
  std::vector<std::string> only_;
  std::shared_ptr<RuleStatistics> statistics_;       // over all runs of this step of the compile
  std::vector<std::pair<uint64_t, uint64_t>> told_;  // a rule: matched and applied, as the ledger has them
};

}  // namespace regie
