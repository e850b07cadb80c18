#include "base/progress.h"

#include <atomic>

namespace regie {

namespace {
std::atomic<ProgressSink> sink{nullptr};
std::atomic<void*> sink_context{nullptr};
}  // namespace

void set_progress_sink(ProgressSink function, void* context) {
  sink_context = context;
  sink = function;
}

void report_progress(const char* what, uint64_t done, uint64_t total) {
  if (ProgressSink function = sink.load(std::memory_order_acquire)) function(sink_context, what, done, total);
}

}  // namespace regie
