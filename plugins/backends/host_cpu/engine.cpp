// The compile-time half: answers for nodes, packs weights, writes kernels. Operators that oneDNN covers go to
// oneDNN, element-wise ones to loops, others to a kernel of our own; the rest to the operator's reference
// kernel, and the answer says so.

#include "regie/c/engine.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "executable.h"
#include "kernel_blob.h"
#include "lowered_memo.h"
#include "pointwise_engine.h"
#include "pointwise_program.h"
#include "regie/c/pass.h"
#include "regie/part_view.hpp"
#include "regie/reference_kernel.hpp"
#include "regie_digests.h"
#include "settings.h"
#include "tables.h"
#include "wishes.h"

using regie::sdk::Attrs;
using regie::sdk::Failure;
using namespace host_cpu;

struct regie_engine {
  regie_engine(const regie_host* h, const regie_config* params)
      : host(h), catcher(h), settings(read_settings(params)), dnnl(make_engine()) {}
  const regie_host* host;
  regie::sdk::WordCatcher catcher;
  Settings settings;
  Engine dnnl;
  LoweredMemo lowered;
  std::string reason;  // of the last answer
  // Of the graph that was last asked about: its size, and whether any node gains by a format.
  uint32_t known_nodes = 0;
  bool gains = false;
};

