// Timed runs of a model and what they add up to: what `regie profile` and regie_profile tell, as one JSON
// object, as a trace, and as the sums that text is made of.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "profile/device_times.h"
#include "profile/statistics.h"
#include "profile/task_times.h"
#include "profile/trace.h"

namespace regie {

// The sums of runs.
struct ProfileSums {
  Tasks tasks;
  std::vector<double> ms;  // of each run
  TimeShares shares;       // real clocks
  DeviceSummaries devices;
  double runs() const { return static_cast<double>(ms.size()); }
};

class Profile {
 public:
  // `name`: what summary and trace call the model.
  Profile(std::string name, const regie_model* model);

  // A run that was made with profiling on. INVALID_INPUT if its tasks are not those of the model.
  Status add(ProfiledRun run);

  size_t runs() const { return runs_.size(); }
  ProfileSums sums() const;
  nlohmann::ordered_json summary() const;
  std::string trace() const { return chrome_trace(name_, tasks_, runs_); }

 private:
  nlohmann::ordered_json tasks_json(const std::set<uint32_t>& simulated) const;
  std::string name_;
  Tasks tasks_;
  std::vector<ProfiledRun> runs_;
};

}  // namespace regie

// What the handle of the embedding API is.
struct regie_profile {
  explicit regie_profile(const regie_model* model, std::string name) : profile(std::move(name), model) {}
  regie::Profile profile;
  std::string summary, trace;
};
