// The log of shapes that a session writes on request: a line of JSON for each run, the dimensions of each
// input by name. `regie shapes advise` reads it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "regie/c/view.h"

namespace regie {

class ShapeLog {
 public:
  // Appends to the file. `names` of the inputs.
  static Result<std::shared_ptr<ShapeLog>> open(const std::string& path, std::vector<std::string> names);
  ~ShapeLog();
  ShapeLog(const ShapeLog&) = delete;
  // From any thread; a line is written at once, and whole. What cannot be written is said once, in the log.
  void write(std::span<const regie_tensor> inputs);

 private:
  ShapeLog(int file, std::string path, std::vector<std::string> names);
  const int file_;
  const std::string path_;
  const std::vector<std::string> names_;
  std::mutex mutex_;
  bool failed_ = false;
};

}  // namespace regie
