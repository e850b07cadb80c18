#include "runtime/bound.h"

#include <algorithm>

namespace regie {

namespace {

// What a step does whose kernel is made, or could not be. False: it launches nothing.
bool set_kernel(Step* s, const TaskPlan& plan) {
  if (!plan.failure.ok()) {
    s->kind = Step::kImpossible;
    s->failure = &plan.failure;
    return false;
  }
  if (!plan.executable) return false;
  s->kind = Step::kLaunch;
  s->executable = plan.executable.get();
  return true;
}

}  // namespace

class Binder {
 public:
  Binder(const SessionCore& core, std::unique_ptr<const ShapePlan> plan,
         std::vector<std::unique_ptr<RunStream>>& streams, LatePool& pool)
      : core_(core), model_(*core.model), streams_(streams), bound_(new Bound) {
    bound_->plan = std::move(plan);
    if (core.late.any()) bound_->late = std::make_unique<LateRun>(core, *bound_->plan, pool);
  }

  Result<std::unique_ptr<Bound>> run() {
    reserve();
    Bound& b = *bound_;
    b.input_patches.resize(model_.inputs.size());
    b.output_patches.resize(model_.outputs.size());
    b.programs.resize(model_.programs.size());
    for (uint32_t p = 0; p < model_.programs.size(); ++p) {
      b.programs[p] = std::vector<Step>(model_.programs[p].tasks.size());
      for (uint32_t t = 0; t < model_.programs[p].tasks.size(); ++t) REGIE_TRY(step(p, t));
    }
    waits();
    for (uint32_t o = 0; o < model_.outputs.size(); ++o) {
      const Arg& source = model_.output_sources[o];
      if (source.kind == Arg::kOutput && source.index == o) continue;
      Arg to;
      to.kind = Arg::kOutput;
      to.index = o;
      to.type = model_.outputs[o].type;
      Transfer t = transfer(tensor(source, REGIE_NONE), source, tensor(to, REGIE_NONE), to);
      if (b.late) {
        b.late->own_args.push_back(std::make_unique<Arg>(to));
        b.late->outputs.push_back(
            {{const_cast<regie_tensor*>(t.from), &source}, {t.to, b.late->own_args.back().get()}});
      }
      b.outputs.push_back(std::move(t));
    }
    return std::move(bound_);
  }

 private:
  // The arrays are pointed into, so they may not grow later.
  void reserve() {
    size_t tensors = 2 * model_.outputs.size(), waits = 0;
    for (const ModelProgram& p : model_.programs)
      for (const ModelTask& t : p.tasks) {
        tensors += t.operands.size() + t.results.size() + 2;
        for (const std::vector<Arg>& list : t.program_results) tensors += 2 * list.size();
        tensors += 5 * t.program_arguments.size();
        waits += t.waits.size();
      }
    bound_->tensors_.reserve(tensors);
    bound_->waits_.reserve(waits);
  }

  // Appends the tensor of an argument with whatever it needs to get its address. `device`: whose launch reads
  // a weight; REGIE_NONE: the host.
  regie_tensor* tensor(const Arg& a, uint32_t device, uint32_t packed = REGIE_NONE) {
    regie_tensor t{};
    Bound& b = *bound_;
    if (a.kind != Arg::kNone) {
      t.elem = model_.types[a.type].elem;
      t.rank = static_cast<int32_t>(b.plan->dims[a.type].size());
      t.dims = core_.late.type(a.type) ? b.late->dims_address(a.type) : b.plan->dims[a.type].data();
      t.bytes = b.plan->bytes[a.type];
    }
    const uint32_t weight = packed != REGIE_NONE ? packed : a.kind == Arg::kWeight ? a.index : REGIE_NONE;
    if (weight != REGIE_NONE) {
      const void* base =
          device == REGIE_NONE ? core_.host_weight(weight) : core_.weights[device].addresses[weight];
      const uint64_t offset = packed != REGIE_NONE ? 0 : a.offset;
      t.data = static_cast<std::byte*>(const_cast<void*>(base)) + offset;
      if (packed != REGIE_NONE) t.bytes = model_.weights[weight].size;
    }
    b.tensors_.push_back(t);
    regie_tensor* slot = &b.tensors_.back();
    if (weight != REGIE_NONE || (a.kind != Arg::kNone && core_.late.place(a))) return slot;
    if (a.kind == Arg::kBuffer)
      b.arena_patches_.push_back(
          {slot, nullptr, model_.buffers[a.index].space, b.plan->offsets[a.index] + a.offset});
    if (a.kind == Arg::kInput) b.input_patches[a.index].push_back({slot, a.offset});
    if (a.kind == Arg::kOutput) b.output_patches[a.index].push_back({slot, a.offset});
    return slot;
  }

