// Tasks of a model: in issue order, with what each waits for and where its operands and results lie.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "model/shape_op.h"
#include "passes/emit.h"
#include "passes/region_types.h"
#include "passes/schedule_problem.h"
#include "ir/structural.h"
#include "regie/c/engine.h"
#include "regie/c/pass.h"

namespace regie {

Result<Arg> ModelEmitter::locate(uint32_t value, const PackedWeight* packed) {
  Arg arg;
  if (value == REGIE_NONE) return arg;
  arg.type = type_of(g_.value(value).type);
  arg.value = same_bytes(value);
  uint64_t offset = 0;
  uint32_t root = value;
  for (;;) {
    const regie_value& v = g_.value(root);
    if (v.alias_of != REGIE_NONE) {
      offset += v.alias_offset;
      root = v.alias_of;
    } else if (v.kind == REGIE_VALUE_ARGUMENT && v.owner != 0) {
      const uint32_t behind = behind_argument(g_, root);
      if (behind == root) break;
      root = behind;
    } else {
      break;
    }
  }
  arg.offset = offset;
  const regie_value& v = g_.value(root);
  if (packed) {  // nobody reads the constant itself
    arg.kind = Arg::kWeight;
    arg.index = add_weight(packed->bytes.data(), packed->bytes.bytes(), packed->layout);
    arg.constant = true;
  } else if (g_.is_constant(root)) {
    if (!g_.tensor(root))
      return invalid_input("constant has no data: a graph with abstract constants cannot be compiled",
                           g_.describe_value(root));
    auto [it, fresh] = weight_of_value_.emplace(root, 0);
    if (fresh) {
      const Tensor& t = g_.tensor(root);
      if (t.elem() == REGIE_STRING)
        return unsupported("constants of type string cannot be stored", g_.describe_value(root));
      it->second = add_weight(t.data(), t.bytes(), std::string(kPortable));
    }
    arg.kind = Arg::kWeight;
    arg.index = it->second;
    arg.constant = true;
  } else if (v.kind == REGIE_VALUE_ARGUMENT && v.owner == 0) {
    arg.kind = Arg::kInput;
    arg.index = v.index;
  } else if (auto it = output_of_value_.find(root); it != output_of_value_.end()) {
    arg.kind = Arg::kOutput;
    arg.index = it->second;
  } else {
    uint32_t buffer = state_.buffer_of_value[root];
    if (buffer == REGIE_NONE) return internal_error("value has no buffer", g_.describe_value(root));
    arg.kind = Arg::kBuffer;
    arg.index = buffer;
  }
  return arg;
}

// One value for all that are views of each other, inner arguments and what they capture.
uint32_t ModelEmitter::same_bytes(uint32_t value) {
  while (seen_as_[value] != value) value = seen_as_[value] = seen_as_[seen_as_[value]];
  return value;
}

// A view has its operand's bytes, by its engine's word, or because no task makes it. Whatever else lies in
// the same storage has bytes of its own, and is lost when another value is written there.
void ModelEmitter::find_views() {
  seen_as_.resize(g_.value_count());
  for (uint32_t v = 0; v < seen_as_.size(); ++v) seen_as_[v] = v;
  for (uint32_t region : task_regions(g_))
    for (uint32_t i = 0; region != 0 && i < g_.region(region).arg_count; ++i)
      seen_as_[g_.region(region).args[i]] = behind_argument(g_, g_.region(region).args[i]);
  for_each_task_node(g_, [&](uint32_t id) {
    const regie_node& n = g_.node(id);
    if (is_control_flow(n) || is_copy(n)) return;
    const bool never_run = is_view_node(state_, id);
    if (never_run) views_.insert(id);
    const EngineInstance& e = state_.engines[n.engine];
    for (uint32_t r = 0; r < n.result_count; ++r) {
      const uint32_t result = n.results[r];
      if (result == REGIE_NONE) continue;
      for (uint32_t o = 0; o < n.operand_count; ++o) {
        const uint32_t operand = n.operands[o];
        if (operand == REGIE_NONE || state_.storage_of(operand) != state_.storage_of(result)) continue;
        if (never_run || e.table->alias(e.engine, &g_.view(), id, r, o) == REGIE_ALIAS_VIEW)
          seen_as_[same_bytes(result)] = same_bytes(operand);
      }
    }
  });
}

uint32_t ModelEmitter::add_kernel(const CompiledKernel& k, uint32_t device) {
  Hasher h;
  h.text(k.format).text(k.name).text(k.blob).number(k.flags);
  for (const std::string& r : k.requires_) h.text(r);
  auto [it, fresh] =
      kernels_.emplace(std::pair{device, h.hex()}, static_cast<uint32_t>(model_->kernels.size()));
  if (fresh) model_->kernels.push_back({k.format, k.name, k.blob, device, k.flags, k.requires_});
  return it->second;
}

// What the run has to ask the operator's shape function for, and which symbols it then knows. What a symbol
// stands for in no expression of its own, or is known by now, is compared when the run gets there.
Status ModelEmitter::emit_late_dims(const regie_node& n, ModelTask* task) {
  if (is_loop(n)) {
    for (const LoopDim& l : loop_dims(g_, n.id)) define(l.dim, l.result, l.axis, task);
    return {};
  }
  REGIE_ASSIGN(const std::vector<PluginOpSet::LateDim> late, state_.ops->late_dims(g_, n.id));
  if (late.empty()) return {};
  if (!is_control_flow(n)) {
    Result<std::string> op = ShapeOp::write(view(n.op), {n.attrs, n.attr_count});
    if (!op) return Status::error(op.status().code(), op.status().message(), g_.describe_node(n.id));
    task->shape_op = std::move(op).value();
  }
  for (const PluginOpSet::LateDim& l : late) {
    if (n.results[l.result] == REGIE_NONE) continue;
    define(g_.value(n.results[l.result]).type.dims[l.axis], l.result, l.axis, task);
  }
  return {};
}

void ModelEmitter::define(regie_dim dim, uint32_t result, uint32_t axis, ModelTask* task) {
  const auto symbol = g_.dims().symbol_index(dim);
  if (!symbol || g_.dims().symbol_at(*symbol).lower == g_.dims().symbol_at(*symbol).upper) return;
  if (!g_.dims().symbol_at(*symbol).data_dependent) return;
  if (defined_.insert(static_cast<uint32_t>(*symbol)).second)
    task->defines.push_back({static_cast<uint32_t>(*symbol), result, axis});
}

// What the host's engine takes, for the clocks of other devices; predicted, so that the model is a function
// of the graph.
uint64_t ModelEmitter::predict_on_host(const ScheduledTask& t) const {
  if (state_.target.devices.size() < 2 ||
      state_.target.engines[g_.node(t.node).engine].device != state_.target.host_device ||
      !std::isfinite(t.cost_ns))
    return 0;
  return static_cast<uint64_t>(std::llround(std::clamp(t.cost_ns, 0.0, 1e15)));
}

Result<ModelTask> ModelEmitter::make_task(const ScheduledTask& t) {
  const regie_node& n = g_.node(t.node);
  ModelTask task;
  task.device = state_.target.engines[n.engine].device;
  task.stream = t.stream;
  // Streams of one device share the width that there is.
  const auto streams = static_cast<uint32_t>(device_streams_[task.device].size());
  task.threads = std::max(1u, state_.options.threads / std::max(1u, streams));
  task.step = t.step;
  task.name = g_.describe_node(t.node);
  task.op = view(n.op);
  for (uint32_t i = 0; i < n.origin_count; ++i) task.origins.emplace_back(g_.origin(n.origins[i]));
  const bool runs = !is_copy(n) && !is_control_flow(n) && !views_.count(t.node);
  const std::span<const uint32_t> operands = g_.operands(t.node);
  std::vector<const PackedWeight*> packed(operands.size());
  if (runs)
    for (const PackedWeight& w : state_.kernels[t.node]->weights) packed[w.operand] = &w;
  for (size_t i = 0; i < operands.size(); ++i) {
    REGIE_ASSIGN(Arg a, locate(operands[i], packed[i]));
    task.operands.push_back(a);
  }
  for (uint32_t v : g_.results(t.node)) {
    REGIE_ASSIGN(Arg a, locate(v));
    task.results.push_back(a);
  }
  REGIE_TRY(emit_late_dims(n, &task));
  if (is_copy(n)) {
    task.kind = TaskKind::kCopy;
  } else if (is_if(n)) {
    task.kind = TaskKind::kIf;
    task.operands.resize(1);  // the captures are read where they lie
  } else if (is_loop(n)) {
    REGIE_TRY(loop_state(n, &task));
  } else if (views_.count(t.node)) {
    task.kind = TaskKind::kDefine;
  } else if (is_control_flow(n)) {
    return unsupported("operator " + std::string(view(n.op)) + " is not supported yet",
                       g_.describe_node(t.node));
  } else {
    const CompiledKernel& k = *state_.kernels[t.node];
    task.kernel = add_kernel(k, task.device);
    task.engine = state_.target.engines[n.engine].name;
    task.predicted_ns = predict_on_host(t);
    task.kernel_weights.assign(task.operands.size(), REGIE_NONE);
    for (const PackedWeight& w : k.weights) task.kernel_weights[w.operand] = task.operands[w.operand].index;
  }
  return task;
}

// What a Loop's body begins an iteration with.
Status ModelEmitter::loop_state(const regie_node& n, ModelTask* task) {
  task->kind = TaskKind::kLoop;
  task->operands.resize(own_operands(n));
  const regie_region& body = g_.region(n.regions[0]);
  for (uint32_t i = 0; i < task->operands.size(); ++i) {
    const regie_value& argument = g_.value(body.args[i]);
    const bool unread = argument.use_count == 0 && carried_result(g_, argument.id) == REGIE_NONE;
    Arg a;
    if (!unread) {
      REGIE_ASSIGN(a, locate(argument.id));
    }
    task->program_arguments.push_back(a);
  }
  return {};
}

Status ModelEmitter::emit_region(uint32_t region, ModelProgram* program) {
  const RegionSchedule& schedule = state_.schedule[region];
  std::map<std::pair<uint32_t, uint32_t>, Pending> streams;
  std::vector<std::vector<uint32_t>> ends(schedule.tasks.size());  // tasks whose end means that task's end
  std::map<uint32_t, uint32_t> scratch_of;
  for (uint32_t i = 0; i < state_.buffers.size(); ++i)
    if (state_.buffers[i].scratch_of != REGIE_NONE) scratch_of.emplace(state_.buffers[i].scratch_of, i);
  for (size_t i = 0; i < schedule.tasks.size(); ++i) {
    const ScheduledTask& t = schedule.tasks[i];
    const regie_node& n = g_.node(t.node);
    Pending& stream = streams[{state_.target.engines[n.engine].device, t.stream}];
    std::vector<uint32_t> waits = std::move(stream.waits);
    stream.waits.clear();
    for (uint32_t w : t.waits) waits.insert(waits.end(), ends[w].begin(), ends[w].end());
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    REGIE_ASSIGN(const bool idle, runs_nothing(state_, t.node));
    if (idle) {
      ends[i] = waits;
      if (stream.last != REGIE_NONE) ends[i].push_back(stream.last);
      stream.waits = std::move(waits);  // its stream goes on only after them
      continue;
    }
    REGIE_ASSIGN(ModelTask task, make_task(t));
    std::erase(waits, stream.last);  // its own stream's order says so already
    task.waits = std::move(waits);
    if (auto it = scratch_of.find(t.node); it != scratch_of.end()) task.scratch = it->second;
    if (is_control_flow(n)) {
      for (uint32_t r = 0; r < n.region_count; ++r) {
        uint32_t id = static_cast<uint32_t>(model_->programs.size());
        model_->programs.emplace_back();
        ModelProgram inner;
        REGIE_TRY(emit_region(n.regions[r], &inner));
        model_->programs[id] = std::move(inner);
        task.programs.push_back(id);
        const regie_region& inner_region = g_.region(n.regions[r]);
        std::vector<Arg> results;
        for (uint32_t k = 0; k < inner_region.result_count; ++k) {
          REGIE_ASSIGN(Arg a, locate(inner_region.results[k]));
          results.push_back(a);
        }
        task.program_results.push_back(std::move(results));
      }
    }
    stream.last = static_cast<uint32_t>(program->tasks.size());
    ends[i] = {stream.last};
    program->tasks.push_back(std::move(task));
    ++state_.ledger.tasks;
  }
  return {};
}

}  // namespace regie
