// Whether the weights of a mapped model file are those that were written. Reading all of them takes longer
// than anything else about loading, and nothing needs the answer before the first results leave the process:
// so it is found on a thread of its own, while devices are opened and kernels are made ready. What no task
// reads, the portable copies of packed weights, has a checksum of its own: a run leaves it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/background.h"
#include "base/status.h"

namespace regie {

using MappedParts = std::vector<std::span<const std::byte>>;

struct UncheckedWeights {
  std::span<const std::byte> bytes;  // of the section
  uint64_t checksum = 0;
  MappedParts read;            // parts that runs will read, ascending
  uint64_t read_checksum = 0;  // of them alone; 0: the file has none
};

// CORRUPT with the path and both checksums. What runs will read stays in the process's memory when it has
// been read here; the rest does not.
Status check_weights(const UncheckedWeights& weights, const std::string& path);
// As `read_checksum` is: a checksum of those of pieces, which several threads can find at once.
uint64_t checksum_of(const MappedParts& parts);

struct Model;
// The weights that tasks read, that branches and loops give, that outputs are or that inputs have by default,
// ascending; the portable copies of packed ones are not among them.
std::vector<uint32_t> weights_read(const Model& model);
MappedParts read_by_tasks(const Model& model);
void sort_parts(MappedParts* parts);  // by place, equal ones once

class WeightPieces;

class WeightCheck {
 public:
  // Begins at once; with little to read, when somebody waits. `owner` keeps the bytes alive.
  static std::shared_ptr<const WeightCheck> begin(UncheckedWeights weights, std::shared_ptr<const void> owner,
                                                  std::string path);
  // Waits until it is known of what runs read, or of all weights. From any thread, which helps meanwhile.
  const Status& wait() const;
  const Status& wait_for_all() const { return all_.get(); }
  ~WeightCheck();

 private:
  WeightCheck();
  std::shared_ptr<const void> owner_;  // goes last: threads may read what it keeps
  std::string path_;
  uint64_t sum_ = 0;                      // of the pieces
  std::unique_ptr<WeightPieces> pieces_;  // NULL: all weights are what runs read
  mutable std::once_flag once_;
  mutable Status read_;  // of the pieces
  std::shared_future<Status> all_;
  Background other_;
};

}  // namespace regie
