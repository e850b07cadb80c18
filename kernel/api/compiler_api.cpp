// The compiling half of the embedding API.
#include "api/compile_options.h"
#include "api/objects.h"
#include "base/json_writer.h"
#include "cache/cached_compile.h"
#include "cache/model_memory.h"

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
  REGIE_ASSIGN(int64_t threads, given.integer("threads", 1, 1, 1024));
  o.threads = static_cast<uint32_t>(threads);
  if (const auto limit = given.find("memory-limit")) {
    auto bytes = parse_size(*limit);
    if (!bytes.ok() || *bytes == 0)
      return invalid_input("option 'memory-limit' wants a size, such as 64MiB, not '" + std::string(*limit) +
                           "'");
    o.memory_limit = *bytes;
  }
  for (const std::string& shape : given.all("shape")) o.import_options.emplace_back("shape", shape);
  for (const std::string& setting : given.all("set")) {
    size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return invalid_input("option 'set' wants pass.option=value, not '" + setting + "'");
    o.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return o;
}

Status compile_into(const std::string& path, std::span<const std::byte> bytes, const regie_option* options,
                    size_t count, regie_model** model) {
  REGIE_ASSIGN(const ApiCompile given, read_api_compile(options, count));
  REGIE_ASSIGN(CachedCompile compiled,
               compile_cached({given.plugins, path, bytes, given.options}, given.cache));
  auto made = std::make_unique<regie_model>(std::move(compiled.model));
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
                                 "cache", "cache-dir", "cache-size", "memory-limit"},
                                {"shape", "set"}));
  ApiCompile out;
  REGIE_ASSIGN(out.options, read_options(given));
  REGIE_ASSIGN(out.cache,
               cache_options(given.find("cache"), given.find("cache-dir"), given.find("cache-size")));
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
