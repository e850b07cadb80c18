#include "profile/trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace regie {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kHost = 1;        // process of the host's lane; devices follow
constexpr size_t kOrigins = 3;  // that a slice's name spells out

// The framework's operators where there are any: they are what the reader knows.
std::string slice_name(const TaskInfo& t) {
  if (t.origins.empty()) return t.name;
  const bool itself = t.origins.size() == 1 && t.origins[0].ends_with(" (" + t.op + ")");
  std::string name = itself ? "" : t.op + ": ";
  for (size_t i = 0; i < t.origins.size() && i < kOrigins; ++i) name += (i ? " + " : "") + t.origins[i];
  if (t.origins.size() > kOrigins) name += " + " + std::to_string(t.origins.size() - kOrigins) + " more";
  return name;
}

class Trace {
 public:
  Trace(const Tasks& tasks, const std::vector<ProfiledRun>& runs)
      : tasks_(tasks), zero_(runs.empty() ? 0 : runs.front().begin_ns) {
    for (const ProfiledRun& run : runs)
      for (const auto& [device, extent] : extents(run.streams)) zeros_.emplace(device, extent.begin);
    // Beside simulated times, each lane says which clock it is of.
    const std::string real = zeros_.empty() ? "" : ", real time", own = ", simulated time";
    lane_name("process_name", kHost, 0, "host" + real);
    lane_name("thread_name", kHost, 0, "issues tasks" + real);
    for (size_t d = 0; d < tasks.devices.size(); ++d)
      lane_name("process_name", pid(static_cast<uint32_t>(d)), 0,
                "device " + tasks.devices[d] + (own_time(static_cast<uint32_t>(d)) ? own : real));
    std::set<std::pair<uint32_t, uint32_t>> streams;
    for (const auto& program : tasks.programs)
      for (const TaskInfo& t : program) streams.emplace(t.device, t.stream);
    for (auto [device, stream] : streams)
      lane_name("thread_name", pid(device), own_time(device) ? kStreams + stream : stream,
                "stream " + std::to_string(stream) + (own_time(device) ? own : real));
    for (const auto& [device, zero] : zeros_) lane_name("thread_name", pid(device), kIssue, "host" + own);
    std::set<std::pair<uint32_t, size_t>> lanes;
    for (const ProfiledRun& run : runs)
      for (const StreamTimes& s : run.streams) {
        const auto name = [&](size_t lane) {
          if (lanes.emplace(s.device, lane).second)
            lane_name("thread_name", pid(s.device), kLanes + static_cast<uint32_t>(lane),
                      s.lanes.at(lane).name + own);
        };
        for (const auto& t : s.tasks)
          if (t.lane >= 0) name(static_cast<size_t>(t.lane));
        for (const auto& part : s.slices) name(part.lane);
      }
  }

