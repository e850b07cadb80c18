// Memory is given by the system page by page, zeroed, when it is first touched: of an arena of a few MiB that
// takes as long as a small network's run. Here it is done beside what a session does before its first run.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "base/background.h"

namespace regie {

class FirstTouch {
 public:
  // Begins in the background, if there is a processor and enough to do for one.
  explicit FirstTouch(std::vector<std::span<std::byte>> memory);
  ~FirstTouch();  // leaves what nobody has begun
  FirstTouch(const FirstTouch&) = delete;
  FirstTouch& operator=(const FirstTouch&) = delete;
  // Returns when all of it is there, and helps until then.
  void finish();

 private:
  bool touch_next();
  std::vector<std::span<std::byte>> pieces_;
  std::atomic<size_t> next_{0}, done_{0};
  Background other_;
};

}  // namespace regie
