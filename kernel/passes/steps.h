// The steps of a pipeline: its names found in plug-ins, with their options; and the check that they can work
// in this order. What the pass manager runs.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "passes/compile_state.h"
#include "passes/pass_manager.h"
#include "passes/rule_pass.h"

namespace regie {

// A name of a pipeline, found.
struct PassStep {
  using Provided =
      std::variant<Provider<regie_pass_table>, Provider<regie_rewrite_table>, Provider<regie_placer_table>,
                   Provider<regie_scheduler_table>, Provider<regie_memory_table>, RulePass>;
  const PassUse* use = nullptr;
  Provided provided;
  const regie_pass_info* info = nullptr;
  const regie_rewrite_info* rewrite = nullptr;
  const Manifest* manifest = nullptr;
  ConfigText config;
  regie_pass* object = nullptr;  // passes and rewrites: lives for the compile
  bool changes_graph() const {
    return std::holds_alternative<Provider<regie_pass_table>>(provided) ||
           std::holds_alternative<Provider<regie_rewrite_table>>(provided) ||
           std::holds_alternative<RulePass>(provided);
  }
  size_t seen = 0;  // how much of the change log this object has been shown
  bool first = true;
};

using Steps = std::vector<std::vector<PassStep>>;  // by stage

// INVALID_INPUT for a name or an option that is not there, with the nearest that is.
Status resolve_steps(CompileState& state, const Pipeline& pipeline, Steps* steps);
// Walks the steps once: what a pass requires must have been established and not broken before it.
Status check_step_properties(const Steps& steps, const Pipeline& pipeline, const GraphProperties& initial,
                             const std::vector<std::string>& needed);

}  // namespace regie