namespace {

uint64_t tensor_bytes(const regie_tensor& t) {
  if (t.elem == REGIE_ELEM_UNKNOWN) return 0;
  return (static_cast<uint64_t>(regie::sdk::count_of(t)) * std::max(regie::sdk::elem_bits(t.elem), 8u) + 7) /
         8;
}

constexpr const char* kUntried = "its sizes are known only when the model runs";

// A node at its reference shapes.
struct Work {
  Work(const regie_graph* graph, uint32_t id, const regie_engine_shapes& shapes)
      : node(graph->nodes[id]),
        op(regie::sdk::sv(node.op)),
        attrs(node.attrs, node.attrs + node.attr_count),
        operands(shapes.operands, shapes.operands + node.operand_count),
        results(shapes.results, shapes.results + node.result_count) {
    for (std::vector<regie_tensor>* list : {&operands, &results})
      for (regie_tensor& t : *list)
        if (std::any_of(t.dims, t.dims + t.rank, [](int64_t d) { return d < 0; })) {
          untried = true;
          kept_dims.emplace_back(t.dims, t.dims + t.rank);
          for (int64_t& d : kept_dims.back()) d = std::max<int64_t>(d, 1);
          t.dims = kept_dims.back().data();
        }
    for (uint32_t i = 0; i < node.operand_count; ++i)
      formats.operands.push_back(
          node.operands[i] == REGIE_NONE ? kPlainFormat : graph->values[node.operands[i]].type.format);
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
    for (uint32_t i = 0; i < node.operand_count; ++i) {
      const regie_tensor& t = operands[i];
      if (t.elem == REGIE_ELEM_UNKNOWN) continue;
      elements = std::max(elements, static_cast<double>(regie::sdk::count_of(t)));
      // An empty list, of axes for example, is a parameter as any other.
      const uint32_t kind = graph->values[node.operands[i]].kind;
      const bool parameter =
          (kind == REGIE_VALUE_CONSTANT || kind == REGIE_VALUE_WEIGHT) && t.rank == 1 && i > 0;
      if (is_empty(t) && !parameter) empty = true;
    }
  }
  Attrs attributes() const { return Attrs(node); }
  Operation describe() const {
    if (untried) throw Failure(REGIE_UNSUPPORTED, kUntried);
    if (empty) throw Failure(REGIE_UNSUPPORTED, "a tensor has no element at the reference shapes");
    Operation made = host_cpu::describe(op, attributes(), operands.data(), node.operand_count, results.data(),
                                        node.result_count);
    set_formats(made, formats, operands.data(), results.data());
    return made;
  }
  NativePtr native(uint32_t threads) const {
    if (untried) throw Failure(REGIE_UNSUPPORTED, kUntried);
    if (empty) throw Failure(REGIE_UNSUPPORTED, "a tensor has no element at the reference shapes");
    return make_native(native_request(op, attributes(), operands.data(), results.data(), formats, threads));
  }
  const regie_node& node;
  std::string_view op;
  std::vector<regie_attr> attrs;
  std::vector<regie_tensor> operands, results;
  Formats formats;
  double bytes = 0, elements = 0;
  bool empty = false;  // A dimension (-1) is known only when the model runs: there is nothing to try. Where
                       // it is one of the result
  // alone, the device gets the operands' data when it prepares the kernel.
  bool untried = false;
  std::deque<std::vector<int64_t>> kept_dims;
};

// Measured (docs/backends.md): row-major convolution is an im2col GEMM, and loses to the blocked kernels by
// far even with two reorders around them. Pooling and matrix products have nothing to win.
Layout choose_layout(const regie_engine& e, const Operation& op) {
  if (e.settings.layout) return *e.settings.layout;
  return op.convolves() ? Layout::kOwn : Layout::kPlain;
}

struct Choice {
  Operation op;
  Layout layout;
  const Lowered* lowered;  // of the engine
  bool pack = false;       // the weights are constant and oneDNN wants them otherwise than they are
  const Lowered* winograd = nullptr;  // instead, where there is one
};

Choice choose(regie_engine& e, const Work& work) {
  Choice c{work.describe(), Layout::kPlain, nullptr, false};
  if (work.formats.all_plain()) c.layout = choose_layout(e, c.op);
  const bool constant = c.op.weights.ndims && work.operands[c.op.weights_operand].data;
  c.lowered = &e.lowered.get(e.dnnl.get(), c.op, c.layout, constant);
  if (constant && !same_layout(c.lowered->weights, c.op.weights)) {
    c.pack = is_storable(c.lowered->weights);
    if (!c.pack) c.lowered = &e.lowered.get(e.dnnl.get(), c.op, c.layout, false);
  }
  if (c.pack && e.settings.winograd && work.formats.results[0] == kBlocked && suits_winograd(c.op)) {
    try {
      c.winograd = &e.lowered.get(e.dnnl.get(), c.op, Layout::kWinograd, true);
    } catch (const Failure& f) {
      if (f.code != REGIE_UNSUPPORTED) throw;
    }
  }
  return c;
}

// Nothing where it cannot take the node; `why` says why then.
std::optional<regie::sdk::ReferenceKernel> reference_kernel(const regie_engine& e, const Work& work,
                                                            std::string* why) {
  auto reference = regie::sdk::find_reference(e.catcher, work.op);
  if (work.node.region_count)
    *why = "it has regions";
  else if (!reference)
    *why = "no plug-in has a reference kernel for " + std::string(work.op);
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

regie_status create(uint32_t, const regie_host* host, const regie_config* params, regie_engine** engine) {
  return regie::sdk::guard(host, [&] { *engine = new regie_engine(host, params); });
}
void destroy(regie_engine* engine) { delete engine; }

// Element-wise code reaches about this part of what matrix products do.
constexpr double kNativeSlower = 8;

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
      constexpr double kFlopsAnElement = 4;
      return say(can, kFlopsAnElement * work.elements / s.reference_flops_per_ns,
                 !can  ? "no plug-in has a reference kernel for " + std::string(work.op)
                 : own ? "a kernel of our own, made when the sizes are known"
                       : "made when the sizes are known");
    }
    std::string why_not;
    if (is_lowered(work.op)) {
      try {
        Choice c = choose(*e, work);
        return say(true, c.op.flops / s.flops_per_ns, "oneDNN " + c.lowered->implementation);
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
        return say(true, native->flops * work.elements / s.flops_per_ns * kNativeSlower,
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
    constexpr double kFlopsAnElement = 4;
    say(answer->reference, kFlopsAnElement * work.elements / s.reference_flops_per_ns, std::move(reason));
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

uint32_t accept_fusion(regie_engine* e, const regie_graph* graph, uint32_t id, regie_str* reason) {
  const regie_node& n = graph->nodes[id];
  if (!is_lowered(regie::sdk::sv(n.op))) return 1;
  e->reason = activation_problem(Attrs(n));
  *reason = regie::sdk::str(e->reason);
  return e->reason.empty();
}

// What a device must have to run a packed weight without packing it again.
std::optional<std::string_view> needed_capability() {
  const auto isa = static_cast<uint32_t>(dnnl_get_effective_cpu_isa());
  auto has = [&](dnnl_cpu_isa_t wanted) {
    return (isa & static_cast<uint32_t>(wanted)) == static_cast<uint32_t>(wanted);
  };
  if (has(dnnl_cpu_isa_avx512_core)) return "avx512_core";
  if (has(dnnl_cpu_isa_avx2)) return "avx2";
  return std::nullopt;
}

// Refers to its arguments.
regie_kernel kernel_of(const char* format, const std::string& name, const std::string& blob) {
  regie_kernel k{};
  k.struct_size = sizeof k;
  k.flags = REGIE_KERNEL_ANY_SHAPE;
  k.format = regie::sdk::str(format);
  k.name = regie::sdk::str(name);
  k.blob = blob.data();
  k.blob_size = blob.size();
  return k;
}

void emit_reference(regie_engine& e, const regie_engine_compile& request, const Work& work) {
  if (!work.formats.all_plain())
    throw Failure(REGIE_UNSUPPORTED,
                  std::string(work.op) + " was to be computed in a format in which it cannot be");
  std::string why_not;
  const auto kernel = reference_kernel(e, work, &why_not);
  if (!kernel)
    throw Failure(REGIE_UNSUPPORTED, "host_cpu cannot run " + std::string(work.op) + ": " + why_not);
  regie::sdk::BlobWriter out;
  regie::sdk::write_op(out, work.op, work.node.attrs, work.node.attr_count, work.node.region_count);
  const std::string blob = out.take(), name = "reference " + std::string(work.op);
  regie_kernel k = kernel_of(kReferenceFormat, name, blob);
  k.flags |= REGIE_KERNEL_REFERENCE;
  k.scratch_bytes = kernel->scratch_bytes();
  const uint32_t residual = residual_operand(work.op);
  if (residual < work.operands.size() && work.operands[residual].elem != REGIE_ELEM_UNKNOWN) {
    const ReferenceScratch scratch = plan_reference_scratch(k.scratch_bytes, work.operands[residual]);
    k.scratch_bytes = scratch.residual_at + scratch.residual_bytes;
  }
  regie::sdk::check(request.emit(&request, &k));
}

// "own Resize nhwc"
std::string name_of(std::string_view who, std::string_view what, const Formats& formats) {
  std::string name(who);
  name.append(" ").append(what);
  if (!formats.all_plain()) name.append(" ").append(format_name(formats.results[0]));
  return name;
}

void emit_dnnl(regie_engine& e, const regie_engine_compile& request, const Work& work, const Choice& c) {
  WinogradWeights winograd;
  if (c.winograd) {
    winograd.offset = round_up(dnnl_memory_desc_get_size(&c.lowered->weights));
    winograd.bytes = dnnl_memory_desc_get_size(&c.winograd->weights);
    winograd.digest = winograd_digest(c.winograd->weights);
  }
  const std::string blob = write_dnnl_blob(
      work.op, work.attrs, c.winograd ? Layout::kWinograd : c.layout, work.operands, work.results,
      work.formats, c.pack ? c.op.weights_operand : REGIE_NONE, c.lowered->weights, winograd);
  const std::string name =
      name_of("oneDNN", (c.winograd ? c.winograd : c.lowered)->implementation, work.formats);
  regie_kernel k = kernel_of(kDnnlFormat, name, blob);
  uint64_t reorders = 0;
  if (!same_layout(c.op.src, c.lowered->src)) make_reorder(e.dnnl.get(), c.op.src, c.lowered->src, &reorders);
  if (!same_layout(c.op.dst, c.lowered->dst)) {
    make_reorder(e.dnnl.get(), c.lowered->dst, c.op.dst, &reorders);
    if (c.op.residual_operand != REGIE_NONE) make_reorder(e.dnnl.get(), c.op.dst, c.lowered->dst, &reorders);
  }
  k.scratch_bytes = plan_scratch(c.op, *(c.winograd ? c.winograd : c.lowered), reorders).bytes;
  if (!c.pack) return regie::sdk::check(request.emit(&request, &k));

  const uint64_t bytes =
      std::max<uint64_t>(dnnl_memory_desc_get_size(&c.lowered->weights), winograd.offset + winograd.bytes);
  const Bytes packed = make_bytes(bytes);
  std::memset(packed.get(), 0, bytes);
  if (c.winograd)
    reorder_now(e.dnnl.get(), c.op.weights, work.operands[c.op.weights_operand].data, c.winograd->weights,
                static_cast<char*>(packed.get()) + winograd.offset);
  reorder_now(e.dnnl.get(), c.op.weights, work.operands[c.op.weights_operand].data, c.lowered->weights,
              packed.get());
  const std::string layout = "opaque:host_cpu:" + layout_digest(c.lowered->weights);
  regie_packed_weight weight{c.op.weights_operand, 64, packed.get(), bytes, regie::sdk::str(layout)};
  k.weight_count = 1;
  k.weights = &weight;
  regie_str capability{};
  if (auto needed = needed_capability()) {
    capability = regie::sdk::str(*needed);
    k.requires_count = 1;
    k.requires_ = &capability;
  }
  regie::sdk::check(request.emit(&request, &k));
}

// False where there is none at these shapes.
bool emit_native(const regie_engine_compile& request, const Work& work) {
  NativePtr kernel;
  try {
    if (!find_native(work.op)) return false;
    kernel = work.native(request.threads);
  } catch (const Failure& f) {
    if (f.code != REGIE_UNSUPPORTED) throw;
    return false;
  }
  const std::string blob = write_native_blob(work.op, work.attrs, work.formats);
  const std::string name = name_of("own", work.op, work.formats);
  regie_kernel k = kernel_of(kNativeFormat, name, blob);
  k.scratch_bytes = kernel->scratch_bytes;
  regie::sdk::check(request.emit(&request, &k));
  return true;
}

// A kernel that can be made only when the run has told the shapes.
void emit_untried(regie_engine& e, const regie_engine_compile& request, const Work& work) {
  if (!regie::sdk::find_reference(e.catcher, work.op))
    throw Failure(REGIE_UNSUPPORTED, "no plug-in has a reference kernel for " + std::string(work.op));
  if (!work.formats.all_plain())
    throw Failure(REGIE_UNSUPPORTED,
                  std::string(work.op) + " was to be computed in a format in which it cannot be");
  if (find_native(work.op)) {
    const std::string blob = write_native_blob(work.op, work.attrs, work.formats);
    const std::string name = name_of("own", work.op, work.formats);
    const regie_kernel k = kernel_of(kNativeFormat, name, blob);
    return regie::sdk::check(request.emit(&request, &k));
  }
  regie::sdk::BlobWriter out;
  regie::sdk::write_op(out, work.op, work.node.attrs, work.node.attr_count, work.node.region_count);
  const std::string blob = out.take(), name = "reference " + std::string(work.op);
  regie_kernel k = kernel_of(kReferenceFormat, name, blob);
  k.flags |= REGIE_KERNEL_REFERENCE;
  regie::sdk::check(request.emit(&request, &k));
}

regie_status compile(regie_engine* e, const regie_engine_compile* request) {
  return regie::sdk::guard(e->host, [&] {
    Width width(request->threads);
    Work work(request->graph, request->node, request->shapes);
    if (work.untried) return emit_untried(*e, *request, work);
    std::optional<Choice> choice;
    if (is_lowered(work.op)) {
      try {
        choice = choose(*e, work);
      } catch (const Failure& f) {
        if (f.code != REGIE_UNSUPPORTED) throw;
      }
    }
    if (choice) return emit_dnnl(*e, *request, work, *choice);
    std::string why_not;
    if (auto kernel = lower_pointwise(e->catcher, request->graph, work.node, work.operands.data(),
                                      work.results.data(), work.formats, &why_not)) {
      const regie_kernel k = kernel_of(kPointwiseFormat, kernel->name, kernel->blob);
      return regie::sdk::check(request->emit(request, &k));
    }
    if (!emit_native(*request, work)) emit_reference(*e, *request, work);
  });
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
