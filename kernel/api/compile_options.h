// The options of a compile as the embedding API takes them, those of the cache among them, for those who ask
// the compiler or the cache for more than that gives.
#pragma once

#include <memory>

#include "cache/folder.h"
#include "model/shape_spec.h"
#include "passes/compiler.h"
#include "regie/api/regie.h"

namespace regie {

struct ApiCompile {
  CompileOptions options;
  std::shared_ptr<PluginHost> plugins;
  CacheOptions cache;
  ShapeSpec shapes;
  bool sizes_said = false;  // something of `shapes`, or a size of its own
};

Result<ApiCompile> read_api_compile(const regie_option* options, size_t count);

}  // namespace regie
