// Making the plan for one set of shapes: sizes, executables, offsets.
#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "model/plan_check.h"
#include "runtime/core.h"

namespace regie {

namespace {

class Planner {
 public:
  Planner(const SessionCore& core, std::vector<int64_t> symbols)
      : core_(core), model_(*core.model), symbols_(std::move(symbols)) {}

  // `self`: this, which lives on in a plan whose kernels are not ready yet.
  Result<std::unique_ptr<const ShapePlan>> run(const std::shared_ptr<Planner>& self) {
    auto made = std::make_unique<ShapePlan>();
    plan_ = made.get();
    REGIE_ASSIGN(plan_->shapes, evaluate_shapes(model_, std::move(symbols_)));
    for (uint32_t t = 0; t < model_.types.size(); ++t) {
      if (core_.late.type(t)) {
        plan_->dims.emplace_back(model_.types[t].dims.size());
        plan_->bytes.push_back(0);
        continue;
      }
      Result<std::vector<int64_t>> of_type = dims_at(model_, t, plan_->shapes);
      if (!of_type.ok()) return std::move(std::move(of_type).status().set_where(maker(t)));
      REGIE_ASSIGN(std::vector<int64_t> dims, std::move(of_type));
      REGIE_ASSIGN(const uint64_t bytes, bytes_at(model_, t, plan_->shapes));
      plan_->dims.push_back(std::move(dims));
      plan_->bytes.push_back(bytes);
    }
    REGIE_TRY(check_args());  // before a device reads constants
    const auto for_one_shape = [](const ModelKernel& k) { return !(k.flags & REGIE_KERNEL_ANY_SHAPE); };
    if (plan_->shapes.symbols != reference_symbols(model_) &&
        std::any_of(model_.kernels.begin(), model_.kernels.end(), for_one_shape)) {
      REGIE_ASSIGN(reference_, evaluate_shapes(model_));
    }
    scratch_needed_.resize(model_.buffers.size());
    plan_->tasks.resize(model_.programs.size());
    for (uint32_t p = 0; p < model_.programs.size(); ++p) {
      plan_->tasks[p].resize(model_.programs[p].tasks.size());
      for (uint32_t t = 0; t < model_.programs[p].tasks.size(); ++t)
        if (model_.programs[p].tasks[t].kind == TaskKind::kLaunch &&
            !core_.late.task(model_.programs[p].tasks[t]))
          needs_.push_back({p, t, 0});
    }
    const std::optional<size_t> along = threads_along();
    if (!along) REGIE_TRY(prepare_all());
    REGIE_ASSIGN(Placement placement, place_buffers(model_, plan_->shapes, scratch_needed_));
    Status placed = core_.options.check_plans ? check_placement(model_, placement, plan_->bytes) : Status();
    if (!placed.ok())
      return std::move(placed).while_doing("checking the model's plan at " +
                                           symbols_text(model_, plan_->shapes.symbols) +
                                           "; compile the model again");
    plan_->offsets = std::move(placement.offsets);
    plan_->space_bytes = std::move(placement.space_bytes);
    if (along)
      prepare_along(self, *along, placement.sizes);
    else
      REGIE_TRY(place_scratch(placement.sizes));
    return std::unique_ptr<const ShapePlan>(std::move(made));
  }

 private:
  // The first task that gives something of this type; empty if there is none, as for what is only a view.
  std::string maker(uint32_t type) const {
    for (uint32_t p = 0; p < model_.programs.size(); ++p)
      for (uint32_t t = 0; t < model_.programs[p].tasks.size(); ++t)
        for (const Arg& a : model_.programs[p].tasks[t].results)
          if (a.kind != Arg::kNone && a.type == type) return task_name(model_, p, t);
    return {};
  }

  regie_tensor tensor(const Arg& a) const {
    regie_tensor t{};
    if (a.kind == Arg::kNone) return t;
    t.elem = model_.types[a.type].elem;
    t.rank = static_cast<int32_t>(plan_->dims[a.type].size());
    t.dims = plan_->dims[a.type].data();
    t.bytes = plan_->bytes[a.type];
    return t;
  }

  static constexpr size_t kGrain = 4;  // below, starting a thread takes longer

  // How many threads shall make kernels ready while the run is on its way. nullopt: all before it, as its own
  // launches take every processor, or are on streams that are to be kept busy.
  std::optional<size_t> threads_along() const {
    uint32_t width = 1;
    for (const Need& n : needs_) {
      const ModelTask& task = model_.programs[n.program].tasks[n.task];
      if (!core_.devices[task.device]->runs_inline()) return std::nullopt;
      width = std::max(width, core_.threads_of(task));
    }
    if (core_.options.preparing_threads) return *core_.options.preparing_threads;
    const size_t processors = std::thread::hardware_concurrency();
    const size_t threads = std::min(processors > width ? processors - width : 0, needs_.size() / kGrain);
    return threads ? std::optional(threads) : std::nullopt;
  }

