#include "cache/file_digests.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include "base/file.h"
#include "base/hash.h"
#include "cache/key.h"
#include "plugins/library_file.h"

namespace regie {

namespace {

constexpr int64_t kTooNewNs = int64_t{2} * 1000000000;
constexpr uint64_t kWorthWriting = 64 << 10;  // smaller files are read as quickly as what is known of them
constexpr size_t kKnown = 4096;

struct Identity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t content_ns = 0, state_ns = 0;
  bool operator==(const Identity&) const = default;
};

bool identify(const std::string& path, Identity* to) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return false;
  *to = {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
         static_cast<uint64_t>(info.st_size), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
  return true;
}

bool too_new(const Identity& id) {
  return nanoseconds_now() - std::max(id.content_ns, id.state_ns) < kTooNewNs;
}

struct Known {
  Identity identity;
  bool library = false;
  FileFacts facts;
};

struct Process {
  std::mutex mutex;
  std::unordered_map<std::string, Known> known;
};

Process& process() {
  static auto* p = new Process;
  return *p;
}

// By whole path: a name that two files share must not make them forget each other.
std::string canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::canonical(path, error);
  return error ? path : full.string();
}

std::string name_of(const std::string& path) { return "files/" + Hasher().text(path).hex() + ".file"; }

std::string to_text(const std::string& path, const Known& k) {
  std::string text = to_line({"regie-cache-file", path});
  text += to_line({std::to_string(k.identity.device), std::to_string(k.identity.inode),
                   std::to_string(k.identity.size), std::to_string(k.identity.content_ns),
                   std::to_string(k.identity.state_ns)});
  text += to_line({k.facts.digest, k.library ? "library" : "file"});
  return with_checksum(text + to_line(k.facts.needed));
}

bool read_text(std::string_view text, std::string* path, Known* to) {
  const auto checked = checked_lines(text);
  if (!checked || checked->size() != 4) return false;
  const auto& lines = *checked;
  if (lines[0].size() != 2 || lines[1].size() != 5 || lines[2].size() != 2) return false;
  try {
    to->identity = {std::stoull(lines[1][0]), std::stoull(lines[1][1]), std::stoull(lines[1][2]),
                    std::stoll(lines[1][3]), std::stoll(lines[1][4])};
  } catch (const std::exception&) {
    return false;
  }
  *path = lines[0][1];
  to->facts.digest = lines[2][0];
  to->library = lines[2][1] == "library";
  if (lines[3] != std::vector<std::string>{""}) to->facts.needed = lines[3];
  return true;
}

Result<FileFacts> read_facts(const std::string& path, bool library) {
  FileFacts facts;
  REGIE_ASSIGN(const MappedFile file, MappedFile::open(path));
  Hasher h;
  // In pieces, and each given back: a model of gigabytes need not stay in memory for its digest.
  constexpr size_t kPiece = size_t{16} << 20;
  for (auto rest = file.bytes(); !rest.empty();) {
    const auto piece = rest.first(std::min(rest.size(), kPiece));
    MappedFile::expect(piece);
    h.bytes(piece.data(), piece.size());
    if (file.bytes().size() > kPiece) MappedFile::forget(piece);
    rest = rest.subspan(piece.size());
  }
  facts.digest = h.number(file.bytes().size()).hex();
  if (library) {
    // One that is no library is refused when it is opened, with better words.
    if (auto elf = read_library_file(path); elf.ok()) facts.needed = elf->needed;
  }
  return facts;
}

}  // namespace

Result<FileFacts> FileDigests::facts(const std::string& given, bool library) const {
  Known now;
  if (!identify(given, &now.identity)) return io_error("cannot read " + given + "; check the path");
  now.library = library;
  auto fits = [&](const Known& k) { return k.identity == now.identity && k.library == library; };
  {
    Process& p = process();
    std::lock_guard lock(p.mutex);
    if (auto it = p.known.find(given); it != p.known.end() && fits(it->second)) return it->second.facts;
  }
  const std::string path = canonical(given);
  const bool worth = now.identity.size >= kWorthWriting;
  bool written = false;
  if (worth && folder_ && folder_->readable())
    if (auto text = folder_->read(name_of(path))) {
      Known stored;
      std::string of;
      if (read_text(*text, &of, &stored) && of == path && fits(stored)) {
        now.facts = stored.facts;
        written = true;
      }
    }
  if (!written) {
    REGIE_ASSIGN(now.facts, read_facts(path, library));
  }
  Identity after;
  if (!identify(path, &after) || !(after == now.identity) || too_new(now.identity)) return now.facts;
  {
    Process& p = process();
    std::lock_guard lock(p.mutex);
    if (p.known.size() >= kKnown) p.known.clear();
    p.known[given] = now;
  }
  if (worth && !written && store_ && folder_) folder_->write(name_of(path), to_text(path, now));
  return now.facts;
}

Result<std::string> FileDigests::digest(const std::string& path) const {
  REGIE_ASSIGN(FileFacts f, facts(path));
  return f.digest;
}

std::vector<std::string> FileDigests::verify(CacheFolder& folder) {
  std::vector<std::string> wrong;
  for (const CacheFile& f : folder.list("files")) {
    Known stored;
    std::string path;
    Identity now;
    const auto text = folder.read("files/" + f.name);
    if (!text) continue;
    if (!read_text(*text, &path, &stored)) {
      wrong.push_back(f.path);
    } else if (identify(path, &now) && now == stored.identity) {
      const auto again = read_facts(path, stored.library);
      if (again.ok() && again->digest == stored.facts.digest) continue;
      wrong.push_back(path);
    }  // else it was changed or removed, and the next one who asks sees it
    folder.remove("files/" + f.name);
  }
  return wrong;
}

void FileDigests::forget() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  p.known.clear();
}

}  // namespace regie
