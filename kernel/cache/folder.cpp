#include "cache/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/size_text.h"

namespace regie {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kRest = std::chrono::minutes(1);
constexpr int64_t kLeftBehindNs = int64_t{3600} * 1000000000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string default_folder() {
  if (std::string given = environment("REGIE_CACHE_DIR"); !given.empty()) return given;
  // Relative ones are to be ignored, says the XDG specification.
  if (std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty() && xdg[0] == '/') return xdg + "/regie";
  if (std::string home = environment("HOME"); !home.empty() && home[0] == '/') return home + "/.cache/regie";
  return {};
}

Result<uint64_t> size_of(const std::optional<std::string>& given, const char* option, const char* variable,
                         uint64_t fallback) {
  const std::string text = given ? *given : environment(variable);
  if (text.empty() && !given) return fallback;
  auto size = parse_size(text);
  if (size.ok()) return size;
  return invalid_input((given ? "option '" + std::string(option) + "'" : std::string(variable)) + ": " +
                       size.status().message());
}

bool trusted(const struct stat& info) { return info.st_uid == ::geteuid() || info.st_uid == 0; }

// "a1b2" of "a1b2.rgm" and "a1b2.key": what belongs together.
std::string stem_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

}  // namespace

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec; }

int64_t nanoseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

Result<CacheOptions> cache_options(const std::optional<std::string>& mode,
                                   const std::optional<std::string>& folder,
                                   const std::optional<std::string>& limit) {
  CacheOptions o;
  const std::string wanted = mode ? *mode : environment("REGIE_CACHE");
  const bool named = folder || !environment("REGIE_CACHE_DIR").empty();
  if (wanted == "on" || (wanted.empty() && !mode && named))
    o.mode = CacheMode::kOn;
  else if (wanted == "read")
    o.mode = CacheMode::kRead;
  else if (wanted != "off" && (mode || !wanted.empty()))
    return invalid_input((mode ? std::string("option 'cache'") : std::string("REGIE_CACHE")) +
                         " must be off, read or on, not '" + wanted + "'");
  o.folder = folder ? *folder : default_folder();
  if (folder && folder->empty()) return invalid_input("option 'cache-dir' is empty; name a folder");
  REGIE_ASSIGN(o.limit, size_of(limit, "cache-size", "REGIE_CACHE_SIZE", o.limit));
  REGIE_ASSIGN(o.memory, size_of(std::nullopt, "", "REGIE_CACHE_MEMORY", o.memory));
  return o;
}

std::shared_ptr<CacheFolder> CacheFolder::open(const std::string& path) {
  static std::mutex mutex;
  static auto* all = new std::map<std::string, std::shared_ptr<CacheFolder>>;
  std::lock_guard lock(mutex);
  auto& folder = (*all)[path];
  if (!folder) folder.reset(new CacheFolder(path));
  return folder;
}

void CacheFolder::warn(const Status& why) {
  {
    std::lock_guard lock(mutex_);
    failed_ = Clock::now();
    if (std::exchange(warned_, true)) return;
  }
  log(REGIE_LOG_WARNING, "cache",
      "the cache folder " + path_ + " cannot be used: " + why.message() +
          "; this process remembers its models itself, others compile them again: correct that, or set "
          "REGIE_CACHE_DIR to a folder of your own that can be written, or REGIE_CACHE=off to do without");
}

bool CacheFolder::resting() const {
  std::lock_guard lock(mutex_);
  return failed_ && Clock::now() - *failed_ < kRest;
}

bool CacheFolder::is_own(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && trusted(info);
}

bool CacheFolder::readable() {
  struct stat info;
  if (path_.empty() || ::stat(path_.c_str(), &info) != 0) return false;
  if (!S_ISDIR(info.st_mode)) return false;  // a write says so
  if (trusted(info)) return true;
  warn(io_error("it belongs to another user (" + std::to_string(info.st_uid) + ")"));
  return false;
}

