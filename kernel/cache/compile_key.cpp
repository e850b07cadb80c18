#include "cache/compile_key.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "cache/processor.h"
#include "model/file.h"
#include "passes/rule_pass.h"

namespace regie {

namespace {

namespace fs = std::filesystem;

std::string base_name(const std::string& path) { return fs::path(path).filename().string(); }

std::string text_digest(std::string_view text) { return Hasher().text(text).hex(); }

// The file that the code at `address` was loaded from.
std::string file_of(const void* address) {
  Dl_info info;
  if (::dladdr(address, &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  const fs::path real = fs::canonical(info.dli_fname, error);
  return error ? fs::read_symlink("/proc/self/exe", error).string() : real.string();
}

// Name of the file -> path, of every library in the process.
std::map<std::string, std::string> loaded_libraries() {
  std::map<std::string, std::string> loaded;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::map<std::string, std::string>*>(to)->emplace(base_name(info->dlpi_name),
                                                                        info->dlpi_name);
        return 0;
      },
      &loaded);
  return loaded;
}

// A library that is replaced while the process has it open: its file says something else than its code does.
Status check_unchanged(const std::string& path, const std::string& digest) {
  static std::mutex mutex;
  static auto* first = new std::map<std::string, std::string>;
  std::lock_guard lock(mutex);
  if (first->emplace(path, digest).first->second == digest) return {};
  return io_error(path + " was replaced while this process uses it; start the process again");
}

class Builder {
 public:
  Builder(const CompileRequest& request, const FileDigests& files) : r_(request), files_(files) {}

  Result<CacheKey> build() {
    const CompileOptions& o = r_.options;
    REGIE_ASSIGN(pipeline_, load_pipeline(*r_.plugins, o.pipeline_name(), o.settings));
    REGIE_ASSIGN(target_, load_target(*r_.plugins, o.target, o.settings));
    REGIE_TRY(add_model());
    add_options();
    key_.add("pipeline", "", pipeline_.name);
    key_.add("passes", pipeline_.name, text_digest(pipeline_.digest_text));
    REGIE_TRY(add_rules());
    REGIE_TRY(add_named_files());
    REGIE_TRY(add_operators());
    REGIE_TRY(add_file("target", target_.name, target_.path));
    REGIE_TRY(add_plugins());
    REGIE_TRY(add_regie());
    key_.add("cpu", "name", processor().name);
    key_.add("cpu", "features", processor().features);
    return std::move(key_);
  }

 private:
  Status add_file(const std::string& kind, const std::string& name, const std::string& path) {
    REGIE_ASSIGN(std::string digest, files_.digest(path));
    key_.add(kind, name, std::move(digest));
    return {};
  }

  Status add_code(const std::string& kind, const std::string& name, const std::string& path) {
    REGIE_TRY(add_file(kind, name, path));
    return check_unchanged(path, key_.parts().back().value);
  }

  Status add_model() {
    std::string digest;
    if (r_.bytes.empty()) {
      REGIE_ASSIGN(digest, files_.digest(r_.path));
    } else {
      digest = Hasher().bytes(r_.bytes.data(), r_.bytes.size()).number(r_.bytes.size()).hex();
    }
    key_.add("model", "", std::move(digest));
    // Decides who reads it.
    key_.add("model", "ending", fs::path(r_.path).extension().string());
    return {};
  }

  // All that can change the model, whether or not it was given. Every option is named here, so that a new one
  // does not compile before somebody has said whether it counts. What only tells (dump, explain) is not
  // served from the cache at all; target and pipeline are parts of their own; where kernels are known from
  // changes none.
  void add_options() {
    const auto& [target, pipeline, optimise, verify, threads, memory_limit, dump, import_options, typical,
                 sizes, settings, held_back_patches, stop_after_patches, explain, kernels] = r_.options;
    key_.add("option", "threads", std::to_string(threads));
    key_.add("option", "optimise", optimise ? "1" : "0");
    key_.add("option", "verify", verify ? "1" : "0");
    if (memory_limit) key_.add("option", "memory-limit", std::to_string(memory_limit));
    for (const auto& [name, value] : import_options) key_.add("option", name, value);
    for (const std::string& text : typical) key_.add("option", "typical", text);
    for (const auto& [name, value] : sizes) key_.add("option", "size " + name, std::to_string(value));
    for (const auto& [name, value] : settings) key_.add("option", "set " + name, value);
    std::string patches;
    for (uint32_t p : held_back_patches) patches += (patches.empty() ? "" : ",") + std::to_string(p);
    if (!patches.empty()) key_.add("option", "patches left out", patches);
    if (stop_after_patches != UINT32_MAX)
      key_.add("option", "stop after patches", std::to_string(stop_after_patches));
  }

  Status add_rules() {
    std::vector<std::pair<std::string, std::string>> lists;  // and where they stand
    for (const Stage& stage : pipeline_.stages)
      for (const PassUse& use : stage.passes)
        if (use.name == RulePass::kName) lists.emplace_back(RulePass::rules_of(r_.options, use), use.where);
    std::set<std::string> seen;
    for (const auto& [list, where] : lists) {
      REGIE_ASSIGN(auto paths, RulePass::paths(*r_.plugins, list, where));
      for (const std::string& path : paths)
        if (seen.insert(path).second) REGIE_TRY(add_file("rules", base_name(path), path));
    }
    return {};
  }

