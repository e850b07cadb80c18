// A compile, or what one gave before: from the process, from the cache folder, or anew and then kept. All
// that compiles for a user goes through here, so that none is silent: a line of the log and a part of the
// report say where the model came from, and why it was not known.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/compile_key.h"
#include "cache/folder.h"
#include "cache/model_store.h"
#include "passes/compiler.h"

namespace regie {

struct CacheOutcome {
  std::string outcome;           // "hit", "miss", "off"
  std::string from;              // hit: "process" or "folder"
  std::string key;               // digest; empty: off
  std::vector<std::string> why;  // miss, off
  bool stored = false;
  std::string not_stored;   // why not
  double milliseconds = 0;  // of looking, loading and storing; without the compile
  std::string to_json() const;
};

struct CachedCompile {
  std::shared_ptr<const Model> model;
  std::string report;  // of the compile, times included; empty for a hit: the model has the rest
  CacheOutcome cache;
};

Result<CachedCompile> compile_cached(const CompileRequest& request, const CacheOptions& cache);

// `regie cache why`: what such a compile would find. Changes nothing but the memory of files.
struct CacheAnswer {
  CacheKey key;
  std::string digest;
  bool in_folder = false;
  std::string damaged;               // an entry is there, and cannot be read
  std::optional<EntryInfo> nearest;  // the entry itself, or the one that differs least
  std::vector<std::string> why;      // what differs from that one; or that there is none
};
Result<CacheAnswer> ask_cache(const CompileRequest& request, const CacheOptions& cache);

}  // namespace regie
