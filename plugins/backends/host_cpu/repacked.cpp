#include "repacked.h"

namespace host_cpu {

SharedBytes RepackedWeights::get(const void* from, const std::string& layout,
                                 const std::function<SharedBytes()>& make, bool* made) {
  std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<void>& known = known_[{from, layout}];
  SharedBytes bytes = known.lock();
  if (!bytes) {
    bytes = make();
    known = bytes;
    *made = true;
  }
  return bytes;
}

}  // namespace host_cpu
