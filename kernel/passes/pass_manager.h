// The pass manager: resolves the names of a pipeline to plug-ins, refuses pipelines that cannot work before
// anything runs, runs stages, applies patches, verifies after every stage, and keeps the ledger.
#pragma once

#include <string>
#include <vector>

#include "passes/compile_state.h"
#include "passes/pipeline.h"

namespace regie {

// What is true of the graph when the first pass starts.
struct GraphProperties {
  std::vector<std::string> names;  // e.g. "shapes-known"
};

// `needed`: properties that must hold at the end (emit needs placed, scheduled, planned). INVALID_INPUT with
// the reason.
Status run_pipeline(CompileState& state, const Pipeline& pipeline, const GraphProperties& initial,
                    const std::vector<std::string>& needed);

// Only the checks: names, options, properties.
Status check_pipeline(CompileState& state, const Pipeline& pipeline, const GraphProperties& initial,
                      const std::vector<std::string>& needed);

}  // namespace regie
