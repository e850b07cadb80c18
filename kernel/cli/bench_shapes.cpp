#include "cli/bench_shapes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "profile/device_times.h"
#include "cli/inputs.h"
#include "base/json_text.h"
#include "cli/memory_use.h"
#include "cli/progress.h"
#include "profile/statistics.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Measured {
  RequestShape shape;
  uint64_t requests = 0;
  double first_ms = 0;
  uint64_t prepared = 0;  // shapes that were new to the context at the first use
  std::string plan;       // of a model with several
  std::string refused;    // why the model does not take it; nothing was measured then
  Summary summary;
  std::vector<std::pair<std::string, double>> simulated;  // device with a clock of its own, a run's ns by it
};

struct Inputs {
  std::vector<Tensor> tensors;
  std::vector<regie_tensor> views;
};

Result<Inputs> make_inputs(const regie_model* model, const RequestShape& shape,
                           const po::variables_map& values, uint64_t seed) {
  std::vector<std::string> shapes;
  for (const auto& input : shape) shapes.push_back(to_text(RequestShape{input}));
  const auto files =
      values.count("input") ? values["input"].as<std::vector<std::string>>() : std::vector<std::string>();
  Inputs out;
  REGIE_ASSIGN(out.tensors, gather_inputs(model, files, shapes, seed));
  for (const Tensor& t : out.tensors) out.views.push_back(t.view());
  return out;
}

Json statistics_of(Opened& opened) { return Json::parse(regie_context_statistics(opened.context.get())); }

Json to_json(const std::string& path, Opened& opened, const std::vector<Measured>& list, uint64_t compiles) {
  Json j{{"model", path}, {"version", regie_version()}, {"compiled", opened.compiled}};
  j[opened.compiled ? "compile_ms" : "load_ms"] = opened.model_ms;
  j["session_ms"] = opened.session_ms;
  j["compiles_in_runs"] = compiles;
  j["session"] = Json::parse(regie_session_statistics(opened.session.get()));
  j["peak_resident_bytes"] = peak_resident_bytes();
  j["shapes"] = Json::array();
  for (const Measured& m : list) {
    if (!m.refused.empty()) {
      j["shapes"].push_back({{"shape", m.shape}, {"requests", m.requests}, {"refused", m.refused}});
      continue;
    }
    Json one{
        {"shape", m.shape}, {"requests", m.requests}, {"first_use_ms", m.first_ms}, {"prepared", m.prepared}};
    if (!m.plan.empty()) one["plan"] = m.plan;
    one["iterations"] = m.summary.count;
    one["latency_ms"] = {{"min", m.summary.min},       {"max", m.summary.max}, {"mean", m.summary.mean},
                         {"median", m.summary.median}, {"p90", m.summary.p90}, {"p99", m.summary.p99}};
    one["coefficient_of_variation"] = m.summary.variation;
    for (const auto& [device, ns] : m.simulated)
      one["simulated"].push_back({{"device", device}, {"run_us", ns / 1e3}});
    j["shapes"].push_back(std::move(one));
  }
  return j;
}

void print(const std::string& path, Opened& opened, const std::vector<Measured>& list, uint64_t compiles) {
  const Json session = Json::parse(regie_session_statistics(opened.session.get()));
  std::printf("model      %s\n%-10s %.2f ms, session %.2f ms\n", path.c_str(),
              opened.compiled ? "compile" : "load", opened.model_ms, opened.session_ms);
  std::printf("shapes     %zu; made ready %llu times, compiled during runs %llu times\n", list.size(),
              static_cast<unsigned long long>(session.value("shapes_prepared", uint64_t{0})),
              static_cast<unsigned long long>(compiles));
  if (session.contains("padded"))
    std::printf("plans      %llu made ready; runs: %llu exact, %llu padded, %llu dynamic, %llu resized\n",
                static_cast<unsigned long long>(session["plans_made_ready"].get<uint64_t>()),
                static_cast<unsigned long long>(session["exact"].get<uint64_t>()),
                static_cast<unsigned long long>(session["padded"].get<uint64_t>()),
                static_cast<unsigned long long>(session["dynamic"].get<uint64_t>()),
                static_cast<unsigned long long>(session["resized"].get<uint64_t>()));
  std::printf("%9s %11s %11s %11s  %s\n", "requests", "first ms", "p50 ms", "p99 ms", "shape");
  for (const Measured& m : list) {
    if (!m.refused.empty()) continue;
    std::printf("%9llu %11.4f %11.4f %11.4f  %s%s%s\n", static_cast<unsigned long long>(m.requests),
                m.first_ms, m.summary.median, m.summary.p99, to_text(m.shape).c_str(),
                m.plan.empty() ? "" : " -> ", m.plan.c_str());
  }
  for (const Measured& m : list)
    for (const auto& [device, ns] : m.simulated)
      std::printf("simulated  %s a run on %s, by its own clock: %s\n", time_text(ns / 1e6).c_str(),
                  device.c_str(), to_text(m.shape).c_str());
  if (std::any_of(list.begin(), list.end(), [](const Measured& m) { return !m.simulated.empty(); }))
    std::printf(
        "The other times are of this computer, which simulates: they say nothing about the device.\n");
  for (const Measured& m : list)
    if (!m.refused.empty())
      std::printf("%9llu refused: %s\n", static_cast<unsigned long long>(m.requests), m.refused.c_str());
}