  RunStream* stream_of(uint32_t device, uint32_t number) const {
    for (const auto& s : streams_)
      if (s->device == device && s->number == number) return s.get();
    return nullptr;
  }
  RunStream* any_stream(uint32_t device) const { return stream_of(device, core_.streams[device].front()); }

  Status step(uint32_t p, uint32_t t) {
    const ModelTask& task = model_.programs[p].tasks[t];
    Step& s = bound_->programs[p][t];
    s.program = p;
    s.task = t;
    s.device = core_.devices[task.device].get();
    s.stream = stream_of(task.device, task.stream);
    s.launch.struct_size = sizeof s.launch;
    s.launch.task = t;
    s.predicted_ns = task.predicted_ns;
    if (core_.late.task(task)) {
      bound_->late->steps.push_back(std::make_unique<LateStep>());
      s.late = bound_->late->steps.back().get();
    }
    if (task.kind == TaskKind::kIf) return branch(task, &s);
    if (task.kind == TaskKind::kLoop) return loop(task, &s);
    const uint32_t reader = task.kind == TaskKind::kLaunch ? task.device : REGIE_NONE;
    for (size_t i = 0; i < task.operands.size(); ++i) {
      regie_tensor* slot =
          tensor(task.operands[i], reader, task.kernel_weights.empty() ? REGIE_NONE : task.kernel_weights[i]);
      if (i == 0) s.launch.operands = slot;
      if (s.late) s.late->operands.push_back({slot, &task.operands[i]});
    }
    for (size_t i = 0; i < task.results.size(); ++i) {
      regie_tensor* slot = tensor(task.results[i], reader);
      if (i == 0) s.launch.results = slot;
      if (s.late) s.late->results.push_back({slot, &task.results[i]});
    }
    s.launch.operand_count = static_cast<uint32_t>(task.operands.size());
    s.launch.result_count = static_cast<uint32_t>(task.results.size());
    if (task.kind == TaskKind::kCopy) {
      if (s.launch.results->bytes == 0 && !s.late) return {};
      s.kind = Step::kCopy;
      if (s.late) s.late->kind = Step::kCopy;
      const uint32_t from = space_of(task.operands[0]), to = space_of(task.results[0]);
      const uint32_t host = core_.host_device();
      if (model_.spaces[from].device == model_.spaces[to].device)
        s.direction = REGIE_COPY_INSIDE;
      else
        s.direction = model_.spaces[from].device == host ? REGIE_COPY_TO_DEVICE : REGIE_COPY_FROM_DEVICE;
      return {};
    }
    if (s.late) {
      if (task.kind == TaskKind::kLaunch) s.kind = Step::kLaunch;
      s.late->kind = s.kind;
      return {};
    }
    const TaskPlan& plan = bound_->plan->tasks[p][t];
    s.pending = plan.pending;
    if (s.pending != REGIE_NONE) return {};
    if (set_kernel(&s, plan) && plan.has_scratch)
      bound_->arena_patches_.push_back({nullptr, &s.launch, plan.scratch_space, plan.scratch_offset});
    return {};
  }

  uint32_t space_of(const Arg& a) const { return a.kind == Arg::kBuffer ? model_.buffers[a.index].space : 0; }

  // NULL: the host can touch it.
  RunStream* stream_to(const Arg& a) const {
    const uint32_t space = space_of(a);
    return core_.host_visible(space) ? nullptr : any_stream(model_.spaces[space].device);
  }

