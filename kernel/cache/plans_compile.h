// Compiles a model for several sizes of its inputs: a plan for each combination of them, each through the
// compile cache as an entry of its own, so that another list of sizes uses again what it shares with this
// one. First it sees from the graph whether requests may be padded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cache/cached_compile.h"
#include "model/plan_set.h"

namespace regie {

inline constexpr size_t kMostPlans = 64;

struct CompiledPlans {
  struct Plan {
    std::string compile_report;  // empty: it was not compiled
    CacheOutcome cache;
    double milliseconds = 0;
  };
  std::shared_ptr<const PlanSet> set;
  std::vector<Plan> plans;  // as in the set; then the dynamic one, where there is one
};

// INVALID_INPUT for sizes that the model's inputs cannot have, UNSUPPORTED for operators that do not allow
// the padding.
Result<CompiledPlans> compile_plans(const CompileRequest& request, const CacheOptions& cache,
                                    const ShapeSpec& spec);

// The compiles that this is made of, each with its sizes as text; for those who ask the cache about them.
Result<std::vector<std::pair<std::string, CompileRequest>>> plan_requests(const CompileRequest& request,
                                                                          const ShapeSpec& spec);

}  // namespace regie
