// Whether the weights of a mapped model file are those that were written. Reading all of them takes longer
// than anything else about loading, and nothing needs the answer before the first results leave the process:
// so it is found on a thread of its own, while devices are opened and kernels are made ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace regie {

struct UncheckedWeights {
  std::span<const std::byte> bytes;  // of the section
  uint64_t checksum = 0;
};

using MappedParts = std::vector<std::span<const std::byte>>;

// CORRUPT with the path and both checksums. `kept`: parts of the mapping that runs will read, ascending,
// which stay in the process's memory when they have been read here; the others do not.
Status check_weights(const UncheckedWeights& weights, const MappedParts& kept, const std::string& path);

struct Model;
// The parts of the weights that tasks read, ascending; the portable copies of packed ones are not among them.
MappedParts read_by_tasks(const Model& model);

class WeightCheck {
 public:
  // Begins at once. `owner` keeps the bytes alive.
  static std::shared_ptr<const WeightCheck> begin(const UncheckedWeights& weights, MappedParts kept,
                                                  std::shared_ptr<const void> owner, std::string path);
  // Waits until it is known. From any thread.
  const Status& wait() const { return result_.get(); }

 private:
  WeightCheck() = default;
  std::shared_ptr<const void> owner_;  // the future's end, which waits for the thread, comes before it goes
  std::shared_future<Status> result_;
};

}  // namespace regie
