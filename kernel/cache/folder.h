// The folder that a cache lies in: where it is, whether it may be used, and writes that never harm anything.
// Nothing here fails: a folder that is read-only, full, damaged or another user's costs one warning a
// process, which says what to do, and then there is no folder.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace regie {

enum class CacheMode {
  kOff,   // every compile is made anew, and nothing is remembered
  kRead,  // entries of the folder serve, and none is written
  kOn
};

struct CacheOptions {
  CacheMode mode = CacheMode::kOff;
  std::string folder;                   // empty: no place is known, and only the process remembers
  uint64_t limit = uint64_t{4} << 30;   // bytes of the folder; least recently used entries go
  uint64_t memory = uint64_t{1} << 30;  // bytes of models that only the process remembers
};

// Each as given, or else from REGIE_CACHE (off, read, on), REGIE_CACHE_DIR, REGIE_CACHE_SIZE ("500M", "4G"),
// REGIE_CACHE_MEMORY. Nobody gets a cache who does not ask for one: without a mode it is on if a folder is
// named, and else off. Without a folder it is $XDG_CACHE_HOME/regie or ~/.cache/regie. INVALID_INPUT names
// the option or variable.
Result<CacheOptions> cache_options(const std::optional<std::string>& mode,
                                   const std::optional<std::string>& folder,
                                   const std::optional<std::string>& limit);

struct CacheFile {
  std::string path, name;  // name: within its folder
  uint64_t bytes = 0;
  int64_t used_ns = 0;  // when it was written or served last
};

class CacheFolder {
 public:
  // One a path and process.
  static std::shared_ptr<CacheFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  // Full path of something in it.
  std::string file(std::string_view relative) const {
    return path_ + "/" + kFormat + "/" + std::string(relative);
  }
  // Is there a folder, of one's own or of root, that may be read? Warns once if it is another user's.
  bool readable();
  // Regular files of one's own or of root in a sub-folder; none if it is not there.
  std::vector<CacheFile> list(std::string_view sub) const;
  std::vector<std::string> folders(
      std::string_view sub) const;  // names of the folders in a sub-folder, sorted
  // Complete or not at all, never over a reader's head. False, after one warning, if it is not possible; then
  // further ones are not tried for a minute.
  bool write(std::string_view relative, std::string_view text);
  bool write(std::string_view relative, const std::function<Status(const std::string& path)>& save);
  // The whole of a small file; nothing if it is not there or another user's.
  std::optional<std::string> read(std::string_view relative) const;
  // Marks it as used now.
  void touch(std::string_view relative) const;
  void remove(std::string_view relative) const;
  // Removes what was used least recently, files of one stem together, until at most `limit` bytes are left;
  // and what an interrupted write left behind. Gives the number of stems removed. One process at a time.
  size_t shrink(uint64_t limit);
  uint64_t bytes() const;
  // Whether a file may be trusted: regular, and of this user or root.
  static bool is_own(const std::string& path);

 private:
  static constexpr const char* kFormat = "1";  // changes when entries of older versions must not be read
  explicit CacheFolder(std::string path) : path_(std::move(path)) {}
  Status prepare(const std::string& file);
  void warn(const Status& why);
  bool resting() const;

  const std::string path_;
  mutable std::mutex mutex_;  // of what follows
  bool warned_ = false;
  std::optional<std::chrono::steady_clock::time_point> failed_;
};

// A file's time, and the present, on one scale.
int64_t nanoseconds(const timespec& time);
int64_t nanoseconds_now();

}  // namespace regie
