// Weights that lie in the model in other blocks than a primitive wants, packed again while a kernel is made
// ready: other shapes and other numbers of threads may want other blocks. The executables of one kernel share
// them, since each context keeps some shapes ready.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace host_cpu {

using SharedBytes = std::shared_ptr<void>;

class RepackedWeights {
 public:
  // Those packed from the bytes at `from` in the blocks that `layout` names; `make` where nobody holds them,
  // with `*made` set. The bytes at `from` must outlive whoever holds the result. May be called from several
  // threads.
  SharedBytes get(const void* from, const std::string& layout, const std::function<SharedBytes()>& make,
                  bool* made);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, std::string>, std::weak_ptr<void>> known_;
};

}  // namespace host_cpu
