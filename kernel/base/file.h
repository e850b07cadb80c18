// Files: whole reads, maps, and writes that are complete or not there at all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/status.h"

namespace regie {

// A read-only private mapping of a whole file; empty files give an empty span. Kept alive by copies.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);  // messages name the path and what to do
  std::span<const std::byte> bytes() const { return bytes_; }
  std::shared_ptr<const void> owner() const { return owner_; }
  // Brings the pages of `bytes`, of a mapping, into memory at once: all of them will be read now.
  static void expect(std::span<const std::byte> bytes);
  // Takes the pages that `bytes` covers wholly out of the process's memory again: they are read anew when
  // they are touched. So what was read once, to be checked, does not stay.
  static void forget(std::span<const std::byte> bytes);

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

Result<std::string> read_text_file(const std::string& path);

// Writes through `fill` to a temporary file in the same folder, syncs, and renames it to `path`. It has no
// name until it is complete, where the file system can do that, so that a signal leaves nothing behind. On
// any failure (disk full, unwritable) it is removed, an existing `path` is untouched, and the message says
// which path and why. `fill` gets a function that appends bytes.
using AppendBytes = std::function<Status(const void* data, size_t size)>;
// kNo: for what can be made again. Readers see all of it or nothing, but a power failure may lose it or leave
// zeros.
enum class Sync { kNo, kYes };

// The same in two steps, for several files of which all are to be there or none. An open file each until it
// is put in its place; one that is not is removed.
class PendingFile {
 public:
  static Result<PendingFile> write(const std::string& path,
                                   const std::function<Status(const AppendBytes&)>& fill,
                                   Sync sync = Sync::kYes);
  Status put_in_place();
  PendingFile(PendingFile&&) noexcept;
  PendingFile& operator=(PendingFile&&) noexcept;
  ~PendingFile();

 private:
  struct Rep;
  explicit PendingFile(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;  // none: a pipe or a device, which has its bytes already
};

Status write_file_atomically(const std::string& path, const std::function<Status(const AppendBytes&)>& fill,
                             Sync sync = Sync::kYes);
Status write_file_atomically(const std::string& path, std::string_view text, Sync sync = Sync::kYes);

// Paths of the files in a folder with this extension (".toml"), sorted; those found before `error`.
std::vector<std::string> files_in(const std::string& folder, std::string_view extension,
                                  std::error_code* error);

// `relative` resolved below the folder of `model_path`; INVALID_MODEL if it is absolute, has "..", or a link
// leads outside.
Result<std::string> resolve_beside(const std::string& model_path, std::string_view relative);

}  // namespace regie
