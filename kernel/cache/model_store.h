// The compile cache's entries: a model file for each key, DIGEST.rgm, and beside it DIGEST.key, lines of text
// that say what the key was, what the model was made from, and which file belongs to it. The record is
// written last and looked for first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/folder.h"
#include "cache/key.h"
#include "model/model.h"

namespace regie {

struct EntryInfo {
  std::string digest;  // of the key
  CacheKey key;
  std::string source;  // path of the model that it was made from
  std::string head;    // of the model file: its own checksum, 16 digits
  uint64_t bytes = 0;  // of the model file
  int64_t used_ns = 0;
};

class ModelStore {
 public:
  explicit ModelStore(std::shared_ptr<CacheFolder> folder) : folder_(std::move(folder)) {}

  // The files beside a model that compiles of this key read, so that they can be added to it. Empty: none, or
  // nothing is known.
  std::vector<std::string> externals(const std::string& base_digest) const;

  // NOT_FOUND if there is none; CORRUPT with why if it is not as it was written, or belongs to another key.
  // `use`: it counts as used now.
  Result<std::shared_ptr<const Model>> load(const std::string& digest, const CacheKey& key,
                                            bool use = true) const;
  // Writes an entry, then removes others until all of the folder is at most `limit` bytes. Gives why it was
  // not kept, empty if it was.
  std::string put(const std::string& base_digest, const std::vector<std::string>& externals,
                  const std::string& digest, const CacheKey& key, const std::string& source,
                  const Model& model, uint64_t limit) const;

  // By last use, the newest first. `most`: no more records than that are read.
  std::vector<EntryInfo> list(size_t most = SIZE_MAX) const;
  // The entry that differs least: of the same model if there is one, else of the same path. Nothing if no
  // entry is of either.
  std::optional<EntryInfo> nearest(const CacheKey& key, const std::string& source) const;
  // Reads every entry; gives "path: why" of those that were damaged, which are removed.
  std::vector<std::string> verify() const;

 private:
  std::optional<EntryInfo> record(const std::string& digest) const;
  void remove(const std::string& digest) const;
  std::shared_ptr<CacheFolder> folder_;
};

}  // namespace regie
