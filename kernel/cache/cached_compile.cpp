#include "cache/cached_compile.h"

#include <chrono>

#include "base/json_writer.h"
#include "base/log.h"
#include "cache/kernel_store.h"
#include "cache/model_memory.h"

namespace regie {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::shared_ptr<CacheFolder> folder_of(const CacheOptions& cache) {
  return cache.mode == CacheMode::kOff ? nullptr : CacheFolder::open(cache.folder);
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& s : list) text += (text.empty() ? "" : "; ") + s;
  return text;
}

// The whole key: that of the files beside the model too, as far as it is known which there are.
struct Keys {
  CacheKey key;
  std::string base, digest;
};

// `externals` gives those files for the digest of all else.
template <class Externals>
Result<Keys> keys_of(const CompileRequest& request, const FileDigests& files, const Externals& externals) {
  Keys keys;
  REGIE_ASSIGN(keys.key, compile_key(request, files));
  keys.base = keys.key.digest();
  // One that is gone by now is a failure of the compile, not of the cache.
  REGIE_TRY(add_externals(&keys.key, request, externals(keys.base), files));
  keys.digest = keys.key.digest();
  return keys;
}

// With the files that earlier compiles read. `folder` may be NULL.
Result<Keys> known_keys(const CompileRequest& request, const FileDigests& files,
                        const std::shared_ptr<CacheFolder>& folder) {
  return keys_of(request, files, [&](const std::string& base) {
    std::vector<std::string> externals = ModelMemory::externals(base);
    if (externals.empty() && folder) externals = ModelStore(folder).externals(base);
    return externals;
  });
}

// Those that an answer from before cannot serve, with why.
std::string not_for_cache(const CompileOptions& o) {
  if (!o.dump.empty()) return "the graph is to be dumped after each stage";
  if (o.explain) return "everything is to be explained";
  return {};
}

std::vector<std::string> reasons(const CacheKey& key, const std::optional<EntryInfo>& nearest) {
  if (!nearest) return {"there is no entry of this model or of this path"};
  auto list = differences(key, nearest->key);
  if (list.empty()) list.push_back("nothing, but the model file of the entry is gone or cannot be read");
  return list;
}

class Compile {
 public:
  Compile(const CompileRequest& request, const CacheOptions& cache)
      : r_(request),
        cache_(cache),
        folder_(folder_of(cache)),
        files_(folder_, cache.mode == CacheMode::kOn) {}

  Result<CachedCompile> run() {
    std::string off = cache_.mode == CacheMode::kOff
                          ? "it is not asked for (--cache on, REGIE_CACHE=on or REGIE_CACHE_DIR)"
                          : not_for_cache(r_.options);
    if (!off.empty()) return without(off);
    start_ = Clock::now();
    readable_ = folder_->readable();
    auto keys = known_keys(r_, files_, readable_ ? folder_ : nullptr);
    if (!keys.ok()) return without("the key cannot be made: " + keys.status().to_string());
    keys_ = std::move(keys).value();
    out_.cache.key = keys_.digest;
    const ModelMemory::Flight flight(keys_.digest);
    if (look()) return std::move(out_);
    REGIE_TRY(compile_now());
    return std::move(out_);
  }

 private:
  Result<CachedCompile> without(const std::string& why) {
    out_.cache.outcome = "off";
    out_.cache.why = {why};
    log(REGIE_LOG_INFO, "cache", "off: " + why + "; compiling " + r_.path);
    count_in_cache_statistics({.compiles = 1});
    REGIE_ASSIGN(Compiled compiled, compile(r_.plugins, r_.path, r_.bytes, r_.options));
    out_.model = std::move(compiled.model);
    out_.report = std::move(compiled.report);
    return std::move(out_);
  }

  bool hit(std::shared_ptr<const Model> model, const char* from) {
    out_.model = std::move(model);
    out_.cache.outcome = "hit";
    out_.cache.from = from;
    out_.cache.milliseconds = ms_since(start_);
    log(REGIE_LOG_INFO, "cache", "hit in the " + std::string(from) + ": " + keys_.digest + ", " + r_.path);
    return true;
  }

  bool look() {
    if (auto model = ModelMemory::find(keys_.digest)) {
      count_in_cache_statistics({.memory_hits = 1});
      return hit(std::move(model), "process");
    }
    if (readable_) {
      const ModelStore store(folder_);
      auto loaded = store.load(keys_.digest, keys_.key);
      if (loaded.ok()) {
        ModelMemory::put(keys_.digest, *loaded, 0);
        count_in_cache_statistics({.folder_hits = 1});
        return hit(std::move(loaded).value(), "folder");
      }
      if (loaded.status().code() == REGIE_NOT_FOUND)
        out_.cache.why = reasons(keys_.key, store.nearest(keys_.key, r_.path));
      else
        out_.cache.why = {"the entry is damaged: " + loaded.status().to_string()};
    } else {
      out_.cache.why = {"there is no cache folder yet that can be read: " + folder_->path()};
    }
    out_.cache.outcome = "miss";
    log(REGIE_LOG_INFO, "cache", "miss: " + joined(out_.cache.why) + "; compiling " + r_.path);
    return false;
  }

