// Progress: where a long compile stands, for whoever watches a terminal. One sink a process, set by the
// embedding program; without one a call costs a load.
#pragma once

#include <cstdint>

namespace regie {

using ProgressSink = void (*)(void* context, const char* what, uint64_t done, uint64_t total);

void set_progress_sink(ProgressSink sink, void* context);
// `total` 0: not known. Called from the thread that does the work.
void report_progress(const char* what, uint64_t done = 0, uint64_t total = 0);

}  // namespace regie
