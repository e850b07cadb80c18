// What devices with a clock of their own tell of a run, as JSON.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "api/objects.h"

namespace {

using Json = nlohmann::ordered_json;

Json lanes_json(const regie::DeviceRecord& r) {
  Json lanes = Json::array();
  for (const auto& lane : r.lanes) {
    Json j{{"name", lane.name}, {"engine", lane.is_engine}};
    if (lane.parent != REGIE_NONE) j["parent"] = lane.parent;
    lanes.push_back(std::move(j));
  }
  return lanes;
}

Json task_json(const regie_trace_task& t, size_t time) {
  Json j{{"time", time},        {"issue", t.issue_ns}, {"issued", t.issued_ns}, {"free", t.free_ns},
         {"ready", t.ready_ns}, {"event", t.event_ns}, {"begin", t.begin_ns},   {"run", t.run_ns},
         {"ran", t.ran_ns},     {"end", t.end_ns},     {"bytes", t.bytes},      {"far_bytes", t.far_bytes},
         {"flops", t.flops},    {"least", t.least_ns}};
  if (t.lane != REGIE_NONE) j["lane"] = t.lane;
  return j;
}

}  // namespace

const char* regie_context_device_times(regie_context* context) {
  if (!context) return "{\"streams\":[]}";
  const regie_status made = regie::api_guard([&]() -> regie::Status {
    std::unordered_map<uint64_t, size_t> by_tag;
    const auto times = context->plans ? context->plans->times() : context->context->times();
    const auto records = context->plans ? context->plans->records() : context->context->records();
    for (size_t i = 0; i < times.size(); ++i)
      if (times[i].tag) by_tag.emplace(times[i].tag, i);
    Json streams = Json::array();
    for (const regie::DeviceRecord& r : records) {
      Json tasks = Json::array(), slices = Json::array(), waits = Json::array();
      for (const regie_trace_task& t : r.tasks)
        if (const auto at = by_tag.find(t.tag); at != by_tag.end()) tasks.push_back(task_json(t, at->second));
      for (const auto& s : r.slices)
        if (const auto at = by_tag.find(s.tag); at != by_tag.end())
          slices.push_back({{"time", at->second},
                            {"lane", s.lane},
                            {"begin", s.begin_ns},
                            {"end", s.end_ns},
                            {"name", s.name}});
      for (const regie_trace_wait& w : r.waits) waits.push_back({{"begin", w.begin_ns}, {"end", w.end_ns}});
      Json host = Json::array();
      for (const regie_trace_host& h : r.host)
        if (const auto at = by_tag.find(h.tag); at != by_tag.end())
          host.push_back({{"time", at->second}, {"begin", h.begin_ns}, {"end", h.end_ns}});
      streams.push_back({{"device", r.device},
                         {"stream", r.stream},
                         {"lanes", lanes_json(r)},
                         {"tasks", std::move(tasks)},
                         {"slices", std::move(slices)},
                         {"waits", std::move(waits)},
                         {"host", std::move(host)}});
    }
    context->device_times =
        Json{{"streams", std::move(streams)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
    return {};
  });
  return made == REGIE_OK ? context->device_times.c_str() : "{\"streams\":[]}";
}