  // Scratch is taken to be no more than the model planned; a run finds room for what is.
  void prepare_along(const std::shared_ptr<Planner>& self, size_t threads,
                     const std::vector<uint64_t>& sizes) {
    for (size_t i = 0; i < needs_.size(); ++i) {
      const ModelTask& task = model_.programs[needs_[i].program].tasks[needs_[i].task];
      TaskPlan& to = plan_->tasks[needs_[i].program][needs_[i].task];
      to.pending = static_cast<uint32_t>(i);
      to.scratch_space = scratch_space(task);
      if (task.scratch == REGIE_NONE) continue;
      to.scratch_room = sizes[task.scratch];
      to.scratch_offset = plan_->offsets[task.scratch];
    }
    plan_->preparation = std::make_unique<Preparation>(needs_.size(), [self](size_t i) {
      Need& need = self->needs_[i];
      TaskPlan& to = self->plan_->tasks[need.program][need.task];
      to.failure = self->prepare_or_tell(need);
      to.scratch_bytes = need.bytes;
    });
    plan_->preparation->start(threads);
  }

  // A library may take a tenth of a millisecond and more to generate a kernel's code, so on all processors.
  Status prepare_all() {
    std::vector<Status> made(needs_.size());
    Preparation all(needs_.size(), [&](size_t i) { made[i] = prepare_or_tell(needs_[i]); });
    // What the process is bound to counts, not what the machine has.
    const size_t width = std::min<size_t>(std::thread::hardware_concurrency(), needs_.size() / kGrain);
    if (width > 1) all.start(width - 1);
    for (size_t i = 0; i < needs_.size(); ++i) all.need(i);
    for (size_t i = 0; i < needs_.size(); ++i) {
      const auto [program, task, bytes] = needs_[i];
      if (!made[i].ok() && !may_be_left(program, made[i])) return std::move(made[i]);
      plan_->tasks[program][task].failure = std::move(made[i]);
    }
    std::erase_if(needs_, [](const Need& n) { return n.bytes == 0; });
    for (const Need& n : needs_) {
      const uint32_t scratch = model_.programs[n.program].tasks[n.task].scratch;
      if (scratch != REGIE_NONE) scratch_needed_[scratch] = std::max(scratch_needed_[scratch], n.bytes);
    }
    return {};
  }

  struct Need {
    uint32_t program, task;
    uint64_t bytes;  // of scratch
  };

  // Whoever waits for it would do so forever if it threw.
  Status prepare_or_tell(Need& need) {
    try {
      return prepare(need);
    } catch (const std::bad_alloc&) {
      return Status::error(REGIE_OUT_OF_MEMORY, "making a kernel ready",
                           task_name(model_, need.program, need.task));
    }
  }

  Status prepare(Need& need) {
    const uint32_t p = need.program, index = need.task;
    const ModelTask& task = model_.programs[p].tasks[index];
    const Device& device = *core_.devices[task.device];
    bool computes = false;
    for (const Arg& a : task.results) computes |= a.kind != Arg::kNone && plan_->bytes[a.type] != 0;
    if (!computes) return {};
    std::vector<regie_tensor> operands, results;
    for (size_t i = 0; i < task.operands.size(); ++i) {
      const Arg& a = task.operands[i];
      regie_tensor t = tensor(a);
      const uint32_t packed = task.kernel_weights.empty() ? REGIE_NONE : task.kernel_weights[i];
      const uint32_t weight = packed != REGIE_NONE                   ? packed
                              : a.kind == Arg::kWeight && a.constant ? a.index
                                                                     : REGIE_NONE;
      if (weight != REGIE_NONE) {
        const uint64_t offset = packed != REGIE_NONE ? 0 : a.offset;
        t.data =
            static_cast<std::byte*>(const_cast<void*>(core_.weights[task.device].addresses[weight])) + offset;
        if (packed != REGIE_NONE) t.bytes = model_.weights[weight].size;
      }
      operands.push_back(t);
    }
    for (const Arg& a : task.results) results.push_back(tensor(a));
    regie_executable* executable = nullptr;
    Status status = check_shape(task);
    if (!status.ok()) return in_task(std::move(status), need, device);
    status = device.call([&] {
      return device.table().prepare(core_.loaded[core_.loaded_of[task.kernel]].get(), operands.data(),
                                    static_cast<uint32_t>(operands.size()), results.data(),
                                    static_cast<uint32_t>(results.size()), core_.threads_of(task),
                                    &executable, &need.bytes);
    });
    if (status.ok() && !executable)
      status = bad_plugin(device.title() + " prepared a kernel, but gave nothing");
    if (!status.ok()) return in_task(std::move(status), need, device);
    plan_->tasks[p][index].executable = Executable(device, executable);
    return {};
  }