  // What a device with a clock of its own tells: its lanes are in its own time, which began with the first
  // run.
  void add_own(const ProfiledRun& run, size_t number) {
    std::map<size_t, std::pair<const StreamTimes*, const StreamTimes::Task*>> by_time;
    const std::map<uint32_t, Extent> extent_of = extents(run.streams);
    for (const auto& [device, extent] : extent_of)
      own_slice("run " + std::to_string(number), "run", device, kIssue, extent.begin, extent.end,
                Json::object());
    for (const StreamTimes& s : run.streams)
      for (const auto& t : s.tasks) by_time.emplace(t.time, std::pair(&s, &t));
    std::map<std::pair<uint32_t, uint32_t>, std::pair<const StreamTimes*, const StreamTimes::Task*>> last;
    for (const auto& [time, at] : by_time) {
      const auto& [s, t] = at;
      const regie_task_time& r = run.times.at(time);
      const TaskInfo& info = tasks_.of(r);
      const std::string name = slice_name(info);
      const Gap gap = gap_before(*t, extent_of.at(s->device).begin);
      Json args = details(r, info);
      args["wait_us"] = {{"launch", gap.launch / 1e3},
                         {"host", gap.host / 1e3},
                         {"event", gap.event / 1e3},
                         {"engine busy", gap.engine / 1e3}};
      args["bytes"] = t->bytes;
      args["far_bytes"] = t->far_bytes;
      own_slice("issue " + name, "issue", s->device, kIssue, t->issue, t->issued, {{"task", r.task}});
      own_slice(name, info.kind == "copy" ? "copy" : "kernel", s->device, kStreams + s->stream, t->begin,
                t->end, std::move(args));
      if (t->lane >= 0)
        own_slice(name, "engine", s->device, kLanes + static_cast<uint32_t>(t->lane), t->begin, t->ran,
                  {{"task", r.task}, {"starts_us", static_cast<double>(t->run - t->begin) / 1e3}});
      own_arrow("issue", s->device, kIssue, t->issue, s->device, kStreams + s->stream, t->begin);
      for (uint32_t w : info.waits)
        if (const auto from = last.find({r.program, w}); from != last.end() && from->second.first != s)
          own_arrow("event", from->second.first->device, kStreams + from->second.first->stream,
                    from->second.second->end - 1, s->device, kStreams + s->stream, t->begin);
      last[{r.program, r.task}] = at;
    }
    for (const StreamTimes& s : run.streams) {
      for (const auto& h : s.host) {
        const regie_task_time& r = run.times.at(h.time);
        own_slice(slice_name(tasks_.of(r)), "host", s.device, kIssue, h.begin, h.end, {{"task", r.task}});
      }
      for (const auto& w : s.waits)
        own_slice("wait", "wait", s.device, kIssue, w.begin, w.end, {{"stream", s.stream}});
      for (const auto& p : s.slices)
        own_slice(p.name, "part", s.device, kLanes + static_cast<uint32_t>(p.lane), p.begin, p.end,
                  {{"task", run.times.at(p.time).task}});
    }
  }

  void add(const ProfiledRun& run, size_t number) {
    slice("run " + std::to_string(number), "run", kHost, 0, run.begin_ns, run.end_ns, Json::object());
    std::map<std::pair<uint32_t, uint32_t>, const regie_task_time*>
        last;  // of each task: the iteration at hand
    for (const regie_task_time& t : run.times) {
      const TaskInfo& info = tasks_.of(t);
      if (t.issue_ns == 0) continue;  // nothing to do: its results have no bytes
      if (t.wait_ns < t.issue_ns) slice("wait", "wait", kHost, 0, t.wait_ns, t.issue_ns, waits_json(t, info));
      if (info.kind == "if" || info.kind == "loop") {
        slice(slice_name(info), info.kind.c_str(), kHost, 0, t.begin_ns, t.end_ns, details(t, info));
      } else {
        slice("issue " + slice_name(info), "issue", kHost, 0, t.issue_ns, t.issued_ns, {{"task", t.task}});
        if (t.begin_ns && t.end_ns >= t.begin_ns && !own_time(info.device)) work(t, info, last);
      }
      last[{t.program, t.task}] = &t;
    }
  }

