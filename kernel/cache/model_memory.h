// What this process has compiled or loaded, by key. A model that is in use is shared with whoever asks for it
// again. One that the cache folder could not take is kept although nobody uses it, so that the next request
// does not compile again; that is bounded, least recently used first, and the newest always stays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace regie {

class ModelMemory {
 public:
  static std::shared_ptr<const Model> find(const std::string& digest);
  // `keep_bytes`: what models that nobody else uses may take in all; 0: this one is in the folder and need
  // not be kept.
  static void put(const std::string& digest, const std::shared_ptr<const Model>& model, uint64_t keep_bytes);
  static std::vector<std::string> externals(const std::string& base_digest);
  static void put_externals(const std::string& base_digest, std::vector<std::string> names);
  static void forget();  // for tests

  // Held while a model is compiled: a second thread that wants the same one waits for it.
  class Flight {
   public:
    explicit Flight(std::string digest);
    ~Flight();
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;

   private:
    std::string digest_;
  };
};

// Since the process began.
struct CacheStatistics {
  uint64_t compiles = 0;     // by the compiler; those that failed too
  uint64_t memory_hits = 0;  // models that the process had
  uint64_t folder_hits = 0;
  uint64_t stored = 0, not_stored = 0;
  uint64_t kernels_compiled = 0, kernels_known = 0;
};
CacheStatistics cache_statistics();
void count_in_cache_statistics(const CacheStatistics& more);

}  // namespace regie