  Status in_task(Status status, const Need& need, const Device& device) const {
    const ModelTask& task = model_.programs[need.program].tasks[need.task];
    status.set_where(task_name(model_, need.program, need.task));
    return std::move(status)
        .while_doing("preparing kernel '" + model_.kernels[task.kernel].name + "' at " +
                     symbols_text(model_, plan_->shapes.symbols))
        .while_doing(task_story(model_, need.program, need.task, device));
  }

  // A kernel that was compiled for one shape may not see another: its device need not notice.
  Status check_shape(const ModelTask& task) const {
    const ModelKernel& kernel = model_.kernels[task.kernel];
    if (!reference_ || (kernel.flags & REGIE_KERNEL_ANY_SHAPE)) return {};
    for (const std::vector<Arg>* args : {&task.operands, &task.results})
      for (const Arg& a : *args) {
        if (a.kind == Arg::kNone) continue;
        for (const ModelDim d : model_.types[a.type].dims)
          if (reference_->at(d) != plan_->shapes.at(d))
            return unsupported("kernel '" + kernel.name + "' was compiled for " +
                               symbols_text(model_, reference_->symbols) + " alone, not for " +
                               symbols_text(model_, plan_->shapes.symbols) +
                               "; compile the model for the sizes that it shall run at (--shape, --shapes)");
      }
    return {};
  }

  // Sizes are the model's expressions, so that a hostile file could make them disagree at other shapes.
  Status check_args() const {
    auto fits = [&](const Arg& a) {
      if (core_.late.arg(a)) return true;  // looked at when the run gets there
      uint64_t room = 0;
      switch (a.kind) {
        case Arg::kNone:
          return true;
        case Arg::kBuffer:
          room = static_cast<uint64_t>(std::max<int64_t>(0, plan_->shapes.at(model_.buffers[a.index].size)));
          break;
        case Arg::kWeight:
          room = model_.weights[a.index].size;
          break;
        case Arg::kInput:
          room = plan_->bytes[model_.inputs[a.index].type];
          break;
        case Arg::kOutput:
          room = plan_->bytes[model_.outputs[a.index].type];
          break;
      }
      return a.offset <= room && plan_->bytes[a.type] <= room - a.offset;
    };
    // The bytes of another layout than the portable one are for the device to compare.
    auto packed_fits = [&](const Arg& a, uint32_t weight) {
      const ModelWeight& w = model_.weights[weight];
      return (w.layout != kPortable || plan_->bytes[a.type] <= w.size) && (a.index == weight || fits(a));
    };
    auto same_size = [&](const Arg& a, const Arg& b) {
      return a.kind == Arg::kNone || b.kind == Arg::kNone || core_.late.type(a.type) ||
             core_.late.type(b.type) || plan_->bytes[a.type] == plan_->bytes[b.type];
    };
    for (uint32_t p = 0; p < model_.programs.size(); ++p)
      for (uint32_t t = 0; t < model_.programs[p].tasks.size(); ++t) {
        const ModelTask& task = model_.programs[p].tasks[t];
        bool good = std::all_of(task.results.begin(), task.results.end(), fits);
        for (size_t i = 0; i < task.operands.size(); ++i) {
          const uint32_t packed = task.kernel_weights.empty() ? REGIE_NONE : task.kernel_weights[i];
          good =
              good && (packed == REGIE_NONE ? fits(task.operands[i]) : packed_fits(task.operands[i], packed));
        }
        if (task.kind == TaskKind::kCopy) good = good && same_size(task.operands[0], task.results[0]);
        if (task.kind == TaskKind::kIf && !core_.late.type(task.operands[0].type))
          good = good && plan_->bytes[task.operands[0].type] == 1;
        if (task.kind == TaskKind::kLoop) good = good && loop_fits(task, fits, same_size);
        for (size_t i = 0; task.kind == TaskKind::kIf && i < task.results.size(); ++i)
          for (const std::vector<Arg>& list : task.program_results)
            good = good && fits(list[i]) && same_size(list[i], task.results[i]);
        if (!good) return disagree(task_name(model_, p, t));
      }
    for (size_t o = 0; o < model_.outputs.size(); ++o) {
      const Arg& a = model_.output_sources[o];
      if (!fits(a) || plan_->bytes[a.type] != plan_->bytes[model_.outputs[o].type])
        return disagree("output '" + model_.outputs[o].name + "'");
    }
    return {};
  }

