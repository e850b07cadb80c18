#include "profile/device_times.h"

#include <algorithm>
#include <cstdio>

namespace regie {

namespace {

using Json = nlohmann::ordered_json;

std::string line(const char* format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string origin_of(const TaskInfo& info) {
  if (info.origins.empty()) return info.name;
  return info.origins[0] +
         (info.origins.size() > 1 ? " + " + std::to_string(info.origins.size() - 1) + " more" : "");
}

// What the host computed itself, with who did it.
std::string host_label(const TaskInfo& info) {
  const std::string kernel = info.kernel.empty() ? info.kind : info.kernel;
  return origin_of(info) + ", " + kernel + (info.reference ? " (reference kernel)" : "");
}

}  // namespace

std::vector<StreamTimes> read_device_times(const char* text) {
  std::vector<StreamTimes> streams;
  const Json all = Json::parse(text);
  for (const Json& s : all.at("streams")) {
    StreamTimes& to = streams.emplace_back();
    to.device = s.at("device");
    to.stream = s.at("stream");
    for (const Json& l : s.at("lanes")) to.lanes.push_back({l.at("name"), l.at("engine")});
    for (const Json& t : s.at("tasks"))
      to.tasks.push_back({t.at("time"), t.at("issue"), t.at("issued"), t.at("free"), t.at("ready"),
                          t.at("event"), t.at("begin"), t.at("run"), t.at("ran"), t.at("end"), t.at("bytes"),
                          t.at("far_bytes"), t.at("flops"), t.at("least"), t.value("lane", int64_t{-1})});
    for (const Json& p : s.at("slices"))
      to.slices.push_back({p.at("time"), p.at("lane"), p.at("begin"), p.at("end"), p.at("name")});
    for (const Json& w : s.at("waits")) to.waits.push_back({w.at("begin"), w.at("end")});
    for (const Json& h : s.at("host")) to.host.push_back({h.at("time"), h.at("begin"), h.at("end")});
  }
  return streams;
}

std::set<uint32_t> simulated_devices(const std::vector<StreamTimes>& streams) {
  std::set<uint32_t> devices;
  for (const StreamTimes& s : streams) devices.insert(s.device);
  return devices;
}

std::map<uint32_t, Extent> extents(const std::vector<StreamTimes>& streams) {
  std::map<uint32_t, Extent> found;
  for (const StreamTimes& s : streams) {
    if (s.tasks.empty() && s.host.empty()) continue;
    Extent& e = found[s.device];
    for (const auto& t : s.tasks) {
      e.begin = std::min(e.begin, t.issue);
      e.end = std::max(e.end, t.end);
    }
    for (const auto& w : s.waits) e.end = std::max(e.end, w.end);
    for (const auto& h : s.host) {
      e.begin = std::min(e.begin, h.begin);
      e.end = std::max(e.end, h.end);
    }
  }
  return found;
}

Gap gap_before(const StreamTimes::Task& t, uint64_t run_begin) {
  Gap gap;
  // What was before the run is none of its gaps.
  uint64_t at = std::max(t.free, run_begin);
  const auto until = [&](uint64_t time, double* part) {
    const uint64_t end = std::min(time, t.begin);
    if (end <= at) return;
    *part += static_cast<double>(end - at);
    at = end;
  };
  until(t.ready, &gap.launch);
  until(t.issued, &gap.host);
  until(t.event, &gap.event);
  until(t.begin, &gap.engine);
  return gap;
}

namespace {
// Nanoseconds of [begin, end] in which the host computed something itself.
double host_work_within(const std::vector<StreamTimes::Host>& host, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for (const auto& h : host) {
    const uint64_t from = std::max(h.begin, begin), to = std::min(h.end, end);
    if (to > from) sum += to - from;
  }
  return static_cast<double>(sum);
}

void add_parts(const StreamTimes& s, const Extent& run, const std::vector<StreamTimes::Host>& host,
               StreamParts* parts) {
  uint64_t last = run.begin;
  for (const auto& t : s.tasks) {
    const Gap gap = gap_before(t, run.begin);
    // Between tasks a stream has waits for events and the host's marks.
    if (t.free > last) parts->event += static_cast<double>(t.free - last);
    const uint64_t idle = std::min(std::max({t.free, run.begin, t.ready}), t.begin);
    const double own = std::min(gap.host, host_work_within(host, idle, std::min(t.issued, t.begin)));
    parts->host_work += own;
    parts->hand_over += gap.host - own;
    parts->start += gap.launch + static_cast<double>((t.run - t.begin) + (t.end - t.ran));
    parts->event += gap.event;
    if (t.lane >= 0) {
      parts->engine[static_cast<size_t>(t.lane)] += static_cast<double>(t.ran - t.run);
      if (gap.engine > 0) parts->held[static_cast<size_t>(t.lane)] += gap.engine;
    } else {
      parts->start += static_cast<double>(t.ran - t.run) + gap.engine;
    }
    last = std::max(last, t.end);
  }
  const double tail = static_cast<double>(run.end - std::min(run.end, last));
  const double own = std::min(tail, host_work_within(host, last, run.end));
  parts->host_work += own;
  parts->end += tail - own;
}
}  // namespace

void DeviceSummaries::add(const Tasks& tasks, const std::vector<regie_task_time>& times,
                          const std::vector<StreamTimes>& streams) {
  const auto extent = extents(streams);
  for (const auto& [device, e] : extent) devices_[device].ns += static_cast<double>(e.end - e.begin);
  std::map<uint32_t, std::vector<StreamTimes::Host>> host;
  for (const StreamTimes& s : streams) {
    devices_[s.device].name = tasks.devices[s.device];
    if (!s.host.empty()) host[s.device] = s.host;
  }
  for (const StreamTimes& s : streams) {
    for (const auto& h : s.host) {
      const auto ns = static_cast<double>(h.end - h.begin);
      devices_[s.device].host_work += ns;
      TimeShares::Share& share = devices_[s.device].host_origins[host_label(tasks.of(times[h.time]))];
      share.ns += ns;
      ++share.calls;
    }
    if (s.tasks.empty()) continue;
    Device& d = devices_[s.device];
    Stream& to = d.streams[s.stream];
    add_parts(s, extent.at(s.device), host[s.device], &to.parts);
    for (const auto& w : s.waits) d.host_wait += static_cast<double>(w.end - w.begin);
    for (const auto& t : s.tasks) {
      const TaskInfo& info = tasks.of(times[t.time]);
      const auto ns = static_cast<double>(t.end - t.begin);
      const Gap gap = gap_before(t, extent.at(s.device).begin);
      to.tasks += 1;
      to.busy += ns;
      to.gap.add(gap);
      d.duration += ns;
      if (info.kind == "copy") {
        d.copies += 1;
        d.copied_bytes += static_cast<double>(t.bytes);
      } else {
        d.launches += 1;
        d.bytes += static_cast<double>(t.bytes);
        d.far_bytes += static_cast<double>(t.far_bytes);
        d.least += t.least;
        d.at_work += ns;
        d.launched.push_back({s.stream, t.lane, t.flops, static_cast<double>(t.far_bytes), t.least,
                              static_cast<double>(t.ran - t.run)});
        TimeShares::Share& kernel = d.kernels[info.kernel];
        kernel.ns += ns;
        ++kernel.calls;
      }
      if (t.lane >= 0) {
        auto& engine = d.engines[static_cast<size_t>(t.lane)];
        engine.first = s.lanes.at(static_cast<size_t>(t.lane)).name;
        engine.second += static_cast<double>(t.ran - t.begin);
      }
      TimeShares::Share& share = d.origins[info.kind == "copy" ? "copies" : origin_of(info)];
      share.ns += ns;
      ++share.calls;
    }
  }
}

DeviceSummaries::Bound DeviceSummaries::Device::bound() const {
  Bound out;
  const Stream* longest = nullptr;
  for (const auto& [number, s] : streams)
    if (!longest || s.busy > longest->busy) {
      longest = &s;
      out.stream = number;
    }
  if (!longest) {
    out.parts.emplace_back("the host's own work", host_work);
    return out;
  }
  const StreamParts& p = longest->parts;
  out.parts = {{"the host's own work", p.host_work},
               {"the host, handing tasks over", p.hand_over},
               {"launches (what starting and ending a task takes)", p.start},
               {"events (other streams, copies)", p.event},
               {"the host's wait at the end", p.end}};
  std::map<size_t, double> lanes = p.engine;
  for (const auto& [lane, ns] : p.held) lanes[lane] += ns;
  for (const auto& [lane, ns] : lanes) out.parts.emplace_back("the engine " + engines.at(lane).first, ns);
  std::stable_sort(out.parts.begin(), out.parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  // `least` is the greater of operations and far bytes at the device's full rates. A launch without
  // operations shows the memory's rate; one is held up by the memory if its `least` is that of its bytes.
  double rate = 0;
  for (const Launch& l : launched)
    if (l.flops == 0 && l.least > 0) rate = std::max(rate, l.far_bytes / l.least);
  double computing = 0, by_memory = 0;
  for (const Launch& l : launched) {
    if (l.stream != out.stream) continue;
    computing += l.ns;
    if (rate > 0 && l.least > 0 && l.far_bytes / l.least >= rate * (1 - 1e-6)) by_memory += l.least;
  }
  if (by_memory > computing / 2)
    out.memory =
        line("memory: its bytes past the cache take at least %.1f %% of the time in which engines compute",
             percent(by_memory, computing));
  return out;
}

DeviceSummaries::Stream DeviceSummaries::Device::all() const {
  Stream sum;
  for (const auto& [number, s] : streams) {
    sum.tasks += s.tasks;
    sum.busy += s.busy;
    sum.gap.add(s.gap);
  }
  return sum;
}

nlohmann::ordered_json DeviceSummaries::json(double runs) const {
  Json list = Json::array();
  for (const auto& [number, d] : devices_) {
    Json engines = Json::array(), streams = Json::array();
    for (const auto& [lane, e] : d.engines)
      engines.push_back({{"name", e.first},
                         {"busy_us", e.second / 1e3 / runs},
                         {"idle_us", (d.ns - e.second) / 1e3 / runs},
                         {"busy_share", d.ns > 0 ? e.second / d.ns : 0.0}});
    const Stream all = d.all();
    for (const auto& [stream, s] : d.streams)
      streams.push_back({{"stream", stream},
                         {"tasks", s.tasks / runs},
                         {"busy_us", s.busy / 1e3 / runs},
                         {"gap_us",
                          {{"launch", s.gap.launch / 1e3 / runs},
                           {"host", s.gap.host / 1e3 / runs},
                           {"event", s.gap.event / 1e3 / runs},
                           {"engine", s.gap.engine / 1e3 / runs}}}});
    const auto table = [&](const std::map<std::string, TimeShares::Share>& shares) {
      Json rows = Json::array();
      for (const auto& [name, share] : ranked(shares))
        rows.push_back({{"name", name}, {"tasks", share.calls}, {"us", share.ns / 1e3 / runs}});
      return rows;
    };
    const Bound bound = d.bound();
    Json parts = Json::array();
    for (const auto& [what, ns] : bound.parts)
      parts.push_back({{"what", what}, {"us", ns / 1e3 / runs}, {"share", d.ns > 0 ? ns / d.ns : 0.0}});
    Json binds{{"stream", bound.stream}, {"parts", std::move(parts)}};
    if (d.streams.empty()) binds.erase("stream");
    if (!bound.memory.empty()) binds["memory"] = bound.memory;
    list.push_back({{"device", d.name},
                    {"run_us", d.ns / 1e3 / runs},
                    {"launches", d.launches / runs},
                    {"copies", d.copies / runs},
                    {"copied_bytes", d.copied_bytes / runs},
                    {"bytes", d.bytes / runs},
                    {"far_bytes", d.far_bytes / runs},
                    {"task_duration_us", all.tasks > 0 ? d.duration / 1e3 / all.tasks : 0.0},
                    {"task_wait_us", all.tasks > 0 ? all.gap.all() / 1e3 / all.tasks : 0.0},
                    {"host_wait_us", d.host_wait / 1e3 / runs},
                    {"host_work_us", d.host_work / 1e3 / runs},
                    {"roofline_share", d.at_work > 0 ? d.least / d.at_work : 0.0},
                    {"engines", std::move(engines)},
                    {"streams", std::move(streams)},
                    {"by_source", table(d.origins)},
                    {"by_kernel", table(d.kernels)},
                    {"by_host_work", table(d.host_origins)},
                    {"binds", std::move(binds)}});
  }
  return list;
}

std::string DeviceSummaries::text(double runs) const {
  std::string out;
  for (const auto& [number, d] : devices_) {
    const Stream all = d.all();
    out += line("\nsimulated time of %s, by its own clock: not to be added to times of this computer\n",
                d.name.c_str());
    const auto table = [&](const char* title, double whole, const char* of,
                           const std::map<std::string, TimeShares::Share>& shares) {
      if (shares.empty()) return;
      constexpr size_t kMost = 12;
      const auto list = ranked(shares);
      out += line("  by %s, in shares of %.3f us, %s\n", title, whole / 1e3 / runs, of);
      for (size_t i = 0; i < list.size() && i < kMost; ++i) {
        const auto& [name, share] = list[i];
        out += line("  %5.1f %%  %12.3f us  x%-5.0f ", percent(share.ns, whole), share.ns / 1e3 / runs,
                    static_cast<double>(share.calls) / runs) +
               name + "\n";
      }
      if (list.size() > kMost) out += line("  and %zu more\n", list.size() - kMost);
    };
    const char* of_run = "the run";
    if (all.tasks == 0) {
      out += "  nothing ran on it; regie explain says why\n";
      if (d.host_work > 0)
        out += line("  the host   computed everything, %.3f us (predicted)\n", d.host_work / 1e3 / runs);
      table("what the host computes itself", d.ns, of_run, d.host_origins);
      continue;
    }
    out += line("  a run      %.3f us: %.0f launches, %.0f copies of %.0f bytes\n", d.ns / 1e3 / runs,
                d.launches / runs, d.copies / runs, d.copied_bytes / runs);
    out += line("  the host   waits %.3f us, computes %.3f us (predicted)\n", d.host_wait / 1e3 / runs,
                d.host_work / 1e3 / runs);
    if (d.launches > 0)
      out += line(
          "  roofline   %.1f %% of the time in launches is the least that their operations and bytes take\n",
          percent(d.least, d.at_work));
    out += line("  a task     duration %.3f us, wait %.3f us (mean)\n", d.duration / 1e3 / all.tasks,
                all.gap.all() / 1e3 / all.tasks);
    out += line("  moved      %.0f bytes by launches, %.0f of them past the cache\n", d.bytes / runs,
                d.far_bytes / runs);
    for (const auto& [lane, e] : d.engines)
      out += line("  %-22s busy %12.3f us (%5.1f %% of the run), idle %12.3f us\n", e.first.c_str(),
                  e.second / 1e3 / runs, percent(e.second, d.ns), (d.ns - e.second) / 1e3 / runs);
    for (const auto& [stream, s] : d.streams)
      out += line(
          "  stream %-3u %5.0f tasks  busy %12.3f us; gaps: launch %.3f, host %.3f, event %.3f, engine busy "
          "%.3f us\n",
          stream, s.tasks / runs, s.busy / 1e3 / runs, s.gap.launch / 1e3 / runs, s.gap.host / 1e3 / runs,
          s.gap.event / 1e3 / runs, s.gap.engine / 1e3 / runs);
    const char* of_tasks = "the sum of task durations";
    table("kernel", d.duration, of_tasks, d.kernels);
    table("the framework's operators", d.duration, of_tasks, d.origins);
    table("what the host computes itself", d.ns, of_run, d.host_origins);
    const Bound bound = d.bound();
    out += "  what binds ";
    for (size_t i = 0; i < bound.parts.size() && i < 3 && bound.parts[i].second > 0; ++i)
      out += line("%s%s, %.3f us (%.1f %% of the run)",
                  i == 0   ? ""
                  : i == 1 ? "; then "
                           : ", ",
                  bound.parts[i].first.c_str(), bound.parts[i].second / 1e3 / runs,
                  percent(bound.parts[i].second, d.ns));
    if (d.streams.size() > 1) out += line("; stream %u, which works longest", bound.stream);
    out += (bound.memory.empty() ? "" : "; " + bound.memory) + "\n";
  }
  return out;
}

std::vector<std::pair<std::string, double>> DeviceSummaries::run_ns(double runs) const {
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [number, d] : devices_) out.emplace_back(d.name, runs > 0 ? d.ns / runs : 0.0);
  return out;
}

}  // namespace regie