  Status compile_now() {
    REGIE_ASSIGN(const Target target, load_target(*r_.plugins, r_.options.target, r_.options.settings));
    std::vector<CacheKey> engines;
    for (const TargetEngine& e : target.engines) engines.push_back(engine_key(keys_.key, e, *r_.plugins));
    KernelStore kernels(std::move(engines), folder_, cache_.mode == CacheMode::kOn);
    CompileOptions options = r_.options;
    options.kernels = &kernels;
    out_.cache.milliseconds = ms_since(start_);
    count_in_cache_statistics({.compiles = 1});
    REGIE_ASSIGN(Compiled compiled, compile(r_.plugins, r_.path, r_.bytes, options));
    start_ = Clock::now();
    count_in_cache_statistics(
        {.kernels_compiled = compiled.kernels_compiled, .kernels_known = compiled.kernels_known});
    out_.model = std::move(compiled.model);
    out_.report = std::move(compiled.report);
    keep(compiled.external_files);
    out_.cache.milliseconds += ms_since(start_);
    return {};
  }

  // Under what the compile has really read: a file that was changed meanwhile makes the key another one.
  void keep(const std::vector<std::string>& externals) {
    const auto now = keys_of(r_, files_, [&](const std::string&) { return externals; });
    if (!now.ok() || now->base != keys_.base) return not_stored("a file has changed while it was compiled");
    out_.cache.key = now->digest;
    if (!externals.empty()) ModelMemory::put_externals(now->base, externals);
    std::string why = cache_.mode == CacheMode::kRead ? "the cache is only read" : "";
    if (why.empty())
      why = ModelStore(folder_).put(now->base, externals, now->digest, now->key, r_.path, *out_.model,
                                    cache_.limit);
    ModelMemory::put(now->digest, out_.model, why.empty() ? 0 : std::max<uint64_t>(cache_.memory, 1));
    if (!why.empty()) return not_stored(why);
    out_.cache.stored = true;
    count_in_cache_statistics({.stored = 1});
  }

  void not_stored(const std::string& why) {
    out_.cache.not_stored = why;
    count_in_cache_statistics({.not_stored = 1});
    log(REGIE_LOG_INFO, "cache", r_.path + " is not stored: " + why);
  }

  const CompileRequest& r_;
  const CacheOptions& cache_;
  std::shared_ptr<CacheFolder> folder_;
  FileDigests files_;
  bool readable_ = false;
  Clock::time_point start_;
  Keys keys_;
  CachedCompile out_;
};

}  // namespace

std::string CacheOutcome::to_json() const {
  JsonWriter j;
  j.open_object().member("outcome", outcome);
  if (!from.empty()) j.member("from", from);
  if (!key.empty()) j.member("key", key);
  if (!why.empty()) j.strings("why", why);
  if (outcome == "miss") j.member("stored", stored);
  if (!not_stored.empty()) j.member("not_stored", not_stored);
  return j.member("milliseconds", milliseconds).close().take();
}

Result<CachedCompile> compile_cached(const CompileRequest& request, const CacheOptions& cache) {
  return Compile(request, cache).run();
}

Result<CacheAnswer> ask_cache(const CompileRequest& request, const CacheOptions& cache) {
  const std::shared_ptr<CacheFolder> folder = CacheFolder::open(cache.folder);
  const bool readable = folder->readable();
  const FileDigests files(folder, cache.mode == CacheMode::kOn);
  REGIE_ASSIGN(Keys keys, known_keys(request, files, readable ? folder : nullptr));
  CacheAnswer answer;
  answer.digest = keys.digest;
  answer.key = std::move(keys.key);
  if (!readable) {
    answer.why = {"there is no cache folder that can be read: " + folder->path()};
    return answer;
  }
  const ModelStore store(folder);
  answer.nearest = store.nearest(answer.key, request.path);
  answer.why = reasons(answer.key, answer.nearest);
  const Status loaded = store.load(answer.digest, answer.key, false).status();
  answer.in_folder = loaded.ok();
  if (!loaded.ok() && loaded.code() != REGIE_NOT_FOUND) answer.damaged = loaded.to_string();
  return answer;
}

}  // namespace regie
