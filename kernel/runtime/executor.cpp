// The run itself: issues the tasks in order, far ahead of the devices, and waits only where the model says
// so.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/run_state.h"

namespace regie {

namespace {

constexpr size_t kMostTimes = 1 << 20;   // of one run: what a long loop takes after that is not kept
constexpr uint64_t kNever = UINT64_MAX;  // a time stamp that no device has written

// What a stream calls before and after a copy that its device does not time.
void stamp(void* place) { *static_cast<uint64_t*>(place) = host_ns(); }

}  // namespace

uint64_t host_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

Status RunState::execute(Bound& bound) {
  issued_.clear();
  times_.clear();
  clear_plugin_failure();
  Status status;
  if (bound.late) bound.late->begin();
  try {
    if (profiling_) {
      read_clocks();
      record(true);
    }
    status = run_program(bound, 0);
    if (status.ok()) status = wait_all();
    for (size_t i = 0; status.ok() && i < bound.outputs.size(); ++i) {
      if (bound.late) status = ready_output(bound, i);
      if (status.ok()) status = transfer(bound.outputs[i]);
    }
  } catch (...) {
    // Nothing of ours throws in a run; a plug-in may.
    const Step* last = issued_.empty() ? nullptr : issued_.back();
    status = bad_plugin((last ? last->device->title() : "a device") +
                        " threw an exception across the plug-in boundary; plug-ins must return a status");
    if (last) status.set_where(task_name(*core_->model, last->program, last->task));
  }
  if (status.ok()) {
    if (profiling_) {
      keep_times(0);
      status = collect_records();
      // Those of iterations were kept when each had ended, before that of their loop.
      if (times_.size() > issued_.size())
        std::stable_sort(times_.begin(), times_.end(),
                         [](const TaskTime& a, const TaskTime& b) { return a.wait_ns < b.wait_ns; });
    }
  } else {
    failed_ = true;
    drain();
  }
  // What hangs may still use it; the next run gets new streams first.
  if (bound.late && !timed_out_) {
    bound.late->end();
    pool_->end_run();
  }
  return status;
}

Status RunState::run_program(Bound& bound, uint32_t program) {
  for (Step& step : bound.programs[program]) {
    issued_.push_back(&step);
    if (profiling_) step.wait_ns = step.host_waits.empty() ? 0 : host_ns();
    for (const Step* producer : step.host_waits) REGIE_TRY(wait_fence(*producer));
    if (step.late) REGIE_TRY(make_ready(bound, step));
    if (step.pending != REGIE_NONE) REGIE_TRY(bound.finish(*core_, step, arenas_));
    if (step.kind == Step::kIf)
      REGIE_TRY(run_branch(bound, step));
    else if (step.kind == Step::kLoop)
      REGIE_TRY(run_loop(bound, step));
    else if (step.kind == Step::kImpossible)
      return *step.failure;
    else
      REGIE_TRY(issue(step));
  }
  return {};
}

Status RunState::issue(Step& step) {
  RunStream& stream = *step.stream;
  const regie_device_table& table = step.device->table();
  stream.dirty = true;
  for (const Step* producer : step.fence_waits)
    if (regie_status code =
            table.fence_wait(stream.stream.get(), producer->stream->fence.get(), producer->fence_value))
      return stream_failed(code, stream, &step);
  // Stamps also tell which task failed on a stream that runs on its own.
  const bool timed = profiling_ || !stream.is_inline;
  step.begin_ns = step.end_ns = kNever;
  if (profiling_) {
    step.issue_ns = host_ns();
    step.tag = 0;
    if (const regie_device_trace_table* trace = step.device->trace();
        trace && (step.kind == Step::kLaunch || step.kind == Step::kCopy))
      trace->tag(stream.stream.get(), step.tag = ++tags_);
    step.host_stamps = step.kind == Step::kCopy && !step.tag;
  }
  if (step.predicted_ns) {
    if (profiling_) step.tag = ++tags_;
    for (const auto& device : core_->devices)
      if (const regie_device_trace_table* trace = device->trace())
        trace->host_spent(device->handle(), step.predicted_ns, step.tag);
  }
  regie_status code = REGIE_OK;
  if (step.kind == Step::kLaunch) {
    step.launch.begin_ns = timed ? &step.begin_ns : nullptr;
    step.launch.end_ns = timed ? &step.end_ns : nullptr;
    code = table.launch(stream.stream.get(), step.executable, &step.launch);
  } else if (step.kind == Step::kCopy) {
    const regie_tensor& to = step.launch.results[0];
    const bool stamped = profiling_ && step.host_stamps;
    if (stamped) code = table.call_host(stream.stream.get(), stamp, &step.begin_ns);
    if (code == REGIE_OK)
      code = table.copy(stream.stream.get(), step.direction, to.data, step.launch.operands[0].data, to.bytes);
    if (stamped && code == REGIE_OK) code = table.call_host(stream.stream.get(), stamp, &step.end_ns);
  }
  if (code == REGIE_OK && step.signals) {
    step.fence_value = ++stream.issued;
    code = table.fence_signal(stream.stream.get(), stream.fence.get(), step.fence_value);
  }
  if (profiling_) step.issued_ns = host_ns();
  if (code == REGIE_OK) return {};
  return stream.is_inline ? failed(code, step) : stream_failed(code, stream, &step);
}

Status RunState::run_branch(Bound& bound, Step& step) {
  if (profiling_) {
    step.issue_ns = step.issued_ns = step.begin_ns = host_ns();
    step.host_stamps = true;
  }
  REGIE_TRY(wait_all());
  REGIE_TRY(transfer(step.condition));
  const size_t taken = bound.flag ? 0 : 1;
  REGIE_TRY(run_program(bound, step.programs[taken]));
  REGIE_TRY(wait_all());
  if (step.late) REGIE_TRY(hand_over(bound, step, taken));
  for (Transfer& t : step.results[taken]) REGIE_TRY(transfer(t));
  if (profiling_) step.end_ns = host_ns();
  return {};
}

Status RunState::transfer(Transfer& t) {
  const uint64_t bytes = t.to->bytes;
  if (bytes == 0 || (t.from->data == t.to->data && t.from_stream == t.to_stream)) return {};
  auto copy = [&](RunStream& s, uint32_t direction, void* to, const void* from) -> Status {
    const Device& device = *core_->devices[s.device];
    s.dirty = true;
    if (regie_status code = device.table().copy(s.stream.get(), direction, to, from, bytes))
      return stream_failed(code, s, nullptr);
    return wait_stream(s);
  };
  if (!t.from_stream && !t.to_stream) {
    std::memmove(t.to->data, t.from->data, bytes);
    return {};
  }
  if (!t.from_stream) return copy(*t.to_stream, REGIE_COPY_TO_DEVICE, t.to->data, t.from->data);
  if (!t.to_stream) return copy(*t.from_stream, REGIE_COPY_FROM_DEVICE, t.to->data, t.from->data);
  if (t.from_stream == t.to_stream) return copy(*t.from_stream, REGIE_COPY_INSIDE, t.to->data, t.from->data);
  if (t.staging.size() < bytes) t.staging.resize(bytes);
  REGIE_TRY(copy(*t.from_stream, REGIE_COPY_FROM_DEVICE, t.staging.data(), t.from->data));
  return copy(*t.to_stream, REGIE_COPY_TO_DEVICE, t.to->data, t.staging.data());
}

Status RunState::wait_stream(RunStream& s) {
  const Device& device = *core_->devices[s.device];
  if (regie_status code = device.table().stream_wait(s.stream.get(), core_->timeout_ns(device)))
    return stream_failed(code, s, nullptr);
  s.known = s.issued;
  s.dirty = false;
  return {};
}

Status RunState::wait_all() {
  for (const auto& s : streams_)
    if (s->dirty) REGIE_TRY(wait_stream(*s));
  return {};
}

Status RunState::wait_fence(const Step& producer) {
  RunStream& s = *producer.stream;
  if (producer.fence_value <= s.known) return {};
  const Device& device = *producer.device;
  if (regie_status code =
          device.table().host_wait(s.fence.get(), producer.fence_value, core_->timeout_ns(device)))
    return stream_failed(code, s, &producer);
  s.known = producer.fence_value;
  return {};
}

Status RunState::failed(regie_status code, const Step& step) {
  Status status = take_plugin_failure(step.device->title(), code);
  status.set_where(task_name(*core_->model, step.program, step.task));
  return std::move(status).while_doing(task_story(*core_->model, step.program, step.task, *step.device));
}

Status RunState::stream_failed(regie_status code, RunStream& stream, const Step* waited_for) {
  const Device* device = core_->devices[stream.device].get();
  Status status = take_plugin_failure(device->title(), code);
  if (code == REGIE_TIMEOUT) {
    timed_out_ = true;
    if (waited_for) status.set_where(task_name(*core_->model, waited_for->program, waited_for->task));
    return std::move(status).while_doing("waiting for " + device->title());
  }
  // Stamps may be read once the streams have come to rest.
  drain();
  const Step* culprit = timed_out_ ? nullptr : unfinished();
  if (culprit && culprit->stream != &stream) {
    // What was noticed first only waited for it: the words are with the stream that failed.
    device = culprit->device;
    clear_plugin_failure();
    if (regie_status first =
            device->table().stream_wait(culprit->stream->stream.get(), core_->timeout_ns(*device)))
      status = take_plugin_failure(device->title(), first);
  }
  if (!culprit) culprit = waited_for;
  if (!culprit) return std::move(status).while_doing("running on " + device->title());
  status.set_where(task_name(*core_->model, culprit->program, culprit->task));
  return std::move(status).while_doing(task_story(*core_->model, culprit->program, culprit->task, *device));
}

// The first launch that began and did not end.
const Step* RunState::unfinished() const {
  for (const Step* s : issued_)
    if (s->kind == Step::kLaunch && !s->stream->is_inline && s->begin_ns != kNever && s->end_ns == kNever)
      return s;
  return nullptr;
}

// After a failure: nobody may touch inputs, outputs and arenas any more when the run returns. What hangs goes
// on.
void RunState::drain() {
  for (const auto& s : streams_) {
    if (timed_out_ || !s->dirty) continue;
    const Device& device = *core_->devices[s->device];
    try {
      if (device.table().stream_wait(s->stream.get(), core_->timeout_ns(device)) == REGIE_TIMEOUT)
        timed_out_ = true;
    } catch (...) {
    }
  }
}

// A device whose clock is the host's own reads between two readings of that.
void RunState::read_clocks() {
  for (size_t d = 0; d < clock_offsets_.size(); ++d) {
    const Device& device = *core_->devices[d];
    const uint64_t before = host_ns(), now = device.table().now(device.handle()), after = host_ns();
    clock_offsets_[d] =
        before <= now && now <= after ? 0 : static_cast<int64_t>(before + (after - before) / 2 - now);
  }
}

// Of the tasks issued since `from`.
void RunState::keep_times(size_t from) {
  for (size_t i = from; i < issued_.size() && times_.size() < kMostTimes; ++i) {
    const Step* s = issued_[i];
    const int64_t offset = s->host_stamps || !s->stream ? 0 : clock_offsets_[s->stream->device];
    auto on_host = [&](uint64_t ns) { return ns == kNever ? 0 : ns + static_cast<uint64_t>(offset); };
    times_.push_back({s->program, s->task, s->wait_ns ? s->wait_ns : s->issue_ns, s->issue_ns, s->issued_ns,
                      on_host(s->begin_ns), on_host(s->end_ns), s->tag});
  }
}

}  // namespace regie
