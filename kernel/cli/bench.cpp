// regie bench: built on the embedding API alone.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "cli/bench_shapes.h"
#include "cli/command.h"
#include "profile/device_times.h"
#include "base/json_text.h"
#include "cli/memory_use.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "profile/statistics.h"
#include "profile/task_times.h"

namespace regie::cli {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
constexpr double kUnstable = 0.025;       // coefficient of variation
constexpr size_t kProfiledRuns = 10;      // at most; for the share of reference kernels
constexpr double kProfiledSeconds = 0.5;  // of them, about

double ms_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

struct Plan {
  double duration_s = 3, warm_up_ms = 200;
  uint64_t iterations = 10;  // at least
};

struct Figures {
  double first_ms = 0, wall_s = 0;
  uint64_t warm_ups = 0, profiled = 0;
  std::vector<double> samples;  // ms
  TimeShares shares;
  DeviceSummaries devices;
  bool other_plan = false;  // the run took one whose tasks nobody can name
  uint64_t peak_bytes = 0;
  uint32_t threads = 0;  // 0: as the model was compiled for
};

regie_status measure(Opened& opened, const Plan& plan, Figures* f) {
  std::vector<regie_tensor> outputs(regie_model_output_count(opened.model.get()));
  ShowProgress progress;
  auto one = [&](double* ms) {
    const auto start = Clock::now();
    const regie_status s = opened.run(outputs);
    *ms = ms_between(start, Clock::now());
    return s;
  };
  if (regie_status s = one(&f->first_ms)) return s;
  double ms = 0;
  for (const auto start = Clock::now(); ms_between(start, Clock::now()) < plan.warm_up_ms; ++f->warm_ups) {
    if (regie_status s = one(&ms)) return s;
    progress.show("warming up");
  }
  f->samples.reserve(1 << 16);
  const auto start = Clock::now();
  for (double done = 0; f->samples.size() < plan.iterations || done < plan.duration_s;
       done = ms_between(start, Clock::now()) / 1000) {
    if (regie_status s = one(&ms)) return s;
    f->samples.push_back(ms);
    f->wall_s += ms / 1000;
    progress.show("measuring, second " + std::to_string(static_cast<int>(done) + 1) + " of " +
                  std::to_string(static_cast<int>(std::ceil(plan.duration_s))));
  }
  f->peak_bytes = peak_resident_bytes();

  if (regie_status s = regie_context_set_profiling(opened.context.get(), 1)) return s;
  const Tasks tasks = read_tasks(opened.model.get());
  if (!f->threads) f->threads = tasks.threads;
  for (double seconds = 0; f->profiled < kProfiledRuns && seconds < kProfiledSeconds; ++f->profiled) {
    if (regie_status s = one(&ms)) return s;
    seconds += ms / 1000;
    const regie_task_time* times = nullptr;
    const size_t count = regie_context_task_times(opened.context.get(), &times);
    const auto streams = read_device_times(regie_context_device_times(opened.context.get()));
    f->shares.add(tasks, times, count, simulated_devices(streams));
    f->devices.add(tasks, {times, times + count}, streams);
  }
  f->other_plan =
      !f->shares.all.calls && Json::parse(regie_context_statistics(opened.context.get())).contains("plan");
  return regie_context_set_profiling(opened.context.get(), 0);
}

Json shares_json(const Figures& f) {
  Json by_op = Json::object();
  for (const auto& [op, share] : ranked(f.shares.reference_by_op)) by_op[op] = share.ns / f.shares.all.ns;
  return {{"share", f.shares.reference_share()}, {"by_operator", by_op}, {"profiled_runs", f.profiled}};
}

Json to_json(const std::string& path, const Opened& opened, const Figures& f, const Summary& s) {
  Json j{{"model", path}, {"version", regie_version()}, {"compiled", opened.compiled}};
  j["inputs"] = Json::array();
  for (size_t i = 0; i < opened.inputs.size(); ++i)
    j["inputs"].push_back(
        {{"name", regie_model_input(opened.model.get(), i).name},
         {"type", std::string(elem_name(opened.inputs[i].elem()))},
         {"dims", std::vector<int64_t>(opened.inputs[i].dims().begin(), opened.inputs[i].dims().end())}});
  j["threads"] = f.threads;
  j[opened.compiled ? "compile_ms" : "load_ms"] = opened.model_ms;
  j["session_ms"] = opened.session_ms;
  j["first_inference_ms"] = f.first_ms;
  j["warm_up_iterations"] = f.warm_ups;
  j["iterations"] = s.count;
  j["clock"] =
      f.devices.empty() ? "of this computer" : "of this computer, which simulates; but for `simulated`";
  if (!f.devices.empty()) j["simulated"] = f.devices.json(static_cast<double>(f.profiled));
  j["throughput_per_s"] = static_cast<double>(s.count) / f.wall_s;
  j["latency_ms"] = {{"min", s.min}, {"max", s.max}, {"mean", s.mean}, {"median", s.median},
                     {"p90", s.p90}, {"p95", s.p95}, {"p99", s.p99}};
  j["coefficient_of_variation"] = s.variation;
  j["unstable"] = s.variation > kUnstable;
  j["peak_resident_bytes"] = f.peak_bytes;
  j["reference_kernels"] = f.other_plan ? Json() : shares_json(f);
  j["samples_ms"] = f.samples;
  return j;
}

void print(const std::string& path, const Opened& opened, const Figures& f, const Summary& s,
           const std::string& sizes) {
  std::string inputs;
  for (size_t i = 0; i < opened.inputs.size(); ++i) {
    inputs += (i ? ", " : "") + std::string(regie_model_input(opened.model.get(), i).name) + " " +
              std::string(elem_name(opened.inputs[i].elem())) + "[";
    for (size_t d = 0; d < opened.inputs[i].dims().size(); ++d)
      inputs += (d ? "," : "") + std::to_string(opened.inputs[i].dims()[d]);
    inputs += "]";
  }
  std::printf("model      %s, %u thread%s; %s\n", path.c_str(), f.threads, f.threads == 1 ? "" : "s",
              inputs.c_str());
  std::fputs(sizes.c_str(), stdout);
  std::printf("%-10s %.2f ms, session %.2f ms, first inference %.2f ms\n",
              opened.compiled ? "compile" : "load", opened.model_ms, opened.session_ms, f.first_ms);
  bool simulates = false;
  for (const auto& [device, ns] : f.devices.run_ns(static_cast<double>(f.profiled))) {
    if (ns <= 0) continue;
    simulates = true;
    std::printf("simulated  %s a run on %s, by its own clock: %.2f runs a second; regie profile says more\n",
                time_text(ns / 1e6).c_str(), device.c_str(), 1e9 / ns);
  }
  if (simulates)
    std::printf(
        "The times below are of this computer, which simulates: they say nothing about the device.\n");
  std::printf("throughput %.2f runs a second (%zu runs in %.2f s, after %llu to warm up)\n",
              static_cast<double>(s.count) / f.wall_s, s.count, f.wall_s,
              static_cast<unsigned long long>(f.warm_ups));
  std::printf("latency    min %s, max %s, mean %s, median %s, p90 %s, p95 %s, p99 %s\n",
              time_text(s.min).c_str(), time_text(s.max).c_str(), time_text(s.mean).c_str(),
              time_text(s.median).c_str(), time_text(s.p90).c_str(), time_text(s.p95).c_str(),
              time_text(s.p99).c_str());
  std::printf("memory     %.1f MiB resident at most%s\n", static_cast<double>(f.peak_bytes) / 1048576,
              opened.compiled ? ", the compile included" : "");
  if (f.other_plan) {
    std::printf("reference  not known: runs took another plan than that of the greatest sizes");
  } else {
    std::printf("reference  %.2f %% of the time in kernels is spent in reference kernels",
                100 * f.shares.reference_share());
  }
  const auto list = ranked(f.shares.reference_by_op);
  for (size_t i = 0; i < list.size() && i < 5; ++i)
    std::printf("%s %s %.2f %%", i ? "," : ":", list[i].first.c_str(),
                100 * list[i].second.ns / f.shares.all.ns);
  std::printf("%s\n", list.size() > 5 ? ", ..." : "");
  // Threads that wait for each other at the end of each kernel keep their processor meanwhile; where somebody
  // else has the other one, that takes as long as the system lets him.
  const bool waits = f.threads > 1 && s.mean > 3 * s.min;
  std::printf(
      "%-10s coefficient of variation %.2f %%%s%s\n", s.variation > kUnstable ? "UNSTABLE" : "stable",
      100 * s.variation,
      s.variation > kUnstable ? ": more than 2.5 %; other load on the machine? a longer --duration?" : "",
      s.variation > kUnstable && waits
          ? " Threads that wait spin; with OMP_WAIT_POLICY=passive in the environment they sleep"
          : "");
}

}  // namespace