  Transfer transfer(const regie_tensor* from, const Arg& from_arg, regie_tensor* to,
                    const Arg& to_arg) const {
    return {from, to, stream_to(from_arg), stream_to(to_arg), {}};
  }

  // A copy from an argument to the host's own memory.
  Transfer to_host(const Arg& from, regie_elem elem, void* to, uint64_t bytes, LateStep* late) {
    regie_tensor* slot = tensor(from, REGIE_NONE);
    if (late) late->operands.push_back({slot, &from});
    bound_->tensors_.push_back({elem, 0, 0, nullptr, nullptr, to, bytes});
    return {slot, &bound_->tensors_.back(), stream_to(from), nullptr, {}};
  }

  Status branch(const ModelTask& task, Step* s) {
    s->kind = Step::kIf;
    if (s->late) s->late->kind = Step::kIf;
    s->condition = to_host(task.operands[0], REGIE_BOOL, &bound_->flag, 1, s->late);
    for (size_t b = 0; b < 2; ++b) {
      s->programs[b] = task.programs[b];
      for (size_t i = 0; i < task.results.size(); ++i) {
        if (task.results[i].kind == Arg::kNone) continue;
        const Arg &given = task.program_results[b][i], &result = task.results[i];
        regie_tensor* from = tensor(given, REGIE_NONE);
        regie_tensor* to = tensor(result, REGIE_NONE);
        if (s->late) {
          s->late->from[b].push_back({from, &given});
          s->late->to[b].push_back({to, &result});
        }
        s->results[b].push_back(transfer(from, given, to, result));
      }
    }
    return {};
  }

  Status loop(const ModelTask& task, Step* s) {
    s->kind = Step::kLoop;
    if (s->late) s->late->kind = Step::kLoop;
    s->programs[0] = task.programs[0];
    s->loop = std::make_unique<LoopPlan>();
    LoopPlan& l = *s->loop;
    const std::vector<Arg>&state = task.program_arguments, &given = task.program_results[0];
    if (task.operands[0].kind != Arg::kNone)
      l.trips = to_host(task.operands[0], REGIE_I64, &l.count, 8, s->late);
    if (task.operands[1].kind != Arg::kNone)
      s->condition = to_host(task.operands[1], REGIE_BOOL, &bound_->flag, 1, s->late);
    if (state[0].kind != Arg::kNone) l.number = tensor(state[0], REGIE_NONE);
    if (state[1].kind != Arg::kNone) l.condition = tensor(state[1], REGIE_NONE);
    l.goes_on = to_host(given[0], REGIE_BOOL, &bound_->flag, 1, nullptr);
    l.carried.reserve(state.size());  // tensors inside are pointed to
    l.collected.reserve(task.results.size());
    for (size_t i = 2; i < state.size(); ++i)
      if (state[i].kind != Arg::kNone) carry(task.operands[i], state[i], given[i - 1], state, s);
    for (size_t i = state.size() - 2; i < task.results.size(); ++i) {
      const Arg &whole = task.results[i], &part = given[1 + i];
      if (whole.kind == Arg::kNone) continue;
      LoopPlan::Collected& c = l.collected.emplace_back();
      c.whole = {tensor(whole, REGIE_NONE), &whole};
      c.given = {tensor(part, REGIE_NONE), &part};
      c.late = core_.late.arg(whole) || core_.late.type(part.type);
      if (!c.late) c.room = static_cast<uint64_t>(bound_->plan->dims[whole.type][0]);
      c.place = *c.given.tensor;
      c.copy = transfer(c.given.tensor, part, &c.place, whole);
    }
    return {};
  }

  static bool same_place(const Arg& a, const Arg& b) {
    return a.kind == b.kind && a.index == b.index && a.offset == b.offset;
  }

  void carry(const Arg& initial, const Arg& home, const Arg& given, const std::vector<Arg>& state, Step* s) {
    LoopPlan::Carried& c = s->loop->carried.emplace_back();
    c.initial = {tensor(initial, REGIE_NONE), &initial};
    c.home = {tensor(home, REGIE_NONE), &home};
    c.given = {tensor(given, REGIE_NONE), &given};
    c.begin = transfer(c.initial.tensor, initial, c.home.tensor, home);
    if (same_place(given, home)) return;
    c.end = transfer(c.given.tensor, given, c.home.tensor, home);
    c.aside = std::any_of(state.begin() + 2, state.end(), [&](const Arg& other) {
      return other.kind != Arg::kNone && other.kind == given.kind && other.index == given.index;
    });
    c.beside = *c.given.tensor;
  }

