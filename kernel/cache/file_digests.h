// Digests of files that are asked for again and again, most of them large and never changed: models, weights
// beside them, libraries. What stat() says of a file (device, inode, size, times of content and of state) is
// remembered beside its digest, in the process and in the cache folder, so that gigabytes are read once.
//
// The risk: a file that is changed without any of these changing is taken for the old one. The time of state
// (ctime) is set by the system at every write and cannot be set back, which leaves clocks that are too
// coarse: so what was changed within the last two seconds is not remembered. `regie cache verify` reads all
// files again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/folder.h"

namespace regie {

struct FileFacts {
  std::string digest;               // 32 digits
  std::vector<std::string> needed;  // names of the libraries that it is linked with, if it is one
};

class FileDigests {
 public:
  // `folder` NULL: only the process remembers. `store`: new ones are written there too.
  FileDigests(std::shared_ptr<CacheFolder> folder, bool store) : folder_(std::move(folder)), store_(store) {}
  Result<FileFacts> facts(const std::string& path, bool library = false) const;
  Result<std::string> digest(const std::string& path) const;

  // Reads every remembered file that is still as it was again; gives those whose digest is another, after
  // removing what was remembered of them.
  static std::vector<std::string> verify(CacheFolder& folder);
  // What the process remembers is forgotten: for tests.
  static void forget();

 private:
  std::shared_ptr<CacheFolder> folder_;
  bool store_;
};

}  // namespace regie
