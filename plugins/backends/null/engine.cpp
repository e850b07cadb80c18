// The compile-time half: says yes to the operators that the target file lists, and compiles a node to the
// name and the attributes of its operator. A real engine looks at shapes and types, and writes machine code.

#include "regie/c/engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include "null.h"
#include "regie/op_blob.hpp"
#include "regie/reference_engine.hpp"
#include "regie_digests.h"

using regie::sdk::Failure;

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h), catcher(h), settings(null_backend::read_settings(params)) {}
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  null_backend::Settings settings;
  std::string reason;  // of the last answer
};

namespace null_backend {
namespace {

// Why not, or the scratch of the kernel that shows that it can.
uint64_t try_kernel(const regie_engine& e, const regie_node& node, const regie_engine_shapes& shapes) {
  auto refuse = [](std::string why) { throw Failure(REGIE_UNSUPPORTED, std::move(why)); };
  const std::string_view op = regie::sdk::sv(node.op);
  if (std::find(e.settings.operators.begin(), e.settings.operators.end(), op) == e.settings.operators.end())
    refuse(std::string(op) + " is not among the operators of the target file");
  if (node.region_count) refuse("it has regions");
  if (node.operand_count + node.result_count > kMaxArguments)
    refuse("it has more than " + std::to_string(kMaxArguments) + " operands and results");
  auto reference = regie::sdk::find_reference(e.catcher, op);
  if (!reference) refuse("no plug-in has a reference kernel for " + std::string(op));
  if (reference->flags() & REGIE_OP_DYNAMIC_RESULT) refuse("a result's shape is known only after it has run");
  if (regie::sdk::has_open_shapes(node, shapes)) return 0;
  return regie::sdk::ReferenceKernel(e.catcher, *reference, op, {node.attrs, node.attrs + node.attr_count},
                                     shapes.operands, node.operand_count, shapes.results, node.result_count)
      .scratch_bytes();
}

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

regie_status ask(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_answer* answer) {
  return regie::sdk::guard(e->host, [&] {
    *answer = {};
    answer->cost_ns = e->settings.cost_ns;
    try {
      try_kernel(*e, graph->nodes[node], *shapes);
      answer->can = 1;
      e->reason = "listed in the target file";
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
    const uint64_t scratch_bytes = try_kernel(*e, node, request->shapes);
    regie::sdk::BlobWriter out;
    regie::sdk::write_op(out, regie::sdk::sv(node.op), node.attrs, node.attr_count, node.region_count);
    const std::string blob = out.take(), name = "null " + std::string(regie::sdk::sv(node.op));
    regie::sdk::emit_reference(*request, kFormat, name, blob, scratch_bytes);
  });
}

constexpr regie_engine_info kEngines[] = {
    {regie::sdk::lit("null"),
     regie::sdk::lit("the operators that the target file lists, by their reference kernels")}};

}  // namespace

extern const regie_engine_table engine_table = {
    regie::sdk::head(sizeof(regie_engine_table), REGIE_DIGEST_ENGINE),
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

}  // namespace null_backend
