// Kernels that are made ready while the first run with a shape is on its way: a library may take a tenth of a
// millisecond and more to generate a kernel's code, and a network has a hundred of them. Threads beside the
// run make them in the order in which the run comes to them. Where it arrives at one that is not ready, it
// makes the next ones that nobody has begun, until its own is there; so it needs no thread but its own, and
// none is ever idle while there is something to make.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/background.h"

namespace regie {

class Preparation {
 public:
  // `make` is called once for each of 0 .. count-1, at most, on any thread; it must not throw.
  Preparation(size_t count, std::function<void(size_t)> make);
  // Nothing more is begun; waits for what was.
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  // So many threads beside the caller's; fewer where no more are to be had.
  void start(size_t threads);
  // Returns when `index` has been made; what making it wrote may then be read. From one thread at a time.
  void need(size_t index);

 private:
  bool make_next();
  const size_t count_;
  const std::function<void(size_t)> make_;
  std::atomic<size_t> next_{0};
  std::unique_ptr<std::atomic<int>[]> made_;
  Background others_;
};

}  // namespace regie
