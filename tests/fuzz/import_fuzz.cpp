// Any bytes as a framework's model, through every frontend: an error with words, or a graph that verifies.
#include <cstdint>
#include <cstdlib>

#include "ir/verify.h"
#include "passes/importer.h"
#include "passes/plugin_op_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto host = regie::PluginHost::create();
  static auto ops = host.ok() ? regie::PluginOpSet::create(*host) : host.status();
  if (!ops.ok()) std::abort();
  auto graph =
      regie::import_bytes(**host, **ops, {reinterpret_cast<const std::byte*>(data), size}, "fuzz.onnx");
  regie::VerifyOptions options;
  options.ops = ops->get();
  if (graph.ok() && !regie::verify(**graph, options).ok()) std::abort();
  return 0;
}
