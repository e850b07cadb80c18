// The kernel cache: kernels that took their engine long, by what was asked, shared by all models. In the
// cache folder, and in the process, so that layers that repeat within a model are compiled once and a folder
// that cannot be written costs nothing. What an engine makes as quickly as a file is read is not kept.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cache/folder.h"
#include "cache/key.h"
#include "passes/kernel_cache.h"

namespace regie {

class KernelStore : public KernelCache {
 public:
  // `engines`: their keys, in the order of the target. `folder` may be NULL; `store`: it may be written to.
  KernelStore(std::vector<CacheKey> engines, std::shared_ptr<CacheFolder> folder, bool store);
  std::optional<CompiledKernel> find(uint32_t engine, const std::function<std::string()>& request) override;
  void keep(uint32_t engine, const std::function<std::string()>& request, const CompiledKernel& kernel,
            uint64_t nanoseconds) override;

  // Is one that took so long and has so many bytes worth keeping? REGIE_CACHE_KERNEL_MS says from how many
  // milliseconds on; twice the time of reading it is added.
  static bool worth_keeping(uint64_t nanoseconds, uint64_t bytes);
  // Reads every kernel of the folder; gives the paths of those that were damaged, which are removed.
  static std::vector<std::string> verify(CacheFolder& folder);
  // What the process remembers is forgotten: for tests.
  static void forget();

 private:
  struct Engine {
    CacheKey key;
    std::string digest;
    std::set<std::string> stored;  // requests in the folder
    bool listed = false;
  };
  Engine& look_at(uint32_t engine);
  std::vector<Engine> engines_;
  std::shared_ptr<CacheFolder> folder_;
  bool store_;
};

// The file of a kernel: lines of text, then blob and packed weights. CORRUPT if it is not as it was written.
std::string kernel_to_bytes(const CompiledKernel& kernel, const std::string& request);
Result<CompiledKernel> kernel_from_bytes(std::string_view bytes, const std::string& request);

}  // namespace regie
