#include "profile/profile.h"

#include <algorithm>

namespace regie {

namespace {

using Json = nlohmann::ordered_json;

Json shares_json(const std::map<std::string, TimeShares::Share>& shares, const TimeShares& all, double runs) {
  Json list = Json::array();
  for (const auto& [name, share] : ranked(shares))
    list.push_back({{"name", name},
                    {"calls", share.calls},
                    {"ms_a_run", share.ns / 1e6 / runs},
                    {"share", all.all.ns > 0 ? share.ns / all.all.ns : 0.0}});
  return list;
}

// What one task took in all runs together.
struct TaskSum {
  uint64_t calls = 0;
  double ns = 0, least = 0;
  void add(double took) {
    least = calls ? std::min(least, took) : took;
    ns += took;
    ++calls;
  }
};

}  // namespace

Profile::Profile(std::string name, const regie_model* model)
    : name_(std::move(name)), tasks_(read_tasks(model)) {}

Status Profile::add(ProfiledRun run) {
  for (const regie_task_time& t : run.times)
    if (t.program >= tasks_.programs.size() || t.task >= tasks_.programs[t.program].size())
      return invalid_input("the run has a task " + std::to_string(t.task) + " of program " +
                           std::to_string(t.program) +
                           ", which the profile's model has not: the context is of another model");
  runs_.push_back(std::move(run));
  return {};
}

ProfileSums Profile::sums() const {
  ProfileSums out;
  out.tasks = tasks_;
  for (const ProfiledRun& r : runs_) {
    out.shares.add(tasks_, r.times.data(), r.times.size(), simulated_devices(r.streams));
    out.devices.add(tasks_, r.times, r.streams);
    out.ms.push_back(static_cast<double>(r.end_ns - r.begin_ns) / 1e6);
  }
  return out;
}

// In issue order; tasks of a loop's body have more calls than there are runs, those that no run came to none
// and are left out. Where a device has a clock of its own its tasks' times are of that, as those of this
// computer would say how long the simulation takes.
Json Profile::tasks_json(const std::set<uint32_t>& simulated) const {
  std::vector<std::vector<TaskSum>> sums;
  for (const auto& program : tasks_.programs) sums.emplace_back(program.size());
  for (const ProfiledRun& r : runs_) {
    for (const regie_task_time& t : r.times)
      if (!simulated.count(tasks_.of(t).device) && t.begin_ns != 0 && t.end_ns >= t.begin_ns)
        sums[t.program][t.task].add(static_cast<double>(t.end_ns - t.begin_ns));
    for (const StreamTimes& s : r.streams)
      for (const StreamTimes::Task& t : s.tasks) {
        const regie_task_time& at = r.times.at(t.time);
        sums[at.program][at.task].add(static_cast<double>(t.end - t.begin));
      }
  }
  Json list = Json::array();
  for (size_t p = 0; p < sums.size(); ++p)
    for (size_t i = 0; i < sums[p].size(); ++i) {
      const TaskSum& sum = sums[p][i];
      if (sum.calls == 0) continue;
      const TaskInfo& info = tasks_.programs[p][i];
      list.push_back({{"node", info.name},
                      {"operator", info.op},
                      {"kind", info.kind},
                      {"from", info.origins},
                      {"engine", info.engine},
                      {"kernel", info.kernel},
                      {"reference", info.reference},
                      {"device", tasks_.devices.at(info.device)},
                      {"stream", info.stream},
                      {"program", p},
                      {"task", i},
                      {"calls", sum.calls},
                      {"ms_a_run", sum.ns / 1e6 / static_cast<double>(runs_.size())},
                      {"least_ms_a_call", sum.least / 1e6},
                      {"clock", simulated.count(info.device) ? "simulated" : "real"}});
    }
  return list;
}

Json Profile::summary() const {
  const ProfileSums s = sums();
  const Summary of_runs = summarise(s.ms);
  const double runs = s.runs();
  std::set<uint32_t> simulated;
  for (const ProfiledRun& r : runs_) simulated.merge(simulated_devices(r.streams));
  Json j{{"model", name_},
         {"runs", runs_.size()},
         {"clock", "of this computer, but for `simulated` and tasks whose `clock` says so"},
         {"run_ms",
          {{"min", of_runs.min}, {"median", of_runs.median}, {"mean", of_runs.mean}, {"max", of_runs.max}}},
         {"kernels_ms_a_run", runs > 0 ? s.shares.all.ns / 1e6 / runs : 0.0},
         {"reference_share", s.shares.reference_share()},
         {"by_operator", shares_json(s.shares.by_op, s.shares, runs)},
         {"by_kernel", shares_json(s.shares.by_kernel, s.shares, runs)},
         {"reference_by_operator", shares_json(s.shares.reference_by_op, s.shares, runs)},
         {"tasks", tasks_json(simulated)}};
  if (!s.devices.empty()) j["simulated"] = s.devices.json(runs);
  return j;
}

}  // namespace regie
