#include "profile/task_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace regie {

using Json = nlohmann::json;

Tasks read_tasks(const regie_model* model) {
  const Json plan = Json::parse(regie_model_plan(model));
  Tasks tasks;
  tasks.threads = plan.at("threads");
  for (const Json& d : plan.at("devices"))
    tasks.devices.push_back(d.at("name").get<std::string>() + " (" + d.at("plugin").get<std::string>() + ")");
  const Json& kernels = plan.at("kernels");
  for (const Json& p : plan.at("programs")) {
    tasks.programs.emplace_back();
    for (const Json& t : p.at("tasks")) {
      TaskInfo info;
      info.name = t.at("name");
      info.op = t.at("operator");
      info.kind = t.at("kind");
      info.engine = t.value("engine", "");
      info.origins = t.at("from").get<std::vector<std::string>>();
      info.device = t.at("device");
      info.stream = t.at("stream");
      if (t.contains("waits")) info.waits = t["waits"].get<std::vector<uint32_t>>();
      if (t.contains("kernel")) {
        const Json& kernel = kernels.at(t["kernel"].get<size_t>());
        info.kernel = kernel.at("name");
        info.reference = kernel.at("reference");
      }
      if (info.op.empty()) info.op = info.kind;  // a model file of before operators were kept
      tasks.programs.back().push_back(std::move(info));
    }
  }
  return tasks;
}

void TimeShares::add(const Tasks& tasks, const regie_task_time* times, size_t count,
                     const std::set<uint32_t>& simulated) {
  for (size_t i = 0; i < count; ++i) {
    const TaskInfo& info = tasks.of(times[i]);
    if (simulated.count(info.device) || info.kind == "if" || info.kind == "loop" || times[i].begin_ns == 0 ||
        times[i].end_ns < times[i].begin_ns)
      continue;
    const auto ns = static_cast<double>(times[i].end_ns - times[i].begin_ns);
    auto count_in = [&](Share& share) {
      share.ns += ns;
      ++share.calls;
    };
    count_in(all);
    count_in(by_op[info.op]);
    count_in(by_kernel[info.kernel.empty() ? info.kind : info.kernel]);
    if (!info.reference) continue;
    count_in(reference);
    count_in(reference_by_op[info.op]);
  }
}

std::vector<std::pair<std::string, TimeShares::Share>> ranked(
    const std::map<std::string, TimeShares::Share>& shares) {
  std::vector<std::pair<std::string, TimeShares::Share>> list(shares.begin(), shares.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  return list;
}

}  // namespace regie
