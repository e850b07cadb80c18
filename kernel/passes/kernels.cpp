// Kernel driver: has every placed node compiled by its engine. Before memory is planned, as kernels need
// scratch.
#include <chrono>

#include "base/progress.h"
#include "passes/compile_state.h"
#include "ir/structural.h"
#include "passes/kernel_cache.h"

namespace regie {

namespace {

struct Sink {
  CompiledKernel kernel;
  bool emitted = false;
};

regie_status emit(const regie_engine_compile* self, const regie_kernel* k) {
  auto& sink = *static_cast<Sink*>(self->sink);
  if (sink.emitted || !k || !k->format.size || (k->blob_size && !k->blob))
    return fail_on_this_thread(
        bad_plugin("an engine emitted two kernels for a node, or one without format or blob"));
  sink.emitted = true;
  CompiledKernel& out = sink.kernel;
  out.format = view(k->format);
  out.name = view(k->name);
  out.blob.assign(static_cast<const char*>(k->blob), k->blob_size);
  out.flags = k->flags;
  out.scratch_bytes = k->scratch_bytes;
  for (uint32_t i = 0; i < k->requires_count; ++i) out.requires_.emplace_back(view(k->requires_[i]));
  for (uint32_t i = 0; i < k->weight_count; ++i) {
    const regie_packed_weight& w = k->weights[i];
    int64_t size = static_cast<int64_t>(w.size);
    regie_tensor bytes{REGIE_U8, 0, 1, &size, nullptr, const_cast<void*>(w.data), w.size};
    Result<Tensor> copied = Tensor::try_copy(bytes, "a packed weight of " + out.name);
    if (!copied.ok()) return fail_on_this_thread(copied.status());
    out.weights.push_back({w.operand, std::move(copied).value(), std::string(view(w.layout))});
  }
  return REGIE_OK;
}

Status check_packed(const Graph& g, const regie_node& node, const std::string& engine,
                    const CompiledKernel& kernel) {
  for (const PackedWeight& w : kernel.weights)
    if (w.operand >= node.operand_count || node.operands[w.operand] == REGIE_NONE ||
        !g.is_constant(node.operands[w.operand]))
      return bad_plugin("engine '" + engine + "' packed operand " + std::to_string(w.operand) +
                        ", which is no constant");
  return {};
}

}  // namespace

Status compile_kernels(CompileState& state) {
  Graph& g = *state.graph;
  state.kernels.resize(g.node_count());
  Status status;
  uint64_t seen = 0;
  const uint64_t all = g.live_node_count();
  for_each_task_node(g, [&](uint32_t n) {
    const regie_node& node = g.node(n);
    report_progress("compiling kernels", ++seen, all);
    if (!status.ok() || state.kernels[n] || is_control_flow(node) || is_copy(node)) return;
    auto shapes = NodeShapes::make(state, n);
    if (!shapes.ok()) {
      status = std::move(shapes).status();
      return;
    }
    EngineInstance& engine = state.engines[node.engine];
    std::string digest;
    const auto described = [&] {
      if (digest.empty()) digest = kernel_request(state, n, *shapes);
      return digest;
    };
    KernelCache* cache = state.options.kernels;
    if (cache)
      if (auto known = cache->find(node.engine, described);
          known && check_packed(g, node, engine.name, *known).ok()) {
        state.kernels[n] = std::move(*known);
        ++state.ledger.kernels_known;
        return;
      }
    Sink sink;
    regie_engine_compile request{};
    request.struct_size = sizeof(request);
    request.threads = state.options.threads;
    request.graph = &g.view();
    request.node = n;
    request.shapes = shapes->get();
    request.emit = emit;
    request.sink = &sink;
    const auto start = std::chrono::steady_clock::now();
    status = call_plugin("engine '" + engine.name + "'",
                         [&] { return engine.table->compile(engine.engine, &request); });
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    state.ledger.kernels_milliseconds += static_cast<double>(took.count()) / 1e6;
    ++state.ledger.kernels_compiled;
    if (status.ok() && !sink.emitted)
      status = bad_plugin("engine '" + engine.name + "' compiled nothing and reported no error");
    if (status.ok()) status = check_packed(g, node, engine.name, sink.kernel);
    if (!status.ok()) {
      status.set_where(g.describe_node(n));
      return;
    }
    if (cache) cache->keep(node.engine, described, sink.kernel, static_cast<uint64_t>(took.count()));
    state.kernels[n] = std::move(sink.kernel);
  });
  return std::move(status).while_doing("compiling kernels");
}

}  // namespace regie
