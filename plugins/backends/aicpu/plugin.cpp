// The engine of a device's own CPUs: says yes to what reference kernels compute, and compiles a node to the
// name and the attributes of its operator (kernel format "regie.aicpu/1"), which the device calls through the
// host.

#include <algorithm>
#include <string>
#include <vector>

#include "regie/accelerator.hpp"
#include "regie/op_blob.hpp"
#include "regie/operator_work.hpp"
#include "regie/reference_engine.hpp"
#include "regie/region_blob.hpp"
#include "regie_digests.h"

using regie::sdk::Failure;
using regie::sdk::lit;
using regie::sdk::sv;

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h),
        catcher(h),
        hardware(regie::sdk::read_accelerator("aicpu", params, {}, [](auto, auto) { return false; })) {}
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  const regie::sdk::Accelerator hardware;
  std::string reason;  // of the last answer
};

namespace {

constexpr char kFormat[] = "regie.aicpu/1";

// Throws why not; the scratch of the kernel that shows that it can.
uint64_t try_kernel(const regie_engine& e, const regie_graph* graph, const regie_node& node,
                    const regie_engine_shapes& shapes) {
  const auto refuse = [](std::string why) { throw Failure(REGIE_UNSUPPORTED, std::move(why)); };
  const std::string_view op = sv(node.op);
  if (node.region_count > 1) refuse("it has several regions, which the kernel format cannot hold");
  const auto fits = [&](const uint32_t* values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      if (values[i] == REGIE_NONE) continue;
      const regie_type& t = graph->values[values[i]].type;
      if (t.elem == REGIE_STRING) refuse("strings lie in the host's memory");
      if (t.container != REGIE_TENSOR) refuse("sequences and optional values stay on the host");
    }
  };
  fits(node.operands, node.operand_count);
  fits(node.results, node.result_count);
  const auto reference = regie::sdk::find_reference(e.catcher, op);
  if (!reference) refuse("no plug-in has a reference kernel for " + std::string(op));
  if (reference->flags() & REGIE_OP_DYNAMIC_RESULT) refuse("a result's shape is known only after it has run");
  if (node.region_count) {
    regie::sdk::BlobWriter trial;
    regie::sdk::write_region(trial, *graph, node.regions[0]);
  }
  if (regie::sdk::has_open_shapes(node, shapes)) return 0;
  return regie::sdk::ReferenceKernel(e.catcher, *reference, op, {node.attrs, node.attrs + node.attr_count},
                                     shapes.operands, node.operand_count, shapes.results, node.result_count,
                                     graph, node.region_count ? node.regions[0] : REGIE_NONE)
      .scratch_bytes();
}

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

// As the device counts it (docs/simulator.md), without what waits for others.
double cost_ns(const regie::sdk::Accelerator& h, const regie_graph& graph, const regie_node& node,
               const regie_engine_shapes& shapes) {
  uint32_t inside = 0;
  if (node.region_count)
    for (uint32_t n = graph.regions[node.regions[0]].first; n != REGIE_NONE; n = graph.nodes[n].next)
      ++inside;
  const regie::sdk::OperatorWork work =
      regie::sdk::operator_work(sv(node.op), node.attrs, node.attr_count, shapes.operands, node.operand_count,
                                shapes.results, node.result_count, std::max(inside, 1u));
  return h.dispatch_ns + h.hardware_start_ns + h.aicpu_start_ns + h.completion_ns + h.gap_ns +
         h.aicpu_ns(work.flops, work.bytes());
}

regie_status ask(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_answer* answer) {
  return regie::sdk::guard(e->host, [&] {
    *answer = {};
    answer->cost_ns = cost_ns(e->hardware, *graph, graph->nodes[node], *shapes);
    try {
      try_kernel(*e, graph, graph->nodes[node], *shapes);
      answer->can = 1;
      e->reason = "plain code on a CPU of the device";
      if (regie::sdk::reference_alias(e->catcher, *graph, node, 0, 0) == REGIE_ALIAS_VIEW) {
        answer->cost_ns = 0;
        e->reason = "nothing runs: its result lies on the bytes of its operand";
      }
    } catch (const Failure& f) {
      e->reason = f.message;
    }
    answer->reason = regie::sdk::str(e->reason);
  });
}

uint32_t alias(regie_engine* e, const regie_graph* graph, uint32_t node, uint32_t result, uint32_t operand) {
  return regie::sdk::reference_alias(e->catcher, *graph, node, result, operand);
}

regie_status compile(regie_engine* e, const regie_engine_compile* request) {
  return regie::sdk::guard(e->host, [&] {
    const regie_node& node = request->graph->nodes[request->node];
    const uint64_t scratch_bytes = try_kernel(*e, request->graph, node, request->shapes);
    regie::sdk::BlobWriter out;
    regie::sdk::write_op(out, sv(node.op), node.attrs, node.attr_count);
    out.put(node.region_count);
    if (node.region_count) regie::sdk::write_region(out, *request->graph, node.regions[0]);
    const std::string blob = out.take(), name = "aicpu " + std::string(sv(node.op));
    regie::sdk::emit_reference(*request, kFormat, name, blob, scratch_bytes);
  });
}

constexpr regie_engine_info kEngines[] = {
    {lit("aicpu"), lit("the CPUs of an accelerator: every operator that has a reference kernel, slowly")}};

constexpr regie_engine_table kTable = {regie::sdk::head(sizeof(regie_engine_table), REGIE_DIGEST_ENGINE),
                                       1,
                                       0,
                                       kEngines,
                                       create,
                                       destroy,
                                       ask,
                                       alias,
                                       nullptr,  // formats: row-major is all that a reference kernel reads
                                       nullptr,  // accept_fusion: every fusion is welcome
                                       compile,
                                       nullptr};  // reformat_ns: as for formats

const void* find(const char* id) { return std::string_view(id) == REGIE_ENGINE_ID ? &kTable : nullptr; }

}  // namespace

REGIE_PLUGIN(REGIE_PLUGIN_NAME, REGIE_PLUGIN_VERSION, find)
