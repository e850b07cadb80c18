// The compile-time half of what runs by reference kernels (reference_kernel.hpp): what engines ask and write alike
// whose kernels name an operator for a device that looks its kernel up.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "regie/c/engine.h"
#include "regie/c/pass.h"
#include "regie/reference_kernel.hpp"

namespace regie::sdk {

// A dimension (-1) is known only when the model runs: there is no kernel to try. Where it is one of the result alone,
// the device gets the operands' data when it prepares the kernel.
inline bool has_open_shapes(const regie_node& node, const regie_engine_shapes& shapes) {
  return std::any_of(shapes.operands, shapes.operands + node.operand_count, is_open) ||
         std::any_of(shapes.results, shapes.results + node.result_count, is_open);
}

// REGIE_ALIAS_*, as the reference kernel of the node says. Nothing for operators with regions.
inline uint32_t reference_alias(const WordCatcher& catcher, const regie_graph& graph, uint32_t id, uint32_t result,
                                uint32_t operand) {
  const regie_node& n = graph.nodes[id];
  if (result != 0 || operand >= n.operand_count || n.operands[operand] == REGIE_NONE || n.result_count == 0 ||
      n.results[0] == REGIE_NONE || n.region_count)
    return REGIE_ALIAS_NONE;
  const auto reference = find_reference(catcher, sv(n.op));
  if (!reference) return REGIE_ALIAS_NONE;
  if (reference_is_view(*reference, result, operand)) return REGIE_ALIAS_VIEW;
  const bool same = same_type(graph.values[n.operands[operand]].type, graph.values[n.results[0]].type);
  return same && (reference->flags() & REGIE_OP_INPLACE) ? REGIE_ALIAS_INPLACE : REGIE_ALIAS_NONE;
}

// Gives the host a kernel of `format` that runs at any shape.
inline void emit_reference(const regie_engine_compile& request, std::string_view format, std::string_view name,
                           std::string_view blob, uint64_t scratch_bytes) {
  regie_kernel k{};
  k.struct_size = sizeof k;
  k.flags = REGIE_KERNEL_ANY_SHAPE | REGIE_KERNEL_REFERENCE;
  k.format = str(format);
  k.name = str(name);
  k.blob = blob.data();
  k.blob_size = blob.size();
  k.scratch_bytes = scratch_bytes;
  check(request.emit(&request, &k));
}

}  // namespace regie::sdk
