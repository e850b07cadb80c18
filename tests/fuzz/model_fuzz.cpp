// Any bytes as an offline model: an error, or a model that passes its own check. Checksums keep most inputs
// out, so the corpus should hold a real .rgm file.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "model/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path =
      "/tmp/regie-fuzz-" + std::to_string(reinterpret_cast<uintptr_t>(&path)) + ".rgm";
  if (!regie::write_file_atomically(path, {reinterpret_cast<const char*>(data), size}).ok()) return 0;
  auto model = regie::load_model(path);
  if (model.ok() && !regie::check_model(**model).ok()) std::abort();
  return 0;
}
