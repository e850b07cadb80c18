// Reports as JSON: what the compile wrote into its ledger, with the figures of the finished model beside it.
#include <nlohmann/json.hpp>

#include "api/objects.h"
#include "model/late.h"
#include "model/layout.h"
#include "regie/c/engine.h"

namespace {

using Json = nlohmann::ordered_json;

Json ports(const std::vector<regie_model::Port>& list) {
  Json out = Json::array();
  for (const regie_model::Port& p : list) {
    out.push_back({{"name", p.name}, {"type", std::string(regie::elem_name(p.elem))}, {"dims", p.dims_text}});
    if (p.default_value) out.back()["default"] = true;
  }
  return out;
}

Json figures(const regie_model& object) {
  const regie::Model& m = *object.model;
  Json j;
  j["name"] = m.name;
  j["producer"] = m.producer;
  j["target"] = m.target;
  j["pipeline"] = m.pipeline;
  j["source_digest"] = m.source_digest;
  j["plugins"] = m.plugins;
  j["inputs"] = ports(object.inputs);
  j["outputs"] = ports(object.outputs);
  j["symbols"] = Json::array();
  const regie::LateFacts late(m);
  for (size_t i = 0; i < m.symbols.size(); ++i) {
    const regie::ModelSymbol& s = m.symbols[i];
    Json symbol = {{"name", s.name}, {"lower", s.lower}, {"reference", s.reference}};
    if (s.upper != INT64_MAX) symbol["upper"] = s.upper;
    if (late.symbols[i]) symbol["late"] = true;  // known when a task has run
    j["symbols"].push_back(std::move(symbol));
  }
  std::vector<uint64_t> kernels(m.devices.size()), reference(m.devices.size()), tasks(m.devices.size());
  for (const regie::ModelKernel& k : m.kernels) {
    ++kernels[k.device];
    reference[k.device] += (k.flags & REGIE_KERNEL_REFERENCE) != 0;
  }
  uint64_t launches = 0, copies = 0, branches = 0, loops = 0, defines = 0, waits = 0;
  for (const regie::ModelProgram& p : m.programs)
    for (const regie::ModelTask& t : p.tasks) {
      ++tasks[t.device];
      waits += t.waits.size();
      launches += t.kind == regie::TaskKind::kLaunch;
      copies += t.kind == regie::TaskKind::kCopy;
      branches += t.kind == regie::TaskKind::kIf;
      loops += t.kind == regie::TaskKind::kLoop;
      defines += t.kind == regie::TaskKind::kDefine;
    }
  j["tasks"] = {{"all", launches + copies + branches + loops + defines},
                {"launches", launches},
                {"copies", copies},
                {"branches", branches},
                {"loops", loops},
                {"defines", defines},
                {"events", waits}};
  j["devices"] = Json::array();
  for (size_t d = 0; d < m.devices.size(); ++d)
    j["devices"].push_back({{"name", m.devices[d].name},
                            {"plugin", m.devices[d].plugin},
                            {"tasks", tasks[d]},
                            {"kernels", kernels[d]},
                            {"reference_kernels", reference[d]}});
  j["spaces"] = Json::array();
  for (const regie::ModelSpace& s : m.spaces)
    j["spaces"].push_back({{"name", s.name},
                           {"device", m.devices[s.device].name},
                           {"arena_bytes", s.arena_bytes},
                           {"lower_bound", s.lower_bound}});
  uint64_t weight_bytes = 0;
  for (const regie::ModelWeight& w : m.weights) weight_bytes += w.size;
  j["weights"] = {{"count", m.weights.size()}, {"bytes", weight_bytes}};
  return j;
}

std::string to_text(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace

nlohmann::ordered_json regie::plans_json(const PlanSet& set) {
  Json j{{"shapes", to_text(set.spec)},
         {"padding", to_text(set.spec.padding)},
         {"overflow", to_text(set.spec.overflow)},
         {"plans", Json::array()}};
  for (size_t p = 0; p < set.plan_count(); ++p) {
    uint64_t arena = 0;
    for (const ModelSpace& s : set.plan(p)->spaces) arena += s.arena_bytes;
    j["plans"].push_back({{"sizes", set.plan_text(p)}, {"arena_bytes", arena}});
  }
  return j;
}

const char* regie_model::report() const try {
  std::call_once(report_once_, [&] {
    // The ledger may be large and, from a file, deep: it is checked, but neither taken apart nor printed
    // again.
    const std::string_view ledger =
        compile_report.empty() ? std::string_view(model->ledger_json) : compile_report;
    std::string own = to_text(figures(*this));
    if (set)
      own += ",\n\"shapes\": " + (shapes_report.empty() ? to_text(regie::plans_json(*set)) : shapes_report);
    if (!cache_report.empty()) own += ",\n\"cache\": " + cache_report;
    if (compile_ms) own += ",\n\"compile_ms\": " + to_text(*compile_ms);
    const size_t open = ledger.find_first_not_of(" \t\r\n"), close = ledger.find_last_not_of(" \t\r\n");
    const bool object = open != std::string_view::npos && ledger[open] == '{' && Json::accept(ledger);
    if (!object) {
      report_ = "{\n\"model\": " + own + "\n}\n";
      return;
    }
    const std::string inner(ledger.substr(open + 1, close - open - 1));
    const bool empty = inner.find_first_not_of(" \t\r\n") == std::string::npos;
    report_ = "{\n\"model\": " + own + (empty ? "" : ",") + inner + "}\n";
  });
  return report_.c_str();
} catch (...) {
  return "{}";  // out of memory
}

const char* regie_context_statistics(regie_context* context) {
  if (!context) return "{}";
  try {
    const regie::RunStatistics s =
        context->plans ? context->plans->statistics() : context->context->statistics();
    Json j{{"runs", s.runs},
           {"shapes_prepared", s.shapes_prepared},
           {"late_prepared", s.late_prepared},
           {"last_shape_change", s.last_shape_change}};
    if (context->plans) j["plan"] = context->plans->last_plan();
    context->statistics = to_text(j);
  } catch (...) {
    return "{}";
  }
  return context->statistics.c_str();
}

const char* regie_session_statistics(regie_session* session) {
  if (!session) return "{}";
  try {
    const regie::SessionStatistics prepared =
        session->plans ? session->plans->preparations() : session->session->statistics();
    Json j{{"shapes_prepared", prepared.shapes_prepared}, {"late_prepared", prepared.late_prepared}};
    if (session->plans) {
      const regie::PlanSet& set = session->plans->set();
      const regie::PlanStatistics s = session->plans->statistics();
      j["plans_made_ready"] = session->plans->plans_ready();
      j["exact"] = s.exact;
      j["padded"] = s.padded;
      j["dynamic"] = s.dynamic;
      j["resized"] = s.resized;
      j["refused"] = s.refused;
      j["runs"] = Json::object();
      for (size_t p = 0; p < set.plan_count(); ++p) j["runs"][set.plan_text(p)] = s.runs[p];
    }
    thread_local std::string text;
    text = to_text(j);
    return text.c_str();
  } catch (...) {
    return "{}";
  }
}
