#include "cache/model_store.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "model/file.h"
#include "model/sections.h"

namespace regie {

namespace {

constexpr const char* kMagic = "regie-cache-entry";

std::string model_name(const std::string& digest) { return "models/" + digest + ".rgm"; }
std::string key_name(const std::string& digest) { return "models/" + digest + ".key"; }
std::string externals_name(const std::string& base) { return "models/" + base + ".files"; }

Result<std::string> head_of(const std::string& path) {
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  std::string text = head_checksum_text(file.bytes());
  if (text.empty()) return corrupt("it is no model file");
  return text;
}

std::string to_text(const EntryInfo& e) {
  std::string text = to_line({kMagic, e.digest});
  text += to_line({"source", e.source});
  text += to_line({"file", e.head, std::to_string(e.bytes)});
  for (const KeyPart& p : e.key.parts()) text += to_line({"part", p.kind, p.name, p.value});
  return with_checksum(std::move(text));
}

std::optional<EntryInfo> read_entry(std::string_view text, const std::string& digest) {
  const auto lines = checked_lines(text);
  if (!lines || lines->size() < 3 || (*lines)[0] != std::vector<std::string>{kMagic, digest} ||
      (*lines)[1].size() != 2 || (*lines)[2].size() != 3)
    return std::nullopt;
  EntryInfo e;
  e.digest = digest;
  e.source = (*lines)[1][1];
  e.head = (*lines)[2][1];
  e.bytes = std::strtoull((*lines)[2][2].c_str(), nullptr, 10);
  for (size_t i = 3; i < lines->size(); ++i) {
    const auto& l = (*lines)[i];
    if (l.size() != 4 || l[0] != "part") return std::nullopt;
    e.key.add(l[1], l[2], l[3]);
  }
  return e;
}

}  // namespace

std::optional<EntryInfo> ModelStore::record(const std::string& digest) const {
  const auto text = folder_->read(key_name(digest));
  return text ? read_entry(*text, digest) : std::nullopt;
}

void ModelStore::remove(const std::string& digest) const {
  folder_->remove(key_name(digest));
  folder_->remove(model_name(digest));
}

std::vector<std::string> ModelStore::externals(const std::string& base_digest) const {
  const auto text = folder_->read(externals_name(base_digest));
  const auto lines = text ? checked_lines(*text) : std::nullopt;
  if (!lines) return {};
  folder_->touch(externals_name(base_digest));
  return lines->front();
}

Result<std::shared_ptr<const Model>> ModelStore::load(const std::string& digest, const CacheKey& key,
                                                      bool use) const {
  const std::string path = folder_->file(model_name(digest));
  const auto text = folder_->read(key_name(digest));
  if (!text) return not_found("there is no entry " + digest);
  const auto entry = read_entry(*text, digest);
  if (!entry) return corrupt("its record is not as it was written", path);
  if (!(entry->key == key)) return corrupt("its record has another key", path);
  if (!CacheFolder::is_own(path)) return not_found("there is no entry " + digest);
  REGIE_ASSIGN(const std::string head, head_of(path));
  if (head != entry->head) return corrupt("it is another model than its record says", path);
  REGIE_ASSIGN(std::shared_ptr<const Model> model, load_model(path));
  if (use) folder_->touch(key_name(digest));
  return model;
}

std::string ModelStore::put(const std::string& base_digest, const std::vector<std::string>& externals,
                            const std::string& digest, const CacheKey& key, const std::string& source,
                            const Model& model, uint64_t limit) const {
  if (model.weight_bytes.size() > limit / 2)
    return "it is larger than half of the cache's limit, " + std::to_string(limit) + " bytes";
  const std::string failed = "the cache folder cannot be written";
  if (!externals.empty() && !folder_->write(externals_name(base_digest), with_checksum(to_line(externals))))
    return failed;
  const auto save = [&](const std::string& path) { return save_model(model, path, Sync::kNo); };
  if (!folder_->write(model_name(digest), save)) return failed;
  EntryInfo entry;
  entry.digest = digest;
  entry.key = key;
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(source, error);
  entry.source = error ? source : full.lexically_normal().string();
  const std::string path = folder_->file(model_name(digest));
  auto head = head_of(path);
  if (!head.ok()) return head.status().to_string();
  entry.head = *head;
  entry.bytes = std::filesystem::file_size(path, error);
  if (!folder_->write(key_name(digest), to_text(entry))) return failed;
  folder_->shrink(limit);
  return {};
}

std::vector<EntryInfo> ModelStore::list(size_t most) const {
  std::vector<CacheFile> files = folder_->list("models");
  std::erase_if(files, [](const CacheFile& f) { return !f.name.ends_with(".key"); });
  std::stable_sort(files.begin(), files.end(),
                   [](const CacheFile& a, const CacheFile& b) { return a.used_ns > b.used_ns; });
  if (files.size() > most) files.resize(most);
  std::vector<EntryInfo> entries;
  for (const CacheFile& f : files)
    if (auto e = record(f.name.substr(0, f.name.size() - 4))) {
      e->used_ns = f.used_ns;
      entries.push_back(std::move(*e));
    }
  return entries;
}

std::optional<EntryInfo> ModelStore::nearest(const CacheKey& key, const std::string& source) const {
  constexpr size_t kMost = 512;
  std::error_code error;
  const std::string path = std::filesystem::absolute(source, error).lexically_normal().string();
  std::optional<EntryInfo> best;
  size_t best_distance = SIZE_MAX;
  for (EntryInfo& e : list(kMost)) {
    const bool same_model = e.key.find("model", "") == key.find("model", "");
    if (!same_model && e.source != path) continue;
    const size_t distance = differences(key, e.key).size() + (same_model ? 0 : 1000);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = std::move(e);
  }
  return best;
}

std::vector<std::string> ModelStore::verify() const {
  std::vector<std::string> wrong;
  for (const CacheFile& f : folder_->list("models")) {
    const std::string stem = f.name.substr(0, f.name.rfind('.'));
    if (f.name.ends_with(".files")) {
      const auto text = folder_->read("models/" + f.name);
      if (text && checked_lines(*text)) continue;
      folder_->remove("models/" + f.name);
      wrong.push_back(f.path + ": it is not as it was written");
    }
    if (!f.name.ends_with(".key")) continue;
    const auto entry = record(stem);
    Status s =
        entry ? load(stem, entry->key, false).status() : corrupt("its record is not as it was written");
    if (entry && entry->key.digest() != stem) s = corrupt("its record has another key");
    if (s.ok()) continue;
    remove(stem);
    wrong.push_back(f.path + ": " + s.to_string());
  }
  return wrong;
}

}  // namespace regie
