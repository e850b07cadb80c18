#include "network.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "regie/graph_view.hpp"
#include "regie/plugin.hpp"

namespace streams {

namespace {

using namespace regie::sdk;

constexpr double kHostIssueNs = 1000;  // of a stream that is a thread of this computer

class Target {
 public:
  explicit Target(const regie_config* options) : config_(options) {}

  std::string text(const std::string& key) const {
    const auto found = config_.find(key);
    return found ? std::string(*found) : std::string();
  }
  double number(const std::string& key, double otherwise) const {
    const std::string t = text(key);
    char* end = nullptr;
    const double value = std::strtod(t.c_str(), &end);
    return t.empty() || *end || !(value >= 0) ? otherwise : value;
  }

 private:
  Config config_;
};

class Reader {
 public:
  Reader(const regie_schedule_problem& problem, const regie_config* options,
         const regie_host_scheduling* host, uint32_t wanted)
      : p_(problem), g_(problem.graph), target_(options), host_(host), wanted_(wanted) {}

  Problem read() {
    for (uint32_t d = 0; d < p_.device_count; ++d) device(d);
    made_.network_of.assign(p_.task_count, REGIE_NONE);
    made_.real_after.resize(p_.task_count);
    for (uint32_t t = 0; t < p_.task_count; ++t) task(t);
    return std::move(made_);
  }

 private:
  void device(uint32_t index) {
    const regie_schedule_device& d = p_.devices[index];
    Device made;
    made.name = sv(d.name);
    made.events = d.max_events;
    // Without a word in the target, only who asks for several streams gets them.
    if (d.max_streams)
      made.streams = wanted_ ? std::min(wanted_, d.max_streams) : d.max_streams;
    else if (wanted_ && p_.device_count == 1)
      made.streams = wanted_;
    made.host = made.name == target_.text("host.device") && made.streams == 1;
    const std::string of = "device." + made.name + ".";
    const bool sink = target_.text(of + "mode") == "sink";
    const double issue = target_.number(of + "issue_ns", d.max_streams || made.host ? 0 : kHostIssueNs);
    made.issue_ns = sink ? 0 : issue;
    made.event_issue_ns = sink ? 0 : target_.number(of + "event_issue_ns", made.host ? 0 : issue / 2);
    made.launch_ns = sink ? target_.number(of + "sink_launch_ns", 0) : 0;
    made.gap_ns = target_.number(of + "gap_ns", 0);
    made.event_ns = target_.number(of + "event_ns", made.host ? 0 : issue);
    made.wait_ns = target_.number(of + "wait_ns", 0);
    tails_.push_back(target_.number(of + "completion_ns", 0));
    made_.network.devices.push_back(std::move(made));
  }

  uint32_t unit(const std::string& name, double at_once) {
    const auto [at, fresh] = units_.try_emplace(name, static_cast<uint32_t>(units_.size()));
    if (fresh) made_.network.units.push_back({static_cast<uint32_t>(std::max(1.0, at_once))});
    return at->second;
  }

  // The engines of one device work side by side. On this computer's processor each stream has a thread.
  uint32_t unit_of(const regie_node& n, const Device& d, uint32_t device) {
    if (d.host || is_control_flow(n)) return unit("host", 1);
    if (sv(n.op) == "regie.Copy") {
      const regie_value* from = g_.operand(n, 0);
      const regie_value* to = g_.result(n, 0);
      const uint32_t own = g_.engine(n.engine).space;
      const bool in = from && from->space != own, out = to && to->space != own;
      return unit(d.name + (in ? " copy in" : out ? " copy out" : " copy"), 1);
    }
    const std::string engine(sv(g_.engine(n.engine).name));
    const std::string plugin = target_.text("engine." + engine + ".plugin");
    const double otherwise = p_.devices[device].max_streams ? 1 : d.streams;
    return unit("engine " + engine, target_.number("device." + d.name + "." + plugin + "_count", otherwise));
  }

  void task(uint32_t t) {
    const regie_schedule_task& given = p_.tasks[t];
    if (given.device >= p_.device_count)
      throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " has no device");
    std::vector<uint32_t>& real = made_.real_after[t];
    for (uint32_t a = 0; a < given.after_count; ++a) {
      const uint32_t before = given.after[a];
      if (before >= t)
        throw Failure(REGIE_INTERNAL, "task " + std::to_string(t) + " is before a task that it needs");
      if (made_.network_of[before] != REGIE_NONE)
        real.push_back(made_.network_of[before]);
      else
        real.insert(real.end(), made_.real_after[before].begin(), made_.real_after[before].end());
    }
    std::sort(real.begin(), real.end());
    real.erase(std::unique(real.begin(), real.end()), real.end());
    if (host_ && host_->runs_nothing(&p_, t)) return;
    const regie_node& n = g_.node(given.node);
    const Device& d = made_.network.devices[given.device];
    Task made;
    made.device = given.device;
    made.after = real;
    made.barrier = is_control_flow(n);
    // A unit is named after what runs there; a problem without engines has one a device.
    made.unit = n.engine < g_.engines().size() ? unit_of(n, d, given.device) : unit(d.name, 1);
    const double cost = given.cost_ns > 0 ? given.cost_ns : 0;
    if (sv(n.op) == "regie.Copy") {
      const double start = target_.number("device." + d.name + ".copy_start_ns", -1);
      made.busy_ns =
          start < 0 ? cost : std::max(0.0, cost - target_.number("transfer.latency_ns", 0)) + start;
    } else {
      made.tail_ns = std::min(cost, tails_[given.device]);
      made.busy_ns = cost - made.tail_ns;
    }
    made_.network_of[t] = static_cast<uint32_t>(made_.task_of.size());
    made_.task_of.push_back(t);
    made_.network.tasks.push_back(std::move(made));
  }

  const regie_schedule_problem& p_;
  GraphView g_;
  Target target_;
  const regie_host_scheduling* host_;
  const uint32_t wanted_;
  std::vector<double> tails_;  // by device
  std::map<std::string, uint32_t> units_;
  Problem made_;
};

}  // namespace

Problem read(const regie_schedule_problem& problem, const regie_config* options,
             const regie_host_scheduling* host, uint32_t wanted) {
  return Reader(problem, options, host, wanted).read();
}

}  // namespace streams
