#include "cli/opened.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/progress.h"

namespace regie::cli {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<std::string> strings(const po::variables_map& values, const char* key) {
  return values.count(key) ? values[key].as<std::vector<std::string>>() : std::vector<std::string>();
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
      "a parameter of a device for this run, e.g. npu.mode=sink; may be repeated");
  add_compile_options(options);
}

void add_measure_options(po::options_description* options) {
  options->add_options()("seed", po::value<uint64_t>()->default_value(1),
                         "of the random numbers that fill the inputs; symbolic dimensions get what --shape "
                         "says, or the size that was planned for");
  add_run_options(options);
}

int open_model(const std::string& path, const po::variables_map& values, std::optional<uint64_t> seed,
               Opened* opened) {
  auto offline = is_offline_model(path);
  if (!offline.ok()) return report(offline.status());
  auto pairs = compile_options(values);
  const auto of_session = [](const auto& p) { return p.first == "threads" || p.first == "plugin-path"; };
  if (*offline) std::erase_if(pairs, [](const auto& p) { return p.first == "shape"; });
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

  auto inputs = gather_inputs(model, strings(values, "input"),
                              *offline ? strings(values, "shape") : std::vector<std::string>(), seed);
  if (!inputs.ok()) return report(std::move(inputs).status().set_where(path));
  opened->inputs = std::move(inputs).value();
  for (const Tensor& t : opened->inputs) opened->views.push_back(t.view());

  start = Clock::now();
  std::erase_if(pairs, [&](const auto& p) { return !of_session(p); });
  for (std::string& s : strings(values, "device-set")) pairs.emplace_back("device-set", std::move(s));
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
