// The plan as JSON: tasks in issue order and buffers with their places, for profiles and for those who check
// the memory plan with programs of their own.
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/objects.h"
#include "model/late.h"
#include "model/layout.h"
#include "regie/c/engine.h"

namespace {

using Json = nlohmann::ordered_json;
using regie::Arg;
using regie::Model;
using regie::TaskKind;

Json task_json(const regie::ModelTask& t) {
  Json j{{"name", t.name}, {"operator", t.op}, {"kind", regie::task_kind_text(t.kind)}, {"step", t.step}};
  j["from"] = t.origins;
  if (t.kind == TaskKind::kLaunch) j["kernel"] = t.kernel;
  if (!t.engine.empty()) j["engine"] = t.engine;
  j["device"] = t.device;
  j["stream"] = t.stream;
  if (!t.waits.empty()) j["waits"] = t.waits;
  if (!t.programs.empty()) j["programs"] = t.programs;
  if (t.scratch != REGIE_NONE) j["scratch"] = t.scratch;
  for (const regie::ModelDefine& d : t.defines) j["defines"].push_back(d.symbol);
  return j;
}

// A task's result that lies in the bytes of a buffer which another task began, or in a part of it.
struct Inside {
  const regie::ModelTask* task;
  uint64_t offset, bytes;
};

std::vector<std::vector<Inside>> results_inside(const Model& m, const regie::ShapeValues& shapes,
                                                const regie::Placement& places) {
  std::vector<std::vector<Inside>> inside(m.buffers.size());
  const regie::LateFacts late(m);
  for (const regie::ModelProgram& p : m.programs)
    for (const regie::ModelTask& t : p.tasks)
      for (const Arg& a : t.results)
        if (a.kind == Arg::kBuffer && !late.arg(a)) {
          const auto bytes = regie::bytes_at(m, a.type, shapes);
          inside[a.index].push_back({&t, a.offset, bytes.ok() ? *bytes : 0});
        }
  for (size_t b = 0; b < inside.size(); ++b) {
    std::vector<Inside>& list = inside[b];
    std::stable_sort(list.begin(), list.end(),
                     [](const Inside& x, const Inside& y) { return x.task->step < y.task->step; });
    // Who writes the whole of it first makes the buffer's own value.
    if (!list.empty() && list.front().offset == 0 && list.front().bytes == places.sizes[b])
      list.erase(list.begin());
  }
  return inside;
}

Json buffers_json(const Model& m, const regie::ShapeValues& shapes, const regie::Placement& places) {
  const auto inside = results_inside(m, shapes, places);
  const regie::LateFacts late(m);
  Json list = Json::array();
  for (size_t b = 0; b < m.buffers.size(); ++b) {
    const regie::ModelBuffer& buffer = m.buffers[b];
    const uint64_t mask = buffer.alignment ? buffer.alignment - 1 : 0;
    Json j{
        {"name", buffer.name},    {"kind", buffer.kind == regie::BufferKind::kScratch ? "scratch" : "tensor"},
        {"space", buffer.space},  {"lower", buffer.lower},
        {"upper", buffer.upper},  {"size", (places.sizes[b] + mask) & ~mask},
        {"offset", buffer.offset}};
    if (late.buffers[b]) j["late"] = true;  // the run tells the size and finds the place
    for (const Inside& i : inside[b])
      j["inside"].push_back({{"name", "result of " + i.task->name},
                             {"lower", i.task->step},
                             {"offset", i.offset},
                             {"bytes", i.bytes}});
    list.push_back(std::move(j));
  }
  return list;
}

Json plan_json(const Model& m) {
  Json j;
  j["threads"] = 1;
  for (const auto& [key, value] : m.options)
    if (key == "threads") j["threads"] = std::strtoul(value.c_str(), nullptr, 10);
  j["devices"] = Json::array();
  for (const regie::ModelDevice& d : m.devices)
    j["devices"].push_back({{"name", d.name}, {"plugin", d.plugin}});
  j["spaces"] = Json::array();
  for (const regie::ModelSpace& s : m.spaces)
    j["spaces"].push_back({{"name", s.name},
                           {"device", s.device},
                           {"arena_bytes", s.arena_bytes},
                           {"lower_bound_bytes", s.lower_bound}});
  j["kernels"] = Json::array();
  for (const regie::ModelKernel& k : m.kernels)
    j["kernels"].push_back({{"name", k.name},
                            {"format", k.format},
                            {"device", k.device},
                            {"reference", (k.flags & REGIE_KERNEL_REFERENCE) != 0}});
  j["programs"] = Json::array();
  for (const regie::ModelProgram& p : m.programs) {
    Json tasks = Json::array();
    for (const regie::ModelTask& t : p.tasks) tasks.push_back(task_json(t));
    j["programs"].push_back({{"tasks", std::move(tasks)}});
  }
  const auto shapes = regie::evaluate_shapes(m);
  if (!shapes.ok()) return j;  // a model that was checked has them
  const auto places = regie::place_buffers(m, *shapes);
  if (places.ok()) j["buffers"] = buffers_json(m, *shapes, *places);
  return j;
}

}  // namespace

const char* regie_model::plan() const try {
  std::call_once(plan_once_,
                 [&] { plan_ = plan_json(*model).dump(-1, ' ', false, Json::error_handler_t::replace); });
  return plan_.c_str();
} catch (...) {
  return "{}";  // out of memory
}

const char* regie_model_plan(const regie_model* model) { return model ? model->plan() : "{}"; }
