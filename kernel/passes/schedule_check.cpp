// Vector clocks over a finished schedule: what has ended before each task starts, by its stream, by the
// events and by what the host waits for. It shares nothing with schedulers, which are plug-ins.
#include <algorithm>
#include <map>

#include "ir/structural.h"
#include "passes/schedule_problem.h"

namespace regie {

namespace {

class ScheduleCheck {
 public:
  explicit ScheduleCheck(const ScheduleProblem& p) : p_(p), g_(*p.state->graph), tasks_(p.nodes->size()) {}

  Status run(const std::string& who) {
    number_streams();
    find_real();
    const size_t width = ids_.size();
    std::vector<uint32_t> task_at(p_.issued.size());
    for (uint32_t t = 0; t < p_.position.size(); ++t) task_at[p_.position[t]] = t;
    std::vector<std::vector<uint32_t>> stream(width, std::vector<uint32_t>(width)), after(tasks_.size());
    std::vector<uint32_t> host(width), count(width);
    for (uint32_t at = 0; at < p_.issued.size(); ++at) {
      const uint32_t t = task_at[at], s = tasks_[t].stream;
      std::vector<uint32_t>& clock = stream[s];
      join(&clock, host);
      for (uint32_t w : p_.issued[at].waits) join(&clock, after[task_at[w]]);
      const bool barrier = is_control_flow(g_.node((*p_.nodes)[t]));
      if (barrier) clock = count;
      for (uint32_t before : tasks_[t].real_after)
        if (!p_.idle[t] && clock[tasks_[before].stream] < tasks_[before].ordinal)
          return bad_plugin("the " + who + " lets " + name(t) + " start before " + name(before) +
                            " has ended, which it needs: no stream and no event orders them");
      tasks_[t].ordinal = clock[s] = ++count[s];
      after[t] = clock;
      if (barrier) host = clock;
    }
    return {};
  }

 private:
  struct Task {
    uint32_t stream = 0, ordinal = 0;
    std::vector<uint32_t> real_after;  // that run something
  };

  static void join(std::vector<uint32_t>* into, const std::vector<uint32_t>& from) {
    for (size_t i = 0; i < from.size(); ++i) (*into)[i] = std::max((*into)[i], from[i]);
  }

  void number_streams() {
    for (uint32_t t = 0; t < tasks_.size(); ++t) {
      const uint32_t device = p_.state->target.engines[g_.node((*p_.nodes)[t]).engine].device;
      const std::pair key{device, p_.issued[p_.position[t]].stream};
      tasks_[t].stream = ids_.try_emplace(key, static_cast<uint32_t>(ids_.size())).first->second;
    }
  }

  // Who needs what runs nothing needs what that needs.
  void find_real() {
    std::vector<uint32_t> order(tasks_.size());
    for (uint32_t t = 0; t < tasks_.size(); ++t) order[p_.position[t]] = t;
    for (uint32_t t : order) {
      std::vector<uint32_t>& real = tasks_[t].real_after;
      for (uint32_t a : (*p_.after)[t])
        if (p_.idle[a])
          real.insert(real.end(), tasks_[a].real_after.begin(), tasks_[a].real_after.end());
        else
          real.push_back(a);
      std::sort(real.begin(), real.end());
      real.erase(std::unique(real.begin(), real.end()), real.end());
    }
  }

  std::string name(uint32_t task) const { return g_.describe_node((*p_.nodes)[task]); }

  const ScheduleProblem& p_;
  const Graph& g_;
  std::vector<Task> tasks_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids_;
};

}  // namespace

Status check_schedule(const ScheduleProblem& problem, const std::string& who) {
  return ScheduleCheck(problem).run(who);
}

}  // namespace regie
