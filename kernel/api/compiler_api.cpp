// The compiling half of the embedding API.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/compile_options.h"
#include "api/objects.h"
#include "base/json_writer.h"
#include "base/size_text.h"
#include "cache/cached_compile.h"
#include "cache/model_memory.h"
#include "cache/plans_compile.h"
#include "model/plan_set.h"

namespace regie {

namespace {

Result<CompileOptions> read_options(const ApiOptions& given) {
  CompileOptions o;
  o.target = given.text("target", "host_cpu");
  o.pipeline = given.text("pipeline");
  o.dump = given.text("dump");
  REGIE_ASSIGN(o.optimise, given.flag("optimise", true));
  if (!o.optimise && !o.pipeline.empty())
    return invalid_input(
        "give a pipeline or switch optimisation off, not both: the pipeline says what is run");
  REGIE_ASSIGN(o.verify, given.flag("verify", true));
  REGIE_ASSIGN(o.explain, given.flag("explain", false));
  REGIE_ASSIGN(int64_t threads, given.integer("threads", 1, 1, 1024));
  o.threads = static_cast<uint32_t>(threads);
  if (const auto limit = given.find("memory-limit")) {
    auto bytes = parse_size(*limit);
    if (!bytes.ok()) return invalid_input("option 'memory-limit': " + bytes.status().message());
    if (*bytes == 0) return invalid_input("option 'memory-limit' is 0; leave it out where there is no limit");
    o.memory_limit = *bytes;
  }
  for (const std::string& shape : given.all("shape")) o.import_options.emplace_back("shape", shape);
  o.typical = given.all("typical");
  REGIE_ASSIGN(const bool fold_defaults, given.flag("fold-defaults", false));
  if (fold_defaults) o.import_options.emplace_back("defaults", "constant");
  for (const std::string& setting : given.all("set")) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return invalid_input("option 'set' wants pass.option=value, not '" + setting + "'");
    o.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return o;
}

using Json = nlohmann::ordered_json;

// Of all plans: one that was compiled makes the whole a miss.
std::string cache_json(const std::vector<CompiledPlans::Plan>& plans) {
  std::vector<std::string> why;
  std::string from;
  double ms = 0;
  size_t hits = 0, off = 0;
  for (const CompiledPlans::Plan& p : plans) {
    hits += p.cache.outcome == "hit";
    if (!p.cache.from.empty() && from.find(p.cache.from) == std::string::npos)
      from += (from.empty() ? "" : ", ") + p.cache.from;
    off += p.cache.outcome == "off";
    ms += p.cache.milliseconds;
    for (const std::string& w : p.cache.why)
      if (std::find(why.begin(), why.end(), w) == why.end()) why.push_back(w);
  }
  Json j{{"outcome", off                    ? "off"
                     : hits == plans.size() ? "hit"
                                            : "miss"},
         {"hits", hits},
         {"plans", plans.size()}};
  if (!from.empty()) j["from"] = from;
  if (!why.empty()) j["why"] = why;
  j["milliseconds"] = ms;
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string shapes_json(const CompiledPlans& compiled) {
  Json j = plans_json(*compiled.set);
  for (size_t p = 0; p < compiled.plans.size(); ++p) {
    Json& plan = j["plans"][p];
    plan["milliseconds"] = compiled.plans[p].milliseconds;
    plan["cache"] = Json::parse(compiled.plans[p].cache.to_json());
  }
  return j.dump(2, ' ', false, Json::error_handler_t::replace);
}

Status compile_plans_into(const std::string& path, std::span<const std::byte> bytes, const ApiCompile& given,
                          regie_model** model) {
  REGIE_ASSIGN(CompiledPlans compiled,
               compile_plans({given.plugins, path, bytes, given.options}, given.cache, given.shapes));
  auto made = std::make_unique<regie_model>(compiled.set);
  const size_t greatest = compiled.set->plans.size() - 1;
  made->source = path;
  made->compile_report = std::move(compiled.plans[greatest].compile_report);
  made->cache_report = cache_json(compiled.plans);
  made->shapes_report = shapes_json(compiled);
  if (made->compile_report.empty()) made->compile_ms = compiled.plans[greatest].milliseconds;
  *model = made.release();
  return {};
}

// An offline model with several plans has several again, unless the caller says otherwise. What is wrong with
// a file is said by whoever compiles it.
void keep_sizes(const std::string& path, std::span<const std::byte> bytes, ApiCompile* given) {
  if (given->sizes_said || !bytes.empty()) return;
  const auto set = load_plan_set(path, WeightChecking::kInBackground);
  if (set.ok() && *set) given->shapes = (*set)->spec;
}

Status compile_into(const std::string& path, std::span<const std::byte> bytes, const regie_option* options,
                    size_t count, regie_model** model) {
  REGIE_ASSIGN(ApiCompile given, read_api_compile(options, count));
  keep_sizes(path, bytes, &given);
  if (given.shapes.mode == ShapeSpec::kBuckets) return compile_plans_into(path, bytes, given, model);
  REGIE_ASSIGN(CachedCompile compiled,
               compile_cached({given.plugins, path, bytes, given.options}, given.cache));
  auto made = std::make_unique<regie_model>(std::move(compiled.model));
  made->source = path;
  made->compile_report = std::move(compiled.report);
  made->cache_report = compiled.cache.to_json();
  if (made->compile_report.empty()) made->compile_ms = compiled.cache.milliseconds;
  *model = made.release();
  return {};
}

}  // namespace

Result<ApiCompile> read_api_compile(const regie_option* options, size_t count) {
  REGIE_ASSIGN(const ApiOptions given,
               ApiOptions::read(options, count,
                                {"target", "pipeline", "dump", "optimise", "verify", "threads", "plugin-path",
                                 "cache", "cache-dir", "cache-size", "fold-defaults", "shapes", "padding",
                                 "overflow", "memory-limit", "explain"},
                                {"shape", "typical", "set"}));
  ApiCompile out;
  REGIE_ASSIGN(out.options, read_options(given));
  REGIE_ASSIGN(out.cache,
               cache_options(given.find("cache"), given.find("cache-dir"), given.find("cache-size")));
  REGIE_ASSIGN(out.shapes,
               read_shape_spec(given.text("shapes"), given.text("padding"), given.text("overflow")));
  for (const char* key : {"shapes", "padding", "overflow"}) out.sizes_said |= given.find(key).has_value();
  out.sizes_said |= !given.all("shape").empty();
  REGIE_ASSIGN(out.plugins, api_plugin_host(given.text("plugin-path")));
  return out;
}

}  // namespace regie

extern "C" {

regie_status regie_compile_file(const char* path, const regie_option* options, size_t option_count,
                                regie_model** model) {
  return regie::api_guard([&]() -> regie::Status {
    if (!path || !model) return regie::invalid_input("regie_compile_file: path and model must not be NULL");
    *model = nullptr;
    return regie::compile_into(path, {}, options, option_count, model);
  });
}

regie_status regie_compile_bytes(const void* data, size_t size, const char* name, const regie_option* options,
                                 size_t option_count, regie_model** model) {
  return regie::api_guard([&]() -> regie::Status {
    if (!data || !size || !name || !model)
      return regie::invalid_input(
          "regie_compile_bytes: data, name and model must not be NULL, nor the model empty");
    *model = nullptr;
    return regie::compile_into(name, {static_cast<const std::byte*>(data), size}, options, option_count,
                               model);
  });
}

const char* regie_cache_statistics(void) {
  thread_local std::string text;
  try {
    const regie::CacheStatistics s = regie::cache_statistics();
    text = regie::JsonWriter()
               .open_object()
               .member("compiles", s.compiles)
               .member("process_hits", s.memory_hits)
               .member("folder_hits", s.folder_hits)
               .member("stored", s.stored)
               .member("not_stored", s.not_stored)
               .member("kernels_compiled", s.kernels_compiled)
               .member("kernels_known", s.kernels_known)
               .close()
               .take();
  } catch (...) {
    return "{}";
  }
  return text.c_str();
}

}  // extern "C"
