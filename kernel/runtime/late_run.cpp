// What a run does when it reaches a late task (late.h).
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "runtime/late.h"
#include "runtime/run_state.h"

namespace regie {

namespace {

constexpr size_t kKernelsKept = 8;        // of a task, each for other sizes
constexpr int64_t kFirstElements = 1024;  // operands up to this many are looked at first

uint32_t space_of(const Model& m, const Arg& a) {
  return a.kind == Arg::kBuffer ? m.buffers[a.index].space : 0;
}

std::string result_name(const Model& m, const ModelTask& task, size_t result) {
  const Arg& a = task.results[result];
  if (a.kind == Arg::kOutput) return "output '" + m.outputs[a.index].name + "'";
  return "result " + std::to_string(result);
}

std::string sizes_of(const std::vector<regie_tensor>& tensors) {
  std::string text;
  for (const regie_tensor& t : tensors)
    if (t.elem != REGIE_ELEM_UNKNOWN)
      text += (text.empty() ? "" : " ") + dims_text({t.dims, static_cast<size_t>(std::max(t.rank, 0))});
  return text;
}

}  // namespace

Status RunState::late_failed(Status status, const Step& step) const {
  if (status.where().empty()) status.set_where(task_name(*core_->model, step.program, step.task));
  return std::move(status).while_doing(task_story(*core_->model, step.program, step.task, *step.device));
}

Status RunState::make_ready(Bound& bound, Step& step) {
  Status status = make_ready_now(bound, step);
  return status.ok() ? status : late_failed(std::move(status), step);
}

Status RunState::make_ready_now(Bound& bound, Step& step) {
  LateRun& late = *bound.late;
  LateStep& l = *step.late;
  const ModelTask& task = core_->model->programs[step.program].tasks[step.task];
  late.release_until(task.step);
  for (const LateSlot& slot : l.operands) REGIE_TRY(late.place(slot, false));
  step.kind = static_cast<Step::Kind>(l.kind);
  if (task.kind == TaskKind::kIf || task.kind == TaskKind::kLoop)
    return {};  // its results are known at the end of a branch
  if (!task.shape_op.empty()) REGIE_TRY(tell_shapes(bound, step));
  // A view's memory is its operand's.
  if (task.kind == TaskKind::kDefine) {
    for (size_t i = 0; i < l.results.size(); ++i) REGIE_TRY(late.place(l.results[i], false));
    return {};
  }
  bool computes = false;
  for (const LateSlot& slot : l.results) {
    REGIE_TRY(late.place(slot, true));
    computes = computes || (slot.arg->kind != Arg::kNone && slot.tensor->bytes != 0);
  }
  if (!computes) step.kind = Step::kNothing;
  return step.kind == Step::kLaunch ? prepare_late(bound, step) : Status();
}

// Waits for the operands, asks the operator's shape function and binds what it tells.
Status RunState::tell_shapes(Bound& bound, Step& step) {
  const Model& m = *core_->model;
  LateStep& l = *step.late;
  const ModelTask& task = m.programs[step.program].tasks[step.task];
  for (const Step* producer : step.fence_waits) REGIE_TRY(wait_fence(*producer));
  if (!step.stream->is_inline && step.stream->dirty) REGIE_TRY(wait_stream(*step.stream));

  std::vector<regie_tensor> operands, results;
  std::vector<std::vector<std::byte>>& copies = late_copies_;
  copies.clear();
  for (const LateSlot& slot : l.operands) operands.push_back(*slot.tensor);
  for (const LateSlot& slot : l.results) results.push_back(*slot.tensor);
  // Small tensors first, which mostly are all that matters. What the host cannot read is brought to it.
  auto bring = [&](int64_t most) -> Status {
    for (size_t i = 0; i < operands.size(); ++i) {
      const Arg& a = *l.operands[i].arg;
      regie_tensor& t = operands[i];
      const regie_tensor& there = *l.operands[i].tensor;
      t.data = nullptr;
      if (a.kind == Arg::kNone) continue;
      if (a.kind == Arg::kWeight) {
        if (m.weights[a.index].layout != kPortable) continue;
        t.data = static_cast<std::byte*>(const_cast<void*>(core_->host_weight(a.index))) + a.offset;
        continue;
      }
      const int64_t count = element_count({t.dims, static_cast<size_t>(t.rank)});
      if (count > most) continue;
      if (core_->host_visible(space_of(m, a))) {
        t.data = there.data;
      } else {
        copies.emplace_back(t.bytes + 1);
        t.data = copies.back().data();
        if (t.bytes == 0) continue;
        const Device& device = *step.device;
        step.stream->dirty = true;
        if (regie_status code = device.table().copy(step.stream->stream.get(), REGIE_COPY_FROM_DEVICE, t.data,
                                                    there.data, t.bytes))
          return stream_failed(code, *step.stream, nullptr);
      }
      // The shape function must see that a tensor without elements is known, too.
      static std::byte nothing[8];
      if (!t.data && t.bytes == 0) t.data = nothing;
    }
    return step.stream->dirty && !step.stream->is_inline ? wait_stream(*step.stream) : Status();
  };
  const LateOp& op = core_->late_ops.at({step.program, step.task});
  std::vector<std::vector<int64_t>> shapes;
  for (int64_t most : {kFirstElements, INT64_MAX}) {
    REGIE_TRY(bring(most));
    REGIE_ASSIGN(shapes, ask_shapes(op, operands, results));
    const bool all = std::none_of(shapes.begin(), shapes.end(), [](const std::vector<int64_t>& s) {
      return std::find(s.begin(), s.end(), -1) != s.end();
    });
    l.by_large = most > kFirstElements;
    if (all) break;
    if (l.by_large)
      return unsupported(task.op + ": the shape of the result cannot be told from these operands");
    copies.clear();
  }
  l.told.clear();
  for (const regie_tensor& t : operands) l.told.push_back(t.data);
  return bind_results(bound, task, shapes);
}

// What a late kernel is made for: sizes, and contents that it is given.
void RunState::set_late_key(const LateStep& l, bool by_data) {
  late_key_.clear();
  for (const std::vector<LateSlot>* list : {&l.operands, &l.results})
    for (const LateSlot& slot : *list)
      if (slot.arg->kind != Arg::kNone && core_->late.type(slot.arg->type))
        late_key_.insert(late_key_.end(), slot.tensor->dims, slot.tensor->dims + slot.tensor->rank);
  for (size_t i = 0; by_data && !l.by_large && i < l.operands.size(); ++i) {
    const uint64_t bytes = l.operands[i].tensor->bytes;
    if (l.operands[i].arg->kind == Arg::kWeight || !l.told[i] || bytes == 0) continue;
    const size_t at = late_key_.size();
    late_key_.resize(at + (bytes + 7) / 8);
    std::memcpy(late_key_.data() + at, l.told[i], bytes);
  }
}

Status RunState::bind_results(Bound& bound, const ModelTask& task,
                              const std::vector<std::vector<int64_t>>& shapes) {
  const Model& m = *core_->model;
  LateRun& late = *bound.late;
  for (const ModelDefine& d : task.defines) {
    Status s = late.bind(d.symbol, shapes[d.result][d.axis]);
    if (!s.ok()) return std::move(s).while_doing("measuring " + result_name(m, task, d.result));
  }
  for (size_t i = 0; i < task.results.size(); ++i) {
    const Arg& a = task.results[i];
    if (a.kind == Arg::kNone) continue;
    REGIE_TRY(late.measure(a.type));
    const std::vector<int64_t>& expected = late.dims(a.type);
    for (size_t d = 0; d < expected.size(); ++d)
      if (expected[d] != shapes[i][d])
        return invalid_input("dimension " + std::to_string(d) + " of " + result_name(m, task, i) + " is " +
                             std::to_string(shapes[i][d]) + ", but the model says " +
                             dim_text(m, m.types[a.type].dims[d]) +
                             (m.types[a.type].dims[d] < 0 ? " = " + std::to_string(expected[d]) : "") + " (" +
                             dims_text(m, m.types[a.type].dims) + ")");
  }
  return {};
}

Status RunState::prepare_late(Bound& bound, Step& step) {
  const Model& m = *core_->model;
  LateRun& late = *bound.late;
  LateStep& l = *step.late;
  const ModelTask& task = m.programs[step.program].tasks[step.task];
  const bool by_data = !task.shape_op.empty();
  const bool once = by_data && l.by_large;
  set_late_key(l, by_data);
  LateKernel* kernel = nullptr;
  for (LateKernel& k : l.kernels)
    if (!once && k.key == late_key_) kernel = &k;
  if (!kernel) {
    if (!(m.kernels[task.kernel].flags & REGIE_KERNEL_ANY_SHAPE))
      return unsupported("kernel '" + m.kernels[task.kernel].name +
                         "' was compiled for one shape, but its sizes are known only when the model runs");
    std::vector<regie_tensor> operands;
    for (size_t i = 0; i < l.operands.size(); ++i) {
      regie_tensor t = *l.operands[i].tensor;
      const bool packed = !task.kernel_weights.empty() && task.kernel_weights[i] != REGIE_NONE;
      const bool constant = l.operands[i].arg->kind == Arg::kWeight && l.operands[i].arg->constant;
      // Where the device's memory is another, the data lie at the device's address all the same.
      const bool given = by_data && l.told[i];
      if (!given && !packed && !constant) t.data = nullptr;
      operands.push_back(t);
    }
    std::vector<regie_tensor> results;
    for (const LateSlot& slot : l.results) {
      results.push_back(*slot.tensor);
      results.back().data = nullptr;
    }
    LateKernel made;
    regie_executable* executable = nullptr;
    Status status;
    {
      std::lock_guard lock(core_->prepare_mutex);
      status = step.device->call([&] {
        return step.device->table().prepare(core_->loaded[core_->loaded_of[task.kernel]].get(),
                                            operands.data(), static_cast<uint32_t>(operands.size()),
                                            results.data(), static_cast<uint32_t>(results.size()),
                                            core_->threads_of(task), &executable, &made.scratch);
      });
    }
    if (status.ok() && !executable)
      status = bad_plugin(step.device->title() + " prepared a kernel, but gave nothing");
    if (!status.ok())
      return std::move(status).while_doing("preparing kernel '" + m.kernels[task.kernel].name + "'");
    made.executable = Executable(*step.device, executable);
    if (!once) made.key = late_key_;
    ++statistics_.late_prepared;
    ++core_->late_prepared;
    if (log_enabled(REGIE_LOG_INFO))
      log(REGIE_LOG_INFO, "shapes",
          m.name + ": a kernel is made ready during a run: " + task_name(m, step.program, step.task) +
              " for " + sizes_of(operands) + " -> " + sizes_of(results));
    if (l.kernels.size() >= (once ? 1 : kKernelsKept)) {
      // The one that goes may still be at work.
      if (!step.stream->is_inline && step.stream->dirty) REGIE_TRY(wait_stream(*step.stream));
      auto oldest = std::min_element(l.kernels.begin(), l.kernels.end(),
                                     [](const auto& a, const auto& b) { return a.last_used < b.last_used; });
      l.kernels.erase(oldest);
    }
    l.kernels.push_back(std::move(made));
    kernel = &l.kernels.back();
  }
  kernel->last_used = ++late.counter;
  step.executable = kernel->executable.get();
  step.launch.scratch = nullptr;
  return kernel->scratch ? late_scratch(bound, step, kernel->scratch) : Status();
}

Status RunState::late_scratch(Bound& bound, Step& step, uint64_t bytes) {
  LateRun& late = *bound.late;
  size_t index = 0;
  while (streams_[index].get() != step.stream) ++index;
  late.scratch.resize(std::max(late.scratch.size(), streams_.size()));
  LateRun::Scratch& scratch = late.scratch[index];
  if (scratch.memory.bytes() < bytes) {
    if (scratch.space == REGIE_NONE)
      for (uint32_t s = 0; s < core_->model->spaces.size() && scratch.space == REGIE_NONE; ++s)
        if (core_->model->spaces[s].device == step.stream->device) scratch.space = s;
    if (scratch.space == REGIE_NONE)
      return Status::error(REGIE_CORRUPT, "the model gives the task's device no memory for its scratch");
    if (scratch.memory.bytes()) {
      if (!step.stream->is_inline && step.stream->dirty) REGIE_TRY(wait_stream(*step.stream));
      late.pool().give(scratch.space, std::move(scratch.memory));
    }
    Result<DeviceMemory> memory = late.pool().take(scratch.space, bytes);
    if (!memory.ok())
      return std::move(memory).status().while_doing("finding " + std::to_string(bytes) + " bytes of scratch");
    scratch.memory = std::move(memory).value();
  }
  step.launch.scratch = scratch.memory.data();
  return {};
}

// At the end of a branch: its results say what those of the If are.
Status RunState::hand_over(Bound& bound, Step& step, size_t branch) {
  LateRun& late = *bound.late;
  LateStep& l = *step.late;
  const ModelTask& task = core_->model->programs[step.program].tasks[step.task];
  auto hand = [&]() -> Status {
    for (const LateSlot& slot : l.from[branch]) REGIE_TRY(late.place(slot, false));
    std::vector<std::vector<int64_t>> shapes(task.results.size());
    for (size_t i = 0; i < task.results.size(); ++i)
      if (task.results[i].kind != Arg::kNone) shapes[i] = late.dims(task.program_results[branch][i].type);
    REGIE_TRY(bind_results(bound, task, shapes));
    for (const LateSlot& slot : l.to[branch]) REGIE_TRY(late.place(slot, true));
    return {};
  };
  Status status = hand();
  return status.ok() ? status : late_failed(std::move(status), step);
}

Status RunState::ready_output(Bound& bound, size_t index) {
  auto& [from, to] = bound.late->outputs[index];
  REGIE_TRY(bound.late->place(from, false));
  return bound.late->place(to, true);
}

Result<void*> RunState::find_output(uint32_t o, uint64_t bytes) {
  const Model& m = *core_->model;
  if (void* wanted = wanted_outputs_[o].data) {
    if (wanted_outputs_[o].bytes < bytes)
      return invalid_input("output '" + m.outputs[o].name + "' takes " + std::to_string(bytes) +
                           " bytes, but there is room for " + std::to_string(wanted_outputs_[o].bytes) +
                           "; its size depends on the data, so pass NULL to let the context find memory");
    return wanted;
  }
  REGIE_TRY(grow_output(o, bytes));
  return output_memory_[o].data.get();
}

}  // namespace regie
