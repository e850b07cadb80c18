#include "cli/opened.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "model/plan_set.h"

namespace regie::cli {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<std::string> strings(const po::variables_map& values, const char* key) {
  return values.count(key) ? values[key].as<std::vector<std::string>>() : std::vector<std::string>();
}

// Numbers alone: "x=16,1,8,8". A name or ? ("x=N,?,8,8") says something about the model.
bool is_request(const std::string& shape) {
  const size_t equals = shape.rfind('=');
  return equals != std::string::npos &&
         shape.find_first_not_of("0123456789,", equals + 1) == std::string::npos;
}

}  // namespace

std::vector<std::string> request_shapes(const po::variables_map& values) {
  std::vector<std::string> shapes = strings(values, "shape");
  std::erase_if(shapes, [](const std::string& s) { return !is_request(s); });
  return shapes;
}

namespace {
// Two shapes of one input.
bool named_twice(const po::variables_map& values) {
  std::set<std::string> names;
  for (const std::string& text : request_shapes(values))
    if (!names.insert(text.substr(0, text.rfind('='))).second) return true;
  return false;
}

}  // namespace

Result<bool> is_offline_model(const std::string& path) {
  REGIE_ASSIGN(MappedFile file, MappedFile::open(path));
  return file.bytes().size() >= 8 && std::memcmp(file.bytes().data(), "REGIERGM", 8) == 0;
}

void add_run_options(po::options_description* options) {
  options->add_options()("input", po::value<std::vector<std::string>>()->composing(),
                         "an input, name=file.npy; may be repeated")(
      "device-set", po::value<std::vector<std::string>>()->composing(),
      "a parameter of a device for this run, e.g. npu.mode=sink; may be repeated")(
      "shape-log", po::value<std::string>(),
      "append the shape of each run to this file, for regie shapes advise (default: REGIE_SHAPE_LOG)");
  add_compile_options(options);
}

void add_measure_options(po::options_description* options) {
  options->add_options()("seed", po::value<uint64_t>()->default_value(1),
                         "of the random numbers that fill the inputs; symbolic dimensions get what --shape "
                         "says, or the size that was planned for");
  add_run_options(options);
}

Status Opened::take_inputs(const std::vector<std::string>& shapes, const po::variables_map& values,
                           std::optional<uint64_t> seed) {
  REGIE_ASSIGN(inputs, gather_inputs(model.get(), strings(values, "input"), shapes, seed));
  views.clear();
  for (const Tensor& t : inputs) views.push_back(t.view());
  return {};
}

std::string guessed_sizes(const Opened& opened, const po::variables_map& values) {
  if (values.count("typical")) return "";
  std::vector<bool> given(opened.inputs.size());
  for (const char* key : {"shape", "input"})
    for (const std::string& text : strings(values, key))
      if (const auto input = input_named_by(opened.model.get(), text)) given[*input] = true;
  std::string axes, first;
  for (size_t i = 0; i < opened.inputs.size(); ++i) {
    if (given[i]) continue;
    const regie_port port = regie_model_input(opened.model.get(), i);
    for (int32_t d = 0; d < port.rank; ++d)
      if (port.dims[d] < 0) {
        axes += (axes.empty() ? "" : ", ") + std::string(port.name) + "." + std::to_string(d) + " = " +
                std::to_string(opened.inputs[i].dims()[static_cast<size_t>(d)]);
        if (first.empty()) first = port.name;
      }
  }
  if (axes.empty()) return "";
  return "sizes      open axes are as planned: " + axes + "; say yours with --shape " + first + "=...\n";
}

int open_model(const std::string& path, const po::variables_map& values, std::optional<uint64_t> seed,
               Opened* opened) {
  auto offline = is_offline_model(path);
  if (!offline.ok()) return report(offline.status());
  auto pairs = compile_options(values);
  const auto of_session = [](const auto& p) { return p.first == "threads" || p.first == "plugin-path"; };
  // Of a model that is compiled for several shapes, --shape says which of them is run; one that is compiled
  // again, for one shape, is compiled for it.
  const bool again = std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) {
    return !of_session(p) && !p.first.starts_with("cache") && p.first != "shape";
  });
  bool runs_as_planned = *offline;
  if (*offline && again) {
    const auto set = load_plan_set(path);
    runs_as_planned = !set.ok() || *set;
  }
  opened->shape_is_request =
      runs_as_planned || values.count("shapes") || values.count("trace") || named_twice(values);
  if (opened->shape_is_request)
    std::erase_if(pairs, [](const auto& p) { return p.first == "shape" && is_request(p.second); });
  const auto of_compile = [&](const auto& p) { return !of_session(p) && !p.first.starts_with("cache"); };
  const bool recompile = std::any_of(pairs.begin(), pairs.end(), of_compile);
  opened->compiled = !*offline || recompile;

  auto start = Clock::now();
  regie_model* model = nullptr;
  if (opened->compiled) {
    const ShowProgress progress;
    auto list = api_options(pairs);
    if (regie_status s = regie_compile_file(path.c_str(), list.data(), list.size(), &model))
      return report_api(s);
  } else if (regie_status s = regie_model_load(path.c_str(), &model)) {
    return report_api(s);
  }
  opened->model.reset(model);
  opened->model_ms = ms_since(start);
  if (*offline && recompile)
    std::fprintf(stderr, "regie: compiled again from the portable graph in %s\n", path.c_str());

  const bool asked = opened->shape_is_request && !opened->shapes_later;
  if (Status taken =
          opened->take_inputs(asked ? request_shapes(values) : std::vector<std::string>(), values, seed);
      !taken.ok())
    return report(std::move(taken.set_where(path)));

  start = Clock::now();
  std::erase_if(pairs, [&](const auto& p) { return !of_session(p); });
  for (std::string& s : strings(values, "device-set")) pairs.emplace_back("device-set", std::move(s));
  if (values.count("shape-log")) pairs.emplace_back("shape-log", values["shape-log"].as<std::string>());
  auto session_options = api_options(pairs);
  regie_session* session = nullptr;
  if (regie_status s = regie_session_create(model, session_options.data(), session_options.size(), &session))
    return report_api(s);
  opened->session.reset(session);
  regie_context* context = nullptr;
  if (regie_status s = regie_context_acquire(session, &context)) return report_api(s);
  opened->context.reset(context);
  opened->session_ms = ms_since(start);
  return 0;
}

}  // namespace regie::cli
