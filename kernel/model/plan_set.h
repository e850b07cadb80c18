// A model with several plans: one for each combination of the sizes that its axes are said to have
// (shape_spec.h), perhaps a dynamic one, and the ports with symbolic dimensions as a caller sees them. Made
// by a compile (cache/plans_compile.h) or read from a file; runtime/plan_session.h runs it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/file.h"
#include "model/model.h"
#include "model/shape_spec.h"

namespace regie {

struct PlanSet {
  struct Axis {
    uint32_t symbol = 0;         // in `ports`
    std::string label;           // "x.0"
    std::vector<int64_t> sizes;  // ascending
  };
  // Identity, symbols, expressions, types, inputs, outputs and the portable graph; nothing to run.
  std::shared_ptr<const Model> ports;
  ShapeSpec spec;
  std::vector<Axis> axes;
  // One a combination of sizes; the last axis changes first.
  std::vector<std::shared_ptr<const Model>> plans;
  std::shared_ptr<const Model> dynamic;  // NULL: none

  size_t plan_count() const { return plans.size() + (dynamic ? 1 : 0); }
  // The number of plans stands for the dynamic one.
  const std::shared_ptr<const Model>& plan(size_t p) const { return p < plans.size() ? plans[p] : dynamic; }
  std::string plan_text(size_t plan) const;          // "x.0=4, x.2=320"; "dynamic"
  std::vector<int64_t> sizes_of(size_t plan) const;  // one an axis; not of the dynamic one
  // The axis that a dimension of the ports is, and nothing else; NULL: none.
  const Axis* axis_of(ModelDim dim) const;
};

// As PlanSet::plan_text, of any sizes.
std::string sizes_text(const PlanSet& set, std::span<const int64_t> sizes);

// Refuses a set whose parts do not go together, with this code.
Status check_plan_set(const PlanSet& set, regie_status code);

// One file; a weight that several plans have is in it once.
Status save_plan_set(const PlanSet& set, const std::string& path);
// NULL if the file is that of a single plan: load_model reads it. Otherwise as load_model.
Result<std::shared_ptr<const PlanSet>> load_plan_set(const std::string& path,
                                                     WeightChecking weights = WeightChecking::kAtOnce);
// The same of a file that is mapped already.
Result<std::shared_ptr<const PlanSet>> load_plan_set(const MappedFile& file, const std::string& path,
                                                     WeightChecking weights = WeightChecking::kAtOnce);
// That of load_model; of a set of plans, its ports, which hold the portable graph.
Result<std::shared_ptr<const Model>> load_portable(const std::string& path);

}  // namespace regie
