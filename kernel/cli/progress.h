// Shows on a terminal how far a long command is: one line of standard error, rewritten at most ten times a
// second and wiped at the end. Where standard error is no terminal, or the work is short, nothing is shown.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace regie::cli {

// While it lives, compiles of this process are shown; other work calls `show`.
class ShowProgress {
 public:
  ShowProgress();
  ~ShowProgress();
  ShowProgress(const ShowProgress&) = delete;
  ShowProgress& operator=(const ShowProgress&) = delete;
  void show(const std::string& what, uint64_t done = 0, uint64_t total = 0);

 private:
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace regie::cli
