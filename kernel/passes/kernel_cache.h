// Kernels known from before: what an engine gave for a request that was the same in everything that an engine
// may look at. The driver of the compile asks and tells; the cache decides what is worth it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "passes/compile_state.h"

namespace regie {

class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // `engine`: its index in the target. `request` makes the digest of the request, and is called only if there
  // is anything to compare it with.
  virtual std::optional<CompiledKernel> find(uint32_t engine,
                                             const std::function<std::string()>& request) = 0;
  // What the engine took `nanoseconds` for.
  virtual void keep(uint32_t engine, const std::function<std::string()>& request,
                    const CompiledKernel& kernel, uint64_t nanoseconds) = 0;
};

// The digest of what an engine is asked to compile: the operator, attributes, regions, types with formats,
// concrete shapes, which operands are one value, constants with their bytes, the width. Not: names, and what
// lies around the node.
std::string kernel_request(const CompileState& state, uint32_t node, const NodeShapes& shapes);
// The same of the whole graph, in program order, with the engines' indices.
std::string graph_request(const CompileState& state);

}  // namespace regie
