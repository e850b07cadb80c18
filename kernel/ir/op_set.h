// What the graph code needs to know about operators, as an interface: the kernel's structures know none by
// name. Implemented over schemas and the op-shape / op-kernel plug-ins (kernel/passes/plugin_op_set.h).
#pragma once

#include <string_view>
#include <vector>

#include "base/elem.h"
#include "base/status.h"
#include "ir/graph.h"

namespace regie {

class OpSet {
 public:
  virtual ~OpSet() = default;
  virtual Status check(const Graph& graph, uint32_t node) const = 0;  // against the schema
  // Sets types and contents of all results of `node` from its operands and its regions' types.
  virtual Status infer(Graph& graph, uint32_t node) const = 0;
  virtual uint32_t flags(std::string_view op) const = 0;  // REGIE_OP_* of op_kernel.h
  // Runs the reference kernel. `operands[i]` empty where absent. LIMIT if the results would exceed `budget`
  // bytes.
  virtual Result<std::vector<Tensor>> evaluate(const Graph& graph, uint32_t node,
                                               const std::vector<Tensor>& operands,
                                               uint64_t budget) const = 0;
};

}  // namespace regie
