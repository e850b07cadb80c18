#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace regie {

void for_each_parallel(size_t count, size_t grain, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  auto loop = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(i);
  };
  // What the process is bound to counts, not what the machine has.
  const size_t width =
      std::min<size_t>(std::thread::hardware_concurrency(), count / std::max<size_t>(1, grain));
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < width) others.emplace_back(loop);
  } catch (const std::system_error&) {
    // No further thread is to be had: those that are there do it.
  }
  loop();
  for (std::thread& t : others) t.join();
}

}  // namespace regie