  void waits() {
    Bound& b = *bound_;
    for (uint32_t p = 0; p < model_.programs.size(); ++p)
      for (Step& s : b.programs[p]) {
        if (s.kind == Step::kIf || s.kind == Step::kLoop) continue;  // it waits for everything
        // Host waits first, then fence waits, in one array.
        const bool on_host = s.stream->is_inline;
        for (int pass = 0; pass < 2; ++pass) {
          const size_t begin = b.waits_.size();
          for (uint32_t w : model_.programs[p].tasks[s.task].waits) {
            Step& from = b.programs[p][w];
            // Inline work and control flow have ended by the time that the next task is issued.
            if (from.stream->is_inline || from.kind == Step::kIf || from.kind == Step::kLoop) continue;
            if (!on_host && from.stream == s.stream) continue;
            const bool by_host = on_host || from.device != s.device;
            if (by_host != (pass == 0)) continue;
            from.signals = true;
            b.waits_.push_back(&from);
          }
          (pass == 0 ? s.host_waits : s.fence_waits) = {b.waits_.data() + begin, b.waits_.size() - begin};
        }
      }
  }

  const SessionCore& core_;
  const Model& model_;
  std::vector<std::unique_ptr<RunStream>>& streams_;
  std::unique_ptr<Bound> bound_;
};

Result<std::unique_ptr<Bound>> Bound::make(const SessionCore& core, std::unique_ptr<const ShapePlan> plan,
                                           std::vector<std::unique_ptr<RunStream>>& streams, LatePool& pool) {
  return Binder(core, std::move(plan), streams, pool).run();
}

Status Bound::finish(const SessionCore& core, Step& step, std::span<const DeviceMemory> arenas) {
  plan->preparation->need(step.pending);
  step.pending = REGIE_NONE;
  const TaskPlan& task = plan->tasks[step.program][step.task];
  const bool launches = set_kernel(&step, task);
  if (step.failure) useless = !may_be_left(step.program, *step.failure);
  if (!launches || task.scratch_bytes == 0) return {};
  if (task.scratch_bytes <= task.scratch_room) {
    arena_patches_.push_back({nullptr, &step.launch, task.scratch_space, task.scratch_offset});
    step.launch.scratch = arenas[task.scratch_space].data() + task.scratch_offset;
    return {};
  }
  if (task.scratch_space == REGIE_NONE) {
    useless = true;
    return Status::error(REGIE_CORRUPT, "the model gives the task's device no memory for its scratch",
                         task_name(*core.model, step.program, step.task));
  }
  more_scratch_.resize(core.model->spaces.size());
  MoreScratch& more = more_scratch_[task.scratch_space];
  more.users.push_back(&step.launch);
  if (more.memory.bytes() < task.scratch_bytes) {
    more.memory.reset();
    Result<DeviceMemory> memory = DeviceMemory::allocate(
        *step.device, core.model->spaces[task.scratch_space].device_space, task.scratch_bytes);
    if (!memory.ok()) {
      useless = true;  // launches before this one lost theirs
      return std::move(memory).status().while_doing("finding " + std::to_string(task.scratch_bytes) +
                                                    " bytes of scratch");
    }
    more.memory = std::move(memory).value();
  }
  for (regie_launch* launch : more.users) launch->scratch = more.memory.data();
  return {};
}

void Bound::bind_arenas(std::span<const DeviceMemory> arenas, uint64_t new_generation) {
  for (const ArenaPatch& p : arena_patches_) {
    std::byte* base = arenas[p.space].data();
    void* address = base ? base + p.offset : nullptr;
    if (p.tensor)
      p.tensor->data = address;
    else
      p.launch->scratch = address;
  }
  generation = new_generation;
}

}  // namespace regie
