#include "pointwise_engine.h"

#include <algorithm>

#include "pointwise_plan.h"
#include "pointwise_program.h"
#include "pointwise_run.h"
#include "regie/graph_view.hpp"

namespace host_cpu {

using regie::sdk::Failure;

namespace {
constexpr std::string_view kFused = "regie.Pointwise";
}

bool pointwise_takes_formats(std::string_view op) {
  return op == kFused || op == "regie.Quantize" || op == "regie.Dequantize";
}

std::optional<PointwiseKernel> lower_pointwise(const regie::sdk::WordCatcher& catcher,
                                               const regie_graph* graph, const regie_node& node,
                                               const regie_tensor* operands, const regie_tensor* results,
                                               const Formats& formats, std::string* why) {
  const std::string op(regie::sdk::sv(node.op));
  const bool fused = op == kFused;
  if (!fused) {
    auto reference = regie::sdk::find_reference(catcher, op);
    if (!reference || !(reference->flags() & REGIE_OP_ELEMENTWISE) || node.region_count ||
        node.result_count != 1) {
      *why = "it is not element-wise";
      return std::nullopt;
    }
  }
  if (!pointwise_takes_formats(op) && !formats.all_plain()) {
    *why = "its operands are not row-major";
    return std::nullopt;
  }
  try {
    PointwiseKernel kernel;
    kernel.blob = write_pointwise(graph, node, formats);
    const PointwiseProgram program = read_pointwise(kernel.blob.data(), kernel.blob.size());
    const PointwisePlan plan = plan_pointwise(program);
    const bool loops = std::all_of(plan.instructions.begin(), plan.instructions.end(),
                                   [](const PointwiseInstruction& i) { return i.loop != nullptr; });
    if (!fused && !loops) throw Failure(REGIE_UNSUPPORTED, "there is no loop for " + op + " of this type");
    kernel.name = "element-wise " + describe(program);
    kernel.additions = plan.cost;
    // Without elements there is nothing to be tried; the device launches nothing then.
    if (std::none_of(results, results + node.result_count, is_empty))
      PointwiseRun probe(catcher, program, {operands, node.operand_count, results, node.result_count}, 1);
    return kernel;
  } catch (const Failure& f) {
    *why = f.message;
    return std::nullopt;
  }
}

bool pointwise_in_place(const regie_graph* graph, const regie_node& node, uint32_t result, uint32_t operand) {
  if (regie::sdk::sv(node.op) != kFused || node.region_count != 1) return false;
  if (result >= node.result_count || operand >= node.operand_count) return false;
  if (node.results[result] == REGIE_NONE || node.operands[operand] == REGIE_NONE) return false;
  // A result that is an operand as it is would be copied after that has been written over.
  const regie_region& body = graph->regions[node.regions[0]];
  for (uint32_t i = 0; i < body.result_count; ++i)
    for (uint32_t v = body.results[i];;) {
      const regie_value& value = graph->values[v];
      if (value.kind == REGIE_VALUE_ARGUMENT) return false;
      if (value.kind != REGIE_VALUE_RESULT) break;
      // Cast, and Min and Max of one operand, may hand on what they read.
      const regie_node& n = graph->nodes[value.owner];
      const std::string_view op = regie::sdk::sv(n.op);
      const bool hands_on = n.operand_count == 1 && (op == "Cast" || op == "Min" || op == "Max");
      if (!hands_on || n.operands[0] == REGIE_NONE) break;
      v = n.operands[0];
    }
  const regie_type &to = graph->values[node.results[result]].type,
                   &from = graph->values[node.operands[operand]].type;
  return regie::sdk::elem_bits(to.elem) == regie::sdk::elem_bits(from.elem) && to.format == from.format &&
         regie::sdk::same_dims(to, from);
}

}  // namespace host_cpu
