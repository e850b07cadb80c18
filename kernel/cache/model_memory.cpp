#include "cache/model_memory.h"

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace regie {

namespace {

constexpr size_t kMostExternals = 1024, kMostNames = 4096;

struct Process {
  struct Entry {
    std::string digest;
    std::weak_ptr<const Model> model;
    std::shared_ptr<const Model> kept;
  };
  std::mutex mutex;
  std::condition_variable landed;
  std::list<Entry> order;  // least recently used first
  std::map<std::string, std::list<Entry>::iterator> by_digest;
  std::map<std::string, std::vector<std::string>> externals;
  std::set<std::string> flying;
  CacheStatistics statistics;
};

Process& process() {
  static auto* p = new Process;
  return *p;
}

uint64_t bytes_of(const Model& m) {
  uint64_t bytes = 0;  // of the process: what is mapped from a file is counted as well, as it may be read
  for (const ModelKernel& k : m.kernels) bytes += k.blob.size();
  return bytes + m.weight_bytes.size() + m.portable_graph.size() + m.ledger_json.size();
}

}  // namespace

std::shared_ptr<const Model> ModelMemory::find(const std::string& digest) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  auto it = p.by_digest.find(digest);
  if (it == p.by_digest.end()) return nullptr;
  p.order.splice(p.order.end(), p.order, it->second);
  return it->second->model.lock();
}

void ModelMemory::put(const std::string& digest, const std::shared_ptr<const Model>& model,
                      uint64_t keep_bytes) {
  Process& p = process();
  std::vector<std::shared_ptr<const Model>> freed;  // outside of the lock
  std::lock_guard lock(p.mutex);
  if (auto it = p.by_digest.find(digest); it != p.by_digest.end()) {
    freed.push_back(std::move(it->second->kept));
    p.order.erase(it->second);
    p.by_digest.erase(it);
  }
  p.order.push_back({digest, model, keep_bytes ? model : nullptr});
  p.by_digest.emplace(digest, std::prev(p.order.end()));
  uint64_t kept = 0;
  for (auto at = p.order.rbegin(); keep_bytes && at != p.order.rend(); ++at) {
    if (!at->kept) continue;
    kept += bytes_of(*at->kept);
    if (kept > keep_bytes && at != p.order.rbegin()) freed.push_back(std::move(at->kept));
  }
  for (auto at = p.order.begin(); at != p.order.end() && p.order.size() > kMostNames;) {
    if (!at->model.expired()) {
      ++at;
      continue;
    }
    p.by_digest.erase(at->digest);
    at = p.order.erase(at);
  }
}

std::vector<std::string> ModelMemory::externals(const std::string& base_digest) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  auto it = p.externals.find(base_digest);
  return it == p.externals.end() ? std::vector<std::string>() : it->second;
}

void ModelMemory::put_externals(const std::string& base_digest, std::vector<std::string> names) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (p.externals.size() >= kMostExternals) p.externals.clear();
  p.externals[base_digest] = std::move(names);
}

void ModelMemory::forget() {
  Process& p = process();
  std::list<Process::Entry> freed;
  std::lock_guard lock(p.mutex);
  p.order.swap(freed);
  p.by_digest.clear();
  p.externals.clear();
}

ModelMemory::Flight::Flight(std::string digest) : digest_(std::move(digest)) {
  Process& p = process();
  std::unique_lock lock(p.mutex);
  p.landed.wait(lock, [&] { return !p.flying.count(digest_); });
  p.flying.insert(digest_);
}

ModelMemory::Flight::~Flight() {
  Process& p = process();
  {
    std::lock_guard lock(p.mutex);
    p.flying.erase(digest_);
  }
  p.landed.notify_all();
}

CacheStatistics cache_statistics() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  return p.statistics;
}

void count_in_cache_statistics(const CacheStatistics& more) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  CacheStatistics& s = p.statistics;
  s.compiles += more.compiles;
  s.memory_hits += more.memory_hits;
  s.folder_hits += more.folder_hits;
  s.stored += more.stored;
  s.not_stored += more.not_stored;
  s.kernels_compiled += more.kernels_compiled;
  s.kernels_known += more.kernels_known;
}

}  // namespace regie
