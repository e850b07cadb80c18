// The key of one compile: everything that its model depends on. What is in it, and why, is in docs/cache.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/file_digests.h"
#include "cache/key.h"
#include "passes/compile_state.h"

namespace regie {

struct CompileRequest {
  std::shared_ptr<PluginHost> plugins;
  std::string path;                  // of the model, or its name if `bytes` are given
  std::span<const std::byte> bytes;  // empty: the file at `path`
  CompileOptions options;
};

// Without files beside the model, of which only a compile knows which there are. A failure is one that the
// compile would have too, and has better words for.
Result<CacheKey> compile_key(const CompileRequest& request, const FileDigests& files);
// Adds the files beside the model that it reads: paths as the model has them.
Status add_externals(CacheKey* key, const CompileRequest& request, const std::vector<std::string>& relative,
                     const FileDigests& files);

// Of one engine of the target: what a kernel of it depends on besides its node. A part of the compile's key.
CacheKey engine_key(const CacheKey& compile, const TargetEngine& engine, const PluginHost& plugins);

}  // namespace regie
