#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace regie {

namespace {

namespace fs = std::filesystem;

std::string in_quotes(std::string_view path) { return "'" + std::string(path) + "'"; }

std::string advice(int error) {
  switch (error) {
    case ENOENT:
      return "check the path";
    case ENOTDIR:
      return "a part of the path is a file, not a folder; check the path";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of its folder";
    case EROFS:
      return "choose a place that can be written";
    case ENOSPC:
    case EDQUOT:
      return "free some space or choose another disk";
    case EFBIG:
      return "raise the limit of the file size (ulimit -f) or choose another file system";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "";
  }
}

// "cannot write 'x.rgm': No space left on device; free some space or choose another disk"
Status system_failure(std::string_view doing, const std::string& path, int error) {
  std::string text =
      "cannot " + std::string(doing) + " " + in_quotes(path) + ": " + std::generic_category().message(error);
  if (const std::string hint = advice(error); !hint.empty()) text += "; " + hint;
  const bool absent = (error == ENOENT || error == ENOTDIR) && doing == "open";
  return Status::error(absent            ? REGIE_NOT_FOUND
                       : error == ENOMEM ? REGIE_OUT_OF_MEMORY
                                         : REGIE_IO,
                       std::move(text));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 ? 0 : ::close(fd);
  }
  void reset(int fd) {
    close();
    fd_ = fd;
  }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Status check_no_folder(const std::string& path, mode_t mode, std::string_view doing) {
  if (!S_ISDIR(mode)) return {};
  return io_error("cannot " + std::string(doing) + " " + in_quotes(path) +
                  ": it is a folder; give the path of a file");
}

// Collects small appends; a failed write sticks.
class Writer {
 public:
  Writer(int fd, const std::string& path) : fd_(fd), path_(path) { buffer_.reserve(kBuffer); }

  Status append(const void* data, size_t size) {
    const auto* from = static_cast<const char*>(data);
    if (buffer_.size() + size > kBuffer) REGIE_TRY(flush());
    if (size >= kBuffer) return write(from, size);
    buffer_.insert(buffer_.end(), from, from + size);
    return {};
  }
  Status flush() {
    Status s = write(buffer_.data(), buffer_.size());
    buffer_.clear();
    return s;
  }

 private:
  Status write(const char* from, size_t size) {
    while (size != 0) {
      const ssize_t n = ::write(fd_, from, size);
      if (n < 0) {
        if (errno == EINTR) continue;
        return system_failure("write", path_, errno);
      }
      from += n;
      size -= static_cast<size_t>(n);
    }
    return {};
  }
  static constexpr size_t kBuffer = 256 << 10;
  int fd_;
  const std::string& path_;
  std::vector<char> buffer_;
};

Status fill_through(int fd, const std::string& path, const std::function<Status(const AppendBytes&)>& fill) {
  Writer writer(fd, path);
  REGIE_TRY(fill([&writer](const void* data, size_t size) { return writer.append(data, size); }));
  return writer.flush();
}

// Some file systems cannot sync; that is no failure of the write.
bool sync_failed(int fd) { return ::fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS; }

// The file that a chain of links at `path` ends in, so that a link stays a link when its file is replaced.
std::string behind_links(std::string path) {
  for (int hops = 0; hops < 40; ++hops) {
    std::error_code error;
    const fs::path to = fs::read_symlink(path, error);
    if (error) break;
    path = to.is_absolute() ? to.string() : (fs::path(path).parent_path() / to).string();
  }
  return path;
}

// A file without a name: nothing is left of it when the process ends, whatever ends it. -1 where the file
// system knows no such files, or /proc is not there to name it by.
int open_nameless(const std::string& folder) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  return open_retrying(folder.c_str(), O_TMPFILE | O_WRONLY, 0666);
}

bool give_name(int fd, const std::string& path) {
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

struct Temporary {
  std::string path;
  bool kept = false;
  ~Temporary() {
    if (!kept && !path.empty()) ::unlink(path.c_str());
  }
};

}  // namespace

void MappedFile::expect(std::span<const std::byte> bytes) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page,
             end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

void MappedFile::forget(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page,
             end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  // Advice: nothing is lost if it is not taken.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  Descriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (!file.ok()) return system_failure("open", path, errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return system_failure("open", path, errno);
  REGIE_TRY(check_no_folder(path, info.st_mode, "open"));
  if (!S_ISREG(info.st_mode))
    return io_error("cannot open " + in_quotes(path) +
                    ": it is no regular file; copy its contents to a file first");
  MappedFile mapped;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return mapped;
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) return system_failure("map", path, errno);
  mapped.owner_ =
      std::shared_ptr<const void>(at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  mapped.bytes_ = {static_cast<const std::byte*>(at), size};
  return mapped;
}

Result<std::string> read_text_file(const std::string& path) {
  // Not blocking, since a pipe that nobody writes to would never open; the reading then waits for those who
  // do.
  Descriptor file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (!file.ok()) return system_failure("open", path, errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return system_failure("open", path, errno);
  REGIE_TRY(check_no_folder(path, info.st_mode, "open"));
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
    return io_error("cannot open " + in_quotes(path) + ": it is neither a file nor a pipe");
  if (::fcntl(file.get(), F_SETFL, O_RDONLY) != 0) return system_failure("open", path, errno);
  std::string text;
  std::vector<char> block(64 << 10);
  for (;;) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n == 0) return text;
    if (n < 0) {
      if (errno == EINTR) continue;
      return system_failure("read", path, errno);
    }
    text.append(block.data(), static_cast<size_t>(n));
  }
}

