// Host-side interfaces that libraries above the plug-in host add to what `regie_host.find` knows: the runtime
// alone has none of the compiler's.
#pragma once

namespace regie {

// `table` lives as long as the process. The same id twice: the last one counts.
void offer_host_interface(const char* id, const void* table);

}  // namespace regie
