// Runs a model that has several plans (model/plan_set.h): finds the plan for a request's sizes, pads inputs
// and crops outputs where they lie between, and does as the model says with what is above the largest. A plan
// is made ready on its devices when it is needed first. Nothing is ever compiled here.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model/plan_set.h"
#include "runtime/session.h"

namespace regie {

struct PlanStatistics {
  // Runs at a plan's very sizes, padded, by the dynamic plan, and with an image made smaller before.
  uint64_t exact = 0, padded = 0, dynamic = 0, resized = 0, refused = 0;
  std::vector<uint64_t> runs;  // by plan; the dynamic one last
};

class PlanContext;

// Held by shared pointers alone: contexts keep it alive.
class PlanSession : public std::enable_shared_from_this<PlanSession> {
 public:
  PlanSession();
  ~PlanSession();
  static Result<std::shared_ptr<PlanSession>> create(std::shared_ptr<const PlanSet> set,
                                                     std::shared_ptr<PluginHost> plugins,
                                                     const SessionOptions& options);
  Result<std::shared_ptr<PlanContext>> acquire();
  const PlanSet& set() const { return *set_; }
  PlanStatistics statistics() const;       // of all contexts
  SessionStatistics preparations() const;  // of all plans
  size_t plans_ready() const;

 private:
  friend class PlanContext;
  Result<Session*> session(size_t plan);  // the number of plans: the dynamic one

  std::shared_ptr<const PlanSet> set_;
  std::shared_ptr<PluginHost> plugins_;
  SessionOptions options_;
  mutable std::mutex mutex_;  // of the two below
  std::vector<std::unique_ptr<PlanContext>> pool_;
  std::vector<std::shared_ptr<Session>> sessions_;
  // By plan, held while it is made ready: nobody waits for a plan that he does not need.
  std::unique_ptr<std::mutex[]> making_;
  std::atomic<uint64_t> exact_{0}, padded_{0}, dynamic_{0}, resized_{0}, refused_{0};
  std::unique_ptr<std::atomic<uint64_t>[]> runs_;
};

// As Context, for one plan after another. Outputs of a padded run are cropped into memory of this context, or
// the caller's.
class PlanContext {
 public:
  explicit PlanContext(PlanSession* session);  // outlives this
  ~PlanContext();
  Status run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs);
  void set_profiling(bool on);
  std::span<const TaskTime> times() const;  // of the last run, if it took the plan of the greatest sizes
  std::span<const DeviceRecord> records() const;  // of the same run
  RunStatistics statistics() const;               // of this context
  std::string last_plan() const;

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace regie
