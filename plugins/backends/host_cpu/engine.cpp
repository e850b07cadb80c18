// The compile-time half: answers for nodes, packs weights, writes kernels. Operators that oneDNN covers go to
// oneDNN, element-wise ones to loops, others to a kernel of our own; the rest to the operator's reference
// kernel, and the answer says so.

#include "engine.h"

#include <algorithm>

#include "pointwise_engine.h"
#include "regie/operator_work.hpp"
#include "regie/part_view.hpp"
#include "regie_digests.h"
#include "tables.h"
#include "wishes.h"

using regie::sdk::Attrs;
using regie::sdk::Failure;
using namespace host_cpu;

namespace {

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

// Element-wise code reaches about this part of what matrix products do.
constexpr double kNativeSlower = 8;
constexpr double kReferenceFlops = 4;  // of an element, by a reference kernel
// A step of a recurrent layer is a product with one row a sequence, with weights that come from a cache each
// time.
constexpr double kStepsSlower = 1.2;

double native_ns(const NativeOp& native, const Work& work, const Settings& s) {
  if (native.flops != 0) return native.flops * work.elements / s.flops_per_ns * kNativeSlower;
  const regie::sdk::OperatorWork all =
      regie::sdk::operator_work(work.op, work.node.attrs, work.node.attr_count, work.operands.data(),
                                work.node.operand_count, work.results.data(), work.node.result_count);
  return all.flops / s.flops_per_ns * kStepsSlower;
}

regie_status ask(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_answer* answer) {
  return regie::sdk::guard(e->host, [&] {
    *answer = {};
    Work work(graph, node, *shapes);
    const Settings& s = e->settings;
    auto say = [&](bool can, double compute_ns, std::string reason) {
      answer->can = can;
      answer->cost_ns = s.overhead_ns + std::max(compute_ns, work.bytes / s.bytes_per_ns);
      e->reason = std::move(reason);
      answer->reason = regie::sdk::str(e->reason);
    };
    if (work.untried) {
      const bool own = find_native(work.op) != nullptr;
      const bool can = !work.node.region_count && regie::sdk::find_reference(e->catcher, work.op);
      answer->reference = can && !own;
      return say(can, kReferenceFlops * work.elements / s.reference_flops_per_ns,
                 !can  ? no_reference_for(work.op)
                 : own ? "a kernel of our own, made when the sizes are known"
                       : "made when the sizes are known");
    }
    std::string why_not;
    if (is_lowered(work.op)) {
      try {
        Choice c = choose(*e, work);
        return say(true, c.op.flops / s.flops_per_ns, kernel_name(*e, work, c, true));
      } catch (const Failure& f) {
        if (f.code != REGIE_UNSUPPORTED) throw;
        why_not = "not by oneDNN: " + f.message;
      }
    }
    std::string why_not_pointwise;
    if (auto kernel = lower_pointwise(e->catcher, graph, work.node, work.operands.data(), work.results.data(),
                                      work.formats, &why_not_pointwise))
      return say(true, work.elements * kernel->additions / s.flops_per_ns, kernel->name);
    if (const NativeOp* native = find_native(work.op)) {
      try {
        work.native(1);
        return say(true, native_ns(*native, work, s),
                   "a kernel of our own" + (why_not.empty() ? "" : "; " + why_not));
      } catch (const Failure& f) {
        if (f.code != REGIE_UNSUPPORTED) throw;
        why_not += (why_not.empty() ? "" : "; ") + ("not by a kernel of our own: " + f.message);
      }
    }
    std::string problem = why_not_pointwise;
    answer->reference = !work.node.region_count && reference_kernel(*e, work, &problem);
    std::string reason = answer->reference ? "reference kernel" : problem;
    if (!why_not.empty()) reason += "; " + why_not;
    say(answer->reference, kReferenceFlops * work.elements / s.reference_flops_per_ns, std::move(reason));
  });
}

// A conversion, or a transposition, after which every byte lies where it lay.
bool moves_nothing(const regie_node& n, const regie_type& from, const regie_type& to) {
  if (from.rank < 0 || to.rank < 0) return false;
  const std::string_view op = regie::sdk::sv(n.op);
  if (op == "regie.Reformat") return same_order(regie::sdk::dims_of(from), from.format, to.format);
  if (op != "Transpose") return false;
  return transposes_nothing(Attrs(n), regie::sdk::dims_of(from), from.format, to.format);
}

uint32_t alias(regie_engine* e, const regie_graph* graph, uint32_t id, uint32_t result, uint32_t operand) {
  const regie_node& n = graph->nodes[id];
  if (pointwise_in_place(graph, n, result, operand)) return REGIE_ALIAS_INPLACE;
  if (regie::sdk::joins_or_cuts(n)) {
    const bool one = regie::sdk::sv(n.op) == "Concat" ? result == 0 : operand == 0;
    return one && !regie::sdk::part_views(regie::sdk::GraphView(graph), n).empty() ? REGIE_ALIAS_VIEW
                                                                                   : REGIE_ALIAS_NONE;
  }
  if (result != 0 || operand >= n.operand_count || n.result_count == 0) return REGIE_ALIAS_NONE;
  const uint32_t from = n.operands[operand], to = n.results[0];
  if (from == REGIE_NONE || to == REGIE_NONE || n.region_count) return REGIE_ALIAS_NONE;
  const std::string_view op = regie::sdk::sv(n.op);
  const bool same = regie::sdk::same_type(graph->values[from].type, graph->values[to].type);
  if (is_lowered(op)) {
    // Only as the residual, and only if no other operand is that value: it is read until the last element is
    // written.
    const bool alone = std::count(n.operands, n.operands + n.operand_count, from) == 1;
    return operand == residual_operand(op) && same && alone ? REGIE_ALIAS_INPLACE : REGIE_ALIAS_NONE;
  }
  const regie_type &a = graph->values[from].type, &b = graph->values[to].type;
  if (moves_nothing(n, a, b)) return operand == 0 ? REGIE_ALIAS_VIEW : REGIE_ALIAS_NONE;
  auto reference = regie::sdk::find_reference(e->catcher, op);
  if (reference && regie::sdk::reference_is_view(*reference, result, operand)) return REGIE_ALIAS_VIEW;
  if (const NativeOp* native = find_native(op); native && native->in_place && same)
    return REGIE_ALIAS_INPLACE;
  if (!reference) return REGIE_ALIAS_NONE;
  return (reference->flags() & REGIE_OP_INPLACE) && same ? REGIE_ALIAS_INPLACE : REGIE_ALIAS_NONE;
}

// The factor of a normalization with fixed statistics that a patch takes apart: it reads what that reads,
// which is there until the patch is accepted.
bool is_factor_of_normalization(const regie_graph* graph, const regie_node& n) {
  if (regie::sdk::sv(n.op) != "Mul") return false;
  for (uint32_t v : regie::sdk::operands_of(n))
    if (v != REGIE_NONE)
      for (const regie_use& u : regie::sdk::uses_of(graph->values[v]))
        if (!regie::sdk::is_region_use(u) && u.operand == 0 &&
            regie::sdk::sv(graph->nodes[u.node].op) == "BatchNormalization")
          return true;
  return false;
}

uint32_t accept_fusion(regie_engine* e, const regie_graph* graph, uint32_t id, regie_str* reason) {
  const regie_node& n = graph->nodes[id];
  const std::string_view op = regie::sdk::sv(n.op);
  if (is_factor_of_normalization(graph, n)) {  // densenet121: 27 ms a run whole, 34 ms with element-wise code
    *reason = regie::sdk::lit("a normalization is quicker whole, in the layout of its neighbours");
    return 0;
  }
  if (op == "regie.QConvAdd") {
    *reason = regie::sdk::lit("a convolution of bytes and a sum of bytes are quicker one by one");
    return 0;
  }
  if (!is_lowered(op)) return 1;
  e->reason = activation_problem(Attrs(n));
  if (e->reason.empty() && is_quantised(op)) e->reason = quantisation_problem(*graph, n);
  *reason = regie::sdk::str(e->reason);
  return e->reason.empty();
}

uint32_t formats(regie_engine* e, const regie_graph* graph, uint32_t node, const regie_engine_shapes* shapes,
                 regie_format_wish* wishes, uint32_t capacity) {
  try {
    // In a large graph without anything that gains, not every node needs to be looked at closely.
    constexpr uint32_t kLarge = 4096;
    if (graph->node_count >= kLarge) {
      if (e->known_nodes != graph->node_count) {
        e->known_nodes = graph->node_count;
        e->gains = std::any_of(graph->nodes, graph->nodes + graph->node_count, gains_by_format);
      }
      if (!e->gains) return 0;
    }
    const Work work(graph, node, *shapes);
    if (work.untried) return 0;
    const std::vector<regie_format_wish> all =
        list_wishes({e->dnnl.get(), e->lowered, e->settings, *graph, work.node, work.op, work.operands,
                     work.results, work.empty, e->catcher});
    std::copy_n(all.begin(), std::min<size_t>(all.size(), capacity), wishes);
    return static_cast<uint32_t>(all.size());
  } catch (const std::exception&) {
    return 0;  // row-major it is
  }
}

double reformat_ns(regie_engine* e, const regie_tensor* tensor, regie_format from, regie_format to) {
  return conversion_ns(e->settings, *tensor, from, to);
}

constexpr regie_engine_info kEngines[] = {
    {regie::sdk::lit("host_cpu"), regie::sdk::lit("oneDNN where it helps, reference kernels for the rest")}};

}  // namespace

namespace host_cpu {
extern const regie_engine_table engine_table = {
    regie::sdk::head(sizeof(regie_engine_table), REGIE_DIGEST_ENGINE),
    1,
    0,
    kEngines,
    create,
    destroy,
    ask,
    alias,
    formats,
    accept_fusion,
    compile,
    reformat_ns};
}  // namespace host_cpu
