#include "runtime/run_state.h"

#include <algorithm>

#include "base/log.h"
#include "model/weight_check.h"

namespace regie {

Result<std::unique_ptr<RunState>> RunState::make(SessionCore* core) {
  std::unique_ptr<RunState> s(new RunState);
  s->core_ = core;
  const Model& m = *core->model;
  for (uint32_t d = 0; d < core->devices.size(); ++d)
    for (uint32_t number : core->streams[d]) {
      auto stream = std::make_unique<RunStream>();
      stream->device = d;
      stream->number = number;
      stream->is_inline = core->devices[d]->runs_inline();
      s->streams_.push_back(std::move(stream));
    }
  REGIE_TRY(s->renew_streams());
  {
    std::lock_guard lock(core->pool_mutex);
    s->arenas_ = std::exchange(core->first_arenas, {});
    s->touching_ = std::move(core->first_touch);
  }
  s->arenas_.resize(m.spaces.size());
  s->output_memory_.resize(m.outputs.size());
  s->output_addresses_.resize(m.outputs.size());
  s->wanted_outputs_.resize(m.outputs.size());
  s->pool_ = std::make_unique<LatePool>(*core);
  s->defaults_ = InputDefaults(m);
  s->seen_outputs_ = m.seen_outputs();
  size_t tasks = 0;
  for (const ModelProgram& p : m.programs) tasks += p.tasks.size();
  s->issued_.reserve(tasks);
  return s;
}

// All streams before all fences: what a stream still runs may wait for the fence of another one.
void RunState::free_streams() {
  for (const auto& s : streams_) s->stream.reset();
  for (const auto& s : streams_) s->fence.reset();
}

RunState::~RunState() { free_streams(); }

Status RunState::renew_streams() {
  free_streams();
  for (const auto& s : streams_) {
    const Device& device = *core_->devices[s->device];
    REGIE_ASSIGN(s->stream, Stream::create(device));
    if (!s->is_inline) {
      REGIE_ASSIGN(s->fence, Fence::create(device));
    }
    s->issued = s->known = 0;
    s->dirty = false;
  }
  failed_ = timed_out_ = false;
  return {};
}

Status RunState::fit_arenas(const ShapePlan& plan) {
  std::vector<std::span<std::byte>> to_touch;
  for (size_t s = 0; s < arenas_.size(); ++s) {
    if (arenas_[s].bytes() >= plan.space_bytes[s]) continue;
    const ModelSpace& space = core_->model->spaces[s];
    ++generation_;
    touching_.reset();
    arenas_[s].reset();
    Result<DeviceMemory> memory =
        DeviceMemory::allocate(*core_->devices[space.device], space.device_space, plan.space_bytes[s]);
    if (!memory)
      return std::move(memory).status().while_doing("making an arena of " +
                                                    std::to_string(plan.space_bytes[s]) +
                                                    " bytes in memory space '" + space.name + "'");
    arenas_[s] = std::move(memory).value();
    if (core_->is_host_space(static_cast<uint32_t>(s)))
      to_touch.emplace_back(arenas_[s].data(), arenas_[s].bytes());
  }
  if (!to_touch.empty()) touching_ = std::make_unique<FirstTouch>(std::move(to_touch));
  // As for weights: beside launches that leave a processor, before others.
  if (touching_ && !plan.preparation) touching_->finish();
  return {};
}

Status RunState::find_bound(std::span<const regie_tensor> inputs, Bound** bound) {
  if (last_ && matches(*last_->plan, inputs)) {
    *bound = last_;
    return {};
  }
  for (const auto& b : bounds_)
    if (matches(*b->plan, inputs)) {
      *bound = b.get();
      return {};
    }
  std::vector<int64_t> symbols;
  REGIE_TRY(check_inputs(inputs, &symbols));
  if (bounds_.size() >= core_->options.shapes_kept) {
    auto oldest = std::min_element(bounds_.begin(), bounds_.end(),
                                   [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
    if (last_ == oldest->get()) last_ = nullptr;
    bounds_.erase(oldest);
  }
  REGIE_ASSIGN(std::unique_ptr<const ShapePlan> plan, core_->make_plan(std::move(symbols)));
  REGIE_ASSIGN(std::unique_ptr<Bound> made, Bound::make(*core_, std::move(plan), streams_, *pool_));
  if (made->late)
    made->late->find_output = [this](uint32_t output, uint64_t bytes) { return find_output(output, bytes); };
  ++statistics_.shapes_prepared;
  ++core_->shapes_prepared;
  statistics_.last_shape_change = shape_change(inputs);
  log(REGIE_LOG_INFO, "shapes",
      core_->model->name +
          ": kernels are made ready for a shape that is new here: " + statistics_.last_shape_change +
          " (number " + std::to_string(statistics_.shapes_prepared) + " of this context)");
  last_dims_.clear();
  for (const regie_tensor& t : inputs) last_dims_.emplace_back(t.dims, t.dims + t.rank);
  bounds_.push_back(std::move(made));
  *bound = bounds_.back().get();
  return {};
}

Status RunState::run(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
  Status ran = seen_outputs_ == core_->model->outputs.size() ? run_trusting(inputs, outputs)
                                                             : run_unranked(inputs, outputs);
  if (weights_sound_) return ran;
  // Whatever came of damaged weights, a failure too, is not what is to be said.
  if (const auto& check = core_->model->weight_check) REGIE_TRY(check->wait());
  weights_sound_ = true;
  return ran;
}

Status RunState::run_trusting(std::span<const regie_tensor> inputs, std::span<regie_tensor> outputs) {
  const Model& m = *core_->model;
  if (inputs.size() != m.inputs.size())
    return invalid_input("the model has " + std::to_string(m.inputs.size()) + " inputs, but " +
                         std::to_string(inputs.size()) + " were given");
  if (outputs.size() != m.outputs.size())
    return invalid_input("the model has " + std::to_string(m.outputs.size()) + " outputs, but room for " +
                         std::to_string(outputs.size()) + " was given");
  inputs = defaults_.with(inputs);
  if (failed_) REGIE_TRY(renew_streams());
  Bound* bound = nullptr;
  REGIE_TRY(find_bound(inputs, &bound));
  last_ = bound;
  // Launches that take every processor wait for each other: one thread more, and each of them stands still
  // until that one is done.
  if (!weights_sound_ && !bound->plan->preparation)
    if (const auto& check = core_->model->weight_check) REGIE_TRY(check->wait());
  bound->last_used = ++use_counter_;
  const ShapePlan& plan = *bound->plan;
  REGIE_TRY(check_outputs(plan, outputs));
  REGIE_TRY(fit_arenas(plan));
  if (bound->generation != generation_) bound->bind_arenas(arenas_, generation_);
  for (size_t i = 0; i < inputs.size(); ++i) bound->bind_input(i, inputs[i].data);
  for (size_t o = 0; o < outputs.size(); ++o) bound->bind_output(o, output_addresses_[o]);
  ++statistics_.runs;
  Status ran = execute(*bound);
  touching_.reset();
  if (bound->useless) {
    last_ = nullptr;
    std::erase_if(bounds_, [&](const auto& b) { return b.get() == bound; });
  }
  REGIE_TRY(std::move(ran));
  for (size_t o = 0; o < outputs.size(); ++o) {
    const uint32_t type = m.outputs[o].type;
    const bool late = core_->late.outputs[o];
    outputs[o].elem = m.types[type].elem;
    outputs[o].rank = static_cast<int32_t>(plan.dims[type].size());
    outputs[o].dims = late ? bound->late->dims_address(type) : plan.dims[type].data();
    outputs[o].strides = nullptr;
    outputs[o].data = late ? bound->late->output(static_cast<uint32_t>(o)) : output_addresses_[o];
    outputs[o].bytes = late ? bound->late->bytes(type) : plan.bytes[type];
  }
  return {};
}

void RunState::set_profiling(bool on) {
  if (profiling_ && !on) record(false);
  profiling_ = on;
  if (!on) return;
  times_.reserve(issued_.capacity());
  clock_offsets_.resize(core_->devices.size());
}

}  // namespace regie