Status CacheFolder::prepare(const std::string& file) {
  if (path_.empty()) return io_error("none of REGIE_CACHE_DIR, XDG_CACHE_HOME and HOME says where it is");
  struct stat info;
  if (::stat(path_.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return io_error("it is a file, not a folder");
    if (info.st_uid != ::geteuid())
      return io_error("it belongs to another user (" + std::to_string(info.st_uid) + ")");
  } else {
    std::error_code error;
    if (const fs::path above = fs::path(path_).parent_path(); !above.empty())
      fs::create_directories(above, error);
    if (!error && ::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
      error.assign(errno, std::generic_category());
    if (error) return io_error("it cannot be made: " + error.message());
    // Tells programs for backups that nothing here is worth keeping.
    (void)write_file_atomically(path_ + "/CACHEDIR.TAG",
                                "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of Regie.\n");
  }
  std::error_code error;
  fs::create_directories(fs::path(file).parent_path(), error);
  return error ? io_error("it cannot be written: " + error.message()) : Status();
}

bool CacheFolder::write(std::string_view relative, std::string_view text) {
  return write(relative, [&](const std::string& to) { return write_file_atomically(to, text, Sync::kNo); });
}

bool CacheFolder::write(std::string_view relative, const std::function<Status(const std::string&)>& save) {
  if (resting()) return false;
  const std::string to = file(relative);
  Status s = prepare(to);
  if (s.ok()) s = save(to);
  if (!s.ok()) warn(s);
  return s.ok();
}

std::optional<std::string> CacheFolder::read(std::string_view relative) const {
  const std::string from = file(relative);
  if (!is_own(from)) return std::nullopt;
  Result<std::string> text = read_text_file(from);
  if (!text.ok()) return std::nullopt;
  return std::move(text).value();
}

void CacheFolder::touch(std::string_view relative) const {
  // Of no consequence where it cannot be done: then the order of use is that of writing.
  (void)::utimensat(AT_FDCWD, file(relative).c_str(), nullptr, 0);
}

void CacheFolder::remove(std::string_view relative) const { (void)::unlink(file(relative).c_str()); }

std::vector<CacheFile> CacheFolder::list(std::string_view sub) const {
  std::vector<CacheFile> files;
  std::error_code error;
  fs::directory_iterator at(file(sub), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !trusted(info)) continue;
    files.push_back({path, at->path().filename().string(), static_cast<uint64_t>(info.st_size),
                     nanoseconds(info.st_mtim)});
  }
  std::sort(files.begin(), files.end(),
            [](const CacheFile& a, const CacheFile& b) { return a.name < b.name; });
  return files;
}

std::vector<std::string> CacheFolder::folders(std::string_view sub) const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(file(sub), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    if (std::error_code no; at->is_directory(no)) names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// Everything below `root`, sub-folders too.
std::vector<CacheFile> all_files(const std::string& root) {
  std::vector<CacheFile> files;
  std::error_code error;
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    struct stat info;
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files.push_back({at->path().string(), at->path().filename().string(), static_cast<uint64_t>(info.st_size),
                     nanoseconds(info.st_mtim)});
  }
  return files;
}

}  // namespace

uint64_t CacheFolder::bytes() const {
  uint64_t sum = 0;
  for (const CacheFile& f : all_files(path_ + "/" + kFormat)) sum += f.bytes;
  return sum;
}

size_t CacheFolder::shrink(uint64_t limit) {
  const int lock = ::open((path_ + "/" + kFormat).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return 0;
  size_t removed = 0;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) {  // else another process is at it
    struct Group {
      std::vector<std::string> paths;
      uint64_t bytes = 0;
      int64_t used_ns = 0;
    };
    std::map<std::string, Group> groups;
    uint64_t sum = 0;
    const int64_t now = nanoseconds_now();
    for (const CacheFile& f : all_files(path_ + "/" + kFormat)) {
      if (f.name.starts_with(".regie-")) {  // being written: its writer is about to rename it
        if (now - f.used_ns > kLeftBehindNs) (void)::unlink(f.path.c_str());
        continue;
      }
      Group& g = groups[stem_of(f.path)];
      g.paths.push_back(f.path);
      g.bytes += f.bytes;
      g.used_ns = std::max(g.used_ns, f.used_ns);
      sum += f.bytes;
    }
    std::vector<Group*> order;
    for (auto& [stem, group] : groups) order.push_back(&group);
    std::stable_sort(order.begin(), order.end(),
                     [](const Group* a, const Group* b) { return a->used_ns < b->used_ns; });
    for (Group* g : order) {
      if (sum <= limit) break;
      // DIGEST.key before DIGEST.rgm: without the record nobody looks for the rest.
      std::sort(g->paths.begin(), g->paths.end());
      for (const std::string& p : g->paths) (void)::unlink(p.c_str());
      sum -= g->bytes;
      ++removed;
    }
  }
  ::close(lock);
  return removed;
}

}  // namespace regie