struct PendingFile::Rep {
  std::string path, target, folder;
  bool nameless = false, sync = true;
  Descriptor file{-1};
  Temporary temporary;

  // Tries `make(name)` until one is free.
  template <class F>
  bool name(F make) {
    static std::atomic<unsigned> serial{0};
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::string candidate =
          folder + "/.regie-" + std::to_string(::getpid()) + "-" + std::to_string(serial++) + ".tmp";
      if (make(candidate)) {
        temporary.path = std::move(candidate);
        return true;
      }
      if (errno != EEXIST) return false;
    }
    return false;
  }
};

PendingFile::PendingFile(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
PendingFile::PendingFile(PendingFile&&) noexcept = default;
PendingFile& PendingFile::operator=(PendingFile&&) noexcept = default;
PendingFile::~PendingFile() = default;

Result<PendingFile> PendingFile::write(const std::string& path,
                                       const std::function<Status(const AppendBytes&)>& fill, Sync sync) {
  if (path.empty()) return io_error("cannot write: the path is empty; give the path of a file");
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return system_failure("write", path, errno);
  if (exists) REGIE_TRY(check_no_folder(path, info.st_mode, "write"));
  if (exists && !S_ISREG(info.st_mode)) {
    // A pipe or a device cannot be replaced, and must not be: what is written goes there directly.
    Descriptor file(open_retrying(path.c_str(), O_WRONLY));
    if (!file.ok()) return system_failure("write", path, errno);
    REGIE_TRY(fill_through(file.get(), path, fill));
    if (file.close() != 0) return system_failure("write", path, errno);
    return PendingFile(nullptr);
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) return system_failure("write", path, errno);

  auto rep = std::make_unique<Rep>();
  rep->path = path;
  rep->target = behind_links(path);
  const fs::path parent = fs::path(rep->target).parent_path();
  rep->folder = parent.empty() ? "." : parent.string();
  rep->file.reset(open_nameless(rep->folder));
  rep->nameless = rep->file.ok();
  if (!rep->nameless)
    rep->name([&](const std::string& candidate) {
      rep->file.reset(open_retrying(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
      return rep->file.ok();
    });
  if (!rep->file.ok()) return system_failure("write", path, errno);
  REGIE_TRY(fill_through(rep->file.get(), path, fill));
  if (exists) (void)::fchmod(rep->file.get(), info.st_mode & 07777);
  rep->sync = sync == Sync::kYes;
  if (rep->sync && sync_failed(rep->file.get())) return system_failure("write", path, errno);
  return PendingFile(std::move(rep));
}

Status PendingFile::put_in_place() {
  if (!rep_) return {};
  Rep& r = *rep_;
  // Only a name can replace another; it lasts for the moment between these calls.
  if (r.nameless && !r.name([&](const std::string& candidate) { return give_name(r.file.get(), candidate); }))
    return system_failure("write", r.path, errno);
  if (r.file.close() != 0) return system_failure("write", r.path, errno);
  if (::rename(r.temporary.path.c_str(), r.target.c_str()) != 0)
    return system_failure("write", r.path, errno);
  r.temporary.kept = true;
  // The file is complete and in place; whether the folder's entry has reached the disk no longer decides
  // success.
  if (!r.sync) return {};
  Descriptor directory(open_retrying(r.folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (directory.ok()) (void)::fsync(directory.get());
  return {};
}

Status write_file_atomically(const std::string& path, const std::function<Status(const AppendBytes&)>& fill,
                             Sync sync) {
  REGIE_ASSIGN(PendingFile file, PendingFile::write(path, fill, sync));
  return file.put_in_place();
}

Status write_file_atomically(const std::string& path, std::string_view text, Sync sync) {
  return write_file_atomically(
      path, [text](const AppendBytes& append) { return append(text.data(), text.size()); }, sync);
}

std::vector<std::string> files_in(const std::string& folder, std::string_view extension,
                                  std::error_code* error) {
  std::vector<std::string> paths;
  fs::directory_iterator at(folder, *error);
  for (; !*error && at != fs::directory_iterator(); at.increment(*error))
    if (at->path().extension() == extension) paths.push_back(at->path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::string> resolve_beside(const std::string& model_path, std::string_view relative) {
  const std::string shown = in_quotes(relative);
  const std::string rule = "; external files must lie in the folder of the model or below it";
  if (relative.empty() || relative.find('\0') != std::string_view::npos)
    return invalid_model("the model names an external file with the path " + shown +
                         ", which is empty or has a NUL" + rule);
  const fs::path path(relative);
  if (path.is_absolute())
    return invalid_model("the model names the external file " + shown + ", an absolute path" + rule);
  for (const fs::path& part : path)
    if (part == "..")
      return invalid_model("the model names the external file " + shown + ", whose path has '..'" + rule);

  const fs::path parent = fs::path(model_path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  std::error_code error;
  const fs::path real_folder = fs::canonical(folder, error);
  if (error) return system_failure("open", folder.string(), error.value());
  const fs::path full = folder / path;
  const fs::path real = fs::weakly_canonical(full, error);
  if (error) return system_failure("open", full.string(), error.value());
  const fs::path below = real.lexically_relative(real_folder);
  if (below.empty() || *below.begin() == "..")
    return invalid_model("the model names the external file " + shown + ", a link that leads to " +
                         in_quotes(real.string()) + rule);
  return full.string();
}

}  // namespace regie
