// Work on the processors that the process may use, for what is done once: making kernels ready, checking
// files. Runs themselves never come here: their threads are the devices'.
#pragma once

#include <cstddef>
#include <functional>

namespace regie {

// Calls work(i) for i in [0, count), in any order, on the calling thread and on others while there are
// processors and at least `grain` calls for each. `work` must not throw. Returns when all have ended.
void for_each_parallel(size_t count, size_t grain, const std::function<void(size_t)>& work);

}  // namespace regie
