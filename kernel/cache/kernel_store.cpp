#include "cache/kernel_store.h"

#include <cstdlib>
#include <list>
#include <mutex>

#include "base/hash.h"

namespace regie {

namespace {

constexpr uint64_t kProcessBytes = 64 << 20;
constexpr const char* kMagic = "regie-cache-kernel";

uint64_t bytes_of(const CompiledKernel& k) {
  uint64_t bytes = k.blob.size();
  for (const PackedWeight& w : k.weights) bytes += w.bytes.bytes();
  return bytes;
}

// Least recently used first.
struct Process {
  struct Entry {
    std::string name;
    CompiledKernel kernel;
  };
  std::mutex mutex;
  std::list<Entry> order;
  std::map<std::string, std::list<Entry>::iterator, std::less<>> by_name;
  std::map<std::string, uint32_t> of_engine;  // how many, by engine
  uint64_t bytes = 0;
};

Process& process() {
  static auto* p = new Process;
  return *p;
}

void drop_oldest(Process& p) {
  const Process::Entry& oldest = p.order.front();
  p.bytes -= bytes_of(oldest.kernel);
  --p.of_engine[oldest.name.substr(0, oldest.name.find('/'))];
  p.by_name.erase(oldest.name);
  p.order.pop_front();
}

std::string place_of(const std::string& engine, const std::string& request) {
  return "kernels/" + engine + "/" + request + ".kernel";
}

uint64_t least_ns() {
  static const uint64_t least = [] {
    const char* text = std::getenv("REGIE_CACHE_KERNEL_MS");
    char* end = nullptr;
    const double ms = text ? std::strtod(text, &end) : 2;
    return static_cast<uint64_t>((text && (end == text || *end || !(ms >= 0 && ms < 1e9)) ? 2 : ms) * 1e6);
  }();
  return least;
}

Status damaged() { return corrupt("the kernel is not as it was written"); }

}  // namespace

std::string kernel_to_bytes(const CompiledKernel& k, const std::string& request) {
  std::string text = to_line({kMagic, request});
  text += to_line({k.format, k.name, std::to_string(k.flags), std::to_string(k.scratch_bytes),
                   std::to_string(k.blob.size())});
  std::vector<std::string> requires_{std::to_string(k.requires_.size())};
  requires_.insert(requires_.end(), k.requires_.begin(), k.requires_.end());
  text += to_line(requires_);
  for (const PackedWeight& w : k.weights)
    text += to_line({std::to_string(w.operand), w.layout, std::to_string(w.bytes.bytes())});
  text += "\n" + k.blob;
  for (const PackedWeight& w : k.weights)
    text.append(static_cast<const char*>(w.bytes.data()), w.bytes.bytes());
  return text + Hasher().text(text).hex();
}

Result<CompiledKernel> kernel_from_bytes(std::string_view bytes, const std::string& request) {
  constexpr size_t kDigits = 32;
  if (bytes.size() < kDigits) return damaged();
  std::string_view body = bytes.substr(0, bytes.size() - kDigits);
  if (Hasher().text(body).hex() != bytes.substr(body.size())) return damaged();
  const size_t gap = body.find("\n\n");
  if (gap == std::string_view::npos) return damaged();
  const auto lines = read_lines(body.substr(0, gap + 1));
  std::string_view data = body.substr(gap + 2);
  if (lines.size() < 3 || lines[0] != std::vector<std::string>{kMagic, request} || lines[1].size() != 5)
    return damaged();
  CompiledKernel k;
  try {
    auto take = [&](const std::string& size) -> std::string_view {
      const std::string_view part = data.substr(0, std::stoull(size));
      data.remove_prefix(part.size());
      return part;
    };
    k.format = lines[1][0];
    k.name = lines[1][1];
    k.flags = static_cast<uint32_t>(std::stoul(lines[1][2]));
    k.scratch_bytes = std::stoull(lines[1][3]);
    k.blob = take(lines[1][4]);
    k.requires_.assign(lines[2].begin() + 1, lines[2].end());
    for (size_t i = 3; i < lines.size(); ++i) {
      if (lines[i].size() != 3) return damaged();
      const std::string_view part = take(lines[i][2]);
      const auto size = static_cast<int64_t>(part.size());
      const regie_tensor t{REGIE_U8, 0, 1, &size, nullptr, const_cast<char*>(part.data()), part.size()};
      REGIE_ASSIGN(Tensor copied, Tensor::try_copy(t, "a packed weight of " + k.name));
      k.weights.push_back({static_cast<uint32_t>(std::stoul(lines[i][0])), std::move(copied), lines[i][1]});
    }
  } catch (const std::exception&) {  // no number
    return damaged();
  }
  return k;
}

KernelStore::KernelStore(std::vector<CacheKey> engines, std::shared_ptr<CacheFolder> folder, bool store)
    : folder_(std::move(folder)), store_(store) {
  for (CacheKey& key : engines) {
    Engine e;
    e.digest = key.digest();
    e.key = std::move(key);
    engines_.push_back(std::move(e));
  }
}

KernelStore::Engine& KernelStore::look_at(uint32_t engine) {
  Engine& e = engines_[engine];
  if (e.listed) return e;
  e.listed = true;
  if (folder_ && folder_->readable())
    for (const CacheFile& f : folder_->list("kernels/" + e.digest))
      if (f.name.ends_with(".kernel")) e.stored.insert(f.name.substr(0, f.name.size() - 7));
  return e;
}

std::optional<CompiledKernel> KernelStore::find(uint32_t engine,
                                                const std::function<std::string()>& request) {
  if (engine >= engines_.size()) return std::nullopt;
  Engine& e = look_at(engine);
  Process& p = process();
  {
    std::lock_guard lock(p.mutex);
    const auto count = p.of_engine.find(e.digest);
    if (e.stored.empty() && (count == p.of_engine.end() || count->second == 0)) return std::nullopt;
  }
  const std::string wanted = request();
  {
    std::lock_guard lock(p.mutex);
    if (auto it = p.by_name.find(e.digest + "/" + wanted); it != p.by_name.end()) {
      p.order.splice(p.order.end(), p.order, it->second);
      return it->second->kernel;
    }
  }
  if (!e.stored.count(wanted)) return std::nullopt;
  const auto bytes = folder_->read(place_of(e.digest, wanted));
  auto kernel = bytes ? kernel_from_bytes(*bytes, wanted) : Result<CompiledKernel>(damaged());
  if (!kernel.ok()) {
    e.stored.erase(wanted);
    if (bytes && store_) folder_->remove(place_of(e.digest, wanted));
    return std::nullopt;
  }
  folder_->touch(place_of(e.digest, wanted));
  return std::move(kernel).value();
}

bool KernelStore::worth_keeping(uint64_t nanoseconds, uint64_t bytes) {
  return nanoseconds >= least_ns() && (least_ns() == 0 || nanoseconds >= 2 * bytes);  // 1 GB/s
}

void KernelStore::keep(uint32_t engine, const std::function<std::string()>& request,
                       const CompiledKernel& kernel, uint64_t nanoseconds) {
  const uint64_t bytes = bytes_of(kernel);
  if (engine >= engines_.size() || !worth_keeping(nanoseconds, bytes)) return;
  Engine& e = look_at(engine);
  const std::string wanted = request();
  if (bytes <= kProcessBytes) {
    Process& p = process();
    std::lock_guard lock(p.mutex);
    const std::string name = e.digest + "/" + wanted;
    if (!p.by_name.count(name)) {
      p.order.push_back({name, kernel});
      p.by_name.emplace(name, std::prev(p.order.end()));
      ++p.of_engine[e.digest];
      for (p.bytes += bytes; p.bytes > kProcessBytes;) drop_oldest(p);
    }
  }
  if (!store_ || !folder_ || e.stored.count(wanted)) return;
  if (e.stored.empty()) {  // what the folder's name stands for
    std::string parts;
    for (const KeyPart& part : e.key.parts()) parts += to_line({part.kind, part.name, part.value});
    if (!folder_->write("kernels/" + e.digest + "/engine.key", parts)) return;
  }
  if (folder_->write(place_of(e.digest, wanted), kernel_to_bytes(kernel, wanted))) e.stored.insert(wanted);
}

std::vector<std::string> KernelStore::verify(CacheFolder& folder) {
  std::vector<std::string> wrong;
  for (const std::string& engine : folder.folders("kernels")) {
    for (const CacheFile& f : folder.list("kernels/" + engine)) {
      if (!f.name.ends_with(".kernel")) continue;
      const std::string place = "kernels/" + engine + "/" + f.name;
      const auto bytes = folder.read(place);
      if (bytes && kernel_from_bytes(*bytes, f.name.substr(0, f.name.size() - 7)).ok()) continue;
      folder.remove(place);
      wrong.push_back(f.path);
    }
  }
  return wrong;
}

void KernelStore::forget() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  p.order.clear();
  p.by_name.clear();
  p.of_engine.clear();
  p.bytes = 0;
}

}  // namespace regie