int command_bench(const Arguments& arguments) {
  Plan plan;
  po::options_description options("Options");
  options.add_options()("duration", po::value<double>(&plan.duration_s)->default_value(plan.duration_s),
                        "measure for so many seconds at least")(
      "iterations", po::value<uint64_t>(&plan.iterations)->default_value(plan.iterations),
      "and so many runs at least")("warm-up-ms",
                                   po::value<double>(&plan.warm_up_ms)->default_value(plan.warm_up_ms),
                                   "run for so many milliseconds before")(
      "trace", po::value<std::string>(),
      "measure each shape of this log (a line like {\"x\":[1,3,320,320]})")(
      "json", "print one JSON object with every sample instead of the summary");
  add_measure_options(&options);
  po::variables_map values;
  if (auto code = parse(arguments, options, {kModelToRun},
                        "bench MODEL [--threads N] [--duration 3] [--warm-up-ms 200] [--json]",
                        "  regie bench model.rgm --duration 0.5\n"
                        "  regie bench model.onnx --threads 2 --shape x=16,1,8,8 --duration 0.5 --json",
                        &values))
    return *code;
  if (!(plan.duration_s >= 0 && plan.duration_s <= 1e6) || !(plan.warm_up_ms >= 0 && plan.warm_up_ms <= 1e9))
    return report(invalid_input("--duration and --warm-up-ms must not be negative, nor longer than a week"));
  if (plan.iterations == 0) return report(invalid_input("--iterations must be 1 or more"));
  const std::string path = values["MODEL"].as<std::string>();
  // The compile is one of the things that are measured, unless somebody asks for another one's model.
  if (!values.count("cache") && !std::getenv("REGIE_CACHE"))
    values.insert({"cache", po::variable_value(std::string("off"), false)});
  Opened opened;
  opened.shapes_later = true;
  if (int code = open_model(path, values, values["seed"].as<uint64_t>(), &opened)) return code;
  if (opened.shape_is_request) {
    auto shapes = wanted_shapes(opened.model.get(), values);
    if (!shapes.ok()) return report(shapes.status());
    if (shapes->size() == 1 && !values.count("trace")) {
      if (Status s = opened.take_inputs(request_shapes(values), values, values["seed"].as<uint64_t>());
          !s.ok())
        return report(std::move(s.set_where(path)));
    } else if (!shapes->empty()) {
      return bench_shapes(path, opened, *shapes,
                          {plan.duration_s, plan.warm_up_ms, plan.iterations, values["seed"].as<uint64_t>(),
                           values.count("json") != 0},
                          values);
    }
  }
  Figures figures;
  if (values.count("threads"))  // a number: the session was made with it
    figures.threads = static_cast<uint32_t>(std::stoul(values["threads"].as<std::string>()));
  if (regie_status s = measure(opened, plan, &figures)) return report_api(s);
  const Summary summary = summarise(figures.samples);
  if (values.count("json"))
    std::fputs(json_text(to_json(path, opened, figures, summary)).c_str(), stdout);
  else
    print(path, opened, figures, summary, guessed_sizes(opened, values));
  return 0;
}

}  // namespace regie::cli
