#include <algorithm>

#include "engine.h"
#include "executable.h"
#include "kernel_blob.h"
#include "regie/graph_view.hpp"

namespace host_cpu {

using regie::sdk::Failure;

namespace {

uint64_t tensor_bytes(const regie_tensor& t) {
  if (t.elem == REGIE_ELEM_UNKNOWN) return 0;
  return (static_cast<uint64_t>(regie::sdk::count_of(t)) * std::max(regie::sdk::elem_bits(t.elem), 8u) + 7) /
         8;
}

// Measured (docs/backends.md): row-major convolution is an im2col GEMM, and loses to the blocked kernels by
// far even with two reorders around them. Pooling of floats and matrix products have nothing to win.
Layout choose_layout(const regie_engine& e, const Operation& op) {
  if (e.settings.layout) return *e.settings.layout;
  const bool pools_bytes = op.kind == Operation::kPooling && op.quantised();
  return op.convolves() || pools_bytes ? Layout::kOwn : Layout::kPlain;
}

}  // namespace

Work::Work(const regie_graph* graph, uint32_t id, const regie_engine_shapes& shapes)
    : node(graph->nodes[id]),
      op(regie::sdk::sv(node.op)),
      attrs(node.attrs, node.attrs + node.attr_count),
      operands(shapes.operands, shapes.operands + node.operand_count),
      results(shapes.results, shapes.results + node.result_count) {
  for (std::vector<regie_tensor>* list : {&operands, &results})
    for (regie_tensor& t : *list)
      if (regie::sdk::is_open(t)) {
        untried = true;
        kept_dims_.emplace_back(t.dims, t.dims + t.rank);
        for (int64_t& d : kept_dims_.back()) d = std::max<int64_t>(d, 1);
        t.dims = kept_dims_.back().data();
      }
  for (uint32_t i = 0; i < node.operand_count; ++i)
    formats.operands.push_back(node.operands[i] == REGIE_NONE ? kPlainFormat
                                                              : graph->values[node.operands[i]].type.format);
  for (uint32_t i = 0; i < node.result_count; ++i)
    formats.results.push_back(node.results[i] == REGIE_NONE ? kPlainFormat
                                                            : graph->values[node.results[i]].type.format);
  for (const regie_tensor& t : operands) bytes += static_cast<double>(tensor_bytes(t));
  for (const regie_tensor& t : results) {
    bytes += static_cast<double>(tensor_bytes(t));
    if (t.elem != REGIE_ELEM_UNKNOWN)
      elements = std::max(elements, static_cast<double>(regie::sdk::count_of(t)));
    if (is_empty(t)) empty = true;
  }
  // What only picks from its operand reads what it gives, however large the table is.
  if ((op == "Gather" || op == "Slice") && !operands.empty() && !results.empty())
    bytes -= std::max(
        0.0, static_cast<double>(tensor_bytes(operands[0])) - static_cast<double>(tensor_bytes(results[0])));
  for (uint32_t i = 0; i < node.operand_count; ++i) {
    const regie_tensor& t = operands[i];
    if (t.elem == REGIE_ELEM_UNKNOWN) continue;
    elements = std::max(elements, static_cast<double>(regie::sdk::count_of(t)));
    // An empty list, of axes for example, is a parameter as any other.
    const bool parameter = regie::sdk::is_constant(graph->values[node.operands[i]]) && t.rank == 1 && i > 0;
    if (is_empty(t) && !parameter) empty = true;
  }
}

void Work::need_elements() const {
  if (untried) refuse("its sizes are known only when the model runs");
  if (empty) refuse("a tensor has no element at the reference shapes");
}

Operation Work::describe() const {
  need_elements();
  Operation made = host_cpu::describe(op, attributes(), operands.data(), node.operand_count, results.data(),
                                      node.result_count);
  set_formats(made, formats, operands.data(), results.data());
  return made;
}

NativePtr Work::native(uint32_t threads) const {
  need_elements();
  return make_native(native_request(op, attributes(), operands.data(), results.data(), formats, threads));
}

Choice choose(regie_engine& e, const Work& work) {
  Choice c{work.describe(), Layout::kPlain, nullptr, false};
  if (work.formats.all_plain()) c.layout = choose_layout(e, c.op);
  const bool constant = c.op.weights.ndims && work.operands[c.op.weights_operand].data;
  c.lowered = &e.lowered.get(e.dnnl.get(), c.op, c.layout, constant);
  if (constant && !same_layout(c.lowered->weights, c.op.weights)) {
    c.pack = is_storable(c.lowered->weights);
    if (!c.pack) c.lowered = &e.lowered.get(e.dnnl.get(), c.op, c.layout, false);
  }
  if (c.pack && e.settings.winograd != Winograd::kOff && work.formats.results[0] == kBlocked &&
      suits_winograd(c.op)) {
    try {
      const Lowered& made = e.lowered.get(e.dnnl.get(), c.op, Layout::kWinograd, true);
      if (e.settings.winograd == Winograd::kAlways || is_in_little_room(c.op, made)) c.winograd = &made;
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
    }
  }
  return c;
}

std::string no_reference_for(std::string_view op) {
  return "no plug-in has a reference kernel for " + std::string(op);
}

std::optional<regie::sdk::ReferenceKernel> reference_kernel(const regie_engine& e, const Work& work,
                                                            std::string* why) {
  auto reference = regie::sdk::find_reference(e.catcher, work.op);
  if (work.node.region_count)
    *why = "it has regions";
  else if (!reference)
    *why = no_reference_for(work.op);
  else if (reference->flags() & REGIE_OP_DYNAMIC_RESULT)
    *why = "a result's shape is known only after it has run, which launches do not cover";
  else
    try {
      return regie::sdk::ReferenceKernel(e.catcher, *reference, work.op, work.attrs, work.operands.data(),
                                         work.node.operand_count, work.results.data(),
                                         work.node.result_count);
    } catch (const Failure& f) {
      *why = f.message;
    }
  return std::nullopt;
}

}  // namespace host_cpu
