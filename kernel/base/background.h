// Threads for what can be done beside a start: kernels that are made ready, memory that is touched,
// checksums. They are few, as many as there are processors beside the caller's, and take a piece at a time of
// what is most urgent. With a thread for each job of its own, two would share a processor, and whoever waits
// for a piece that the first has begun would wait until the second has been at it for milliseconds.
//
// Nobody may depend on a thread being there: whoever needs a result does the pieces that nobody has begun,
// and waits for those that somebody has.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace regie {

class Background {
 public:
  enum class Urgency { kKernels, kMemory, kChecksums };
  struct Job;

  Background();
  // Begins nothing more; waits for pieces that are being done.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // `piece` does the next piece; false: there is none left. Called on up to `threads` threads at once; it
  // must not throw. Once.
  void begin(Urgency urgency, size_t threads, std::function<bool()> piece);

 private:
  std::unique_ptr<Job> job_;
};

}  // namespace regie