  template <class Fits, class Same>
  bool loop_fits(const ModelTask& task, Fits&& fits, Same&& same_size) const {
    const std::vector<Arg>&state = task.program_arguments, &given = task.program_results[0];
    auto scalar = [&](const Arg& a, uint64_t bytes) {
      return a.kind == Arg::kNone || plan_->bytes[a.type] == bytes;
    };
    bool good = std::all_of(state.begin(), state.end(), fits) &&
                std::all_of(given.begin(), given.end(), fits) && scalar(task.operands[0], 8) &&
                scalar(task.operands[1], 1) && scalar(state[0], 8) && scalar(state[1], 1) &&
                scalar(given[0], 1);
    for (size_t i = 2; i < state.size(); ++i)
      good = good && same_size(task.operands[i], state[i]) && same_size(given[i - 1], state[i]);
    return good;
  }

  Status disagree(std::string where) const {
    return Status::error(REGIE_CORRUPT,
                         "the model's sizes do not agree with each other at " +
                             symbols_text(model_, plan_->shapes.symbols) + "; compile the model again",
                         std::move(where));
  }

  uint32_t scratch_space(const ModelTask& task) const {
    if (task.scratch != REGIE_NONE) return model_.buffers[task.scratch].space;
    for (uint32_t s = 0; s < model_.spaces.size(); ++s)
      if (model_.spaces[s].device == task.device) return s;
    return REGIE_NONE;
  }

  // Scratch lies where the model planned it. What the plan has no room for (another width than it was
  // compiled for) goes behind the arena, shared by the tasks of a stream.
  Status place_scratch(const std::vector<uint64_t>& sizes) {
    struct Extra {
      uint64_t bytes = 0, offset = 0;
    };
    std::map<std::pair<uint32_t, uint32_t>, Extra> extras;  // by space and stream
    std::vector<Extra*> extra_of(needs_.size());
    for (size_t i = 0; i < needs_.size(); ++i) {
      const ModelTask& task = model_.programs[needs_[i].program].tasks[needs_[i].task];
      TaskPlan& to = plan_->tasks[needs_[i].program][needs_[i].task];
      to.has_scratch = true;
      to.scratch_space = scratch_space(task);
      if (to.scratch_space == REGIE_NONE)
        return Status::error(REGIE_CORRUPT, "the model gives the task's device no memory for its scratch",
                             task_name(model_, needs_[i].program, needs_[i].task));
      if (task.scratch != REGIE_NONE && needs_[i].bytes <= sizes[task.scratch]) {
        to.scratch_offset = plan_->offsets[task.scratch];
        continue;
      }
      Extra& extra = extras[{to.scratch_space, task.stream}];
      extra.bytes = std::max(extra.bytes, needs_[i].bytes);
      extra_of[i] = &extra;
    }
    for (auto& [key, extra] : extras) {
      uint64_t& end = plan_->space_bytes[key.first];
      const ModelSpace& space = model_.spaces[key.first];
      const uint64_t alignment =
          std::max<uint64_t>(64, core_.devices[space.device]->about().spaces[space.device_space].alignment);
      extra.offset = (end + alignment - 1) / alignment * alignment;
      if (__builtin_add_overflow(extra.offset, extra.bytes, &end) || end > static_cast<uint64_t>(INT64_MAX))
        return Status::error(REGIE_OUT_OF_MEMORY, "scratch of " + std::to_string(extra.bytes) + " bytes");
    }
    for (size_t i = 0; i < needs_.size(); ++i)
      if (extra_of[i]) plan_->tasks[needs_[i].program][needs_[i].task].scratch_offset = extra_of[i]->offset;
    return {};
  }

  const SessionCore& core_;
  const Model& model_;
  std::vector<int64_t> symbols_;
  std::optional<ShapeValues> reference_;  // if a kernel is for it alone, and this plan is for another
  ShapePlan* plan_ = nullptr;             // that is being made; it outlives what makes its kernels
  std::vector<Need> needs_;               // tasks to make ready, then those with scratch
  std::vector<uint64_t> scratch_needed_;  // by buffer
};

}  // namespace

Result<std::unique_ptr<const ShapePlan>> SessionCore::make_plan(std::vector<int64_t> symbols) {
  std::lock_guard lock(prepare_mutex);
  const auto planner = std::make_shared<Planner>(*this, std::move(symbols));
  return planner->run(planner);
}

}  // namespace regie
