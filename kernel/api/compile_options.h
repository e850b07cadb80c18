// The options of a compile as the embedding API takes them, for those who ask the compiler for more than that
// gives.
#pragma once

#include <memory>

#include "passes/compiler.h"
#include "regie/api/regie.h"

namespace regie {

struct ApiCompile {
  CompileOptions options;
  std::shared_ptr<PluginHost> plugins;
};

Result<ApiCompile> read_api_compile(const regie_option* options, size_t count);

}  // namespace regie