  // Options of passes and devices that name files: what is in them counts.
  Status add_named_files() {
    std::set<std::string> seen;
    auto look_at = [&](const std::string& value) -> Status {
      std::error_code error;
      if (value.find('/') == std::string::npos || !fs::is_regular_file(value, error)) return {};
      return seen.insert(value).second ? add_file("file", value, value) : Status();
    };
    for (const Stage& stage : pipeline_.stages)
      for (const PassUse& use : stage.passes)
        for (const auto& [name, value] : use.options) REGIE_TRY(look_at(value));
    for (const auto& [name, value] : r_.options.settings) REGIE_TRY(look_at(value));
    for (const TargetDevice& d : target_.devices)
      for (const auto& [name, value] : d.params) REGIE_TRY(look_at(value));
    for (const TargetEngine& e : target_.engines)
      for (const auto& [name, value] : e.params) REGIE_TRY(look_at(value));
    return {};
  }

  Status add_operators() {
    for (const std::string& folder : r_.plugins->schema_folders()) {
      std::error_code error;  // one that the compile will have too
      for (const std::string& path : files_in(folder, ".toml", &error))
        REGIE_TRY(add_file("operators", base_name(path), path));
    }
    return {};
  }

  bool takes_part(const Manifest& m) const {
    return std::any_of(m.provides.begin(), m.provides.end(), [&](const auto& provided) {
      const auto& [kind, name] = provided;
      if (kind == "frontend" || kind == "op-shape" || kind == "op-kernel") return true;
      if (kind == "engine")
        return std::any_of(target_.engines.begin(), target_.engines.end(),
                           [&](const TargetEngine& e) { return e.plugin == name; });
      if (kind == "device")
        return std::any_of(target_.devices.begin(), target_.devices.end(),
                           [&](const TargetDevice& d) { return d.plugin == name; });
      for (const Stage& stage : pipeline_.stages)
        for (const PassUse& use : stage.passes)
          if (use.name == name) return true;
      return false;
    });
  }

  // Those that can take part, what they are linked with, and the variables of the environment that they
  // heed.
  Status add_plugins() {
    std::set<std::string> variables;
    std::map<std::string, std::string> libraries;  // name -> path
    auto loaded = loaded_libraries();
    for (const Manifest& m : r_.plugins->manifests()) {
      if (!takes_part(m)) continue;
      key_.add("version", m.name, m.version);
      variables.insert(m.environment.begin(), m.environment.end());
      if (m.library.empty()) continue;  // in Regie's own file
      REGIE_ASSIGN(const FileFacts facts, files_.facts(m.library, true));
      key_.add("plug-in", m.name, facts.digest);
      REGIE_TRY(check_unchanged(m.library, facts.digest));
      for (const std::string& name : facts.needed) {
        if (!loaded.count(name)) {
          // Which file the linker takes shows when it has; a plug-in that cannot be opened fails the compile.
          (void)r_.plugins->verify_library(m);
          loaded = loaded_libraries();
        }
        if (auto it = loaded.find(name); it != loaded.end()) libraries.emplace(name, it->second);
      }
    }
    for (const auto& [name, path] : libraries) REGIE_TRY(add_code("library", name, path));
    for (const std::string& name : variables)
      if (const char* value = std::getenv(name.c_str())) key_.add("environment", name, value);
    return {};
  }

  Status add_regie() {
    key_.add("regie", "", REGIE_VERSION);
    std::set<std::string> own;
    for (const void* address :
         {reinterpret_cast<const void*>(&compile_key), reinterpret_cast<const void*>(&looks_like_model_file)})
      if (const std::string path = file_of(address); !path.empty() && own.insert(path).second)
        REGIE_TRY(add_code("regie-file", base_name(path), path));
    return {};
  }

  const CompileRequest& r_;
  const FileDigests& files_;
  Pipeline pipeline_;
  Target target_;
  CacheKey key_;
};

}  // namespace

Result<CacheKey> compile_key(const CompileRequest& request, const FileDigests& files) {
  return Builder(request, files).build();
}

Status add_externals(CacheKey* key, const CompileRequest& request, const std::vector<std::string>& relative,
                     const FileDigests& files) {
  for (const std::string& name : relative) {
    REGIE_ASSIGN(const std::string path, resolve_beside(request.path, name));
    REGIE_ASSIGN(std::string digest, files.digest(path));
    key->add("external", name, std::move(digest));
  }
  return {};
}

CacheKey engine_key(const CacheKey& compile, const TargetEngine& engine, const PluginHost& plugins) {
  CacheKey key;
  key.add("engine", engine.plugin, "1");  // revision of how requests are described
  for (const auto& [name, value] : engine.params) key.add("engine", engine.plugin + " " + name, value);
  std::set<std::string> taking_part;
  for (const Manifest& m : plugins.manifests())
    for (const auto& [kind, name] : m.provides)
      if ((kind == "engine" && name == engine.plugin) || kind == "op-kernel") taking_part.insert(m.name);
  for (const KeyPart& p : compile.parts()) {
    // An engine may ask the operators' kernels for what it gives.
    const bool own = (p.kind == "plug-in" || p.kind == "version") && taking_part.contains(p.name);
    if (own || p.kind == "library" || p.kind == "environment" || p.kind == "cpu" || p.kind == "file")
      key.add(p.kind, p.name, p.value);
  }
  return key;
}

}  // namespace regie