  std::string text(const std::string& title) {
    Json all{{"traceEvents", std::move(events_)},
             {"displayTimeUnit", "ms"},
             {"otherData", {{"model", title}, {"producer", std::string("regie ") + regie_version()}}}};
    return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  // Lanes of a device with a clock of its own: what the host does, then streams, then engines.
  static constexpr uint32_t kIssue = 0, kStreams = 1, kLanes = 100000;

  bool own_time(uint32_t device) const { return zeros_.count(device) != 0; }

  void own_slice(const std::string& name, const char* category, uint32_t device, uint32_t lane,
                 uint64_t begin, uint64_t end, Json args) {
    const uint64_t base = zero_ - zeros_.at(device);  // wraps as it must
    slice(name, category, pid(device), lane, base + begin, base + end, std::move(args));
  }
  void own_arrow(const char* category, uint32_t from_device, uint32_t from_lane, uint64_t from,
                 uint32_t to_device, uint32_t to_lane, uint64_t to) {
    arrow(category, pid(from_device), from_lane, zero_ - zeros_.at(from_device) + from, pid(to_device),
          to_lane, zero_ - zeros_.at(to_device) + to);
  }

  static int pid(uint32_t device) { return kHost + 1 + static_cast<int>(device); }
  double us(uint64_t ns) const { return (static_cast<double>(ns) - static_cast<double>(zero_)) / 1000; }

  void lane_name(const char* what, int process, uint32_t lane, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", lane}, {"args", {{"name", name}}}});
  }

  void slice(const std::string& name, const char* category, int process, uint32_t lane, uint64_t begin,
             uint64_t end, Json args) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"cat", category},
                       {"pid", process},
                       {"tid", lane},
                       {"ts", us(begin)},
                       {"dur", static_cast<double>(end - begin) / 1000},
                       {"args", std::move(args)}});
  }

  void arrow(const char* category, int from_process, uint32_t from_lane, uint64_t from, int to_process,
             uint32_t to_lane, uint64_t to) {
    const uint64_t id = ++arrows_;
    events_.push_back({{"ph", "s"},
                       {"name", category},
                       {"cat", category},
                       {"id", id},
                       {"pid", from_process},
                       {"tid", from_lane},
                       {"ts", us(from)}});
    events_.push_back({{"ph", "f"},
                       {"bp", "e"},
                       {"name", category},
                       {"cat", category},
                       {"id", id},
                       {"pid", to_process},
                       {"tid", to_lane},
                       {"ts", us(to)}});
  }

  Json details(const regie_task_time& t, const TaskInfo& info) const {
    Json j{{"task", t.task}, {"node", info.name}, {"operator", info.op}};
    if (t.program) j["program"] = t.program;
    if (!info.kernel.empty()) j["kernel"] = info.kernel;
    if (info.reference) j["reference kernel"] = true;
    j["from"] = info.origins;
    return j;
  }

  Json waits_json(const regie_task_time& t, const TaskInfo& info) const {
    Json j{{"before", info.name}, {"for", Json::array()}};
    for (uint32_t w : info.waits) j["for"].push_back(tasks_.programs[t.program][w].name);
    return j;
  }

  // The slice on the device's lane; an arrow from where the host issued it, and from each task of another
  // stream that it waited for.
  void work(const regie_task_time& t, const TaskInfo& info,
            const std::map<std::pair<uint32_t, uint32_t>, const regie_task_time*>& last) {
    slice(slice_name(info), info.kind == "copy" ? "copy" : "kernel", pid(info.device), info.stream,
          t.begin_ns, t.end_ns, details(t, info));
    arrow("issue", kHost, 0, t.issue_ns, pid(info.device), info.stream, t.begin_ns);
    for (uint32_t w : info.waits) {
      const auto from = last.find({t.program, w});
      if (from == last.end() || from->second->end_ns == 0) continue;
      const TaskInfo& producer = tasks_.programs[t.program][w];
      arrow("event", pid(producer.device), producer.stream, from->second->end_ns - 1, pid(info.device),
            info.stream, t.begin_ns);
    }
  }

  const Tasks& tasks_;
  uint64_t zero_;
  std::map<uint32_t, uint64_t> zeros_;  // of devices with a clock of their own: where it stood at first
  uint64_t arrows_ = 0;
  Json events_ = Json::array();
};

}  // namespace

std::string chrome_trace(const std::string& title, const Tasks& tasks, const std::vector<ProfiledRun>& runs) {
  Trace trace(tasks, runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    trace.add(runs[i], i + 1);
    trace.add_own(runs[i], i + 1);
  }
  return trace.text(title);
}

}  // namespace regie
