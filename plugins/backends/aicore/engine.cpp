// The engine `aicore`: answers for nodes with the reason, and compiles them to tile programs.
#include <algorithm>
#include <string>

#include "hand_written.h"
#include "lower.h"
#include "regie/c/pass.h"
#include "regie/graph_view.hpp"
#include "regie/tile/codec.h"
#include "regie_digests.h"
#include "tables.h"

using regie::sdk::Failure;

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h),
        chip(regie::sdk::read_accelerator("aicore", params, {},
                                          [](std::string_view, std::string_view) { return false; })) {}
  const regie_host* host;
  aicore::Chip chip;
  aicore::PlanCache plans;
  aicore::Verdicts verdicts;
  std::string reason;  // of the last answer
};

namespace aicore {
namespace {

Request request_of(regie_engine& e, const regie_graph* graph, uint32_t node,
                   const regie_engine_shapes& shapes) {
  const regie_node& n = graph->nodes[node];
  return {e.chip,
          e.plans,
          graph,
          n,
          regie::sdk::sv(n.op),
          regie::sdk::Attrs(n),
          {shapes.operands, n.operand_count},
          {shapes.results, n.result_count}};
}

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

regie_status ask(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_answer* answer) {
  return regie::sdk::guard(e->host, [&] {
    *answer = {};
    try {
      Choice c = choose(request_of(*e, graph, node, *shapes), e->host, e->verdicts);
      answer->can = 1;
      answer->cost_ns = e->chip.ns(c.lowered.cycles);
      e->reason = std::move(c.reason);
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
      e->reason = f.message;
    }
    answer->reason = regie::sdk::str(e->reason);
  });
}

// Programs read operands while they write results: nothing may lie on another, apart from what they never
// touch.
uint32_t alias(regie_engine*, const regie_graph*, uint32_t, uint32_t, uint32_t) { return REGIE_ALIAS_NONE; }

// A fusion whose working set overflows the buffers is vetoed with the figures, and so is attention that has
// no program while its products have. Only nodes of concrete shapes can be judged.
uint32_t accept_fusion(regie_engine* e, const regie_graph* graph, uint32_t id, regie_str* reason) {
  const regie_node& n = graph->nodes[id];
  std::vector<std::vector<int64_t>> dims;
  dims.reserve(n.operand_count + n.result_count);
  std::vector<regie_tensor> operands, results;
  auto tensor = [&](uint32_t v, std::vector<regie_tensor>& to) {
    regie_tensor t{};
    if (v != REGIE_NONE) {
      const regie_value& value = graph->values[v];
      if (value.type.rank < 0 || value.type.elem == REGIE_ELEM_UNKNOWN) return false;
      dims.emplace_back();
      for (regie_dim d : regie::sdk::dims_of(value.type)) {
        if (d < 0) return false;
        dims.back().push_back(d);
      }
      t.elem = value.type.elem;
      t.rank = value.type.rank;
      t.dims = dims.back().data();
      if (regie::sdk::is_constant(value) && value.data) {
        t.data = value.data->data;
        t.bytes = value.data->bytes;
      }
    }
    to.push_back(t);
    return true;
  };
  for (uint32_t v : regie::sdk::operands_of(n))
    if (!tensor(v, operands)) return 1;
  for (uint32_t v : regie::sdk::results_of(n))
    if (!tensor(v, results)) return 1;
  const regie_engine_shapes shapes{operands.data(), results.data()};
  try {
    choose(request_of(*e, graph, id, shapes), e->host, e->verdicts);
    return 1;
  } catch (const Failure& f) {
    const bool overflows = dynamic_cast<const Overflow*>(&f) != nullptr;
    if (f.code != REGIE_UNSUPPORTED || (!overflows && regie::sdk::sv(n.op) != "regie.Attention")) return 1;
    e->reason = f.message;
    *reason = regie::sdk::str(e->reason);
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

regie_status compile(regie_engine* e, const regie_engine_compile* request) {
  return regie::sdk::guard(e->host, [&] {
    const Lowered l =
        choose(request_of(*e, request->graph, request->node, request->shapes), e->host, e->verdicts).lowered;
    const Written w = l.write();
    const std::string blob = regie::tile::encode(w.program);
    std::vector<regie_packed_weight> weights;
    for (const PackedWeight& p : w.weights)
      weights.push_back({p.operand, 512, p.bytes.data(), p.bytes.size(), regie::sdk::str(p.layout)});
    regie_kernel k{};
    k.struct_size = sizeof k;
    k.format = regie::sdk::lit(REGIE_TILE_FORMAT);
    k.name = regie::sdk::str(l.name);
    k.blob = blob.data();
    k.blob_size = blob.size();
    k.weight_count = static_cast<uint32_t>(weights.size());
    k.weights = weights.data();
    k.scratch_bytes = w.scratch_bytes;
    regie::sdk::check(request->emit(request, &k));
  });
}

constexpr regie_engine_info kEngines[] = {
    {regie::sdk::lit("aicore"),
     regie::sdk::lit("AI Cores: tile programs for matrix products, convolutions and vectors")}};

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
    nullptr,  // formats: kernels read and write row-major tensors, and turn them into fractals inside
    accept_fusion,
    compile,
    nullptr};

}  // namespace aicore
