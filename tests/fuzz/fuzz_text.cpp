// Any text: the parser gives an error, or a graph that comes back from its own text.
#include <cstdint>
#include <cstdlib>

#include "ir/verify.h"
#include "text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto graph = regie::parse({reinterpret_cast<const char*>(data), size}, "fuzz.rg");
  if (graph.ok() && regie::verify(**graph).ok() && !regie::check_round_trip(**graph).ok()) std::abort();
  return 0;
}
