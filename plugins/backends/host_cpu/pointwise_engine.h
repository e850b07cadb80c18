// What the engine asks of element-wise kernels: can this node be one, what does it cost, its bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "operation.h"
#include "regie/c/view.h"
#include "regie/reference_kernel.hpp"

namespace host_cpu {

struct PointwiseKernel {
  std::string blob;  // of format "host_cpu.pointwise/1"
  std::string name;  // "element-wise Mul, Add"
  double additions;  // what an element costs
};

// A regie.Pointwise, or an operator that is element-wise by its flags and has loops. Nothing, and in `why`
// the reason, if it is to be done otherwise. `operands`, `results`: at the reference shapes.
std::optional<PointwiseKernel> lower_pointwise(const regie::sdk::WordCatcher& catcher,
                                               const regie_graph* graph, const regie_node& node,
                                               const regie_tensor* operands, const regie_tensor* results,
                                               const Formats& formats, std::string* why);

// Of the others that are element-wise there are kernels that know formats (native_elementwise.cpp).
bool pointwise_takes_formats(std::string_view op);

// May result `result` of a regie.Pointwise lie on the bytes of operand `operand`?
bool pointwise_in_place(const regie_graph* graph, const regie_node& node, uint32_t result, uint32_t operand);

}  // namespace host_cpu
