// Loops: what the host does before, between and after the iterations. Shapes that stay the same were prepared
// with the model's; where they vary, symbols are bound anew and memory is found at each iteration (late.h).
#include <algorithm>
#include <cstring>

#include "runtime/run_state.h"

namespace regie {

Status RunState::run_loop(Bound& bound, Step& step) {
  if (profiling_) {
    step.issue_ns = step.issued_ns = step.begin_ns = host_ns();
    step.host_stamps = true;
  }
  REGIE_TRY(wait_all());
  LoopPlan& loop = *step.loop;
  loop.count = INT64_MAX;
  if (loop.trips.from) REGIE_TRY(transfer(loop.trips));
  bound.flag = 1;
  if (step.condition.from) REGIE_TRY(transfer(step.condition));
  const bool goes_on = bound.flag != 0;
  if (step.late) REGIE_TRY(begin_late(bound, step));
  for (LoopPlan::Carried& c : loop.carried) REGIE_TRY(transfer(c.begin));
  for (LoopPlan::Collected& c : loop.collected) {
    c.bytes = 0;
    c.dims.clear();
  }
  int64_t made = 0;
  REGIE_TRY(run_iterations(bound, step, goes_on, &made));
  for (LoopPlan::Collected& c : loop.collected)
    if (!c.late && c.room != static_cast<uint64_t>(made)) return wrong_trips(step, made, c.room);
  if (step.late) REGIE_TRY(end_late(bound, step, made));
  if (profiling_) step.end_ns = host_ns();
  return {};
}

Status RunState::run_iterations(Bound& bound, Step& step, bool goes_on, int64_t* made) {
  LoopPlan& loop = *step.loop;
  const size_t mark = issued_.size();
  const int64_t trips = loop.count;
  for (; goes_on && *made < trips; ++*made) {
    if (loop.number) std::memcpy(loop.number->data, made, sizeof *made);
    if (loop.condition) *static_cast<uint8_t*>(loop.condition->data) = 1;
    REGIE_TRY(run_program(bound, step.programs[0]));
    REGIE_TRY(wait_all());
    if (bound.late) REGIE_TRY(place_given(bound, step));
    REGIE_TRY(transfer(loop.goes_on));
    goes_on = bound.flag != 0;
    REGIE_TRY(collect(bound, step, *made));
    REGIE_TRY(carry(bound, step));
    // The same tasks run again: what they took is kept now, and what is known of them as long as they run.
    if (profiling_) keep_times(mark);
    issued_.resize(mark);
  }
  return {};
}

// Everything at once: what another copy would overwrite goes to the side first.
Status RunState::carry(Bound& bound, Step& step) {
  LoopPlan& loop = *step.loop;
  for (LoopPlan::Carried& c : loop.carried) {
    if (!c.aside) continue;
    if (c.side.size() < c.given.tensor->bytes) c.side.resize(c.given.tensor->bytes);
    c.beside.bytes = c.given.tensor->bytes;
    c.beside.data = c.side.data();
    Transfer out = c.end;
    out.to = &c.beside;
    out.to_stream = nullptr;
    REGIE_TRY(transfer(out));
  }
  if (step.late) REGIE_TRY(renew_homes(bound, step));
  for (bool aside : {false, true})
    for (LoopPlan::Carried& c : loop.carried) {
      if (!c.end.from || c.aside != aside) continue;
      if (!aside) {
        REGIE_TRY(transfer(c.end));
        continue;
      }
      Transfer back = c.end;
      back.from = &c.beside;
      back.from_stream = nullptr;
      REGIE_TRY(transfer(back));
    }
  // What the body has made is over.
  if (bound.late) bound.late->release_since(core_->model->programs[step.program].tasks[step.task].step);
  return {};
}

Status RunState::collect(Bound& bound, Step& step, int64_t iteration) {
  for (LoopPlan::Collected& c : step.loop->collected) {
    const uint64_t bytes = c.given.tensor->bytes;
    if (!c.late) {
      if (static_cast<uint64_t>(iteration) >= c.room) return wrong_trips(step, iteration + 1, c.room);
      c.place.data = static_cast<std::byte*>(c.whole.tensor->data) + static_cast<uint64_t>(iteration) * bytes;
    } else {
      const std::span<const int64_t> dims(c.given.tensor->dims, static_cast<size_t>(c.given.tensor->rank));
      if (iteration == 0) c.dims.assign(dims.begin(), dims.end());
      if (!std::equal(dims.begin(), dims.end(), c.dims.begin(), c.dims.end()))
        return late_failed(invalid_input("what the body gives in iteration " + std::to_string(iteration) +
                                         " is " + dims_text(dims) + ", and was " + dims_text(c.dims) +
                                         " before; what is collected must have one shape"),
                           step);
      Status grown = bound.late->grow(c.whole.arg->index, c.bytes, c.bytes + bytes, c.whole.tensor);
      if (!grown.ok()) return late_failed(std::move(grown), step);
      c.place.data = static_cast<std::byte*>(c.whole.tensor->data) + c.bytes;
    }
    c.place.bytes = bytes;
    REGIE_TRY(transfer(c.copy));
    c.bytes += bytes;
  }
  return {};
}

// ---- Shapes that vary ----

// Symbols of what is carried, from the values themselves, then the places of these sizes.
Status RunState::bind_carried(Bound& bound, const Step& step, bool initial) {
  const Model& m = *core_->model;
  const ModelTask& task = m.programs[step.program].tasks[step.task];
  LateRun& late = *bound.late;
  std::vector<std::vector<int64_t>>& dims = loop_dims_;
  const std::vector<Arg>& state = task.program_arguments;
  dims.resize(std::max(dims.size(), state.size()));
  for (size_t i = 2; i < state.size(); ++i) {
    const Arg& from = initial ? task.operands[i] : task.program_results[0][i - 1];
    if (state[i].kind != Arg::kNone) dims[i].assign(late.dims(from.type).begin(), late.dims(from.type).end());
  }
  for (const ModelDefine& d : task.defines)
    if (d.result + 2 < state.size()) REGIE_TRY(late.bind(d.symbol, dims[d.result + 2][d.axis]));
  for (size_t i = 2; i < state.size(); ++i) {
    if (state[i].kind == Arg::kNone) continue;
    REGIE_TRY(late.measure(state[i].type));
    if (late.dims(state[i].type) != dims[i])
      return invalid_input("carried value " + std::to_string(i - 2) + " is " + dims_text(dims[i]) +
                           ", but the model says " + dims_text(m, m.types[state[i].type].dims) + " = " +
                           dims_text(late.dims(state[i].type)));
  }
  return {};
}

Status RunState::begin_late(Bound& bound, Step& step) {
  auto begin = [&]() -> Status {
    for (LoopPlan::Carried& c : step.loop->carried) REGIE_TRY(bound.late->place(c.initial, false));
    REGIE_TRY(bind_carried(bound, step, true));
    for (LoopPlan::Carried& c : step.loop->carried) REGIE_TRY(bound.late->place_again(c.home));
    return {};
  };
  Status status = begin();
  return status.ok() ? status : late_failed(std::move(status), step);
}

// Where the body's results lie, and how large they are.
Status RunState::place_given(Bound& bound, Step& step) {
  LateRun& late = *bound.late;
  LoopPlan& loop = *step.loop;
  const Arg& goes_on = core_->model->programs[step.program].tasks[step.task].program_results[0][0];
  auto place = [&]() -> Status {
    REGIE_TRY(late.place(goes_on, const_cast<regie_tensor*>(loop.goes_on.from), false));
    if (!step.late) return {};
    for (LoopPlan::Carried& c : loop.carried) REGIE_TRY(late.place(c.given, false));
    for (LoopPlan::Collected& c : loop.collected) REGIE_TRY(late.place(c.given, false));
    return {};
  };
  Status status = place();
  return status.ok() ? status : late_failed(std::move(status), step);
}

Status RunState::renew_homes(Bound& bound, Step& step) {
  auto renew = [&]() -> Status {
    REGIE_TRY(bind_carried(bound, step, false));
    for (LoopPlan::Carried& c : step.loop->carried)
      // What is there already has the size that it had.
      if (c.end.from) REGIE_TRY(bound.late->place_again(c.home));
    return {};
  };
  Status status = renew();
  return status.ok() ? status : late_failed(std::move(status), step);
}

// How much was collected is known.
Status RunState::end_late(Bound& bound, Step& step, int64_t made) {
  const ModelTask& task = core_->model->programs[step.program].tasks[step.task];
  LateRun& late = *bound.late;
  auto end = [&]() -> Status {
    for (LoopPlan::Collected& c : step.loop->collected) {
      if (!c.late) continue;
      for (const ModelDefine& d : task.defines) {
        if (&task.results[d.result] != c.whole.arg) continue;
        // Without iterations nobody knows how large one would have been.
        const int64_t size = d.axis == 0 ? made : d.axis - 1 < c.dims.size() ? c.dims[d.axis - 1] : 0;
        REGIE_TRY(late.bind(d.symbol, size));
      }
      REGIE_TRY(late.measure(c.whole.arg->type));
      const std::vector<int64_t>& dims = late.dims(c.whole.arg->type);
      if (made > 0 &&
          (dims[0] != made || !std::equal(dims.begin() + 1, dims.end(), c.dims.begin(), c.dims.end())))
        return invalid_input("what is collected is " + std::to_string(made) + " times " + dims_text(c.dims) +
                             ", but the model says " + dims_text(dims));
      if (made == 0 && dims[0] != 0) return wrong_trips(step, made, static_cast<uint64_t>(dims[0]));
      REGIE_TRY(late.place(c.whole, true));
    }
    return {};
  };
  Status status = end();
  return status.ok() ? status : late_failed(std::move(status), step);
}

// The model's own arithmetic says how many there are; a file may say otherwise than its tasks do.
Status RunState::wrong_trips(const Step& step, int64_t made, uint64_t room) const {
  Status status = Status::error(REGIE_CORRUPT, "the loop made " + std::to_string(made) +
                                                   " iterations, but its results have room for " +
                                                   std::to_string(room) + "; compile the model again");
  status.set_where(task_name(*core_->model, step.program, step.task));
  return status;
}

}  // namespace regie