uint64_t compiles_so_far() { return Json::parse(regie_cache_statistics()).value("compiles", uint64_t{0}); }

}  // namespace

Result<std::vector<RequestShape>> wanted_shapes(const regie_model* model, const po::variables_map& values) {
  if (values.count("trace")) {
    const std::string path = values["trace"].as<std::string>();
    if (!request_shapes(values).empty())
      return invalid_input("--trace says the shapes, so there is no place for --shape", "--trace");
    REGIE_ASSIGN(std::vector<RequestShape> trace, read_shape_trace(path));
    for (size_t i = 0; i < regie_model_input_count(model); ++i) {
      const regie_port p = regie_model_input(model, i);
      const auto it = trace.front().find(p.name);
      if (it == trace.front().end() || it->second.size() != static_cast<size_t>(p.rank))
        return invalid_input(
            "input '" + std::string(p.name) + "' is " + p.dims_text + ", and the log has no such shape of it",
            path);
    }
    return trace;
  }
  std::vector<RequestShape> out;
  RequestShape reference;
  for (size_t i = 0; i < regie_model_input_count(model); ++i) {
    const regie_port p = regie_model_input(model, i);
    reference[p.name].assign(p.reference_dims, p.reference_dims + p.rank);
  }
  std::map<std::string, bool> given;
  for (const std::string& text : request_shapes(values)) {
    REGIE_ASSIGN(auto one, read_shape(model, text));
    if (out.empty() || given[one.first]) {
      out.push_back(reference);
      given.clear();
    }
    given[one.first] = true;
    out.back()[one.first] = one.second;
  }
  return out;
}

int bench_shapes(const std::string& path, Opened& opened, const std::vector<RequestShape>& shapes,
                 const ShapeBench& plan, const po::variables_map& values) {
  std::map<RequestShape, size_t> index;
  std::vector<Measured> list;
  std::vector<Inputs> inputs;
  std::vector<regie_tensor> outputs(regie_model_output_count(opened.model.get()));
  ShowProgress progress;
  const uint64_t compiles = compiles_so_far();
  const Tasks tasks = read_tasks(opened.model.get());
  auto run = [&](size_t i, double* ms) {
    for (regie_tensor& t : outputs) t = {};
    const auto start = Clock::now();
    const regie_status s = regie_run(opened.context.get(), inputs[i].views.data(), inputs[i].views.size(),
                                     outputs.data(), outputs.size());
    *ms = ms_since(start);
    return s;
  };
  double ms = 0;
  for (const RequestShape& shape : shapes) {
    const auto [it, fresh] = index.emplace(shape, list.size());
    if (fresh) {
      auto made = make_inputs(opened.model.get(), shape, values, plan.seed);
      if (!made.ok()) return report(std::move(made).status().set_where(path));
      inputs.push_back(std::move(made).value());
      list.emplace_back().shape = shape;
    }
    Measured& m = list[it->second];
    ++m.requests;
    if (!m.refused.empty()) continue;
    const uint64_t before = fresh ? statistics_of(opened).value("shapes_prepared", uint64_t{0}) : 0;
    if (regie_status s = run(it->second, &ms)) {
      // A log may hold requests of any size. What is asked for by --shape must be right.
      if (s == REGIE_INVALID_INPUT && values.count("trace")) {
        m.refused = to_text(shape) + ": " + regie_last_error();
        continue;
      }
      std::fprintf(stderr, "regie: at %s:\n", to_text(shape).c_str());
      return report_api(s);
    }
    if (!fresh) continue;
    const Json after = statistics_of(opened);
    m.first_ms = ms;
    m.prepared = after.value("shapes_prepared", uint64_t{0}) - before;
    m.plan = after.value("plan", "");
    progress.show("first use of shape " + std::to_string(list.size()));
  }
  if (std::all_of(list.begin(), list.end(), [](const Measured& m) { return !m.refused.empty(); }))
    return report(invalid_input("the model takes none of the shapes: " + list.front().refused, path));
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].refused.empty()) continue;
    progress.show("measuring shape " + std::to_string(i + 1) + " of " + std::to_string(list.size()));
    for (const auto start = Clock::now(); ms_since(start) < plan.warm_up_ms;)
      if (regie_status s = run(i, &ms)) return report_api(s);
    std::vector<double> samples;
    for (const auto start = Clock::now();
         samples.size() < plan.iterations || ms_since(start) < plan.duration_s * 1000;) {
      if (regie_status s = run(i, &ms)) return report_api(s);
      samples.push_back(ms);
    }
    list[i].summary = summarise(std::move(samples));
    if (regie_status s = regie_context_set_profiling(opened.context.get(), 1)) return report_api(s);
    if (regie_status s = run(i, &ms)) return report_api(s);
    const auto streams = read_device_times(regie_context_device_times(opened.context.get()));
    for (const auto& [device, e] : extents(streams))
      list[i].simulated.emplace_back(tasks.devices[device], static_cast<double>(e.end - e.begin));
    if (regie_status s = regie_context_set_profiling(opened.context.get(), 0)) return report_api(s);
  }
  if (plan.json)
    std::fputs(json_text(to_json(path, opened, list, compiles_so_far() - compiles)).c_str(), stdout);
  else
    print(path, opened, list, compiles_so_far() - compiles);
  return 0;
}

}  // namespace regie::cli
